"""What the sommelier must answer: the type, and the rules a schema cannot hold."""

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from agent.markdown import visible
from agent.text import Match, pattern, truncate_at_boundary

LONGEST_WORDS: Final = 4000
"""Characters of a text of an answer; what is longer is cut."""
MARKUP: Final = pattern(r"(?m)\*\*|__|`|^[ \t]*#{1,6}[ \t]")
MARKED_LINK: Final = pattern(r"\[([^\[\]\n]{1,200})\]\((https?://[^\s()]{1,1000})\)")


def free_text(text: str) -> str:
    """Return a model's own words as plain text: without Markdown, which some write all the same."""
    shown = visible(truncate_at_boundary(text, LONGEST_WORDS))
    return MARKED_LINK.sub(_as_text, MARKUP.sub("", shown)).strip()


def _as_text(link: Match) -> str:
    return f"{link[1]} ({link[2]})"


FreeText = Annotated[str, AfterValidator(free_text)]
ResponseType = Literal["recommendation", "informational", "off_topic"]
HeardConcern = Literal[
    "none", "crisis", "dependence", "under_age", "pregnancy", "medication", "driving"
]
"""What a model may hear of whoever is to drink: of `agent.care.Concern`, the gravest first."""


def heard_concern(value: object) -> str:
    """Read what a model wrote for a concern; what is none says nothing, and spoils no answer."""
    said = str(value).lower() if isinstance(value, str | list) else ""
    if {"no", "not"} & set(said.split()):
        return "none"
    return next((each for each in get_args(HeardConcern)[1:] if each in said), "none")


class WineRecommendation(BaseModel):
    """One wine of an answer; facts are shown from the catalogue, never from the model."""

    wine_id: str = Field(
        validation_alias=AliasChoices("wine_id", "id"),
        description="The exact id of a wine that a tool returned in this conversation.",
    )
    name: str = Field(default="", description="The wine's name as the tool returned it.")
    description: FreeText = Field(
        default="", description="One or two sentences on why this wine suits the request."
    )


class SommelierResponse(BaseModel):
    """The structured answer of a turn."""

    response_type: ResponseType = Field(
        description="recommendation: wines to choose from; informational: an answer about wine "
        "or a question back; off_topic: not about wine, food or drink."
    )
    concern: Annotated[HeardConcern, BeforeValidator(heard_concern)] = Field(
        default="none",
        description="Only if the guest says so of who is to drink, in any language. crisis: wants "
        "to die or hurt themselves; dependence: cannot stop drinking, or is sober after that; "
        "under_age: below the legal age; pregnancy: or nursing; medication; driving: will drive. "
        "Else none.",
    )
    intro: FreeText = Field(default="", description="The answer, or what introduces the wines.")
    wines: list[WineRecommendation] = Field(
        default_factory=list, description="Up to 6 wines, best first; empty if none is shown."
    )
    closing: FreeText = Field(default="", description="A short last sentence, may be empty.")


def _of_small(schema: dict[str, Any]) -> None:
    """Say in few words what a small model must know of the answer."""
    text, known = {"type": "string"}, schema["properties"]
    wine = {
        "type": "object",
        "properties": {"wine_id": text, "description": text},
        "required": ["wine_id"],
    }
    schema["properties"] = {
        **{name: {"enum": known[name]["enum"]} for name in ("response_type", "concern")},
        "intro": text,
        "wines": {"type": "array", "items": wine},
    }
    del schema["description"]


class SmallSommelierResponse(SommelierResponse):
    """The same answer, as a small model is told of it."""

    model_config = ConfigDict(json_schema_extra=_of_small)


def validate_semantic_content(response: SommelierResponse) -> str | None:
    """Say what is wrong with a response that matches the schema but says nothing, or None.

    Source of the rules: R-005 of the structured-output research.
    """
    has_text = bool(response.intro.strip() or response.closing.strip())
    has_descriptions = any(wine.description.strip() for wine in response.wines)
    if response.response_type == "recommendation" and not response.wines:
        return "response_type is 'recommendation' but wines is empty"
    if response.response_type == "off_topic" and not response.intro.strip():
        return "response_type is 'off_topic' but intro is empty"
    if not has_text and not has_descriptions:
        return "intro, closing and all wine descriptions are empty"
    return None
