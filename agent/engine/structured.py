"""A contract plus a bounded number of attempts with feedback: the core of everything that asks.

Only the newest invalid response and its feedback travel: what attempt 5 sends is no longer than
what attempt 2 sent.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from agent.engine.contract import Evidence, OutputContract
from agent.engine.echoes import noted
from agent.engine.extraction import without_thoughts
from agent.engine.feedback import FEEDBACK, feedback
from agent.engine.limits import Limits
from agent.engine.messages import Echo, LLMResponse, Message
from agent.engine.parsing import ParseResult, judge, parse_response
from agent.engine.tools import where

T = TypeVar("T")

log = logging.getLogger(__name__)


class Conversation:
    """The messages of a turn; holds at most one pair of invalid response and feedback."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = list(messages)
        self._pair_at: int | None = None

    def add(self, *messages: Message) -> None:
        """Append messages that stay."""
        self.messages.extend(messages)

    def correct(
        self,
        raw: str,
        error_description: str,
        *,
        repeated: bool = False,
        wording: str = FEEDBACK,
        echo: Echo | None = None,
    ) -> None:
        """Show the model an invalid response and what is wrong with it, in place of the last.

        `echo` goes back with the response once tools were called: then its server may miss it.
        """
        if self._pair_at is not None:
            del self.messages[self._pair_at : self._pair_at + 2]
        self._pair_at = len(self.messages)
        response, told = feedback(raw, error_description, repeated=repeated, wording=wording)
        after_tools = any(message.get("role") == "tool" for message in self.messages)
        self.messages += [noted(response, echo if after_tools else None), told]


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T]):
    """One answer of the model, and what it came to."""

    response: LLMResponse
    result: ParseResult[T]


Ask = Callable[[int, int], Awaitable[Attempt[T]]]
"""Asks for one answer; takes the attempt's number, from 0, and the token limit."""


@dataclass(slots=True)
class Attempts(Generic[T]):
    """The attempts of one structured answer, oldest first; kept also when asking is broken off."""

    contract: OutputContract[T]
    evidence: Evidence
    made: list[Attempt[T]] = field(default_factory=list)

    @property
    def last(self) -> ParseResult[T] | None:
        """What the newest attempt came to, None before the first."""
        return self.made[-1].result if self.made else None

    @property
    def error_types(self) -> list[str]:
        """The kinds of error of the invalid attempts, oldest first."""
        return [made.result.error_type for made in self.made if made.result.error_type]

    def read(self, response: LLMResponse, tool_names: Sequence[str] = ()) -> Attempt[T]:
        """Parse a response, and recognise one that repeats the invalid one before it."""
        result = parse_response(response, self.contract, self.evidence, tool_names)
        if self._repeats(response, result):
            result = replace(result, error_type="degenerate")
        return Attempt(response, result)

    def _repeats(self, response: LLMResponse, result: ParseResult[T]) -> bool:
        if not result.retryable or not self.made or not response.content.strip():
            return False
        return self.made[-1].response.content == response.content

    def salvage(self) -> ParseResult[T] | None:
        """The valid part of the newest attempt that has one, held to all rules again."""
        for attempt in reversed(self.made):
            valid = self._valid_part(attempt.result.answer)
            if valid is not None and (result := judge(valid, self.contract, self.evidence)).ok:
                return result
        return None

    def _valid_part(self, answer: T | None) -> T | None:
        try:
            return None if answer is None else self.contract.salvage(answer, self.evidence)
        except Exception as error:
            kind = type(error).__name__
            log.error("nothing could be salvaged: %s %s", kind, where(error))  # noqa: TRY400
            return None


async def structured_answer(
    ask: Ask[T], attempts: Attempts[T], conversation: Conversation, limits: Limits
) -> ParseResult[T]:
    """Ask until the answer keeps the contract, or the attempts are used up.

    The result is that of the last attempt. A refusal is not retried. After a truncated response
    the token limit is doubled, up to `limits.answer_tokens_ceiling`. Raises what `ask` raises.
    """
    tokens = limits.answer_tokens
    for number in range(limits.structured_output_max_retries + 1):
        attempt = await ask(number, tokens)
        attempts.made.append(attempt)
        if not attempt.result.retryable:
            break
        _correct(conversation, attempt, attempts.contract.correction)
        if attempt.result.error_type == "truncated":
            tokens = limits.raised(tokens)
    return attempt.result


def _correct(conversation: Conversation, attempt: Attempt[T], wording: str) -> None:
    result = attempt.result
    dropped = result.error_type in {"truncated", "interrupted"}
    raw = "" if dropped else without_thoughts(attempt.response.content)
    repeated = result.error_type == "degenerate"
    problem = result.error or "the answer is empty"
    echo = attempt.response.echo
    conversation.correct(raw, problem, repeated=repeated, wording=wording, echo=echo)
