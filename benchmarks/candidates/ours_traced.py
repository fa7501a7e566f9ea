"""The loop of this project, every turn traced: masked, kept in SQLite, sent from there.

In the product a trace is kept in the commit that ends its turn; here many traces share one.
"""

import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agent.engine.span import TraceRecord
from agent.tracing.exporter import LARGEST_BATCH, Exporter
from agent.tracing.langfuse.client import LangfuseClient
from agent.tracing.langfuse.traces import LangfuseTraces
from agent.tracing.masking import prepared
from agent.tracing.otlp import Origin
from benchmarks.candidates import ours
from benchmarks.scenario import Candidate
from db.engine import Sessions, create_engine, upgrade_schema
from db.repositories.traces import SqlTraceStore, TraceRows


@dataclass
class Traces:
    """The store, made when the first trace is kept, and what sends from it."""

    base_url: str
    folder: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory)
    store: SqlTraceStore | None = None
    ended: list[TraceRecord] = field(default_factory=list)

    async def keep(self, trace: TraceRecord) -> None:
        """Keep a trace, which waits then."""
        self.ended.append(trace)
        if len(self.ended) == LARGEST_BATCH:
            await self.commit()

    async def commit(self) -> None:
        """Put into the store what has ended."""
        if self.store is None:
            engine = create_engine(f"sqlite+aiosqlite:///{Path(self.folder.name) / 'traces'}")
            await upgrade_schema(engine)
            rows = TraceRows(partial(prepared, content="masked", secrets=()), exported=True)
            self.store = SqlTraceStore(Sessions(engine), rows=rows)
        await self.store.save(self.ended)
        self.ended.clear()

    async def flush(self) -> None:
        """Send all that waits."""
        await self.commit()
        if self.store is not None:
            client = LangfuseClient("pk-lf-bench", "sk-lf-bench", self.base_url)
            await Exporter(self.store, LangfuseTraces(client, Origin()).send, "Langfuse").round()
            await client.aclose()


def make(base_url: str) -> Candidate:
    """As `ours`, with traces and scores that go to `base_url`."""
    traces = Traces(base_url)
    made = ours.make(base_url, traces.keep)
    return Candidate(made.answer, traces.flush)
