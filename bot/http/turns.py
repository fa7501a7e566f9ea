"""A call of the HTTP API as a turn: traced, within everyone's budget of the day, and counted.

Whoever holds the token is no person: what a person may use in a day does not hold for them.
"""

import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Final, TypeVar

from agent.desk import ResearchDesk
from agent.documents.answer import Answer
from agent.documents.passages import MODEL_FAILED, NO_MODEL
from agent.documents.quotes import Quotes
from agent.documents.refine import Refinement
from agent.engine.limits import NO_BUDGET, UNLIMITED, Allowance, Ledger
from agent.engine.span import Span
from agent.outcome import (
    BUDGET,
    Outcome,
    guard_input,
    record_ledger,
    record_outcome,
    score_turn,
)
from agent.repositories import TurnRecord
from agent.sommelier.service import Reply
from agent.tracing.recorder import Recorder
from bot.budgets import Budgets
from bot.look_ups import BEST_PASSAGES, is_over_budget, within
from bot.turn import patiently, unrecorded

Found = TypeVar("Found", Answer, Quotes)

log = logging.getLogger(__name__)

SESSION: Final = "api"
NOBODY: Final = 0
"""The chat and the person of a turn that came over HTTP; Telegram gives nobody this id."""


@dataclass(slots=True)
class ApiTurn:
    """A call that is being worked on at `desk`; failed until it is said to have ended."""

    desk: ResearchDesk
    ledger: Ledger
    span: Span
    allowance: Allowance
    budgets: Budgets | None = None
    outcome: Outcome = "failed"
    retries: int = 0
    error_types: tuple[str, ...] = ()

    @property
    def reply(self) -> Reply:
        """What the turn came to and took, without its text."""
        spent = self.ledger.spent
        return Reply(
            "",
            (),
            self.outcome,
            requests=spent.requests,
            retries=self.retries,
            tokens=spent.tokens,
            cost_usd=spent.cost_usd,
            error_types=self.error_types,
        )

    def end(self, outcome: Outcome, retries: int = 0, error_types: Sequence[str] = ()) -> None:
        """Say what the turn came to, on its trace too; the day's budget may be why."""
        over = is_over_budget(self.allowance, self.ledger.spent, outcome)
        self.outcome, self.retries = "fallback" if over else outcome, retries
        self.error_types = (*([BUDGET] if over else []), *error_types)
        record_outcome(self.span, self.outcome, retries=retries, error_types=self.error_types)
        score_turn(self.span, self.outcome, retries=retries, error_types=self.error_types)

    def told(self, found: Found) -> Found:
        """What was found, with the budget named where it is why no model answered."""
        note = self.budgets.note(self.allowance, self.reply) if self.budgets else None
        if note is None:
            return found
        why = f"{note.text} {BEST_PASSAGES}"

        def said(text: str) -> str:
            return text.replace(NO_MODEL, why).replace(MODEL_FAILED, why)

        if isinstance(found, Quotes):
            return replace(found, summary=said(found.summary), outcome=self.outcome)
        return replace(
            found,
            text=said(found.text),
            footnoted=said(found.footnoted),
            outcome=self.outcome,
            refinement=self.told_of(found.refinement),
        )

    def told_of(self, refinement: Refinement) -> Refinement:
        """A refinement, with the budget as its reason where that left no model to ask."""
        if self.allowance.used_up and refinement.fallback_reason == "no_model":
            return replace(refinement, fallback_reason="budget")
        return refinement


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiTurns:
    """Turns of those who hold the token; `user` stands for them in traces."""

    desk: ResearchDesk
    tracer: Recorder
    user: str
    budgets: Budgets | None = None
    record: Callable[[TurnRecord], Awaitable[None]] = unrecorded

    @asynccontextmanager
    async def open(self, question: str) -> AsyncIterator[ApiTurn]:
        """A turn on the trace; what it used is kept also when it fails."""
        turn_id, started = -1 - secrets.randbits(62), monotonic()
        with self.tracer.turn(input=question, session=SESSION, user=self.user) as span:
            guard_input(question, span)
            allowance = await self._allowance(turn_id)
            desk = within(self.desk, allowance)
            ledger = Ledger(prices=desk.prices, ceiling=desk.limits)
            turn = ApiTurn(desk, ledger, span, allowance, self.budgets)
            try:
                yield turn
            finally:
                record_ledger(span, turn.ledger)
                await self._keep(turn, turn_id, monotonic() - started)

    async def _allowance(self, turn_id: int) -> Allowance:
        if self.budgets is None or not self.budgets.everyone.is_set:
            return UNLIMITED
        budgets = replace(self.budgets, person=NO_BUDGET)
        try:
            return await patiently(lambda: budgets.allowance(turn_id, NOBODY))
        except Exception as error:
            log.warning("What was used today could not be read: %s", type(error).__name__)
            return UNLIMITED

    async def _keep(self, turn: ApiTurn, turn_id: int, seconds: float) -> None:
        spent = turn.ledger.spent
        ended = TurnRecord(
            turn_id=turn_id,
            chat_id=NOBODY,
            user_id=NOBODY,
            at=datetime.now(UTC),
            outcome=turn.outcome,
            seconds=seconds,
            requests=spent.requests,
            retries=turn.retries,
            tokens=spent.tokens,
            cost_usd=spent.cost_usd,
            error_types=turn.error_types,
            trace_id=turn.span.trace_id,
            root_id=turn.span.span_id,
        )
        try:
            await patiently(lambda: self.record(ended))
        except Exception as error:
            log.warning("What a call took could not be stored: %s", type(error).__name__)
