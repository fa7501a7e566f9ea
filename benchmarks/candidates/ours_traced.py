"""The loop of this project, every turn traced: masked, kept in SQLite, sent from there.

In the product a trace is kept in the commit that ends its turn; here many traces share one.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import create_engine as create_sync_engine

from agent.tracing.delivery import LangfuseApi
from agent.tracing.langfuse_project import Project
from agent.tracing.records import TraceRecord
from benchmarks.candidates import ours
from benchmarks.scenario import Candidate
from bot.tracing import MAX_BATCH, Exporter
from db.engine import Sessions, create_engine
from db.models import Base
from db.traces import SqlTraceStore, TraceRows

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
        rows = self.store.rows
        prepared = [await rows.prepare(trace) for trace in self.ended]
        async with self.store.sessions.begin() as session:
            for trace in prepared:
                await rows.save(session, trace, self.store.now())
        self.ended.clear()

    async def flush(self) -> None:
        """Send all that waits."""
        await self.commit()
        await self.exporter.send_due()


def make(base_url: str) -> Candidate:
    """Make `ours`, with traces and scores that go to `base_url`."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "traces.sqlite3"
    tables = create_sync_engine(f"sqlite:///{path}")
    Base.metadata.create_all(tables)
    tables.dispose()
    rows = TraceRows(is_exported=True)
    sessions = Sessions(create_engine(f"sqlite+aiosqlite:///{path}"))
    store = SqlTraceStore(sessions, rows=rows)
    api = LangfuseApi(Project(KEYS, base_url), seconds=30)
    traces = Traces(Exporter(lambda: api, sessions), folder, store)
    made = ours.make(base_url, traces.keep)
    return Candidate(made.answer, traces.flush)
