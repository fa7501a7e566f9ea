"""One turn of the sommelier: the model first, the house sommelier when it is not there or fails."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from agent.engine.contract import OutputContract
from agent.engine.errors import log_failure
from agent.engine.limits import Ledger, Limits
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.messages import LLM
from agent.engine.prompts import Prompt
from agent.engine.run import Run
from agent.engine.span import PromptRef, Span
from agent.engine.tools import Tool, Toolbox
from agent.house_sommelier import HouseSommelier, language_of, say
from agent.outcome import (
    Outcome,
    error_types,
    guard_input,
    guard_output,
    record_ledger,
    record_outcome,
    score_turn,
)
from agent.prompts import prompt_for, research_rules
from agent.sommelier.contract import SOMMELIER, ParseResult, in_language
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.tools import wine_tools
from agent.sommelier.wine import Catalogue
from agent.text import Language

BY_RULES: Final = Limits(seconds=30)
"""What the house sommelier may use: it costs nothing, but waits for the catalogue."""

DECLINED: Final = say("declined", "en")
FAILED: Final = say("failed", "en")
NO_MODEL: Final = say("no_model", "en")
MODEL_DOWN: Final = say("model_down", "en")


@dataclass(frozen=True, slots=True)
class Reply:
    """What the person gets: Markdown text, and the ids of the wines in it.

    `notes` say why no model answered, in the person's language.
    """

    text: str
    wine_ids: tuple[str, ...]
    outcome: Outcome
    retries: int = 0
    error_types: tuple[str, ...] = ()
    answer: SommelierResponse | None = None
    notes: tuple[str, ...] = ()


class Answerer(Protocol):
    """What a handler needs of the agent."""

    async def answer(self, message: str, *, run: Run) -> Reply:
        """Answer `message` within the limits of `run`. Never raises, except when cancelled."""
        ...


class Sommelier:
    """Answers messages from a catalogue, by a model or by rules.

    `research_tools` are offered beside those of the catalogue: documents, quotes, places. `house`
    answers where there is no model or none that answers.
    """

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        research_tools: Sequence[Tool] = (),
        house: LLM | None = None,
    ) -> None:
        self._toolbox = Toolbox([*wine_tools(catalogue), *research_tools])
        self._research_rules = research_rules([tool.name for tool in research_tools])
        self._house = house or HouseSommelier()

    async def answer(self, message: str, *, run: Run) -> Reply:
        """Answer `message`, traced on the run's span. Never raises, except when cancelled.

        It is asked with the prompt that the run's prompts have when it begins.
        """
        prompt = prompt_for(run, "sommelier")
        message = guard_input(message, run.span)
        response: AgenticResponse[SommelierResponse] | None = None
        try:
            if run.models:
                asked = replace(run, instructions=self._instructions(prompt), prompt=prompt.ref)
                response = await self._generate(message, asked, SOMMELIER)
            reply = await self._reply(message, response, run, prompt)
        except Exception as error:
            kind = log_failure("a turn failed", error)
            reply = Reply(FAILED, (), "failed", error_types=(kind,))
        finally:
            record_ledger(run.span, run.ledger)
        reply = replace(
            reply,
            retries=response.retry_count if response else 0,
            error_types=(*reply.error_types, *(error_types(response) if response else ())),
        )
        record(run.span, reply, prompt.ref)
        return reply

    async def _reply(
        self,
        message: str,
        response: AgenticResponse[SommelierResponse] | None,
        run: Run,
        prompt: Prompt,
    ) -> Reply:
        if response is not None and response.ok:
            return _shown(response, "salvaged" if response.outcome == "salvaged" else "answered")
        language = language_of([*run.history, {"role": "user", "content": message}])
        if response is not None and response.outcome in {"refusal", "content_filter"}:
            return Reply(say("declined", language), (), "refused")
        by_rules = await self._by_rules(message, run, prompt, language)
        if not by_rules.ok:
            return Reply(say("failed", language), (), "failed")
        if response is None:
            note = "" if run.history else say("no_model", language)
            return _shown(by_rules, "answered", note)
        return _shown(by_rules, "fallback", say("model_down", language))

    async def _by_rules(
        self, message: str, run: Run, prompt: Prompt, language: Language
    ) -> AgenticResponse[SommelierResponse]:
        """Let the house sommelier answer, whatever is used up."""
        by_rules = replace(
            run,
            models=[self._house],
            limits=BY_RULES,
            ledger=Ledger(prices=run.ledger.prices),
            deadline=None,
            instructions=self._instructions(prompt),
        )
        response = await self._generate(message, by_rules, in_language(language))
        run.ledger.tool_calls += response.ledger.tool_calls
        run.ledger.tool_errors += response.ledger.tool_errors
        return response

    def _instructions(self, prompt: Prompt) -> str:
        rules, schema = self._research_rules, SOMMELIER.output.text
        return prompt.render(research_rules=rules, schema=schema)

    async def _generate(
        self, message: str, run: Run, contract: OutputContract[SommelierResponse]
    ) -> AgenticResponse[SommelierResponse]:
        response = await generate_agentic_response(
            message, run=run, contract=contract, tools=self._toolbox
        )
        guard_output(response, run.span, {"wines": _wines(response)})
        return response


def _wines(response: AgenticResponse[SommelierResponse]) -> list[str]:
    return ParseResult.of(response).wine_ids


def _shown(response: AgenticResponse[SommelierResponse], outcome: Outcome, note: str = "") -> Reply:
    notes = (note,) if note else ()
    return Reply(
        response.text, tuple(_wines(response)), outcome, notes=notes, answer=response.answer
    )


def record(span: Span, reply: Reply, prompt: PromptRef) -> None:
    """Put what a turn came to onto its root span, as the list of traces shows and filters it."""
    retries, errors = reply.retries, reply.error_types
    span.update(output=reply.text)
    record_outcome(span, reply.outcome, retries=retries, error_types=errors, prompt=prompt)
    score_turn(span, reply.outcome, retries=retries, error_types=errors)
