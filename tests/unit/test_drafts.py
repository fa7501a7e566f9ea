"""When what of a forming answer is shown, in private chats and in groups, on a clock of its own."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from telegram.error import BadRequest, InvalidToken, RetryAfter, TelegramError, TimedOut
from telegram.ext import ExtBot

from bot.outgoing import Destination
from bot.pending import PendingTurn, Placeholder, set_pending_turn
from bot.telegram.drafts import PLACEHOLDER, Drafts
from bot.telegram.rate_limit import Limits, RateLimit
from db.models import UpdateRow
from db.repositories.inbox import Inbox
from tests.virtual_time import VirtualTimeLoop, in_virtual_time

PRIVATE, GROUP = Destination(7), Destination(-7, reply_to=3)
Shown = tuple[str, float, str]


@dataclass
class FakeBot:
    """Keeps what is asked of Telegram and when; `fails` fails calls of a method, one each."""

    loop: VirtualTimeLoop
    calls: list[Shown] = field(default_factory=list)
    fails: dict[str, list[TelegramError]] = field(default_factory=dict)
    seconds: float = 0.05
    limit: RateLimit = field(default_factory=lambda: RateLimit((), (), ()))

    async def _limited(
        self, endpoint: str, chat_id: int, method: str, said: str, limit: Any
    ) -> None:
        data, call = {"chat_id": chat_id}, self._done
        await self.limit.process_request(call, (method, said), {}, endpoint, data, limit)

    async def _done(self, method: str, said: str) -> None:
        self.calls.append((method, self.loop.time(), said))
        await asyncio.sleep(self.seconds)
        if failing := self.fails.get(method):
            raise failing.pop(0)

    async def send_message(self, chat_id: int, text: str, **given: Any) -> Any:
        await self._limited("sendMessage", chat_id, "send", text, given["rate_limit_args"])
        return SimpleNamespace(message_id=99)

    async def edit_message_text(
        self, text: str, chat_id: int, message_id: int, **given: Any
    ) -> Any:
        assert message_id == 99
        await self._limited("editMessageText", chat_id, "edit", text, given["rate_limit_args"])

    async def send_message_draft(self, chat_id: int, draft_id: int, text: str, **_: object) -> Any:
        await self._done("draft", text)

    async def send_chat_action(self, chat_id: int, action: str, **_: object) -> Any:
        await self._done("typing", "")

    async def save_placeholder(self, update: object, message_id: int) -> None:
        await self._done("kept", str(message_id))

    def of(self, *methods: str) -> list[Shown]:
        return [each for each in self.calls if each[0] in methods]


def formed(
    to: Destination,
    seconds: float,
    *,
    fails: dict[str, list[TelegramError]] | None = None,
    draft: Callable[[float], str] = lambda now: f"after {now:.1f} s",
    limits: tuple[Limits, ...] = ((), (), ()),
) -> FakeBot:
    """What was shown of an answer that forms for so long, and has something new at any moment."""

    async def form(loop: VirtualTimeLoop) -> FakeBot:
        limit = RateLimit(*limits, clock=loop.time)
        bot = FakeBot(loop, fails=fails or {}, limit=limit)
        drafts = Drafts(cast("ExtBot[Any]", bot), cast("Inbox", bot), clock=loop.time)
        with set_pending_turn(PendingTurn(cast("UpdateRow", None))):
            async with drafts.forming(to, 1, Placeholder()) as show:
                await asyncio.sleep(0.5)
                if show is not None:
                    show(lambda: draft(loop.time()))
                await asyncio.sleep(seconds - 0.5)
        return bot

    return in_virtual_time(form)


def gaps(shown: list[Shown]) -> list[float]:
    return [later[1] - earlier[1] for earlier, later in pairwise(shown)]


def test_in_a_private_chat_drafts_come_at_most_twice_a_second_and_are_kept_alive() -> None:
    bot = formed(PRIVATE, 10)
    assert bot.calls[0][0] == "typing"
    assert len(bot.of("draft")) > 10
    assert min(gaps(bot.of("draft"))) >= 0.5
    still = formed(PRIVATE, 70, draft=lambda now: "the same")
    assert len(still.of("draft")) == 4
    assert max(gaps(still.of("draft"))) < 30


def test_in_a_group_one_message_is_sent_empty_kept_and_edited_at_most_every_3_s() -> None:
    bot = formed(GROUP, 20)
    shown = [method for method, _, _ in bot.calls if method != "typing"]
    assert shown[:2] == ["send", "kept"]
    assert set(shown[2:]) == {"edit"}
    assert bot.of("send")[0][2] == PLACEHOLDER
    assert len(bot.of("edit")) == 6
    assert min(gaps(bot.of("edit"))) >= 3
    assert bot.of("edit")[0][1] - bot.of("send")[0][1] < 0.5
    assert max(at for method, at, _ in bot.of("typing")) < bot.of("edit")[0][1]


def test_a_group_is_not_shown_how_a_quick_answer_forms() -> None:
    assert not formed(GROUP, 1.9).of("send", "edit")


@pytest.mark.parametrize(("method", "at"), [("send", 0), ("edit", 1)])
def test_a_group_is_left_alone_as_long_as_telegram_asks(method: str, at: int) -> None:
    bot = formed(GROUP, 30, fails={method: [RetryAfter(7)]})
    shown = bot.of("send", "edit")
    assert gaps(shown)[at] >= 7
    assert len(shown) > 4


def test_a_server_that_knows_no_drafts_is_asked_once() -> None:
    bot = formed(PRIVATE, 10, fails={"draft": [InvalidToken()]})
    assert len(bot.of("draft")) == 1
    assert len(bot.of("typing")) > 1


def test_a_message_that_is_gone_is_edited_no_more() -> None:
    bot = formed(GROUP, 20, fails={"edit": [BadRequest("Message to edit not found")]})
    assert len(bot.of("edit")) == 1


@pytest.mark.parametrize("method", ["send", "edit"])
def test_what_may_have_been_shown_in_a_group_is_not_shown_twice(method: str) -> None:
    assert len(formed(GROUP, 20, fails={method: [TimedOut()]}).of(method)) == 1


def test_what_forms_leaves_half_of_a_groups_messages_to_answers() -> None:
    bot = formed(GROUP, 120)
    assert len(bot.of("send", "edit")) > 30
    limited = formed(GROUP, 120, limits=())
    assert len([at for _, at, _ in limited.of("send", "edit") if at < 60]) <= 10
