"""Read what the text of a response holds: JSON, finished or not, and tool calls written as text.

Strict JSON is tried first. Then the notation is repaired: fences and prose around the JSON, line
breaks within strings, trailing commas, quotes and comments (JSON5). The values themselves are never
changed.
"""

import json
from collections.abc import Collection, Mapping
from itertools import zip_longest
from typing import Any, Final

import pyjson5
from pydantic_core import from_json

from agent import size_limits
from agent.engine.messages import ToolCall
from agent.language import find_last_sentence_end
from agent.text import clip, pattern

MAX_JSON_ERROR_CHARS: Final = 80
"""The longest message of the JSON parser that a model is shown."""

TAG: Final = r"(?:think(?:ing)?|thought|reasoning)"
TAGGED_THOUGHT: Final = rf"<{TAG}>.*?(?:</{TAG}>|\Z)"
BRACKETED_THOUGHT: Final = r"\[THINK\].*?(?:\[/THINK\]|\Z)"
THOUGHTS: Final = pattern(
    rf"(?is)\A(?:\s*(?:{TAGGED_THOUGHT}|{BRACKETED_THOUGHT}))+"
    rf"|\A\s*(?:[^\s{{\[].*?)?</{TAG}>"  # the opening tag may be missing, but not before JSON
    r"|\A.*<\|channel\|>final[^<]*<\|message\|>"
)
"""The reasoning before an answer.

It is `<think>…</think>`, `[THINK]…[/THINK]`, or all that precedes `<|channel|>final<|message|>`.
If the closing tag is missing, all of the text is reasoning.
"""
CONTROL_CHARACTER: Final = pattern(r"[\x00-\x1f]")
"""What JSON does not allow within strings, such as a line break."""
CALL_MARK: Final = pattern(
    r"<\|?tool_call|<｜tool|<tool_use|\[TOOL_CALLS\]|<function(?:[=_ ]|call)|<\|python_tag\|>"
    r"|<invoke[\s>]|```tool_code|to=functions\."
)
"""The beginnings of tool calls that models write as text."""
CALL_TAGS: Final = pattern(
    r"</?tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|```(?:json)?"
)
"""Marks around a call that is written as JSON."""


def strip_thoughts(text: str) -> str:
    """Return a response without the reasoning that precedes the answer."""
    thoughts = THOUGHTS.match(text)
    if thoughts:
        text = text[thoughts.end() :]
    return text.strip()


def read_json(
    text: str,
    opening: str = "{",
    closing: str = "}",
) -> object:
    """Return the only JSON value of a text: the whole text, or the part that brackets enclose.

    Raises:
        ValueError: there is no value, or more than one. The message does not have the text.
    """
    begin = text.find(opening)
    end = text.rfind(closing) + 1
    has_brackets = begin >= 0
    json_text = text
    if has_brackets:
        json_text = text[begin:end]
    try:
        # Line breaks within strings are accepted.
        return json.loads(json_text, strict=False)
    except (ValueError, RecursionError) as error:
        if not has_brackets:
            raise ValueError("the response holds no JSON") from None
        problem = clip(str(error), MAX_JSON_ERROR_CHARS)
    try:
        return pyjson5.loads(json_text)
    except (ValueError, RecursionError, pyjson5.Json5Exception):
        message = f"the response is not one valid JSON value ({problem})"
        raise ValueError(message) from None


def find_tool_calls(text: str, tool_names: Collection[str]) -> tuple[ToolCall, ...]:
    """Return the tool calls of which a text consists, or none if it has anything else.

    If a server's template does not parse the calls of its model, the server sends them as text.
    """
    names_a_tool = any(name in text for name in tool_names)
    if not names_a_tool:  # parsing takes long
        return ()
    values = _read_json_values(strip_thoughts(text))
    calls: list[ToolCall] = []
    for value in values[: size_limits.TOOL_CALLS]:
        call = _read_call(value, tool_names)
        if call is None:
            return ()
        calls.append(call)
    return tuple(calls)


def _read_json_values(text: str) -> list[object]:
    """Return the JSON values of a text, or none if it has any text besides them and `CALL_TAGS`."""
    values: list[object] = []
    for part in CALL_TAGS.split(text):
        if not part.strip():
            continue
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            return []
        if isinstance(value, list):
            values += value
        else:
            values.append(value)
    return values


def _read_call(value: object, tool_names: Collection[str]) -> ToolCall | None:
    """Return the call that a JSON value means, or None if it means none.

    Examples: `{"name": "find_wines", "arguments": {"colour": "red"}}`, or this object as the
    "function" of another.
    """
    if not isinstance(value, Mapping):
        return None
    function = value.get("function")
    if isinstance(function, Mapping):
        value = function
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters"))
    if not isinstance(name, str) or name not in tool_names:
        return None
    if arguments is None:
        return None
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return ToolCall("", name, arguments)


def parse_unfinished(text: str) -> dict[str, Any] | None:
    """Return the part of a JSON object that will not change while the rest is written.

    A string that has not ended is cut after its last complete sentence. Return None if no object
    has begun.
    """
    begin = text.find("{")
    if begin < 0:
        return None
    json_text = CONTROL_CHARACTER.sub(" ", text[begin:])
    try:
        with_open_strings = from_json(json_text, allow_partial="trailing-strings")
        without_open_strings = from_json(json_text, allow_partial=True)
    except (ValueError, RecursionError):
        return None
    value: dict[str, Any] = _cut_open_strings(with_open_strings, without_open_strings)
    return value


def _cut_open_strings(value: Any, without_open: Any) -> Any:
    """Return `value` with its open strings cut after their last complete sentence.

    `without_open` is the same value without its open strings.
    """
    if isinstance(value, str) and value != without_open:
        return complete_sentences(value)
    if isinstance(value, dict):
        closed_items = without_open or {}
        cut_items: dict[str, Any] = {}
        for key, item in value.items():
            cut_items[key] = _cut_open_strings(item, closed_items.get(key))
        return cut_items
    if isinstance(value, list):
        pairs = zip_longest(value, without_open or [])
        return [_cut_open_strings(item, closed_item) for item, closed_item in pairs]
    if without_open is None:
        return None  # a number at the very end may still grow
    return value


def complete_sentences(text: str) -> str:
    """Return an unfinished text up to the end of its last complete sentence."""
    # A mark at the very end may not be the end of a sentence: "3." may become "3.5".
    last = len(text) - 1
    return text[: find_last_sentence_end(text, last)]
