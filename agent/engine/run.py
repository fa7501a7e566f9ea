"""The run of a turn: the models, limits, usage, deadline and span that the engine needs."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Final, Generic, Literal, Self, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeVar  # with a default, which typing has from 3.13 on

from agent.engine.current_draft import CurrentDraft
from agent.engine.errors import Stopped
from agent.engine.messages import LLM, Message, TokenUsage

D = TypeVar("D", default=Any)

INSTRUCTIONS: Final = "You are a helpful assistant."

SpanType = Literal["agent", "generation", "tool", "retriever", "guardrail", "span"]
SpanLevel = Literal["DEFAULT", "WARNING", "ERROR"]
ScoreType = Literal["NUMERIC", "CATEGORICAL", "BOOLEAN"]
Costs = Mapping[str, float]
"""US dollars by bucket of tokens, as `TokenUsage.by_bucket` names them."""
MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one turn."""

    structured_output_max_retries: int = 2
    """The most further attempts after an invalid answer."""
    requests: int = 12
    """The most requests to models, including those that fail."""
    tool_calls: int = 16
    tokens: int = 100_000
    cost_usd: float = 0.50
    seconds: float = 120
    tool_seconds: float = 15
    """The seconds that one call of a tool may take."""
    answer_tokens: int = 1500
    """The tokens that a response may have. The limit rises after a truncated answer."""
    answer_tokens_ceiling: int = 6000
    """The highest value to which `answer_tokens` may rise in the turn."""
    result_chars: int = 12_000
    """The characters of one tool's result that a model is shown."""
    model_tries: int = 3
    """The most times that a failing model is asked before the next model is asked."""


class Price(BaseModel):
    """US dollars per million tokens. Cached tokens cost like the others if `cached` is None."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    prompt: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    completion: float = Field(ge=0, allow_inf_nan=False)

    def compute_costs(self, usage: TokenUsage) -> Costs:
        """Return the cost of `usage`."""
        cached = self.cached
        if cached is None:
            cached = self.prompt
        prices = {
            "input": self.prompt,
            "input_cached_tokens": cached,
            "output": self.completion,
            "output_reasoning_tokens": self.completion,
        }
        costs: dict[str, float] = {}
        for bucket, tokens in usage.by_bucket.items():
            costs[bucket] = tokens * prices[bucket] / MILLION
        return costs


@dataclass(frozen=True, slots=True)
class BilledUsage:
    """The requests, tokens and US dollars that count towards the budgets of a day."""

    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "BilledUsage") -> "BilledUsage":
        return BilledUsage(
            requests=self.requests + other.requests,
            tokens=self.tokens + other.tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


NOTHING_BILLED: Final = BilledUsage()


@dataclass(slots=True)
class Usage:
    """The requests, tokens and cost of a turn so far, including failed attempts."""

    requests: int = 0
    """All requests. They count towards the limits of the turn."""
    answered_requests: int = 0
    """The requests that a model has answered. Only these count towards the budgets of a day."""
    tool_calls: int = 0
    tool_errors: int = 0
    tokens: TokenUsage = field(default_factory=TokenUsage)
    cost_usd: float = 0.0
    prices: Mapping[str, Price] = field(default_factory=dict, repr=False)
    """The prices of models that the admin has set, by name."""
    billed_before: BilledUsage = NOTHING_BILLED
    """The usage of earlier tries to answer the same message.

    It counts towards the budgets of a day, but not towards the limits.
    """

    @property
    def billed(self) -> BilledUsage:
        """Return the usage that counts towards the budgets of a day."""
        billed = BilledUsage(
            requests=self.answered_requests,
            tokens=self.tokens.total_tokens,
            cost_usd=self.cost_usd,
        )
        return self.billed_before + billed

    def add(
        self,
        usage: TokenUsage,
        costs: Costs,
        *,
        is_answered: bool = True,
    ) -> None:
        """Count the tokens and the cost of a response, and its request if a model has answered."""
        if is_answered:
            self.answered_requests += 1
        self.tokens += usage
        self.cost_usd += sum(costs.values())

    def find_exhausted_limit(self, limits: Limits) -> str | None:
        """Return the name of the limit that forbids another request, or None if none does."""
        if self.requests >= limits.requests:
            return "requests"
        if self.tokens.total_tokens >= limits.tokens:
            return "tokens"
        if self.cost_usd >= limits.cost_usd:
            return "cost"
        return None


@dataclass(frozen=True, slots=True)
class PromptRef:
    """The name and version of a prompt."""

    name: str
    version: int
    """The version in Langfuse, or in this repository if `is_fallback`."""
    label: str = ""
    is_fallback: bool = True

    @property
    def origin(self) -> str:
        """Return the source of the prompt and its version there: `repository:3`, `langfuse:5`."""
        if self.is_fallback:
            return f"repository:{self.version}"
        return f"langfuse:{self.version}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text for a model, and the prompt from which it was made."""

    text: str
    ref: PromptRef

    def __str__(self) -> str:
        return self.text


class SpanFields(TypedDict, total=False):
    """The fields of a span. A field that is None changes nothing."""

    name: str | None
    input: object
    output: object
    metadata: Mapping[str, Any] | None
    """Metadata to add to those of the span. All other fields replace their values."""
    level: SpanLevel | None
    started_ns: int | None
    """Nanoseconds since the epoch, like `ended_ns` and `first_token_ns`."""
    ended_ns: int | None
    model: str | None
    """The model of a generation. Only a generation has this field and those below."""
    model_parameters: Mapping[str, Any] | None
    usage: TokenUsage | None
    cost_usd: float | None
    """The cost that counts towards the limits of the turn, even if the price is assumed."""
    costs: Costs | None
    """The costs at a known price, which the server of traces shows."""
    prompt: PromptRef | None
    tools: tuple[Any, ...]
    first_token_ns: int | None


class Span:
    """One node of a trace, open until its context ends. This class keeps nothing.

    `agent/tracing` has a subclass that records. If an exception leaves the context, that span gets
    the level ERROR and the name of the exception's type as metadata `error_type`. The text and the
    stack of the exception never leave the process. A cancelled span is no error: its metadata
    `outcome` is "stopped".
    """

    __slots__ = ()

    recording: ClassVar[bool] = False
    """Whether the span keeps what it is given. If not, values that take long need not be built."""
    trace: Any = None
    """The trace that is recorded, or None if nothing is traced."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        return None

    def child(
        self, name: str, type: SpanType, /, **fields: Unpack[SpanFields]
    ) -> "Span":
        """Open a span below this one."""
        return self

    def update(self, **fields: Unpack[SpanFields]) -> None:
        """Set fields of this span."""

    def score(
        self,
        name: str,
        value: float | str,
        type: ScoreType,
        comment: str = "",
    ) -> None:
        """Score the trace. A later score of the same name replaces this one."""


NO_SPAN: Final = Span()


class Stop:
    """Stops a turn from outside.

    The answer of a stopped turn is the grounded part that was written so far.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self._timeout: asyncio.Timeout | None = None

    def request(self) -> None:
        """Stop the watched block now, or when it is entered.

        Call this in the event loop of the block.
        """
        if self.is_requested:
            return  # a timeout that has been set to end now cannot be set again
        self.is_requested = True
        if self._timeout is not None:
            self._timeout.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Run the block until it ends, or raise Stopped if `request` is called."""
        seconds: float | None = None  # there is no time limit until `request` sets one
        if self.is_requested:
            seconds = 0
        try:
            async with asyncio.timeout(seconds) as self._timeout:
                yield
        except TimeoutError:
            if not self.is_requested:
                raise
            raise Stopped("the user has stopped this turn") from None
        finally:
            self._timeout = None


@dataclass(frozen=True, slots=True)
class Run(Generic[D]):
    """The context of one turn. Make one for each message that is answered."""

    models: Sequence[LLM] = ()
    """The models to ask in order. If one is down, the next one is asked."""
    _: KW_ONLY
    instructions: str | Prompt = INSTRUCTIONS
    """The system prompt."""
    history: Sequence[Message] = ()
    """The earlier messages of the chat."""
    limits: Limits = field(default_factory=Limits)
    usage: Usage = field(default_factory=Usage)
    """The requests to models so far, with their tokens and cost."""
    span: Span = NO_SPAN
    deadline: float | None = None
    """The time of the event loop at which requests end.

    It is at the latest `limits.seconds` after the turn began.
    """
    deps: D = None  # type: ignore[assignment]
    """The dependencies of tools and rules. The engine does not read them."""
    draft: CurrentDraft | None = None
    """The text that the user may read while the answer forms, or None if nobody reads it."""
    stop: Stop = field(default_factory=Stop)
    """Stops the turn from outside."""

    def for_turn(self, *, billed_before: BilledUsage = NOTHING_BILLED) -> "Run[D]":
        """Return the run with a usage and a stop of its own.

        `billed_before` is the usage of earlier tries to answer the same message.
        """
        usage = Usage(prices=self.usage.prices, billed_before=billed_before)
        return replace(self, usage=usage, stop=Stop())

    def for_tool(self, span: Span) -> "Run[D]":
        """Return the run for a call of a tool, which is traced on `span`.

        A model that the tool asks gets neither the instructions nor the history of the turn.
        """
        return replace(
            self,
            instructions=INSTRUCTIONS,
            history=(),
            draft=None,
            stop=Stop(),
            span=span,
        )

    def with_deadline(self) -> "Run[D]":
        """Return the run with its deadline set. This needs a running event loop."""
        now = asyncio.get_running_loop().time()
        deadline = now + self.limits.seconds
        if self.deadline is not None:
            deadline = min(deadline, self.deadline)
        return replace(self, deadline=deadline)

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the deadline, at least 0. This needs a running event loop."""
        if self.deadline is None:
            return self.limits.seconds
        now = asyncio.get_running_loop().time()
        return max(0.0, self.deadline - now)

    @property
    def requests_left(self) -> int:
        """Return the number of requests to models that are still allowed."""
        return max(0, self.limits.requests - self.usage.requests)
