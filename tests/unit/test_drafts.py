"""When what of a forming answer is shown, in private chats and in groups, on a clock of its own."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from telegram.error import BadRequest, InvalidToken, TelegramError, TimedOut
from telegram.ext import ExtBot

from bot.question import CurrentTurn, Destination, Question, set_current_turn
from bot.telegram.replies import PLACEHOLDER, Replies
from bot.telegram.sender import Sender
from db.models import UpdateRow
from db.repositories.inbox import Inbox
from tests.virtual_time import VirtualTimeLoop, in_virtual_time

PRIVATE, GROUP = Destination(7), Destination(-7, reply_to=3)
Shown = tuple[str, float, str]
NAMES = {
    "send_message": "send",
    "edit_message_text": "edit",
    "send_message_draft": "draft",
    "send_chat_action": "typing",
    "save_placeholder": "kept",
}


class FakeBot:
    def __init__(self, loop: VirtualTimeLoop, fails: dict[str, list[TelegramError]]) -> None:
        self.loop, self.fails = loop, fails
        self.calls: list[Shown] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*arguments: object, **given: object) -> Any:
            method = NAMES[name]
            said = next((one for one in arguments if isinstance(one, str)), "")
            self.calls.append((method, self.loop.time(), said))
            await asyncio.sleep(0.05)
            if failing := self.fails.get(method):
                raise failing.pop(0)
            return SimpleNamespace(message_id=99)

        return call

    def of(self, *methods: str) -> list[Shown]:
        return [call for call in self.calls if call[0] in methods]

    def gaps(self, *methods: str) -> list[float]:
        return [later[1] - earlier[1] for earlier, later in pairwise(self.of(*methods))]


def formed(
    to: Destination,
    seconds: float,
    *,
    fails: dict[str, list[TelegramError]] | None = None,
    draft: Callable[[float], str] = lambda now: f"after {now:.1f} s",
) -> FakeBot:
    """What was shown of an answer that forms for so long, and has something new at any moment."""

    async def form(loop: VirtualTimeLoop) -> FakeBot:
        bot = FakeBot(loop, fails or {})
        sender = Sender(cast("ExtBot[Any]", bot), AsyncMock(), cast("Inbox", bot))
        replies = Replies(sender)
        with set_current_turn(CurrentTurn(update=cast("UpdateRow", None))):
            async with replies.show_progress(Question(id=1, text="", to=to)) as show:
                await asyncio.sleep(0.5)
                show(lambda: draft(loop.time()))
                await asyncio.sleep(seconds - 0.5)
        return bot

    return in_virtual_time(form)


def test_in_a_private_chat_drafts_come_at_most_twice_a_second_and_are_kept_alive() -> None:
    bot = formed(PRIVATE, 10)
    assert bot.calls[0][0] == "typing"
    assert len(bot.of("draft")) > 10
    assert min(bot.gaps("draft")) >= 0.5
    still = formed(PRIVATE, 70, draft=lambda now: "the same")
    assert len(still.of("draft")) == 4
    assert max(still.gaps("draft")) < 30


def test_in_a_group_one_message_is_sent_empty_kept_and_edited_now_and_then() -> None:
    bot = formed(GROUP, 60)
    shown = [method for method, _, _ in bot.calls if method != "typing"]
    assert shown[:2] == ["send", "kept"]
    assert set(shown[2:]) == {"edit"}
    assert bot.of("send")[0][2] == PLACEHOLDER
    assert 10 <= len(bot.of("edit")) <= 12
    assert bot.of("edit")[0][1] - bot.of("send")[0][1] < 0.5
    assert not formed(GROUP, 1.9).of("send", "edit")  # a quick answer is only awaited


@pytest.mark.parametrize(
    ("to", "method", "error"),
    [
        (PRIVATE, "draft", InvalidToken()),  # a server that knows no drafts
        (GROUP, "edit", BadRequest("Message to edit not found")),
        (GROUP, "edit", TimedOut()),
    ],
)
def test_what_was_refused_or_may_have_been_shown_is_not_shown_again(
    to: Destination, method: str, error: TelegramError
) -> None:
    bot = formed(to, 20, fails={method: [error]})
    assert len(bot.of(method)) == 1
    assert bot.of("typing")
