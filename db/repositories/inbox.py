"""The inbox and the outbox: updates that wait for a turn, and messages that wait to be sent.

One process at a time begins, commits and ends a turn: the one that began it last, as its epoch
tells. Every method commits before it returns.
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

MOST_IN_A_LANE: Final = 100
SENDING: Final = timedelta(minutes=1)
"""How long a trace waits for the delivery of its messages before it is sent."""
IS_TO_RUN: Final = UpdateRow.state.in_([WAITING, ANSWERED, RETRY])
IS_FREE: Final = (UpdateRow.state == WAITING) & UpdateRow.turn_id.is_(None)
IS_UNSENT: Final = OutboxRow.message_id.is_(None) & OutboxRow.error.is_(None)


class TurnTaken(BaseException):
    """Another process has begun the turn, so this one may store and send no more of it.

    No `Exception`, as a cancellation is none: only what runs turns handles it.
    """


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """A turn as it begins: the updates that it consists of.

    `outbox` are the messages of its answer that are still to be sent; None if there is no answer.
    """

    update: UpdateRow
    payloads: Sequence[Payload]
    outbox: Sequence[OutboxRow] | None = None


class Inbox(KeepingTraces):
    """The accepted updates of a database, their turns, and the messages of these."""

    async def accept(self, updates: Sequence[UpdateRow]) -> list[UpdateRow]:
        """Store updates, each once however often it is delivered; return those that wait.

        The edited form of a message that still waits takes its place.
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
        """Return the updates of a lane whose turns are to run, the next first."""
        query = select(UpdateRow).where(UpdateRow.lane == lane, IS_TO_RUN)
        return await self._all(query.order_by(UpdateRow.update_id).limit(MOST_IN_A_LANE))

    async def lanes(self) -> list[str]:
        """Return the lanes in which something is to be done, that of the oldest update first."""
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
        """Begin the turn of an update, which takes others along; None if it is over.

        It counts as a try if it `counts`. With an `epoch` a turn that runs begins again, as its
        first try.

        Raises:
            TurnTaken: another process has begun it since that epoch.
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
            return await self._begun(session, row, others)

    async def _begun(
        self, session: AsyncSession, row: UpdateRow, others: Collection[int]
    ) -> BegunTurn:
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
        """Store the group message in which the answer of a turn forms."""
        mine = update(UpdateRow).where(_mine(begun))
        async with self._sessions.begin() as session:
            await session.execute(mine.values(placeholder_id=message_id))

    async def check_ownership(self, begun: UpdateRow) -> None:
        """Check that no other process has begun a turn.

        Raises:
            TurnTaken: another process has begun it.
        """
        async with self._sessions() as session:
            if await session.scalar(select(func.count()).where(_mine(begun))) == 0:
                raise TurnTaken

    async def commit(
        self,
        begun: UpdateRow,
        ended: Sequence[EndedTurn] = (),
        messages: Sequence[OutboxRow] = (),
        *,
        error: str | None = None,
    ) -> None:
        """Store the answer of a turn, all that it changes, and its messages to send.

        With an `error` the update is set aside, until an operator has it tried again.

        Raises:
            TurnTaken: another process has begun it, or it is committed already.
        """
        state = ANSWERED if error is None else SET_ASIDE
        answered = update(UpdateRow).where(_mine(begun))
        if error is None:
            # A commit whose confirmation was lost is tried again: once is enough.
            answered = answered.where(UpdateRow.state == WAITING)
        async with self._sessions.begin() as session:
            if not await count_rows(session, answered.values(state=state, error=error)):
                raise TurnTaken
            for turn in ended:
                await save_turn(session, turn, self._now(), self._rows, SENDING)
            for message in messages:
                message.update_id = begun.update_id
            session.add_all(messages)

    async def sent(self, message: OutboxRow) -> None:
        """Store the id of a message that was sent, or why it never will be; its content goes.

        A question that was sent outside of a turn, in a terminal, is stored then.
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
        """Store the traces of a turn that was set aside, which are whole."""
        async with self._sessions.begin() as session:
            await self._rows.save(session, traces, self._now())

    async def done(self, begun: UpdateRow, traces: Sequence[TraceRecord] = ()) -> None:
        """End a turn that is sent: its updates are emptied, and its `traces` are whole.

        Of an update that was answered by no turn, a command say, only the number stays.

        Raises:
            TurnTaken: another process has begun it.
        """
        async with self._sessions.begin() as session:
            update_id = begun.update_id
            over = update(UpdateRow).where(_mine(begun), UpdateRow.state == ANSWERED)
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
        """Have an update that was set aside tried again; return False if there is none."""
        aside = (UpdateRow.update_id == update_id) & (UpdateRow.state == SET_ASIDE)
        again = update(UpdateRow).where(aside).values(state=RETRY, tries=0)
        async with self._sessions.begin() as session:
            await session.execute(delete(OutboxRow).where(OutboxRow.update_id == update_id))
            return bool(await count_rows(session, again))

    async def turn_of(self, chat_id: int, message_id: int) -> int | None:
        """Return the turn that a message became a part of."""
        of_message = (UpdateRow.chat_id == chat_id) & (UpdateRow.message_id == message_id)
        first = select(UpdateRow.turn_id).where(of_message).order_by(UpdateRow.update_id).limit(1)
        async with self._sessions() as session:
            return await session.scalar(first)

    async def backlog(self) -> Backlog:
        """Count the turns that are not over, and tell since when the oldest waits."""
        query = select(func.count(), func.min(UpdateRow.received_at)).where(IS_TO_RUN)
        async with self._sessions() as session:
            count, oldest = (await session.execute(query)).one()
        age = (self._now() - oldest).total_seconds() if oldest else 0.0
        return Backlog(count, max(0.0, age))

    async def forget(self, older_than: timedelta) -> int:
        """Delete updates that are older, save those that still wait; return how many."""
        old = UpdateRow.received_at < self._now() - older_than
        async with self._sessions.begin() as session:
            return await count_rows(session, delete(UpdateRow).where(~IS_TO_RUN, old))

    async def _all(self, query: Select[UpdateRow]) -> Sequence[UpdateRow]:
        async with self._sessions() as session:
            return (await session.scalars(query)).all()


def _mine(begun: UpdateRow) -> ColumnElement[bool]:
    """Return the condition that nobody has begun a turn since."""
    return (UpdateRow.update_id == begun.update_id) & (UpdateRow.epoch == begun.epoch)


async def _replace_waiting(session: AsyncSession, edit: UpdateRow) -> bool:
    """Replace a waiting message by its edited form; return False if a turn has taken it."""
    form = edit.payload.get("edited_message")
    if not form or edit.message_id is None:
        return False
    of_message = (UpdateRow.chat_id == edit.chat_id, UpdateRow.message_id == edit.message_id)
    known = await session.scalar(select(func.min(UpdateRow.update_id)).where(*of_message))
    # One statement decides: a turn that begins meanwhile has either form, and we know it.
    waits = update(UpdateRow).where(UpdateRow.update_id == known, IS_FREE)
    values = waits.values(payload={"update_id": known, "message": form})
    return known is not None and bool(await count_rows(session, values))
