"""What is kept of one person: shown, or deleted, in every table at once."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, delete, or_, select, update

from db.engine import SqlRepository
from db.models import (
    AnswerRow,
    Base,
    CareRow,
    ChatRow,
    FeedbackRow,
    MessageRow,
    PersonRow,
    TraceRow,
    TurnRow,
    UnderWayRow,
    UpdateRow,
    table_of,
)

Rows = Sequence[Mapping[str, object]]

NOBODY: Final = 0
"""The chat of an update whose person is forgotten; its number stays, or it could come again."""


class SqlPersonalData(SqlRepository):
    """All that is kept of a person on SQLite and Postgres alike, in private chats and in groups.

    In groups that is what they asked, what was answered to it, and what they think of the answer.
    `user` is their hash in traces.
    """

    async def export(self, user_id: int, user: str) -> dict[str, Rows]:
        """Return every row of theirs, by table; dates in ISO form, without what machines need."""

        def read(on: Connection) -> dict[str, Rows]:
            return {
                table_of(model).name: [
                    {name: _plain(value) for name, value in row._mapping.items()}
                    for row in on.execute(select(table_of(model)).where(theirs))
                ]
                for model, theirs in _theirs(user_id, user).items()
            }

        return await self._sessions.read(read)

    async def forget(self, user_id: int, user: str) -> dict[str, int]:
        """Delete every row of theirs; how many that were, by table.

        That somebody was allowed or blocked stays, or who is blocked could come back by it; of an
        update that is done its number alone.
        """

        def write(on: Connection) -> dict[str, int]:
            theirs, counts = _theirs(user_id, user), {}
            done = (UpdateRow.chat_id == user_id) & (UpdateRow.state == "done")
            counts["updates"] = on.execute(
                update(UpdateRow)
                .where(done)
                .values(chat_id=NOBODY, lane=None, message_id=None, payload={}, error=None)
            ).rowcount
            kept = PersonRow.access.is_not(None)
            on.execute(
                update(PersonRow)
                .where(theirs[PersonRow], kept)
                .values(
                    first_seen=None,
                    last_seen=None,
                    chat_id=None,
                    warned_on=None,
                    introduced_on=None,
                )
            )
            theirs[PersonRow] &= ~kept
            for model, where in theirs.items():
                name = table_of(model).name
                gone = on.execute(delete(model).where(where)).rowcount
                counts[name] = counts.get(name, 0) + gone
            return counts

        return await self._sessions.write(write)


def _theirs(user_id: int, user: str) -> dict[type[Base], ColumnElement[bool]]:
    """What of each table is a person's; those that others are found by come last."""
    turns = select(TurnRow.turn_id).where(
        or_(TurnRow.user_id == user_id, TurnRow.chat_id == user_id)
    )
    traces = select(TurnRow.trace_id).where(TurnRow.user_id == user_id)
    return {
        MessageRow: or_(MessageRow.chat_id == user_id, MessageRow.turn_id.in_(turns)),
        FeedbackRow: FeedbackRow.turn_id.in_(turns),
        AnswerRow: AnswerRow.turn_id.in_(turns),
        TraceRow: or_(TraceRow.user == user, TraceRow.trace_id.in_(traces)),
        UpdateRow: UpdateRow.chat_id == user_id,
        UnderWayRow: UnderWayRow.user_id == user_id,
        CareRow: CareRow.user_id == user_id,
        ChatRow: ChatRow.chat_id == user_id,
        PersonRow: PersonRow.user_id == user_id,
        TurnRow: TurnRow.turn_id.in_(turns),
    }


def _plain(value: object) -> Any:
    if isinstance(value, date | datetime):
        return value.isoformat()
    return f"{len(value)} bytes" if isinstance(value, bytes) else value
