"""The inbox and the outbox: updates that wait for a turn, and messages that wait to be sent.

Only the process that last began a turn may commit or end it: `epoch` counts how often it was begun.
Every method commits before it returns.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, delete, func, select, update

from agent.tracing.records import TraceRecord
from agent.turn import Change
from db.engine import count_rows
from db.models import OutboxRow, TurnRow, UpdateRow, insert, values_of
from db.repositories.people import change
from db.repositories.privacy import DONE, NO_PERSONAL_DATA
from db.repositories.traces import TraceStoringRepository
from db.repositories.turns import EndedTurn, save_turn

Payload = Mapping[str, Any]
"""An update as Telegram delivered it."""

WAITING: Final = "waiting"
TAKEN: Final = "taken"
ANSWERED: Final = "answered"
SET_ASIDE: Final = "set_aside"

MAX_PER_LANE: Final = 100
TRACE_DELAY: Final = timedelta(minutes=1)
"""A trace is stored in `commit`, so that a kill during the delivery does not lose it, and again in
`end`, with the delivery. It is sent after this time, even if there was no end."""
IS_TO_RUN: Final = UpdateRow.state.in_([WAITING, ANSWERED])
IS_FREE: Final = (UpdateRow.state == WAITING) & UpdateRow.turn_id.is_(None)
IS_UNSENT: Final = OutboxRow.message_id.is_(None) & OutboxRow.error.is_(None)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of updates that are accepted and not done, and the age of the oldest."""

    waiting: int = 0
    oldest_seconds: float = 0.0


class TurnTaken(BaseException):
    """Another process has begun the turn, so this one may not store or send any more of it.

    It is a BaseException, like CancelledError, so that `except Exception` does not catch it: only
    the lanes do.
    """


class Inbox(TraceStoringRepository):
    """The accepted updates of a database, their turns, and the messages of these."""

    async def accept(self, updates: Sequence[UpdateRow]) -> None:
        """Store updates, except those that were stored before."""
        for row in updates:
            row.received_at, row.state = self._now(), WAITING
        async with self._sessions.begin() as session:
            store = insert(session, UpdateRow).on_conflict_do_nothing()
            await session.execute(store, [values_of(row) for row in updates])

    async def list_waiting(self, lane: str) -> Sequence[UpdateRow]:
        """Return the updates of a lane whose turns have to run, the next one first."""
        query = select(UpdateRow).where(UpdateRow.lane == lane, IS_TO_RUN)
        return await self._all(query.order_by(UpdateRow.update_id).limit(MAX_PER_LANE))

    async def lanes(self) -> list[str]:
        """Return the lanes with updates to handle or messages to send, the oldest update first."""
        oldest = func.min(UpdateRow.update_id)
        query = select(UpdateRow.lane).where(IS_TO_RUN).group_by(UpdateRow.lane).order_by(oldest)
        async with self._sessions() as session:
            return [lane for lane in await session.scalars(query) if lane is not None]

    async def begin(
        self, row: UpdateRow, others: Collection[int] = (), *, tries: int
    ) -> tuple[Sequence[Payload], Sequence[OutboxRow] | None]:
        """Begin the turn of an update, together with those of `others` that no turn has taken.

        Return its updates, and the unsent messages of its answer: None if there is no answer yet.

        Raises:
            TurnTaken: another process has begun it since `row` was read.
        """
        begun = update(UpdateRow).where(_is_owned(row), IS_TO_RUN)
        free = update(UpdateRow).where(UpdateRow.update_id.in_(others), IS_FREE)
        payloads = select(UpdateRow.payload).where(UpdateRow.turn_id == row.update_id)
        unsent = select(OutboxRow).where(OutboxRow.update_id == row.update_id, IS_UNSENT)
        changes = {"turn_id": row.update_id, "epoch": row.epoch + 1, "tries": tries}
        outbox = None
        async with self._sessions.begin() as session:
            if not await count_rows(session, begun.values(changes)):
                raise TurnTaken
            if others:
                await session.execute(free.values(turn_id=row.update_id, state=TAKEN))
            found = (await session.scalars(payloads.order_by(UpdateRow.update_id))).all()
            if row.state == ANSWERED:
                outbox = (await session.scalars(unsent.order_by(OutboxRow.id))).all()
        for name, value in changes.items():
            setattr(row, name, value)
        return found, outbox

    async def save_placeholder(self, row: UpdateRow, message_id: int) -> None:
        """Store the id of the group message that shows a turn's progress and becomes its answer."""
        await self._write(update(UpdateRow).where(_is_owned(row)).values(placeholder_id=message_id))

    async def commit(
        self,
        row: UpdateRow,
        ended: Sequence[EndedTurn] = (),
        messages: Sequence[OutboxRow] = (),
        changes: Sequence[Change] = (),
        *,
        error: str | None = None,
    ) -> None:
        """Store the answer of a turn, its changes of data, and its messages to send.

        With an `error` the update is set aside until an operator retries it. A commit that is
        retried because its confirmation was lost changes nothing.

        Raises:
            TurnTaken: another process has begun the turn.
        """
        state = ANSWERED if error is None else SET_ASIDE
        is_open = UpdateRow.state.in_([WAITING] if error is None else [WAITING, ANSWERED])
        owned = update(UpdateRow).where(_is_owned(row), is_open)
        async with self._sessions.begin() as session:
            if not await count_rows(session, owned.values(state=state, error=error)):
                if await session.scalar(select(UpdateRow.state).where(_is_owned(row))) == state:
                    return
                raise TurnTaken
            for turn in ended:
                await save_turn(session, turn, self._now(), self._trace_rows, TRACE_DELAY)
            await change(session, changes, self._now())
            for message in messages:
                # After a failed commit, another message may have its id by now.
                message.id = cast("int", None)
                message.update_id = row.update_id
            session.add_all(messages)

    async def record_sent(self, message: OutboxRow) -> None:
        """Store the id or the error of a message, and delete its content.

        Raises:
            TurnTaken: another process has taken over the turn of the message and recorded it.
        """
        result = {"message_id": message.message_id, "error": message.error}
        sent = update(OutboxRow).where(OutboxRow.id == message.id, IS_UNSENT)
        sent = sent.values(chat_id=message.chat_id, **result)
        async with self._sessions.begin() as session:
            emptied = sent.values(html="", buttons=[], file=None)
            if not await count_rows(session, emptied) and message.update_id is not None:
                raise TurnTaken

    async def end(self, row: UpdateRow, traces: Sequence[TraceRecord] = ()) -> None:
        """End a turn whose messages are sent: empty its updates, and store its complete `traces`.

        Raises:
            TurnTaken: another process has begun it.
        """
        update_id = row.update_id
        owned = update(UpdateRow).where(_is_owned(row), UpdateRow.state == ANSWERED)
        unneeded = delete(OutboxRow).where(
            OutboxRow.update_id == update_id, OutboxRow.turn_id.is_(None)
        )
        ended: dict[str, object] = {"payload": {}, "error": None}
        async with self._sessions.begin() as session:
            if not await count_rows(session, owned.values(state=DONE)):
                raise TurnTaken
            if not traces and await session.get(TurnRow, update_id) is None:
                # No turn was stored for the update, a command for example: keep only its id.
                ended = NO_PERSONAL_DATA
            merged = update(UpdateRow).where(UpdateRow.turn_id == update_id)
            await session.execute(merged.values(state=DONE, **ended))
            await session.execute(unneeded)
            await self._trace_rows.save(session, traces, self._now())

    async def list_set_aside(self) -> Sequence[UpdateRow]:
        """Return the updates that were set aside, the oldest first."""
        query = select(UpdateRow).where(UpdateRow.state == SET_ASIDE)
        return await self._all(query.order_by(UpdateRow.update_id))

    async def ask_retry(self, update_id: int) -> bool:
        """Schedule a retry of an update that was set aside; return False if there is none."""
        is_set_aside = (UpdateRow.update_id == update_id) & (UpdateRow.state == SET_ASIDE)
        retried = update(UpdateRow).where(is_set_aside).values(state=WAITING, tries=0)
        async with self._sessions.begin() as session:
            await session.execute(delete(OutboxRow).where(OutboxRow.update_id == update_id))
            return bool(await count_rows(session, retried))

    async def find_turn(self, chat_id: int, message_id: int) -> int | None:
        """Return the id of the turn that answers a message."""
        is_message = (UpdateRow.chat_id == chat_id) & (UpdateRow.message_id == message_id)
        query = select(UpdateRow.turn_id).where(is_message).order_by(UpdateRow.update_id).limit(1)
        async with self._sessions() as session:
            return await session.scalar(query)

    async def backlog(self) -> Backlog:
        """Return how many turns have not ended, and for how many seconds the oldest has waited."""
        query = select(func.count(), func.min(UpdateRow.received_at)).where(IS_TO_RUN)
        async with self._sessions() as session:
            count, oldest = (await session.execute(query)).one()
        age = (self._now() - oldest).total_seconds() if oldest else 0.0
        return Backlog(count, max(0.0, age))

    async def forget(self, older_than: timedelta) -> int:
        """Delete updates older than `older_than`, except waiting ones; return the count."""
        old = UpdateRow.received_at < self._now() - older_than
        return await self._write(delete(UpdateRow).where(~IS_TO_RUN, old))


def _is_owned(row: UpdateRow) -> ColumnElement[bool]:
    """Return the condition that no process has begun the turn since `row` was read."""
    return (UpdateRow.update_id == row.update_id) & (UpdateRow.epoch == row.epoch)
