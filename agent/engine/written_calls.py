"""Tool calls that a model, or a server that cannot read them, writes as text.

Calls in JSON that are the whole text are read and run. Any other notation is recognized, and the
model is told to use the tool interface.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from agent import lengths
from agent.engine.extraction import LENIENT, without_thoughts
from agent.engine.messages import ToolCall
from agent.text import pattern

CALL_MARK: Final = pattern(
    r"<\|?tool_call|<｜tool|<tool_use|\[TOOL_CALLS\]|<function(?:[=_ ]|call)|<\|python_tag\|>"
    r"|<invoke[\s>]|```tool_code|to=functions\."
)
"""What begins a tool call that a model writes as text."""
REACT_CALL: Final = pattern(r"(?m)^Action:[ \t]*(\w+).*\n+Action Input:")
CALL_TAGS: Final = pattern(r"</?tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|```(?:json)?")
"""Marks around a call that is written as JSON."""
ARGUMENTS: Final = ("arguments", "parameters", "args")
CALL_SYNTAX: Final = pattern(r"\A\W*(?:functions\.|tools\.)?(\w+)\(")


def is_written_call(text: str, tool_names: Collection[str]) -> bool:
    """Tell whether a text is a tool call, or ends in one, in any notation that models write."""
    if (written := CALL_SYNTAX.match(text)) and text.rstrip("`; \n").endswith(")"):
        return written[1] in tool_names
    if any(step[1] in tool_names for step in REACT_CALL.finditer(text)):
        return True
    mark = CALL_MARK.search(text)
    if mark is None:
        return False
    before, call = text[: mark.start()], text[mark.start() :]
    if not before.strip("` \n"):
        return True
    begins_line = not before.rpartition("\n")[2].strip("` ")
    ends_so = call.rstrip("` \n").endswith((">", "}", "]", ")"))
    return begins_line and ends_so and any(name in call for name in tool_names)


def is_tool_call(value: object, tool_names: Collection[str]) -> bool:
    """Tell whether a JSON answer is really a tool call, or several, written as the answer."""
    if isinstance(value, list):
        return bool(value) and all(is_tool_call(each, tool_names) for each in value)
    if isinstance(value, str):
        return value[:1] in {"{", "["} and is_tool_call(_json(value), tool_names)
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("function"), Mapping):
        return is_tool_call(value["function"], tool_names)
    named = value.get("name") or value.get("tool") or value.get("function")
    has_arguments = any(key in value for key in ARGUMENTS)
    return isinstance(named, str) and named in tool_names and has_arguments


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def written_calls(text: str, tool_names: Collection[str]) -> tuple[ToolCall, ...]:
    """Read the tool calls of a text that holds nothing else, in JSON; none of any other text.

    Servers whose template does not parse the calls of their model hand them on as text.
    """
    said = CALL_TAGS.sub(" ", without_thoughts(text)).strip()
    calls: list[ToolCall] = []
    while said and len(calls) < lengths.TOOL_CALLS:
        try:
            value, end = LENIENT.raw_decode(said)
        except (ValueError, RecursionError):
            return ()
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(item, Mapping) and is_tool_call(item, tool_names) for item in values):
            return ()
        calls += map(_as_call, values)
        said = said[end:].strip(" ,\n")
    return tuple(calls[: lengths.TOOL_CALLS])


def _as_call(value: Mapping[str, Any]) -> ToolCall:
    called = value["function"] if isinstance(value.get("function"), Mapping) else value
    name = called.get("name") or called.get("tool") or called.get("function")
    given: object = next((called[key] for key in ARGUMENTS if key in called), {})
    return ToolCall("", str(name), given if isinstance(given, str) else json.dumps(given))
