"""Parse a model's response, finished or still being written. The result is never an exception.

Strict JSON is tried first. Only the notation is repaired (fences and prose around it, line breaks
within strings, trailing commas, quotes, comments: JSON5), never a value, and never a text that was
cut off. The value must meet its schema and the contract's rules. There are no rules about words in
it, but a mere tool call or placeholder that is written as text is never an answer.

A draft holds only complete sentences and values of an unfinished response, and is checked by the
rules of the final answer. Ungrounded text is left out of it.
"""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Final, Generic, TypeVar

import pyjson5
from pydantic import ValidationError
from pydantic_core import from_json

from agent import size_limits
from agent.engine.contract import Evidence, OutputContract, Show, leaves
from agent.engine.errors import (
    SHOWN_ERROR_CHARS,
    ResponseOutcome,
    ResponseProblem,
    describe_validation_error,
    log_failure,
)
from agent.engine.messages import LLMResponse, ToolCall, Written
from agent.language import find_last_sentence_end
from agent.markdown import strip_invisible
from agent.text import MAX_INLINE_CHARS, clip, in_thread_if_long, pattern

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
Failure = tuple[ResponseProblem, str]
"""What is wrong with a response, and its description for the model."""
REFUSED: Final[Failure] = (ResponseProblem.REFUSAL, "the model declined to answer")
FINISH_PROBLEMS: Final[Mapping[str, Failure]] = {
    "refusal": REFUSED,
    "content_filter": (
        ResponseProblem.CONTENT_FILTER,
        "the answer was stopped by a content filter",
    ),
    "length": (
        ResponseProblem.TRUNCATED,
        "the response was cut off at the token limit, answer more briefly",
    ),
    "interrupted": (
        ResponseProblem.INTERRUPTED,
        "the response was interrupted, answer again",
    ),
    "no_choices": (ResponseProblem.NO_CHOICES, "there was no response"),
    "unparsed": (
        ResponseProblem.UNPARSED,
        "the response was neither a tool call nor a readable answer",
    ),
}
"""What is wrong with a response, by its finish reason."""
WRITTEN_CALL: Final[Failure] = (
    ResponseProblem.TOOL_CALL_AS_TEXT,
    "a tool call was written as text and not executed; call tools through the tool interface, "
    "or answer with what is known",
)

MAX_JSON_ERROR_CHARS: Final = 80

TAG: Final = r"(?:think(?:ing)?|thought|reasoning)"
THOUGHTS: Final = pattern(
    rf"(?is)\A(?:\s*(?:<{TAG}>.*?(?:</{TAG}>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)))+"
    rf"|\A\s*(?:[^\s{{\[].*?)?</{TAG}>"  # some servers leave out the opening tag
    r"|\A.*<\|channel\|>final[^<]*<\|message\|>"
)
"""The reasoning before an answer: `<think>…</think>`, `[THINK]…[/THINK]`, or all that precedes
`<|channel|>final<|message|>`. Reasoning that does not end is the whole text."""
CONTROL: Final = pattern(r"[\x00-\x1f]")
CALL_MARK: Final = pattern(
    r"<\|?tool_call|<｜tool|<tool_use|\[TOOL_CALLS\]|<function(?:[=_ ]|call)|<\|python_tag\|>"
    r"|<invoke[\s>]|```tool_code|to=functions\."
)
"""The beginnings of tool calls that models write as text."""
CALL_TAGS: Final = pattern(
    r"</?tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|```(?:json)?"
)
"""Marks around a call that is written as JSON."""


@dataclass(frozen=True)
class ParseResult(Generic[T]):
    """The result of parsing a final response. `error` says what is wrong, or is None on success.

    `wine_ids` are the ids that a valid answer names, as its contract's `ids` lists them. `answer`
    is the typed value if the schema was satisfied, even if a rule is broken. If it
    `ends_turn`, it is the result by itself, and `text` is empty. `cuts` are the texts that the
    answer lost because they are ungrounded. With cuts, `error_type` is GROUNDING even on success.
    """

    text: str
    wine_ids: list[str] = field(default_factory=list)
    error: str | None = None
    error_type: ResponseProblem | None = None
    answer: T | None = None
    ends_turn: bool = False
    cuts: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Return whether there is no error, and a text that is not blank."""
        return self.error is None and bool(self.text.strip())

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

    If an answer is ungrounded, the result is its valid part, as far as this part may be shown
    without a further attempt. If a response was cut off, `answer` is the part that a draft shows.
    """
    text = strip_thoughts(response.content)
    chars = len(text)
    failure = await in_thread_if_long(
        chars, _unusable, response, text, contract, tool_names
    )
    if failure is not None:
        error_type, problem = failure
        answer = None
        if error_type is ResponseProblem.TRUNCATED:
            answer = parse_draft(text, contract, evidence).answer
        return _failed(error_type, problem, answer)
    result = await in_thread_if_long(chars, _read, text, contract)
    if result.answer is None:
        return result
    result = await _check(result.answer, contract, evidence)
    if result.error_type is not ResponseProblem.GROUNDING:
        return result
    cases = {Show.AT_ONCE}
    if is_retry:
        cases.add(Show.AFTER_A_RETRY)
    valid_part = await find_valid_part(result.answer, contract, evidence, cases)
    return valid_part or result


def _unusable(
    response: LLMResponse,
    text: str,
    contract: OutputContract[T],
    tool_names: Collection[str],
) -> Failure | None:
    """Return why a response is no answer, or None if it is one."""
    if response.tool_calls:
        return (
            ResponseProblem.TOOL_CALL,
            "tools can no longer be called, answer with what is known",
        )
    if response.refusal is not None:
        return REFUSED
    if response.finish_reason in FINISH_PROBLEMS:
        return FINISH_PROBLEMS[response.finish_reason]
    if len(response.content) > size_limits.ANSWER_CHARS:
        problem = f"the response has more than {size_limits.ANSWER_CHARS} characters"
        return ResponseProblem.TOO_LONG, problem
    if not text:
        return ResponseProblem.EMPTY, "the response holds no answer"
    if contract.plain_text and CALL_MARK.search(text):
        return WRITTEN_CALL
    if tool_calls_in_text(text, tool_names):
        return WRITTEN_CALL
    return None


def _read(text: str, contract: OutputContract[T]) -> ParseResult[T]:
    """Return the typed answer in a text. No rule of the contract is applied yet."""
    try:
        value = _value_of(text, contract)
        placeholder = _find_placeholder(value)
        if placeholder is not None:
            problem = f"the answer holds only placeholders like `{placeholder}`"
            return _failed(ResponseProblem.SEMANTIC, problem)
        answer = contract.adapter.validate_json(json.dumps(value))
        return ParseResult("", answer=answer)
    except ValidationError as error:
        failure = ResponseProblem.SCHEMA, describe_validation_error(error)
    except ValueError as error:
        failure = ResponseProblem.INVALID_JSON, str(error)
    except Exception as error:
        # A validator or the contract's `read_text` has raised it.
        log_failure("an answer could not be read", error)
        name = type(error).__name__
        problem = f"the answer could not be read ({name}); answer differently"
        failure = ResponseProblem.SCHEMA, problem
    if CALL_MARK.search(text):
        failure = WRITTEN_CALL
    return _failed(*failure)


def _value_of(text: str, contract: OutputContract[T]) -> object:
    """Return the value of a text, read as JSON or else by `read_text`."""
    if contract.plain_text:
        return contract.read_text(text) or text
    brackets = "{}"
    if contract.output.schema.get("type") == "array":
        brackets = "[]"
    try:
        return read_json(text, brackets)
    except ValueError:
        value = contract.read_text(text)
        if value is None:
            raise
        return value


def strip_thoughts(text: str) -> str:
    """Return a response without the reasoning that precedes the answer."""
    thoughts = THOUGHTS.match(text)
    if thoughts:
        text = text[thoughts.end() :]
    return text.strip()


def read_json(text: str, brackets: str = "{}") -> object:
    """Return the only JSON value of a text: the whole text, or the part that brackets enclose.

    Raises ValueError if there is no value, or more than one. Its message does not have the text.
    """
    begin = text.find(brackets[0])
    end = text.rfind(brackets[1]) + 1
    has_brackets = begin >= 0
    written = text
    if has_brackets:
        written = text[begin:end]
    try:
        return json.loads(written, strict=False)  # line breaks within strings are read
    except (ValueError, RecursionError) as error:
        if not has_brackets:
            raise ValueError("the response holds no JSON") from None
        problem = clip(str(error), MAX_JSON_ERROR_CHARS)
    try:
        return pyjson5.loads(written)
    except (ValueError, RecursionError, pyjson5.Json5Exception):
        raise ValueError(
            f"the response is not one valid JSON value ({problem})"
        ) from None


def tool_calls_in_text(text: str, tool_names: Collection[str]) -> tuple[ToolCall, ...]:
    """Return the tool calls that a text has as JSON. If it has anything else, return none.

    Servers whose template does not parse the calls of their model send them as text.
    """
    if not any(name in text for name in tool_names):  # parsing takes long
        return ()
    values = _json_values(strip_thoughts(text))
    calls: list[ToolCall] = []
    for value in values[: size_limits.TOOL_CALLS]:
        call = _call(value, tool_names)
        if call is None:
            return ()
        calls.append(call)
    return tuple(calls)


def _json_values(text: str) -> list[object]:
    """Return the JSON values of a text. If it has more than them and `CALL_TAGS`, return none."""
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


def _call(value: object, tool_names: Collection[str]) -> ToolCall | None:
    """Return the call that a JSON value means, or None if it means none."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    if not isinstance(value, Mapping):
        return None
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters"))
    if not isinstance(name, str) or name not in tool_names or arguments is None:
        return None
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return ToolCall("", name, arguments)


def _find_placeholder(value: object) -> str | None:
    """Return the first placeholder of an answer, or None if it has none or has a sentence too."""
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
    answer: T, contract: OutputContract[T], evidence: Evidence
) -> ParseResult[T]:
    """Apply the contract's rules to a value that satisfies the schema, and render it.

    A rule may raise ValueError instead of returning a problem. Any other error rejects the answer
    too.
    """
    if contract.ends_turn(answer):
        return ParseResult("", answer=answer, ends_turn=True)
    text = ""
    # The problem of the rule that is being applied, also if that rule raises an error.
    error_type = ResponseProblem.SEMANTIC
    try:
        chars = _count_chars(answer, contract, evidence)
        problem = await _apply(contract.semantic, answer, chars=chars)
        if not problem:
            error_type = ResponseProblem.GROUNDING
            problem = await _apply(contract.grounding, answer, evidence, chars=chars)
        if not problem:
            error_type = ResponseProblem.SEMANTIC
            text = await _apply(contract.render, answer, evidence, chars=chars)
            text = strip_invisible(text)
    except ValueError as error:
        problem = clip(str(error), SHOWN_ERROR_CHARS)
    except Exception as error:
        log_failure("a rule of the contract failed", error)
        name = type(error).__name__
        problem = f"the answer could not be checked ({name}); answer differently"
    if not problem and text.strip():
        return ParseResult(text, contract.ids(answer), answer=answer)
    return _failed(error_type, problem or "the answer has no text", answer)


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


def _count_chars(answer: T, contract: OutputContract[T], evidence: Evidence) -> int:
    """Return the number of characters that checking an answer reads."""
    texts = [contract.write(answer), *evidence.texts, *evidence.assistant_texts]
    return sum(map(len, texts))


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


def _failed(
    error_type: ResponseProblem, problem: str, answer: T | None = None
) -> ParseResult[T]:
    return ParseResult("", error=problem, error_type=error_type, answer=answer)


class CurrentDraft:
    """The part of an answer that a user may see while it forms, in Markdown.

    The turn keeps it up to date, and whoever shows it asks for its `text()`, or for its `changes`.
    `describe_call` returns the text that is shown while a tool runs, by the `progress_name` of the
    tool, which is empty if the tool has none.
    """

    def __init__(self, describe_call: Callable[[str], str] = str) -> None:
        self._describe_call = describe_call
        self._notice = ""
        self._answer: tuple[Written, OutputContract[Any], Evidence] | None = None

    def show(self, notice: str) -> None:
        """Show a text until the next answer begins."""
        self._notice = notice
        self._answer = None

    def show_call(self, progress_name: str) -> None:
        """Show that a tool runs."""
        self.show(self._describe_call(progress_name))

    def follow(
        self, written: Written, contract: OutputContract[T], evidence: Evidence
    ) -> None:
        """Show the valid part of a response as soon as its text begins."""
        self._answer = written, contract, evidence

    def text(self) -> str:
        """Return the current text, or "" if there is nothing to show."""
        if self._answer is not None and self._answer[0].text:
            return parse_written(*self._answer).text
        return self._notice

    async def changes(
        self, until: asyncio.Future[Any], seconds: float
    ) -> AsyncIterator[str]:
        """Yield the text whenever it has changed, until the future `until` is done.

        The text is compared every `seconds`.
        """
        shown = ""
        while not until.done():
            await asyncio.wait([until], timeout=seconds)
            text = self.text()
            if text not in {"", shown} and not until.done():
                shown = text
                yield text


def parse_written(
    written: Written, contract: OutputContract[T], evidence: Evidence
) -> ParseResult[T]:
    """Return the part of an unfinished response that may be shown."""
    text = written.text[:MAX_INLINE_CHARS]  # parsing more would block the event loop
    return parse_draft(text, contract, evidence)


def parse_draft(
    text: str, contract: OutputContract[T], evidence: Evidence
) -> ParseResult[T]:
    """Return the part of an unfinished response that may be shown. Its text may be empty."""
    text = strip_thoughts(text)
    draft: ParseResult[T] = ParseResult("")
    try:
        if contract.read_unfinished is not None:
            draft = _draft_answer(text, contract, evidence)
        elif contract.is_drafted:
            sentences = _complete_sentences(text)
            draft = ParseResult(strip_invisible(sentences))
    except Exception as error:
        log_failure("a draft could not be made", error)
    if not draft.text.strip():
        return ParseResult("")
    return draft


def _complete_sentences(text: str) -> str:
    """Return an unfinished text up to the end of its last complete sentence."""
    return text[: find_last_sentence_end(text, len(text) - 1)]


def _draft_answer(
    text: str, contract: OutputContract[T], evidence: Evidence
) -> ParseResult[T]:
    """Return the valid part of an answer whose JSON is still being written."""
    written = parse_unfinished(text)
    if written is None or contract.read_unfinished is None:
        return ParseResult("")
    value = contract.read_unfinished(written)
    if value is None:
        return ParseResult("")
    part = contract.keep_valid(value, evidence)
    if part is None:
        return ParseResult("")
    shown = strip_invisible(contract.render(part.answer, evidence))
    result = ParseResult(shown, contract.ids(part.answer), answer=part.answer)
    return _with_cuts(result, part.cuts)


def parse_unfinished(text: str) -> dict[str, Any] | None:
    """Return the part of a JSON object that will not change while the rest is written.

    A string that has not ended is cut after its last complete sentence. Return None if no object
    has begun.
    """
    begin = text.find("{")
    if begin < 0:
        return None
    json_text = CONTROL.sub(" ", text[begin:])
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
        return _complete_sentences(value)
    if isinstance(value, dict):
        closed = without_open or {}
        return {key: _cut_open_strings(value[key], closed.get(key)) for key in value}
    if isinstance(value, list):
        pairs = zip_longest(value, without_open or [])
        return [_cut_open_strings(item, closed_item) for item, closed_item in pairs]
    if without_open is None:
        return None
    return value
