"""The profile for small models: search first, then let the model write about the results.

Models of a few billion parameters pick wrong tools more often than right ones, and turn passages
into nonsense (docs/local-models.md). So the rules of the fallback interpret the message and search;
the model gets no tools, and writes about the found wines in one request. Questions, and messages
of a guest with a concern, are left to the fallback, which shows the passage word for word.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Self

from pydantic import ConfigDict, model_validator

from agent.engine.contract import Evidence, OutputContract, strict_schema
from agent.engine.loop import AgenticResponse, Prefetch, generate_agentic_response
from agent.engine.messages import JsonSchema
from agent.engine.run import Run
from agent.i18n import translate
from agent.prompts import get_prompt, with_instructions
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.filters import get_safety_state
from agent.sommelier.rule_answer import RuleAnswer
from agent.sommelier.sommelier_prompts import ResponseType, SommelierResponse
from agent.sommelier.wine import Wine
from agent.turn import Deps

SMALL_PROMPT: Final = "sommelier-small"
"""The name of the prompt."""
MAX_WINES: Final = 4
"""Wines that the model chooses from. More would not improve its choice."""
MIN_SHOWN_WINES: Final = 2
MAX_SHOWN_WINES: Final = 3
"""How many wines the model shows, if enough are found."""
DESCRIPTION_CHARS: Final = 300
INTRO_CHARS: Final = 700
"""Limits that the server enforces. Texts are later cut to shorter limits, at a sentence end."""


def _schema_for(ids: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the schema of an answer with two or three of these wines; None stands for any."""
    wine_id: dict[str, Any] = {"type": "string"} | ({"enum": [*ids]} if ids else {})
    parts = {"wine_id": wine_id, "description": {"type": "string", "maxLength": DESCRIPTION_CHARS}}
    wine = {"type": "object", "properties": parts, "required": [*parts]}
    count = {"minItems": min(MIN_SHOWN_WINES, len(ids)), "maxItems": MAX_SHOWN_WINES} if ids else {}
    properties = {
        "intro": {"type": "string", "maxLength": INTRO_CHARS},
        "wines": {"type": "array"} | count | {"items": wine},
    }
    return {"type": "object", "properties": properties, "required": [*properties]}


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
    message: str, run: Run[Deps], found: RuleAnswer
) -> AgenticResponse[SommelierResponse] | None:
    """Return the model's answer about the wines that the rules found, without earlier messages.

    Return None if the rules found no wines, or if the guest has a concern.
    """
    safety = get_safety_state(run)
    wines = found.wines[:MAX_WINES]
    if not wines or safety.concerns or safety.likely_concerns:
        return None
    wish = f"({found.wish})\n" if found.wish else ""
    lines = [message, wish, "Wines:"]
    for wine, description in wines:
        lines.append(f"{wine.id}: {description}. {wine.notes}".strip())
    prompt = get_prompt(run, SMALL_PROMPT)
    return await generate_agentic_response(
        "\n".join([*lines, "", translate("write_in_language")]),
        run=with_instructions(run, prompt, language=translate("language_name")),
        contract=SMALL_SOMMELIER,
        prefetch=Prefetch(sources={wine.id: wine for wine, _ in wines}),
    )
