"""Answers on their way to Telegram: what a person gets, and how often Telegram is asked."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from httpx2 import Limits
from sqlalchemy import select
from telegram.ext import ExtBot

from bot.telegram.connection import TelegramRequests, telegram_bot
from bot.telegram.rate_limit import RateLimit
from bot.telegram.sender import MAX_TRIES, Sender, build_messages
from bot.turn import Delivery, Destination, Hold
from db.changes.chats import SetReachable
from db.engine import Sessions
from db.models import ChatRow, OutboxRow
from db.repositories.outbox import Outbox, TurnTaken
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.server import eventually
from tests.stored import make

GROUP, SUPERGROUP = -500, -1_001_234_567_890_123


@dataclass
class Waits:
    """A clock that only sleeping moves, at once unless held; keeps how long each sleep was."""

    now: float = 0
    seconds: list[float] = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_end.set()

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if seconds:
            self.seconds.append(seconds)
            await self.may_end.wait()
        self.now += seconds


@pytest.fixture
async def bot(bot_api: BotApi, waits: Waits) -> AsyncIterator[ExtBot[Any]]:
    async with bot_at(bot_api.base_url, bot_api.token, waits) as bot:
        yield bot


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def sender(bot: ExtBot[Any], waits: Waits) -> Sender:
    return sender_of(bot, waits)


def sender_of(bot: ExtBot[Any], waits: Waits) -> Sender:
    assert isinstance(bot.rate_limiter, RateLimit)
    return Sender(bot, AsyncMock(spec=Outbox), bot.rate_limiter, waits.sleep)


async def send(sender: Sender, to: Destination, markdown: str) -> Delivery:
    return await sender.deliver(await build_messages(to, [markdown]))


def bot_at(url: str, token: str, waits: Waits, read_seconds: float = 5) -> ExtBot[Any]:
    limit = RateLimit(clock=waits.clock, sleep=waits.sleep)
    return telegram_bot(token, url, limit, TelegramRequests(read_seconds=read_seconds))


def parts(number: int) -> str:
    """An answer that takes so many messages."""
    return "\n\n".join(f"{at}. " + "wine " * 800 for at in range(1, number + 1))


FAULTS: dict[str, Callable[[BotApi], object]] = {
    "none": lambda bot_api: None,
    "a 429": lambda bot_api: bot_api.fail("editMessageText", 429, retry_after=5),
    "no response": lambda bot_api: bot_api.drop_after("editMessageText"),
    "a gateway": lambda bot_api: bot_api.fail(
        "editMessageText", 502, "Bad Gateway", times=2
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_an_answer_takes_the_place_of_a_message_once_whatever_happens(
    fault: str, bot_api: BotApi, sender: Sender
) -> None:
    place = (await send(sender, Destination(GROUP), "…")).message_ids[0]
    FAULTS[fault](bot_api)
    there = Destination(GROUP, reply_to=41, replaced_id=place)
    for _ in range(2):  # as a turn does that was killed before it recorded the first
        delivery = await send(sender, there, "**Chinon**")
        assert (delivery.message_ids, delivery.error) == ((place,), None)
    assert bot_api.sent(GROUP) == ["Chinon"]


async def test_an_answer_whose_place_is_gone_is_sent_and_the_rest_follows(
    bot_api: BotApi, sender: Sender
) -> None:
    delivery = await send(
        sender, Destination(GROUP, reply_to=41, replaced_id=12), parts(2)
    )
    first, second = bot_api.calls_of("sendMessage")
    assert first.params["reply_parameters"]["message_id"] == 41
    assert "reply_parameters" not in second.params
    assert len(bot_api.sent(GROUP)) == len(delivery.message_ids) == 2


async def test_an_answer_replies_once_goes_on_in_the_same_topic_and_keeps_to_telegrams_pace(
    bot_api: BotApi, sender: Sender, waits: Waits
) -> None:
    delivery = await send(
        sender, Destination(GROUP, thread_id=7, reply_to=41), parts(7)
    )
    first, *others = (call.params for call in bot_api.calls_of("sendMessage"))
    replied = first["reply_parameters"]
    assert (replied["message_id"], replied["allow_sending_without_reply"]) == (41, True)
    assert not any("reply_parameters" in other for other in others)
    assert {params["message_thread_id"] for params in (first, *others)} == {7}
    sent = [message["message_id"] for message in bot_api.messages(GROUP)]
    assert delivery == Delivery(tuple(sent), requests=7)
    assert waits.seconds == [3, 3]


async def test_telegram_is_given_exactly_the_time_it_asks_for_until_an_answer_is_given_up(
    bot_api: BotApi, sender: Sender, waits: Waits
) -> None:
    bot_api.fail("sendMessage", 429, retry_after=17)
    delivery = await send(sender, Destination(CHAT), "Chinon")
    assert (bot_api.sent(), waits.seconds) == (["Chinon"], [17])
    assert (delivery.requests, delivery.error) == (2, None)
    bot_api.fail("sendMessage", 429, retry_after=5, times=100)
    delivery = await send(sender, Destination(CHAT), parts(2))
    assert delivery == Delivery(requests=MAX_TRIES, error="rate_limited")
    assert waits.seconds[1:] == [5] * (MAX_TRIES - 1)


async def test_a_chat_that_must_wait_holds_up_no_other(
    bot_api: BotApi, sender: Sender, waits: Waits
) -> None:
    waits.may_end.clear()
    bot_api.fail("sendMessage", 429, retry_after=1, chat_id=1)
    waiting = asyncio.create_task(send(sender, Destination(1), "late"))
    await eventually(
        lambda: waits.seconds == [1], seconds=30, otherwise=lambda: str(waits)
    )
    await asyncio.gather(
        *(send(sender, Destination(chat), "soon") for chat in range(2, 12))
    )
    assert not waiting.done()
    waits.may_end.set()
    await waiting
    order = [call.params["chat_id"] for call in bot_api.calls_of("sendMessage")]
    assert (order[0], order[-1], sorted(order[1:-1])) == (1, 1, list(range(2, 12)))
    assert waits.seconds == [1]


async def test_a_message_that_may_have_arrived_is_not_sent_again_and_the_rest_is_sent(
    bot_api: BotApi, waits: Waits
) -> None:
    bot_api.drop_after("sendMessage")
    async with bot_at(bot_api.base_url, bot_api.token, waits, read_seconds=0.2) as bot:
        delivery = await send(sender_of(bot, waits), Destination(CHAT), parts(3))
        assert [text[0] for text in bot_api.sent()] == ["1", "2", "3"]
        assert (delivery.error, delivery.requests, len(delivery.message_ids)) == (
            "ambiguous",
            3,
            2,
        )
        bot_api.delay("sendMessage", 0.4)
        delivery = await send(sender_of(bot, waits), Destination(CHAT), "late")
    assert delivery == Delivery(requests=1, error="ambiguous")


async def test_a_message_on_its_way_is_recorded_when_the_bot_stops(
    bot_api: BotApi, bot: ExtBot[Any], sessions: Sessions
) -> None:
    bot_api.delay("sendMessage", 0.3)
    messages = [
        OutboxRow(update_id=1, chat_id=CHAT, html=text) for text in ("Chinon", "Rioja")
    ]
    async with sessions.begin() as session:
        session.add_all(messages)
    sender = Sender(bot, Outbox(sessions), RateLimit((), (), ()))
    sending = asyncio.create_task(sender.deliver(messages))
    await eventually(
        lambda: bool(bot_api.calls_of("sendMessage")),
        seconds=30,
        otherwise=lambda: "not asked",
    )
    sending.cancel()
    await asyncio.wait([sending])
    async with sessions() as session:
        ids = [
            *await session.scalars(select(OutboxRow.message_id).order_by(OutboxRow.id))
        ]
    assert (bot_api.sent(), ids) == (
        ["Chinon"],
        [bot_api.messages()[0]["message_id"], None],
    )


async def test_an_unreachable_telegram_is_tried_with_growing_waits(
    waits: Waits,
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    request = TelegramRequests()
    bot = telegram_bot("1:token", url, requests=request)
    delivery = await send(sender_of(bot, waits), Destination(CHAT), "Chinon")
    await request.shutdown()
    assert delivery == Delivery(requests=MAX_TRIES, error="network")
    # Each wait is shortened at random, by a half at most.
    longest = [0.5, 1, 2, 4, 8, 16, 30]
    waited = zip(waits.seconds, longest, strict=True)
    assert all(most / 2 <= wait <= most for wait, most in waited)


async def test_answers_that_are_cut_off_cost_no_connection(bot_api: BotApi) -> None:
    """python-telegram-bot's own requests lose their pool this way."""
    dice = random.Random(1)
    few = Limits(max_connections=2, max_keepalive_connections=1, keepalive_expiry=0.01)
    request = TelegramRequests(few)
    bot = telegram_bot(bot_api.token, bot_api.base_url, requests=request)

    async def cut_off(chat: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(dice.uniform(0, 0.03)):
                await bot.send_message(chat, "cut off")

    for _ in range(10):
        await asyncio.gather(*(cut_off(chat) for chat in range(1, 20)))
    assert await bot.send_message(99, "here")
    await request.shutdown()


@pytest.mark.parametrize(
    ("status", "description", "error"),
    [
        (403, "Forbidden: bot was blocked by the user", "unreachable"),
        (400, "Bad Request: chat not found", "unreachable"),
        (400, "Bad Request: message is too long", "rejected"),
    ],
)
async def test_an_unreachable_chat_is_known_until_somebody_writes(
    bot_api: BotApi,
    sender: Sender,
    sessions: Sessions,
    status: int,
    description: str,
    error: str,
) -> None:
    async def is_unreachable() -> bool:
        async with sessions() as session:
            row = await session.get(ChatRow, CHAT)
            return row is not None and row.is_reachable is False

    sender = replace(sender, outbox=Outbox(sessions))
    bot_api.fail("sendMessage", status, description, chat_id=CHAT)
    refused = await send(sender, Destination(CHAT), parts(3))
    assert (refused.error, refused.requests) == (error, 1)
    assert await is_unreachable() == (error == "unreachable")
    await make(sessions, SetReachable(CHAT))
    assert not await is_unreachable()


async def test_a_message_that_waited_for_a_429_was_sent_unrecorded_after_the_stop(
    bot_api: BotApi, sender: Sender, waits: Waits
) -> None:
    waits.may_end.clear()
    bot_api.fail("sendMessage", 429, retry_after=9)
    sending = asyncio.create_task(send(sender, Destination(CHAT), "late"))
    await eventually(
        lambda: waits.seconds == [9], seconds=30, otherwise=lambda: str(waits)
    )
    sending.cancel()
    await asyncio.wait([sending], timeout=1)
    assert sending.cancelled()
    waits.may_end.set()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert [task for task in left if "request" in str(task.get_coro())] == []
    assert bot_api.sent() == []


class Lost(Hold):
    """The hold on a turn that another process has begun."""

    async def is_current(self) -> bool:
        return False


async def test_after_a_failover_a_message_went_twice(
    bot_api: BotApi, sender: Sender
) -> None:
    with pytest.raises(TurnTaken):
        await sender.deliver(
            await build_messages(Destination(CHAT), ["Chinon"]), Lost()
        )
    assert bot_api.sent() == []
