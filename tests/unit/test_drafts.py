"""The progress of an answer in private chats and in groups, in virtual time."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from telegram.error import (
    BadRequest,
    InvalidToken,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from bot.telegram.connection import AnyBot
from bot.telegram.progress import PLACEHOLDER, Progress, show_typing_or_drafts
from bot.turn import Destination, Hold, Turn
from tests.virtual_time import VirtualTimeLoop, in_virtual_time

PRIVATE, GROUP = Destination(7), Destination(-7, reply_to=3)
Shown = tuple[str, float, str]
NAMES = {
    "send_message": "send",
    "edit_message_text": "edit",
    "send_message_draft": "draft",
    "send_chat_action": "typing",
}


class FakeBot(Hold):
    """A bot, and the hold on the turn whose progress it shows."""

    def __init__(
        self, loop: VirtualTimeLoop, errors: dict[str, list[TelegramError]]
    ) -> None:
        self.loop, self.errors = loop, errors
        self.calls: list[Shown] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*arguments: object, **_: object) -> Any:
            method = NAMES[name]
            text = next((value for value in arguments if isinstance(value, str)), "")
            self.calls.append((method, self.loop.time(), text))
            await asyncio.sleep(0.05)
            if failing := self.errors.get(method):
                raise failing.pop(0)
            return SimpleNamespace(message_id=99)

        return call

    async def save_placeholder(self, message_id: int) -> None:
        self.calls.append(("store", self.loop.time(), ""))

    def of(self, *methods: str) -> list[Shown]:
        return [call for call in self.calls if call[0] in methods]

    def gaps(self, *methods: str) -> list[float]:
        return [later[1] - earlier[1] for earlier, later in pairwise(self.of(*methods))]


def show_progress_for(
    to: Destination,
    seconds: float,
    *,
    errors: dict[str, list[TelegramError]] | None = None,
    draft: Callable[[float], str] = lambda now: f"after {now:.1f} s",
) -> FakeBot:
    """Return the bot after it showed the progress of an answer that took `seconds`."""

    async def run(loop: VirtualTimeLoop) -> FakeBot:
        bot = FakeBot(loop, errors or {})
        progress = Progress(cast("AnyBot", bot))
        turn = Turn(id=1, to=to, hold=bot)
        end = loop.time() + seconds
        async with show_typing_or_drafts(progress, turn, to) as shown:
            await asyncio.sleep(0.5)
            while loop.time() < end:
                shown.show(draft(loop.time()))
                await asyncio.sleep(0.1)
        return bot

    return in_virtual_time(run)


def test_in_a_private_chat_drafts_are_sent_at_most_twice_a_second_and_refreshed() -> (
    None
):
    bot = show_progress_for(PRIVATE, 10)
    assert bot.calls[0][0] == "typing"
    assert len(bot.of("draft")) > 10
    assert min(bot.gaps("draft")) >= 0.5
    still = show_progress_for(PRIVATE, 70, draft=lambda now: "the same")
    assert len(still.of("draft")) == 4
    assert max(still.gaps("draft")) < 30


def test_in_a_group_one_placeholder_is_sent_stored_and_edited() -> None:
    bot = show_progress_for(GROUP, 60)
    shown = [method for method, _, _ in bot.calls if method != "typing"]
    assert shown[:2] == ["send", "store"]
    assert set(shown[2:]) == {"edit"}
    assert bot.of("send")[0][2] == PLACEHOLDER
    assert 10 <= len(bot.of("edit")) <= 12
    assert min(bot.gaps("edit")) >= 3
    assert bot.of("edit")[0][1] - bot.of("send")[0][1] < 0.5
    assert not show_progress_for(GROUP, 1.9).of(
        "send", "edit"
    )  # a quick answer is only awaited


@pytest.mark.parametrize(
    ("to", "method", "error"),
    [
        (PRIVATE, "draft", InvalidToken()),  # a server that knows no drafts
        (GROUP, "edit", BadRequest("Message to edit not found")),
        (GROUP, "edit", TimedOut()),
    ],
)
def test_after_an_error_no_more_drafts_are_sent(
    to: Destination, method: str, error: TelegramError
) -> None:
    bot = show_progress_for(to, 20, errors={method: [error]})
    assert len(bot.of(method)) == 1
    assert bot.of("typing")


def test_nothing_is_shown_while_telegram_asks_to_wait() -> None:
    bot = show_progress_for(GROUP, 30, errors={"edit": [RetryAfter(9)]})
    (_, refused_at, _), *later = bot.of("edit")
    assert later
    for _, at, _ in bot.of("edit", "typing"):
        assert not refused_at < at < refused_at + 9


def test_a_draft_of_a_lost_turn_edited_the_final_answer_of_another_process() -> None:
    async def run(loop: VirtualTimeLoop) -> FakeBot:
        bot = FakeBot(loop, {})
        turn = Turn(id=1, to=GROUP, placeholder_id=99, hold=Lost())
        async with show_typing_or_drafts(
            Progress(cast("AnyBot", bot)), turn, GROUP
        ) as draft:
            draft.show("a draft")
            await asyncio.sleep(9)
        return bot

    assert in_virtual_time(run).of("send", "edit") == []


class Lost(Hold):
    """The hold on a turn that another process has begun."""

    async def is_current(self) -> bool:
        return False
