"""The inbox of updates that wait for a turn, and the outbox of messages that wait to be sent.

Only the process that last began a turn may commit or end it; `epoch` counts its starts. The leader
process sends messages without an update: broadcasts and reminders. Every method commits.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, delete, distinct, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.text import strip_unstorable
from agent.tracing.records import TraceRecord
from agent.turn import Change
from db.engine import SqlRepository, count_changed
from db.models import BroadcastRow, OutboxRow, TurnRow, UpdateRow, insert_new
from db.repositories.people import DONE, NO_PERSONAL_DATA, apply_changes
from db.repositories.traces import TraceStoringRepository
from db.repositories.turns import EndedTurn, save_turn

Payload = Mapping[str, Any]
"""An update as Telegram delivered it."""

WAITING: Final = "waiting"
MERGED: Final = "merged"
COMMITTED: Final = "answered"  # the word in existing databases
SET_ASIDE: Final = "set_aside"
"""States of updates, with DONE. `COMMITTED`: the answer, or the apology, is stored."""

MAX_PER_LANE: Final = 100
TRACE_DELAY: Final = timedelta(minutes=1)
"""How long a trace that `commit` stores waits for `end`, which stores it again with the delivery.
After a crash between the two, the stored trace is exported without delivery details."""
IS_UNFINISHED: Final = UpdateRow.state.in_([WAITING, COMMITTED])
HAS_NO_TURN: Final = (UpdateRow.state == WAITING) & UpdateRow.turn_id.is_(None)
IS_UNSENT: Final = OutboxRow.message_id.is_(None) & OutboxRow.error.is_(None)
IS_SENDING: Final = BroadcastRow.state == "sending"


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of updates whose turns have not ended, and the age of the oldest one."""

    unfinished: int = 0
    oldest_seconds: float = 0.0


class TurnTaken(BaseException):
    """Another process has begun the turn, so this one must stop storing and sending.

    A BaseException, like CancelledError: `except Exception` must not catch it; only the lanes do.
    """


class Inbox(TraceStoringRepository):
    """The accepted updates, their turns, and the messages of these turns."""

    async def accept(self, updates: Sequence[UpdateRow]) -> None:
        """Store updates; skip those that are stored already."""
        for row in updates:
            row.received_at, row.state = self.now(), WAITING
        async with self.sessions.begin() as session:
            await insert_new(session, *updates)

    async def list_unfinished(self, lane: str) -> Sequence[UpdateRow]:
        """Return the updates of a lane whose turns have not ended, in order."""
        query = select(UpdateRow).where(UpdateRow.lane == lane, IS_UNFINISHED)
        return await self._values(query.order_by(UpdateRow.update_id).limit(MAX_PER_LANE))

    async def list_lanes(self) -> list[str]:
        """Return the lanes with unfinished updates, sorted by their oldest update."""
        oldest = func.min(UpdateRow.update_id)
        query = select(UpdateRow.lane).where(IS_UNFINISHED).group_by(UpdateRow.lane)
        return [lane for lane in await self._values(query.order_by(oldest)) if lane is not None]

    async def begin(
        self, row: UpdateRow, joining: Collection[int] = (), *, tries: int
    ) -> tuple[Sequence[Payload], Sequence[OutboxRow] | None]:
        """Begin the turn of an update, together with those of `joining` that have no turn yet.

        Return the payloads of all its updates, and the unsent messages of its answer. The messages
        are None if the turn has no stored answer yet. Also update `row` (turn id, epoch, tries).

        Raises:
            TurnTaken: another process has begun the turn since `row` was read.
        """
        new_values = {"turn_id": row.update_id, "epoch": row.epoch + 1, "tries": tries}
        outbox = None
        async with self.sessions.begin() as session:
            set_begun = update(UpdateRow).where(_is_unchanged(row), IS_UNFINISHED)
            if not await count_changed(session, set_begun.values(new_values)):
                raise TurnTaken
            if joining:
                set_merged = update(UpdateRow).where(UpdateRow.update_id.in_(joining), HAS_NO_TURN)
                await session.execute(set_merged.values(turn_id=row.update_id, state=MERGED))
            select_payloads = select(UpdateRow.payload).where(UpdateRow.turn_id == row.update_id)
            payloads = (await session.scalars(select_payloads.order_by(UpdateRow.update_id))).all()
            if row.state == COMMITTED:
                unsent = select(OutboxRow).where(OutboxRow.update_id == row.update_id, IS_UNSENT)
                outbox = (await session.scalars(unsent.order_by(OutboxRow.id))).all()
        # From now on the epoch of `row` proves that this process has begun the turn.
        for name, value in new_values.items():
            setattr(row, name, value)
        return payloads, outbox

    async def save_placeholder(self, row: UpdateRow, message_id: int) -> None:
        """Store the id of the group message that shows a turn's progress and becomes its answer."""
        unchanged = update(UpdateRow).where(_is_unchanged(row))
        await self._write(unchanged.values(placeholder_id=message_id))

    async def commit(
        self,
        row: UpdateRow,
        ended: Sequence[EndedTurn] = (),
        messages: Sequence[OutboxRow] = (),
        changes: Sequence[Change] = (),
        *,
        error: str | None = None,
    ) -> None:
        """Store the records of ended turns, the changes of user data, and the messages to send.

        With an `error` the turn has failed: `messages` are the apology and replace all unsent
        messages, and `end` sets the update aside. A repeated commit changes nothing, so callers may
        retry when the confirmation was lost.

        Raises:
            TurnTaken: another process has begun the turn.
        """
        is_open = UpdateRow.state == WAITING
        if error is not None:
            # A committed turn can fail too: its delivery may crash the process repeatedly.
            is_open |= (UpdateRow.state == COMMITTED) & UpdateRow.error.is_(None)
        set_committed = update(UpdateRow).where(_is_unchanged(row), is_open)
        delete_unsent = delete(OutboxRow).where(OutboxRow.update_id == row.update_id, IS_UNSENT)
        async with self.sessions.begin() as session:
            if await count_changed(session, set_committed.values(state=COMMITTED, error=error)):
                if error is not None:
                    await session.execute(delete_unsent)
                for turn in ended:
                    await save_turn(session, turn, self.now(), self.rows, TRACE_DELAY)
                await apply_changes(session, changes, self.now())
                for message in messages:
                    # Clear an id left by a failed commit: another message may have it by now.
                    message.id = cast("int", None)
                    message.update_id = row.update_id
                session.add_all(messages)
            else:  # an earlier try of this commit succeeded, or the turn was taken over
                stored = select(UpdateRow.state, UpdateRow.error).where(_is_unchanged(row))
                if (await session.execute(stored)).one_or_none() != (COMMITTED, error):
                    raise TurnTaken
        row.error = error

    async def record_delivery(self, message: OutboxRow) -> None:
        """Store the id or the error of a sent message, and delete its content or the whole row.

        Raises:
            TurnTaken: another process has taken over the turn and recorded the delivery.
        """
        is_unsent = (OutboxRow.id == message.id) & IS_UNSENT
        if message.update_id is None and message.broadcast_id is None:  # nothing refers to it
            await self._write(delete(OutboxRow).where(is_unsent))
            return
        values: dict[str, object] = {
            "chat_id": message.chat_id,  # changed if the group became a supergroup
            "message_id": message.message_id,
            "error": message.error,
            "html": "",
            "buttons": [],
            "file": None,
        }
        is_recorded = await self._write(update(OutboxRow).where(is_unsent).values(values))
        # Only the turn of an update can be taken over by another process.
        if not is_recorded and message.update_id is not None:
            raise TurnTaken

    async def end(self, row: UpdateRow, traces: Sequence[TraceRecord] = ()) -> None:
        """End a turn whose messages are sent, and store its `traces`, now with the delivery.

        Delete the content of its updates; after an error set the update aside instead.

        Raises:
            TurnTaken: another process has begun the turn.
        """
        is_committed = UpdateRow.state == COMMITTED
        state = DONE if row.error is None else SET_ASIDE
        end = update(UpdateRow).where(_is_unchanged(row), is_committed).values(state=state)
        async with self.sessions.begin() as session:
            if not await count_changed(session, end):
                raise TurnTaken
            if row.error is None:
                # Only a turn stored by `commit` has traces; without traces, this is looked up.
                await _delete_content(session, row.update_id, has_turn=bool(traces))
            await self.rows.save(session, traces, self.now())

    async def list_set_aside(self) -> Sequence[UpdateRow]:
        """Return the failed updates that were set aside, the oldest first."""
        query = select(UpdateRow).where(UpdateRow.state == SET_ASIDE)
        return await self._values(query.order_by(UpdateRow.update_id))

    async def schedule_retry(self, update_id: int) -> bool:
        """Schedule a retry of a set-aside update; return False if there is no such update."""
        is_set_aside = (UpdateRow.update_id == update_id) & (UpdateRow.state == SET_ASIDE)
        retry = update(UpdateRow).where(is_set_aside).values(state=WAITING, tries=0, error=None)
        async with self.sessions.begin() as session:
            if not await count_changed(session, retry):
                return False
            await session.execute(delete(OutboxRow).where(OutboxRow.update_id == update_id))
        return True

    async def find_turn(self, chat_id: int, message_id: int) -> int | None:
        """Return the id of the turn that answers a user's message; None if there is none."""
        is_message = (UpdateRow.chat_id == chat_id) & (UpdateRow.message_id == message_id)
        query = select(UpdateRow.turn_id).where(is_message).order_by(UpdateRow.update_id).limit(1)
        return await self._first_value(query)

    async def measure_backlog(self) -> Backlog:
        query = select(func.count(), func.min(UpdateRow.received_at)).where(IS_UNFINISHED)
        [(count, oldest)] = await self._rows(query)
        age = (self.now() - oldest).total_seconds() if oldest else 0.0
        return Backlog(count, max(0.0, age))

    async def forget(self, older_than: timedelta) -> int:
        """Delete updates older than `older_than` whose turns have ended; return their number."""
        old = UpdateRow.received_at < self.now() - older_than
        return await self._write(delete(UpdateRow).where(~IS_UNFINISHED, old))


class Broadcasts(SqlRepository):
    """Messages that belong to no turn: admins' broadcasts to all users, and reminders."""

    async def save_draft(self, text: str, by: int) -> int:
        """Store a draft for confirmation, or reuse an identical draft; return its id."""
        draft = {"text": strip_unstorable(text), "created_by": by, "state": "draft"}
        async with self.sessions.begin() as session:
            stored = await session.scalar(select(BroadcastRow).filter_by(**draft).limit(1))
            row = stored or BroadcastRow(**draft)
            session.add(row)
        return row.id

    async def get(self, broadcast_id: int) -> BroadcastRow | None:
        return await self._first_value(select(BroadcastRow).where(BroadcastRow.id == broadcast_id))

    async def begin(self, broadcast_id: int, messages: Sequence[OutboxRow]) -> bool:
        """Queue the messages of a confirmed draft; return False if that was done before."""
        is_draft = (BroadcastRow.id == broadcast_id) & (BroadcastRow.state == "draft")
        async with self.sessions.begin() as session:
            begin = update(BroadcastRow).where(is_draft).values(state="sending")
            if not await count_changed(session, begin):
                return False
            for message in messages:
                message.broadcast_id = broadcast_id
            session.add_all(messages)
        return True

    async def list_unsent(self, limit: int) -> Sequence[OutboxRow]:
        """Return the oldest unsent messages that belong to no turn."""
        has_no_turn = OutboxRow.update_id.is_(None) & OutboxRow.turn_id.is_(None)
        query = select(OutboxRow).where(has_no_turn, IS_UNSENT)
        return await self._values(query.order_by(OutboxRow.id).limit(limit))

    async def list_delivered(self) -> Sequence[tuple[BroadcastRow, int, int]]:
        """Return the completed broadcasts, each with the numbers of chats reached and missed."""
        chats = distinct(OutboxRow.chat_id)
        failed = func.count(chats).filter(OutboxRow.error.is_not(None))
        completed = (
            select(BroadcastRow, func.count(chats) - failed, failed)
            .join(OutboxRow, OutboxRow.broadcast_id == BroadcastRow.id, isouter=True)
            .where(IS_SENDING)
            .group_by(BroadcastRow.id)
            .having(func.count(OutboxRow.id).filter(IS_UNSENT) == 0)
        )
        rows = await self._rows(completed)
        return [(broadcast, reached, missed) for broadcast, reached, missed in rows]

    async def finish(self, broadcast_id: int, notice: Sequence[OutboxRow]) -> None:
        """Delete a broadcast (cascades to its messages), queue a notice; do nothing if repeated."""
        is_unfinished = (BroadcastRow.id == broadcast_id) & IS_SENDING
        async with self.sessions.begin() as session:
            if await count_changed(session, delete(BroadcastRow).where(is_unfinished)):
                session.add_all(notice)


async def _delete_content(session: AsyncSession, update_id: int, *, has_turn: bool) -> None:
    """Set a turn's updates DONE without payloads; if no turn is stored, clear all except ids."""
    values: dict[str, object] = {"payload": {}, "error": None}
    if not has_turn and await session.get(TurnRow, update_id) is None:  # such as a command
        values = NO_PERSONAL_DATA
    updates = update(UpdateRow).where(UpdateRow.turn_id == update_id)
    await session.execute(updates.values(state=DONE, **values))
    # Messages without a stored turn, such as answers to commands, are no longer needed.
    is_unneeded = (OutboxRow.update_id == update_id) & OutboxRow.turn_id.is_(None)
    await session.execute(delete(OutboxRow).where(is_unneeded))


def _is_unchanged(row: UpdateRow) -> ColumnElement[bool]:
    """Return the condition that no process has begun the turn since `row` was read."""
    return (UpdateRow.update_id == row.update_id) & (UpdateRow.epoch == row.epoch)
