"""One turn of the sommelier: the model first, the house sommelier when it is not there or fails."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

from agent.engine.history import StoredMessage, window
from agent.engine.journal import NO_JOURNAL, Journal
from agent.engine.limits import UNLIMITED, Allowance, Ledger, Limits
from agent.engine.loop import AgenticResponse, generate_agentic_response, schema_text
from agent.engine.messages import LLM, Message
from agent.engine.outcome import (
    BUDGET,
    Outcome,
    error_types,
    guard_input,
    guard_output,
    record_ledger,
    record_outcome,
    score_turn,
)
from agent.engine.prices import KNOWN_PRICES, Prices
from agent.engine.span import Span
from agent.engine.tools import Tool, Toolbox, where
from agent.engine.trace_records import PromptRef
from agent.house_sommelier import HouseSommelier, Language, as_note, language_of, say
from agent.prompts import REPOSITORY, Prompt, Prompts, research_rules
from agent.sommelier.contract import SOMMELIER, in_language
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.tools import wine_tools
from agent.sommelier.wine import Catalogue

log = logging.getLogger(__name__)

DECLINED: Final = say("declined", "en")
FAILED: Final = say("failed", "en")
NO_MODEL: Final = as_note(say("no_model", "en"))
MODEL_DOWN: Final = as_note(say("model_down", "en"))


@dataclass(frozen=True, slots=True)
class Reply:
    """What the person gets: Markdown text, and the ids of the wines in it; and what it took."""

    text: str
    wine_ids: tuple[str, ...]
    outcome: Outcome
    requests: int = 0
    retries: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    error_types: tuple[str, ...] = ()
    answer: SommelierResponse | None = None


class Answerer(Protocol):
    """What a handler needs of the agent."""

    async def answer(
        self,
        message: str,
        *,
        history: Sequence[StoredMessage] = (),
        span: Span,
        journal: Journal = NO_JOURNAL,
        allowance: Allowance = UNLIMITED,
    ) -> Reply:
        """The reply to `message`, within `allowance`. Never raises, except when cancelled."""
        ...


class Sommelier:
    """Answers messages from a catalogue, by a model or by rules.

    `research_tools` are offered beside those of the catalogue: documents, quotes, places. `prices`
    say what a model costs; each turn is asked with the prompt that `prompts` have when it begins.
    """

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        models: Sequence[LLM] = (),
        limits: Limits | None = None,
        research_tools: Sequence[Tool] = (),
        prompts: Prompts = REPOSITORY,
        prices: Prices = KNOWN_PRICES,
    ) -> None:
        self._toolbox = Toolbox([*wine_tools(catalogue), *research_tools])
        self._research_rules = research_rules([tool.name for tool in research_tools])
        self._schema = schema_text(SOMMELIER)
        self._prompts = prompts
        self._prices = prices
        self._models = models
        self._limits = limits or Limits()
        self._house = HouseSommelier()

    async def answer(
        self,
        message: str,
        *,
        history: Sequence[StoredMessage] = (),
        span: Span,
        journal: Journal = NO_JOURNAL,
        allowance: Allowance = UNLIMITED,
    ) -> Reply:
        """The reply to `message`, traced on `span`. Never raises, except when cancelled.

        When the allowance is used up no model is asked, and `BUDGET` is among the error types.
        """
        prompt = self._prompts.get("sommelier")
        limits = allowance.narrowed(self._limits)
        asked = _Asked(guard_input(message, span), window(history), span, journal, prompt, limits)
        ledger = Ledger(prices=self._prices, ceiling=limits)
        response: AgenticResponse[SommelierResponse] | None = None
        try:
            if self._models and not allowance.used_up:
                response = await self._generate(self._models, asked, ledger)
            over_budget = bool(self._models and allowance.after(ledger.spent).used_up)
            reply = await self._reply(response, asked, ledger, over_budget=over_budget)
        except Exception as error:
            log.error("a turn failed: %s %s", type(error).__name__, where(error))  # noqa: TRY400
            reply = Reply(FAILED, (), "failed", error_types=(type(error).__name__,))
        finally:
            record_ledger(span, ledger)
        reply = replace(
            reply,
            requests=ledger.requests,
            retries=response.retry_count if response else 0,
            tokens=ledger.usage.total_tokens,
            cost_usd=ledger.cost_usd,
            error_types=(*reply.error_types, *(error_types(response) if response else ())),
        )
        record(span, reply, prompt.ref)
        return reply

    async def _reply(
        self,
        response: AgenticResponse[SommelierResponse] | None,
        asked: "_Asked",
        ledger: Ledger,
        *,
        over_budget: bool,
    ) -> Reply:
        if response is not None and response.ok:
            return _shown(response, "salvaged" if response.outcome == "salvaged" else "answered")
        if response is not None and response.outcome in {"refusal", "content_filter"}:
            return Reply(say("declined", asked.language), (), "refused")
        by_rules = await self._generate([self._house], asked, Ledger(prices=self._prices))
        ledger.tool_calls += by_rules.ledger.tool_calls
        ledger.tool_errors += by_rules.ledger.tool_errors
        if not by_rules.ok:
            return Reply(say("failed", asked.language), (), "failed")
        if over_budget:
            return replace(_shown(by_rules, "fallback"), error_types=(BUDGET,))
        if response is None:
            return _shown(by_rules, "answered", "" if asked.history else asked.note("no_model"))
        return _shown(by_rules, "fallback", asked.note("model_down"))

    async def _generate(
        self, models: Sequence[LLM], asked: "_Asked", ledger: Ledger
    ) -> AgenticResponse[SommelierResponse]:
        prompt = asked.prompt
        response = await generate_agentic_response(
            asked.message,
            llm=models,
            contract=SOMMELIER if models is self._models else in_language(asked.language),
            instructions=prompt.render(research_rules=self._research_rules, schema=self._schema),
            tools=self._toolbox,
            history=asked.history,
            limits=asked.limits if models is self._models else self._limits,
            ledger=ledger,
            span=asked.span,
            journal=asked.journal,
            prompt=prompt.ref if models is self._models else None,  # rules go by no prompt
        )
        guard_output(response, asked.span, {"wines": response.wine_ids})
        return response


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one turn answers, and where it is traced and recorded."""

    message: str
    history: Sequence[Message]
    span: Span
    journal: Journal
    prompt: Prompt
    limits: Limits

    @property
    def language(self) -> Language:
        """The language of the conversation, as the rules tell it; English if they cannot."""
        return language_of([*self.history, {"role": "user", "content": self.message}])

    def note(self, key: Literal["no_model", "model_down"]) -> str:
        """Why rules answered, in the person's language."""
        return as_note(say(key, self.language))


def _shown(response: AgenticResponse[SommelierResponse], outcome: Outcome, note: str = "") -> Reply:
    text = f"{response.text}\n\n{note}" if note else response.text
    return Reply(text, tuple(response.wine_ids), outcome, answer=response.answer)


def record(span: Span, reply: Reply, prompt: PromptRef) -> None:
    """Put what a turn came to onto its root span, as the list of traces shows and filters it."""
    retries, errors = reply.retries, reply.error_types
    span.update(output=reply.text)
    record_outcome(span, reply.outcome, retries=retries, error_types=errors, prompt=prompt)
    score_turn(span, reply.outcome, retries=retries, error_types=errors)
