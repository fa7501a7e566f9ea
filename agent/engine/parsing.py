"""Raw text of a model -> ParseResult. Pure: no request, no clock, never an exception.

An answer is judged by its schema and the contract's rules, not by words in it; only what is nothing
but a written tool call, placeholders or a copy of the schema is none, whatever the schema accepts.

Strict JSON is tried first. What is repaired is the notation only (fences and prose around it, line
breaks within strings, trailing commas, quotes, comments: JSON5), never a value, and never what was
cut off. Repair is in native code and linear: 20,000 characters take less than a millisecond.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

import pyjson5
from pydantic import ValidationError

from agent import lengths
from agent.engine.contract import Evidence, OutputContract, leaves
from agent.engine.errors import log_failure
from agent.engine.feedback import SHOWN_ERROR_CHARS, clip, describe_validation_error
from agent.engine.messages import LLMResponse, ToolCall
from agent.markdown import visible
from agent.text import pattern

T = TypeVar("T")

TERMINAL: Final = frozenset({"refusal", "content_filter"})
"""Errors that asking again does not mend."""

PLACEHOLDERS: Final = frozenset(
    {"...", "…", "string", "<string>", "text", "<text>", "placeholder", "todo", "tbd"}
    | {"lorem ipsum", "your answer here", "insert text here"}
)

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

FINISH_PROBLEMS: Final = {
    "refusal": ("refusal", "the model declined to answer"),
    "content_filter": ("content_filter", "the answer was stopped by a content filter"),
    "length": (
        "truncated",
        "the response was cut off at the token limit, answer more briefly",
    ),
    "interrupted": ("interrupted", "the response was interrupted, answer again"),
    "no_choices": ("no_choices", "there was no response"),
    "unparsed": ("unparsed", "the response was neither a tool call nor a readable answer"),
}


@dataclass(frozen=True)
class ParseResult(Generic[T]):
    """The result of parsing a final response. `error` is None on success, else what is wrong.

    `wine_ids` are the ids that a valid answer names, as its contract's `ids` lists them. `answer`
    is the typed value wherever the schema was satisfied, a broken rule notwithstanding.
    """

    text: str
    wine_ids: list[str] = field(default_factory=list)
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
    """Parse a model's response, its finish reason considered first."""
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
    if not without_thoughts(response.content):
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
    if len(raw) > lengths.ANSWER:
        return _failed("too_long", f"the response has more than {lengths.ANSWER} characters")
    try:
        return _read(without_thoughts(raw), contract, evidence, tool_names)
    except _WrittenCall:
        return _failed("tool_call_as_text", WRITTEN_CALL)
    except NotJson as error:
        return _failed("invalid_json", str(error))
    except RecursionError:
        return _failed("invalid_json", "the response is nested too deeply")
    except Exception as error:  # of a validator, or of the contract's `read_text`
        kind = log_failure("an answer could not be read", error)
        return _failed("schema", f"the answer could not be read ({kind}); answer differently")


class _WrittenCall(Exception):
    """The answer is a tool call that was written as text."""


def _read(
    text: str, contract: OutputContract[T], evidence: Evidence, tool_names: Collection[str]
) -> ParseResult[T]:
    if is_written_call(text, tool_names):
        raise _WrittenCall
    try:
        found = read_value(text, contract)
        if is_tool_call(found.value, tool_names):
            raise _WrittenCall
        answer = contract.read(found.value)
    except (NotJson, ValidationError) as error:
        if CALL_MARK.search(text):
            raise _WrittenCall from None
        if isinstance(error, NotJson):
            raise
        if is_schema(found.value):
            return _failed("degenerate", COPIED_SCHEMA, found.path)
        return _failed("schema", describe_validation_error(error), found.path)
    if problem := degenerate(found.value, contract):
        return _failed("degenerate", problem, found.path)
    return judge(answer, contract, evidence, found.path)


WRITTEN_CALL: Final = (
    "a tool call was written as text and not executed; call tools through the tool interface, "
    "or answer with what is known"
)
COPIED_SCHEMA: Final = "the answer is a copy of the schema; fill it with values"


def judge(
    answer: T, contract: OutputContract[T], evidence: Evidence, path: str = "strict"
) -> ParseResult[T]:
    """Hold a value that satisfies the schema against the contract's rules.

    A rule may raise ValueError instead of saying what is wrong. One that fails is not kept.
    """
    try:
        return _judged(answer, contract, evidence, path)
    except RecursionError:
        raise
    except ValueError as error:
        problem = clip(str(error), SHOWN_ERROR_CHARS)
    except Exception as error:
        kind = log_failure("a rule of the contract failed", error)
        problem = f"the answer could not be checked ({kind}); answer differently"
    return ParseResult("", [], problem, "semantic", None, path)


def _judged(
    answer: T, contract: OutputContract[T], evidence: Evidence, path: str
) -> ParseResult[T]:
    if broken := contract.broken_rule(answer, evidence):
        kind, problem = broken
        return ParseResult("", [], problem, kind, answer, path)
    text = visible(contract.render(answer, evidence))
    if not text.strip():
        return ParseResult("", [], "the answer has no text", "semantic", answer, path)
    return ParseResult(text, contract.ids(answer), None, None, answer, path)


def salvage(
    answer: T | None, contract: OutputContract[T], evidence: Evidence
) -> ParseResult[T] | None:
    """Save the valid part of an answer that broke a rule, held to all rules again; None without."""
    try:
        valid = None if answer is None else contract.salvage(answer, evidence)
    except Exception as error:
        log_failure("nothing could be salvaged", error)
        return None
    result = None if valid is None else judge(valid, contract, evidence)
    return result if result and result.ok else None


def _failed(kind: str, problem: str, path: str = "strict") -> ParseResult[T]:
    return ParseResult("", [], problem, kind, None, path)


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
    while said:
        try:
            value, end = LENIENT.raw_decode(said)
        except (ValueError, RecursionError):
            return ()
        if not is_tool_call(value, tool_names):
            return ()
        calls += map(_as_call, value if isinstance(value, list) else [value])
        said = said[end:].strip(" ,\n")
    return tuple(calls[: lengths.TOOL_CALLS])


def _as_call(value: Mapping[str, Any]) -> ToolCall:
    called = value["function"] if isinstance(value.get("function"), Mapping) else value
    name = called.get("name") or called.get("tool") or called.get("function")
    given: object = next((called[key] for key in ARGUMENTS if key in called), {})
    return ToolCall("", str(name), given if isinstance(given, str) else json.dumps(given))


def is_schema(value: object) -> bool:
    """Tell whether a value has the form of a JSON Schema of objects."""
    return isinstance(value, Mapping) and value.get("type") == "object" and "properties" in value


def degenerate(value: object, contract: OutputContract[T]) -> str | None:
    """Say why a valid answer says nothing; None if it has one word of its own.

    Choices of the schema, truth values and noughts say nothing by themselves.
    """
    properties = contract.output.schema.get("properties")
    if properties and isinstance(value, Mapping) and value.get("properties") == properties:
        return COPIED_SCHEMA
    nothing, first = PLACEHOLDERS | contract.descriptions, ""
    for leaf in leaves(value):
        if not leaf or leaf is True or leaf in contract.choices:
            continue
        if not isinstance(leaf, str) or leaf.strip().lower() not in nothing:
            return None
        first = first or leaf.strip()
    return f"the answer holds nothing but placeholders like `{clip(first, 20)}`" if first else None


def read_value(text: str, contract: OutputContract[T]) -> Extracted:
    """Read a text as the contract wants it: JSON first, `read_text` as a safety net.

    Raises:
        NotJson: there is no single value, and the contract makes none of the text.
    """
    read_text = contract.read_text or (lambda _: None)
    if contract.plain_text:
        quoted = _json(text) if contract.choices else None
        return Extracted(read_text(text) or (quoted if isinstance(quoted, str) else text), "text")
    try:
        return extract_json(text, contract.opening)
    except NotJson:
        value = read_text(text)
        if value is None:
            raise
        return Extracted(value, "text")


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
