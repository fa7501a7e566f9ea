"""The inbox and the outbox: updates that wait for a turn, and messages that wait to be sent.

Only the process that began a turn last may commit and end it: every begin raises the turn's epoch.
Every method commits before it returns.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy import ColumnElement, Select, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.tracing.records import TraceRecord
from db.engine import count_rows
from db.models import OutboxRow, TurnRow, UpdateRow, insert, values_of
from db.records import Backlog, EndedTurn, Payload
from db.repositories.privacy import DONE, NOBODY
from db.repositories.traces import KeepingTraces
from db.repositories.turns import save_turn

WAITING: Final = "waiting"
TAKEN: Final = "taken"
ANSWERED: Final = "answered"
SET_ASIDE: Final = "set_aside"
RETRY: Final = "retry"

MAX_PER_LANE: Final = 100
DELIVERY_TIME: Final = timedelta(minutes=1)
"""A trace is sent after this time, even if the delivery of its messages is not recorded."""
IS_TO_RUN: Final = UpdateRow.state.in_([WAITING, ANSWERED, RETRY])
IS_FREE: Final = (UpdateRow.state == WAITING) & UpdateRow.turn_id.is_(None)
IS_UNSENT: Final = OutboxRow.message_id.is_(None) & OutboxRow.error.is_(None)


class TurnTaken(BaseException):
    """Another process has begun the turn, so this one may not store or send any more of it.

    It is a BaseException, like a cancellation: only the lanes handle it.
    """


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """A turn that has begun, with its updates.

    `outbox` holds the unsent messages of its answer, None if there is no answer yet.
    """

    update: UpdateRow
    payloads: Sequence[Payload]
    outbox: Sequence[OutboxRow] | None = None


class Inbox(KeepingTraces):
    """The accepted updates of a database, their turns, and the messages of these."""

    async def accept(self, updates: Sequence[UpdateRow]) -> list[UpdateRow]:
        """Store updates, and return those that were added to the queue.

        An update that was stored before is not stored again. The edited form of a message that
        still waits replaces it.
        """
        waiting = list[UpdateRow]()
        if not updates:
            return waiting
        async with self._sessions.begin() as session:
            store = insert(session, UpdateRow).on_conflict_do_nothing()
            for row in updates:
                row.received_at, row.state = self._now(), WAITING
                if not await _replace_waiting(session, row):
                    await session.execute(store, values_of(row))
                    waiting.append(row)
        return waiting

    async def get(self, update_id: int) -> UpdateRow | None:
        """Return an update, None if it was never accepted or is forgotten."""
        async with self._sessions() as session:
            return await session.get(UpdateRow, update_id)

    async def waiting(self, lane: str) -> Sequence[UpdateRow]:
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
        self,
        update_id: int,
        others: Collection[int] = (),
        *,
        epoch: int | None = None,
        counts: bool = True,
    ) -> BegunTurn | None:
        """Begin the turn of an update together with `others`; return None if the turn is over.

        The try is counted if `counts` is true. With an `epoch`, a running turn begins again, and
        this counts as its first try.

        Raises:
            TurnTaken: another process has begun the turn since that epoch.
        """
        async with self._sessions.begin() as session:
            row = await session.get(UpdateRow, update_id, with_for_update=True)
            if epoch is not None and (row is None or row.epoch != epoch):
                raise TurnTaken
            if row is None or row.state not in (WAITING, ANSWERED, RETRY):
                return None
            row.turn_id, row.epoch = update_id, row.epoch + 1
            row.tries = row.tries + counts if epoch is None else 1
            row.state = WAITING if row.state == RETRY else row.state
            return await self._claim(session, row, others)

    async def _claim(
        self, session: AsyncSession, row: UpdateRow, others: Collection[int]
    ) -> BegunTurn:
        """Add the `others` that no turn has taken to a turn; return its updates and messages."""
        if others:
            taken = update(UpdateRow).where(UpdateRow.update_id.in_(others), IS_FREE)
            await session.execute(taken.values(turn_id=row.update_id, state=TAKEN))
        await session.flush()
        of_turn = select(UpdateRow.payload).where(UpdateRow.turn_id == row.update_id)
        payloads = (await session.scalars(of_turn.order_by(UpdateRow.update_id))).all()
        outbox = None
        if row.state == ANSWERED:
            unsent = select(OutboxRow).where(OutboxRow.update_id == row.update_id, IS_UNSENT)
            outbox = (await session.scalars(unsent.order_by(OutboxRow.id))).all()
        return BegunTurn(row, payloads, outbox)

    async def keep_placeholder(self, begun: UpdateRow, message_id: int) -> None:
        """Store the id of the group message that shows the progress of a turn."""
        mine = update(UpdateRow).where(_is_owned(begun))
        async with self._sessions.begin() as session:
            await session.execute(mine.values(placeholder_id=message_id))

    async def check_ownership(self, begun: UpdateRow) -> None:
        """Check that no other process has begun a turn.

        Raises:
            TurnTaken: another process has begun it.
        """
        async with self._sessions() as session:
            if await session.scalar(select(func.count()).where(_is_owned(begun))) == 0:
                raise TurnTaken

    async def commit(
        self,
        begun: UpdateRow,
        ended: Sequence[EndedTurn] = (),
        messages: Sequence[OutboxRow] = (),
        *,
        error: str | None = None,
    ) -> None:
        """Store the answer of a turn, its changes of data, and its messages to send.

        With an `error` the update is set aside until an operator retries it.

        Raises:
            TurnTaken: another process has begun the turn, or it was committed before.
        """
        state = ANSWERED if error is None else SET_ASIDE
        answered = update(UpdateRow).where(_is_owned(begun))
        if error is None:
            # A commit whose confirmation was lost is retried: it must not apply twice.
            answered = answered.where(UpdateRow.state == WAITING)
        async with self._sessions.begin() as session:
            if not await count_rows(session, answered.values(state=state, error=error)):
                raise TurnTaken
            for turn in ended:
                await save_turn(session, turn, self._now(), self._rows, DELIVERY_TIME)
            for message in messages:
                message.update_id = begun.update_id
            session.add_all(messages)

    async def sent(self, message: OutboxRow) -> None:
        """Store the id or the error of a message, and delete its content.

        A message that is not in the outbox (in a terminal) is added to it.
        """
        if message.id is None:
            asked = OutboxRow(
                chat_id=message.chat_id,
                asks_about=message.asks_about,
                message_id=message.message_id,
                error=message.error,
            )
            async with self._sessions.begin() as session:
                session.add(asked)
            return
        row = update(OutboxRow).where(OutboxRow.id == message.id)
        gone = row.values(html="", buttons=[], file=None, placeholder="")
        sent = gone.values(
            chat_id=message.chat_id, message_id=message.message_id, error=message.error
        )
        async with self._sessions.begin() as session:
            await session.execute(sent)

    async def save_traces(self, traces: Sequence[TraceRecord]) -> None:
        """Store the complete traces of a turn that was set aside."""
        async with self._sessions.begin() as session:
            await self._rows.save(session, traces, self._now())

    async def done(self, begun: UpdateRow, traces: Sequence[TraceRecord] = ()) -> None:
        """End a turn whose messages are sent: empty its updates, and store its complete `traces`.

        If no turn answered the update, for example a command, only its id is kept.

        Raises:
            TurnTaken: another process has begun it.
        """
        async with self._sessions.begin() as session:
            update_id = begun.update_id
            over = update(UpdateRow).where(_is_owned(begun), UpdateRow.state == ANSWERED)
            if not await count_rows(session, over.values(state=DONE, payload={}, error=None)):
                raise TurnTaken
            taken = update(UpdateRow).where(UpdateRow.turn_id == update_id)
            await session.execute(taken.values(state=DONE, payload={}, error=None))
            of_update = OutboxRow.update_id == update_id
            no_answer = OutboxRow.turn_id.is_(None) & OutboxRow.asks_about.is_(None)
            await session.execute(delete(OutboxRow).where(of_update, no_answer))
            if not traces and await session.get(TurnRow, update_id) is None:
                await session.execute(taken.values(NOBODY))
            await self._rows.save(session, traces, self._now())

    async def set_aside_list(self) -> Sequence[UpdateRow]:
        """Return the updates that were set aside, the oldest first."""
        query = select(UpdateRow).where(UpdateRow.state == SET_ASIDE)
        return await self._all(query.order_by(UpdateRow.update_id))

    async def ask_retry(self, update_id: int) -> bool:
        """Schedule a retry of an update that was set aside; return False if there is none."""
        aside = (UpdateRow.update_id == update_id) & (UpdateRow.state == SET_ASIDE)
        again = update(UpdateRow).where(aside).values(state=RETRY, tries=0)
        async with self._sessions.begin() as session:
            await session.execute(delete(OutboxRow).where(OutboxRow.update_id == update_id))
            return bool(await count_rows(session, again))

    async def turn_of(self, chat_id: int, message_id: int) -> int | None:
        """Return the id of the turn that answers a message."""
        of_message = (UpdateRow.chat_id == chat_id) & (UpdateRow.message_id == message_id)
        first = select(UpdateRow.turn_id).where(of_message).order_by(UpdateRow.update_id).limit(1)
        async with self._sessions() as session:
            return await session.scalar(first)

    async def backlog(self) -> Backlog:
        """Return the number of turns that are not over, and the seconds that the oldest waits."""
        query = select(func.count(), func.min(UpdateRow.received_at)).where(IS_TO_RUN)
        async with self._sessions() as session:
            count, oldest = (await session.execute(query)).one()
        age = (self._now() - oldest).total_seconds() if oldest else 0.0
        return Backlog(count, max(0.0, age))

    async def forget(self, older_than: timedelta) -> int:
        """Delete updates that are older, except waiting ones; return how many."""
        old = UpdateRow.received_at < self._now() - older_than
        async with self._sessions.begin() as session:
            return await count_rows(session, delete(UpdateRow).where(~IS_TO_RUN, old))

    async def _all(self, query: Select[UpdateRow]) -> Sequence[UpdateRow]:
        async with self._sessions() as session:
            return (await session.scalars(query)).all()


def _is_owned(begun: UpdateRow) -> ColumnElement[bool]:
    """Return the condition that no other process has begun the turn since."""
    return (UpdateRow.update_id == begun.update_id) & (UpdateRow.epoch == begun.epoch)


async def _replace_waiting(session: AsyncSession, edit: UpdateRow) -> bool:
    """Replace a waiting message by its edited form; return False if a turn has taken it."""
    form = edit.payload.get("edited_message")
    if not form or edit.message_id is None:
        return False
    of_message = (UpdateRow.chat_id == edit.chat_id, UpdateRow.message_id == edit.message_id)
    known = await session.scalar(select(func.min(UpdateRow.update_id)).where(*of_message))
    # A single statement: if a turn takes the message meanwhile, its row count tells us so.
    waits = update(UpdateRow).where(UpdateRow.update_id == known, IS_FREE)
    values = waits.values(payload={"update_id": known, "message": form})
    return known is not None and bool(await count_rows(session, values))
