"""A look-up as a turn: within its allowance, and what it came to for the trace and the record."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

from agent.desk import ResearchDesk
from agent.documents.passages import NO_MODEL
from agent.engine.limits import Allowance, Ledger, Spent
from agent.engine.run import REPLAYED
from agent.engine.span import Span
from agent.outcome import BUDGET, Outcome, record_outcome, score_turn
from agent.sommelier.service import Reply
from bot.telegram import texts
from bot.telegram.markdown import escape
from bot.telegram.research_shown import Apology, Shown

log = logging.getLogger(__name__)

T = TypeVar("T")

BEST_PASSAGES: Final = "These are the best passages, as they are."

LookUp = Callable[[ResearchDesk, Ledger, Span], Awaitable[T | Apology]]
"""What is looked up at a desk that keeps to the turn's allowance."""


def within(desk: ResearchDesk, allowance: Allowance) -> ResearchDesk:
    """The desk with what models and limits a turn is allowed."""
    models = () if allowance.used_up else desk.models
    return replace(desk, models=models, limits=allowance.narrowed(desk.limits))


def is_over_budget(allowance: Allowance, spent: Spent, outcome: Outcome) -> bool:
    """Whether the day's budget is why no model answered."""
    if outcome not in {"answered", "fallback"}:
        return False
    ended = bool(allowance.after(spent).used_up)
    return bool(allowance.used_up) or (ended and outcome == "fallback")


async def counted(look_up: Awaitable[T | Apology], ledger: Ledger) -> tuple[T | Apology, Spent]:
    """What was found, and what it took."""
    return await _calmly(look_up), ledger.spent


async def _calmly(look_up: Awaitable[T | Apology]) -> T | Apology:
    try:
        return await look_up
    except Exception:
        log.exception("A look-up failed")
        return Apology(texts.FAILED, "failed")


def unexcused(shown: Shown) -> Shown:
    """What was found without the remark that there is no model: there is one, but no budget."""

    def said(words: str) -> str:
        return words.replace(NO_MODEL, BEST_PASSAGES).replace(escape(NO_MODEL), BEST_PASSAGES)

    messages = (replace(each, markdown=said(each.markdown)) for each in shown.messages)
    return replace(shown, messages=tuple(messages), kept=said(shown.kept))


def reply_of(shown: Shown, spent: Spent, *, over_budget: bool) -> Reply:
    """The reply that is recorded and remembered."""
    return Reply(
        shown.kept,
        (),
        "fallback" if over_budget else shown.outcome,
        requests=spent.requests,
        retries=shown.retries,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
        error_types=(*([BUDGET] if over_budget else []), *shown.error_types),
    )


def record_spent(span: Span, spent: Spent) -> None:
    """Put what a look-up took onto its root span when it came from the journal."""
    took = {"llm_calls": spent.requests, "cost_usd": round(spent.cost_usd, 6)}
    span.update(metadata={**took, **REPLAYED})


def record(span: Span, reply: Reply) -> None:
    """What the turn came to, as the list of traces shows and filters it."""
    retries, errors = reply.retries, reply.error_types
    span.update(output=reply.text)
    record_outcome(span, reply.outcome, retries=retries, error_types=errors)
    score_turn(span, reply.outcome, retries=retries, error_types=errors)
