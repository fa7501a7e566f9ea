"""Accepted updates over SQL: what was received and is not done, and what was set aside."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import ColumnElement, case, delete, exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from agent.repositories import AcceptedUpdate, Backlog, Payload, ReceivedUpdate
from db.engine import SqlRepository
from db.models import UpdateRow, insert_once, record_of

WAITING: Final = "waiting"
TAKEN: Final = "taken"
DONE: Final = "done"
SET_ASIDE: Final = "set_aside"
RETRY: Final = "retry"


class SqlUpdateRepository(SqlRepository):
    """The accepted updates on SQLite and Postgres alike. Every method commits."""

    async def accept(self, updates: Sequence[ReceivedUpdate]) -> list[Payload]:
        """Store updates, each once however often it is delivered; those with turns of their own.

        An edited form takes the place of a message that no turn has taken yet.
        """
        received_at, waiting = self._now(), list[Payload]()
        async with self._sessions.begin() as session:
            for each in updates:
                if each.edits is not None and await _reword(session, each):
                    continue
                row = {
                    "update_id": each.update_id,
                    "chat_id": each.chat_id,
                    "message_id": each.message_id,
                    "payload": dict(each.payload),
                    "received_at": received_at,
                    "state": WAITING,
                }
                await session.execute(insert_once(session, UpdateRow).values(row))
                waiting.append(each.payload)
        return waiting

    async def get(self, update_id: int) -> AcceptedUpdate | None:
        """An update, None if it was never accepted or is forgotten."""
        async with self._sessions() as session:
            row = await session.get(UpdateRow, update_id)
            return record_of(AcceptedUpdate, row) if row else None

    async def begun(self, update_id: int, progress: int) -> int:
        """How often the turn of an update was begun since it last made progress."""
        same = (UpdateRow.update_id == update_id) & (UpdateRow.progress >= progress)
        async with self._sessions() as session:
            return await session.scalar(select(UpdateRow.tries).where(same)) or 0

    async def begin(self, update_id: int, progress: int) -> AcceptedUpdate | None:
        """Count a try, from one again if more steps were recorded than when the last one began."""
        async with self._sessions.begin() as session:
            row = await session.get(UpdateRow, update_id)
            if row is None:
                return None
            row.tries = 1 if progress > row.progress else row.tries + 1
            row.progress = progress
            if row.state == RETRY:
                row.state = WAITING
            return record_of(AcceptedUpdate, row)

    async def waiting(self, chat_id: int, since: int) -> list[AcceptedUpdate]:
        """The waiting updates of a chat from `since` on, in order."""
        query = (
            select(UpdateRow)
            .where(
                UpdateRow.chat_id == chat_id,
                UpdateRow.state == WAITING,
                UpdateRow.update_id >= since,
            )
            .order_by(UpdateRow.update_id)
            .limit(100)
        )
        async with self._sessions() as session:
            return [record_of(AcceptedUpdate, row) for row in await session.scalars(query)]

    async def take(self, update_ids: Sequence[int], turn_id: int) -> list[AcceptedUpdate]:
        """Make updates the turn `turn_id`; what it consists of, in order.

        Those beside `turn_id` get no turn of their own, and none is edited any more. What a turn
        has taken before it keeps, and takes no more: whoever is run again asks again.
        """
        async with self._sessions.begin() as session:
            statement = (
                update(UpdateRow)
                .where(UpdateRow.update_id.in_(update_ids), UpdateRow.state == WAITING)
                .where(UpdateRow.turn_id.is_(None), ~_begun(turn_id))
                .values(turn_id=turn_id, state=_taken_beside(turn_id))
            )
            await session.execute(statement, execution_options={"synchronize_session": False})
            of_turn = select(UpdateRow).where(UpdateRow.turn_id == turn_id)
            rows = await session.scalars(of_turn.order_by(UpdateRow.update_id))
            return [record_of(AcceptedUpdate, row) for row in rows]

    async def done(self, turn_id: int) -> None:
        """A turn is done: its updates lose their content."""
        of_turn = (UpdateRow.turn_id == turn_id) | (UpdateRow.update_id == turn_id)
        over = {"state": DONE, "payload": {}, "turn_id": turn_id, "error": None}
        await self._write(update(UpdateRow).where(of_turn).values(over))

    async def set_aside(self, update_id: int, error: str) -> None:
        """Give up on an update, until an operator has it tried again."""
        row = update(UpdateRow).where(UpdateRow.update_id == update_id)
        await self._write(row.values(state=SET_ASIDE, error=error))

    async def set_aside_list(self) -> list[AcceptedUpdate]:
        """What was set aside, oldest first."""
        return await self._in_state(SET_ASIDE)

    async def ask_retry(self, update_id: int) -> bool:
        """Have an update that was set aside tried again; False if there is none."""
        async with self._sessions.begin() as session:
            row = await session.get(UpdateRow, update_id)
            if row is None or row.state != SET_ASIDE:
                return False
            row.state, row.tries, row.progress = RETRY, 0, 0
            row.retries += 1
            return True

    async def to_retry(self) -> list[AcceptedUpdate]:
        """What an operator wants tried again."""
        return await self._in_state(RETRY)

    async def turn_of(self, chat_id: int, message_id: int) -> int | None:
        """The turn that a message became a part of."""
        query = select(UpdateRow.turn_id).where(
            UpdateRow.chat_id == chat_id, UpdateRow.message_id == message_id
        )
        async with self._sessions() as session:
            return await session.scalar(query.order_by(UpdateRow.update_id).limit(1))

    async def backlog(self) -> Backlog:
        """How many turns are not over, and since when."""
        query = select(func.count(), func.min(UpdateRow.received_at)).where(
            UpdateRow.state.in_([WAITING, RETRY])
        )
        async with self._sessions() as session:
            count, oldest = (await session.execute(query)).one()
        age = (self._now() - oldest).total_seconds() if oldest else 0.0
        return Backlog(count, max(0.0, age))

    async def forget(self, older_than: timedelta) -> int:
        """Delete updates that are older, save those that still wait; how many there were."""
        over = UpdateRow.state.not_in([WAITING, RETRY])
        old = over & (UpdateRow.received_at < self._now() - older_than)
        return await self._write(delete(UpdateRow).where(old))

    async def _in_state(self, state: str) -> list[AcceptedUpdate]:
        query = select(UpdateRow).where(UpdateRow.state == state).order_by(UpdateRow.update_id)
        async with self._sessions() as session:
            return [record_of(AcceptedUpdate, row) for row in await session.scalars(query)]


async def _reword(session: AsyncSession, edited: ReceivedUpdate) -> bool:
    """Replace a waiting message by its edited form; False if a turn has taken it."""
    of_message = (UpdateRow.chat_id == edited.chat_id) & (UpdateRow.message_id == edited.edits)
    update_id = await session.scalar(select(UpdateRow.update_id).where(of_message).limit(1))
    # One statement decides: a turn that begins meanwhile has either form, and we know it.
    changed = await session.scalars(
        update(UpdateRow)
        .where(UpdateRow.update_id == update_id, UpdateRow.state == WAITING)
        .where(UpdateRow.turn_id.is_(None))
        .values(payload={"update_id": update_id, "message": edited.payload["edited_message"]})
        .returning(UpdateRow.update_id)
    )
    return changed.first() is not None


def _begun(turn_id: int) -> ColumnElement[bool]:
    """Whether a turn has taken its updates."""
    of_turn = aliased(UpdateRow)
    return exists().where(of_turn.turn_id == turn_id)


def _taken_beside(turn_id: int) -> ColumnElement[str]:
    """The state of what a turn takes: its first update goes on waiting for the end of the turn."""
    return case((UpdateRow.update_id == turn_id, WAITING), else_=TAKEN)
