"""Accepted updates over SQL: what was received and is not done, and what was set aside."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from agent.repositories import (
    AcceptedUpdate,
    Backlog,
    BegunTurn,
    EndedTurn,
    Payload,
    ReceivedUpdate,
    Step,
)
from db.engine import SqlRepository
from db.models import StepRow, UpdateRow, insert_once, record_of, upsert, values_of
from db.repositories.turns import keep

WAITING: Final = "waiting"
TAKEN: Final = "taken"
DONE: Final = "done"
SET_ASIDE: Final = "set_aside"
RETRY: Final = "retry"
TO_RUN: Final = (WAITING, RETRY)
"""The states of updates whose turns are to run."""


class SqlUpdateRepository(SqlRepository):
    """Fulfils `agent.repositories.UpdateRepository` on SQLite and Postgres alike."""

    async def accept(self, updates: Sequence[ReceivedUpdate]) -> list[ReceivedUpdate]:
        """Store updates, each once however often it is delivered; those with turns of their own.

        An edited form takes the place of a message that no turn has taken yet.
        """
        received_at = self._now()

        def write(session: Session) -> list[ReceivedUpdate]:
            waiting = []
            for each in updates:
                if each.edits is not None and _reword(session, each):
                    continue
                row = {
                    "update_id": each.update_id,
                    "chat_id": each.chat_id,
                    "lane": each.lane,
                    "message_id": each.message_id,
                    "payload": dict(each.payload),
                    "received_at": received_at,
                    "state": WAITING,
                }
                session.execute(insert_once(session, UpdateRow).values(row))
                waiting.append(each)
            return waiting

        return await self._sessions.write(write)

    async def get(self, update_id: int) -> AcceptedUpdate | None:
        """An update, None if it was never accepted or is forgotten."""

        def read(session: Session) -> AcceptedUpdate | None:
            row = session.get(UpdateRow, update_id)
            return record_of(AcceptedUpdate, row) if row else None

        return await self._sessions.read(read)

    async def first(self, lane: str) -> AcceptedUpdate | None:
        """The update of a lane whose turn is next, by its id alone; None if none waits."""
        of_lane = select(UpdateRow).where(UpdateRow.lane == lane, UpdateRow.state.in_(TO_RUN))
        next_one = of_lane.order_by(UpdateRow.update_id).limit(1)

        def read(session: Session) -> AcceptedUpdate | None:
            row = session.scalar(next_one)
            if row is None:
                return None
            tries = 0 if row.tries and _steps(session, row.update_id) > row.progress else row.tries
            return record_of(AcceptedUpdate, row, tries=tries)

        return await self._sessions.read(read)

    async def waiting(self, chat_id: int, since: int) -> list[AcceptedUpdate]:
        """The waiting updates of a chat from `since` on, in order."""
        of_chat = (UpdateRow.chat_id == chat_id) & (UpdateRow.state == WAITING)
        query = select(UpdateRow).where(of_chat, UpdateRow.update_id >= since)
        query = query.order_by(UpdateRow.update_id).limit(100)
        return await self._sessions.read(
            lambda session: [record_of(AcceptedUpdate, row) for row in session.scalars(query)]
        )

    async def lanes(self) -> dict[str, int]:
        """The lanes in which updates wait, each with the first of them."""
        query = select(UpdateRow.lane, func.min(UpdateRow.update_id))
        query = query.where(UpdateRow.state.in_(TO_RUN)).group_by(UpdateRow.lane)
        return await self._sessions.read(
            lambda session: {str(lane): first for lane, first in session.execute(query)}
        )

    async def begin(self, update_id: int, with_others: Sequence[int] = ()) -> BegunTurn | None:
        """Count a try of a turn, from one again if more steps were recorded than at the last one.

        The others get no turn of their own then, and none is edited any more. What a turn has taken
        before it keeps, and takes no more: whoever is run again asks again.
        """
        of_turn = select(StepRow).where(StepRow.update_id == update_id).order_by(StepRow.number)
        others = update(UpdateRow).where(
            UpdateRow.update_id.in_(with_others),
            UpdateRow.update_id != update_id,
            UpdateRow.state == WAITING,
            UpdateRow.turn_id.is_(None),
        )

        def write(session: Session) -> BegunTurn | None:
            row = session.get(UpdateRow, update_id)
            if row is None or row.state not in TO_RUN:
                return None
            found = session.scalars(of_turn) if row.tries else ()
            steps = tuple(record_of(Step, each) for each in found)
            row.tries = 1 if len(steps) > row.progress else row.tries + 1
            row.progress, row.state = len(steps), WAITING
            if row.turn_id is None:
                row.turn_id = update_id
                if with_others:
                    taken = others.values(turn_id=update_id, state=TAKEN)
                    session.execute(taken, execution_options={"synchronize_session": False})
            session.flush()
            payloads = _payloads(session, update_id)
            return BegunTurn(record_of(AcceptedUpdate, row), payloads, steps)

        return await self._sessions.write(write)

    async def record(self, step: Step) -> None:
        """Keep what a step returned."""
        row = values_of(step, StepRow)
        await self._sessions.write(
            lambda session: session.execute(upsert(session, StepRow).values(row))
        )

    async def forget_steps(self, update_id: int) -> None:
        """Have a turn begin anew."""
        await self._write(delete(StepRow).where(StepRow.update_id == update_id))

    async def done(self, turn_id: int, ended: Sequence[EndedTurn] = ()) -> None:
        """A turn is over: what it came to is kept, its updates lose their content, all at once."""
        of_turn = (UpdateRow.turn_id == turn_id) | (UpdateRow.update_id == turn_id)
        over = {"state": DONE, "payload": {}, "turn_id": turn_id, "error": None}
        now = self._now()

        def write(session: Session) -> None:
            for each in ended:
                keep(session, each, now)
            changed = update(UpdateRow).where(of_turn).values(over)
            session.execute(changed, execution_options={"synchronize_session": False})
            session.execute(delete(StepRow).where(StepRow.update_id == turn_id))

        await self._sessions.write(write)

    async def set_aside(self, update_id: int, error: str) -> None:
        """Give up on an update, until an operator has it tried again."""
        row = update(UpdateRow).where(UpdateRow.update_id == update_id)
        await self._write(row.values(state=SET_ASIDE, error=error))

    async def set_aside_list(self) -> list[AcceptedUpdate]:
        """What was set aside, oldest first."""
        query = select(UpdateRow).where(UpdateRow.state == SET_ASIDE).order_by(UpdateRow.update_id)
        return await self._sessions.read(
            lambda session: [record_of(AcceptedUpdate, row) for row in session.scalars(query)]
        )

    async def ask_retry(self, update_id: int) -> bool:
        """Have an update that was set aside tried again; False if there is none."""

        def write(session: Session) -> bool:
            row = session.get(UpdateRow, update_id)
            if row is None or row.state != SET_ASIDE:
                return False
            session.execute(delete(StepRow).where(StepRow.update_id == update_id))
            row.state, row.tries, row.progress = RETRY, 0, 0
            row.retries += 1
            return True

        return await self._sessions.write(write)

    async def to_retry(self) -> list[tuple[str, int, int]]:
        """What an operator wants tried again: lane, update, and for which time."""
        query = select(UpdateRow.lane, UpdateRow.update_id, UpdateRow.retries)
        query = query.where(UpdateRow.state == RETRY).order_by(UpdateRow.update_id)
        return await self._sessions.read(
            lambda session: [(str(lane), first, n) for lane, first, n in session.execute(query)]
        )

    async def turn_of(self, chat_id: int, message_id: int) -> int | None:
        """The turn that a message became a part of."""
        query = select(UpdateRow.turn_id).where(
            UpdateRow.chat_id == chat_id, UpdateRow.message_id == message_id
        )
        first = query.order_by(UpdateRow.update_id).limit(1)
        return await self._sessions.read(lambda session: session.scalar(first))

    async def backlog(self) -> Backlog:
        """How many turns are not over, and since when."""
        query = select(func.count(), func.min(UpdateRow.received_at))
        query = query.where(UpdateRow.state.in_(TO_RUN))
        count, oldest = await self._sessions.read(lambda session: session.execute(query).one())
        age = (self._now() - oldest).total_seconds() if oldest else 0.0
        return Backlog(count, max(0.0, age))

    async def forget(self, older_than: timedelta) -> int:
        """Delete updates that are older, save those that still wait; how many there were."""
        over = UpdateRow.state.not_in(TO_RUN)
        old = over & (UpdateRow.received_at < self._now() - older_than)
        return await self._write(delete(UpdateRow).where(old))


def _steps(session: Session, update_id: int) -> int:
    """How many steps of a turn are recorded."""
    of_turn = select(func.count()).where(StepRow.update_id == update_id)
    return session.scalar(of_turn) or 0


def _payloads(session: Session, turn_id: int) -> tuple[Payload, ...]:
    """The updates that a turn consists of, in order."""
    of_turn = select(UpdateRow.payload).where(UpdateRow.turn_id == turn_id)
    return tuple(session.scalars(of_turn.order_by(UpdateRow.update_id)))


def _reword(session: Session, edited: ReceivedUpdate) -> bool:
    """Replace a waiting message by its edited form; False if a turn has taken it."""
    of_message = (UpdateRow.chat_id == edited.chat_id) & (UpdateRow.message_id == edited.edits)
    update_id = session.scalar(select(UpdateRow.update_id).where(of_message).limit(1))
    # One statement decides: a turn that begins meanwhile has either form, and we know it.
    changed = session.scalars(
        update(UpdateRow)
        .where(UpdateRow.update_id == update_id, UpdateRow.state == WAITING)
        .where(UpdateRow.turn_id.is_(None))
        .values(payload={"update_id": update_id, "message": edited.payload["edited_message"]})
        .returning(UpdateRow.update_id)
    )
    return changed.first() is not None
