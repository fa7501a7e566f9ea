"""The loop of this project, every turn traced: masked, kept in SQLite, sent from there.

In the product a trace is kept in the commit that ends its turn; here many traces share one.
"""

import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sqlalchemy import create_engine as create_sync_engine

from agent.engine.span import TraceRecord
from agent.tracing.exporter import LARGEST_BATCH, Exporter
from agent.tracing.langfuse import LangfuseClient, LangfuseTraces
from agent.tracing.masking import masked_trace
from agent.tracing.otlp import Origin
from benchmarks.candidates import ours
from benchmarks.scenario import Candidate
from db.engine import Sessions, create_engine
from db.models import Base
from db.repositories.traces import SqlTraceStore, TraceRows


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
        if len(self.ended) == LARGEST_BATCH:
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
    """As `ours`, with traces and scores that go to `base_url`."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "traces.sqlite3"
    tables = create_sync_engine(f"sqlite:///{path}")
    Base.metadata.create_all(tables)
    tables.dispose()
    rows = TraceRows(partial(masked_trace, content="masked", secrets=()), exported=True)
    sessions = Sessions(create_engine(f"sqlite+aiosqlite:///{path}"))
    store = SqlTraceStore(sessions, rows=rows)
    langfuse = LangfuseTraces(LangfuseClient("pk-lf", "sk-lf", base_url), Origin())
    traces = Traces(Exporter(store, langfuse.send, "Langfuse"), folder, store)
    made = ours.make(base_url, traces.keep)
    return Candidate(made.answer, traces.flush)
