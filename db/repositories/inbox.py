"""The inbox and the outbox: updates that wait for a turn, and messages that wait to be sent.

Only the process that last began a turn may commit or end it: `epoch` counts how often it was begun.
Every method commits before it returns.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, cast

from sqlalchemy import ColumnElement, Select, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.tracing.records import TraceRecord
from db.engine import count_rows
from db.models import OutboxRow, TurnRow, UpdateRow, insert, values_of
from db.records import Backlog, EndedTurn, Payload
from db.repositories.privacy import DONE, NO_PERSONAL_DATA
from db.repositories.traces import TraceStoringRepository
from db.repositories.turns import save_turn

WAITING: Final = "waiting"
TAKEN: Final = "taken"
ANSWERED: Final = "answered"
SET_ASIDE: Final = "set_aside"
RETRY: Final = "retry"

MAX_PER_LANE: Final = 100
TRACE_DELAY: Final = timedelta(minutes=1)
"""A trace is sent after this time, even if the delivery of its messages is not recorded."""
IS_TO_RUN: Final = UpdateRow.state.in_([WAITING, ANSWERED, RETRY])
IS_FREE: Final = (UpdateRow.state == WAITING) & UpdateRow.turn_id.is_(None)
IS_UNSENT: Final = OutboxRow.message_id.is_(None) & OutboxRow.error.is_(None)


class TurnTaken(BaseException):
    """Another process has begun the turn, so this one may not store or send any more of it.

    It is a BaseException, like CancelledError, so that `except Exception` does not catch it: only
    the lanes do.
    """


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """A turn that has begun, with its updates.

    `outbox` holds the unsent messages of its answer, None if there is no answer yet.
    """

    update: UpdateRow
    payloads: Sequence[Payload]
    outbox: Sequence[OutboxRow] | None = None


class Inbox(TraceStoringRepository):
    """The accepted updates of a database, their turns, and the messages of these."""

    async def accept(self, updates: Sequence[UpdateRow]) -> list[UpdateRow]:
        """Store updates; return those whose lanes have to be scheduled.

        An edit of a message that is still waiting replaces that message and is not returned. An
        update that was stored before is not stored again, but returned: if the confirmation of its
        commit was lost, its lane was never scheduled.
        """
        queued = list[UpdateRow]()
        if not updates:
            return queued
        async with self._sessions.begin() as session:
            store = insert(session, UpdateRow).on_conflict_do_nothing()
            for row in updates:
                row.received_at, row.state = self._now(), WAITING
                if not await _replace_waiting(session, row):
                    await session.execute(store, values_of(row))
                    queued.append(row)
        return queued

    async def get(self, update_id: int) -> UpdateRow | None:
        """Return an update; None if it was never accepted or was deleted."""
        async with self._sessions() as session:
            return await session.get(UpdateRow, update_id)

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
        self, update_id: int, others: Collection[int] = (), *, is_counted: bool = True
    ) -> BegunTurn | None:
        """Begin the turn of an update together with `others`; return None if the turn has ended.

        Increments the update's tries if `is_counted` is true.
        """
        async with self._sessions.begin() as session:
            row = await session.get(UpdateRow, update_id, with_for_update=True)
            if row is None or row.state not in (WAITING, ANSWERED, RETRY):
                return None
            if is_counted:
                row.tries += 1
            return await self._begin_row(session, row, others)

    async def restart(self, row: UpdateRow, others: Collection[int]) -> BegunTurn:
        """Begin a running turn again together with `others`, as its first try.

        Raises:
            TurnTaken: another process has begun the turn.
        """
        async with self._sessions.begin() as session:
            current = await session.get(UpdateRow, row.update_id, with_for_update=True)
            if current is None or current.epoch != row.epoch:
                raise TurnTaken
            current.tries = 1
            return await self._begin_row(session, current, others)

    async def _begin_row(
        self, session: AsyncSession, row: UpdateRow, others: Collection[int]
    ) -> BegunTurn:
        """Begin a turn with those of `others` that no turn has taken."""
        row.turn_id, row.epoch = row.update_id, row.epoch + 1
        row.state = WAITING if row.state == RETRY else row.state
        if others:
            free = update(UpdateRow).where(UpdateRow.update_id.in_(others), IS_FREE)
            await session.execute(free.values(turn_id=row.update_id, state=TAKEN))
        await session.flush()
        query = select(UpdateRow.payload).where(UpdateRow.turn_id == row.update_id)
        payloads = (await session.scalars(query.order_by(UpdateRow.update_id))).all()
        outbox = None
        if row.state == ANSWERED:
            unsent = select(OutboxRow).where(OutboxRow.update_id == row.update_id, IS_UNSENT)
            outbox = (await session.scalars(unsent.order_by(OutboxRow.id))).all()
        return BegunTurn(row, payloads, outbox)

    async def save_placeholder(self, row: UpdateRow, message_id: int) -> None:
        """Store the id of the group message that shows a turn's progress and becomes its answer."""
        owned = update(UpdateRow).where(_is_owned(row))
        async with self._sessions.begin() as session:
            await session.execute(owned.values(placeholder_id=message_id))

    async def check_ownership(self, row: UpdateRow) -> None:
        """Check that no other process has begun a turn.

        Raises:
            TurnTaken: another process has begun it.
        """
        async with self._sessions() as session:
            if await session.scalar(select(func.count()).where(_is_owned(row))) == 0:
                raise TurnTaken

    async def commit(
        self,
        row: UpdateRow,
        ended: Sequence[EndedTurn] = (),
        messages: Sequence[OutboxRow] = (),
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
            for message in messages:
                # After a failed commit, another message may have its id by now.
                message.id = cast("int", None)
                message.update_id = row.update_id
            session.add_all(messages)

    async def record_sent(self, message: OutboxRow) -> None:
        """Store the id or the error of a message, and delete its content.

        If the message has no row (it was sent from a terminal), insert one.
        """
        if message.id is None:
            row = OutboxRow(
                chat_id=message.chat_id,
                asks_about=message.asks_about,
                message_id=message.message_id,
                error=message.error,
            )
            async with self._sessions.begin() as session:
                session.add(row)
            return
        sent = (
            update(OutboxRow)
            .where(OutboxRow.id == message.id)
            .values(chat_id=message.chat_id, message_id=message.message_id, error=message.error)
            .values(html="", buttons=[], file=None, placeholder="")
        )
        async with self._sessions.begin() as session:
            await session.execute(sent)

    async def save_traces(self, traces: Sequence[TraceRecord]) -> None:
        """Store the complete traces of a turn that was set aside."""
        async with self._sessions.begin() as session:
            await self._trace_rows.save(session, traces, self._now())

    async def end(self, row: UpdateRow, traces: Sequence[TraceRecord] = ()) -> None:
        """End a turn whose messages are sent: empty its updates, and store its complete `traces`.

        Raises:
            TurnTaken: another process has begun it.
        """
        update_id = row.update_id
        ended: dict[str, object] = {"state": DONE, "payload": {}, "error": None}
        owned = update(UpdateRow).where(_is_owned(row), UpdateRow.state == ANSWERED)
        merged = update(UpdateRow).where(UpdateRow.turn_id == update_id)
        async with self._sessions.begin() as session:
            if not await count_rows(session, owned.values(ended)):
                raise TurnTaken
            await session.execute(merged.values(ended))
            await session.execute(
                delete(OutboxRow).where(
                    OutboxRow.update_id == update_id,
                    OutboxRow.turn_id.is_(None),
                    OutboxRow.asks_about.is_(None),
                )
            )
            if not traces and await session.get(TurnRow, update_id) is None:
                # No turn was stored for the update, a command for example: keep only its id.
                await session.execute(merged.values(NO_PERSONAL_DATA))
            await self._trace_rows.save(session, traces, self._now())

    async def list_set_aside(self) -> Sequence[UpdateRow]:
        """Return the updates that were set aside, the oldest first."""
        query = select(UpdateRow).where(UpdateRow.state == SET_ASIDE)
        return await self._all(query.order_by(UpdateRow.update_id))

    async def ask_retry(self, update_id: int) -> bool:
        """Schedule a retry of an update that was set aside; return False if there is none."""
        is_set_aside = (UpdateRow.update_id == update_id) & (UpdateRow.state == SET_ASIDE)
        retried = update(UpdateRow).where(is_set_aside).values(state=RETRY, tries=0)
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
        async with self._sessions.begin() as session:
            return await count_rows(session, delete(UpdateRow).where(~IS_TO_RUN, old))

    async def _all(self, query: Select[UpdateRow]) -> Sequence[UpdateRow]:
        async with self._sessions() as session:
            return (await session.scalars(query)).all()


def _is_owned(row: UpdateRow) -> ColumnElement[bool]:
    """Return the condition that no process has begun the turn since `row` was read."""
    return (UpdateRow.update_id == row.update_id) & (UpdateRow.epoch == row.epoch)


async def _replace_waiting(session: AsyncSession, edit: UpdateRow) -> bool:
    """Replace a waiting message by its edited form; return False if a turn has taken it."""
    edited_message = edit.payload.get("edited_message")
    if not edited_message or edit.message_id is None:
        return False
    is_message = (UpdateRow.chat_id == edit.chat_id) & (UpdateRow.message_id == edit.message_id)
    original_id = await session.scalar(select(func.min(UpdateRow.update_id)).where(is_message))
    if original_id is None:
        return False
    # A single statement: if a turn takes the message meanwhile, no row is changed.
    original = update(UpdateRow).where(UpdateRow.update_id == original_id, IS_FREE)
    payload = {"update_id": original_id, "message": edited_message}
    return bool(await count_rows(session, original.values(payload=payload)))
