"""Put onto the root of a turn's trace its outcome, level, retries, errors, prompt and usage.

The user, the time and the message are there from its beginning (`bot/turn.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from agent.engine.limits import Ledger
from agent.engine.loop import AgenticResponse
from agent.engine.span import Level, PromptRef, Span

Outcome = Literal["answered", "salvaged", "refused", "fallback", "failed", "care", "stopped"]
"""A valid answer (without a model: by rules); what was valid of one; the model declined; the
fallback or the best passages because the model failed; an apology; help, and no model asked; what
was written until the person stopped it."""

BUDGET_ERROR: Final = "budget"
"""The error type of a turn that the day's budget left without a model."""

LEVELS: Final[Mapping[Outcome, Level]] = {"fallback": "WARNING", "failed": "ERROR"}


class Traced(Protocol):
    """The part of a reply that the trace shows."""

    @property
    def shown(self) -> str: ...  # noqa: D102 - as in Reply
    @property
    def outcome(self) -> Outcome: ...  # noqa: D102
    @property
    def retries(self) -> int: ...  # noqa: D102
    @property
    def error_types(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def prompt(self) -> PromptRef | None: ...  # noqa: D102


def record_turn(span: Span, reply: Traced) -> None:
    """Record the reply of a turn on its root span, as the list of traces shows and filters it.

    The score `grounding` is the share of attempts that named nothing but what tools returned.
    """
    retries, errors = reply.retries, reply.error_types
    span.update(output=reply.shown)
    record_outcome(span, reply.outcome, retries=retries, error_types=errors, prompt=reply.prompt)
    invented = min(invented_attempts(errors), retries + 1)
    span.score("structured_retries", retries, "NUMERIC")
    span.score("outcome", reply.outcome, "CATEGORICAL")
    span.score("grounding", 1 - invented / (retries + 1), "NUMERIC")
    if errors:
        span.score("first_error", errors[0], "CATEGORICAL")


def error_types(response: AgenticResponse[Any]) -> tuple[str, ...]:
    """List the errors of the attempts, in order, and that of the turn itself if it broke off."""
    if response.ok or response.outcome in response.error_types:
        return response.error_types
    return (*response.error_types, response.outcome)


def invented_attempts(error_types: Sequence[str]) -> int:
    """Count the attempts that named what no tool returned, repetitions of them included."""
    count, invented = 0, False
    for kind in error_types:
        invented = kind == "grounding" or (invented and kind == "degenerate")
        count += invented
    return count


def record_outcome(
    span: Span,
    outcome: Outcome,
    *,
    retries: int,
    error_types: Sequence[str] = (),
    prompt: PromptRef | None = None,
) -> None:
    """Record the outcome of a turn, or of a look-up within one, on its span, to be filtered by."""
    metadata: dict[str, Any] = {
        "outcome": outcome,
        "retried": "yes" if retries else "no",
        "retry_count": retries,
        "error_types": ",".join(error_types),
    }
    if prompt is not None:
        metadata |= {
            "prompt_name": prompt.name,
            "prompt_version": prompt.origin,
            "prompt_is_fallback": prompt.is_fallback,
        }
    if prompt is not None and prompt.label:
        metadata["prompt_label"] = prompt.label
    span.update(metadata=metadata, level=LEVELS.get(outcome))


def record_ledger(span: Span, ledger: Ledger) -> None:
    """Record the usage of a turn on its root span; also when it was cancelled."""
    span.update(
        metadata={
            "llm_calls": ledger.spent.requests,
            "tool_calls": ledger.tool_calls,
            "tool_errors": ledger.tool_errors,
            "cost_usd": round(ledger.spent.cost_usd, 6),
        }
    )
