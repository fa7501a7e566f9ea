"""The inbox of updates that wait for a turn.

Only the process that last began a turn may commit or end it; `epoch` counts its starts. Every
method commits.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple, cast

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.tracing.records import TraceRecord
from db.budgets import UNLIMITED, DailyBudgets, RemainingBudget
from db.changes.base import Transaction
from db.changes.forgetting import IS_UNFINISHED, NO_PERSONAL_DATA
from db.commit import Commit
from db.engine import count_changed
from db.models import OutboxRow, TurnRow, UpdateRow, UpdateState
from db.repositories.outbox import IS_UNSENT, TurnTaken
from db.statements import insert_new
from db.traces import TraceStoringRepository

Payload = Mapping[str, Any]
"""An update as Telegram delivered it."""

"""States of updates, with those in `db.changes.forgetting`."""

MAX_PER_LANE: Final = 100
TRACE_DELAY: Final = timedelta(minutes=1)
"""How long a trace that `commit` stores waits for `end`, which adds how it was delivered.
After a crash between the two, the stored trace is exported without delivery details."""
HAS_NO_TURN: Final = (UpdateRow.state == UpdateState.WAITING) & UpdateRow.turn_id.is_(
    None
)


class Begun(NamedTuple):
    """A turn that has begun.

    `payloads` are those of all its updates. `unsent` are the unsent messages of its answer, None if
    it has no stored answer yet. `budget` is what it may use.
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
        """Store updates; skip those that are stored already."""
        for row in updates:
            row.received_at, row.state = self.now(), UpdateState.WAITING
        async with self.sessions.begin() as session:
            await insert_new(session, *updates)

    async def list_unfinished(self, lane: str) -> Sequence[UpdateRow]:
        """Return the updates of a lane whose turns have not ended, in order."""
        query = select(UpdateRow).where(UpdateRow.lane == lane, IS_UNFINISHED)
        return await self._values(
            query.order_by(UpdateRow.update_id).limit(MAX_PER_LANE)
        )

    async def list_lanes(self) -> list[str]:
        """Return the lanes with unfinished updates, sorted by their oldest update."""
        query = select(UpdateRow.update_id, UpdateRow.lane).where(IS_UNFINISHED)
        # Sorted here: to spare the sorting, SQLite would read all updates in order of their ids.
        rows = sorted(await self._rows(query))
        return list(dict.fromkeys(lane for _, lane in rows if lane is not None))

    async def begin(
        self,
        row: UpdateRow,
        joining: Collection[int] = (),
        *,
        tries: int,
        payer_id: int | None = None,
    ) -> Begun:
        """Begin the turn of an update, together with those of `joining` that have no turn yet.

        It counts on the budget of the user `payer_id`, or on none. Also update `row` (turn id,
        epoch, tries).

        Raises:
            TurnTaken: another process has begun the turn since `row` was read.
        """
        new_values = {"turn_id": row.update_id, "epoch": row.epoch + 1, "tries": tries}
        outbox, budget = None, UNLIMITED
        async with self.sessions.begin() as session:
            set_begun = update(UpdateRow).where(_is_unchanged(row), IS_UNFINISHED)
            if not await count_changed(session, set_begun.values(new_values)):
                raise TurnTaken
            if joining:
                set_joined = update(UpdateRow).where(
                    UpdateRow.update_id.in_(joining), HAS_NO_TURN
                )
                await session.execute(
                    set_joined.values(turn_id=row.update_id, state=UpdateState.JOINED)
                )
            payloads: Sequence[Payload] = [row.payload]
            if joining or row.turn_id is not None:  # others belong to the turn, or may
                of_turn = select(UpdateRow.payload).where(
                    UpdateRow.turn_id == row.update_id
                )
                payloads = (
                    await session.scalars(of_turn.order_by(UpdateRow.update_id))
                ).all()
            if row.state == UpdateState.ANSWERED:
                unsent = select(OutboxRow).where(
                    OutboxRow.update_id == row.update_id, IS_UNSENT
                )
                outbox = (await session.scalars(unsent.order_by(OutboxRow.id))).all()
            elif self.budgets is not None and payer_id is not None:
                budget = await self.budgets.reserve_in(session, row.update_id, payer_id)
        # From now on the epoch of `row` proves that this process has begun the turn.
        for name, value in new_values.items():
            setattr(row, name, value)
        return Begun(payloads, outbox, budget)

    async def release(self, row: UpdateRow) -> None:
        """Take back a start of a turn that was cancelled because the process stops."""
        unchanged = update(UpdateRow).where(
            _is_unchanged(row), UpdateRow.state == UpdateState.WAITING
        )
        async with self.sessions.begin() as session:
            changed = await count_changed(
                session, unchanged.values(tries=max(0, row.tries - 1))
            )
            if changed and self.budgets is not None:
                await self.budgets.settle_in(session, row.update_id)

    async def is_current(self, row: UpdateRow) -> bool:
        """Return whether no other process has begun the turn since `row` was read."""
        query = select(UpdateRow.update_id).where(_is_unchanged(row))
        return await self._first_value(query) is not None

    async def save_placeholder(self, row: UpdateRow, message_id: int) -> None:
        """Store the id of the group message that shows a turn's progress and becomes its answer."""
        unchanged = update(UpdateRow).where(_is_unchanged(row))
        await self._write(unchanged.values(placeholder_id=message_id))

    async def save_calls(self, row: UpdateRow, calls: Sequence[str]) -> None:
        """Store the calls of tools that may write, before the last of them is made.

        Raises:
            TurnTaken: another process has begun the turn.
        """
        unchanged = update(UpdateRow).where(_is_unchanged(row))
        if not await self._write(unchanged.values(calls=[*calls])):
            raise TurnTaken

    async def commit(
        self, row: UpdateRow, commit: Commit, *, error: str | None = None
    ) -> None:
        """Store all that a turn has collected; afterwards `commit.outgoing` are to be sent.

        With an `error` the turn has failed: the messages are the apology and replace all unsent
        messages, and `end` sets the update aside. A repeated commit changes nothing, so callers may
        retry when the confirmation was lost.

        Raises:
            TurnTaken: another process has begun the turn.
        """
        is_open = UpdateRow.state == UpdateState.WAITING
        if error is not None:
            # A committed turn can fail too: its delivery may crash the process repeatedly.
            is_open |= (UpdateRow.state == UpdateState.ANSWERED) & UpdateRow.error.is_(
                None
            )
        set_committed = update(UpdateRow).where(_is_unchanged(row), is_open)
        delete_unsent = delete(OutboxRow).where(
            OutboxRow.update_id == row.update_id, IS_UNSENT
        )
        await commit.prepare(self.rows)
        async with self.sessions.begin() as session:
            if await count_changed(
                session, set_committed.values(state=UpdateState.ANSWERED, error=error)
            ):
                if error is not None:
                    await session.execute(delete_unsent)
                await self._carry_out(session, row, commit)
            else:  # an earlier try of this commit succeeded, or the turn was taken over
                stored = select(UpdateRow.state, UpdateRow.error).where(
                    _is_unchanged(row)
                )
                if (await session.execute(stored)).one_or_none() != (
                    UpdateState.ANSWERED,
                    error,
                ):
                    raise TurnTaken
        row.error = error

    async def _carry_out(
        self, session: AsyncSession, row: UpdateRow, commit: Commit
    ) -> None:
        transaction = Transaction(
            session=session,
            accepted_at=commit.fence.accepted_at,
            now=self.now(),
            trace_rows=self.rows,
            messages=[],
        )
        await commit.carry_out(transaction, trace_delay=TRACE_DELAY)
        if self.budgets is not None:
            await self.budgets.settle_in(session, row.update_id)
        for message in commit.outgoing:
            # Clear an id left by a failed commit: another message may have it by now.
            message.id = cast("int", None)
            message.update_id = row.update_id
        session.add_all(commit.outgoing)

    async def end(self, row: UpdateRow, trace: TraceRecord | None = None) -> None:
        """End a turn whose messages are sent, and add the delivery to its stored trace.

        Delete the content of its updates; after an error set the update aside instead. The trace of
        a user whose data were deleted meanwhile is not stored any more, so nothing is added.

        Raises:
            TurnTaken: another process has begun the turn.
        """
        is_committed = UpdateRow.state == UpdateState.ANSWERED
        state = UpdateState.DONE if row.error is None else UpdateState.SET_ASIDE
        end = (
            update(UpdateRow)
            .where(_is_unchanged(row), is_committed)
            .values(state=state)
        )
        delivered = await self.rows.prepare_delivery(trace)
        async with self.sessions.begin() as session:
            if not await count_changed(session, end):
                raise TurnTaken
            has_trace = await self.rows.save_delivery(session, delivered, self.now())
            if row.error is None:
                # Only a turn stored by `commit` has a trace; without one, this is looked up.
                await _delete_content(session, row.update_id, has_turn=has_trace)

    async def list_set_aside(self) -> Sequence[UpdateRow]:
        """Return the failed updates that were set aside, the oldest first."""
        query = select(UpdateRow).where(UpdateRow.state == UpdateState.SET_ASIDE)
        return await self._values(query.order_by(UpdateRow.update_id))

    async def schedule_retry(self, update_id: int) -> bool:
        """Schedule a retry of a set-aside update; return False if there is no such update."""
        is_set_aside = (UpdateRow.update_id == update_id) & (
            UpdateRow.state == UpdateState.SET_ASIDE
        )
        retry = (
            update(UpdateRow)
            .where(is_set_aside)
            .values(state=UpdateState.WAITING, tries=0, error=None)
        )
        async with self.sessions.begin() as session:
            if not await count_changed(session, retry):
                return False
            await session.execute(
                delete(OutboxRow).where(OutboxRow.update_id == update_id)
            )
        return True

    async def measure_backlog(self) -> Backlog:
        query = select(func.count(), func.min(UpdateRow.received_at)).where(
            IS_UNFINISHED
        )
        [(count, oldest)] = await self._rows(query)
        age = (self.now() - oldest).total_seconds() if oldest else 0.0
        return Backlog(count, max(0.0, age))


async def _delete_content(
    session: AsyncSession, update_id: int, *, has_turn: bool
) -> None:
    """End a turn's updates without payloads; if no turn is stored, clear all except ids."""
    values: dict[str, object] = {
        "payload": {},
        "calls": [],
        "error": None,
        "user_id": None,
    }
    if (
        not has_turn and await session.get(TurnRow, update_id) is None
    ):  # such as a command
        values = NO_PERSONAL_DATA
    updates = update(UpdateRow).where(UpdateRow.turn_id == update_id)
    await session.execute(updates.values(state=UpdateState.DONE, **values))
    # Messages without a stored turn, such as answers to commands, are no longer needed; those of
    # a referral are, for replies to them.
    is_unneeded = (OutboxRow.update_id == update_id) & OutboxRow.turn_id.is_(None)
    is_unneeded &= OutboxRow.referral_id.is_(None)
    await session.execute(delete(OutboxRow).where(is_unneeded))


def _is_unchanged(row: UpdateRow) -> ColumnElement[bool]:
    """Return the condition that no process has begun the turn since `row` was read."""
    return (UpdateRow.update_id == row.update_id) & (UpdateRow.epoch == row.epoch)
