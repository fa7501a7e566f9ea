"""Read a model's text: the JSON value of an answer, or tool calls that were written as text.

Strict JSON is tried first. What is repaired is the notation only (fences and prose around it, line
breaks within strings, trailing commas, quotes, comments: JSON5), never a value, and never what was
cut off.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

import pyjson5

from agent import lengths
from agent.engine.messages import ToolCall
from agent.text import pattern

TAG: Final = r"(?:think(?:ing)?|thought|reasoning)"
THOUGHTS: Final = pattern(
    rf"(?is)\A(?:\s*(?:<{TAG}>.*?(?:</{TAG}>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)))+"
    rf"|\A\s*(?:[^\s{{\[].*?)?</{TAG}>"  # some servers keep the opening tag to themselves
    r"|\A.*<\|channel\|>final[^<]*<\|message\|>"
)
LENIENT: Final = json.JSONDecoder(strict=False)
"""JSON with line breaks and the like within strings."""
CLOSING: Final = {"{": "}", "[": "]"}

CALL_MARK: Final = pattern(
    r"<\|?tool_call|<｜tool|<tool_use|\[TOOL_CALLS\]|<function(?:[=_ ]|call)|<\|python_tag\|>"
    r"|<invoke[\s>]|```tool_code|to=functions\."
)
"""The beginnings of tool calls that models write as text."""
CALL_TAGS: Final = pattern(r"</?tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|```(?:json)?")
"""Marks around a call that is written as JSON."""
CALL_IN_CODE: Final = pattern(r"\A\W*(?:functions\.|tools\.)?(\w+)\(.*\)[`; \n]*\Z")
CALL_IN_STEPS: Final = pattern(r"(?m)^Action:[ \t]*(\w+).*\n+Action Input:")
ARGUMENTS: Final = ("arguments", "parameters", "args")


class NotJson(ValueError):
    """The text holds no single JSON value; the message says why, without the text."""


def strip_thoughts(text: str) -> str:
    """Leave out what a model thought aloud before it answered."""
    thoughts = THOUGHTS.match(text)
    return text[thoughts.end() if thoughts else 0 :].strip()


def read_json(text: str, opening: str = "{") -> tuple[object, str]:
    """Return the one JSON value of a text, and how it was found: strict, embedded or repaired.

    It begins with `opening`, unless it is the whole text. A part of an answer is not the answer:
    behind a value that is broken, or cut off, none is looked for.

    Raises:
        NotJson: there is none, or more than one.
    """
    try:
        return json.loads(text), "strict"
    except (ValueError, RecursionError) as error:
        problem = error
    found: list[object] = []
    start = text.find(opening)
    while start >= 0:
        try:
            value, end = LENIENT.raw_decode(text, start)
        except (ValueError, RecursionError):
            break
        if value and value not in found:
            found.append(value)
        start = text.find(opening, end)
    if len(found) > 1 or (found and start >= 0):
        raise NotJson("the response holds more than one JSON value, exactly one is expected")
    if found:
        return found[0], "embedded"
    if start < 0:
        raise NotJson("the response holds no JSON")
    try:
        return pyjson5.loads(text[start : text.rfind(CLOSING[opening]) + 1]), "repaired"
    except (ValueError, RecursionError, pyjson5.Json5Exception):
        raise NotJson(f"the response is not valid JSON ({_described(problem)})") from None


def _described(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg} at line {problem.lineno} column {problem.colno}"
    return "nested too deeply" if isinstance(problem, RecursionError) else "a number is too long"


def tool_calls_in_text(text: str, tool_names: Collection[str]) -> tuple[ToolCall, ...]:
    """Return the tool calls of a text that holds nothing else, in JSON; none of any other text.

    Servers whose template does not parse the calls of their model hand them on as text.
    """
    said = CALL_TAGS.sub(" ", strip_thoughts(text)).strip()
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


def is_tool_call_in_text(text: str, tool_names: Collection[str]) -> bool:
    """Return True if a text is a call of a tool, in JSON or in the notation of Python or ReAct."""
    found = [CALL_IN_CODE.match(text), *CALL_IN_STEPS.finditer(text)]
    is_in_words = any(call is not None and call[1] in tool_names for call in found)
    return is_in_words or bool(tool_calls_in_text(text, tool_names))


def calls_of(value: object, tool_names: Collection[str]) -> list[ToolCall]:
    """Return the tool calls that a JSON value is, one or a list of them; none of another value."""
    calls = [_call(item, tool_names) for item in (value if isinstance(value, list) else [value])]
    return [call for call in calls if call is not None] if None not in calls else []


def _call(value: object, tool_names: Collection[str]) -> ToolCall | None:
    if not isinstance(value, Mapping):
        return None
    inner = value.get("function")
    called: Mapping[str, Any] = inner if isinstance(inner, Mapping) else value
    name = called.get("name") or called.get("tool") or called.get("function")
    given = next((called[key] for key in ARGUMENTS if key in called), None)
    if not isinstance(name, str) or name not in tool_names or given is None:
        return None
    return ToolCall("", name, given if isinstance(given, str) else json.dumps(given))
