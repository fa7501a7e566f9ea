"""Tools: a typed function, its schema for the model, and how calls are run.

No failure of a tool ends a turn: wrong arguments, a `ToolError`, a time-out and a crash become a
message that tells the model what went wrong. For a crash this is the type of the exception only:
its text may hold a secret.
"""

import asyncio
import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import to_jsonable_python

from agent import lengths
from agent.engine.errors import ToolError, log_failure
from agent.engine.feedback import describe_validation_error, fence
from agent.engine.messages import ToolCall, ToolSchema
from agent.engine.run import Run
from agent.engine.span import Span
from agent.text import storable, truncate_at_boundary

ERROR_PREFIX: Final = "Error: "
BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
CUT_OFF: Final = "this call was cut off at the token limit; call again with shorter arguments"
ENOUGH_CALLS: Final = "the limit of tool calls is reached; answer with what is known"


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool: `content` for the model, and `sources` as evidence, by id.

    Only the sources ground an answer. The content does not: it may repeat the model's arguments.
    """

    content: object
    sources: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: the text of the tool message, evidence, and the error's type if any."""

    text: str
    sources: Mapping[str, object] = field(default_factory=dict)
    error_type: str | None = None


@dataclass(frozen=True)
class Tool:
    """A function that the model may call with `arguments`, a pydantic model.

    The function takes that model, or its fields by name if `by_name` is true. A plain function runs
    in a thread, which cannot be cancelled: write functions that may hang as coroutines. A parameter
    annotated `Run` receives the turn's run, traced on the tool's span; the model does not see this
    parameter. A call may take `seconds`, by default the limit of the run.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    function: Callable[..., object]
    by_name: bool = False
    seconds: float | None = None

    @cached_property
    def schema(self) -> ToolSchema:
        """Return the tool as the model sees it."""
        return ToolSchema(self.name, self.description, _schema_of(self.arguments))

    @cached_property
    def _run_parameters(self) -> tuple[str, ...]:
        # Cached: reading a signature takes as long as all the rest of a call.
        parameters = inspect.signature(self.function).parameters
        return tuple(name for name in parameters if _is_run(parameters[name].annotation))

    async def run(self, arguments: BaseModel, run: Run) -> object:
        """Call the function. Raises what it raises."""
        positional: tuple[object, ...] = () if self.by_name else (arguments,)
        keywords: dict[str, object] = dict.fromkeys(self._run_parameters, run)
        if self.by_name:
            keywords |= {name: getattr(arguments, name) for name in self.arguments.model_fields}
        if inspect.iscoroutinefunction(self.function):
            return await self.function(*positional, **keywords)
        output = await asyncio.to_thread(self.function, *positional, **keywords)
        return await output if inspect.isawaitable(output) else output


def _is_run(annotation: object) -> bool:
    if isinstance(annotation, str):
        return annotation == "Run" or annotation.startswith("Run[")
    return annotation is Run or get_origin(annotation) is Run


def tool(function: Callable[..., object]) -> Tool:
    """Return a tool with the name, docstring and annotated parameters of a function.

    Raises:
        TypeError: `function` is no function or has no docstring, or a parameter has no annotation
            or cannot be passed by name.
    """
    name = getattr(function, "__name__", repr(function))
    if not inspect.isroutine(function) or not function.__doc__:
        raise TypeError(f"tool {name} must be a function with a docstring")
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in BY_NAME or parameter.name.startswith("_"):
            raise TypeError(f"tool {name}: {parameter} cannot be given by name; rename it")
        if parameter.name not in hints:
            raise TypeError(f"tool {name}: annotate the parameter {parameter.name}")
        default = ... if parameter.default is parameter.empty else parameter.default
        if not _is_run(parameter.annotation):
            fields[parameter.name] = (hints[parameter.name], default)
    with warnings.catch_warnings():  # about parameters named like methods: "copy", "schema"
        warnings.simplefilter("ignore", UserWarning)
        model = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    return Tool(name, inspect.cleandoc(function.__doc__), model, function, by_name=True)


class Toolbox:
    """The tools of one turn, by name."""

    def __init__(self, tools: Iterable[Tool | Callable[..., object]] = ()) -> None:
        self.tools = [given if isinstance(given, Tool) else tool(given) for given in tools]
        self._by_name = {given.name: given for given in self.tools}
        self.names: Sequence[str] = list(self._by_name)
        if len(self.names) < len(self.tools):
            names = ", ".join(given.name for given in self.tools)
            raise ValueError(f"two tools have one name: {names}")
        self.schemas: Sequence[ToolSchema] = [given.schema for given in self.tools]

    async def call_all(
        self, calls: Sequence[ToolCall], run: Run, *, step: int, cut_off: bool
    ) -> list[ToolResult]:
        """Run a response's calls concurrently and return their results in order.

        Calls beyond the limit are refused. If the response was `cut_off`, its last call does not
        run unless its arguments are complete. `step` numbers the response in the trace.
        """
        allowed = max(0, run.limits.tool_calls - run.ledger.tool_calls)
        run.ledger.tool_calls += min(allowed, len(calls))
        cut = calls[-1] if cut_off and not is_json_object(calls[-1].arguments) else None
        results = await asyncio.gather(
            *(self.call(call, run, step=step, is_cut=call is cut) for call in calls[:allowed])
        )
        return results + [_failed("limit", ENOUGH_CALLS)] * len(calls[allowed:])

    async def call(
        self, call: ToolCall, run: Run, *, step: int = 1, is_cut: bool = False
    ) -> ToolResult:
        """Run one call within the limits of `run`, on a span of its own."""
        name = call.name if call.name in self.names else "unknown"
        with run.span.child(
            f"tool.{name}",
            "tool",
            input=call.arguments,
            metadata={"step": step, "call_id": call.id},
        ) as span:
            result = _failed("truncated", CUT_OFF)
            if not is_cut:
                result = await self._result(call, run, span)
            span.update(output=result.text)
            if result.error_type:
                run.ledger.tool_errors += 1
                span.update(level="ERROR", metadata={"error_type": result.error_type})
        return result

    async def _result(self, call: ToolCall, run: Run, span: Span) -> ToolResult:
        """Return the result of a call; a failure is a result too."""
        tool = self._by_name.get(call.name)
        if tool is None:
            listed = ", ".join(self.names) or "none"
            return _failed("unknown_tool", f"there is no tool {fence(call.name)}. Tools: {listed}")
        if len(call.arguments) > lengths.ARGUMENTS:
            problem = f"the arguments have more than {lengths.ARGUMENTS} characters"
            return _failed("invalid_arguments", problem)
        try:
            arguments = tool.arguments.model_validate_json(_without_nulls(call.arguments))
        except ValidationError as error:
            return _failed("invalid_arguments", describe_validation_error(error))
        return await _run(tool, arguments, run.for_tool(span))


async def _run(tool: Tool, arguments: BaseModel, run: Run) -> ToolResult:
    """Run a tool within its seconds and return its result; a failure is a result too."""
    seconds = min(tool.seconds or run.limits.tool_seconds, run.seconds_left)
    max_chars = run.limits.result_chars
    try:
        async with asyncio.timeout(seconds) as limit:
            output = await tool.run(arguments, run)
        if not isinstance(output, ToolOutput):
            output = ToolOutput(output)
        return ToolResult(truncate(as_text(output.content), max_chars), output.sources)
    except ToolError as error:
        return _failed("tool_error", truncate(storable(str(error)), max_chars))
    except Exception as error:
        if limit.expired():
            return _failed("timeout", f"{tool.name} took longer than {seconds:g} s")
        kind = log_failure(f"tool {tool.name} failed", error)
        problem = f"{tool.name} failed ({kind}); answer without it or try differently"
        return _failed(kind, problem)


def is_json_object(text: str) -> bool:
    """Return True if the arguments of a call are a complete JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _without_nulls(arguments: str) -> str:
    """Return arguments without null values: some servers make a model name every argument."""
    if "null" in arguments and is_json_object(arguments):
        values = json.loads(arguments).items()
        return json.dumps({name: value for name, value in values if value is not None})
    return "{}" if arguments.strip() in {"", "null"} else arguments


def _failed(kind: str, problem: str) -> ToolResult:
    return ToolResult(f"{ERROR_PREFIX}{problem}", {}, kind)


def as_text(content: object) -> str:
    """Return a tool's content as the model reads it: a string as it is, everything else as JSON."""
    if not isinstance(content, str):
        plain = to_jsonable_python(content, exclude_none=True)
        content = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return storable(content)


def truncate(text: str, max_chars: int) -> str:
    """Cut a text that is too long at the end of a paragraph or sentence, and note its length."""
    if len(text) <= max_chars:
        return text
    return f"{truncate_at_boundary(text, max_chars)}\n[cut: {len(text)} characters in all]"


LENGTHS: Final = ("minLength", "maxLength", "minItems", "maxItems")


@lru_cache(128)
def _schema_of(arguments: type[BaseModel]) -> Mapping[str, Any]:
    """Return the schema of a tool's arguments; making one takes a millisecond."""
    return _slim(arguments.model_json_schema())


def _slim(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without parts that cost tokens and tell the model nothing.

    Removed are titles, lengths, empty defaults, null beside another type, and the class's own
    docstring. An enum is moved to where it is used, without its docstring.
    """
    kinds = schema.get("$defs", {})
    enums = {f"#/$defs/{name}": kind for name, kind in kinds.items() if "enum" in kind}
    others = {name: kind for name, kind in kinds.items() if "enum" not in kind}
    own = {key: value for key, value in schema.items() if key not in ("description", "$defs")}
    slim: dict[str, Any] = _slim_part(own | ({"$defs": others} if others else {}), enums)
    return slim


def _slim_part(node: Any, enums: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_slim_part(item, enums) for item in node]
    if not isinstance(node, dict):
        return node
    if enum := enums.get(str(node.get("$ref"))):
        node = {"enum": enum["enum"], "type": enum["type"]} | node
        del node["$ref"]
    kinds = [kind for kind in node.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        node = kinds[0] | {key: value for key, value in node.items() if key != "anyOf"}
    return {
        key: _slim_part(value, enums)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
        and not (key in LENGTHS and isinstance(value, int))
        and not (key == "default" and value in (None, [], ""))
    }
