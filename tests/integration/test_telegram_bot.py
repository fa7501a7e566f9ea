"""The handlers against a Bot API server: what people see in their chats."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from agent.conversation import Role, StoredMessage
from agent.engine.messages import Message
from agent.engine.run import Run
from agent.i18n import say
from agent.turn import Reply
from bot.telegram.render import to_telegram_html, visible_text
from db.engine import Sessions
from db.repositories.people import MessageRepository
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.server import eventually
from tests.fakes import SpanRecord
from tests.running import RecordingTracer, at_rest, running

HELP = visible_text(to_telegram_html(say("help")))
GROUP = -500
BOT_NAME = "sommelier_test_bot"
PHOTO = [{"file_id": "1", "file_unique_id": "1", "width": 1, "height": 1}]


@dataclass
class FakeAnswerer:
    """Answers what `reply` says; keeps what it was asked, and the history it was given."""

    reply: Callable[[str], Awaitable[Reply]]
    asked: list[str] = field(default_factory=list)
    histories: list[list[Message]] = field(default_factory=list)

    async def answer(self, message: str, run: Run, attached: object = None) -> Reply:
        self.asked.append(message)
        self.histories.append(list(run.history))
        return await self.reply(message)


def answering(text: str | None = None, *wine_ids: str, seconds: float = 0) -> FakeAnswerer:
    async def reply(message: str) -> Reply:
        await asyncio.sleep(seconds)
        return Reply(text=f"About {message}" if text is None else text, wine_ids=wine_ids)

    return FakeAnswerer(reply)


class BrokenMessages:
    """A database that is down."""

    async def create(
        self,
        chat_id: int,
        role: Role,
        content: str,
        wine_ids: Sequence[str] = (),
        *,
        turn_id: int | None = None,
        thread_id: int = 0,
    ) -> None:
        raise OSError("the disk is gone")

    async def undo(self, chat_id: int, turn_id: int, *, thread_id: int = 0) -> bool:
        raise OSError("the disk is gone")

    async def recent(
        self, chat_id: int, limit: int = 20, *, thread_id: int = 0
    ) -> list[StoredMessage]:
        raise OSError("the disk is gone")

    async def forget(self, chat_id: int, *, thread_id: int = 0) -> int:
        raise OSError("the disk is gone")


@pytest.fixture
async def messages(tmp_path: Path) -> AsyncIterator[MessageRepository]:
    engine = await migrated_sqlite(tmp_path / "test.sqlite3")
    yield MessageRepository(Sessions(engine))
    await engine.dispose()


async def test_a_message_is_answered_as_html_while_typing_is_shown(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    async with running(bot_api, answering("Try **Chinon** & lamb", seconds=0.2), messages):
        bot_api.say("a red for lamb")
        assert await bot_api.wait_for_message() == ["Try Chinon & lamb"]
    (sent,) = bot_api.messages(CHAT)
    assert sent["entities"] == [{"type": "bold", "offset": 4, "length": 6}]
    methods = [call.method for call in bot_api.calls]
    assert methods.count("sendChatAction") == 1
    assert methods.index("sendChatAction") < methods.index("sendMessage")
    assert bot_api.calls_of("sendChatAction")[0].params["action"] == "typing"


@pytest.mark.parametrize(
    ("command", "beginning"),
    [("/start", "Hello! I am your sommelier."), ("/help", "What you can ask")],
)
async def test_start_and_help_say_what_this_is(
    bot_api: BotApi, messages: MessageRepository, command: str, beginning: str
) -> None:
    answerer = answering()
    async with running(bot_api, answerer, messages):
        bot_api.say(command)
        (text,) = await bot_api.wait_for_message()
    assert text.startswith(beginning)
    assert answerer.asked == []
    commands = [command["command"] for command in bot_api.menus["", ""]]
    menu = "ask quotes find stop new taste cellar language settings privacy export forget help"
    assert commands == menu.split()


async def test_a_long_answer_arrives_whole_in_several_messages_in_order(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    paragraphs = [f"Wine {number} is **good**. " + "🍷" * 700 for number in range(7)]
    async with running(bot_api, answering("\n\n".join(paragraphs)), messages):
        bot_api.say("everything you have")
        parts = await bot_api.wait_for_message(4)
    assert "\n\n".join(parts) == "\n\n".join(paragraphs).replace("**", "")
    assert len(parts) == 4


async def test_a_turn_is_remembered_with_its_wines_and_shown_to_the_next(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering("Chinon. " * 400, "chinon-2020")
    async with running(bot_api, answerer, messages):
        bot_api.say("a red")
        await bot_api.wait_for_message(1)
        bot_api.say("cheaper")
        await bot_api.wait_for_message(2)
    assert answerer.histories[0] == []
    question, answer = answerer.histories[1]
    assert question == {"role": "user", "content": "a red"}
    kept = ("Chinon. " * 250).strip()
    assert answer == {"role": "assistant", "content": f"{kept}\n\n[wine ids: chinon-2020]"}


async def test_new_forgets_the_conversation(bot_api: BotApi, messages: MessageRepository) -> None:
    answerer = answering("Chinon")
    async with running(bot_api, answerer, messages) as lanes:
        for number, text in enumerate(("/new", "a red", "/new", "a white"), 1):
            bot_api.say(text)
            seen = await bot_api.wait_for_message(number)
            await at_rest(lanes)
    assert seen == [say("nothing_to_forget"), "Chinon", say("forgotten"), "Chinon"]
    assert answerer.histories == [[], []]


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"text": " \n "}, say("empty")),
        ({"text": "?!"}, say("empty")),
        ({"text": "🍷🥩"}, say("sent_emoji")),
        ({"text": "https://example.com/wine?id=1"}, say("sent_link")),
        (
            {"photo": [{"file_id": "1", "file_unique_id": "1", "width": 1, "height": 1}]},
            say("text_only"),
        ),
        ({"location": {"longitude": 1.0, "latitude": 2.0}}, say("text_only")),
    ],
)
async def test_what_cannot_be_answered_gets_one_courteous_sentence(
    bot_api: BotApi, messages: MessageRepository, fields: dict[str, object], answer: str
) -> None:
    answerer = answering()
    async with running(bot_api, answerer, messages):
        bot_api.push({"message": message(**fields)})
        await bot_api.wait_for_message(1)
        bot_api.say("/help")
        seen = await bot_api.wait_for_message(2)
    assert len(seen) == 2
    assert seen[0] == answer
    assert answerer.asked == []


WORDLESS = {
    **dict.fromkeys(("sticker", "animation"), "sent_emoji"),
    **dict.fromkeys(("contact",), "sent_contact"),
    **dict.fromkeys(("poll", "checklist"), "sent_poll"),
    **dict.fromkeys(("dice", "game"), "sent_dice"),
    **dict.fromkeys(("audio", "live_photo", "story", "video", "video_note"), "text_only"),
    **dict.fromkeys(
        ("voice", "paid_media", "venue", "location", "invoice", "giveaway"), "text_only"
    ),
}
WITH_WORDS = {"text", "document", "photo", "reply", "reply elsewhere", "forward", "with buttons"}
WITH_WORDS |= {"of a business", "of a chat", "of a guest", "of a topic"}


async def test_what_is_no_text_gets_a_sentence_and_what_nobody_said_none(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    kinds = json.loads((Path(__file__).parents[1] / "message_kinds.json").read_text("utf-8"))
    chats = {kind: 9000 + number for number, kind in enumerate(kinds) if kind not in WITH_WORDS}
    async with running(bot_api, answering(), messages):
        for kind, chat in chats.items():
            private = {"id": chat, "type": "private", "first_name": "Ada"}
            whose = {"chat": private, "from": private | {"is_bot": False}}
            bot_api.push({"message": message(**whose, **kinds[kind])})
            bot_api.push({"message": message(**whose, text="the end")})
        await bot_api.wait_for_message(len(chats) + len(WORDLESS))
    said = {kind: bot_api.sent(chat)[:-1] for kind, chat in chats.items()}
    wanted = {kind: [say(WORDLESS[kind])] if kind in WORDLESS else [] for kind in chats}
    assert said == wanted


async def test_an_unknown_command_is_named_as_such(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering()
    async with running(bot_api, answerer, messages):
        bot_api.say("/unknown")
        assert await bot_api.wait_for_message() == [say("unknown_command")]
    assert answerer.asked == []


async def test_an_album_gets_one_sentence(bot_api: BotApi, messages: MessageRepository) -> None:
    for _ in range(3):
        bot_api.say("", photo=PHOTO, media_group_id="album")
    async with running(bot_api, answering(), messages, burst=1):
        bot_api.say("/unknown")
        assert await bot_api.wait_for_message(2) == [say("text_only"), say("unknown_command")]


async def test_an_edited_message_that_was_never_seen_gets_a_sentence(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering()
    async with running(bot_api, answerer, messages):
        bot_api.push({"edited_message": message(text="a white after all", edit_date=1)})
        assert await bot_api.wait_for_message() == [say("edited")]
    assert answerer.asked == []


async def test_an_edit_of_the_last_message_runs_its_turn_again(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering()
    async with running(bot_api, answerer, messages):
        bot_api.say("a red", message_id=77)
        await bot_api.wait_for_message()
        bot_api.push(
            {"edited_message": message(text="a white after all", edit_date=1, message_id=77)}
        )
        assert await bot_api.wait_for_message(2) == ["About a red", "About a white after all"]
        await eventually(
            lambda: answerer.histories == [[], []], seconds=30, otherwise=lambda: "history"
        )
    kept = [each.content for each in await messages.recent(CHAT)]
    assert kept == ["a white after all", "About a white after all"]


async def test_an_edit_of_a_message_that_still_waits_changes_its_words(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    bot_api.say("a red", message_id=77)
    bot_api.push({"edited_message": message(text="a white", edit_date=1, message_id=77)})
    answerer = answering()
    async with running(bot_api, answerer, messages, burst=2):
        assert await bot_api.wait_for_message() == ["About a white"]
        bot_api.say("/new")
        await bot_api.wait_for_message(2)
    assert answerer.asked == ["a white"]


async def test_a_burst_of_messages_is_one_turn(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering()
    async with running(bot_api, answerer, messages, burst=2):
        for text in ("a red", "for lamb", "under 20"):
            bot_api.say(text)
        bot_api.say("/unknown")
        seen = await bot_api.wait_for_message(2)
    assert seen == ["About a red\nfor lamb\nunder 20", say("unknown_command")]
    assert answerer.asked == ["a red\nfor lamb\nunder 20"]


async def test_a_message_of_4096_characters_is_answered(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering("Chinon")
    async with running(bot_api, answerer, messages):
        bot_api.say("x" * 4096)
        await bot_api.wait_for_message()
    assert answerer.asked == ["x" * 4096]


async def test_in_a_group_a_second_message_does_not_make_the_bot_overhear_the_first(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering()
    bot_api.say(f"@{BOT_NAME} a red 🍷", GROUP, entities=[mention(0)], message_id=41)
    bot_api.say("for lamb, please", GROUP, message_id=42)
    async with running(bot_api, answerer, messages, burst=0.3):
        await bot_api.wait_for_message(1)
    assert answerer.asked == ["a red 🍷\nfor lamb, please"]


async def test_in_a_group_only_those_who_turn_to_the_bot_are_answered(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    answerer = answering()
    own = {**message(text="earlier"), "from": {"id": 123456789, "is_bot": True, "first_name": "S"}}
    async with running(bot_api, answerer, messages) as lanes:
        bot_api.say("what a lovely evening", GROUP)
        bot_api.say("/unknown", GROUP)
        bot_api.say("/help@another_bot", GROUP)
        bot_api.say(f"@{BOT_NAME} a red", GROUP, entities=[mention(0)], message_id=41)
        bot_api.say("cheaper", GROUP, reply_to_message=own, message_id=42)
        bot_api.say(f"@{BOT_NAME}", GROUP, entities=[mention(0)], message_id=43)
        bot_api.say(f"/unknown@{BOT_NAME}", GROUP, message_id=44)
        await bot_api.wait_for_message(4)
        await at_rest(lanes)
        bot_api.say(f"/new@{BOT_NAME}", GROUP, message_id=45)
        seen = await bot_api.wait_for_message(5)
    assert answerer.asked == ["a red", "cheaper"]
    assert seen == [
        "About a red",
        "About cheaper",
        say("empty"),
        say("unknown_command"),
        say("forgotten"),
    ]
    replies = [call.params["reply_parameters"] for call in bot_api.calls_of("sendMessage")]
    assert [reply["message_id"] for reply in replies] == [41, 42, 43, 44, 45]


async def test_an_answerer_that_raises_ends_in_a_sentence(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    async def fail(_: str) -> Reply:
        raise RuntimeError("a bug")

    tracer = RecordingTracer()
    async with running(bot_api, FakeAnswerer(fail), messages, tracer):
        bot_api.say("a red")
        assert await bot_api.wait_for_message() == [say("apology")]
    (turn,) = tracer.turns
    assert turn.level == "ERROR"
    assert (turn.metadata["outcome"], turn.metadata["error_types"]) == ("failed", "RuntimeError")


async def test_a_blank_answer_becomes_a_sentence(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    async with running(bot_api, answering(" \n"), messages):
        bot_api.say("a red")
        assert await bot_api.wait_for_message() == [say("apology")]


async def test_without_a_database_people_are_still_answered(
    bot_api: BotApi, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(bot_api, answering("Chinon"), cast("MessageRepository", BrokenMessages())):
        bot_api.say("a red")
        await bot_api.wait_for_message()
        update_id = bot_api.say("/new")
        assert await bot_api.wait_for_message(2) == ["Chinon", say("set_aside")]
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    said = [line.partition("\n")[0].partition(" at ")[0] for line in errors]
    assert sorted(said) == [
        f"The history of chat {CHAT} could not be read; answering without: OSError",
        *(f"The turn of update {update_id} failed, try {number}: OSError" for number in (1, 2, 3)),
        f"Update {update_id} is set aside: OSError. `sommelier updates list` shows it, "
        f"`sommelier updates retry {update_id}` has it tried again.",
    ]


async def test_telegram_asking_to_wait_is_obeyed(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    bot_api.fail("sendMessage", 429, retry_after=1)
    async with running(bot_api, answering("Chinon"), messages):
        bot_api.say("a red")
        assert await bot_api.wait_for_message() == ["Chinon"]
    first, second = bot_api.calls_of("sendMessage")
    assert second.time - first.time >= 1


async def test_html_that_telegram_rejects_arrives_as_plain_text(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    bot_api.fail("sendMessage", 400, "Bad Request: can't parse entities: unsupported start tag")
    async with running(bot_api, answering("**Chinon** & <lamb>"), messages):
        bot_api.say("a red")
        assert await bot_api.wait_for_message() == ["Chinon & <lamb>"]
    assert "entities" not in bot_api.messages(CHAT)[0]


async def test_a_passing_server_error_is_tried_again(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    bot_api.fail("sendMessage", 502, "Bad Gateway")
    tracer = RecordingTracer()
    async with running(bot_api, answering("Chinon"), messages, tracer):
        bot_api.say("a red")
        (turn,) = [await turn_ended(tracer)]
    assert bot_api.sent() == ["Chinon"]
    (send,) = turn.children
    assert (send.name, send.kind, send.level) == ("telegram.send", "span", "DEFAULT")
    assert send.metadata == {
        "message_id": bot_api.messages()[0]["message_id"],
        "tries": 2,
        "error": None,
    }
    assert tracer.sessions == [(f"chat-{CHAT}", f"user-{CHAT}")]


async def test_a_message_that_may_have_arrived_is_not_sent_twice(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    bot_api.drop_after("sendMessage")
    async with running(bot_api, answering(), messages):
        bot_api.say("a red")
        bot_api.say("a white")
        assert await bot_api.wait_for_message(2) == ["About a red", "About a white"]
    assert len(bot_api.calls_of("sendMessage")) == 2


async def test_a_person_who_blocked_the_bot_is_logged_once_and_not_asked_again(
    bot_api: BotApi, messages: MessageRepository, caplog: pytest.LogCaptureFixture
) -> None:
    bot_api.fail("sendMessage", 403, "Forbidden: bot was blocked by the user", chat_id=CHAT)
    async with running(bot_api, answering("One.\n\n" + "Two " * 1500), messages):
        bot_api.say("a red")
        bot_api.say("/help", chat_id=2002)
        await bot_api.wait_for_message(chat_id=2002)
        await eventually(
            lambda: any("unreachable" in record.getMessage() for record in caplog.records),
            seconds=30,
            otherwise=lambda: caplog.text,
        )
    assert len([call for call in bot_api.calls_of("sendMessage") if call.status == 403]) == 1
    assert caplog.text.count(f"chat {CHAT}") == 1
    assert bot_api.sent(CHAT) == []


async def test_an_answer_that_telegram_refuses_ends_in_a_sentence(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    bot_api.fail("sendMessage", 400, "Bad Request: message is too long")
    async with running(bot_api, answering("Chinon"), messages):
        bot_api.say("a red")
        assert await bot_api.wait_for_message() == [say("apology")]


async def test_one_chat_is_answered_in_order_even_if_later_answers_are_quicker(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    active = most_active = 0

    async def reply(text: str) -> Reply:
        nonlocal active, most_active
        active += 1
        most_active = max(most_active, active)
        await asyncio.sleep(0.05 * (5 - int(text)))
        active -= 1
        return Reply(text=text)

    async with running(bot_api, FakeAnswerer(reply), messages):
        for number in range(1, 5):
            bot_api.say(str(number))
        assert await bot_api.wait_for_message(4) == ["1", "2", "3", "4"]
    assert most_active == 1


async def test_a_slow_chat_and_its_queue_do_not_hold_up_the_others(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    release = asyncio.Event()

    async def reply(text: str) -> Reply:
        if text == "slow":
            await release.wait()
        return Reply(text=f"{text}!")

    async with running(bot_api, FakeAnswerer(reply), messages):
        bot_api.say("slow", chat_id=1)
        for _ in range(20):
            bot_api.say("waiting", chat_id=1)
        bot_api.say("quick", chat_id=2)
        assert await bot_api.wait_for_message(chat_id=2) == ["quick!"]
        assert bot_api.sent(1) == []
        release.set()
        seen = await bot_api.wait_for_message(21, chat_id=1)
    assert seen == ["slow!"] + ["waiting!"] * 20


async def test_stopping_lets_a_turn_finish(bot_api: BotApi, messages: MessageRepository) -> None:
    answerer = answering("Chinon", seconds=0.3)
    async with running(bot_api, answerer, messages):
        bot_api.say("a red")
        await asked(answerer, 1)
    assert bot_api.sent() == ["Chinon"]
    assert bot_api.pending == 0


async def test_telegram_unreachable_at_the_start_is_waited_for(
    bot_api: BotApi, messages: MessageRepository, caplog: pytest.LogCaptureFixture
) -> None:
    bot_api.fail("getMe", 502, "Bad Gateway")
    async with running(bot_api, answering("Chinon"), messages):
        bot_api.say("a red")
        assert await bot_api.wait_for_message() == ["Chinon"]
    assert "Reaching Telegram failed (NetworkError), next try in" in caplog.text


async def test_another_poller_is_named_and_polling_goes_on(
    bot_api: BotApi, messages: MessageRepository, caplog: pytest.LogCaptureFixture
) -> None:
    bot_api.fail("getUpdates", 409, "Conflict: terminated by other getUpdates request")
    async with running(bot_api, answering("Chinon"), messages):
        bot_api.say("a red")
        assert await bot_api.wait_for_message() == ["Chinon"]
    assert "409 Conflict: another process is polling with this bot's token" in caplog.text


def message(**fields: object) -> dict[str, object]:
    return {
        "message_id": 77,
        "date": 1,
        "chat": {"id": CHAT, "type": "private", "first_name": "Ada"},
        "from": {"id": CHAT, "is_bot": False, "first_name": "Ada"},
        **fields,
    }


def mention(offset: int) -> dict[str, object]:
    return {"type": "mention", "offset": offset, "length": len(BOT_NAME) + 1}


async def asked(answerer: FakeAnswerer, times: int) -> None:
    await eventually(
        lambda: len(answerer.asked) >= times, seconds=30, otherwise=lambda: str(answerer.asked)
    )


async def turn_ended(tracer: RecordingTracer) -> SpanRecord:
    await eventually(
        lambda: bool(tracer.turns) and tracer.turns[0].closed,
        seconds=30,
        otherwise=lambda: str(tracer.turns),
    )
    return tracer.turns[0]
