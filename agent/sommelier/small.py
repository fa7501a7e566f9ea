"""The profile for small models: search first, then let the model write about the results.

Models of a few billion parameters pick wrong tools more often than right ones, and write nonsense
where they write much or translate (docs/local-models.md). So the rules of the fallback interpret
the message and search; the model gets no tools, chooses among the found wines and writes a sentence
about each, in one request. What it writes is shown if it is in the guest's language and tells no
other grape or colour than the wine has; else the rules describe the wine.

The fallback answers alone: questions, with the passage word for word; messages of a guest with a
concern; and wishes in another language than the wines' notes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ConfigDict

from agent.engine.contract import Evidence, OutputContract, make_strict_schema
from agent.engine.loop import AgenticResponse, Prefetch, generate_agentic_response
from agent.engine.messages import JsonSchema
from agent.engine.run import Run
from agent.i18n import current_language, translate
from agent.language import find_last_sentence_end
from agent.markdown import escape
from agent.prompts import get_prompt, with_instructions
from agent.query_reading.phrases import detect_language
from agent.query_reading.request import read_request
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.filters import get_safety_state
from agent.sommelier.rule_answer import DescribedWine, RuleAnswer
from agent.sommelier.sommelier_prompts import (
    ResponseType,
    SommelierResponse,
    WineRecommendation,
)
from agent.sommelier.vocabulary import canonical_name
from agent.sommelier.wine import Wine
from agent.text import split_words
from agent.turn import Deps

SMALL_PROMPT: Final = "sommelier-small"
"""The name of the prompt."""
MAX_WINES: Final = 4
"""The wines from which the model chooses. More of them would not improve its choice."""
MIN_SHOWN_WINES: Final = 2
MAX_SHOWN_WINES: Final = 3
"""The most wines that the model shows."""
DESCRIPTION_CHARS: Final = 220
"""The limit of a description. The server enforces it, even in the middle of a word."""
COPIED: Final = "·"
"""A sign that separates the facts of a wine in the request. A text with it is copied."""


def _schema_for(ids: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the schema of an answer with two or three of these wines, or with any wines."""
    wine_id: dict[str, Any] = {"type": "string"}
    description = {"type": "string", "maxLength": DESCRIPTION_CHARS}
    wines: dict[str, Any] = {"type": "array"}
    if ids:
        wine_id["enum"] = list(ids)
        wines["minItems"] = min(MIN_SHOWN_WINES, len(ids))
        wines["maxItems"] = MAX_SHOWN_WINES
    wines["items"] = _require_all({"wine_id": wine_id, "description": description})
    return _require_all({"wines": wines})


def _require_all(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has all of these properties."""
    return {"type": "object", "properties": properties, "required": [*properties]}


def _shorten(schema: dict[str, Any]) -> None:
    schema.clear()
    schema.update(_schema_for())


def _narrow_schema(schema: JsonSchema, evidence: Evidence) -> JsonSchema:
    """Return a schema that only allows the ids of found wines."""
    ids = [id for id, source in evidence.sources.items() if isinstance(source, Wine)]
    return make_strict_schema(_schema_for(ids)) or schema


class SmallSommelierResponse(SommelierResponse):
    """An answer of a small model, which does not write the type of its answer."""

    model_config = ConfigDict(json_schema_extra=_shorten)

    response_type: ResponseType = "recommendation"


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

    Return None if the rules found no wines, if the guest has a concern, or if the model would have
    to translate the notes.
    """
    safety = get_safety_state(run)
    wines = found.wines[:MAX_WINES]
    if not wines or safety.concerns or safety.likely_concerns:
        return None
    language = current_language()
    for wine, _ in wines:
        if wine.notes and wine.notes_language != language:
            return None
    lines = [message, ""]
    if found.wish:
        lines = [message, f"({found.wish})", ""]
    lines.append("Wines:")
    for wine, description in wines:
        lines.append(f"{wine.id}: {description}. {wine.notes}".strip())
    lines += ["", translate("write_in_language")]
    prompt = get_prompt(run, SMALL_PROMPT)
    response = await generate_agentic_response(
        "\n".join(lines),
        run=with_instructions(run, prompt, language=translate("language_name")),
        contract=SMALL_SOMMELIER,
        prefetch=Prefetch(sources={wine.id: wine for wine, _ in wines}),
    )
    return _compose(response, found.wish, wines)


def _compose(
    response: AgenticResponse[SommelierResponse],
    wish: str,
    wines: Sequence[DescribedWine],
) -> AgenticResponse[SommelierResponse]:
    """Return a response with the wish as it was understood, and with descriptions that are true."""
    if response.answer is None or not response.has_text:
        return response
    by_id = {described.wine.id: described for described in wines}
    items: list[WineRecommendation] = []
    for item in response.answer.wines:
        description = _choose_description(item, by_id[item.wine_id])
        items.append(item.model_copy(update={"description": description}))
    answer = response.answer.model_copy(update={"wines": items})
    text = SMALL_SOMMELIER.render(answer, Evidence(sources=dict(response.sources)))
    if wish:
        text = f"{translate('fallback_read', request=escape(wish))}\n\n{text}"
    return replace(response, answer=answer, text=text)


def _choose_description(item: WineRecommendation, described: DescribedWine) -> str:
    """Return the model's description of a wine if it is true, or else that of the rules."""
    text = item.description
    if len(text) >= DESCRIPTION_CHARS:  # the server has cut it
        text = text[: find_last_sentence_end(text, len(text))]
    text = _without_label(text, described.wine)
    if _holds(text, described.wine):
        return text
    return f"{described.description}. {described.wine.notes}".strip()


def _without_label(text: str, wine: Wine) -> str:
    """Return a text without the name of the wine before it: "Muga Reserva 2021: Ripe fruit"."""
    start, _, rest = text.partition(": ")
    words = split_words(start)
    is_label = set(words) <= set(split_words(f"{wine.label} {wine.id}"))
    if not rest or not is_label:
        return text
    return rest


def _holds(text: str, wine: Wine) -> bool:
    """Return whether a text is in the guest's language, without a wrong grape or colour."""
    language = current_language()
    if not text.strip() or COPIED in text or wine.id in text:
        return False
    if detect_language(text, language) != language:
        return False
    read = read_request(text, language)
    grapes = {canonical_name("grapes", name) for name in wine.grapes}
    named = {canonical_name("grapes", name) for name in read.values("grapes")}
    colours = {*read.values("styles"), *read.values("colours")}
    return named <= grapes and colours <= {str(wine.style), str(wine.colour)}
