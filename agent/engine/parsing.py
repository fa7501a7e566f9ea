"""A model's response -> ParseResult. Never an exception.

An answer is held to its schema and the contract's rules, not to words in it; only what is nothing
but a written tool call, placeholders or a copy of the schema is none, whatever the schema accepts.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from pydantic import ValidationError

from agent import lengths
from agent.engine.contract import Evidence, OutputContract, Problem, leaves
from agent.engine.errors import log_failure
from agent.engine.feedback import SHOWN_ERROR_CHARS, clip, describe_validation_error
from agent.engine.messages import LLMResponse
from agent.engine.reading import (
    CALL_MARK,
    NotJson,
    calls_of,
    is_tool_call_in_text,
    read_json,
    strip_thoughts,
)
from agent.markdown import visible

T = TypeVar("T")

TERMINAL: Final = frozenset({"refusal", "content_filter"})
"""Errors that asking again does not mend."""

PLACEHOLDERS: Final = frozenset(
    {"...", "…", "string", "<string>", "text", "<text>", "placeholder", "todo", "tbd"}
    | {"lorem ipsum", "your answer here", "insert text here"}
)

FINISH_PROBLEMS: Final = {
    "refusal": ("refusal", "the model declined to answer"),
    "content_filter": ("content_filter", "the answer was stopped by a content filter"),
    "length": ("truncated", "the response was cut off at the token limit, answer more briefly"),
    "interrupted": ("interrupted", "the response was interrupted, answer again"),
    "no_choices": ("no_choices", "there was no response"),
    "unparsed": ("unparsed", "the response was neither a tool call nor a readable answer"),
}
WRITTEN_CALL: Final = (
    "tool_call_as_text",
    "a tool call was written as text and not executed; call tools through the tool interface, "
    "or answer with what is known",
)


@dataclass(frozen=True)
class ParseResult(Generic[T]):
    """The result of parsing a final response. `error` is None on success, else what is wrong.

    `wine_ids` are the ids that a valid answer names, as its contract's `ids` lists them. `answer`
    is the typed value wherever the schema was satisfied, a broken rule notwithstanding. `method`
    names the way in which it was parsed.
    """

    text: str
    wine_ids: list[str] = field(default_factory=list)
    error: str | None = None
    error_type: str | None = None
    answer: T | None = None
    method: str = field(default="strict", compare=False)

    @property
    def ok(self) -> bool:
        """Return True if there is no error and a text that is not blank."""
        return self.error is None and bool(self.text.strip())

    @property
    def retryable(self) -> bool:
        """Return True if asking again, with feedback, may mend it."""
        return not self.ok and self.error_type not in TERMINAL


async def parse_final_response(
    response: LLMResponse,
    contract: OutputContract[T],
    evidence: Evidence,
    tool_names: Collection[str] = (),
) -> ParseResult[T]:
    """Read a final response, its finish reason considered first, and hold it to the contract."""
    result = read_answer(response, contract, tool_names)
    if result.error is not None or result.answer is None:
        return result
    checked = await check(result.answer, contract, evidence, method=result.method)
    if checked.error_type != "grounding":
        return checked
    trimmed = await valid_part(contract.trim, result.answer, contract, evidence, method="trimmed")
    return trimmed or checked


def read_answer(
    response: LLMResponse, contract: OutputContract[T], tool_names: Collection[str] = ()
) -> ParseResult[T]:
    """Read the typed answer of a response; no rule of the contract is applied yet."""
    text = strip_thoughts(response.content)
    if unusable := _unusable(response, text):
        return _failed(*unusable)
    try:
        result: ParseResult[T] = _read(text, contract, tool_names)
    except NotJson as error:
        result = _failed("invalid_json", str(error))
    except RecursionError:
        result = _failed("invalid_json", "the response is nested too deeply")
    except ValidationError as error:
        result = _failed("schema", describe_validation_error(error))
    except Exception as error:  # of a validator, or of the contract's `read_text`
        kind = log_failure("an answer could not be read", error)
        result = _failed("schema", f"the answer could not be read ({kind}); answer differently")
    is_valid_json = result.answer is not None and result.method == "strict"
    return result if is_valid_json or not CALL_MARK.search(text) else _failed(*WRITTEN_CALL)


def _unusable(response: LLMResponse, text: str) -> tuple[str, str] | None:
    """Return the kind and description of what keeps a response from being an answer at all."""
    if response.tool_calls:
        return "tool_call", "tools can no longer be called, answer with what is known"
    finish = "refusal" if response.refusal is not None else response.finish_reason
    if finish in FINISH_PROBLEMS:
        return FINISH_PROBLEMS[finish]
    if len(response.content) > lengths.ANSWER:
        return "too_long", f"the response has more than {lengths.ANSWER} characters"
    if text:
        return None
    is_thought = response.has_reasoning or response.content.strip()
    holds = "holds only reasoning and no answer" if is_thought else "is empty"
    return "empty", f"the response {holds}"


def _read(text: str, contract: OutputContract[T], tool_names: Collection[str]) -> ParseResult[T]:
    """Read a text as the contract wants it. Raises NotJson, or what validation does."""
    if is_tool_call_in_text(text, tool_names):
        return _failed(*WRITTEN_CALL)
    value, method = _value_of(text, contract)
    if calls_of(value, tool_names):
        return _failed(*WRITTEN_CALL)
    if problem := problem_of_empty_answer(value, contract):
        return _failed("degenerate", problem)
    return ParseResult("", answer=contract.read(value), method=method)


def _value_of(text: str, contract: OutputContract[T]) -> tuple[object, str]:
    """Return the value of a text and how it was read: JSON first, `read_text` as a safety net."""
    read_text = contract.read_text or (lambda _: None)
    if contract.plain_text:
        is_quoted = not contract.accepts_any_text and text.startswith('"')
        return read_text(text) or (text.strip('"') if is_quoted else text), "text"
    try:
        return read_json(text, contract.opening)
    except NotJson:
        if (value := read_text(text)) is None:
            raise
        return value, "text"


async def check(
    answer: T, contract: OutputContract[T], evidence: Evidence, *, method: str = "strict"
) -> ParseResult[T]:
    """Hold a value that satisfies the schema to the contract's rules, and render it.

    A rule may raise ValueError instead of saying what is wrong. An answer is not accepted if a rule
    fails otherwise.
    """
    kind, problem, text = "semantic", None, ""
    try:
        problem = await _result_of(contract.semantic(answer))
        if not problem and (problem := await _result_of(contract.grounding(answer, evidence))):
            kind = "grounding"
        text = "" if problem else visible(contract.render(answer, evidence))
    except RecursionError:
        return _failed("invalid_json", "the response is nested too deeply")
    except ValueError as error:
        return _failed("semantic", clip(str(error), SHOWN_ERROR_CHARS))
    except Exception as error:
        failure = log_failure("a rule of the contract failed", error)
        return _failed(
            "semantic", f"the answer could not be checked ({failure}); answer differently"
        )
    if not problem and not text.strip():
        problem = "the answer has no text"
    if problem:
        return ParseResult("", [], problem, kind, answer, method)
    return ParseResult(text, contract.ids(answer), None, None, answer, method)


async def _result_of(problem: Problem | Awaitable[Problem]) -> Problem:
    """Return what a rule says, which may be a coroutine function."""
    return await problem if isinstance(problem, Awaitable) else problem


async def valid_part(
    select: Callable[[T, Evidence], T | None],
    answer: T | None,
    contract: OutputContract[T],
    evidence: Evidence,
    *,
    method: str = "strict",
) -> ParseResult[T] | None:
    """Return the part of an answer that `select` returns, if it is valid; else None."""
    try:
        selected = None if answer is None else select(answer, evidence)
    except Exception as error:
        log_failure("nothing of an answer could be kept", error)
        return None
    if selected is None:
        return None
    result = await check(selected, contract, evidence, method=method)
    return result if result.ok else None


def _failed(kind: str, problem: str) -> ParseResult[T]:
    return ParseResult("", [], problem, kind)


def problem_of_empty_answer(value: object, contract: OutputContract[T]) -> str | None:
    """Return feedback if an answer is a copy of the schema or contains only placeholders.

    Single words, booleans and zeros do not count as content, because the schema may offer them.
    """
    copied = value.get("properties") if isinstance(value, Mapping) else None
    names = contract.output.schema.get("properties", {}).keys()
    if isinstance(copied, Mapping) and copied and copied.keys() <= names:
        return "the answer is a copy of the schema; fill it with values"
    found = list(leaves(value))
    placeholders = [leaf for leaf in found if str(leaf).strip().lower() in PLACEHOLDERS]
    if not placeholders or any(_says_something(leaf) for leaf in found if leaf not in placeholders):
        return None
    return f"the answer holds nothing but placeholders like `{clip(str(placeholders[0]), 20)}`"


def _says_something(leaf: object) -> bool:
    return " " in leaf.strip() if isinstance(leaf, str) else leaf is not True and bool(leaf)
