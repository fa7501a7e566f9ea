"""Parse a model's response, finished or still being written. No response raises an exception.

The value that a response has must match its schema and obey the contract's rules. A mere tool call
or placeholder is never an answer, and a response that was cut off is not completed.

A draft holds only complete sentences and values of an unfinished response. The contract leaves
ungrounded text out of it.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from agent import size_limits
from agent.engine.contract import Evidence, OutputContract, Show, leaves
from agent.engine.errors import (
    SHOWN_ERROR_CHARS,
    ResponseOutcome,
    ResponseProblem,
    describe_validation_error,
    log_failure,
)
from agent.engine.messages import LLMResponse, Written
from agent.engine.response_text import (
    CALL_MARK,
    complete_sentences,
    find_tool_calls,
    parse_unfinished,
    read_json,
    strip_thoughts,
)
from agent.markdown import strip_invisible
from agent.text import MAX_INLINE_CHARS, clip, in_thread_if_long

T = TypeVar("T")
R = TypeVar("R")

TERMINAL: Final[Mapping[ResponseProblem, ResponseOutcome]] = {
    ResponseProblem.REFUSAL: "refusal",
    ResponseProblem.CONTENT_FILTER: "content_filter",
}
"""The errors that a retry cannot fix, and the outcome of the turn that ends with them."""
PLACEHOLDERS: Final = frozenset(
    {"...", "…", "string", "<string>", "text", "<text>", "placeholder", "todo", "tbd"}
)
"""What models write in place of a text that they have not thought of."""


class Failure(NamedTuple):
    """The fault of a response."""

    error_type: ResponseProblem
    description: str
    """The error as the feedback to the model describes it."""


REFUSED: Final = Failure(ResponseProblem.REFUSAL, "the model declined to answer")
FINISH_FAILURES: Final[Mapping[str, Failure]] = {
    "refusal": REFUSED,
    "content_filter": Failure(
        ResponseProblem.CONTENT_FILTER,
        "the answer was stopped by a content filter",
    ),
    "length": Failure(
        ResponseProblem.TRUNCATED,
        "the response was cut off at the token limit, answer more briefly",
    ),
    "interrupted": Failure(
        ResponseProblem.INTERRUPTED,
        "the response was interrupted, answer again",
    ),
    "no_choices": Failure(ResponseProblem.NO_CHOICES, "there was no response"),
    "unparsed": Failure(
        ResponseProblem.UNPARSED,
        "the response was neither a tool call nor a readable answer",
    ),
}
"""What is wrong with a response, by its finish reason."""
CALL_AS_TEXT: Final = Failure(
    ResponseProblem.TOOL_CALL_AS_TEXT,
    "a tool call was written as text and not executed; call tools through the tool interface, "
    "or answer with what is known",
)
NO_TEXT: Final = "the answer has no text"


@dataclass(frozen=True)
class ParseResult(Generic[T]):
    """The result of parsing a final response."""

    text: str
    """The text for the user, or "" if there is none."""
    wine_ids: list[str] = field(default_factory=list)
    """The ids that a valid answer names, as its contract's `ids` lists them."""
    error: str | None = None
    """What is wrong, or None on success."""
    error_type: ResponseProblem | None = None
    """The type of the error. It is GROUNDING even on success if there are `cuts`."""
    answer: T | None = None
    """The typed value if it matches the schema, even if it breaks a rule."""
    ends_turn: bool = False
    """Whether `answer` is the result by itself. Then `text` is empty."""
    cuts: tuple[str, ...] = ()
    """The texts that the answer lost because they are ungrounded."""

    @property
    def ok(self) -> bool:
        """Return whether there is no error, and a text that is not blank."""
        if self.error is not None:
            return False
        return bool(self.text.strip())

    @property
    def outcome(self) -> ResponseOutcome:
        """Return the outcome of a turn whose last attempt had this result."""
        if self.ok or self.ends_turn:
            return "answered"
        if self.error_type is None:
            return "exhausted"
        return TERMINAL.get(self.error_type, "exhausted")

    @property
    def retryable(self) -> bool:
        """Return whether asking again with feedback may help."""
        return self.outcome == "exhausted"


async def parse_final_response(
    response: LLMResponse,
    contract: OutputContract[T],
    evidence: Evidence,
    tool_names: Collection[str] = (),
    *,
    is_retry: bool = False,
) -> ParseResult[T]:
    """Return the result of a final response, by its finish reason and then by the contract.

    If an answer is ungrounded, the result is its valid part, if this part may be shown without a
    further attempt. If a response was cut off, `answer` is the part that a draft would show.
    """
    text = strip_thoughts(response.content)
    chars = len(text)
    failure = await in_thread_if_long(
        chars, _find_failure, response, text, contract, tool_names
    )
    if failure is not None:
        answer = None
        if failure.error_type is ResponseProblem.TRUNCATED:
            answer = parse_draft(text, contract, evidence).answer
        return _failed_result(failure, answer)
    result = await in_thread_if_long(chars, _read_answer, text, contract)
    if result.answer is None:
        return result
    result = await _check(result.answer, contract, evidence)
    if result.error_type is not ResponseProblem.GROUNDING:
        return result
    # Whether a part may be shown at once depends on what was cut (see `Part.show`).
    may_show = {Show.AT_ONCE}
    if is_retry:
        may_show.add(Show.AFTER_A_RETRY)
    valid_part = await find_valid_part(result.answer, contract, evidence, may_show)
    return valid_part or result


def _find_failure(
    response: LLMResponse,
    text: str,
    contract: OutputContract[T],
    tool_names: Collection[str],
) -> Failure | None:
    """Return why a response is no answer, or None if it may be one.

    `text` is the content of the response without reasoning.
    """
    if response.tool_calls:
        return Failure(
            ResponseProblem.TOOL_CALL,
            "tools can no longer be called, answer with what is known",
        )
    if response.refusal is not None:
        return REFUSED
    if response.finish_reason in FINISH_FAILURES:
        return FINISH_FAILURES[response.finish_reason]
    max_chars = size_limits.ANSWER_CHARS
    if len(response.content) > max_chars:
        problem = f"the response has more than {max_chars} characters"
        return Failure(ResponseProblem.TOO_LONG, problem)
    if not text:
        return Failure(ResponseProblem.EMPTY, "the response holds no answer")
    # In JSON, the mark of a call may stand within a string, so it counts only if parsing fails.
    if contract.is_plain_text and CALL_MARK.search(text):
        return CALL_AS_TEXT
    if find_tool_calls(text, tool_names):
        return CALL_AS_TEXT
    return None


def _read_answer(text: str, contract: OutputContract[T]) -> ParseResult[T]:
    """Return the typed answer in a text. No rule of the contract is applied yet."""
    try:
        value = _read_value(text, contract)
        placeholder = _find_placeholder(value)
        if placeholder is not None:
            problem = f"the answer holds only placeholders like `{placeholder}`"
            return _failed_result(Failure(ResponseProblem.SEMANTIC, problem))
        # As JSON, a text is accepted for an enum, and a list for a tuple.
        answer = contract.adapter.validate_json(json.dumps(value))
        return ParseResult("", answer=answer)
    except ValidationError as error:
        problem = describe_validation_error(error)
        failure = Failure(ResponseProblem.SCHEMA, problem)
    except ValueError as error:
        failure = Failure(ResponseProblem.INVALID_JSON, str(error))
    except Exception as error:
        # A validator or the contract's `read_text` has raised it.
        log_failure("an answer could not be read", error)
        name = type(error).__name__
        problem = f"the answer could not be read ({name}); answer differently"
        failure = Failure(ResponseProblem.SCHEMA, problem)
    if CALL_MARK.search(text):
        failure = CALL_AS_TEXT
    return _failed_result(failure)


def _read_value(text: str, contract: OutputContract[T]) -> object:
    """Return the value of a text, read as JSON or else by `read_text`."""
    if contract.is_plain_text:
        return contract.read_text(text) or text
    opening, closing = "{", "}"
    if contract.output.schema.get("type") == "array":
        opening, closing = "[", "]"
    try:
        return read_json(text, opening, closing)
    except ValueError:
        value = contract.read_text(text)
        if value is None:
            raise
        return value


def _find_placeholder(value: object) -> str | None:
    """Return the first placeholder of an answer, or None if it has none or also a sentence."""
    placeholder = None
    for leaf in leaves(value):
        if not isinstance(leaf, str):
            continue
        text = leaf.strip()
        if " " in text:  # several words are a sentence
            return None
        if placeholder is None and text.lower() in PLACEHOLDERS:
            placeholder = text
    return placeholder


async def _check(
    answer: T,
    contract: OutputContract[T],
    evidence: Evidence,
) -> ParseResult[T]:
    """Apply the contract's rules to a value that satisfies the schema, and render it.

    A rule may raise ValueError instead of returning a problem. Any other error rejects the answer
    too.
    """
    if contract.ends_turn(answer):
        return ParseResult("", answer=answer, ends_turn=True)
    text = ""
    # The type of error if the next rule finds a problem or raises an error.
    error_type = ResponseProblem.SEMANTIC
    try:
        chars = _count_chars(answer, contract, evidence)
        problem = await _apply(contract.semantic, answer, chars=chars)
        if not problem:
            error_type = ResponseProblem.GROUNDING
            problem = await _apply(contract.grounding, answer, evidence, chars=chars)
        if not problem:
            error_type = ResponseProblem.SEMANTIC
            rendered = await _apply(contract.render, answer, evidence, chars=chars)
            text = strip_invisible(rendered)
    except ValueError as error:
        problem = clip(str(error), SHOWN_ERROR_CHARS)
    except Exception as error:
        log_failure("a rule of the contract failed", error)
        name = type(error).__name__
        problem = f"the answer could not be checked ({name}); answer differently"
    if not problem and not text.strip():
        problem = NO_TEXT
    if problem:
        return _failed_result(Failure(error_type, problem), answer)
    return ParseResult(text, contract.ids(answer), answer=answer)


async def _apply(
    rule: Callable[..., R | Awaitable[R]], *arguments: object, chars: int
) -> R:
    """Return the result of a rule that reads `chars` characters.

    A coroutine function runs in the event loop. Any other rule runs in a thread if the characters
    are many.
    """
    result: R | Awaitable[R]
    if inspect.iscoroutinefunction(rule):
        result = rule(*arguments)
    else:
        result = await in_thread_if_long(chars, rule, *arguments)
    if isinstance(result, Awaitable):
        return await result
    return result


def _count_chars(
    answer: T,
    contract: OutputContract[T],
    evidence: Evidence,
) -> int:
    """Return the number of characters that the rules for an answer read."""
    written = contract.write(answer)
    texts = [written, *evidence.texts, *evidence.assistant_texts]
    return sum(len(text) for text in texts)


async def find_valid_part(
    answer: T | None,
    contract: OutputContract[T],
    evidence: Evidence,
    cases: Collection[Show] = frozenset(Show),
) -> ParseResult[T] | None:
    """Return the valid part of an answer, or None if there is none that may be shown.

    `cases` are the cases in which a part may be shown now.
    """
    if answer is None:
        return None
    chars = _count_chars(answer, contract, evidence)
    part = await _apply(contract.keep_valid, answer, evidence, chars=chars)
    if part is None or part.show not in cases:
        return None
    result = await _check(part.answer, contract, evidence)
    if not result.ok:
        return None
    return _with_cuts(result, part.cuts)


def _with_cuts(result: ParseResult[T], cuts: tuple[str, ...]) -> ParseResult[T]:
    """Return the result of an answer that lost these texts."""
    if not cuts:
        return result
    return replace(result, cuts=cuts, error_type=ResponseProblem.GROUNDING)


def _failed_result(failure: Failure, answer: T | None = None) -> ParseResult[T]:
    return ParseResult(
        "",
        error=failure.description,
        error_type=failure.error_type,
        answer=answer,
    )


def parse_written(
    written: Written,
    contract: OutputContract[T],
    evidence: Evidence,
) -> ParseResult[T]:
    """Return the part of an unfinished response that may be shown.

    Only the beginning of a very long one is parsed, because more would block the event loop.
    """
    text = written.text[:MAX_INLINE_CHARS]
    return parse_draft(text, contract, evidence)


def parse_draft(
    text: str,
    contract: OutputContract[T],
    evidence: Evidence,
) -> ParseResult[T]:
    """Return the part of an unfinished response that may be shown. Its text may be empty."""
    text = strip_thoughts(text)
    draft: ParseResult[T] = ParseResult("")
    try:
        if contract.read_unfinished is not None:
            draft = _draft_answer(text, contract, evidence)
        elif contract.is_drafted:
            sentences = complete_sentences(text)
            draft = ParseResult(strip_invisible(sentences))
    except Exception as error:
        log_failure("a draft could not be made", error)
    if not draft.text.strip():
        return ParseResult("")
    return draft


def _draft_answer(
    text: str,
    contract: OutputContract[T],
    evidence: Evidence,
) -> ParseResult[T]:
    """Return the valid part of an answer whose JSON is still being written."""
    partial_value = parse_unfinished(text)
    if partial_value is None or contract.read_unfinished is None:
        return ParseResult("")
    value = contract.read_unfinished(partial_value)
    if value is None:
        return ParseResult("")
    part = contract.keep_valid(value, evidence)
    if part is None:
        return ParseResult("")
    rendered = contract.render(part.answer, evidence)
    ids = contract.ids(part.answer)
    result = ParseResult(strip_invisible(rendered), ids, answer=part.answer)
    return _with_cuts(result, part.cuts)
