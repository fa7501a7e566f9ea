"""Tools: a typed function, its schema for the model, and how calls are run.

Two kinds of failure: wrong arguments, a `ToolError`, a time-out or a crash become a message that
tells the model what is wrong and go on; nothing a tool does ends a turn. The type of a crash is
named, its text is not: it may hold a secret.
"""

import asyncio
import inspect
import json
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from threading import Thread
from typing import Any, Final, cast, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticSerializationError

from agent import lengths
from agent.engine.errors import ToolError, log_failure
from agent.engine.feedback import describe_validation_error, fence
from agent.engine.messages import ToolCall, ToolSchema, sendable
from agent.engine.run import Run
from agent.engine.span import NO_SPAN, Span
from agent.text import truncate_at_boundary

ERROR_PREFIX: Final = "Error: "
BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
MOST_HANGING: Final = 16
CUT_OFF: Final = "this call was cut off at the token limit; call again with shorter arguments"
ENOUGH_CALLS: Final = "the limit of tool calls is reached; answer with what is known"


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool returns: `content` for the model, and what it found, which may be named.

    Only what is found grounds an answer. The content does not: it may repeat what was asked.
    """

    content: object
    found: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to: the text of the tool message, evidence, and the error's type if any."""

    text: str
    found: Mapping[str, object] = field(default_factory=dict)
    error_type: str | None = None


@dataclass(frozen=True)
class Tool:
    """A function the model may call with `arguments`, a pydantic model.

    The function takes that model, or its fields by name if it is `by_name`. A plain function runs
    in a thread of its own: one that hangs is left there when its time is over, holds up neither
    other tools nor the end of the process, and is called no more once `MOST_HANGING` of its calls
    hang. A parameter annotated `Run` is given the
    turn's run, traced on the span of the tool; the model does not see it.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    function: Callable[..., object]
    by_name: bool = False

    @cached_property
    def schema(self) -> ToolSchema:
        """The tool as the model sees it."""
        return ToolSchema(self.name, self.description, _schema_of(self.arguments))

    @cached_property
    def _takes_run(self) -> tuple[str, ...]:
        # Looked up once: reading a signature takes as long as all the rest of a call.
        return tuple(name for name, given in _parameters(self.function) if given)

    async def run(self, arguments: BaseModel, run: Run) -> object:
        """Call the function. Raises what it raises."""
        context = dict.fromkeys(self._takes_run, run)
        if self.by_name:
            named = {name: getattr(arguments, name) for name in self.arguments.model_fields}
            call = partial(self.function, **named, **context)
        else:
            call = partial(self.function, arguments, **context)
        if inspect.iscoroutinefunction(self.function):
            return await cast(Awaitable[object], call())
        if len(self._running) >= MOST_HANGING:
            raise ToolError(f"{self.name} is not available: earlier calls of it hang")
        output = await _in_a_thread(call, self._running)
        return await output if inspect.isawaitable(output) else output

    @cached_property
    def _running(self) -> set[Thread]:
        return set()


async def _in_a_thread(call: Callable[[], object], running: set[Thread]) -> object:
    """Call a function in a thread of its own, which is in `running` until it returns.

    The threads of the event loop are few, and the end of the process waits for them.
    """
    answer: Future[object] = Future()

    def work() -> None:
        try:
            tell = partial(answer.set_result, call())
        except Exception as error:
            tell = partial(answer.set_exception, error)
        except BaseException as error:  # a tool that exits is one that failed
            tell = partial(answer.set_exception, RuntimeError(type(error).__name__))
        running.discard(thread)
        with suppress(InvalidStateError):  # nobody waits any more
            tell()

    thread = Thread(target=copy_context().run, args=(work,), daemon=True)
    running.add(thread)
    thread.start()
    return await asyncio.wrap_future(answer)


def _parameters(function: Callable[..., object]) -> list[tuple[str, bool]]:
    """The parameters of a function, and of each whether it is given the run."""
    known = inspect.signature(function).parameters.values()
    return [(parameter.name, _is_run(parameter.annotation)) for parameter in known]


def _is_run(annotation: object) -> bool:
    if isinstance(annotation, str):
        return annotation == "Run" or annotation.startswith("Run[")
    return annotation is Run or get_origin(annotation) is Run


def tool(function: Callable[..., object]) -> Tool:
    """Make a tool of a function: its name, its docstring, its annotated parameters.

    Raises:
        TypeError: it is no function, has no docstring, or a parameter that a model cannot give by
            its name and type.
    """
    name = getattr(function, "__name__", repr(function))
    if not inspect.isroutine(function) or not function.__doc__:
        raise TypeError(f"tool {name} must be a function with a docstring")
    hints = get_type_hints(function, include_extras=True)
    context = {name for name, given in _parameters(function) if given}
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in BY_NAME or parameter.name.startswith("_"):
            raise TypeError(f"tool {name}: {parameter} cannot be given by name; rename it")
        if parameter.name not in hints:
            raise TypeError(f"tool {name}: annotate the parameter {parameter.name}")
        default = ... if parameter.default is parameter.empty else parameter.default
        if parameter.name not in context:
            fields[parameter.name] = (hints[parameter.name], default)
    with warnings.catch_warnings():  # of names that a model has methods of: "copy", "schema"
        warnings.simplefilter("ignore", UserWarning)
        model = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    return Tool(name, inspect.cleandoc(function.__doc__), model, function, by_name=True)


class Toolbox:
    """The tools of one turn, by name."""

    def __init__(self, tools: Iterable[Tool | Callable[..., object]] = ()) -> None:
        self.tools = [each if isinstance(each, Tool) else tool(each) for each in tools]
        self._by_name = {each.name: each for each in self.tools}
        self.names: Sequence[str] = list(self._by_name)
        if len(self.names) < len(self.tools):
            names = ", ".join(each.name for each in self.tools)
            raise ValueError(f"two tools have one name: {names}")
        self.schemas: Sequence[ToolSchema] = [each.schema for each in self.tools]

    async def call_all(
        self, calls: Sequence[ToolCall], run: Run, *, step: int, cut_off: bool
    ) -> list[ToolResult]:
        """Run a response's calls side by side; return the results in their order.

        Calls beyond the limit are refused; the last of a response that was `cut_off` does not run
        if it was cut itself. `step` is that of the response, for the trace.
        """
        allowed = max(0, run.limits.tool_calls - run.ledger.tool_calls)
        run.ledger.tool_calls += min(allowed, len(calls))
        cut = calls[-1] if cut_off and not is_whole(calls[-1]) else None
        results = await asyncio.gather(
            *(self._traced(call, run, step=step, cut=call is cut) for call in calls[:allowed])
        )
        return results + [_failed("limit", ENOUGH_CALLS)] * len(calls[allowed:])

    async def _traced(self, call: ToolCall, run: Run, *, step: int, cut: bool) -> ToolResult:
        name = call.name if call.name in self.names else "unknown"
        with run.span.child(
            f"tool.{name}",
            "tool",
            input=call.arguments,
            metadata={"step": step, "call_id": call.id},
        ) as span:
            result = _failed("truncated", CUT_OFF) if cut else await self.call(call, run, span)
            span.update(output=result.text)
            if result.error_type:
                run.ledger.tool_errors += 1
                span.update(level="ERROR", metadata={"error_type": result.error_type})
        return result

    async def call(self, call: ToolCall, run: Run, span: Span = NO_SPAN) -> ToolResult:
        """Run one call within the limits of `run`; its tool is given the run, traced on `span`."""
        wanted = self._by_name.get(call.name)
        if wanted is None:
            listed = ", ".join(self.names) or "none"
            return _failed("unknown_tool", f"there is no tool {fence(call.name)}. Tools: {listed}")
        try:
            arguments = wanted.arguments.model_validate(json_object(call.arguments))
        except ValidationError as error:
            return _failed("invalid_arguments", describe_validation_error(error))
        except ValueError as error:
            return _failed("invalid_arguments", str(error))
        except RecursionError:
            return _failed("invalid_arguments", "the arguments are nested too deeply")
        return await _run(wanted, arguments, run.of_tool(span))


def json_object(text: str) -> dict[str, Any]:
    """Read the arguments a model wrote; none at all count as an empty object.

    Raises:
        ValueError: they are no JSON object; the message says so, without the text.
    """
    if len(text) > lengths.ARGUMENTS:
        raise ValueError(f"the arguments have more than {lengths.ARGUMENTS} characters")
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "a number JSON has not, or nested too deeply")
        raise ValueError(f"the arguments are not valid JSON ({reason})") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("the arguments must be a JSON object")  # noqa: TRY004
    return value


def is_whole(call: ToolCall) -> bool:
    """Tell whether a call's arguments were written to their end."""
    try:
        return bool(call.arguments.strip()) and json_object(call.arguments) is not None
    except ValueError:
        return False


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


async def _run(wanted: Tool, arguments: BaseModel, run: Run) -> ToolResult:
    seconds = min(run.limits.tool_seconds, run.seconds_left)
    try:
        async with asyncio.timeout(seconds) as limit:
            output = await wanted.run(arguments, run)
        if not isinstance(output, ToolOutput):
            output = ToolOutput(output)
        return ToolResult(bounded(as_text(output.content), run.limits.result_chars), output.found)
    except ToolError as error:
        return _failed("tool_error", bounded(sendable(str(error)), run.limits.result_chars))
    except (Exception, asyncio.CancelledError) as error:
        if limit.expired():
            return _failed("timeout", f"{wanted.name} took longer than {seconds:g} s")
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        return _crashed(wanted.name, error)


def _is_cancelled() -> bool:
    """Whether somebody cancels the call, and not the tool something of its own."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _crashed(name: str, error: BaseException) -> ToolResult:
    kind = log_failure(f"tool {name} failed", error)
    return _failed(kind, f"{name} failed ({kind}); answer without it or try differently")


def _failed(kind: str, problem: str) -> ToolResult:
    return ToolResult(f"{ERROR_PREFIX}{problem}", {}, kind)


def as_text(content: object) -> str:
    """Write a tool's content as the model reads it: text as it is, everything else as JSON."""
    if isinstance(content, str):
        return sendable(content)
    try:
        return ANY_JSON.dump_json(content, exclude_none=True).decode()
    except PydanticSerializationError:  # it may be for half a character only
        plain = ANY_JSON.dump_python(content, mode="json", exclude_none=True)
        return sendable(json.dumps(plain, ensure_ascii=False))


ANY_JSON: Final[TypeAdapter[object]] = TypeAdapter(object)


def bounded(text: str, max_chars: int) -> str:
    """Cut a text that is too long at a boundary, with a note of the cut."""
    if len(text) <= max_chars:
        return text
    return f"{truncate_at_boundary(text, max_chars)}\n[cut: {len(text)} characters in all]"


@lru_cache(128)
def _schema_of(arguments: type[BaseModel]) -> Mapping[str, Any]:
    """The schema of a tool's arguments; making one takes a millisecond."""
    return _slim(arguments.model_json_schema())


def _slim(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without what costs tokens and says nothing.

    Left out are titles, empty defaults, null beside another type, and the class's own docstring;
    an enum stands where it is used, without its docstring.
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
        and not (key == "default" and value in (None, [], ""))
    }
