"""The JSON value in a model's text.

Strict JSON is tried first. What is repaired is the notation only (fences and prose around it, line
breaks within strings, trailing commas, quotes, comments: JSON5), never a value, and never what was
cut off. Repair is in native code and linear: 20,000 characters take less than a millisecond.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyjson5

from agent.text import pattern


@dataclass(frozen=True, slots=True)
class Extracted:
    """A JSON value found in a text, and how: `strict`, `embedded`, `repaired` or `text`."""

    value: object
    path: str


class NotJson(ValueError):
    """The text holds no single JSON value; the message says why, without the text."""


REPAIRABLE_CHARS: Final = 20_000
MAX_CANDIDATES: Final = 8
TAG: Final = r"(?:think(?:ing)?|thought|reasoning)"
THOUGHTS: Final = pattern(
    rf"(?is)\A(?:\s*(?:<{TAG}>.*?(?:</{TAG}>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)))+"
    rf"|\A\s*(?:[^\s{{\[].*?)?</{TAG}>"  # some servers keep the opening tag to themselves
    r"|\A.*<\|channel\|>final[^<]*<\|message\|>"
)
LENIENT: Final = json.JSONDecoder(strict=False)
"""JSON with line breaks and the like within strings."""
ESCAPED_HALF: Final = pattern(r"\\u[dD][89a-fA-F]")


def without_thoughts(text: str) -> str:
    """Leave out what a model thought aloud before it answered."""
    thoughts = THOUGHTS.match(text)
    return text[thoughts.end() if thoughts else 0 :].strip()


def extract_json(text: str, opening: str = "{") -> Extracted:
    """Find the one JSON value of a text.

    Raises:
        NotJson: there is none, or more than one.
    """
    try:
        found = Extracted(json.loads(text), "strict")
    except (ValueError, RecursionError) as error:
        found = _only(_candidates(text, opening), text, opening, _json_problem(error))
    if ESCAPED_HALF.search(text):
        return replace(found, value=_with_whole_characters(found.value))
    return found


def _only(candidates: Iterator[Extracted], text: str, opening: str, problem: str) -> Extracted:
    found = next(candidates, None)
    if found is None:
        missing = "the response holds no JSON"
        raise NotJson(f"the response is not valid JSON ({problem})" if opening in text else missing)
    if any(other.value != found.value for other in candidates):
        raise NotJson("the response holds more than one JSON value, exactly one is expected")
    return found


def _json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno} column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"


def _candidates(text: str, opening: str) -> Iterator[Extracted]:
    """Values that start with `opening`, left to right.

    Never one from within another, nor from within one that is broken or was cut off: a part of an
    answer is not the answer.
    """
    position = text.find(opening)
    for _ in range(MAX_CANDIDATES):
        if position < 0:
            return
        found, end = _value_at(text, position)
        if found is not None:
            yield found
        position = -1 if end is None else text.find(opening, end)


def _value_at(text: str, start: int) -> tuple[Extracted | None, int | None]:
    """The value that starts here, if any, and where it ends; no end if it was cut off."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        closed = _balanced_end(text, start)
        return (_repaired(text[start:closed]) if closed else None), closed
    return (Extracted(value, "embedded") if value else None), end


def _repaired(text: str) -> Extracted | None:
    for read in (LENIENT.decode, pyjson5.loads):
        try:
            value = read(text)
        except (ValueError, RecursionError, pyjson5.Json5Exception):
            continue
        return Extracted(value, "repaired") if value else None
    return None


def _with_whole_characters(value: Any) -> Any:
    """Escaped halves of characters joined, as JSON5 does not do, or replaced: UTF-8 has no half."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_with_whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {_with_whole_characters(k): _with_whole_characters(v) for k, v in value.items()}
    return value


def _balanced_end(text: str, start: int) -> int | None:
    """Where the bracket at `start` is closed, brackets within double quotes not counted."""
    depth, quoted, escaped = 0, False, False
    for end, sign in enumerate(text[start : start + REPAIRABLE_CHARS], start + 1):
        if quoted:
            quoted, escaped = escaped or sign != '"', not escaped and sign == "\\"
        elif sign == '"':
            quoted = True
        elif sign in "[]{}":
            depth += 1 if sign in "[{" else -1
            if depth == 0:
                return end
    return None
