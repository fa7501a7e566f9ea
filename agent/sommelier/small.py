"""The profile for small models: search first, then let the model write about the results.

Models of a few billion parameters pick wrong tools more often than right ones
(docs/local-models.md). So the rules of the fallback interpret the message and search; the model
gets no tools, and writes about the found wines or passage in one request.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Self

from pydantic import ConfigDict, model_validator

from agent.documents.passages import source_line
from agent.engine.contract import Evidence, OutputContract, Source, strict_schema
from agent.engine.loop import AgenticResponse, Prefetch, generate_agentic_response
from agent.engine.messages import JsonSchema
from agent.engine.run import Run
from agent.i18n import translate
from agent.prompts import get_prompt, with_instructions
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.rule_answer import RuleAnswer
from agent.sommelier.sommelier_prompts import ResponseType, SommelierResponse
from agent.sommelier.wine import Wine

WINES_PROMPT: Final = "sommelier-small"
PASSAGE_PROMPT: Final = "sommelier-small-question"
"""The names of the prompts."""
MAX_WINES: Final = 4
"""Wines that the model chooses from. More would not improve its choice."""
MIN_SHOWN_WINES: Final = 2
MAX_SHOWN_WINES: Final = 3
"""How many wines the model shows, if enough are found."""
DESCRIPTION_CHARS: Final = 300
INTRO_CHARS: Final = 700
"""Limits that the server enforces. Texts are later cut to shorter limits, at a sentence end."""


def _schema_for(ids: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the schema of an answer with these wines: with any if None, without wines if empty."""
    wine_id: dict[str, Any] = {"type": "string"} | ({"enum": [*ids]} if ids else {})
    parts = {"wine_id": wine_id, "description": {"type": "string", "maxLength": DESCRIPTION_CHARS}}
    wine = {"type": "object", "properties": parts, "required": [*parts]}
    count = {"minItems": min(MIN_SHOWN_WINES, len(ids)), "maxItems": MAX_SHOWN_WINES} if ids else {}
    properties: dict[str, Any] = {"intro": {"type": "string", "maxLength": INTRO_CHARS}}
    if ids is None or ids:
        properties["wines"] = {"type": "array"} | count | {"items": wine}
    return {"type": "object", "properties": properties, "required": ["intro"]}


def _shorten(schema: dict[str, Any]) -> None:
    schema.clear()
    schema.update(_schema_for())


def _narrow_schema(schema: JsonSchema, evidence: Evidence) -> JsonSchema:
    """Return a schema that only allows the ids of found wines."""
    ids = [id for id, source in evidence.sources.items() if isinstance(source, Wine)]
    return strict_schema(_schema_for(ids)) or schema


class SmallSommelierResponse(SommelierResponse):
    """An answer of a small model; its type is derived from its wines."""

    model_config = ConfigDict(json_schema_extra=_shorten)

    response_type: ResponseType = "informational"

    @model_validator(mode="after")
    def _derive_type(self) -> Self:
        self.response_type = "recommendation" if self.wines else "informational"
        return self


SMALL_SOMMELIER: Final[OutputContract[SommelierResponse]] = replace(
    SOMMELIER,
    type=SmallSommelierResponse,
    narrow=_narrow_schema,
    ends_turn=lambda _: False,  # small models report concerns at random
)
"""The contract for small models, with a schema of a third of the length."""


async def ask_small_model(
    message: str, run: Run, found: RuleAnswer
) -> AgenticResponse[SommelierResponse] | None:
    """Return the model's answer from what the rules found, or None if they found nothing."""
    passage = found.passage
    if passage is not None:
        lines = [message, "", "Passage:", passage.text]
        response = await _ask(lines, run, PASSAGE_PROMPT, {passage.id: passage})
        source = source_line(1, passage.title, passage.location)
        text = f"{response.text}\n\n{source}" if response.has_text else ""
        return replace(response, text=text)
    wines = found.wines[:MAX_WINES]
    if not wines:
        return None
    wish = f"({found.wish})\n" if found.wish else ""
    lines = [message, wish, "Wines:"]
    for wine, description in wines:
        lines.append(f"{wine.id}: {description}. {wine.notes}".strip())
    return await _ask(lines, run, WINES_PROMPT, {wine.id: wine for wine, _ in wines})


async def _ask(
    lines: list[str], run: Run, prompt_name: str, sources: dict[str, Source]
) -> AgenticResponse[SommelierResponse]:
    """Ask for an answer to these lines and their `sources`, without earlier messages."""
    prompt = get_prompt(run, prompt_name)
    return await generate_agentic_response(
        "\n".join([*lines, "", translate("write_in_language")]),
        run=with_instructions(run, prompt, language=translate("language_name")),
        contract=SMALL_SOMMELIER,
        prefetch=Prefetch(sources=sources),
    )
