"""Ask a model for what a wine list lacks: the style, grapes, country and region of its wines.

A model guesses. Therefore only known styles, grapes and countries are accepted, and the owner of
the list sees each of them before it is stored. No model may say that a wine has no alcohol, because
guests who must not drink would be shown that wine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agent.engine.contract import OutputContract
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.prompts import get_prompt, with_instructions
from agent.sommelier.sommelier_prompts import compact_schema
from agent.sommelier.vocabulary import (
    NameKind,
    Style,
    canonicalize,
    list_known_names,
    normalize,
)
from agent.sommelier.wine import Wine
from agent.text import pattern, sanitize, to_one_line
from agent.turn import Deps

GAP_FIELDS: Final = ("style", "grapes", "country", "region")
"""The fields of a wine that a model may fill in if they are empty."""
WINES_PER_REQUEST: Final = 20
MAX_TEXT_CHARS: Final = 200
"""The longest label or other text of a wine that the model is shown."""
MAX_GRAPES: Final = 8
REGION: Final = pattern(r"\A\p{L}[\p{L} '\x{2019}.-]{1,59}\z")
"""The name of a region: "Côte d'Or", "St. Magdalener". U+2019 is the typographic apostrophe."""
ALLOWED_STYLES: Final = frozenset(Style) - {Style.ALCOHOL_FREE}
"""The styles that a model may say of a wine."""


def _clean_style(value: object) -> object:
    """Return a style that a model may say, or ""."""
    style = canonicalize(value)
    if style in ALLOWED_STYLES:
        return style
    return ""


def _clean_grapes(value: object) -> list[str]:
    """Return the known grapes in a list, or none."""
    if not isinstance(value, list):
        return []
    grapes: list[str] = []
    for name in value:
        if _is_known("grapes", name):
            grapes.append(name)
    return grapes[:MAX_GRAPES]


def _is_known(kind: NameKind, name: object) -> bool:
    if not isinstance(name, str):
        return False
    return normalize(name) in list_known_names(kind)


def _clean_country(value: object) -> object:
    """Return a known country, or ""."""
    if _is_known("countries", value):
        return value
    return ""


def _clean_region(value: object) -> object:
    """Return what may be the name of a region, or ""."""
    if isinstance(value, str) and REGION.match(value):
        return value
    return ""


STYLE_NAMES: Final = ", ".join(sorted(ALLOWED_STYLES))


class GuessedWine(BaseModel):
    """A model's guess at a wine. The fields that the model does not know are empty."""

    model_config = ConfigDict(frozen=True, json_schema_extra=compact_schema)

    number: int = Field(description="The number of the wine.")
    style: Annotated[str, BeforeValidator(_clean_style)] = Field(
        "", description=f"One of: {STYLE_NAMES}."
    )
    grapes: Annotated[list[str], BeforeValidator(_clean_grapes)] = Field(
        default_factory=list
    )
    country: Annotated[str, BeforeValidator(_clean_country)] = ""
    region: Annotated[str, BeforeValidator(_clean_region)] = ""

    def to_cells(self) -> dict[str, str]:
        """Return the facts by field, as the cells of a wine list. Unknown ones are ""."""
        return {
            "style": self.style,
            "grapes": "; ".join(self.grapes),
            "country": self.country,
            "region": self.region,
        }


class GuessedWines(BaseModel):
    """The answer of a model about some wines of a list."""

    model_config = ConfigDict(frozen=True, json_schema_extra=compact_schema)

    wines: list[GuessedWine] = Field(default_factory=list)


CONTRACT: Final = OutputContract(GuessedWines, temperature=0.0)


def find_gaps(wine: Wine) -> tuple[str, ...]:
    """Return the fields of a wine that a model may fill in."""
    gaps: list[str] = []
    for field in GAP_FIELDS:
        is_empty = not getattr(wine, field)
        if is_empty:
            gaps.append(field)
    return tuple(gaps)


async def ask_for_gaps(
    wines: Sequence[Wine], run: Run[Deps]
) -> tuple[dict[str, Mapping[str, str]], int]:
    """Return what the model says of the gaps, and the number of wines without an answer.

    For each wine, by its id, there are the fields that the model fills in, with their texts. The
    limits of a turn apply to each request, not to all of them together.
    """
    incomplete = [wine for wine in wines if find_gaps(wine)]
    filled_by_id: dict[str, Mapping[str, str]] = {}
    unanswered_count = 0
    for start in range(0, len(incomplete), WINES_PER_REQUEST):
        end = start + WINES_PER_REQUEST
        batch = incomplete[start:end]
        answer = await _ask(batch, run.for_turn())
        if answer is None:
            unanswered_count += len(batch)
        else:
            filled_by_id |= _read_answer(answer, batch)
    return filled_by_id, unanswered_count


async def _ask(batch: Sequence[Wine], run: Run[Deps]) -> GuessedWines | None:
    """Return the answer of the model about some wines, or None if it is not valid."""
    question = "\n".join(_describe_gaps(batch))
    prompt = get_prompt(run, "wine-gaps")
    run = with_instructions(run, prompt, schema=CONTRACT.output.schema_text)
    # An answer about many wines is longer than an answer to a guest.
    max_tokens = run.limits.answer_tokens_ceiling
    limits = replace(run.limits, answer_tokens=max_tokens)
    run = replace(run, limits=limits)
    response = await generate_agentic_response(question, run=run, contract=CONTRACT)
    return response.answer


def _describe_gaps(batch: Sequence[Wine]) -> Iterator[str]:
    """Yield a line for each wine: its number, what is known, and which fields are asked for.

    Example: `3. Tondonia 2011; country: Spain; asked: style, grapes, region`.
    """
    for number, wine in enumerate(batch, start=1):
        parts = [_shorten(wine.label)]
        for field in (*GAP_FIELDS, "appellation"):
            text = wine.field_text(field)
            if text:
                parts.append(f"{field}: {_shorten(text)}")
        gaps = ", ".join(find_gaps(wine))
        parts.append(f"asked: {gaps}")
        description = "; ".join(parts)
        yield f"{number}. {description}"


def _shorten(text: str) -> str:
    beginning = sanitize(text, MAX_TEXT_CHARS)
    return to_one_line(beginning)


def _read_answer(
    answer: GuessedWines, batch: Sequence[Wine]
) -> dict[str, Mapping[str, str]]:
    """Return the fields that the answer fills in, with their texts, by the ids of the wines."""
    wines_by_number = dict(enumerate(batch, start=1))
    filled_by_id: dict[str, Mapping[str, str]] = {}
    for guess in answer.wines:
        wine = wines_by_number.get(guess.number)
        if wine is None:
            continue
        filled: dict[str, str] = {}
        for field, text in guess.to_cells().items():
            is_gap = not getattr(wine, field)
            if is_gap and text:
                filled[field] = text
        if filled:
            filled_by_id[wine.id] = filled
    return filled_by_id
