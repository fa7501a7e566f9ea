"""The turn of an update until its answer is committed: its messages, and its changes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from agent.engine.limits import NOTHING_SPENT, Ledger, Spent
from agent.engine.run import Stop
from agent.tracing.records import TraceRecord
from agent.turn import Fact
from bot.outgoing import Delivery
from db.models import OutboxRow, UpdateRow
from db.records import EndedTurn


@dataclass(slots=True)
class Placeholder:
    """The message of a group that becomes the answer; None if there is none yet."""

    message_id: int | None = None


@dataclass(slots=True)
class TurnState:
    """The state of a turn in all its tries: its usage, its progress message, how others stop it.

    `spent_before` and `trace` are those of earlier tries, whose usage still counts. `facts` are
    those of the user, if they were read before the turn began.
    """

    stop: Stop = field(default_factory=Stop)
    spent_before: Spent = NOTHING_SPENT
    trace: TraceRecord | None = None
    ledger: Ledger | None = None
    placeholder: Placeholder = field(default_factory=Placeholder)
    facts: Sequence[Fact] | None = None
    is_forgotten: bool = False

    @property
    def spent(self) -> Spent:
        """Return the usage of all tries so far."""
        return self.ledger.spent if self.ledger else self.spent_before

    def restart(self) -> None:
        """Prepare for another try."""
        self.spent_before, self.ledger, self.stop = self.spent, None, Stop()


@dataclass(slots=True)
class PendingTurn:
    """The turn of an update while it is handled: its messages, and the turns stored with them.

    `on_delivery` is called with the result of sending the messages.
    """

    update: UpdateRow
    state: TurnState = field(default_factory=TurnState)
    messages: list[OutboxRow] = field(default_factory=list)
    ended: list[EndedTurn] = field(default_factory=list)
    on_delivery: Callable[[Delivery], None] = lambda delivery: None

    @property
    def traces(self) -> list[TraceRecord]:
        """Return the traces of the turns that ended in it."""
        return [ended.trace for ended in self.ended if ended.trace is not None]


_pending: ContextVar[PendingTurn | None] = ContextVar("pending turn", default=None)


def pending_turn() -> PendingTurn | None:
    """Return the turn that is handled in this context, None outside of one."""
    return _pending.get()


def is_retry() -> bool:
    """Return whether an earlier try of the turn in this context was cut off or failed."""
    turn = pending_turn()
    return turn is not None and turn.update.tries > 1


@contextmanager
def set_pending_turn(turn: PendingTurn) -> Iterator[None]:
    """Collect the messages and changes made in the block for the commit of a turn."""
    token = _pending.set(turn)
    try:
        yield
    finally:
        _pending.reset(token)
