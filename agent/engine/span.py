"""The span of a turn's trace, and a whole trace as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, Self

from agent.engine.messages import Usage

SpanType = Literal["agent", "generation", "tool", "retriever", "guardrail", "span"]
Level = Literal["DEFAULT", "WARNING", "ERROR"]
ScoreType = Literal["NUMERIC", "CATEGORICAL", "BOOLEAN"]


@dataclass(frozen=True, slots=True)
class PromptRef:
    """Name the prompt that a generation was made with.

    `version` counts up in prompt management; a prompt of the repository has its own version and
    `is_fallback`.
    """

    name: str
    version: int
    label: str = ""
    is_fallback: bool = True

    @property
    def origin(self) -> str:
        """Return its source and its version there: `repository:3`, `langfuse:5`."""
        return f"{'repository' if self.is_fallback else 'langfuse'}:{self.version}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text for a model, and which version of which prompt it is."""

    text: str
    ref: PromptRef

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class SpanRecord:
    """One node of a trace. Ids are 16 hex digits, times nanoseconds since the epoch (UTC).

    Of a generation `costs` are US dollars by bucket of tokens (`input`, `input_cached_tokens`,
    `output`), `tools` what it might call, and `first_token_ns` when its answer began.
    """

    span_id: str
    parent_id: str | None
    name: str
    kind: SpanType
    started_ns: int
    ended_ns: int | None = None
    input: object = None
    output: object = None
    metadata: dict[str, Any] = field(default_factory=dict)
    level: Level = "DEFAULT"
    model: str | None = None
    model_parameters: Mapping[str, Any] | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    costs: Mapping[str, float] | None = None
    prompt: PromptRef | None = None
    tools: tuple[Any, ...] = ()
    first_token_ns: int | None = None

    @property
    def seconds(self) -> float:
        """Return how long it took; 0 while it is open."""
        return ((self.ended_ns or self.started_ns) - self.started_ns) / 1e9


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """A score of a trace. The id is fixed by trace and name: the same again replaces."""

    name: str
    value: float | str
    kind: ScoreType
    comment: str = ""


@dataclass(slots=True)
class TraceRecord:
    """A whole trace, the root first and every parent before its children.

    `trace_id` is 32 hex digits; `session` and `user` are keyed hashes. `names` are what the bot
    knows people of this conversation to be called: they are masked, not shown. `name` is what the
    turn was (`chat`, `ask`, ...), `tags` what it is found by. Of one that `is_hidden` what was said
    is not kept.
    """

    trace_id: str
    session: str
    user: str
    names: tuple[str, ...] = ()
    spans: list[SpanRecord] = field(default_factory=list)
    scores: dict[str, ScoreRecord] = field(default_factory=dict)
    name: str = "chat"
    tags: tuple[str, ...] = ()
    is_hidden: bool = False

    @property
    def root(self) -> SpanRecord:
        """The span of the turn itself."""
        return self.spans[0]


class Span:
    """One node of a trace, open until its context ends. This one keeps nothing.

    `agent/tracing` derives one that records. Leaving the context by an exception (cancellation
    included) sets level ERROR and the metadata `error_type` to the exception's type name; its text
    and stack never leave the process.
    """

    __slots__ = ()

    recording: ClassVar[bool] = False
    """True if anything is kept: values that are costly to build are built only then."""

    @property
    def trace_id(self) -> str | None:
        """Return the id of the trace (32 hex digits), None when nothing is traced."""
        return None

    @property
    def span_id(self) -> str | None:
        """Return the id of this span (16 hex digits), None when nothing is traced."""
        return None

    @property
    def trace(self) -> TraceRecord | None:
        """Return the trace as far as it is recorded, None when nothing is traced."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        return None

    def child(
        self,
        name: str,
        type: SpanType,
        *,
        input: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "Span":
        """Open a span below this one."""
        return self

    def update(self, **fields: Any) -> None:
        """Add to what is known of this span: metadata is merged, the rest replaced, None ignored.

        Fields are `name`, `input`, `output`, `metadata`, `level`; of a generation also `model`,
        `model_parameters`, `usage` (tokens), `costs` (US dollars by bucket), `prompt`, `tools` and
        `first_token_ns`.
        """

    def score(self, name: str, value: float | str, type: ScoreType, comment: str = "") -> None:
        """Score the trace. The score's id is fixed by trace and name: scoring twice replaces."""


NO_SPAN: Final = Span()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScore:
    """A score of a trace as it is sent; one without a value was taken back."""

    score_id: str
    trace_id: str
    observation_id: str
    name: str
    value: float | str | None
    kind: ScoreType
    comment: str
    at: datetime
