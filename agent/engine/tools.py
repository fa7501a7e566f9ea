"""Tools: a typed function, its schema for the model, and how calls are run.

No failure of a tool ends a turn. Wrong arguments, a `ToolError`, a time-out and a crash become a
message that tells the model what went wrong. After a crash the message has only the type of the
exception, because its text may hold a secret.
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
    clip_quote,
    describe_validation_error,
    log_failure,
)
from agent.engine.messages import JsonSchema, ToolCall, parse_json_object
from agent.engine.run import Run
from agent.language import truncate_at_boundary
from agent.text import strip_unstorable

ERROR_PREFIX: Final = "Error: "
USELESS_KEYWORDS: Final = frozenset(
    {"title", "minLength", "maxLength", "minItems", "maxItems"}
)
"""Keywords of a schema that cost tokens and do not help the model."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The value that a tool's function returns."""

    content: object
    """The text or data that the model reads.

    It is not evidence for an answer, because it may repeat the arguments of the model.
    """
    sources: Mapping[str, Source] = field(default_factory=dict)
    """The sources that the tool has found, by id. They are evidence for an answer."""
    effects: Sequence[object] = ()
    """The effects that the tool asks the caller of the engine for, such as a change to stored data.

    The engine passes effects on. It only compares them with `==`, so that the same effect of two
    calls is passed on once.
    """


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call."""

    text: str
    """The tool message that the model reads."""
    sources: Mapping[str, Source] = field(default_factory=dict)
    effects: Sequence[object] = ()
    error_type: str | None = None
    """The type of the error, or None if the call succeeded."""


def _always(run: Run) -> bool:
    return True


@dataclass(frozen=True)
class Tool:
    """A coroutine function that the model may call, with its description for the model.

    The function receives an instance of `arguments_model`, and the turn's run with the span of the
    call. The function may refuse a call by raising `ToolError`.
    """

    name: str
    description: str
    arguments_model: type[BaseModel]
    function: Callable[[Any, Run], Awaitable[object]]
    seconds: float | None = None
    """The time limit of a call, or None for the limit of the run."""
    parameters: JsonSchema | None = None
    """The schema to show to the model instead of that of `arguments_model`."""
    prompt_line: str = ""
    """A line about the use of the tool, which the caller adds to the instructions of the model."""
    progress_name: str = ""
    """The name of the sentence that the user reads while the tool runs."""
    is_offered: Callable[[Run], bool] = _always
    """Returns whether the model may call the tool in the turn of a run.

    The result should be the same for as many users as possible: servers cache the beginning of a
    request, which lists the tools.
    """

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

    A parameter named `run` receives the turn's run, and is not shown to the model. A plain function
    runs in a thread, which cannot be cancelled. Therefore a function that may hang should be a
    coroutine function.

    Raises:
        TypeError: a parameter has no annotation.
    """
    name = function.__name__
    description = inspect.getdoc(function) or ""
    fields = _fields_of_parameters(function)
    takes_run = "run" in fields
    fields.pop("run", None)
    closed = ConfigDict(extra="forbid")
    arguments_model = create_model(f"{name}_arguments", __config__=closed, **fields)

    async def call(arguments: BaseModel, run: Run) -> object:
        by_name = {field: getattr(arguments, field) for field in fields}
        if takes_run:
            by_name["run"] = run
        if inspect.iscoroutinefunction(function):
            return await function(**by_name)
        return await asyncio.to_thread(function, **by_name)

    return Tool(name, description, arguments_model, call)


def _fields_of_parameters(function: Callable[..., object]) -> dict[str, Any]:
    """Return the parameters of a function as fields for a pydantic model."""
    fields: dict[str, Any] = {}
    parameters = inspect.signature(function, eval_str=True).parameters
    for name, parameter in parameters.items():
        if parameter.annotation is parameter.empty:
            raise TypeError(f"tool {function.__name__}: annotate the parameter {name}")
        default = parameter.default
        if default is parameter.empty:
            default = ...  # pydantic's mark of a required field
        fields[name] = (parameter.annotation, default)
    return fields


class Toolbox:
    """The tools of one turn, by name.

    Raises:
        ValueError: two tools share a name.
    """

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        if len(self.tools) < len(tools):
            names = [tool.name for tool in tools]
            raise ValueError(f"two tools share a name: {names}")

    def offered_in(self, run: Run) -> "Toolbox":
        """Return the tools that are offered in the turn of a run."""
        offered = []
        for tool in self.tools.values():
            if tool.is_offered(run):
                offered.append(tool)
        return Toolbox(offered)

    async def call(
        self,
        tool_call: ToolCall,
        run: Run,
        *,
        is_prefetch: bool = False,
    ) -> ToolResult:
        """Run one call within the limits of `run`, on a span of its own.

        `is_prefetch` marks a call that the code makes before the model is asked.
        """
        if run.usage.tool_calls >= run.limits.tool_calls:
            return _failed_result(
                "limit", "the limit of tool calls is reached; answer with what is known"
            )
        run.usage.tool_calls += 1
        name = "unknown"
        if tool_call.name in self.tools:
            name = tool_call.name
        metadata: dict[str, object] = {
            "step": run.usage.requests,
            "call_id": tool_call.id,
        }
        if is_prefetch:
            metadata["prefetch"] = True
        with run.span.child(
            f"tool.{name}", "tool", input=tool_call.arguments, metadata=metadata
        ) as span:
            result = await self._run_tool(tool_call, run.for_tool(span))
            span.update(output=result.text)
            if result.error_type:
                run.usage.tool_errors += 1
                span.update(level="ERROR", metadata={"error_type": result.error_type})
        return result

    async def _run_tool(self, tool_call: ToolCall, run: Run) -> ToolResult:
        """Run the tool that a call names, if there is one and its arguments are valid."""
        tool = self.tools.get(tool_call.name)
        if tool is None:
            called_name = clip_quote(tool_call.name)
            names = ", ".join(self.tools) or "none"
            return _failed_result(
                "unknown_tool", f"there is no tool {called_name}. Tools: {names}"
            )
        max_chars = size_limits.ARGUMENT_CHARS
        if len(tool_call.arguments) > max_chars:
            problem = f"the arguments have more than {max_chars} characters"
            return _failed_result("invalid_arguments", problem)
        normalized = _normalize_arguments(tool_call.arguments)
        try:
            arguments = tool.arguments_model.model_validate_json(normalized)
        except ValidationError as error:
            return _failed_result("invalid_arguments", describe_validation_error(error))
        return await _execute(tool, arguments, run)


async def _execute(
    tool: Tool,
    arguments: BaseModel,
    run: Run,
) -> ToolResult:
    """Run a tool within its time limit. A failure becomes a result."""
    limit_seconds = tool.seconds or run.limits.tool_seconds
    seconds = min(limit_seconds, run.seconds_left)
    max_chars = run.limits.result_chars
    try:
        async with asyncio.timeout(seconds) as limit:
            output = await tool.function(arguments, run)
        if not isinstance(output, ToolOutput):
            output = ToolOutput(output)
        text = as_text(output.content, max_chars)
        return ToolResult(text, output.sources, output.effects)
    except ToolError as error:
        return _failed_result("tool_error", as_text(str(error), max_chars))
    except Exception as error:
        # A tool may also raise a TimeoutError of its own, before the limit expires.
        if limit.expired():
            return _failed_result(
                "timeout", f"{tool.name} took longer than {seconds:g} s"
            )
        log_failure(f"tool {tool.name} failed", error)
        error_type = type(error).__name__
        problem = f"{tool.name} failed ({error_type})"
        advice = "answer without it or try differently"
        return _failed_result(error_type, f"{problem}; {advice}")


def _normalize_arguments(arguments: str) -> str:
    """Return the arguments without nulls, and `{}` if there are none.

    Some servers force a model to write all arguments, and null for those that it does not need.
    """
    if arguments.strip() in {"", "null"}:
        return "{}"
    if "null" not in arguments:
        return arguments
    values = parse_json_object(arguments)
    if values is None:
        return arguments
    without_nulls: dict[str, object] = {}
    for name, value in values.items():
        if value is not None:
            without_nulls[name] = value
    return json.dumps(without_nulls)


def _failed_result(error_type: str, problem: str) -> ToolResult:
    return ToolResult(f"{ERROR_PREFIX}{problem}", error_type=error_type)


def as_text(content: object, max_chars: int) -> str:
    """Return a tool's content as text or JSON, cut at the end of a sentence if it is too long."""
    if not isinstance(content, str):
        plain = to_jsonable_python(content, exclude_none=True)
        content = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    text = strip_unstorable(content)
    if len(text) <= max_chars:
        return text
    beginning = truncate_at_boundary(text, max_chars)
    return f"{beginning}\n[cut: {len(text)} characters in all]"


@lru_cache(128)  # making a schema takes a millisecond
def _schema_of(arguments: type[BaseModel]) -> Mapping[str, Any]:
    """Return the schema of a tool's arguments, with enums inlined.

    Titles, lengths, empty defaults, nulls and the docstring of the class are left out: they cost
    tokens and do not help the model.
    """
    schema = arguments.model_json_schema()
    schema.pop("description", None)
    definitions = schema.pop("$defs", {})
    enums: dict[str, Any] = {}
    other_definitions: dict[str, Any] = {}
    for name, definition in definitions.items():
        if "enum" in definition:
            enums[f"#/$defs/{name}"] = definition
        else:
            other_definitions[name] = definition
    if other_definitions:
        schema["$defs"] = other_definitions
    slim: Mapping[str, Any] = _make_slim(schema, enums)
    return slim


def _make_slim(node: Any, enums: Mapping[str, Any]) -> Any:
    """Return a part of a schema with enums inlined, and without useless keywords and nulls.

    `enums` are by the reference to them: `#/$defs/Colour`.
    """
    if isinstance(node, list):
        return [_make_slim(item, enums) for item in node]
    if not isinstance(node, dict):
        return node
    node = _without_null(node)
    reference = node.get("$ref", "")
    if reference in enums:
        node = _inline_enum(node, enums[reference])
    slim = {}
    for key, value in node.items():
        if not _is_useless(key, value):
            slim[key] = _make_slim(value, enums)
    return slim


def _inline_enum(reference: dict[str, Any], enum: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reference to an enum with the values of the enum in place of its name.

    The other keywords of the reference, such as its description, are kept.
    """
    inlined = {"enum": enum["enum"]}
    if "type" in enum:  # an enum of mixed values has no type
        inlined["type"] = enum["type"]
    for key, value in reference.items():
        if key != "$ref":
            inlined[key] = value
    return inlined


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without null among its alternatives.

    If only one alternative is left, the schema itself becomes that alternative:
    `{"anyOf": [{"type": "string"}, {"type": "null"}]}` becomes `{"type": "string"}`.
    """
    alternatives: list[dict[str, Any]] = []
    for schema in node.get("anyOf", ()):
        if schema != {"type": "null"}:
            alternatives.append(schema)
    if not alternatives:
        return node
    if len(alternatives) > 1:
        return node | {"anyOf": alternatives}
    keywords = dict(node)
    del keywords["anyOf"]
    # The keywords beside "anyOf", such as the description, override those of the alternative.
    return alternatives[0] | keywords


def _is_useless(key: str, value: object) -> bool:
    """Return whether a keyword of a schema says nothing that the model needs."""
    if key == "default":
        return value in (None, [], "")
    # An argument may be called "title" too. Then the value is a schema, not a text or a number.
    return key in USELESS_KEYWORDS and isinstance(value, str | int)
