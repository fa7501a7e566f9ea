"""Datasets: conversations with what their last answer must keep to, and questions for quotes.

`docs/evaluation.md` explains the format. Fields that are not known are ignored, but an expectation
that is not known is an error: a misspelt one would never fail.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from agent.engine.errors import AgentError
from agent.repositories import StoredMessage
from agent.sommelier.sommelier_prompts import ResponseType
from agent.sommelier.wine import Allergen, Body, Colour, Currency, Food, Style, Sweetness
from agent.tables import Strict
from agent.text import Language
from agent.tracing.recorder import Item, item_id

STARTER: Final = Path(__file__).with_name("conversations.jsonl")
MEMORY: Final = Path(__file__).with_name("memory.jsonl")
SETS: Final[Mapping[str, Path]] = MappingProxyType({"starter": STARTER, "memory": MEMORY})
"""The sets that are answered from the starter wines."""
GROUND_TRUTH: Final = Path(__file__).with_name("ground_truth.json")

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class DatasetError(AgentError):
    """A dataset cannot be read; the message names its place and what is wrong there."""


class Expectation(Strict):
    """What the last answer of a conversation must keep to. What is not given is not checked.

    Lists of wine properties mean any of these; each wine of the answer is held against them.
    The language is the conversation's, unless `language` is another or `any_language` will do.
    `without_notes` are words that must not stand in a wine's notes in the catalogue ("oak").
    `cheaper_than` and `about` count the wines of the answer before from 1. `facts` ("hate:grapes=
    Riesling") and `bottles`, by their labels, are all that is remembered of the guest at the end.
    """

    types: tuple[ResponseType, ...] = ()
    language: Language | None = None
    any_language: bool = False

    min_wines: int | None = Field(default=None, ge=1)
    max_wines: int | None = Field(default=None, ge=1)
    no_wines: bool = False

    min_price: float | None = Field(default=None, gt=0)
    max_price: float | None = Field(default=None, gt=0)
    currency: Currency = Currency.EUR

    styles: tuple[Style, ...] = ()
    colours: tuple[Colour, ...] = ()
    sweetness: tuple[Sweetness, ...] = ()
    bodies: tuple[Body, ...] = ()
    foods: tuple[Food, ...] = ()
    countries: tuple[Text, ...] = ()
    regions: tuple[Text, ...] = ()
    grapes: tuple[Text, ...] = ()
    max_abv: float | None = Field(default=None, ge=0)

    without_styles: tuple[Style, ...] = ()
    without_bodies: tuple[Body, ...] = ()
    without_countries: tuple[Text, ...] = ()
    without_regions: tuple[Text, ...] = ()
    without_grapes: tuple[Text, ...] = ()
    without_allergens: tuple[Allergen, ...] = ()
    without_notes: tuple[Text, ...] = ()

    cheaper_than: int | None = Field(default=None, ge=1)
    about: int | None = Field(default=None, ge=1)
    not_shown_before: bool = False

    must_not_contain: tuple[Text, ...] = ()
    must_contain_any: tuple[Text, ...] = ()

    facts: tuple[Text, ...] | None = None
    bottles: Mapping[str, int] | None = None

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        for what, least, most in (
            ("wines", self.min_wines, self.max_wines),
            ("price", self.min_price, self.max_price),
        ):
            if least is not None and most is not None and least > most:
                raise ValueError(f"min_{what} is above max_{what}: nothing can meet that")
        if self.no_wines and self.min_wines:
            raise ValueError("no_wines and min_wines: nothing can meet both")
        return self


class Conversation(BaseModel):
    """Messages of a guest in order, each answered before the next; `history` is given.

    `wants` says in prose what each answer should do, `harmful_if` what would make one harmful: both
    are for people who read the transcript, nothing of them is scored.
    """

    model_config = ConfigDict(frozen=True)

    id: Text
    messages: tuple[Text, ...] = Field(min_length=1)
    language: Language | None = None
    kind: str = "other"
    history: tuple[StoredMessage, ...] = ()
    expect: Expectation = Expectation()
    wants: tuple[str, ...] = ()
    harmful_if: str = ""

    @property
    def title(self) -> str:
        """What is asked, in a line."""
        return " / ".join(self.messages)

    @property
    def is_remembered(self) -> bool:
        """Whether something is to be remembered of the guest."""
        return self.expect.facts is not None or self.expect.bottles is not None


class Question(Strict):
    """A question with a known answer: the documents that hold it, by the end of their path."""

    id: str
    kind: Literal["keyword", "paraphrase", "multi", "negative"]
    query: str
    sources: tuple[str, ...]

    @property
    def title(self) -> str:
        """What is asked, in a line."""
        return self.query


Case = Conversation | Question


def ground_truth(file: Path = GROUND_TRUTH) -> list[Question]:
    """Return the 24 questions over the starter documents: 6 of each kind."""
    return TypeAdapter(list[Question]).validate_json(file.read_bytes())


def read(path: Path) -> list[Conversation]:
    """Read the conversations of a JSONL file, in order; blank lines are skipped.

    Raises:
        DatasetError: the file cannot be read, or a line of it is not a conversation.
    """
    try:
        # Not `splitlines`: a line end of another kind is a character of somebody's words.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise DatasetError(f"{path} cannot be read: {reason}") from None
    return unique(
        parsed(line, f"line {number} of {path}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    )


def unique(conversations: Iterable[Conversation]) -> list[Conversation]:
    """Return the conversations, which need ids of their own.

    Raises:
        DatasetError: two of them have the same id.
    """
    by_id: dict[str, Conversation] = {}
    for each in conversations:
        if each.id in by_id:
            raise DatasetError(f"two conversations have the id {each.id!r}: give one another")
        by_id[each.id] = each
    return list(by_id.values())


def parsed(value: object, where: str) -> Conversation:
    """Make a conversation of plain data, or of JSON.

    Raises:
        DatasetError: it is none; the message names `where`, the field and what is wrong with it.
    """
    try:
        if isinstance(value, str):
            return Conversation.model_validate_json(value)
        return Conversation.model_validate(value)
    except ValidationError as error:
        raise DatasetError(f"{where}: {_first(error)}") from None


def selected(
    conversations: Sequence[Conversation],
    *,
    language: str | None = None,
    kind: str | None = None,
    limit: int | None = None,
) -> list[Conversation]:
    """Return the first `limit` conversations of a language and a kind; None stands for all."""
    found = [
        each
        for each in conversations
        if language in (None, each.language) and kind in (None, each.kind)
    ]
    return found[:limit]


def as_item(case: Case) -> dict[str, Any]:
    """Return a case as one line of a dataset file has it, without what is not set."""
    return case.model_dump(mode="json", exclude_defaults=True)


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    name, said = ".".join(map(str, problem["loc"])), problem["msg"].removeprefix("Value error, ")
    return f"{name}: {said}" if name else said


def item_of(dataset: str, case: Case) -> Item:
    """Return a case as an item of a dataset; the same case has the same id every time."""
    data = as_item(case)
    metadata: dict[str, Any] = {key: data[key] for key in ("id", "language", "kind") if key in data}
    if isinstance(case, Question):
        asked, expected = {"query": case.query}, {"sources": list(case.sources)}
    else:
        asked = {key: data[key] for key in ("messages", "history") if key in data}
        metadata.update({key: data[key] for key in ("wants", "harmful_if") if key in data})
        expected = data.get("expect", {})
    return Item(item_id(dataset, case.id), asked, expected, metadata)


def conversation_of(item: Item, dataset: str) -> Conversation:
    """Read an item as a conversation: one that was recorded here, or a text, or a list of messages.

    Raises:
        DatasetError: it is none of these, or its expectations are not known.
    """
    asked = item.input
    if isinstance(asked, str):
        asked = {"messages": [asked]}
    elif isinstance(asked, list):
        said = [each for each in asked if not _is_instruction(each)]
        asked = {"messages": [_text_of(each) for each in said[-1:]], "history": said[:-1]}
    if not isinstance(asked, dict):
        raise DatasetError(f"item {item.id} of {dataset} has no messages as its input")
    known = {"id": item.id, **item.metadata, **asked}
    if isinstance(item.expected, dict):
        known["expect"] = item.expected
    return parsed(known, f"item {item.id} of {dataset}")


def _is_instruction(said: object) -> bool:
    """Whether a message is a model's instructions: those of the sommelier are in their place."""
    return isinstance(said, dict) and said.get("role") in ("system", "developer")


def _text_of(said: object) -> object:
    return said.get("content") if isinstance(said, dict) else said
