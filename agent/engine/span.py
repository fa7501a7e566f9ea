"""What the code of a turn says to its trace: a span; and the one that keeps nothing."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypedDict, Unpack

from agent.engine.messages import Usage

SpanKind = Literal["agent", "generation", "tool", "retriever", "guardrail", "span"]
Level = Literal["DEFAULT", "WARNING", "ERROR"]
ScoreType = Literal["NUMERIC", "CATEGORICAL", "BOOLEAN"]


@dataclass(frozen=True, slots=True)
class PromptRef:
    """Which prompt a generation was made with.

    `version` counts up in prompt management; a prompt of the repository has its own version and
    `is_fallback`.
    """

    name: str
    version: int
    label: str = ""
    is_fallback: bool = True


class SpanUpdate(TypedDict, total=False):
    """What can be said of a span while it is open; None says nothing."""

    name: str | None
    output: object
    metadata: Mapping[str, Any] | None
    level: Level | None
    model: str | None
    model_parameters: Mapping[str, Any] | None
    usage: Usage | None
    cost_usd: float | None
    prompt: PromptRef | None


class Span(Protocol):
    """One node of a trace, open until its context ends.

    Leaving the context by an exception (cancellation included) sets level ERROR and the metadata
    `error_type` to the exception's type name; its text and stack never leave the process.
    """

    @property
    def trace_id(self) -> str | None:
        """The id of the trace (32 hex digits), None when nothing is traced."""
        ...

    @property
    def span_id(self) -> str | None:
        """The id of this span (16 hex digits), None when nothing is traced."""
        ...

    @property
    def recording(self) -> bool:
        """Whether anything is kept: what is costly to build is built only if so."""
        ...

    def child(
        self,
        name: str,
        kind: SpanKind,
        *,
        input: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager["Span"]:
        """Open a span below this one."""
        ...

    def update(self, **fields: Unpack[SpanUpdate]) -> None:
        """Add to what is known of this span; metadata is merged, the rest replaced."""
        ...

    def score(self, name: str, value: float | str, kind: ScoreType, comment: str = "") -> None:
        """Score the trace. The score's id is fixed by trace and name: scoring twice replaces."""
        ...


class NoSpan:
    """A span that keeps nothing; one object stands for all of them."""

    __slots__ = ()

    trace_id: Final = None
    span_id: Final = None
    recording: Final = False

    def __enter__(self) -> "NoSpan":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def child(
        self,
        name: str,
        kind: SpanKind,
        *,
        input: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "NoSpan":
        """Return this very span."""
        return self

    def update(self, **fields: Unpack[SpanUpdate]) -> None:
        """Keep nothing."""

    def score(self, name: str, value: float | str, kind: ScoreType, comment: str = "") -> None:
        """Keep nothing."""


NO_SPAN: Final = NoSpan()
