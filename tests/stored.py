"""Write to a database as the commits of turns do: what tests lay down before a bot runs."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from agent.tracing.records import TraceRecord
from agent.turn import StoredMessage
from db.changes.base import StoredChange
from db.commit import Commit, Fence
from db.engine import Sessions
from db.models import TurnRow, utc_now
from db.repositories.commits import Commits
from db.traces import LOCAL_TRACE_ROWS, TraceRows


async def make(
    sessions: Sessions,
    *changes: StoredChange,
    rows: TraceRows = LOCAL_TRACE_ROWS,
    now: Callable[[], datetime] = utc_now,
) -> None:
    """Make changes in a commit of their own."""
    commit = Commit(fence=Fence(accepted_at=datetime.now(UTC)), changes=[*changes])
    await Commits(sessions, now, rows).save(commit)


async def store_turn(
    sessions: Sessions,
    record: TurnRow,
    messages: Sequence[StoredMessage] = (),
    trace: TraceRecord | None = None,
    rows: TraceRows = LOCAL_TRACE_ROWS,
    now: Callable[[], datetime] = utc_now,
) -> None:
    """Store a turn that has ended."""
    commit = Commit(
        fence=Fence(accepted_at=datetime.now(UTC), chat_id=record.chat_id),
        record=record,
        history=tuple(messages),
        trace=trace,
    )
    await Commits(sessions, now, rows).save(commit)
