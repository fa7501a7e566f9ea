"""The span of a turn's trace, and the prompts that it names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self

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
    def trace(self) -> Any:
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
