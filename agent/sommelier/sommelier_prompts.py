"""The types of the sommelier's answer, and the rules that a schema cannot express."""

from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from agent.language import truncate_at_boundary
from agent.markdown import strip_invisible
from agent.numerals import find_numbers
from agent.safety.state import CONCERNS, Concern
from agent.sommelier.vocabulary import OfferKind, canonicalize
from agent.text import pattern

WINE_PLACEHOLDER: Final = pattern(r"\{wine:([^{}\n]{1,200})\}")
"""A placeholder for the name of a wine, with its id, in a model's text."""
MAX_INTRO_CHARS: Final = 1500
"""The longest intro without wines. Longer texts are cut at a sentence end."""
MAX_INTRO_CHARS_WITH_WINES: Final = 600
MAX_DESCRIPTION_CHARS: Final = 240
MAX_CLOSING_CHARS: Final = 200
MAX_BOTTLES: Final = 1_000
MAX_COUNT_CHARS: Final = 20
MARKUP: Final = pattern(r"(?m)\*\*|__|`|^[ \t]*#{1,6}[ \t]")
MARKDOWN_LINK: Final = pattern(r"\[([^\[\]\n]{1,200})\]\((https?://[^\s()]{1,1000})\)")

ResponseType = Literal["recommendation", "informational", "off_topic"]
ReportedConcern = Literal["none", Concern]


def _plain_text(limit: int) -> BeforeValidator:
    """Return a validator that removes markup and truncates to `limit` characters."""

    def to_plain_text(text: object) -> object:
        if not isinstance(text, str):
            return text
        unmarked = MARKUP.sub("", strip_invisible(text))
        plain = MARKDOWN_LINK.sub(lambda link: f"{link[1]} ({link[2]})", unmarked)
        return truncate_at_boundary(plain.strip(), limit)

    return BeforeValidator(to_plain_text)


def parse_concern(value: object) -> str:
    """Return the concern that a model wrote, or "none" if it wrote anything else."""
    if not isinstance(value, str | list):
        return "none"
    # Some models write a list: ["pregnancy"]. The first of its concerns is returned.
    text = str(value).lower()
    if {"no", "not"} & set(text.split()):
        return "none"
    for concern in CONCERNS:
        if concern in text:
            return concern
    return "none"


def _parse_count(value: object) -> int | None:
    """Return the number of bottles that a model wrote, or None if it wrote anything else.

    An answer without the number is still useful. So a wrong value is not an error.
    """
    count = _parse_amount(value)
    if count is None or not count.is_integer() or not 1 <= count <= MAX_BOTTLES:
        return None
    return int(count)


def _parse_amount(value: object) -> float | None:
    """Return the number that a model wrote in digits or words, or None if there is no number."""
    if isinstance(value, int | float):
        return float(value)
    numbers = find_numbers(str(value)[:MAX_COUNT_CHARS])
    if len(numbers) != 1:
        return None
    (only,) = numbers
    return only


def _parse_offer_kind(value: object) -> OfferKind | None:
    """Return the kind of offer that a model wrote, or None if it wrote anything else."""
    kind = str(canonicalize(value))
    if kind not in list(OfferKind):
        return None
    return OfferKind(kind)


def compact_schema(schema: dict[str, Any]) -> None:
    """Remove the parts of a schema that do not inform a model."""
    schema.pop("description", None)
    for part in (schema, *schema["properties"].values()):
        part.pop("title", None)
        part.pop("default", None)


def _inline_wine_schema(schema: dict[str, Any]) -> None:
    """Write the schema of a wine into the schema of the list of wines.

    Pydantic writes only a reference to it there.
    """
    schema["items"] = WineRecommendation.model_json_schema()


OFFER_KIND_SCHEMA: Final = WithJsonSchema(
    {"anyOf": [{"type": "string", "enum": [*OfferKind]}, {"type": "null"}]}
)
"""The schema of a kind of offer, with all its values.

Pydantic would write only a reference to a definition outside the schema of the wine. That
definition would be lost when the schema of the wine is copied into the list of wines.
"""


class WineRecommendation(BaseModel):
    """A wine in an answer. The user sees its facts as the catalogue has them."""

    model_config = ConfigDict(json_schema_extra=compact_schema)

    wine_id: str = Field(
        validation_alias=AliasChoices("wine_id", "id"),
        description="The id, exactly as a tool returned it.",
    )
    description: Annotated[str, _plain_text(MAX_DESCRIPTION_CHARS)] = Field(
        default="", description="One or two sentences."
    )
    bottles: Annotated[int | None, BeforeValidator(_parse_count)] = Field(
        default=None,
        description="How many bottles of the wine you suggest, if the guest asks for a quantity, "
        "has a sum for several bottles, or asks what several bottles cost. What they cost is then "
        "worked out and shown below your text.",
    )
    size: Annotated[
        OfferKind | None, BeforeValidator(_parse_offer_kind), OFFER_KIND_SCHEMA
    ] = Field(
        default=None,
        description="What is counted, if it is not the usual bottle: one of the wine's offers.",
    )


class SommelierResponse(BaseModel):
    """The structured answer of a turn."""

    model_config = ConfigDict(json_schema_extra=compact_schema)

    response_type: ResponseType = Field(
        description="recommendation: there are wines to choose from, or one that was asked about. "
        "informational: an answer without wines, or a question back. off_topic: the message is not "
        "about wine, food or drink."
    )
    concern: Annotated[ReportedConcern, BeforeValidator(parse_concern)] = Field(
        default="none",
        description="What the guest who writes has said of themselves; none if nothing, or if it "
        "is about somebody else. crisis: they want to die or to hurt themselves. dependence: they "
        "cannot stop drinking, or stay sober after that. under_age: they are not old enough. "
        "pregnancy: they are pregnant or nursing. medication: they take medication. driving: they "
        "will drive.",
    )
    intro: Annotated[str, _plain_text(MAX_INTRO_CHARS)] = Field(
        default="",
        description="The answer to the guest. If there are wines, it has at most "
        f"{MAX_INTRO_CHARS_WITH_WINES} characters.",
    )
    wines: list[WineRecommendation] = Field(
        default_factory=list,
        description="The wines, the best first, at most 6. Empty in an answer without wines.",
        json_schema_extra=_inline_wine_schema,
    )
    budget: Annotated[float | None, BeforeValidator(_parse_amount)] = Field(
        default=None,
        description="What the guest wants to spend on all the bottles together, if they said so.",
    )
    closing: Annotated[str, _plain_text(MAX_CLOSING_CHARS)] = Field(
        default="", description="A short last sentence. It may be empty."
    )

    @model_validator(mode="after")
    def _tidy(self) -> Self:
        """Remove repeated wines, and shorten the intro of an answer with wines."""
        if self.wines:
            wines_by_id = {wine.wine_id: wine for wine in self.wines}
            self.wines = list(wines_by_id.values())
            self.intro = truncate_at_boundary(self.intro, MAX_INTRO_CHARS_WITH_WINES)
        return self


class StoredWine(BaseModel):
    """A wine of a stored answer, as the user saw it."""

    wine_id: str
    name: str = ""
    price: str = ""
    bottles: int | None = None
    size: OfferKind | None = None
    description: str = ""


class StoredAnswer(BaseModel):
    """An answer as it is stored, and as a model reads it later, in JSON."""

    response_type: ResponseType
    intro: str = ""
    wines: tuple[StoredWine, ...] = ()
    total: str = ""
    """The price of all counted bottles."""
    closing: str = ""

    def to_json(self) -> str:
        """Return the answer as JSON without empty fields."""
        return self.model_dump_json(exclude_defaults=True)


# While an answer forms, each of its drafts is checked against the same earlier answers.
@lru_cache(64)
def read_grounding_text(content: str) -> str:
    """Return the part of an earlier answer against which a new answer is checked.

    This is the text around its wines, the ids of the wines, and the total price. The name, price
    and description of a wine are left out, because the new answer may not use them for another
    wine.
    """
    try:
        answer = StoredAnswer.model_validate_json(content)
    except ValidationError:
        # Some answers are stored as plain text.
        return content
    ids = [wine.wine_id for wine in answer.wines]
    return "\n".join([answer.intro, *ids, answer.total, answer.closing])


def validate_semantic_content(response: SommelierResponse) -> str | None:
    """Return what is missing in a response, or None if it is complete.

    The name of this function and the rules are required by R-005 (docs/decisions/0015).
    """
    descriptions = [wine.description for wine in response.wines]
    texts = [response.intro, response.closing, *descriptions]
    has_text = any(text.strip() for text in texts)
    if response.response_type == "recommendation" and not response.wines:
        return "response_type is 'recommendation' but wines is empty"
    if response.response_type == "off_topic" and not response.intro.strip():
        return "response_type is 'off_topic' but intro is empty"
    if not has_text:
        return "intro, closing and all wine descriptions are empty"
    return None
