"""A model's response -> ParseResult. Never an exception.

An answer is held to its schema and the contract's rules, not to words in it; only what is nothing
but a written tool call, placeholders or a copy of the schema is none, whatever the schema accepts.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from typing import Final, Generic, TypeVar, cast

from pydantic import ValidationError

from agent import lengths
from agent.engine.contract import Evidence, OutputContract, leaves
from agent.engine.errors import log_failure
from agent.engine.extraction import Extracted, NotJson, extract_json, without_thoughts
from agent.engine.feedback import SHOWN_ERROR_CHARS, clip, describe_validation_error
from agent.engine.messages import LLMResponse
from agent.engine.written_calls import CALL_MARK, is_tool_call, is_written_call
from agent.markdown import visible
from agent.text import run_in_thread_if_large

R = TypeVar("R")
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
    "length": (
        "truncated",
        "the response was cut off at the token limit, answer more briefly",
    ),
    "interrupted": ("interrupted", "the response was interrupted, answer again"),
    "no_choices": ("no_choices", "there was no response"),
    "unparsed": ("unparsed", "the response was neither a tool call nor a readable answer"),
}
WRITTEN_CALL: Final = (
    "a tool call was written as text and not executed; call tools through the tool interface, "
    "or answer with what is known"
)
COPIED_SCHEMA: Final = "the answer is a copy of the schema; fill it with values"


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
    read = partial(read_answer, response, contract, tool_names)
    result = await run_in_thread_if_large(read, size=len(response.content))
    if result.error is not None or result.answer is None:
        return result
    size = len(response.content)
    checked = await check(result.answer, contract, evidence, path=result.path, size=size)
    if checked.error_type != "grounding":
        return checked
    return await _trimmed(result.answer, contract, evidence, size=size) or checked


def read_answer(
    response: LLMResponse, contract: OutputContract[T], tool_names: Collection[str] = ()
) -> ParseResult[T]:
    """Read the typed answer of a response; no rule of the contract is applied yet."""
    if unusable := _unusable(response):
        return _failed(*unusable)
    try:
        return _read(without_thoughts(response.content), contract, tool_names)
    except _WrittenCall:
        return _failed("tool_call_as_text", WRITTEN_CALL)
    except NotJson as error:
        return _failed("invalid_json", str(error))
    except RecursionError:
        return _failed("invalid_json", "the response is nested too deeply")
    except Exception as error:  # of a validator, or of the contract's `read_text`
        kind = log_failure("an answer could not be read", error)
        return _failed("schema", f"the answer could not be read ({kind}); answer differently")


def _unusable(response: LLMResponse) -> tuple[str, str] | None:
    """Return the kind and description of what keeps a response from being an answer at all."""
    if response.tool_calls:
        return "tool_call", "tools can no longer be called, answer with what is known"
    if response.refusal is not None:
        return "refusal", "the model declined to answer"
    if response.finish_reason in FINISH_PROBLEMS:
        return FINISH_PROBLEMS[response.finish_reason]
    if len(response.content) > lengths.ANSWER:
        return "too_long", f"the response has more than {lengths.ANSWER} characters"
    if without_thoughts(response.content):
        return None
    is_thought = response.has_reasoning or response.content.strip()
    holds = "holds only reasoning and no answer" if is_thought else "is empty"
    return "empty", f"the response {holds}"


class _WrittenCall(Exception):
    """The answer is a tool call that was written as text."""


def _read(text: str, contract: OutputContract[T], tool_names: Collection[str]) -> ParseResult[T]:
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
    return ParseResult("", answer=answer, path=found.path)


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


async def check(
    answer: T,
    contract: OutputContract[T],
    evidence: Evidence,
    *,
    path: str = "strict",
    size: int = 0,
) -> ParseResult[T]:
    """Hold a value that satisfies the schema to the contract's rules, and render it.

    A rule may raise ValueError instead of saying what is wrong. One that fails is not kept. Of a
    text of `size` characters that is large, rules that are no coroutines run in a thread.
    """
    try:
        broken = await _broken_rule(answer, contract, evidence, size)
        render = partial(contract.render, answer, evidence)
        text = "" if broken else visible(await run_in_thread_if_large(render, size=size))
    except RecursionError:
        return _failed("invalid_json", "the response is nested too deeply", path)
    except ValueError as error:
        return _failed("semantic", clip(str(error), SHOWN_ERROR_CHARS), path)
    except Exception as error:
        kind = log_failure("a rule of the contract failed", error)
        problem = f"the answer could not be checked ({kind}); answer differently"
        return _failed("semantic", problem, path)
    if not broken and not text.strip():
        broken = "semantic", "the answer has no text"
    if broken:
        return ParseResult("", [], broken[1], broken[0], answer, path)
    return ParseResult(text, contract.ids(answer), None, None, answer, path)


async def _broken_rule(
    answer: T, contract: OutputContract[T], evidence: Evidence, size: int
) -> tuple[str, str] | None:
    """Return the kind and description of the first rule that an answer breaks, or None."""
    if problem := await _call(contract.semantic, answer, size=size):
        return "semantic", problem
    if problem := await _call(contract.grounding, answer, evidence, size=size):
        return "grounding", problem
    return None


async def _call(rule: Callable[..., R | Awaitable[R]], *given: object, size: int) -> R:
    """Call a rule of a contract, which may be a coroutine function."""
    if iscoroutinefunction(rule):
        return await cast(Awaitable[R], rule(*given))
    return await run_in_thread_if_large(cast(Callable[[], R], partial(rule, *given)), size=size)


async def _trimmed(
    answer: T, contract: OutputContract[T], evidence: Evidence, *, size: int
) -> ParseResult[T] | None:
    """Return an answer without what nothing grounds if it is good without that; or None."""
    trim = partial(contract.trim, answer, evidence)
    left = await run_in_thread_if_large(trim, size=size)
    result = None
    if left is not None:
        result = await check(left, contract, evidence, path="trimmed", size=size)
    return result if result and result.ok else None


async def salvage(
    answer: T | None, contract: OutputContract[T], evidence: Evidence, *, size: int = 0
) -> ParseResult[T] | None:
    """Return the valid part of an answer that broke a rule, held to all rules again; or None."""
    if answer is None:
        return None
    try:
        keep = partial(contract.salvage, answer, evidence)
        valid = await run_in_thread_if_large(keep, size=size)
    except Exception as error:
        log_failure("nothing could be salvaged", error)
        return None
    result = None if valid is None else await check(valid, contract, evidence, size=size)
    return result if result and result.ok else None


def _failed(kind: str, problem: str, path: str = "strict") -> ParseResult[T]:
    return ParseResult("", [], problem, kind, None, path)


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
    first = ""
    for leaf in leaves(value):
        if not leaf or leaf is True or leaf in contract.choices:
            continue
        if not isinstance(leaf, str) or leaf.strip().lower() not in PLACEHOLDERS:
            return None
        first = first or leaf.strip()
    return f"the answer holds nothing but placeholders like `{clip(first, 20)}`" if first else None


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
