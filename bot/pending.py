"""The turn of an update until its answer is committed: what it says, and what it changes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime

from agent.engine.limits import NOTHING_SPENT, Ledger, Spent
from agent.engine.run import Stop
from agent.tracing.records import TraceRecord
from agent.turn import Fact
from bot.budgets import UNLIMITED, Allowance
from bot.outgoing import Delivery
from db.models import OutboxRow
from db.records import EndedTurn


@dataclass(slots=True)
class Placeholder:
    """The message of a group that becomes the answer; None: there is none (yet)."""

    message_id: int | None = None


@dataclass(slots=True)
class TurnState:
    """The state of a turn while it runs: its usage, its progress message, how others stop it.

    `before` and `trace` are of tries that a correction made void: their usage still counts. All
    tries show their answer in the message of `placeholder`. `facts` are those of the user, if they
    were read before the turn began.
    """

    stop: Stop = field(default_factory=Stop)
    before: Spent = NOTHING_SPENT
    trace: TraceRecord | None = None
    ledger: Ledger | None = None
    placeholder: Placeholder = field(default_factory=Placeholder)
    facts: Sequence[Fact] | None = None
    allowance: Allowance = UNLIMITED
    is_forgotten: bool = False

    @property
    def spent(self) -> Spent:
        """What was used so far, by all tries."""
        return self.ledger.spent if self.ledger else self.before


@dataclass(slots=True)
class PendingTurn:
    """The turn of an update as it is handled: its messages, and what is stored with them.

    It `is_open` until it is handled: a correction is taken into it until then. `delivered` is told
    what became of its messages.
    """

    update_id: int
    epoch: int
    tries: int = 1
    accepted_at: datetime | None = None
    state: TurnState = field(default_factory=TurnState)
    messages: list[OutboxRow] = field(default_factory=list)
    ended: list[EndedTurn] = field(default_factory=list)
    delivered: Callable[[Delivery], None] = lambda delivery: None
    is_open: bool = True

    @property
    def traces(self) -> list[TraceRecord]:
        """Return the traces of what ended in it."""
        return [ended.trace for ended in self.ended if ended.trace is not None]

    @property
    def is_retry(self) -> bool:
        """Whether the turn was begun before, and cut off or failed."""
        return self.tries > 1


_pending: ContextVar[PendingTurn | None] = ContextVar("pending turn", default=None)


def pending_turn() -> PendingTurn | None:
    """Return the turn that is handled here, None outside of one."""
    return _pending.get()


def is_retry() -> bool:
    """Return whether what is handled here was begun before, and cut off or failed."""
    turn = pending_turn()
    return turn is not None and turn.is_retry


@contextmanager
def pending(turn: PendingTurn) -> Iterator[None]:
    """Have what is said and changed in the block wait for the commit of a turn."""
    token = _pending.set(turn)
    try:
        yield
    finally:
        _pending.reset(token)
