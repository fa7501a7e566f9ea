"""What an answer must be: a type, semantic rules, grounding rules, and how it reaches a person."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter

from agent.feedback import FEEDBACK
from agent.messages import JsonSchema, OutputSchema

T = TypeVar("T")


@dataclass(slots=True)
class Evidence:
    """What the tools of this turn returned; an answer may name nothing else."""

    found: dict[str, object] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def add(self, text: str, found: Mapping[str, object]) -> None:
        """Take in one tool's result: the text the model saw, and the things in it by id."""
        self.texts.append(text)
        self.found.update(found)


Semantic = Callable[[T], str | None]
Grounding = Callable[[T, Evidence], str | None]
Render = Callable[[T, Evidence], str]


def _no_rule(value: object, evidence: object = None) -> str | None:
    return None


def _as_text(value: object, evidence: Evidence) -> str:
    """All strings of an answer, a paragraph each: the rendering where none is given."""
    data = value.model_dump() if isinstance(value, BaseModel) else value
    return "\n\n".join(leaf for leaf in string_leaves(data) if leaf.strip())


def _no_ids(value: object) -> Sequence[str]:
    return ()


def _no_salvage(value: T, evidence: Evidence) -> T | None:
    return None


@dataclass(frozen=True)
class OutputContract(Generic[T]):
    """A contract for answers of `type`.

    `semantic` and `grounding` say what is wrong with a value, or None. `render` makes the text a
    person gets and `ids` the ids it names. `salvage` leaves the valid part of a value that broke a
    rule, or None; what it leaves is held to all rules again.

    A contract for `str` is answered in plain text. `read_text` makes a value of plain text, or of
    a response that holds no JSON; None if it cannot. `correction` is the feedback's wording, and
    `temperature` goes along with every request, unless it is None.
    """

    type: type[T]
    semantic: Semantic[T] = _no_rule
    grounding: Grounding[T] = _no_rule
    render: Render[T] = _as_text
    ids: Callable[[T], Sequence[str]] = _no_ids
    salvage: Callable[[T, Evidence], T | None] = _no_salvage
    read_text: Callable[[str], object | None] | None = None
    correction: str = FEEDBACK
    temperature: float | None = None

    @cached_property
    def adapter(self) -> TypeAdapter[T]:
        """The validator, built once."""
        return TypeAdapter(self.type)

    @cached_property
    def output(self) -> OutputSchema:
        """The JSON Schema for the prompt and for response mode `json_schema`."""
        schema = self.adapter.json_schema()
        return OutputSchema(self.type.__name__, schema, strict_schema(schema))

    @cached_property
    def descriptions(self) -> frozenset[str]:
        """The schema's own descriptions: an answer that copies one says nothing."""
        said = (node.get("description") for node in _nodes(self.output.schema))
        return frozenset(text for text in said if isinstance(text, str))

    @cached_property
    def choices(self) -> frozenset[str]:
        """The string values that the schema itself allows as choices."""
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
    def requested(self) -> OutputSchema | None:
        """What a response format can ask a server for: objects only, never a list or a text."""
        return None if self.output.schema.get("type") in ("array", "string") else self.output

    @property
    def opening(self) -> str:
        """The bracket that an answer starts with."""
        return "[" if self.output.schema.get("type") == "array" else "{"

    def broken_rule(self, value: T, evidence: Evidence) -> tuple[str, str] | None:
        """The kind and description of the first rule `value` breaks, None if it keeps all."""
        if problem := self.semantic(value):
            return "semantic", problem
        if problem := self.grounding(value, evidence):
            return "grounding", problem
        return None


def strict_schema(schema: JsonSchema) -> dict[str, Any]:
    """`schema` as strict mode wants it: every property required, no others, no defaults."""
    return {key: _strict(value) for key, value in schema.items()} | _closed(schema)


def _strict(node: object) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    kept = {key: _strict(value) for key, value in node.items() if key != "default"}
    return kept | _closed(node)


def _closed(node: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(node.get("properties"), Mapping):
        return {}
    return {"required": list(node["properties"]), "additionalProperties": False}


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
    """Every string value of a piece of JSON, keys not included."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from string_leaves(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from string_leaves(value)
