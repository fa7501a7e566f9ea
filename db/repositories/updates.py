"""Accepted updates over SQL: what was received and is not done, and what was set aside."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    Connection,
    Select,
    Table,
    bindparam,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningInsert

from agent.repositories import (
    AcceptedUpdate,
    Backlog,
    BegunTurn,
    EndedTurn,
    Payload,
    ReceivedUpdate,
    Step,
    TurnTaken,
)
from db.engine import Work
from db.models import (
    Inserting,
    StepRow,
    UpdateRow,
    insert_once,
    loaded,
    table_of,
    upsert,
    values_of,
)
from db.repositories.people import change
from db.repositories.traces import KeepingTraces
from db.repositories.turns import keep

WAITING: Final = "waiting"
TAKEN: Final = "taken"
DONE: Final = "done"
SET_ASIDE: Final = "set_aside"
RETRY: Final = "retry"

UPDATES: Final[Table] = table_of(UpdateRow)
STEPS: Final[Table] = table_of(StepRow)
U: Final = UPDATES.c
KEY: Final[BindParameter[int]] = bindparam("key")
LANE: Final[BindParameter[str]] = bindparam("lane")
IS_TO_RUN: Final = (U.state == WAITING) | (U.state == RETRY)
"""That the turn of an update is to run. Not "in": that is written anew for each execution."""

LANES: Final = select(U.lane).where(IS_TO_RUN).group_by(U.lane).order_by(func.min(U.update_id))
IN_LANE: Final = select(UPDATES).where(U.lane == LANE, IS_TO_RUN).order_by(U.update_id).limit(100)
FOR_TURN: Final = select(U.payload).where(U.turn_id == KEY).order_by(U.update_id)
RECORDED: Final = select(STEPS).where(STEPS.c.update_id == KEY).order_by(STEPS.c.number)
HELD: Final = select(U.update_id).where(U.update_id == KEY, U.epoch == bindparam("epoch"))
LOCKED: Final = HELD.with_for_update(read=True)
STEP: Final = LOCKED.with_only_columns(
    *(bindparam(each.name, type_=each.type) for each in STEPS.columns)
)
"""A step, as a row of its turn's update: there is none once another process has begun the turn."""
BEGINS: Final = select(UPDATES).where(U.update_id == KEY, IS_TO_RUN).with_for_update(key_share=True)
COUNTED: Final = (
    update(UPDATES)
    .where(U.update_id == KEY)
    .values({each: bindparam(each) for each in ("tries", "progress", "epoch", "state", "turn_id")})
)
OVER: Final = (
    update(UPDATES)
    .where((U.turn_id == KEY) | (U.update_id == KEY))
    .values(state=DONE, payload={}, turn_id=KEY, error=None)
)
FORGOTTEN: Final = delete(STEPS).where(STEPS.c.update_id == KEY)
VOID: Final = FORGOTTEN.where(STEPS.c.number >= 0)
"""What a turn did that begins anew; not what earlier tries spent, nor where they show an answer."""


class SqlUpdateRepository(KeepingTraces):
    """Fulfils `agent.repositories.UpdateRepository` on SQLite and Postgres alike."""

    async def accept(self, updates: Sequence[ReceivedUpdate]) -> list[ReceivedUpdate]:
        received_at = self._now()

        def write(on: Connection) -> list[ReceivedUpdate]:
            waiting = []
            for each in updates:
                if each.edits is not None and _reword(on, each):
                    continue
                row = {
                    "update_id": each.update_id,
                    "chat_id": each.chat_id,
                    "lane": each.lane,
                    "message_id": each.message_id,
                    "payload": dict(each.payload),
                    "received_at": received_at,
                    "state": WAITING,
                    "tries": 0,
                    "progress": 0,
                    "retries": 0,
                }
                on.execute(insert_once(on, UpdateRow), row)
                waiting.append(each)
            return waiting

        return await self._sessions.write(write)

    async def get(self, update_id: int) -> AcceptedUpdate | None:
        """An update, None if it was never accepted or is forgotten."""
        found = await self._all(select(UPDATES).where(U.update_id == update_id))
        return found[0] if found else None

    async def waiting(self, lane: str) -> list[AcceptedUpdate]:
        def read(on: Connection) -> list[AcceptedUpdate]:
            rows = on.execute(IN_LANE, {"lane": lane}).all()
            found = [loaded(AcceptedUpdate, row) for row in rows]
            if found and found[0].tries:
                steps = on.execute(RECORDED, {"key": found[0].update_id}).all()
                if len(steps) > rows[0].progress:
                    found[0] = replace(found[0], tries=0)
            return found

        return await self._sessions.read(read)

    async def lanes(self) -> list[str]:
        return await self._sessions.read(lambda on: [str(each) for each in on.scalars(LANES)])

    async def begin(self, update_id: int, with_others: Sequence[int] = ()) -> BegunTurn | None:
        """Count a try of a turn, from one again if more steps were recorded than at the last one.

        The others get no turn of their own then, and none is edited any more. What a turn has taken
        before it keeps, and takes no more: whoever is run again asks again.
        """
        this = {"key": update_id}

        def write(on: Connection) -> BegunTurn | None:
            # Locked before its steps are read: who had begun it has recorded all it ever will.
            row = on.execute(BEGINS, this).one_or_none()
            if row is None:
                return None
            recorded = on.execute(RECORDED, this) if row.epoch else ()
            steps = tuple(loaded(Step, each) for each in recorded)
            tries, epoch = 1 if len(steps) > row.progress else row.tries + 1, row.epoch + 1
            counted = {"tries": tries, "progress": len(steps), "epoch": epoch, "state": WAITING}
            on.execute(COUNTED, this | counted | {"turn_id": update_id})
            if with_others and row.turn_id is None:
                free = (U.state == WAITING) & U.turn_id.is_(None)
                others = update(UPDATES).where(U.update_id.in_(with_others), free)
                on.execute(others.values(turn_id=update_id, state=TAKEN))
            payloads: tuple[Payload, ...] = (row.payload,)
            if with_others or row.turn_id is not None:
                payloads = tuple(on.scalars(FOR_TURN, this))
            begun = loaded(AcceptedUpdate, row, tries=tries, epoch=epoch)
            return BegunTurn(begun, payloads, steps)

        return await self._sessions.write(write)

    async def begin_anew(self, spent: Step, epoch: int, with_others: Sequence[int]) -> BegunTurn:
        this, begun = {"key": spent.update_id}, list[BegunTurn]()

        def write(on: Connection) -> None:
            row = on.execute(BEGINS, this).one()
            on.execute(VOID, this)
            on.execute(upsert(on, StepRow), values_of(spent, StepRow))
            anew = {"tries": 1, "progress": 0, "epoch": epoch + 1, "state": WAITING}
            on.execute(COUNTED, this | anew | {"turn_id": spent.update_id})
            free = (U.state == WAITING) & U.turn_id.is_(None) & U.update_id.in_(with_others)
            on.execute(update(UPDATES).where(free).values(turn_id=spent.update_id, state=TAKEN))
            update_ = loaded(AcceptedUpdate, row, tries=1, epoch=epoch + 1)
            begun.append(BegunTurn(update_, tuple(on.scalars(FOR_TURN, this)), (spent,)))

        await self._go_on(spent.update_id, epoch, write)
        return begun[-1]

    async def hold(self, update_id: int, epoch: int) -> None:
        this = {"key": update_id, "epoch": epoch}
        if await self._sessions.read(lambda on: on.scalar(HELD, this)) is None:
            raise TurnTaken

    async def record(self, step: Step, epoch: int) -> None:
        row = values_of(step, StepRow) | {"key": step.update_id, "epoch": epoch}
        # One statement: whoever begins the turn meanwhile waits for this commit, too.
        if await self._sessions.write(lambda on: on.scalar(_recording(on), row)) is None:
            raise TurnTaken

    async def forget_steps(self, update_id: int, epoch: int) -> None:
        await self._go_on(update_id, epoch, lambda on: on.execute(VOID, {"key": update_id}))

    async def done(self, turn_id: int, epoch: int, ended: Sequence[EndedTurn] = ()) -> None:
        this, now = {"key": turn_id}, self._now()

        def write(on: Connection) -> None:
            for each in ended:
                keep(on, each, now, self._rows)
            on.execute(OVER, this)
            on.execute(FORGOTTEN, this)
            for each in ended:
                change(on, each.changes, now)

        await self._go_on(turn_id, epoch, write)

    async def set_aside(self, update_id: int, epoch: int, error: str) -> None:
        row = update(UPDATES).where(U.update_id == update_id)
        aside = row.values(state=SET_ASIDE, error=error)
        await self._go_on(update_id, epoch, lambda on: on.execute(aside))

    async def set_aside_list(self) -> list[AcceptedUpdate]:
        """What was set aside, oldest first."""
        return await self._all(select(UPDATES).where(U.state == SET_ASIDE).order_by(U.update_id))

    async def ask_retry(self, update_id: int) -> bool:
        row = update(UPDATES).where(U.update_id == update_id, U.state == SET_ASIDE)
        anew = row.values(state=RETRY, tries=0, progress=0, retries=U.retries + 1)

        def write(on: Connection) -> bool:
            if not on.execute(anew).rowcount:
                return False
            on.execute(FORGOTTEN, {"key": update_id})
            return True

        return await self._sessions.write(write)

    async def turn_of(self, chat_id: int, message_id: int) -> int | None:
        """The turn that a message became a part of."""
        of_message = (U.chat_id == chat_id) & (U.message_id == message_id)
        first = select(U.turn_id).where(of_message).order_by(U.update_id).limit(1)
        return await self._sessions.read(lambda on: on.scalar(first))

    async def backlog(self) -> Backlog:
        query = select(func.count(), func.min(U.received_at)).where(IS_TO_RUN)
        count, oldest = await self._sessions.read(lambda on: on.execute(query).one())
        age = (self._now() - oldest).total_seconds() if oldest else 0.0
        return Backlog(count, max(0.0, age))

    async def forget(self, older_than: timedelta) -> int:
        old = U.received_at < self._now() - older_than
        return await self._write(delete(UPDATES).where(~IS_TO_RUN, old))

    async def _go_on(self, update_id: int, epoch: int, work: Work[object]) -> None:
        """Do what belongs to a turn, unless another process has begun it since.

        Raises:
            TurnTaken: one has, and nothing was done.
        """
        this = {"key": update_id, "epoch": epoch}

        def write(on: Connection) -> bool:
            # Whoever begins it meanwhile waits for this commit, and then finds what it wrote.
            if on.scalar(LOCKED, this) is None:
                return False
            work(on)
            return True

        if not await self._sessions.write(write):
            raise TurnTaken

    async def _all(self, query: Select[Any]) -> list[AcceptedUpdate]:
        return await self._sessions.read(
            lambda on: [loaded(AcceptedUpdate, row) for row in on.execute(query)]
        )


def _recording(on: Connection) -> ReturningInsert[Any]:
    return _of_turn(upsert(on, StepRow))


@cache
def _of_turn(statement: Inserting) -> ReturningInsert[Any]:
    made = statement.from_select([each.name for each in STEPS.columns], STEP)
    return made.returning(STEPS.c.update_id)


def _reword(on: Connection, edited: ReceivedUpdate) -> bool:
    """Replace a waiting message by its edited form; False if a turn has taken it."""
    of_message = (U.chat_id == edited.chat_id) & (U.message_id == edited.edits)
    update_id = on.scalar(select(U.update_id).where(of_message).limit(1))
    # One statement decides: a turn that begins meanwhile has either form, and we know it.
    waits = update(UPDATES).where(U.update_id == update_id, U.state == WAITING, U.turn_id.is_(None))
    form = {"update_id": update_id, "message": edited.payload["edited_message"]}
    return bool(on.execute(waits.values(payload=form)).rowcount)
