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
"""The beginnings of tool calls that models write as text."""
REACT_CALL: Final = pattern(r"(?m)^Action:[ \t]*(\w+).*\n+Action Input:")
CALL_SYNTAX: Final = pattern(r"\A\W*(?:functions\.|tools\.)?(\w+)\(")
CALL_TAGS: Final = pattern(r"</?tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|```(?:json)?")
"""Marks around a call that is written as JSON."""
ARGUMENTS: Final = ("arguments", "parameters", "args")


def is_written_call(text: str, tool_names: Collection[str]) -> bool:
    """Return True if a text is a tool call, or ends in one, in any notation that models write."""
    if written_calls(text, tool_names):
        return True
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


def written_calls(text: str, tool_names: Collection[str]) -> tuple[ToolCall, ...]:
    """Read the tool calls of a text that holds nothing else, in JSON; none of any other text.

    Servers whose template does not parse the calls of their model hand them on as text.
    """
    said = CALL_TAGS.sub(" ", without_thoughts(text)).strip()
    calls: list[ToolCall] = []
    while said.startswith(("{", "[")) and len(calls) < lengths.TOOL_CALLS:
        try:
            value, end = LENIENT.raw_decode(said)
        except (ValueError, RecursionError):
            return ()
        read = calls_of(value, tool_names)
        if not read:
            return ()
        calls += read
        said = said[end:].strip(" ,\n")
    return () if said else tuple(calls)


def calls_of(value: object, tool_names: Collection[str]) -> list[ToolCall]:
    """Return the tool calls that a JSON value is, one or a list of them; none of another value."""
    calls = [_call(item, tool_names) for item in (value if isinstance(value, list) else [value])]
    return [call for call in calls if call is not None] if None not in calls else []


def _call(value: object, tool_names: Collection[str]) -> ToolCall | None:
    if not isinstance(value, Mapping):
        return None
    called: Mapping[str, Any] = value
    if isinstance(value.get("function"), Mapping):
        called = value["function"]
    name = called.get("name") or called.get("tool") or called.get("function")
    given = next((called[key] for key in ARGUMENTS if key in called), None)
    if not isinstance(name, str) or name not in tool_names or given is None:
        return None
    return ToolCall("", name, given if isinstance(given, str) else json.dumps(given))
