"""What tracing adds to a turn: `python -m benchmarks.tracing`, idle and with twenty turns at once.

A turn with three requests, two tools and their searches is recorded, masked and stored in the
commit that ends it; the client's observations are made later, beside turns.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from sqlalchemy import create_engine as create_sync_engine

from agent.engine.messages import Usage
from agent.tracing.masking import masked_trace
from agent.tracing.observations import Project, observations_of
from agent.tracing.recorder import Recorder
from agent.tracing.records import TraceRecord
from db.engine import Sessions, create_engine
from db.models import Base, utc_now
from db.repositories.traces import SqlTraceStore, TraceRows, to_row

TURNS: Final = 200
AT_ONCE: Final = 20
PROMPT: Final = "You are a sommelier. Recommend wines of the catalogue alone. " * 120
FOUND: Final = [
    {"id": f"domaine-cuvee-{number}-2019", "price": 24.5, "notes": "Raspberry, graphite, fine."}
    for number in range(20)
]
USAGE: Final = Usage(prompt_tokens=2400, completion_tokens=180, cached_tokens=2000)


def turn(number: int) -> TraceRecord:
    """Return the record of a turn, as the engine leaves it."""
    asked = [
        {"role": "system", "content": PROMPT},
        {"role": "user", "content": f"A red for lamb under {number} euros, please"},
    ]
    root = Recorder().turn(TraceRecord("", "s", "u", ("Ada",)), str(asked[1]["content"]))
    with root:
        for step in range(3):
            with root.child("llm.plan", "generation", input=asked) as span:
                span.update(model="gpt-4o", usage=USAGE, cost_usd=0.004, output={"content": "..."})
            if step < 2:
                with root.child("tool.search_wines", "tool", input={"styles": ["red"]}) as tool:
                    tool.update(output=str(FOUND))
                    with tool.child("retrieve.wines", "retriever") as retriever:
                        retriever.update(output=FOUND)
        root.update(output="Try the Chinon.", metadata={"outcome": "answered"})
        root.score("outcome", "answered", "CATEGORICAL")
    return root.trace


def timed(work: Callable[[int], object]) -> float:
    """Return the milliseconds of CPU that one of `TURNS` calls takes, the median."""
    taken = []
    for number in range(TURNS):
        began = time.thread_time()
        work(number)
        taken.append((time.thread_time() - began) * 1000)
    return median(taken)


async def stored(store: SqlTraceStore, at_once: int) -> float:
    """Return the milliseconds that a trace takes, with so many turns at once; the median."""
    taken = []

    async def one(number: int) -> None:
        began = time.perf_counter()
        await store.save([turn(number)])
        taken.append((time.perf_counter() - began) * 1000 / at_once)

    for start in range(0, TURNS, at_once):
        await asyncio.gather(*(one(start + number) for number in range(at_once)))
    return median(taken)


async def main() -> None:
    """Measure, and print a table."""
    masked = partial(masked_trace, content="masked", secrets=("s3cr3t-of-the-settings",))
    row = partial(to_row, state="waiting", now=utc_now())
    turns = [turn(number) for number in range(TURNS)]
    traces = [*map(masked, turns)]
    observations = observations_of(Project(("benchmark", "-"), "http://127.0.0.1:9"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.sqlite3"
        tables = create_sync_engine(f"sqlite:///{path}")
        Base.metadata.create_all(tables)
        tables.dispose()
        engine = create_engine(f"sqlite+aiosqlite:///{path}")
        store = SqlTraceStore(Sessions(engine), rows=TraceRows(masked, exported=True))
        print("| part of a turn with 8 spans | ms |\n|---|---|")
        print(f"| recorded | {timed(turn):.2f} |")
        print(f"| masked | {timed(lambda number: masked(turns[number])):.2f} |")
        print(f"| made a row | {timed(lambda number: row(traces[number])):.2f} |")
        for at_once in (1, AT_ONCE):
            spent = await stored(store, at_once)
            print(f"| all of it, with a commit of its own, {at_once} at once | {spent:.2f} |")
        sent = timed(lambda number: observations.encode([traces[number]]))
        print(f"| later, in a thread: observations, encoded | {sent:.2f} |")
        await engine.dispose()


if __name__ == "__main__":
    asyncio.run(main())
