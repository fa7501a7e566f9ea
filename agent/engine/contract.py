"""What an answer must be: a type, semantic rules, grounding rules, and how it reaches a person."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from agent.engine.feedback import FEEDBACK, TEXT_FEEDBACK
from agent.engine.messages import JsonSchema, OutputSchema, api_name
from agent.engine.tools import ToolResult

T = TypeVar("T")


@runtime_checkable
class Source(Protocol):
    """What a source returned: a wine, a part of a document, a page of the web."""

    @property
    def said(self) -> str:
        """The source's own words, and nothing of what it was asked."""
        ...


@dataclass(slots=True)
class Evidence:
    """What an answer stands on; it may name nothing else.

    `found` is what tools of this turn found, by id. The text that a tool returns to the model is no
    part of it: that may repeat the model's own arguments. `asked` is what people wrote, `answered`
    what they were answered before, `instructions` what no answer is to repeat.
    """

    found: dict[str, object] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    instructions: str = ""

    def add_results(self, results: Iterable[ToolResult]) -> None:
        """Take in what tools found; an error has found nothing."""
        for result in results:
            self.found.update(result.found)

    @property
    def texts(self) -> list[str]:
        """What sources said, and people."""
        return [
            *(each.said for each in self.found.values() if isinstance(each, Source)),
            *self.asked,
        ]

    @property
    def links(self) -> frozenset[str]:
        """The addresses of what was found: only these may be tapped."""
        found = (getattr(each, "url", None) for each in self.found.values())
        return frozenset(each for each in found if isinstance(each, str))


Problem = str | None
Semantic = Callable[[T], Problem | Awaitable[Problem]]
Grounding = Callable[[T, Evidence], Problem | Awaitable[Problem]]
Render = Callable[[T, Evidence], str]


def _nothing(value: object, evidence: object = None) -> None:
    return None


def _as_text(value: object, evidence: Evidence) -> str:
    """All strings of an answer, a paragraph each, or else its numbers: the default rendering."""
    try:
        found = list(leaves(to_jsonable_python(value)))
    except ValueError:  # nested too deeply
        return ""
    said = [leaf for leaf in found if isinstance(leaf, str)]
    return "\n\n".join(
        text for text in said or [str(leaf).lower() for leaf in found] if text.strip()
    )


def _names_none(value: object) -> list[str]:
    return []


@dataclass(frozen=True)
class OutputContract(Generic[T]):
    """A contract for answers of `type`.

    `semantic` and `grounding` say what is wrong with a value, or None. `trim` leaves out of a value
    what nothing grounds if it is good without that, or None: it is not asked for again then.
    `render` makes the text a
    person gets, `ids` lists the ids of what it shows them. `salvage` leaves the valid part of a
    value that broke a rule, or None; what it leaves is held to all rules again. `partial` makes a
    value that keeps the grounding rules of what is known of an answer while it is written, which
    may be shown.
    `narrow` leaves of the strict schema what the evidence so far allows: a server that holds a
    model to it lets nothing else be written.

    `type` is anything that has a pydantic schema, or a TypeAdapter of it. A contract for `str` is
    answered in plain text. `read_text` makes a value of plain text, or of
    a response that holds no JSON; None if it cannot. `correction` is a wording of the feedback of
    one's own. `temperature` goes along with every request, unless it is None. `semantic` and
    `grounding` may be coroutine functions.
    """

    type: type[T] | TypeAdapter[T]
    semantic: Semantic[T] = _nothing
    grounding: Grounding[T] = _nothing
    render: Render[T] = _as_text
    ids: Callable[[T], list[str]] = _names_none
    trim: Callable[[T, Evidence], T | None] = _nothing
    salvage: Callable[[T, Evidence], T | None] = _nothing
    partial: Callable[[Mapping[str, Any], Evidence], T | None] | None = None
    narrow: Callable[[JsonSchema, Evidence], JsonSchema] | None = None
    read_text: Callable[[str], object | None] | None = None
    correction: str | None = None
    temperature: float | None = None

    @cached_property
    def adapter(self) -> TypeAdapter[T]:
        """Return the validator, built once."""
        return self.type if isinstance(self.type, TypeAdapter) else TypeAdapter(self.type)

    @property
    def feedback(self) -> str:
        """Return the wording of the feedback on an invalid answer."""
        return self.correction or (TEXT_FEEDBACK if self.plain_text else FEEDBACK)

    def read(self, value: object) -> T:
        """Read a value of JSON as the contract's type; a strict type takes a date of text only so.

        Raises:
            ValidationError: it does not satisfy the schema.
        """
        try:
            return self.adapter.validate_python(value)
        except ValidationError as error:
            with suppress(ValidationError):
                return self.adapter.validate_json(json.dumps(value))
            raise error from None

    def write(self, answer: T) -> str:
        """Write a valid answer as a model should have: text as it is, anything else as JSON.

        Empty for a type that cannot be written.
        """
        if isinstance(answer, str):
            return answer
        try:
            return self.adapter.dump_json(answer, by_alias=True).decode()
        except ValueError:  # nothing says how the type is written
            return ""

    @cached_property
    def output(self) -> OutputSchema:
        """Return the JSON Schema for the prompt and for response mode `json_schema`."""
        schema = self.adapter.json_schema()
        name = str(getattr(self.type, "__name__", schema.get("title", "answer")))
        return OutputSchema(api_name(name), schema, strict_schema(schema))

    @cached_property
    def choices(self) -> frozenset[str]:
        """Return the string values that the schema itself allows as choices."""
        return frozenset(
            choice
            for node in _nodes(self.output.schema)
            for choice in (*_listed(node.get("enum")), node.get("const"))
            if isinstance(choice, str)
        )

    @property
    def plain_text(self) -> bool:
        """Whether the answer is text as it stands, and no JSON."""
        return self.output.schema.get("type") == "string"

    @property
    def any_text(self) -> bool:
        """Whether every text is an answer, as far as the schema goes."""
        return self.plain_text and self.output.schema.keys() <= {"type", "title", "description"}

    @property
    def is_drafted_as_text(self) -> bool:
        """Return True if whole sentences of the answer may be shown while it is written."""
        return self.any_text and self.grounding is _nothing and self.render is _as_text

    def requested(self, evidence: Evidence) -> OutputSchema | None:
        """What a response format can ask a server for: objects only, no list, text or number."""
        if not _is_of_objects(self.output.schema):
            return None
        strict = self.output.strict_schema
        if self.narrow is None or strict is None:
            return self.output
        return replace(self.output, strict_schema=self.narrow(strict, evidence))

    @property
    def opening(self) -> str:
        """The bracket that an answer starts with."""
        return "[" if self.output.schema.get("type") == "array" else "{"


def strict_schema(schema: JsonSchema) -> JsonSchema | None:
    """Make `schema` as strict mode wants it: every property required, no others, no defaults.

    None if there is no such form of it: strict mode knows no open objects, and no root but one.
    """
    root = {**_root(schema), **{key: schema[key] for key in ("$defs",) if key in schema}}
    objects = (node for node in _nodes(root) if node.get("type") == "object")
    if root.get("type") != "object" or not all("properties" in node for node in objects):
        return None
    strict: JsonSchema = _strict(root)
    return strict


def _strict(node: object) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    kept = {
        "anyOf" if key == "oneOf" else key: _strict(value)
        for key, value in node.items()
        if key not in {"default", "discriminator"}
    }
    if not isinstance(node.get("properties"), Mapping):
        return kept
    return kept | {"required": list(node["properties"]), "additionalProperties": False}


def _root(schema: JsonSchema) -> JsonSchema:
    """The schema that a recursive type's schema only refers to."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    root: JsonSchema = schema["$defs"][name] if name else schema
    return root


def _is_of_objects(schema: JsonSchema, definitions: JsonSchema | None = None) -> bool:
    """Whether every value of a schema is a JSON object."""
    whole = {"$defs": definitions if definitions is not None else schema.get("$defs", {})}
    root = _root({**schema, **whole})
    options = root.get("anyOf") or root.get("oneOf") or []
    every = [_is_of_objects(option, whole["$defs"]) for option in options]
    return all(every) if every else root.get("type") == "object"


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _nodes(node: object) -> Iterator[Mapping[str, Any]]:
    """Every object within a JSON Schema, itself included."""
    if isinstance(node, Mapping):
        yield node
        for value in node.values():
            yield from _nodes(value)
    elif isinstance(node, list):
        for item in node:
            yield from _nodes(item)


def string_leaves(data: object) -> Iterator[str]:
    """List every string value of a piece of JSON, keys not included."""
    return (leaf for leaf in leaves(data) if isinstance(leaf, str))


def leaves(data: object) -> Iterator[object]:
    """List every value of a piece of JSON that holds no other, null not included."""
    if isinstance(data, Mapping):
        for value in data.values():
            yield from leaves(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from leaves(value)
    elif data is not None:
        yield data
