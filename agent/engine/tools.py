"""Tools: a typed function, its schema for the model, and how calls are run.

No failure of a tool ends a turn: wrong arguments, a `ToolError`, a time-out and a crash become a
message that tells the model what went wrong. For a crash this is the type of the exception only:
its text may hold a secret.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import to_jsonable_python

from agent import size_limits
from agent.engine.contract import Source
from agent.engine.errors import (
    ToolError,
    describe_validation_error,
    log_failure,
    quoted,
)
from agent.engine.messages import JsonSchema, ToolCall, json_object
from agent.engine.run import Run
from agent.language import truncate_at_boundary
from agent.text import strip_unstorable

ERROR_PREFIX: Final = "Error: "
DROPPED_KEYWORDS: Final = frozenset(
    {"title", "minLength", "maxLength", "minItems", "maxItems"}
)
"""Keywords of a schema that do not help the model."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The value that a tool's function returns: `content` is what the model reads.

    Only `sources`, by id, are evidence for an answer: `content` may merely repeat the model's
    arguments. `effects` are what the tool wants done, such as a change to stored data. They are
    compared with `==`, otherwise the engine only hands them to the caller.
    """

    content: object
    sources: Mapping[str, Source] = field(default_factory=dict)
    effects: Sequence[object] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: tool message, evidence, effects, and the error's type if it failed."""

    text: str
    sources: Mapping[str, Source] = field(default_factory=dict)
    effects: Sequence[object] = ()
    error_type: str | None = None


def _always(run: Run) -> bool:
    return True


@dataclass(frozen=True)
class Tool:
    """A coroutine function that the model may call, and all that is said about it.

    It receives an instance of `arguments_model` and the turn's run, with the span of this call.
    `seconds` is the time limit; default: the run's. The engine offers a tool to the model only if
    `is_offered`, which should differ for as few users as possible: a server caches a request whose
    tools stay the same. A tool may refuse a call by a `ToolError`.
    """

    name: str
    description: str
    arguments_model: type[BaseModel]
    function: Callable[[Any, Run], Awaitable[object]]
    seconds: float | None = None
    parameters: JsonSchema | None = None
    """The schema to show to the model instead of that of `arguments_model`."""
    prompt_line: str = ""
    """What the prompt says about the use of the tool; the caller adds it to the instructions."""
    progress_text: str = ""
    """The name of the sentence that the user reads while the tool runs."""
    is_offered: Callable[[Run], bool] = _always
    """Whether the tool is offered in the turn of a run."""

    @cached_property
    def openai_schema(self) -> JsonSchema:
        """Return the tool as the model sees it, in the wire format of OpenAI."""
        parameters = self.parameters or _schema_of(self.arguments_model)
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
        }
        return {"type": "function", "function": function}


def tool(function: Callable[..., object]) -> Tool:
    """Return a tool with the name, docstring and annotated parameters of a function.

    A parameter named `run` receives the turn's run; the model does not see it. A plain function
    runs in a thread, which cannot be cancelled: write functions that may hang as coroutines.
    Raises TypeError if a parameter has no annotation.
    """
    name = function.__name__
    description = inspect.getdoc(function) or ""
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.annotation is parameter.empty:
            raise TypeError(f"tool {name}: annotate the parameter {parameter.name}")
        default = parameter.default
        if default is parameter.empty:
            default = ...
        fields[parameter.name] = (parameter.annotation, default)
    takes_run = "run" in fields
    fields.pop("run", None)
    model = create_model(
        f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields
    )

    async def call(arguments: BaseModel, run: Run) -> object:
        named = {field: getattr(arguments, field) for field in fields}
        if takes_run:
            named["run"] = run
        if inspect.iscoroutinefunction(function):
            return await function(**named)
        return await asyncio.to_thread(function, **named)

    return Tool(name, description, model, call)


class Toolbox:
    """The tools of one turn, by name. Raises ValueError if two share a name."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self.tools: Mapping[str, Tool] = {item.name: item for item in tools}
        if len(self.tools) < len(tools):
            raise ValueError(f"two tools share a name: {[item.name for item in tools]}")

    def offered_in(self, run: Run) -> "Toolbox":
        """Return the tools that are offered in the turn of a run."""
        offered = []
        for item in self.tools.values():
            if item.is_offered(run):
                offered.append(item)
        return Toolbox(offered)

    async def call(
        self, tool_call: ToolCall, run: Run, *, is_prefetch: bool = False
    ) -> ToolResult:
        """Run one call within the limits of `run`, on a span of its own.

        A prefetch is a call that was not made by the model.
        """
        if run.usage.tool_calls >= run.limits.tool_calls:
            return _failed(
                "limit", "the limit of tool calls is reached; answer with what is known"
            )
        run.usage.tool_calls += 1
        called_tool = self.tools.get(tool_call.name)
        name = "unknown" if called_tool is None else called_tool.name
        metadata: dict[str, object] = {
            "step": run.usage.requests,
            "call_id": tool_call.id,
        }
        if is_prefetch:
            metadata["prefetch"] = True
        with run.span.child(
            f"tool.{name}", "tool", input=tool_call.arguments, metadata=metadata
        ) as span:
            if called_tool is None:
                names = ", ".join(self.tools) or "none"
                problem = f"there is no tool {quoted(tool_call.name)}. Tools: {names}"
                result = _failed("unknown_tool", problem)
            else:
                result = await _execute(
                    called_tool, tool_call.arguments, run.for_tool(span)
                )
            span.update(output=result.text)
            if result.error_type:
                run.usage.tool_errors += 1
                span.update(level="ERROR", metadata={"error_type": result.error_type})
        return result


async def _execute(called_tool: Tool, arguments: str, run: Run) -> ToolResult:
    """Run a tool within its time limit; return a failure as a result."""
    if len(arguments) > size_limits.ARGUMENT_CHARS:
        problem = (
            f"the arguments have more than {size_limits.ARGUMENT_CHARS} characters"
        )
        return _failed("invalid_arguments", problem)
    normalized = _normalize_arguments(arguments)
    try:
        parsed = called_tool.arguments_model.model_validate_json(normalized)
    except ValidationError as error:
        return _failed("invalid_arguments", describe_validation_error(error))
    seconds = min(called_tool.seconds or run.limits.tool_seconds, run.seconds_left)
    max_chars = run.limits.result_chars
    try:
        async with asyncio.timeout(seconds) as limit:
            output = await called_tool.function(parsed, run)
        if not isinstance(output, ToolOutput):
            output = ToolOutput(output)
        text = as_text(output.content, max_chars)
        return ToolResult(text, output.sources, output.effects)
    except ToolError as error:
        return _failed("tool_error", as_text(str(error), max_chars))
    except Exception as error:
        if limit.expired():  # our limit, not a TimeoutError that the tool raised itself
            return _failed(
                "timeout", f"{called_tool.name} took longer than {seconds:g} s"
            )
        error_type = log_failure(f"tool {called_tool.name} failed", error)
        problem = f"{called_tool.name} failed ({error_type}); answer without it or try differently"
        return _failed(error_type, problem)


def _normalize_arguments(arguments: str) -> str:
    """Remove nulls, which some servers force the model to fill in; turn empty text into `{}`."""
    if arguments.strip() in {"", "null"}:
        return "{}"
    if "null" not in arguments:
        return arguments
    values = json_object(arguments)
    if values is None:
        return arguments
    return json.dumps(
        {name: value for name, value in values.items() if value is not None}
    )


def _failed(error_type: str, problem: str) -> ToolResult:
    return ToolResult(f"{ERROR_PREFIX}{problem}", error_type=error_type)


def as_text(content: object, max_chars: int) -> str:
    """Return a tool's content as the model reads it: text or JSON, cut at a sentence boundary."""
    if not isinstance(content, str):
        plain = to_jsonable_python(content, exclude_none=True)
        content = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    text = strip_unstorable(content)
    if len(text) <= max_chars:
        return text
    return (
        f"{truncate_at_boundary(text, max_chars)}\n[cut: {len(text)} characters in all]"
    )


@lru_cache(128)  # making a schema takes a millisecond
def _schema_of(arguments: type[BaseModel]) -> Mapping[str, Any]:
    """Return the schema of a tool's arguments, with enums inlined.

    Titles, lengths, empty defaults, nulls and the class docstring cost tokens, and are left out.
    """
    schema = arguments.model_json_schema()
    schema.pop("description", None)
    enums = {}
    others = {}
    for name, definition in schema.pop("$defs", {}).items():
        if "enum" in definition:
            enums[f"#/$defs/{name}"] = definition
        else:
            others[name] = definition
    if others:
        schema["$defs"] = others
    slim: Mapping[str, Any] = _slim(schema, enums)
    return slim


def _slim(node: Any, enums: Mapping[str, Any]) -> Any:
    """Inline enums and drop costly keywords."""
    if isinstance(node, list):
        return [_slim(item, enums) for item in node]
    if not isinstance(node, dict):
        return node
    node = _without_null(node)
    if enum := enums.get(node.get("$ref", "")):
        inlined = {"enum": enum["enum"]}
        if "type" in enum:  # an enum of mixed values has none
            inlined["type"] = enum["type"]
        node = inlined | node
        del node["$ref"]
    return {
        key: _slim(value, enums)
        for key, value in node.items()
        if not _is_costly(key, value)
    }


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without null among its alternatives, unfolded if one of them is left."""
    alternatives = [
        schema for schema in node.get("anyOf", ()) if schema != {"type": "null"}
    ]
    if not alternatives:
        return node
    if len(alternatives) > 1:
        return node | {"anyOf": alternatives}
    others = {key: value for key, value in node.items() if key != "anyOf"}
    only: dict[str, Any] = alternatives[0]
    return only | others


def _is_costly(key: str, value: object) -> bool:
    """Return True if a keyword of a schema says nothing that the model needs."""
    if key == "default":
        return value in (None, [], "")
    # A property may be called "title" too: its value is then a schema.
    return key in DROPPED_KEYWORDS and isinstance(value, str | int)
