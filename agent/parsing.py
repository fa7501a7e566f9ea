"""Raw text of a model -> ParseResult. Pure: no request, no clock, never an exception.

Strict JSON is tried first. What is repaired is the notation only (fences and prose around it,
trailing commas, quotes, comments: JSON5), never a value, and never what was cut off.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError

from agent.contract import Evidence, OutputContract, string_leaves
from agent.feedback import clip, describe_validation_error
from agent.messages import LLMResponse

T = TypeVar("T")

TERMINAL: Final = frozenset({"refusal", "content_filter"})
"""Errors that asking again does not mend."""

PLACEHOLDERS: Final = frozenset(
    {"...", "…", "string", "<string>", "text", "<text>", "placeholder", "todo", "tbd"}
    | {"lorem ipsum", "your answer here", "insert text here"}
)

REPAIRABLE_CHARS: Final = 20_000
MAX_CANDIDATES: Final = 8
THINKING: Final = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
ESCAPED_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
WRITTEN_TOOL_CALL: Final = re.compile(
    r"<\|?tool_call|\[TOOL_CALLS\]|<function[=_ ]|<\|python_tag\|>|<invoke\b|\"tool_calls\"\s*:"
)


FINISH_PROBLEMS: Final = {
    "refusal": ("refusal", "the model declined to answer"),
    "content_filter": ("content_filter", "the answer was stopped by a content filter"),
    "length": (
        "truncated",
        "the response was cut off at the token limit, answer more briefly",
    ),
    "no_choices": ("no_choices", "there was no response"),
}


@dataclass(frozen=True)
class ParseResult(Generic[T]):
    """What a final response came to. `error` is None on success, else what is wrong with it.

    `answer` is the typed value wherever the schema was satisfied, a broken rule notwithstanding.
    """

    text: str
    wine_ids: list[str]
    error: str | None = None
    error_type: str | None = None
    answer: T | None = None
    path: str = field(default="strict", compare=False)

    @property
    def ok(self) -> bool:
        """No error and a text that is not blank."""
        return self.error is None and bool(self.text.strip())

    @property
    def retryable(self) -> bool:
        """Whether asking again, with feedback, may mend it."""
        return not self.ok and self.error_type not in TERMINAL


@dataclass(frozen=True, slots=True)
class Extracted:
    """A JSON value found in a text, and how: `strict`, `embedded`, `repaired` or `text`."""

    value: object
    path: str


class NotJson(ValueError):
    """The text holds no single JSON value; the message says why, without the text."""


def parse_response(
    response: LLMResponse,
    contract: OutputContract[T],
    evidence: Evidence,
    tool_names: Collection[str] = (),
) -> ParseResult[T]:
    """What a model's response came to, its finish reason considered first."""
    if unusable := _unusable(response):
        return _failed(*unusable)
    return parse_final_response(response.content, contract, evidence, tool_names)


def _unusable(response: LLMResponse) -> tuple[str, str] | None:
    """The kind and description of what keeps a response from being an answer at all."""
    if response.tool_calls:
        return "tool_call", "tools can no longer be called, answer with what is known"
    if response.refusal is not None:
        return "refusal", "the model declined to answer"
    if response.finish_reason in FINISH_PROBLEMS:
        return FINISH_PROBLEMS[response.finish_reason]
    if not THINKING.sub("", response.content).strip():
        return "empty", _why_empty(response)
    return None


def _why_empty(response: LLMResponse) -> str:
    if response.has_reasoning or response.content.strip():
        return "the response holds only reasoning and no answer"
    return "the response is empty"


def parse_final_response(
    raw: str,
    contract: OutputContract[T],
    evidence: Evidence,
    tool_names: Collection[str] = (),
) -> ParseResult[T]:
    """Hold the raw text of a final response against the contract."""
    text = THINKING.sub("", raw).strip()
    if WRITTEN_TOOL_CALL.search(text):
        return _failed("tool_call_as_text", WRITTEN_TOOL_CALL_ADVICE)
    try:
        found = read_value(text, contract)
    except NotJson as error:
        return _failed("invalid_json", str(error))
    if ESCAPED_HALF.search(text):
        found = replace(found, value=_with_whole_characters(found.value))
    if is_tool_call(found.value, tool_names):
        return _failed("tool_call_as_text", WRITTEN_TOOL_CALL_ADVICE)
    if problem := degenerate(found.value, contract):
        return _failed("degenerate", problem, found.path)
    try:
        answer = contract.adapter.validate_python(found.value)
    except ValidationError as error:
        return _failed("schema", describe_validation_error(error), found.path)
    return judge(answer, contract, evidence, found.path)


WRITTEN_TOOL_CALL_ADVICE: Final = (
    "a tool call was written as text and not executed; call tools through the tool interface, "
    "or answer with what is known"
)


def judge(
    answer: T, contract: OutputContract[T], evidence: Evidence, path: str = "strict"
) -> ParseResult[T]:
    """Hold a value that satisfies the schema against the contract's rules."""
    if broken := contract.broken_rule(answer, evidence):
        kind, problem = broken
        return ParseResult("", [], problem, kind, answer, path)
    text = contract.render(answer, evidence)
    if not text.strip():
        return ParseResult("", [], "the answer has no text", "semantic", answer, path)
    return ParseResult(text, list(contract.ids(answer)), None, None, answer, path)


def _failed(kind: str, problem: str, path: str = "strict") -> ParseResult[T]:
    return ParseResult("", [], problem, kind, None, path)


def is_tool_call(value: object, tool_names: Collection[str]) -> bool:
    """Whether a JSON answer is really a tool call that the model wrote as its answer."""
    if not isinstance(value, Mapping):
        return False
    named = value.get("name") or value.get("tool") or value.get("function")
    has_arguments = any(key in value for key in ("arguments", "parameters", "args"))
    return isinstance(named, str) and named in tool_names and has_arguments


def degenerate(value: object, contract: OutputContract[T]) -> str | None:
    """Why an answer says nothing: placeholders, or a copy of the schema; None if it does not."""
    if isinstance(value, Mapping) and "properties" in value and "type" in value:
        return "the answer is a copy of the schema; fill it with values"
    for leaf in string_leaves(value):
        said = leaf.strip()
        if said.lower() in PLACEHOLDERS and said not in contract.choices:
            return f"the answer holds the placeholder `{clip(said, 20)}`; write real content"
        if said in contract.descriptions:
            return "the answer copies a description of the schema; write real content"
    return None


def read_value(text: str, contract: OutputContract[T]) -> Extracted:
    """The value of a text as the contract wants it read: JSON first, `read_text` as a safety net.

    Raises:
        NotJson: there is no single value, and the contract makes none of the text.
    """
    read_text = contract.read_text or (lambda _: None)
    if contract.plain_text:
        return Extracted(read_text(text) or text, "text")
    try:
        return extract_json(text, contract.opening)
    except NotJson:
        value = read_text(text)
        if value is None:
            raise
        return Extracted(value, "text")


def extract_json(text: str, opening: str = "{") -> Extracted:
    """The one JSON value of a text.

    Raises:
        NotJson: there is none, or more than one.
    """
    try:
        return Extracted(json.loads(text), "strict")
    except (ValueError, RecursionError) as error:
        problem = _json_problem(error)
    found: list[Extracted] = []
    for candidate in _candidates(text, opening):
        if candidate.value not in [other.value for other in found]:
            found.append(candidate)
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        raise NotJson(f"the response holds {len(found)} JSON values, exactly one is expected")
    if opening not in text:
        raise NotJson("the response holds no JSON")
    raise NotJson(f"the response is not valid JSON ({problem})")


def _json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno} column {error.colno}"
    return "nested too deeply"


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
    import json5  # noqa: PLC0415 - only what needs repair pays for it

    try:
        value = json5.loads(text)
    except (ValueError, RecursionError):
        return None
    return Extracted(value, "repaired") if value else None


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
    depth = 0
    quoted = escaped = False
    for position in range(start, min(len(text), start + REPAIRABLE_CHARS + 1)):
        character = text[position]
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character in "{[") - (character in "}]")
            if depth == 0:
                return position + 1
    return None
