"""What a turn came to, and how that stands on its trace: outcome, errors, scores, guards."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from agent.engine.limits import Ledger
from agent.engine.loop import AgenticResponse
from agent.engine.span import Level, PromptRef, Span
from agent.guard import clean, security_flags

Outcome = Literal["answered", "salvaged", "refused", "fallback", "failed"]
"""A valid answer (without a model: by rules); what was valid of one; the model declined; the house
sommelier or the best passages because the model failed; an apology."""

BUDGET: Final = "budget"
"""The error type of a turn that the day's budget left without a model."""

LEVELS: Final[Mapping[Outcome, Level]] = {"fallback": "WARNING", "failed": "ERROR"}


def error_types(response: AgenticResponse[Any]) -> tuple[str, ...]:
    """What was wrong with the attempts, in order, and with the turn itself if it broke off."""
    if response.ok or response.outcome in response.error_types:
        return response.error_types
    return (*response.error_types, response.outcome)


def invented_attempts(error_types: Sequence[str]) -> int:
    """How many attempts named what no tool returned; one that repeats such an answer is one too."""
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
    """Put what a turn, or a look-up within one, came to onto its span, to be filtered by."""
    metadata: dict[str, Any] = {
        "outcome": outcome,
        "retried": "yes" if retries else "no",
        "retry_count": retries,
        "error_types": ",".join(error_types),
    }
    if prompt is not None:
        metadata |= {
            "prompt_name": prompt.name,
            "prompt_version": prompt.version,
            "prompt_is_fallback": prompt.is_fallback,
        }
    if prompt is not None and prompt.label:
        metadata["prompt_label"] = prompt.label
    span.update(metadata=metadata, level=LEVELS.get(outcome))


def score_turn(
    span: Span, outcome: Outcome, *, retries: int, error_types: Sequence[str] = ()
) -> None:
    """Score the trace of a turn.

    `grounding` is the share of attempts that named nothing but what tools returned.
    """
    invented = min(invented_attempts(error_types), retries + 1)
    span.score("structured_retries", retries, "NUMERIC")
    span.score("outcome", outcome, "CATEGORICAL")
    span.score("grounding", 1 - invented / (retries + 1), "NUMERIC")


def record_ledger(span: Span, ledger: Ledger) -> None:
    """Put what a turn used onto its root span; also when it was cancelled."""
    span.update(
        metadata={
            "llm_calls": ledger.requests,
            "tool_calls": ledger.tool_calls,
            "tool_errors": ledger.tool_errors,
            "cost_usd": round(ledger.cost_usd, 6),
        }
    )


def guard_input(message: str, span: Span) -> str:
    """The cleaned message; what looks like an injection is recorded and answered like any other."""
    with span.child("guard.input", "guardrail") as guard:
        flags = security_flags(message)
        guard.update(output=flags, level="WARNING" if flags else None)
        if flags:
            span.update(metadata={"security_flags": ",".join(flags)})
        return clean(message)


def guard_output(response: AgenticResponse[Any], span: Span, output: object = None) -> None:
    """Record what grounding came to: the check itself is a part of the contract."""
    ungrounded = invented_attempts(response.error_types)
    with span.child("guard.output", "guardrail") as guard:
        guard.update(
            output=output,
            metadata={
                "ungrounded_attempts": ungrounded,
                "salvaged": response.outcome == "salvaged",
            },
            level="WARNING" if ungrounded else None,
        )
