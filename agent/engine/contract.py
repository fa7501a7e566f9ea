"""The contract of an answer: a type, semantic rules, grounding rules, and how it is rendered."""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from agent.engine.feedback import FEEDBACK, TEXT_FEEDBACK
from agent.engine.messages import JsonSchema, OutputSchema, api_name

T = TypeVar("T")


@runtime_checkable
class Source(Protocol):
    """A result of a source: a wine, a part of a document, a page of the web."""

    @property
    def said(self) -> str:
        """Return the source's own words, and nothing of its query."""
        ...


@dataclass(slots=True)
class Evidence:
    """The facts of a turn; an answer may name nothing else.

    `found` holds the results of this turn's tools, by id. The text that a tool returns to the model
    is no part of it: that may repeat the model's own arguments. `asked` holds the user's messages,
    `answered` earlier answers.
    """

    found: dict[str, object] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """Return the words of the sources and of the user."""
        return [
            *(source.said for source in self.found.values() if isinstance(source, Source)),
            *self.asked,
        ]

    @property
    def links(self) -> frozenset[str]:
        """Return the addresses of what was found: only these may be links."""
        urls = (getattr(source, "url", None) for source in self.found.values())
        return frozenset(url for url in urls if isinstance(url, str))


Problem = str | None
Semantic = Callable[[T], Problem | Awaitable[Problem]]
Grounding = Callable[[T, Evidence], Problem | Awaitable[Problem]]
Render = Callable[[T, Evidence], str]


def _nothing(value: object, evidence: object = None) -> None:
    return None


def _as_text(value: object, evidence: Evidence) -> str:
    """Return all strings of an answer as paragraphs, or else its numbers: the default rendering."""
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
    """A contract for answers of `type`, which has a pydantic schema or is a TypeAdapter.

    A contract for `str` is answered in plain text. `semantic` and `grounding` return what is wrong
    with a value, or None; they may be coroutine functions. `render` makes the text for the user,
    `ids` lists the ids that it shows.

    `trim` returns a value without what nothing grounds, or None if it must be asked for again;
    `salvage` returns the valid part of a value when attempts are used up, or None. Both are held to
    all rules again. `partial` returns a value that keeps the grounding rules, made of an answer
    that is still being written. `narrow` restricts the strict schema to what the evidence allows.

    `read_text` makes a value of plain text, or of a response that holds no JSON, or returns None.
    `correction` replaces the wording of the feedback. `temperature` goes along with every request.
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
        """Read a value of JSON as the contract's type.

        Raises:
            ValidationError: it does not satisfy the schema.
        """
        # Halves of characters are joined, which JSON5 leaves apart, or replaced: UTF-8 has none.
        text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
        return self.adapter.validate_json(text.decode("utf-16", "replace"))

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

    @property
    def plain_text(self) -> bool:
        """Return True if the answer is text as it is, and no JSON."""
        return self.output.schema.get("type") == "string"

    @property
    def any_text(self) -> bool:
        """Return True if every text satisfies the schema."""
        return self.plain_text and self.output.schema.keys() <= {"type", "title", "description"}

    @property
    def is_drafted_as_text(self) -> bool:
        """Return True if whole sentences of the answer may be shown while it is written."""
        return self.any_text and self.grounding is _nothing and self.render is _as_text

    def requested(self, evidence: Evidence) -> OutputSchema | None:
        """Return the schema for a response format; None unless it is one of objects."""
        if not _is_of_objects(self.output.schema):
            return None
        strict = self.output.strict_schema
        if self.narrow is None or strict is None:
            return self.output
        return replace(self.output, strict_schema=self.narrow(strict, evidence))

    @property
    def opening(self) -> str:
        """Return the bracket that an answer starts with."""
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
    """Return the schema that a recursive type's schema only refers to."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    root: JsonSchema = schema["$defs"][name] if name else schema
    return root


def _is_of_objects(schema: JsonSchema, definitions: JsonSchema | None = None) -> bool:
    """Return True if every value of a schema is a JSON object."""
    whole = {"$defs": definitions if definitions is not None else schema.get("$defs", {})}
    root = _root({**schema, **whole})
    options = root.get("anyOf") or root.get("oneOf") or []
    every = [_is_of_objects(option, whole["$defs"]) for option in options]
    return all(every) if every else root.get("type") == "object"


def _nodes(node: object) -> Iterator[Mapping[str, Any]]:
    """Yield every object within a JSON Schema, itself included."""
    if isinstance(node, Mapping):
        yield node
        for value in node.values():
            yield from _nodes(value)
    elif isinstance(node, list):
        for item in node:
            yield from _nodes(item)


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
