"""Tools: a typed function, its schema for the model, and how one call is run.

Two kinds of failure: wrong arguments, a `ToolError`, a time-out or a crash become a message that
tells the model what is wrong and go on; nothing a tool does ends a turn. The type of a crash is
named, its text is not: it may hold a secret.
"""

import asyncio
import inspect
import json
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from agent.errors import ToolError
from agent.feedback import describe_validation_error, fence
from agent.history import truncate_at_boundary
from agent.messages import ToolCall, ToolSchema

log = logging.getLogger(__name__)

ERROR_PREFIX: Final = "Error: "


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool returns: `content` for the model, and the things in it that may be named."""

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
    """A function the model may call with `arguments`, a pydantic model of keyword arguments."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Any], Awaitable[object]]

    @cached_property
    def schema(self) -> ToolSchema:
        """The tool as the model sees it."""
        return ToolSchema(
            self.name, self.description, _without_titles(self.arguments.model_json_schema())
        )


def tool(function: Callable[..., Awaitable[object]]) -> Tool:
    """A tool made of an async function: its name, its docstring, its annotated parameters.

    Raises:
        TypeError: the function is not async, has no docstring or an unannotated parameter.
    """
    name = function.__name__
    if not inspect.iscoroutinefunction(function) or not function.__doc__:
        raise TypeError(f"tool {name} must be an async function with a docstring")
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in hints:
            raise TypeError(f"tool {name}: annotate the parameter {parameter.name}")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    model = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)

    async def run(arguments: BaseModel) -> object:
        return await function(**{key: getattr(arguments, key) for key in fields})

    return Tool(name, inspect.cleandoc(function.__doc__), model, run)


class Toolbox:
    """The tools of one turn, by name."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Awaitable[object]]] = ()) -> None:
        made = [each if isinstance(each, Tool) else tool(each) for each in tools]
        self._by_name = {each.name: each for each in made}
        self.schemas: Sequence[ToolSchema] = [each.schema for each in made]
        self.names: Sequence[str] = list(self._by_name)

    async def call(self, call: ToolCall, *, seconds: float, max_chars: int) -> ToolResult:
        """Run one call, for at most `seconds`; the text of the result has at most `max_chars`."""
        wanted = self._by_name.get(call.name)
        if wanted is None:
            return _failed("unknown_tool", f"there is no tool {fence(call.name)}. {self._listed}")
        try:
            arguments = wanted.arguments.model_validate(_json_object(call.arguments))
        except ValidationError as error:
            return _failed("invalid_arguments", describe_validation_error(error))
        except ValueError as error:
            return _failed("invalid_arguments", str(error))
        return await _run(wanted, arguments, seconds, max_chars)

    @property
    def _listed(self) -> str:
        return f"Tools: {', '.join(self.names) or 'none'}"


async def _run(wanted: Tool, arguments: BaseModel, seconds: float, max_chars: int) -> ToolResult:
    try:
        async with asyncio.timeout(seconds):
            output = await wanted.run(arguments)
    except TimeoutError:
        return _failed("timeout", f"{wanted.name} took longer than {seconds:g} s")
    except ToolError as error:
        return _failed("tool_error", str(error))
    except Exception as error:
        kind = type(error).__name__
        log.error("tool %s failed: %s %s", wanted.name, kind, where(error))  # noqa: TRY400
        return _failed(kind, f"{wanted.name} failed ({kind}); answer without it or try differently")
    if not isinstance(output, ToolOutput):
        output = ToolOutput(output)
    return ToolResult(bounded(as_text(output.content), max_chars), output.found)


def where(error: BaseException) -> str:
    """The place an exception was raised at, without its text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _failed(kind: str, problem: str) -> ToolResult:
    return ToolResult(f"{ERROR_PREFIX}{problem}", {}, kind)


def _json_object(text: str) -> dict[str, Any]:
    """The arguments a model wrote; none at all count as an empty object."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "nested too deeply")
        raise ValueError(f"the arguments are not valid JSON ({reason})") from None
    if not isinstance(value, dict):
        raise ValueError("the arguments must be a JSON object")  # noqa: TRY004
    return value


def as_text(content: object) -> str:
    """A tool's content as the model reads it: text as it is, everything else as JSON."""
    if isinstance(content, str):
        return content
    return ANY_JSON.dump_json(content, exclude_none=True).decode()


ANY_JSON: Final[TypeAdapter[object]] = TypeAdapter(object)


def bounded(text: str, max_chars: int) -> str:
    """`text`, or as much of it as fits, cut at a boundary, with a note of the cut."""
    if len(text) <= max_chars:
        return text
    return f"{truncate_at_boundary(text, max_chars)}\n[cut: {len(text)} characters in all]"


def _without_titles(node: Any) -> Any:
    """A schema without pydantic's titles, which cost tokens and say nothing."""
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without_titles(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }
