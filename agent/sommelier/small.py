"""The profile for small models: search first, then let the model write about the results.

Models of a few billion parameters pick wrong tools more often than right ones, and write nonsense
where they write much or translate (docs/local-models.md). So the rules of the fallback interpret
the message and search. In one request without tools, the model chooses among the wines that were
found, and writes a sentence about each. This sentence is shown if it is in the guest's language and
states no other grape or colour than the wine has. Otherwise the rules describe the wine.

The rules answer alone in three cases: a question is answered by a passage, word for word; the guest
has a concern; or the notes of the wines are in another language than the wish.
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
from agent.sommelier.answer import SOMMELIER, grounding_problem
from agent.sommelier.filters import get_safety_state
from agent.sommelier.rule_answer import DescribedWine, RuleAnswer
from agent.sommelier.sommelier_prompts import (
    ResponseType,
    SommelierResponse,
    WineRecommendation,
)
from agent.sommelier.vocabulary import find_canonical_name
from agent.sommelier.wine import Wine
from agent.text import split_words
from agent.turn import Deps

SMALL_PROMPT: Final = "sommelier-small"
"""The name of the prompt."""
MAX_WINES: Final = 4
"""The most wines from which the model chooses. More of them would not improve its choice."""
MIN_SHOWN_WINES: Final = 2
"""The fewest wines that the model shows, if as many were found."""
MAX_SHOWN_WINES: Final = 3
DESCRIPTION_CHARS: Final = 220
"""The limit of a description. The server enforces it, even in the middle of a word."""
FACT_SEPARATOR: Final = "·"
"""The sign between the facts of a wine in the request. A text with it was copied from there."""


def _make_schema(ids: Sequence[str] = ()) -> dict[str, Any]:
    """Return the schema of an answer with two or three of these wines, or else with any wines."""
    wine_id: dict[str, Any] = {"type": "string"}
    description = {"type": "string", "maxLength": DESCRIPTION_CHARS}
    wines: dict[str, Any] = {"type": "array"}
    if ids:
        wine_id["enum"] = list(ids)
        wines["minItems"] = min(MIN_SHOWN_WINES, len(ids))
        wines["maxItems"] = MAX_SHOWN_WINES
    wine = {"wine_id": wine_id, "description": description}
    wines["items"] = _require_all(wine)
    return _require_all({"wines": wines})


def _require_all(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has all of these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def _shorten(schema: dict[str, Any]) -> None:
    """Replace the schema of pydantic by a short one."""
    schema.clear()
    schema.update(_make_schema())


def _narrow_schema(schema: JsonSchema, evidence: Evidence) -> JsonSchema:
    """Return a schema that only allows the ids of the wines that were found."""
    ids: list[str] = []
    for id, source in evidence.sources.items():
        if isinstance(source, Wine):
            ids.append(id)
    return make_strict_schema(_make_schema(ids)) or schema


class SmallSommelierResponse(SommelierResponse):
    """An answer of a small model, which does not write the type of its answer."""

    model_config = ConfigDict(json_schema_extra=_shorten)

    response_type: ResponseType = "recommendation"


def _find_shown_problem(
    response: SommelierResponse,
    evidence: Evidence,
) -> str | None:
    """Return feedback on what will be shown of a response, or None.

    A description that the rules will replace needs no evidence, and no second request.
    """
    shown: list[WineRecommendation] = []
    for item in response.wines:
        description = item.description
        wine = evidence.sources.get(item.wine_id)
        if isinstance(wine, Wine):
            description = _read_description(item, wine)
        shown.append(item.model_copy(update={"description": description}))
    return grounding_problem(response.model_copy(update={"wines": shown}), evidence)


SMALL_SOMMELIER: Final[OutputContract[SommelierResponse]] = replace(
    SOMMELIER,
    type=SmallSommelierResponse,
    narrow=_narrow_schema,
    grounding=_find_shown_problem,
    ends_turn=lambda _: False,  # small models report concerns at random
)
"""The contract for small models, with a schema of a third of the length."""


async def ask_small_model(
    message: str,
    run: Run[Deps],
    by_rules: RuleAnswer,
) -> AgenticResponse[SommelierResponse] | None:
    """Return the model's answer about the wines that the rules found, without earlier messages.

    Return None if the rules found no wines, if the guest has a concern, or if the model would have
    to translate the notes.
    """
    safety = get_safety_state(run)
    wines = by_rules.wines[:MAX_WINES]
    if not wines or safety.concerns or safety.likely_concerns:
        return None
    language = current_language()
    for wine, _ in wines:
        if wine.notes and wine.notes_language != language:
            return None
    prompt = get_prompt(run, SMALL_PROMPT)
    language_name = translate("language_name")
    sources = {wine.id: wine for wine, _ in wines}
    response = await generate_agentic_response(
        _write_request(message, by_rules.wish, wines),
        run=with_instructions(run, prompt, language=language_name),
        contract=SMALL_SOMMELIER,
        prefetch=Prefetch(sources=sources),
    )
    return _compose(response, by_rules.wish, wines)


def _write_request(
    message: str,
    wish: str,
    wines: Sequence[DescribedWine],
) -> str:
    """Return a message for the model: the guest's, the wish as understood, and the wines."""
    lines = [message]
    if wish:
        lines.append(f"({wish})")
    lines += ["", "Wines:"]
    for described in wines:
        lines.append(f"{described.wine.id}: {_describe(described)}")
    lines += ["", translate("write_in_language")]
    return "\n".join(lines)


def _describe(described: DescribedWine) -> str:
    """Return the description of the rules for a wine, and the notes of the catalogue."""
    return f"{described.description}. {described.wine.notes}".strip()


def _compose(
    response: AgenticResponse[SommelierResponse],
    wish: str,
    wines: Sequence[DescribedWine],
) -> AgenticResponse[SommelierResponse]:
    """Return a response with the wish as it was understood, and with descriptions that are true."""
    if response.answer is None or not response.has_text:
        return response
    described_by_id = {described.wine.id: described for described in wines}
    items: list[WineRecommendation] = []
    for item in response.answer.wines:
        described = described_by_id[item.wine_id]
        description = _choose_description(item, described)
        chosen = item.model_copy(update={"description": description})
        items.append(chosen)
    answer = response.answer.model_copy(update={"wines": items})
    evidence = Evidence(sources=dict(response.sources))
    text = SMALL_SOMMELIER.render(answer, evidence)
    if wish:
        understood = translate("fallback_read", request=escape(wish))
        text = f"{understood}\n\n{text}"
    return replace(response, answer=answer, text=text)


def _choose_description(item: WineRecommendation, described: DescribedWine) -> str:
    """Return the model's description of a wine if it is true, or else that of the rules."""
    return _read_description(item, described.wine) or _describe(described)


def _read_description(item: WineRecommendation, wine: Wine) -> str:
    """Return the model's description of a wine, or "" if it is not true of this wine."""
    text = item.description
    was_cut = len(text) >= DESCRIPTION_CHARS
    if was_cut:
        end = find_last_sentence_end(text, len(text))
        text = text[:end]
    text = _without_label(text, wine)
    if _is_true(text, wine):
        return text
    return ""


def _without_label(text: str, wine: Wine) -> str:
    """Return a text without the name of the wine before it: "Muga Reserva 2021: Ripe fruit"."""
    start, _, rest = text.partition(": ")
    label_words = set(split_words(f"{wine.label} {wine.id}"))
    is_label = label_words.issuperset(split_words(start))
    if not rest or not is_label:
        return text
    return rest


def _is_true(text: str, wine: Wine) -> bool:
    """Return whether a text is in the guest's language, and names no wrong grape or colour."""
    is_blank = not text.strip()
    if is_blank or FACT_SEPARATOR in text or wine.id in text:
        return False
    language = current_language()
    if detect_language(text, language) != language:
        return False
    request = read_request(text, language)
    grapes = {find_canonical_name("grapes", name) for name in wine.grapes}
    for name in request.values("grapes"):
        if find_canonical_name("grapes", name) not in grapes:
            return False
    # The style "red" is also a colour.
    colours = {str(wine.style), str(wine.colour)}
    stated_colours = request.values("styles") + request.values("colours")
    return colours.issuperset(stated_colours)
