"""Datasets: conversations with expectations of their last answer.

`docs/evaluation.md` explains the format. Unknown fields of a conversation are ignored, but an
unknown expectation is an error, because a misspelt one would never fail.
"""

from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    ValidationError,
)

from agent.engine.errors import AgentError
from agent.language import detected_languages
from agent.sommelier.sommelier_prompts import ResponseType
from agent.sommelier.vocabulary import Allergen, Body, Currency, Food, Style, Sweetness
from agent.tables import StrictModel
from agent.tracing.records import derive_trace_id
from agent.turn import StoredMessage

STARTER_CONVERSATIONS: Final = Path(__file__).with_name("conversations.jsonl")
"""Conversations for the starter wines."""

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class DatasetError(AgentError):
    """A dataset cannot be read. The message names the location and the problem."""


def _require_detected_language(code: str) -> str:
    if code not in detected_languages():
        known = ", ".join(detected_languages())
        raise ValueError(f"{code} is not one of {known}")
    return code


class Expectation(StrictModel):
    """The expectations of the last answer of a conversation. What is not set is not checked.

    A list such as `styles` is met if every wine of the answer has one of its values, and a list
    `without_…` if no wine has any. `without_notes` are words such as "oak". `cheaper_than` and
    `about` are numbers of wines in the previous answer, counted from 1. `must_not_contain` applies
    to all answers of the conversation.
    """

    types: tuple[ResponseType, ...] = ()
    any_language: bool = False

    min_wines: PositiveInt | None = None
    max_wines: PositiveInt | None = None
    no_wines: bool = False

    min_price: PositiveFloat | None = None
    max_price: PositiveFloat | None = None
    currency: Currency = Currency.EUR
    max_abv: NonNegativeFloat | None = None

    styles: tuple[Style, ...] = ()
    sweetness: tuple[Sweetness, ...] = ()
    foods: tuple[Food, ...] = ()
    countries: tuple[Text, ...] = ()
    grapes: tuple[Text, ...] = ()

    without_styles: tuple[Style, ...] = ()
    without_bodies: tuple[Body, ...] = ()
    without_countries: tuple[Text, ...] = ()
    without_regions: tuple[Text, ...] = ()
    without_grapes: tuple[Text, ...] = ()
    without_allergens: tuple[Allergen, ...] = ()
    without_notes: tuple[Text, ...] = ()

    cheaper_than: PositiveInt | None = None
    about: PositiveInt | None = None
    not_shown_before: bool = False

    must_not_contain: tuple[Text, ...] = ()
    must_contain_any: tuple[Text, ...] = ()


class EvalCase(BaseModel):
    """The messages of a user. Each message is answered before the next one is sent.

    `history` are messages and answers before them. `item_id` is the id of the item in Langfuse that
    the conversation was read from, empty for a file.
    """

    model_config = ConfigDict(frozen=True)

    id: Text
    messages: tuple[Text, ...] = Field(min_length=1)
    language: Annotated[str, AfterValidator(_require_detected_language)] | None = None
    kind: str = "other"
    item_id: str = ""
    history: tuple[StoredMessage, ...] = ()
    expect: Expectation = Expectation()


def read_conversations(path: Path) -> list[EvalCase]:
    """Read the conversations of a JSONL file in order. Blank lines are skipped.

    Raises:
        DatasetError: the file cannot be read, or a line is not a conversation.
    """
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise DatasetError(f"{path} cannot be read: {reason}") from None
    # `splitlines` would also split at other line endings, which a message may contain.
    lines = content.split("\n")
    by_id: dict[str, EvalCase] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        conversation = parse_conversation(line, f"line {number} of {path}")
        if conversation.id in by_id:
            raise DatasetError(f"two conversations have the id {conversation.id!r}")
        by_id[conversation.id] = conversation
    return list(by_id.values())


def parse_conversation(value: object, location: str) -> EvalCase:
    """Parse a conversation from plain data or JSON.

    Raises:
        DatasetError: this is not a conversation. The message has the location, field and problem.
    """
    try:
        if isinstance(value, str):
            return EvalCase.model_validate_json(value)
        return EvalCase.model_validate(value)
    except ValidationError as error:
        first_problem, *_ = error.errors(include_url=False, include_input=False)
        field = ".".join(map(str, first_problem["loc"]))
        # A problem of the conversation as a whole has no field.
        parts = [location, field, first_problem["msg"]]
        message = ": ".join(filter(None, parts))
        raise DatasetError(message) from None


def to_item(dataset: str, conversation: EvalCase) -> dict[str, Any]:
    """Return a conversation as a Langfuse item, with the same id every time."""
    fields = conversation.model_dump(mode="json", exclude_defaults=True)
    expected = fields.pop("expect", {})
    metadata: dict[str, Any] = {}
    for name in ("id", "language", "kind"):
        if name in fields:
            metadata[name] = fields.pop(name)
    return {
        "id": derive_trace_id(dataset, conversation.id),
        "expected_output": expected,
        "metadata": metadata,
        "input": fields,
    }


def from_item(item: Any, dataset: str) -> EvalCase:
    """Parse an item of Langfuse's client.

    The item was made by `to_item`, or in Langfuse with a single message as its input.

    Raises:
        DatasetError: this is no such item, or it has unknown expectations.
    """
    location = f"item {item.id} of {dataset}"
    conversation = item.input
    if isinstance(conversation, str):
        conversation = {"messages": [conversation]}
    if not isinstance(conversation, dict):
        raise DatasetError(f"{location} has no messages as its input")
    fields = {"id": item.id}
    fields |= item.metadata or {}
    fields |= conversation
    fields["item_id"] = item.id
    if isinstance(item.expected_output, dict):
        fields["expect"] = item.expected_output
    return parse_conversation(fields, location)
