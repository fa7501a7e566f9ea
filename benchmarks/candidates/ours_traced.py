"""The loop of this project, every turn traced: masked, kept in SQLite, sent from there.

In the product a trace is kept in the commit that ends its turn; here many traces share one.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import create_engine as create_sync_engine

from agent.tracing.delivery import LangfuseApi
from agent.tracing.observations import Project, observations_of
from agent.tracing.records import TraceRecord
from benchmarks.candidates import ours
from benchmarks.scenario import Candidate
from bot.exporter import MAX_BATCH, Channel, Exporter
from db.engine import Sessions, create_engine
from db.models import Base
from db.repositories.scores import score_queue
from db.repositories.traces import SqlTraceStore, TraceRows, trace_queue

KEYS: Final = ("pk-lf", "sk-lf")


@dataclass
class Traces:
    """The store, and what sends from it; `folder` is where it is, as long as this is."""

    exporter: Exporter
    folder: tempfile.TemporaryDirectory[str]
    store: SqlTraceStore
    ended: list[TraceRecord] = field(default_factory=list)

    async def keep(self, trace: TraceRecord) -> None:
        """Keep a trace, which waits then."""
        self.ended.append(trace)
        if len(self.ended) == MAX_BATCH:
            await self.commit()

    async def commit(self) -> None:
        """Put into the store what has ended."""
        await self.store.save(self.ended)
        self.ended.clear()

    async def flush(self) -> None:
        """Send all that waits."""
        await self.commit()
        await self.exporter.round()


def make(base_url: str) -> Candidate:
    """Make `ours`, with traces and scores that go to `base_url`."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "traces.sqlite3"
    tables = create_sync_engine(f"sqlite:///{path}")
    Base.metadata.create_all(tables)
    tables.dispose()
    rows = TraceRows(exported=True)
    sessions = Sessions(create_engine(f"sqlite+aiosqlite:///{path}"))
    store = SqlTraceStore(sessions, rows=rows)
    api = LangfuseApi(KEYS, base_url, seconds=30)
    encode = observations_of(Project(KEYS, base_url)).encode

    async def send(traces: Sequence[TraceRecord]) -> int:
        return await api.export(await asyncio.to_thread(encode, traces))

    async def channels() -> Sequence[Channel[Any]]:
        scores = partial(api.send_scores, environment=None)
        return [
            Channel("traces", trace_queue(sessions), send),
            Channel("scores", score_queue(sessions), scores),
        ]

    traces = Traces(Exporter(channels), folder, store)
    made = ours.make(base_url, traces.keep)
    return Candidate(made.answer, traces.flush)
