"""Ask a model what a wine list does not tell: the style, grapes, country and region of its wines.

A model guesses, so only known styles, grapes and countries are taken, and the owner of the list
sees each of them before it is stored. No model may say that a wine has no alcohol: guests who must
not drink would be shown it.
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
from agent.sommelier.vocabulary import Style, canonicalize, known_names, normalize
from agent.sommelier.wine import Wine
from agent.text import cut, pattern, to_one_line
from agent.turn import Deps

GAP_FIELDS: Final = ("style", "grapes", "country", "region")
"""The fields of a wine that a model may fill in if they are empty."""
WINES_PER_REQUEST: Final = 20
MAX_LABEL_CHARS: Final = 200
MAX_GRAPES: Final = 8
REGION: Final = pattern(r"\A\p{L}[\p{L} '\x{2019}.-]{1,59}\z")
TOLD_STYLES: Final = frozenset(Style) - {Style.ALCOHOL_FREE}


def _clean_style(value: object) -> object:
    style = canonicalize(value)
    return style if style in TOLD_STYLES else ""


def _clean_grapes(value: object) -> list[str]:
    grapes: list[str] = []
    for name in value if isinstance(value, list) else []:
        if isinstance(name, str) and normalize(name) in known_names("grapes"):
            grapes.append(name)
    return grapes[:MAX_GRAPES]


def _clean_country(value: object) -> object:
    is_known = isinstance(value, str) and normalize(value) in known_names("countries")
    return value if is_known else ""


def _clean_region(value: object) -> object:
    is_name = isinstance(value, str) and REGION.match(value) is not None
    return value if is_name else ""


class ToldWine(BaseModel):
    """What a model says of a wine; what is not valid or not known is left out."""

    model_config = ConfigDict(frozen=True, json_schema_extra=compact_schema)

    number: int = Field(description="The number of the wine.")
    style: Annotated[str, BeforeValidator(_clean_style)] = Field(
        "", description=f"One of: {', '.join(sorted(TOLD_STYLES))}."
    )
    grapes: Annotated[list[str], BeforeValidator(_clean_grapes)] = Field(
        default_factory=list
    )
    country: Annotated[str, BeforeValidator(_clean_country)] = ""
    region: Annotated[str, BeforeValidator(_clean_region)] = ""

    def cells(self) -> dict[str, str]:
        """Return what is said as the cells of a list, by field."""
        cells = {
            "style": self.style,
            "grapes": "; ".join(self.grapes),
            "country": self.country,
            "region": self.region,
        }
        return {field: cell for field, cell in cells.items() if cell}


class ToldWines(BaseModel):
    """What a model says of some wines of a list."""

    model_config = ConfigDict(frozen=True, json_schema_extra=compact_schema)

    wines: list[ToldWine] = Field(default_factory=list)


CONTRACT: Final = OutputContract(ToldWines, temperature=0.0)


def find_gaps(wine: Wine) -> tuple[str, ...]:
    """Return the fields of a wine that a model may fill in."""
    return tuple(field for field in GAP_FIELDS if not getattr(wine, field))


async def ask_for_gaps(
    wines: Sequence[Wine], run: Run[Deps]
) -> tuple[dict[str, Mapping[str, str]], int]:
    """Return what a model says of the gaps of wines, by their ids, and how many got no answer.

    Each request has a turn's limits.
    """
    incomplete = [wine for wine in wines if find_gaps(wine)]
    told: dict[str, Mapping[str, str]] = {}
    unanswered = 0
    for start in range(0, len(incomplete), WINES_PER_REQUEST):
        batch = incomplete[start : start + WINES_PER_REQUEST]
        answer = await _ask(batch, run.for_turn())
        if answer is None:
            unanswered += len(batch)
        else:
            told |= _read_answer(answer, batch)
    return told, unanswered


async def _ask(batch: Sequence[Wine], run: Run[Deps]) -> ToldWines | None:
    """Return what the model says of some wines; None if it gave no valid answer."""
    question = "\n".join(_describe_gaps(batch))
    prompt = get_prompt(run, "wine-gaps")
    limits = replace(run.limits, answer_tokens=run.limits.answer_tokens_ceiling)
    response = await generate_agentic_response(
        question,
        run=replace(
            with_instructions(run, prompt, schema=CONTRACT.output.schema_text),
            limits=limits,
        ),
        contract=CONTRACT,
    )
    return response.answer


def _describe_gaps(batch: Sequence[Wine]) -> Iterator[str]:
    """Yield a line for each wine: its number, what is known of it, and what is asked."""
    for number, wine in enumerate(batch, start=1):
        known = [to_one_line(cut(wine.label, MAX_LABEL_CHARS))]
        for field in (*GAP_FIELDS, "appellation"):
            if text := wine.field_text(field):
                known.append(f"{field}: {to_one_line(cut(text, MAX_LABEL_CHARS))}")
        yield f"{number}. {'; '.join(known)}; asked: {', '.join(find_gaps(wine))}"


def _read_answer(
    answer: ToldWines, batch: Sequence[Wine]
) -> dict[str, Mapping[str, str]]:
    """Return what fills a gap, as cells of a list by the ids of the wines."""
    told: dict[str, Mapping[str, str]] = {}
    for said in answer.wines:
        if not 1 <= said.number <= len(batch):
            continue
        wine = batch[said.number - 1]
        gaps = find_gaps(wine)
        cells = {field: cell for field, cell in said.cells().items() if field in gaps}
        if cells:
            told[wine.id] = cells
    return told
