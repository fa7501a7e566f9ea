"""What Telegram delivers: whatever it holds, those who write before and after it are answered."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from bot.telegram.connection import TelegramRequests, TokenRejected, fetch_updates
from db.engine import Sessions
from db.repositories.inbox import Inbox, Payload
from db.repositories.people import MessageRepository
from tests.doubles.bot_api import BotApi
from tests.doubles.server import eventually
from tests.integration.test_telegram_bot import answering
from tests.running import running

KINDS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "message_kinds.json").read_text("utf-8")
)
"""What a message of each kind that the Bot API 10 documents holds, beside who, where and when."""

WRONG: tuple[object, ...] = (
    "Château Margaux",
    7,
    -1.5,
    True,
    None,
    [],
    {},
    [None],
    2**70,
)
SECRET = "Tante Rosalind"
Answer = tuple[int, bytes]


def base(chat: int) -> dict[str, Any]:
    person = {"id": chat, "is_bot": False, "first_name": SECRET}
    where = {"id": chat, "type": "private", "first_name": SECRET}
    return {"message_id": 5, "date": 1_700_000_000, "chat": where, "from": person}


def variants(kind: str, chat: int) -> Iterator[dict[str, Any]]:
    """A message of a kind: whole, with a field more, and with each field missing or wrong."""
    whole = base(chat) | KINDS[kind]
    yield whole
    yield whole | {"of_tomorrow": {"id": SECRET}}
    for number, path in enumerate(paths(whole)):
        if number % 2:
            yield changed(whole, path, lambda into, name: into.pop(name))
        else:
            wrong = WRONG[number // 2 % len(WRONG)]
            yield changed(whole, path, setter(wrong))


def setter(value: Any) -> Callable[[Any, Any], None]:
    """Return a function that puts a value into what is given, by its name."""
    return lambda into, name: into.__setitem__(name, value)


def paths(found: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each field stands, those inside others too."""
    items = found.items() if isinstance(found, dict) else enumerate(found)
    for name, value in items:
        if isinstance(found, dict):
            yield (*before, name)
        if isinstance(value, dict | list):
            yield from paths(value, (*before, name))


def changed(
    whole: dict[str, Any], path: tuple[Any, ...], change: Callable[[Any, Any], object]
) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(whole))
    into: Any = copy
    for name in path[:-1]:
        into = into[name]
    change(into, path[-1])
    return copy


async def test_no_message_of_any_kind_keeps_others_from_being_answered(
    bot_api: BotApi, sqlite_sessions: Sessions, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    messages = MessageRepository(sqlite_sessions)
    chats = {kind: 2000 + 1000 * number for number, kind in enumerate(KINDS)}
    async with running(bot_api, answering(), messages, UPDATE_MAX_TRIES="1"):
        for kind, chat in chats.items():
            bot_api.say("before", chat)
            for number, message in enumerate(variants(kind, chat + 1)):
                person = message.get("chat")
                if isinstance(person, dict) and person.get("id") == chat + 1:
                    person["id"] += number
                bot_api.push({"message": message})
        for chat in chats.values():
            await bot_api.wait_for_message(1, chat, timeout=120)
            bot_api.say("behind", chat)
        for chat in chats.values():
            await eventually(
                lambda chat=chat: " ".join(bot_api.sent(chat)).endswith("behind"),  # type: ignore[misc]
                seconds=120,
                otherwise=lambda chat=chat: str(bot_api.sent(chat)),  # type: ignore[misc]
            )
        await eventually(
            lambda: not bot_api.pending, seconds=60, otherwise=lambda: "not accepted"
        )
    assert SECRET not in caplog.text


DELETED_PIN = KINDS["pinned_message, deleted"]
NEWER_POLL = {"poll": {"id": "1", "question": SECRET, "options": []}}


async def test_an_unreadable_update_is_set_aside_alone_and_named_without_its_words(
    bot_api: BotApi, sqlite_sessions: Sessions, caplog: pytest.LogCaptureFixture
) -> None:
    messages = MessageRepository(sqlite_sessions)
    async with running(bot_api, answering(), messages, JOIN_SECONDS="0.3"):
        bot_api.say("a red wine", 7)
        bot_api.push({"message": base(7) | DELETED_PIN})
        bot_api.push({"message": {}})
        unread = bot_api.push(
            {"message": base(7) | NEWER_POLL | {"media_group_id": "1"}}
        )
        bot_api.say("for a stew", 7)
        told = await bot_api.wait_for_message(2, 7)
    nothing, aside = await Inbox(messages.sessions).list_set_aside()
    assert (aside.update_id, aside.error) == (unread, "the library cannot read it")
    assert (nothing.update_id, nothing.error) == (
        unread - 1,
        "the library cannot read it",
    )
    assert told[0] == "About a red wine\nfor a stew"
    assert "couldn't process your message" in told[1]
    assert SECRET not in caplog.text


class Telegram(TelegramRequests):
    """Answers getUpdates with what is laid down, then with 401; keeps what was asked and slept."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__()
        self.answers = list(answers)
        self.offsets: list[int] = []
        self.slept: list[float] = []
        self.accepted: list[list[Payload]] = []
        self.refusals = 0

    async def do_request(self, url: str, *_: Any, **__: Any) -> Answer:
        self.offsets.append(int(parse_qs(urlsplit(url).query)["offset"][0]))
        return self.answers.pop(0) if self.answers else (401, b'{"ok": false}')

    async def accept(self, updates: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            raise OSError(SECRET)
        self.accepted.append(list(updates))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def polled(self) -> None:
        with pytest.raises(TokenRejected):
            await fetch_updates(
                self, "http://telegram/getUpdates", self.accept, self.sleep
            )


def given(*ids: int) -> Answer:
    updates = {"ok": True, "result": [{"update_id": number} for number in ids]}
    return 200, json.dumps(updates).encode()


async def test_a_whole_answer_is_accepted_at_once_and_only_then_acknowledged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    telegram = Telegram(given(5, 6), given(5, 6), given(), given(7))
    telegram.refusals = 1
    await telegram.polled()
    assert telegram.accepted == [
        [{"update_id": 5}, {"update_id": 6}],
        [{"update_id": 7}],
    ]
    assert telegram.offsets == [0, 0, 7, 7, 8]
    assert "Fetching updates failed (OSError)" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((502, SECRET.encode()), "failed (NetworkError)"),
        ((200, SECRET.encode()), "failed (TelegramError)"),
        ((409, b'{"ok": false}'), "409 Conflict: another process is polling"),
        ((429, b'{"parameters": {"retry_after": 9}}'), "next try in 9.0 s"),
    ],
)
async def test_an_answer_of_another_kind_is_named_and_asked_again(
    answer: Answer, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    telegram = Telegram(answer, given(5))
    await telegram.polled()
    assert telegram.accepted == [[{"update_id": 5}]]
    assert len(telegram.slept) == 1
    assert said in caplog.text
    assert SECRET not in caplog.text
