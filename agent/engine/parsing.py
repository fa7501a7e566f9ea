"""Raw text of a model -> ParseResult. Pure: no request, no clock, never an exception."""

import json
import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from pydantic import ValidationError

from agent.engine.contract import Evidence, OutputContract, string_leaves
from agent.engine.extraction import Extracted, NotJson, extract_json, without_thoughts
from agent.engine.feedback import SHOWN_ERROR_CHARS, clip, describe_validation_error
from agent.engine.messages import LLMResponse
from agent.engine.tools import where

T = TypeVar("T")

log = logging.getLogger(__name__)

TERMINAL: Final = frozenset({"refusal", "content_filter"})
"""Errors that asking again does not mend."""

PLACEHOLDERS: Final = frozenset(
    {"...", "…", "string", "<string>", "text", "<text>", "placeholder", "todo", "tbd"}
    | {"lorem ipsum", "your answer here", "insert text here"}
)

WRITTEN_TOOL_CALL: Final = re.compile(
    r"<\|?tool_call|<｜tool|<tool_use|\[TOOL_CALLS\]|<function(?:[=_ ]|call)|<\|python_tag\|>"
    r"|<invoke\b|\"tool_calls\"\s*:|```tool_code|\bto=functions\.|^Action:.*\n+Action Input:",
    re.MULTILINE,
)
CALL_SYNTAX: Final = re.compile(r"\W*(?:functions\.|tools\.)?(\w+)\(")
CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""What no messenger shows and some databases refuse."""


FINISH_PROBLEMS: Final = {
    "refusal": ("refusal", "the model declined to answer"),
    "content_filter": ("content_filter", "the answer was stopped by a content filter"),
    "length": (
        "truncated",
        "the response was cut off at the token limit, answer more briefly",
    ),
    "interrupted": ("interrupted", "the response was interrupted, answer again"),
    "no_choices": ("no_choices", "there was no response"),
}


@dataclass(frozen=True)
class ParseResult(Generic[T]):
    """What a final response came to. `error` is None on success, else what is wrong with it.

    `answer` is the typed value wherever the schema was satisfied, a broken rule notwithstanding.
    """

    text: str
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
    try:
        return _read(without_thoughts(raw), contract, evidence, tool_names)
    except NotJson as error:
        return _failed("invalid_json", str(error))
    except RecursionError:
        return _failed("invalid_json", "the response is nested too deeply")


def _read(
    text: str, contract: OutputContract[T], evidence: Evidence, tool_names: Collection[str]
) -> ParseResult[T]:
    if names_call(text, tool_names):
        return _failed("tool_call_as_text", WRITTEN_TOOL_CALL_ADVICE)
    found = read_value(text, contract)
    if is_tool_call(found.value, tool_names):
        return _failed("tool_call_as_text", WRITTEN_TOOL_CALL_ADVICE)
    if problem := degenerate(found.value, contract):
        return _failed("degenerate", problem, found.path)
    try:
        answer = contract.read(found.value)
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
        kind = type(error).__name__
        log.error("a rule of the contract failed: %s %s", kind, where(error))  # noqa: TRY400
        problem = f"the answer could not be checked ({kind}); answer differently"
    return ParseResult("", problem, "semantic", None, path)


def _judged(
    answer: T, contract: OutputContract[T], evidence: Evidence, path: str
) -> ParseResult[T]:
    if broken := contract.broken_rule(answer, evidence):
        kind, problem = broken
        return ParseResult("", problem, kind, answer, path)
    text = CONTROLS.sub("", contract.render(answer, evidence))
    if not text.strip():
        return ParseResult("", "the answer has no text", "semantic", answer, path)
    return ParseResult(text, None, None, answer, path)


def salvage(
    answer: T | None, contract: OutputContract[T], evidence: Evidence
) -> ParseResult[T] | None:
    """Save the valid part of an answer that broke a rule, held to all rules again; None without."""
    try:
        valid = None if answer is None else contract.salvage(answer, evidence)
    except Exception as error:
        kind = type(error).__name__
        log.error("nothing could be salvaged: %s %s", kind, where(error))  # noqa: TRY400
        return None
    result = None if valid is None else judge(valid, contract, evidence)
    return result if result and result.ok else None


def _failed(kind: str, problem: str, path: str = "strict") -> ParseResult[T]:
    return ParseResult("", problem, kind, None, path)


def names_call(text: str, tool_names: Collection[str]) -> bool:
    """Whether a text has the marks of a tool call, or is one in the syntax of a language."""
    if WRITTEN_TOOL_CALL.search(text):
        return True
    written = CALL_SYNTAX.match(text)
    return written is not None and written[1] in tool_names and text.rstrip("`; \n")[-1:] == ")"


def is_tool_call(value: object, tool_names: Collection[str]) -> bool:
    """Whether a JSON answer is really a tool call, or several, written as the answer."""
    if isinstance(value, list):
        return bool(value) and all(is_tool_call(each, tool_names) for each in value)
    if isinstance(value, str):
        return value[:1] in {"{", "["} and is_tool_call(_json(value), tool_names)
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("function"), Mapping):
        return is_tool_call(value["function"], tool_names)
    named = value.get("name") or value.get("tool") or value.get("function")
    has_arguments = any(key in value for key in ("arguments", "parameters", "args"))
    return isinstance(named, str) and named in tool_names and has_arguments


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def degenerate(value: object, contract: OutputContract[T]) -> str | None:
    """Why an answer says nothing: placeholders, or a copy of the schema; None if it does not."""
    if isinstance(value, Mapping) and value.get("type") == "object" and "properties" in value:
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
        quoted = _json(text) if contract.choices else None
        return Extracted(read_text(text) or (quoted if isinstance(quoted, str) else text), "text")
    try:
        return extract_json(text, contract.opening)
    except NotJson:
        value = read_text(text)
        if value is None:
            raise
        return Extracted(value, "text")
