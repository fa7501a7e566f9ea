"""The inbox: updates that wait for their turn.

Only the process that has begun a turn last may commit or end it. `epoch` counts the starts of a
turn: a process whose number is not the current one has lost the turn. Every method commits.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.tracing.records import TraceRecord
from db.budgets import UNLIMITED, DailyBudgets, RemainingBudget
from db.changes.forgetting import IS_UNFINISHED, NO_PERSONAL_DATA
from db.commit import Commit
from db.engine import count_changed
from db.models import OutboxRow, TurnRow, UpdateRow, UpdateState
from db.repositories.outbox import IS_UNSENT, TurnTaken
from db.statements import insert_new
from db.traces import TraceStoringRepository

Payload = Mapping[str, Any]
"""An update as Telegram delivered it."""


MAX_PER_LANE: Final = 100
"""The number of updates of a lane that are read at once."""
TRACE_DELAY: Final = timedelta(minutes=1)
"""How long a trace that `commit` has stored waits for `end`, which adds how it was delivered.

After a crash between the two, the trace is exported without its delivery.
"""
NO_CONTENT: Final[dict[str, object]] = {
    "payload": {},
    "calls": [],
    "error": None,
    "user_id": None,
}
"""Replaces the content of an update whose turn is stored."""
IS_WAITING: Final = UpdateRow.state == UpdateState.WAITING
IS_ANSWERED: Final = UpdateRow.state == UpdateState.ANSWERED
IS_SET_ASIDE: Final = UpdateRow.state == UpdateState.SET_ASIDE


class Begun(NamedTuple):
    """A turn that has begun.

    `payloads` are the payloads of all its updates. `unsent` are the messages of its answer that
    were not sent, or None if there is no stored answer yet. `budget` is what the turn may use.
    """

    payloads: Sequence[Payload]
    unsent: Sequence[OutboxRow] | None
    budget: RemainingBudget


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of updates whose turns have not ended, and the age of the oldest one."""

    unfinished: int = 0
    oldest_seconds: float = 0.0


@dataclass(eq=False)
class Inbox(TraceStoringRepository):
    """The accepted updates, their turns, and the messages of these turns."""

    budgets: DailyBudgets | None = None

    async def accept(self, updates: Sequence[UpdateRow]) -> None:
        """Store updates. Skip those that are stored already."""
        for row in updates:
            row.received_at = self.now()
            row.state = UpdateState.WAITING
        async with self.sessions.begin() as session:
            await insert_new(session, *updates)

    async def list_unfinished(self, lane: str) -> Sequence[UpdateRow]:
        """Return the updates of a lane whose turns have not ended, in order."""
        in_order = (
            select(UpdateRow)
            .where(UpdateRow.lane == lane, IS_UNFINISHED)
            .order_by(UpdateRow.update_id)
            .limit(MAX_PER_LANE)
        )
        return await self._values(in_order)

    async def list_lanes(self) -> list[str]:
        """Return the lanes with unfinished updates, sorted by their oldest update."""
        query = select(UpdateRow.update_id, UpdateRow.lane).where(IS_UNFINISHED)
        rows = await self._rows(query)
        lanes: dict[str, None] = {}
        # The rows are sorted here, because for ORDER BY SQLite would read all updates by their ids.
        for _, lane in sorted(rows):
            if lane is not None:
                lanes[lane] = None
        return list(lanes)

    async def begin(
        self,
        row: UpdateRow,
        joining: Collection[int] = (),
        *,
        tries: int,
        payer_id: int | None = None,
    ) -> Begun:
        """Begin the turn of an update, together with those of `joining` that have no turn yet.

        The turn counts on the budget of the user `payer_id`, or on none. Set the turn id, the epoch
        and the tries in `row`, too.

        Raises:
            TurnTaken: another process has begun the turn since `row` was read.
        """
        turn_id = row.update_id
        new_values = {
            "turn_id": turn_id,
            "epoch": row.epoch + 1,
            "tries": tries,
        }
        begin = (
            update(UpdateRow)
            .where(_is_unchanged(row), IS_UNFINISHED)
            .values(new_values)
        )
        unsent: Sequence[OutboxRow] | None = None
        budget = UNLIMITED
        async with self.sessions.begin() as session:
            is_begun = await count_changed(session, begin)
            if not is_begun:
                raise TurnTaken
            payloads = await _join(session, row, joining)
            if row.state == UpdateState.ANSWERED:
                unsent = await _read_unsent(session, turn_id)
            elif self.budgets is not None and payer_id is not None:
                budget = await self.budgets.reserve_in(session, turn_id, payer_id)
        # From now on, the epoch of `row` proves that this process has begun the turn last.
        for name, value in new_values.items():
            setattr(row, name, value)
        return Begun(payloads, unsent, budget)

    async def release(self, row: UpdateRow) -> None:
        """Take a start of a turn off the count: it was cancelled because the process stops."""
        tries_before = max(0, row.tries - 1)
        release = (
            update(UpdateRow)
            .where(_is_unchanged(row), IS_WAITING)
            .values(tries=tries_before)
        )
        async with self.sessions.begin() as session:
            changed = await count_changed(session, release)
            if changed and self.budgets is not None:
                await self.budgets.settle_in(session, row.update_id)

    async def is_current(self, row: UpdateRow) -> bool:
        """Return whether no other process has begun the turn since `row` was read."""
        query = select(UpdateRow.update_id).where(_is_unchanged(row))
        update_id = await self._first_value(query)
        return update_id is not None

    async def save_placeholder(self, row: UpdateRow, message_id: int) -> None:
        """Store the id of the message in a group that shows the progress of a turn."""
        unchanged = update(UpdateRow).where(_is_unchanged(row))
        await self._write(unchanged.values(placeholder_id=message_id))

    async def save_calls(self, row: UpdateRow, calls: Sequence[str]) -> None:
        """Store the calls of tools that may write, before the last of them is made.

        Raises:
            TurnTaken: another process has begun the turn.
        """
        unchanged = update(UpdateRow).where(_is_unchanged(row))
        is_stored = await self._write(unchanged.values(calls=[*calls]))
        if not is_stored:
            raise TurnTaken

    async def commit(
        self,
        row: UpdateRow,
        commit: Commit,
        *,
        error: str | None = None,
    ) -> None:
        """Store all that a turn has collected. Then the messages `commit.outgoing` must be sent.

        If there is an `error`, the turn has failed. The messages of such a turn are the apology,
        which replaces all unsent messages, and `end` will set the update aside. A repeated commit
        changes nothing, so a commit can be repeated after an error that leaves open whether it was
        carried out.

        Raises:
            TurnTaken: another process has begun the turn.
        """
        is_open = IS_WAITING
        if error is not None:
            # A turn that is committed can fail, too: its delivery may crash the process each time.
            is_open |= IS_ANSWERED & UpdateRow.error.is_(None)
        store = (
            update(UpdateRow)
            .where(_is_unchanged(row), is_open)
            .values(state=UpdateState.ANSWERED, error=error)
        )
        of_turn = OutboxRow.update_id == row.update_id
        delete_unsent = delete(OutboxRow).where(of_turn, IS_UNSENT)
        await commit.prepare(self.rows)
        async with self.sessions.begin() as session:
            is_new = await count_changed(session, store)
            if is_new:
                if error is not None:
                    await session.execute(delete_unsent)
                await self._carry_out(session, row, commit)
            elif not await _is_stored(session, row, error):
                raise TurnTaken
        row.error = error

    async def _carry_out(
        self,
        session: AsyncSession,
        row: UpdateRow,
        commit: Commit,
    ) -> None:
        """Make the changes of a turn, settle its budget, and queue its messages."""
        transaction = commit.make_transaction(session, self.now(), self.rows)
        await commit.carry_out(transaction, trace_delay=TRACE_DELAY)
        if self.budgets is not None:
            await self.budgets.settle_in(session, row.update_id)
        for message in commit.outgoing:
            message.drop_id()
            message.update_id = row.update_id
        session.add_all(commit.outgoing)

    async def end(self, row: UpdateRow, trace: TraceRecord | None = None) -> None:
        """End a turn whose messages were sent, and add the delivery to its stored trace.

        Delete the content of its updates. If the turn has failed, set the update aside instead. If
        the user's data were deleted meanwhile, there is no trace to which the delivery is added.

        Raises:
            TurnTaken: another process has begun the turn.
        """
        state = UpdateState.DONE
        if row.error is not None:
            state = UpdateState.SET_ASIDE
        end = update(UpdateRow).where(_is_unchanged(row), IS_ANSWERED)
        delivery = await self.rows.prepare_delivery(trace)
        now = self.now()
        async with self.sessions.begin() as session:
            has_ended = await count_changed(session, end.values(state=state))
            if not has_ended:
                raise TurnTaken
            has_trace = await self.rows.save_delivery(session, delivery, now)
            if row.error is None:
                await _delete_content(session, row.update_id, has_trace=has_trace)

    async def list_set_aside(self) -> Sequence[UpdateRow]:
        """Return the updates that were set aside, the oldest first."""
        query = select(UpdateRow).where(IS_SET_ASIDE)
        return await self._values(query.order_by(UpdateRow.update_id))

    async def schedule_retry(self, update_id: int) -> bool:
        """Let an update that was set aside be tried again. Return False if there is none."""
        is_this = UpdateRow.update_id == update_id
        retry = (
            update(UpdateRow)
            .where(is_this, IS_SET_ASIDE)
            .values(state=UpdateState.WAITING, tries=0, error=None)
        )
        delete_apology = delete(OutboxRow).where(OutboxRow.update_id == update_id)
        async with self.sessions.begin() as session:
            is_scheduled = await count_changed(session, retry)
            if not is_scheduled:
                return False
            await session.execute(delete_apology)
        return True

    async def measure_backlog(self) -> Backlog:
        """Return how many updates wait, and for how long."""
        oldest_time = func.min(UpdateRow.received_at)
        query = select(func.count(), oldest_time).where(IS_UNFINISHED)
        [(count, oldest)] = await self._rows(query)
        if oldest is None:
            return Backlog()
        age = self.now() - oldest
        # The clock of the process that accepted the update may be ahead.
        seconds = max(0.0, age.total_seconds())
        return Backlog(count, seconds)


async def _join(
    session: AsyncSession,
    row: UpdateRow,
    joining: Collection[int],
) -> Sequence[Payload]:
    """Let updates that have no turn yet join the turn of `row`.

    Return the payloads of all its updates, in order.
    """
    turn_id = row.update_id
    if joining:
        join = (
            update(UpdateRow)
            .where(
                UpdateRow.update_id.in_(joining),
                UpdateRow.turn_id.is_(None),
                IS_WAITING,
            )
            .values(turn_id=turn_id, state=UpdateState.JOINED)
        )
        await session.execute(join)
    has_begun_before = row.turn_id is not None
    if joining or has_begun_before:
        return await _read_payloads(session, turn_id)
    return [row.payload]


async def _read_payloads(session: AsyncSession, turn_id: int) -> Sequence[Payload]:
    """Return the payloads of all updates of a turn, in order."""
    payloads = (
        select(UpdateRow.payload)
        .where(UpdateRow.turn_id == turn_id)
        .order_by(UpdateRow.update_id)
    )
    found = await session.scalars(payloads)
    return found.all()


async def _read_unsent(session: AsyncSession, update_id: int) -> Sequence[OutboxRow]:
    """Return the unsent messages of a turn, in order."""
    unsent = (
        select(OutboxRow)
        .where(OutboxRow.update_id == update_id, IS_UNSENT)
        .order_by(OutboxRow.id)
    )
    found = await session.scalars(unsent)
    return found.all()


async def _is_stored(
    session: AsyncSession,
    row: UpdateRow,
    error: str | None,
) -> bool:
    """Return whether an earlier try of a commit has succeeded, and the turn is still ours."""
    has_this_error = UpdateRow.error.is_not_distinct_from(error)
    stored = select(UpdateRow.update_id).where(
        _is_unchanged(row),
        IS_ANSWERED,
        has_this_error,
    )
    update_id = await session.scalar(stored)
    return update_id is not None


async def _delete_content(
    session: AsyncSession,
    update_id: int,
    *,
    has_trace: bool,
) -> None:
    """Mark the updates of a turn as done, and delete their content.

    If no turn is stored, delete all of them except their ids.
    """
    values = NO_PERSONAL_DATA
    # If there is a trace, the turn is stored. If there is none, it may be stored, too.
    if has_trace or await session.get(TurnRow, update_id) is not None:
        values = NO_CONTENT
    of_turn = UpdateRow.turn_id == update_id
    finish = update(UpdateRow).where(of_turn)
    await session.execute(finish.values(state=UpdateState.DONE, **values))
    # Messages without a stored turn, such as answers to commands, are not needed any more. Messages
    # of a referral are still needed, because users reply to them.
    unneeded = delete(OutboxRow).where(
        OutboxRow.update_id == update_id,
        OutboxRow.turn_id.is_(None),
        OutboxRow.referral_id.is_(None),
    )
    await session.execute(unneeded)


def _is_unchanged(row: UpdateRow) -> ColumnElement[bool]:
    """Return the condition that no process has begun the turn since `row` was read."""
    is_this = UpdateRow.update_id == row.update_id
    has_same_epoch = UpdateRow.epoch == row.epoch
    return is_this & has_same_epoch
