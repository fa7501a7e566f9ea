"""The journal of turns: what their steps returned, so that a turn that is run again goes on."""

import io
import pickle
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from typing import Any, Final, TypeVar, cast

from agent.engine.limits import NOTHING_SPENT
from agent.engine.run import StepsChanged
from agent.engine.span import TraceRecord
from agent.repositories import (
    BegunTurn,
    EndedTurn,
    Step,
    StoredMessage,
    TurnRecord,
    TurnRepository,
    TurnTaken,
    UpdateRepository,
)
from agent.turn import Change
from bot.telegram.drafts import Placeholder
from bot.turn import Course, retry_forever

R = TypeVar("R")

SEND_STEP: Final = "telegram."
"""How the names of steps begin in which something is sent."""
SUPERSEDED: Final = -1
"""The number of the step that holds what tries used which a further message made void."""
PLACEHOLDER: Final = -2
"""The number of the step that holds the message in which an answer forms."""
HELD_SECONDS: Final = 0.5
"""How long after a look, or a record, a turn is taken for ours when a step begins."""


@dataclass(slots=True)
class RunningTurn:
    """The turn of an update: its recorded steps by number, and what is to be kept at its end.

    `interruptions` is how often it began before this process ran it. It `is_open` until something
    is sent in it: what belongs to it is taken along until then.
    """

    update_id: int
    epoch: int
    steps: dict[int, Step]
    accepted_at: datetime | None = None
    interruptions: int = 0
    course: Course = field(default_factory=Course)
    is_open: bool = True
    ended: list[EndedTurn] = field(default_factory=list)
    held_at: float = field(default_factory=time.monotonic)
    """When the database last said that the turn is still ours."""
    _next: int = 0

    @classmethod
    def of(cls, begun: BegunTurn) -> "RunningTurn":
        """The turn that begins."""
        update, steps = begun.update, {step.number: step for step in begun.steps}
        before, placeholder = steps.pop(SUPERSEDED, None), steps.pop(PLACEHOLDER, None)
        course = Course(
            before=pickle.loads(before.result) if before else NOTHING_SPENT,  # noqa: S301
            placeholder=Placeholder(int(placeholder.result) if placeholder else None),
        )
        interruptions = max(0, update.epoch - 1 - (before is not None))
        turn = cls(update.update_id, update.epoch, steps, update.received_at, interruptions, course)
        turn.is_open = not turn.has_sent
        if turn.has_sent:  # that message is the answer now
            course.placeholder = Placeholder()
        return turn

    def superseded(self) -> Step:
        """What of this try is recorded when it is void: what was spent."""
        return Step(self.update_id, SUPERSEDED, "superseded", pickle.dumps(self.course.spent))

    def rewind(self) -> None:
        """Run it from its first step again."""
        self._next = 0
        self.ended.clear()
        self.course.ledger = None

    def number(self) -> int:
        """The number of the step that begins now."""
        self._next += 1
        return self._next - 1

    @property
    def has_sent(self) -> bool:
        """Whether a step in which something is sent is recorded."""
        return any(step.name.startswith(SEND_STEP) for step in self.steps.values())


_running: ContextVar[RunningTurn | None] = ContextVar("running turn", default=None)


def running_turn() -> RunningTurn | None:
    """The turn that is running here, None outside of one."""
    return _running.get()


@contextmanager
def running(turn: RunningTurn | None) -> Iterator[None]:
    """Have steps belong to a turn, or to none."""
    token = _running.set(turn)
    try:
        yield
    finally:
        _running.reset(token)


@dataclass(frozen=True, slots=True)
class StepJournal:
    """Records the steps of the turn that is running; outside of one they simply run."""

    updates: UpdateRepository
    turns: TurnRepository

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Return what `run` returns; from the record if this step was run before.

        What has run is recorded however long the database refuses: it is never run twice for that.

        Raises:
            StepsChanged: another step is recorded at this place of the turn.
            TurnTaken: another process has begun the turn again.
        """
        turn = _running.get()
        if turn is None:
            return await run()
        number = turn.number()
        turn.is_open = turn.is_open and not name.startswith(SEND_STEP)
        if (known := turn.steps.get(number)) is not None:
            return cast("R", recorded_result(known, name))
        if time.monotonic() - turn.held_at > HELD_SECONDS:
            await retry_forever(lambda: self.updates.hold(turn.update_id, turn.epoch))
        with running(None):
            result = await run()
        step = Step(turn.update_id, number, name, as_recorded(result))
        await retry_forever(lambda: self.updates.record(step, turn.epoch))
        turn.steps[number], turn.held_at = step, time.monotonic()
        return result

    async def keep_placeholder(self, message_id: int) -> None:
        """Keep in which message the answer of the turn that is running forms."""
        turn = _running.get()
        if turn is None:
            return
        step = Step(turn.update_id, PLACEHOLDER, "placeholder", str(message_id).encode())
        with suppress(TurnTaken):  # the turn itself will be told at its next step
            await retry_forever(lambda: self.updates.record(step, turn.epoch))

    async def keep(
        self,
        record: TurnRecord,
        said: Sequence[StoredMessage] = (),
        trace: TraceRecord | None = None,
        changes: Sequence[Change] = (),
    ) -> None:
        """Keep what a turn came to, together with its end; outside of one at once."""
        turn = _running.get()
        if turn is None:
            await self.turns.record(record, said, trace, changes)
        else:
            turn.ended.append(EndedTurn(record, tuple(said), trace, tuple(changes)))

    async def change(self, changes: Sequence[Change]) -> None:
        """Change what is kept of people with the end of a turn; outside of one at once."""
        turn = _running.get()
        if turn is None:
            await self.turns.change(changes)
        else:
            turn.ended.append(EndedTurn(None, changes=tuple(changes)))


class _ByName(pickle.Pickler):
    """Writes records by the names of their fields: the next release may have others between."""

    def reducer_override(self, value: object) -> Any:
        """See `pickle.Pickler`."""
        if not is_dataclass(value) or isinstance(value, type):
            return NotImplemented
        named = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        return _made, (type(value), named)


def _made(kind: type[R], named: dict[str, object]) -> R:
    return kind(**named)


def as_recorded(result: object) -> bytes:
    """What is recorded of what a step returned."""
    written = io.BytesIO()
    _ByName(written).dump(result)
    return written.getvalue()


def recorded_result(step: Step, name: str) -> object:
    """What a step returned.

    Raises:
        StepsChanged: it is another step, or what it returned is not understood any more.
    """
    if step.name != name:
        raise StepsChanged(name)
    try:
        return pickle.loads(step.result)  # noqa: S301 - nobody else writes to this table
    except Exception:  # an earlier release recorded other fields
        raise StepsChanged(name) from None
