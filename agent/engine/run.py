"""The run of a turn: its models, limits, ledger, deadline and span, carried through the engine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from agent.engine.errors import DeadlinePassed, LimitReached, Stopped
from agent.engine.limits import NOTHING_SPENT, Ledger, Limits, Spent
from agent.engine.messages import LLM, Message
from agent.engine.span import NO_SPAN, Prompt, PromptRef, Span

if TYPE_CHECKING:  # `Run` alone is `Run[Any]`; a default is known to typing from 3.13 on
    from typing_extensions import TypeVar as TypeVarWithDefault

    D = TypeVarWithDefault("D", default=Any)
else:
    D = TypeVar("D")

INSTRUCTIONS: Final = "You are a helpful assistant."

ShowDraft = Callable[[Callable[[], str]], None]
"""Takes what makes a draft, in Markdown, whenever one is to be shown; empty: nothing yet."""


class Stop:
    """Ends the work on a question from outside: the part that was grounded is its answer."""

    def __init__(self) -> None:
        self.is_asked = False
        self._working: asyncio.Timeout | None = None

    def ask(self) -> None:
        """End the work now, in the event loop that it runs in; work that begins later, at once."""
        self.is_asked = True
        if self._working is not None:
            self._working.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Do the work of the block until it is done, or is to stop.

        Raises:
            Stopped: it is to stop.
        """
        if self.is_asked:
            raise Stopped
        try:
            async with asyncio.timeout(None) as self._working:
                yield
        except TimeoutError:
            if self._working is None or not self._working.expired():
                raise
            raise Stopped from None
        finally:
            self._working = None


@dataclass(frozen=True, slots=True)
class Run(Generic[D]):
    """One turn: make one for each message that is answered.

    `models` are asked in order, the next when one is down. `instructions` open the conversation,
    `history` holds earlier messages. Requests to models count in the `ledger` and end at the
    `deadline` (a time of the event loop), `limits.seconds` after a question at the latest. `deps`
    are the dependencies of tools and rules; the engine only hands them on. `show` takes drafts of
    the answer, `stop` ends the work.
    """

    models: Sequence[LLM] = ()
    _: KW_ONLY
    instructions: str | Prompt = INSTRUCTIONS
    history: Sequence[Message] = ()
    limits: Limits = field(default_factory=Limits)
    ledger: Ledger = field(default_factory=Ledger)
    span: Span = NO_SPAN
    deadline: float | None = None
    deps: D = None  # type: ignore[assignment]
    show: ShowDraft | None = None
    stop: Stop = field(default_factory=Stop)

    def __post_init__(self) -> None:
        is_sequence = isinstance(self.models, Sequence)
        if not is_sequence or not all(hasattr(model, "model") for model in self.models):
            raise TypeError(f"models must be like [LLMService(model=...)], not {self.models!r}")

    def turn(
        self,
        *,
        limits: Limits | None = None,
        span: Span = NO_SPAN,
        history: Sequence[Message] = (),
        show: ShowDraft | None = None,
        stop: Stop | None = None,
        before: Spent = NOTHING_SPENT,
    ) -> "Run[D]":
        """Return the run of one turn, within `limits` and with a ledger of its own.

        `before` is the use of earlier tries. Where no request is allowed there is no model to ask.
        """
        limits = self.limits if limits is None else limits
        return replace(
            self,
            models=self.models if limits.requests else (),
            history=history,
            limits=limits,
            ledger=Ledger(prices=self.ledger.prices, ceiling=limits, before=before),
            show=show,
            stop=stop or Stop(),
            span=span,
        )

    def of_tool(self, span: Span) -> "Run[D]":
        """Return the run that a tool is given, traced on `span`."""
        bare = replace(self, instructions=INSTRUCTIONS, history=(), show=None, stop=Stop())
        return replace(bare, span=span)

    def begun(self) -> "Run[D]":
        """Return the run with its deadline set; needs a running event loop."""
        ends = asyncio.get_running_loop().time() + self.limits.seconds
        return replace(self, deadline=ends if self.deadline is None else min(ends, self.deadline))

    @property
    def prompt(self) -> PromptRef | None:
        """Return the prompt that the instructions were made of, if that is known."""
        return self.instructions.ref if isinstance(self.instructions, Prompt) else None

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the deadline, never negative; needs a running event loop."""
        if self.deadline is None:
            return self.limits.seconds
        return max(0.0, self.deadline - asyncio.get_running_loop().time())

    def require_request(self) -> None:
        """Raise LimitReached if the turn may make no further request to a model."""
        if self.seconds_left <= 0:
            raise DeadlinePassed
        if limit := self.ledger.exhausted(self.limits):
            raise LimitReached(f"this turn has used up its {limit}")
