"""What a turn carries through the engine: one object for all that is asked on its behalf.

Its journal records the steps of a turn, so that one that was interrupted goes on. Its prompts are
templates with Langfuse's `{{variable}}` syntax.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Final, Protocol, TypeVar

from agent.engine.errors import DeadlinePassed, LimitReached, Stopped
from agent.engine.limits import NOTHING_SPENT, UNLIMITED, Allowance, Ledger, Limits, Spent
from agent.engine.messages import LLM, Message, ToolCall, without_images
from agent.engine.span import NO_SPAN, PromptRef, Span
from agent.text import pattern

R = TypeVar("R")

VARIABLE: Final = pattern(r"\{\{([^{}\"\n]*)\}\}")
"""What stands for a value. JSON in an example is none: it holds quotation marks or line breaks."""

INSTRUCTIONS: Final = "You are a helpful assistant."
REPLAYED: Final = {"replayed": True}
"""The metadata of a span whose step came from the journal, after an interruption of the turn."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A template, and which version of which prompt it is."""

    text: str
    ref: PromptRef

    def render(self, **values: str) -> str:
        """Fill in the variables; the values stand in the system message as they are.

        Raises:
            KeyError: the template has a variable that is not given.
        """
        return render(self.text, values)


class Prompts(Protocol):
    """Where the prompts of a turn come from."""

    def get(self, name: str) -> Prompt:
        """Return the prompt to use now, at once: nothing is waited for.

        Raises:
            KeyError: this product has no prompt of that name.
        """


def variables(template: str) -> tuple[str, ...]:
    """List the names of a template's variables, each once, in the order they come."""
    return tuple(dict.fromkeys(name[1].strip() for name in VARIABLE.finditer(template)))


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace a template's variables; what is put in is left as it is, braces and all.

    Raises:
        KeyError: the template has a variable without a value.
    """
    return VARIABLE.sub(lambda found: values[found[1].strip()], template)


class Journal(Protocol):
    """Records what the steps of a turn returned.

    When a turn is run again after an interruption, steps that are recorded return what they
    returned then, without running. So between steps a turn depends on nothing but their results,
    and steps are begun in the same order each time.
    """

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Return what `run` returns, plain data; from the record if this step was run before.

        Raises:
            StepsChanged: another step is recorded at this place.
        """


class StepsChanged(BaseException):
    """A turn that is run again begins another step than the one that is recorded there.

    So it was when an earlier release began the turn, or somebody was let in meanwhile. No
    `Exception`, as a cancellation is none: whoever runs turns begins this one anew, nobody else is
    to take it for the failure of what the step did.
    """


class Stop:
    """Ends the work on a question from outside: what was found until then is its answer."""

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


ShowDraft = Callable[[Callable[[], str]], None]
"""Takes what makes a draft, in Markdown, whenever one is to be shown; empty: nothing yet."""
Progress = Callable[[Sequence[ToolCall]], str]
"""Says what calls of tools do, for who waits for them."""


class NoJournal:
    """Every step simply runs."""

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Run it."""
        return await run()


NO_JOURNAL: Final = NoJournal()


@dataclass(frozen=True, slots=True)
class Run:
    """One turn: make one for each message that is answered.

    `models` are asked in order, the next when one is down. `instructions` open the conversation,
    `history` is what was said before; `prompt` says in the trace what the instructions were made
    of. Whatever a turn asks of models counts in its `ledger` and stops at its `deadline` (a time
    of the event loop), `limits.seconds` after each question at the latest. `allowance` is what the
    day's budgets leave, `prompts` where the look-ups of a turn take theirs from. `context` is
    what a product knows of who asks, for its tools, and `aside` other models by what they are asked
    for: the engine only hands them on. `show` takes drafts of the answer, and what `progress` says
    of tools; `stop` ends the work. Traces hold images only if it `traces_images`.
    """

    models: Sequence[LLM] = ()
    _: KW_ONLY
    instructions: str = INSTRUCTIONS
    history: Sequence[Message] = ()
    limits: Limits = field(default_factory=Limits)
    ledger: Ledger = field(default_factory=Ledger)
    span: Span = NO_SPAN
    journal: Journal = NO_JOURNAL
    deadline: float | None = None
    allowance: Allowance = UNLIMITED
    prompts: Prompts | None = None
    prompt: PromptRef | None = None
    context: object = None
    show: ShowDraft | None = None
    progress: Progress | None = None
    stop: Stop = field(default_factory=Stop)
    aside: Mapping[str, LLM] = field(default_factory=dict)
    traces_images: bool = False

    def __post_init__(self) -> None:
        is_sequence = isinstance(self.models, Sequence)
        if not is_sequence or not all(hasattr(each, "model") for each in self.models):
            raise TypeError(f"models must be like [LLMService(model=...)], not {self.models!r}")

    def turn(
        self,
        *,
        span: Span = NO_SPAN,
        journal: Journal = NO_JOURNAL,
        allowance: Allowance = UNLIMITED,
        history: Sequence[Message] = (),
        context: object = None,
        show: ShowDraft | None = None,
        stop: Stop | None = None,
        before: Spent = NOTHING_SPENT,
    ) -> "Run":
        """Make the run of one turn of this one, within `allowance` and with a ledger of its own.

        `before` is what it has used already, in tries that count no more. When the allowance is
        used up there is no model to ask.
        """
        limits = allowance.narrowed(self.limits)
        return replace(
            self,
            models=() if allowance.used_up else self.models,
            aside={} if allowance.used_up else self.aside,
            history=history,
            limits=limits,
            ledger=Ledger(prices=self.ledger.prices, ceiling=limits, before=before),
            show=show,
            stop=stop or Stop(),
            span=span,
            journal=journal,
            allowance=allowance if self.models else UNLIMITED,
            context=context,
        )

    def instructed(self, prompt: Prompt, **values: str) -> "Run":
        """Make the run of a question of its own: by this prompt, and with no history."""
        return replace(self, instructions=prompt.render(**values), prompt=prompt.ref, history=())

    def of_tool(self, span: Span) -> "Run":
        """Make the run that a tool is given, traced on `span`; the call itself is a step."""
        return replace(
            self,
            span=span,
            journal=NO_JOURNAL,
            instructions=INSTRUCTIONS,
            prompt=None,
            history=(),
            show=None,
            stop=Stop(),
        )

    def begun(self) -> "Run":
        """Make the same run with its deadline set; needs a running event loop."""
        ends = asyncio.get_running_loop().time() + self.limits.seconds
        return replace(self, deadline=ends if self.deadline is None else min(ends, self.deadline))

    def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return messages as a trace shows them."""
        return messages if self.traces_images else [*map(without_images, messages)]

    def tell(self, calls: Sequence[ToolCall]) -> None:
        """Show what calls of tools do, if it is to be shown."""
        if self.show is not None and self.progress is not None:
            said = self.progress(calls)
            self.show(lambda: said)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, never negative; needs a running event loop."""
        if self.deadline is None:
            return self.limits.seconds
        return max(0.0, self.deadline - asyncio.get_running_loop().time())

    @property
    def is_over_budget(self) -> bool:
        """Whether the day's budget is used up, by this turn or before it."""
        return self.allowance.after(self.ledger.spent).used_up is not None

    def require_request(self) -> None:
        """Raise LimitReached if the turn may make no further request to a model."""
        if self.seconds_left <= 0:
            raise DeadlinePassed
        if limit := self.ledger.exhausted(self.limits):
            raise LimitReached(f"this turn has used up its {limit}")

    async def step(self, name: str, work: Callable[[], Awaitable[R]], span: Span) -> R:
        """Take a step of the journal; what comes from its record is marked so on `span`.

        The span has the times then at which the step was taken.

        Raises:
            StepsChanged: another step is recorded at this place.
        """
        ran = False

        async def timed() -> tuple[R, int, int]:
            nonlocal ran
            ran, began = True, time.time_ns()
            return await work(), began, time.time_ns()

        result, began, ended = await self.journal.step(name, timed)
        if not ran:
            told: dict[str, Any] = {"metadata": REPLAYED}
            if span is not self.span:
                told |= {"started_ns": began, "ended_ns": ended}
            span.update(**told)
        return result
