"""Datasets: conversations with what their last answer must keep to, and questions for quotes.

`docs/evaluation.md` explains the format. Unknown fields of a conversation are ignored, but an
unknown expectation is an error: a misspelt one would never fail.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
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
from agent.sommelier.sommelier_prompts import ResponseType
from agent.sommelier.wine import Allergen, Body, Colour, Currency, Food, Style, Sweetness
from agent.tables import StrictModel
from agent.text import Language
from agent.tracing.experiments import Item, item_id
from agent.turn import StoredMessage

STARTER: Final = Path(__file__).with_name("conversations.jsonl")
"""Conversations that are answered from the starter wines."""
GROUND_TRUTH: Final = Path(__file__).with_name("ground_truth.json")

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class DatasetError(AgentError):
    """A dataset cannot be read; the message names its place and what is wrong there."""


class Expectation(StrictModel):
    """Rules for the last answer of a conversation; an absent rule is not checked.

    A list of wine properties means any of its values; every wine of the answer is checked. The
    language is the conversation's, unless `language` is another or `any_language` is set.
    `without_notes` are words that a wine's notes in the catalogue must not have ("oak").
    `cheaper_than` and `about` count the wines of the previous answer from 1.
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

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        for name, low, high in (
            ("wines", self.min_wines, self.max_wines),
            ("price", self.min_price, self.max_price),
        ):
            if low is not None and high is not None and low > high:
                raise ValueError(f"min_{name} is above max_{name}: nothing can meet that")
        if self.no_wines and self.min_wines:
            raise ValueError("no_wines and min_wines: nothing can meet both")
        return self


class Conversation(BaseModel):
    """Messages of a user in order, each answered before the next; `history` is given."""

    model_config = ConfigDict(frozen=True)

    id: Text
    messages: tuple[Text, ...] = Field(min_length=1)
    language: Language | None = None
    kind: str = "other"
    history: tuple[StoredMessage, ...] = ()
    expect: Expectation = Expectation()

    @property
    def title(self) -> str:
        """Return the messages in one line."""
        return " / ".join(self.messages)


class Question(StrictModel):
    """A question with a known answer: the documents that hold it, by the end of their path."""

    id: str
    kind: Literal["keyword", "paraphrase", "multi", "negative"]
    query: str
    sources: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return the question."""
        return self.query


Case = Conversation | Question


def read_ground_truth() -> list[Question]:
    """Return the 24 questions over the starter documents: 6 of each kind."""
    return TypeAdapter(list[Question]).validate_json(GROUND_TRUTH.read_bytes())


def read_conversations(path: Path) -> list[Conversation]:
    """Read the conversations of a JSONL file, in order; blank lines are skipped.

    Raises:
        DatasetError: the file cannot be read, or a line of it is not a conversation.
    """
    try:
        # Not `splitlines`: other line ends may be part of a message.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise DatasetError(f"{path} cannot be read: {reason}") from None
    return require_unique_ids(
        parse_conversation(line, f"line {number} of {path}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    )


def require_unique_ids(conversations: Iterable[Conversation]) -> list[Conversation]:
    """Return the conversations as a list.

    Raises:
        DatasetError: two of them have the same id.
    """
    by_id: dict[str, Conversation] = {}
    for conversation in conversations:
        if conversation.id in by_id:
            raise DatasetError(f"two conversations have the id {conversation.id!r}")
        by_id[conversation.id] = conversation
    return list(by_id.values())


def parse_conversation(value: object, place: str) -> Conversation:
    """Make a conversation of plain data, or of JSON.

    Raises:
        DatasetError: it is not a conversation; the message names the place, the field and why.
    """
    try:
        if isinstance(value, str):
            return Conversation.model_validate_json(value)
        return Conversation.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, problem["loc"]))
        reason = problem["msg"].removeprefix("Value error, ")
        raise DatasetError(": ".join(filter(None, (place, field, reason)))) from None


def select(
    conversations: Sequence[Conversation], where: Sequence[str], limit: int | None = None
) -> list[Conversation]:
    """Return the conversations that meet every condition: `language=de`, `kind=budget`.

    `limit` of them, drawn evenly, if it is set.

    Raises:
        DatasetError: a condition is neither.
    """
    wanted = [condition.partition("=")[::2] for condition in where]
    for column, value in wanted:
        if column not in ("language", "kind"):
            raise DatasetError(f"--where is {column}={value}; write language=de, or kind=budget")
    found = [
        conversation
        for conversation in conversations
        if all(getattr(conversation, column) == value for column, value in wanted)
    ]
    count = min(limit or len(found), len(found))
    return [found[place * len(found) // count] for place in range(count)]


def item_of(dataset: str, case: Case) -> Item:
    """Return a case as an item of a dataset in Langfuse, with an id fixed by both."""
    data = case.model_dump(mode="json", exclude_defaults=True)
    metadata: dict[str, Any] = {key: data[key] for key in ("id", "language", "kind") if key in data}
    if isinstance(case, Question):
        return Item(
            item_id(dataset, case.id),
            {"query": case.query},
            {"sources": list(case.sources)},
            metadata,
        )
    asked = {key: data[key] for key in ("messages", "history") if key in data}
    return Item(item_id(dataset, case.id), asked, data.get("expect", {}), metadata)


def conversation_of(item: Item, dataset: str) -> Conversation:
    """Read an item: one that was recorded here, a text, or a list of messages.

    Raises:
        DatasetError: it is none of these, or its expectations are unknown.
    """
    asked = item.input
    if isinstance(asked, str):
        asked = {"messages": [asked]}
    elif isinstance(asked, list):
        messages = [message for message in asked if not _is_instruction(message)]
        last = [_content(message) for message in messages[-1:]]
        asked = {"messages": last, "history": messages[:-1]}
    if not isinstance(asked, dict):
        raise DatasetError(f"item {item.id} of {dataset} has no messages as its input")
    known: dict[str, Any] = {"id": item.id, **item.metadata, **asked}
    if isinstance(item.expected, dict):
        known["expect"] = item.expected
    return parse_conversation(known, f"item {item.id} of {dataset}")


def _is_instruction(message: object) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def _content(message: object) -> object:
    return message.get("content") if isinstance(message, dict) else message
