"""The sommelier's answer: its type, and the rules that a schema cannot hold."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from agent.care import CONCERNS, Concern
from agent.language import truncate_at_boundary
from agent.markdown import strip_invisible
from agent.text import pattern

INTRO_CHARS: Final = 1500
"""The longest intro of an answer to a question; longer texts are cut at a sentence."""
INTRO_BESIDE_WINES_CHARS: Final = 600
DESCRIPTION_CHARS: Final = 240
CLOSING_CHARS: Final = 200
MARKUP: Final = pattern(r"(?m)\*\*|__|`|^[ \t]*#{1,6}[ \t]")
MARKED_LINK: Final = pattern(r"\[([^\[\]\n]{1,200})\]\((https?://[^\s()]{1,1000})\)")

ResponseType = Literal["recommendation", "informational", "off_topic"]
HeardConcern = Literal["none", Concern]


def _cut(limit: int) -> BeforeValidator:
    """Return a validator that makes plain text of at most `limit` characters of a string."""

    def cut(text: object) -> object:
        if not isinstance(text, str):
            return text
        unmarked = MARKUP.sub("", strip_invisible(text))
        plain = MARKED_LINK.sub(lambda link: f"{link[1]} ({link[2]})", unmarked)
        return truncate_at_boundary(plain.strip(), limit)

    return BeforeValidator(cut)


def heard_concern(value: object) -> str:
    """Read the concern that a model wrote; other words mean none, and spoil no answer."""
    text = str(value).lower() if isinstance(value, str | list) else ""
    if {"no", "not"} & set(text.split()):
        return "none"
    return next((concern for concern in CONCERNS if concern in text), "none")


def compact_schema(schema: dict[str, Any]) -> None:
    """Leave out of a schema what tells a model nothing."""
    schema.pop("description", None)
    for part in (schema, *schema["properties"].values()):
        part.pop("title", None)
        part.pop("default", None)


def _inline(schema: dict[str, Any]) -> None:
    """Write the type of a list's items where it is used."""
    schema["items"] = WineRecommendation.model_json_schema()


class WineRecommendation(BaseModel):
    """One wine of an answer; facts are shown from the catalogue, never from the model."""

    model_config = ConfigDict(json_schema_extra=compact_schema)

    wine_id: str = Field(
        validation_alias=AliasChoices("wine_id", "id"),
        description="As a tool returned it.",
    )
    description: Annotated[str, _cut(DESCRIPTION_CHARS)] = Field(
        default="", description="One or two sentences."
    )


class SommelierResponse(BaseModel):
    """The structured answer of a turn."""

    model_config = ConfigDict(json_schema_extra=compact_schema)

    response_type: ResponseType = Field(
        description="recommendation: wines to choose from, or one asked about; informational: an "
        "answer or a question back; off_topic: not about wine, food or drink."
    )
    concern: Annotated[HeardConcern, BeforeValidator(heard_concern)] = Field(
        default="none",
        description="Only what the guest who writes says of themselves, none for anybody else. "
        "crisis: wants to die or hurt themselves; dependence: cannot stop drinking, or is sober "
        "after that; under_age; pregnancy: or nursing; medication; driving: will drive.",
    )
    intro: Annotated[str, _cut(INTRO_CHARS)] = Field(
        default="",
        description=f"The answer, or at most {INTRO_BESIDE_WINES_CHARS} characters beside wines.",
    )
    wines: list[WineRecommendation] = Field(
        default_factory=list,
        description="Best first, at most 6; or none.",
        json_schema_extra=_inline,
    )
    closing: Annotated[str, _cut(CLOSING_CHARS)] = Field(
        default="", description="A short last sentence, or empty."
    )

    @model_validator(mode="after")
    def _tidy(self) -> Self:
        """Show no wine twice, and cut the intro beside wines."""
        if self.wines:
            self.wines = [*{wine.wine_id: wine for wine in self.wines}.values()]
            self.intro = truncate_at_boundary(self.intro, INTRO_BESIDE_WINES_CHARS)
        return self


def validate_semantic_content(response: SommelierResponse) -> str | None:
    """Return the problem of a response that says nothing, or None.

    An answer that reports a crisis is never shown: it may be empty. Source of the other rules:
    R-005 of the structured-output research.
    """
    if response.concern == "crisis":
        return None
    descriptions = (wine.description for wine in response.wines)
    has_text = any(map(str.strip, (response.intro, response.closing, *descriptions)))
    if response.response_type == "recommendation" and not response.wines:
        return "response_type is 'recommendation' but wines is empty"
    if response.response_type == "off_topic" and not response.intro.strip():
        return "response_type is 'off_topic' but intro is empty"
    if not has_text:
        return "intro, closing and all wine descriptions are empty"
    return None
