"""The JSON value in a model's text.

Strict JSON is tried first. What is repaired is the notation only (fences and prose around it, line
breaks within strings, trailing commas, quotes, comments: JSON5), never a value, and never what was
cut off.
"""

import json
from dataclasses import dataclass
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


TAG: Final = r"(?:think(?:ing)?|thought|reasoning)"
THOUGHTS: Final = pattern(
    rf"(?is)\A(?:\s*(?:<{TAG}>.*?(?:</{TAG}>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)))+"
    rf"|\A\s*(?:[^\s{{\[].*?)?</{TAG}>"  # some servers keep the opening tag to themselves
    r"|\A.*<\|channel\|>final[^<]*<\|message\|>"
)
LENIENT: Final = json.JSONDecoder(strict=False)
"""JSON with line breaks and the like within strings."""
CLOSING: Final = {"{": "}", "[": "]"}
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
        value, path = json.loads(text), "strict"
    except (ValueError, RecursionError) as error:
        value, path = _embedded(text, opening, error)
    if ESCAPED_HALF.search(text):
        value = _with_whole_characters(value)
    return Extracted(value, path)


def _embedded(text: str, opening: str, problem: Exception) -> tuple[object, str]:
    """Return the value that begins with `opening`, and how it was read.

    A part of an answer is not the answer: behind a value that is broken, or cut off, none is
    looked for.
    """
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


def _with_whole_characters(value: object) -> Any:
    """Join escaped halves of characters, as JSON5 does not, or replace them: UTF-8 has no half."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
