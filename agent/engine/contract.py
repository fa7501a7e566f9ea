"""The contract of an answer: a type, semantic rules, grounding rules, and how it is rendered."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cached_property
from typing import Any, Final, Generic, Protocol, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from agent.engine.errors import SHOWN_ERROR_CHARS
from agent.engine.messages import JsonSchema, OutputSchema, api_name
from agent.text import clip

T = TypeVar("T")

FEEDBACK_INTRO: Final = (
    "Your previous response failed validation: {error_description}. "
)
"""The beginning of every feedback, as R-002 of the structured-output research asks for."""
FEEDBACK: Final = FEEDBACK_INTRO + (
    "Please respond again with valid JSON matching the required schema. "
    "Do not include any text outside the JSON object."
)
TEXT_FEEDBACK: Final = (
    FEEDBACK_INTRO + "Please respond again with the whole answer, and nothing else."
)

TEXT_KEYWORDS: Final = frozenset({"type", "title", "description"})
"""The keywords that the schema of a plain text may have. Any other restricts the text."""


class Source(Protocol):
    """Something that a tool found: a wine, a part of a document, a page of the web."""

    @property
    def source_text(self) -> str:
        """Return the text of the source, which an answer may repeat."""

    @property
    def links(self) -> Sequence[str]:
        """Return the addresses that may be links in an answer."""


class SourceWithoutFacts:
    """A source that a check reads, and whose words and links no answer may repeat."""

    __slots__ = ()

    @property
    def source_text(self) -> str:
        """Return no text."""
        return ""

    @property
    def links(self) -> Sequence[str]:
        """Return no addresses."""
        return ()


def texts_of(sources: Iterable[Source]) -> list[str]:
    """Return the texts of the sources."""
    return [source.source_text for source in sources]


@dataclass(slots=True)
class Evidence:
    """The facts of a turn. An answer may name nothing else.

    The text that a tool returns to the model is not evidence, because it may repeat the model's own
    arguments.
    """

    sources: dict[str, Source] = field(default_factory=dict)
    """The sources that the tools of this turn have found, by id."""
    user_texts: list[str] = field(default_factory=list)
    """The messages of the user."""
    assistant_texts: list[str] = field(default_factory=list)
    """Earlier answers."""

    @property
    def texts(self) -> list[str]:
        """Return the texts of the sources and of the user."""
        source_texts = texts_of(self.sources.values())
        return source_texts + self.user_texts

    @property
    def links(self) -> frozenset[str]:
        """Return the addresses of the sources. Only these may be links in an answer."""
        links: set[str] = set()
        for source in self.sources.values():
            links.update(source.links)
        return frozenset(links)


class Show(Enum):
    """The time at which the valid part of an answer may be shown."""

    AT_ONCE = auto()
    AFTER_A_RETRY = auto()
    """After the model was asked again, and its answer was invalid again."""
    AT_LAST = auto()
    """After all attempts have failed."""


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """The valid part of an answer."""

    answer: T
    cuts: tuple[str, ...] = ()
    """The texts that the part lacks, as the trace shows them."""
    show: Show = Show.AT_LAST


Problem = str | None | Awaitable[str | None]
"""What a rule returns: the problem of an answer, or None. A coroutine function is awaited."""


def _nothing(value: object, evidence: object = None) -> None:
    return None


def _never(value: object) -> bool:
    return False


def _no_ids(value: object) -> list[str]:
    return []


def _as_text(value: object, evidence: Evidence) -> str:
    """Return an answer as text, with each string, number and truth value as a paragraph."""
    paragraphs = []
    for leaf in leaves(to_jsonable_python(value)):
        paragraph = str(leaf)
        if paragraph.strip():
            paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


@dataclass(frozen=True)
class OutputContract(Generic[T]):
    """A contract for the answers of a turn: their type, their rules, and how they are shown."""

    type: type[T] | TypeAdapter[T]
    """A type with a pydantic schema, or a TypeAdapter. The answer to `str` is plain text."""
    ends_turn: Callable[[T], bool] = _never
    """Returns whether a value is a result by itself. It has no text, and no rule applies to it."""
    semantic: Callable[[T], Problem] = _nothing
    """Returns the problem of a value on its own."""
    grounding: Callable[[T, Evidence], Problem] = _nothing
    """Returns what the evidence does not support."""
    render: Callable[[T, Evidence], str] = _as_text
    """Returns the text for the user."""
    ids: Callable[[T], list[str]] = _no_ids
    """Returns the ids that the text for the user shows."""
    keep_valid: Callable[[T, Evidence], Part[T] | None] = _nothing
    """Returns the valid part of a value, or None if there is none.

    Before this part is shown as an answer, all rules check it again. Drafts are not checked again.
    """
    read_unfinished: Callable[[Mapping[str, Any]], T | None] | None = None
    """Returns a value from the JSON that a model has written so far. A draft is its valid part."""
    narrow: Callable[[JsonSchema, Evidence], JsonSchema] | None = None
    """Returns the strict schema, restricted to the evidence."""
    read_text: Callable[[str], object | None] = _nothing
    """Returns a value from plain text, or from a response without JSON, or None."""
    feedback_wording: str | None = None
    """Replaces the usual feedback."""
    temperature: float | None = None
    """The temperature that every request asks for."""

    @cached_property
    def adapter(self) -> TypeAdapter[T]:
        """Return the validator, which is built only once."""
        if isinstance(self.type, TypeAdapter):
            return self.type
        return TypeAdapter(self.type)

    def write_feedback(self, error: str) -> str:
        """Return the message that explains to the model why its answer is invalid."""
        wording = FEEDBACK
        if self.feedback_wording is not None:
            wording = self.feedback_wording
        elif self.is_plain_text:
            wording = TEXT_FEEDBACK
        without_stop = error.strip().rstrip(".")
        # The wording has a full stop of its own.
        problem = clip(without_stop, SHOWN_ERROR_CHARS)
        return wording.replace("{error_description}", problem)

    def write(self, answer: T) -> str:
        """Return a valid answer as the model should have written it: plain text, or JSON."""
        if isinstance(answer, str):
            return answer
        return self.adapter.dump_json(answer, by_alias=True).decode()

    @cached_property
    def output(self) -> OutputSchema:
        """Return the JSON Schema for the prompt and for response mode `json_schema`."""
        schema = self.adapter.json_schema()
        title = schema.get("title", "answer")
        name = str(getattr(self.type, "__name__", title))
        return OutputSchema(api_name(name), schema, make_strict_schema(schema))

    @property
    def is_plain_text(self) -> bool:
        """Return whether the answer is plain text instead of JSON."""
        schema = self.output.schema
        if schema.get("type") != "string":
            return False
        return schema.keys() <= TEXT_KEYWORDS

    @property
    def is_drafted(self) -> bool:
        """Return whether a part of the answer may be shown while it is written.

        Without `read_unfinished`, only the whole sentences of a text that no rule changes may be
        shown.
        """
        if self.read_unfinished is not None:
            return True
        changes_text = self.grounding is not _nothing or self.render is not _as_text
        return self.is_plain_text and not changes_text

    def output_format(self, evidence: Evidence) -> OutputSchema | None:
        """Return the schema for a response format, or None if the answer is not a JSON object."""
        if self.output.schema.get("type") != "object":
            return None
        strict_schema = self.output.strict_schema
        if self.narrow is None or strict_schema is None:
            return self.output
        narrow_schema = self.narrow(strict_schema, evidence)
        return replace(self.output, strict_schema=narrow_schema)


def make_strict_schema(schema: JsonSchema) -> JsonSchema | None:
    """Return a schema for strict mode, in which all properties are required and no others allowed.

    Return None if the schema has no strict form: its root is not an object, or an object in it
    allows any properties.
    """
    if schema.get("type") != "object":
        return None
    try:
        strict: JsonSchema = _make_strict(schema)
    except KeyError:  # an object that allows any properties has no "properties"
        return None
    return strict


def _make_strict(node: Any) -> Any:
    """Return a part of a schema in its strict form.

    Raises:
        KeyError: an object allows any properties.
    """
    if isinstance(node, list):
        return [_make_strict(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    strict: dict[str, Any] = {}
    for key, value in node.items():
        if key == "oneOf":
            strict["anyOf"] = _make_strict(value)
        elif key not in {"default", "discriminator"}:
            strict[key] = _make_strict(value)
    if node.get("type") == "object":
        # A property may be called "default", too, and is kept.
        properties: dict[str, Any] = {}
        for name, schema in node["properties"].items():
            properties[name] = _make_strict(schema)
        strict["properties"] = properties
        strict["required"] = list(properties)
        strict["additionalProperties"] = False
    return strict


def leaves(data: object) -> Iterator[object]:
    """Yield every string, number and truth value within a piece of JSON."""
    if isinstance(data, Mapping):
        data = list(data.values())
    if isinstance(data, list | tuple):
        for value in data:
            yield from leaves(value)
    elif data is not None:
        yield data
