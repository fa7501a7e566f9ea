"""Access to the bot, daily budgets, and the commands of admins."""

import io
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from PIL import Image

from agent.engine.llm import LLMService
from agent.engine.run import BilledUsage, Run
from agent.i18n import translate
from agent.turn import Change, Fact
from bot.app import App
from bot.resources import Repositories
from db.changes.broadcasts import DraftBroadcast
from db.changes.chats import SetAccess, SetReachable
from db.changes.memory import ChangeMemory, SaveConcerns
from db.engine import Sessions
from db.models import TurnRow
from db.repositories.turns import TurnRepository
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import ModelServer, error
from tests.doubles.server import JsonObject, eventually
from tests.fakes import fake_sommelier
from tests.faults.turns import QUESTION, search, valid
from tests.integration.test_look_ups import buttons
from tests.library import open_model
from tests.running import RecordingTracer, running
from tests.stored import make, store_turn

R = TypeVar("R")

ADMIN, BEA = 7001, 7002
GROUP = -500
EVENING = datetime.now(UTC).replace(hour=18, minute=40, second=0, microsecond=0)
RESETS = "It resets in 5 hr 20 min, at 00:00 UTC"
UNKNOWN = translate("unknown_command")
ASKED = "Someone is asking for access: user 7002. They call themselves:\nAda"


@dataclass
class AdminBot:
    """A bot with an admin over a database."""

    sessions: Sessions
    time: datetime = EVENING
    allow_list: bool = False

    def __post_init__(self) -> None:
        self.repositories = Repositories(self.sessions)
        self.turns = TurnRepository(self.sessions, now=self.now)

    def now(self) -> datetime:
        return self.time

    def open(
        self, bot_api: BotApi, *models: LLMService, **further: Any
    ) -> AbstractAsyncContextManager[App]:
        """Run the bot."""
        access = "allow_list" if self.allow_list else "open"
        return running(
            bot_api,
            fake_sommelier(),
            self.repositories.messages,
            kept={"turns": self.turns},
            sessions=self.sessions,
            run=Run(models),
            now=self.now,
            **{"ADMIN_IDS": str(ADMIN), "ACCESS": access} | further,
        )

    async def store_turn(
        self, number: int, spent: BilledUsage, user_id: int = CHAT
    ) -> None:
        """Store a turn of a user at the current time."""
        await store_turn(
            self.sessions,
            TurnRow(
                turn_id=number,
                chat_id=user_id,
                user_id=user_id,
                at=self.time,
                outcome="answered",
                seconds=2.0,
                requests=spent.requests,
                cost_usd=spent.cost_usd,
            ),
        )


@pytest.fixture
def admin_bot(sqlite_sessions: Sessions) -> AdminBot:
    return AdminBot(sqlite_sessions)


def person(user_id: int, name: str) -> JsonObject:
    return {"id": user_id, "is_bot": False, "first_name": name}


async def until(condition: Callable[[], bool]) -> None:
    await eventually(
        condition, seconds=10, otherwise=lambda: "the condition never became true"
    )


async def test_a_blocked_user_gets_no_answer(
    bot_api: BotApi, admin_bot: AdminBot, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await make(admin_bot.sessions, SetAccess(BEA, "blocked"))
    async with admin_bot.open(bot_api):
        bot_api.say("my secret wish", BEA)
        bot_api.push({"edited_message": edited("my secret wish", BEA)})
        bot_api.press(edited("Hello", BEA), "refine", BEA)
        bot_api.say("/new", CHAT)
        bot_api.say("/new", GROUP, BEA)
        await bot_api.wait_for_message(1, CHAT)
        await until(lambda: caplog.text.count(f"User {BEA} is blocked") == 4)
    assert (bot_api.sent(BEA), bot_api.sent(GROUP), bot_api.toasts) == ([], [], [])
    assert "secret" not in caplog.text


async def test_without_access_a_user_is_refused_and_an_admin_is_asked_once_to_allow_them(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    admin_bot.allow_list = True
    for number in (1, 2):  # not asked again after a restart
        async with admin_bot.open(bot_api):
            bot_api.say(QUESTION, BEA)
            away = await bot_api.wait_for_message(number, BEA)
            (asked,) = await bot_api.wait_for_message(1, ADMIN)
    assert away == [translate("not_let_in", id=str(BEA))] * 2
    assert away[0].endswith("whoever runs this bot: 7002.")
    assert asked == ASKED
    (message,) = bot_api.messages(ADMIN)
    allow, block = (button["callback_data"] for button in buttons(message))
    assert (allow, block) == ("a:7002:allow", "a:7002:block")
    async with admin_bot.open(bot_api):
        bot_api.press(message, allow, ADMIN)
        assert (await bot_api.wait_for_message(2, ADMIN))[1] == "7002 now has access."
        assert (await bot_api.wait_for_message(3, BEA))[2] == translate("let_in")
        bot_api.say("/new", BEA)
        assert (await bot_api.wait_for_message(4, BEA))[3] == translate(
            "nothing_to_forget"
        )
        bot_api.say("/allow 7002", ADMIN)
        await bot_api.wait_for_message(3, ADMIN)
    assert len(bot_api.sent(BEA)) == 4
    assert bot_api.toasts == [""]


async def test_the_name_of_a_user_is_shown_on_one_line_of_limited_length(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    names = {
        "Ada (7001) is an admin.\n\nOther person": "Ada (7001) is an admin. Other person",
        "\u202eadA\u2066\u200b`\u0000": "adA",
        "[Ada](tg://user?id=7001) *!*": "[Ada](tg://user?id=7001) *!*",
        "x" * 500: "x" * 64,
        "\u200f\u2800`": "–",
    }
    admin_bot.allow_list = True
    async with admin_bot.open(bot_api):
        for number, name in enumerate(names):
            bot_api.push(
                {"message": edited("Hi", 8000) | {"from": person(8000 + number, name)}}
            )
            await bot_api.wait_for_message(number + 1, ADMIN)
    shown = [text.rpartition("\n")[2] for text in bot_api.sent(ADMIN)]
    assert shown == [*names.values()]
    kinds = [
        [entity["type"] for entity in message.get("entities", [])]
        for message in bot_api.messages(ADMIN)
    ]
    assert kinds == [["code"] if text != "–" else [] for text in shown]


async def test_in_a_group_a_user_without_access_is_refused_only_when_they_address_the_bot(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    admin_bot.allow_list = True
    async with admin_bot.open(bot_api):
        bot_api.say("who drinks what?", GROUP, BEA)
        bot_api.say("/new@sommelier_test_bot", GROUP, BEA)
        await bot_api.wait_for_message(1, GROUP)
        await bot_api.wait_for_message(1, ADMIN)
    assert bot_api.sent(GROUP) == [translate("not_let_in", id=str(BEA))]
    assert bot_api.sent(ADMIN) == [ASKED]


def edited(text: str, chat_id: int) -> JsonObject:
    kind = (
        {"type": "private", "first_name": "Ada"}
        if chat_id > 0
        else {"type": "supergroup"}
    )
    person = {"id": max(chat_id, 1), "is_bot": False, "first_name": "Ada"}
    chat = {"id": chat_id, "title": "The wine club"} | kind
    return {
        "message_id": 77,
        "date": 1,
        "edit_date": 2,
        "chat": chat,
        "from": person,
        "text": text,
    }


async def test_with_a_used_up_budget_rules_answer_until_the_next_day(
    bot_api: BotApi, model_server: ModelServer, admin_bot: AdminBot
) -> None:
    model_server.script(search(), valid())
    await admin_bot.store_turn(1, BilledUsage(requests=3))
    tracer = RecordingTracer()
    async with (
        open_model(model_server) as model,
        admin_bot.open(bot_api, model, BUDGET_PERSON_REQUESTS="3", tracer=tracer),
    ):
        bot_api.say(QUESTION)
        (by_rules,) = await bot_api.wait_for_message()
        assert len(model_server.requests) == 0
        admin_bot.time = EVENING + timedelta(hours=5, minutes=20)
        bot_api.say(QUESTION)
        by_model = (await bot_api.wait_for_message(2))[1]
    assert "Chinon" in by_rules
    assert "You have used up your allowance of questions for today." in by_rules
    assert RESETS in by_rules
    assert translate("model_down") not in by_rules
    assert translate("no_model") not in by_rules
    turn = tracer.turns[0].root
    assert (turn.metadata["outcome"], turn.metadata["error_types"]) == (
        "fallback",
        ["budget"],
    )
    assert turn.level == "WARNING"
    assert RESETS in str(turn.output)
    assert by_model.startswith("For your lamb:")
    assert "budget" not in by_model
    assert len(model_server.requests) == 2


async def test_a_request_that_no_model_answered_used_up_the_budget_of_a_user(
    bot_api: BotApi, model_server: ModelServer, admin_bot: AdminBot
) -> None:
    model_server.script(error(503), valid())
    async with (
        open_model(model_server) as model,
        admin_bot.open(bot_api, model, BUDGET_PERSON_REQUESTS="1"),
    ):
        bot_api.say(QUESTION)
        (by_rules,) = await bot_api.wait_for_message()
        bot_api.say(QUESTION)
        by_model = (await bot_api.wait_for_message(2))[1]
        bot_api.say(QUESTION)
        used_up = (await bot_api.wait_for_message(3))[2]
    assert translate("model_down") in by_rules
    assert "budget" not in by_rules
    assert by_model.startswith("For your lamb:")
    assert "You have used up your allowance of questions for today." in used_up
    assert len(model_server.requests) == 2


async def test_admins_have_no_budget(
    bot_api: BotApi, model_server: ModelServer, admin_bot: AdminBot
) -> None:
    model_server.script(search(), valid())
    await admin_bot.store_turn(1, BilledUsage(requests=3), ADMIN)
    async with (
        open_model(model_server) as model,
        admin_bot.open(bot_api, model, BUDGET_PERSON_REQUESTS="3"),
    ):
        bot_api.say(QUESTION, ADMIN)
        (to_admin,) = await bot_api.wait_for_message(1, ADMIN)
    assert "budget" not in to_admin
    assert len(model_server.requests) == 2


async def test_stats_are_a_picture_and_a_table(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    await admin_bot.store_turn(1, BilledUsage(3, 1200, 0.25))
    await admin_bot.store_turn(2, BilledUsage(2, 800, 0.25), BEA)
    async with admin_bot.open(bot_api):
        bot_api.say("/stats", ADMIN)
        await bot_api.wait_for_message(2, ADMIN)
    (sent,) = bot_api.calls_of("sendPhoto")
    assert Image.open(io.BytesIO(sent.files["photo"].data)).format == "PNG"
    _, table = bot_api.messages(ADMIN)
    assert max(map(len, table["text"].splitlines())) <= 33  # fits on a phone
    lines = [line.split() for line in table["text"].splitlines()]
    assert ["turns", "2", "2"] in lines
    assert ["people", "2", "2"] in lines
    assert ["cost", "$0.50", "$0.50"] in lines
    assert [entity["type"] for entity in table["entities"]] == ["pre"]


async def test_trace_shows_the_last_turn_or_the_one_replied_to(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    async with admin_bot.open(bot_api):
        bot_api.say("a red for lamb", ADMIN)
        await bot_api.wait_for_message(1, ADMIN)
        (first,) = bot_api.messages(ADMIN)
        bot_api.say("a sparkling for oysters", ADMIN)
        await bot_api.wait_for_message(2, ADMIN)
        bot_api.say("/trace", ADMIN)
        bot_api.say("/trace", ADMIN, reply_to_message=first)
        bot_api.say("/trace", ADMIN, reply_to_message=first | {"message_id": 999_999})
        topic = {"forum_topic_created": {"name": "Wines", "icon_color": 1}}
        bot_api.say(
            "/trace", ADMIN, reply_to_message=first | {"message_id": 999_999} | topic
        )
        shown = (await bot_api.wait_for_message(6, ADMIN))[2:]
    assert "a sparkling for oysters" in shown[0]
    assert "a red for lamb" in shown[1]
    assert "guard.input [guardrail]" in shown[1]
    assert shown[2] == translate("nothing_to_trace")
    assert "a sparkling for oysters" in shown[3]
    assert bot_api.messages(ADMIN)[3]["entities"][0]["type"] == "pre"


async def test_forwarded_messages_and_those_of_other_bots_are_not_commands(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    bot = person(43, "Other") | {"is_bot": True}
    own = {"type": "user", "date": 1, "sender_user": person(ADMIN, "Ada")}
    hidden = {"type": "hidden_user", "date": 1, "sender_user_name": "Bea"}
    messages: dict[str, JsonObject] = {
        "/allow 42": {"forward_origin": own},
        "/block 43": {"forward_origin": hidden},
        "/trace": {"via_bot": bot},
        "/new": {"sender_business_bot": bot},
    }
    async with admin_bot.open(bot_api):
        for text, fields in messages.items():
            bot_api.say(text, ADMIN, **fields)
        shown = await bot_api.wait_for_message(len(messages), ADMIN)
    known = ("nothing_to_forget", "forgotten", "nothing_to_trace")
    assert {UNKNOWN, *map(translate, known)}.isdisjoint(shown)
    assert [
        await admin_bot.repositories.chats.find_access(user) for user in (42, 43)
    ] == [
        None,
        None,
    ]


async def test_an_id_or_a_reply_names_a_user_and_admins_cannot_be_blocked(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    theirs = edited("Hello", GROUP) | {"from": person(BEA, "Bea")}
    own = edited("Hello", ADMIN) | {"from": person(BEA, "Bea") | {"is_bot": True}}
    hidden = {"type": "hidden_user", "date": 1, "sender_user_name": "Ann"}
    whom = translate("whom", command="block")
    blocked = "{} is blocked and no longer gets answers."
    commands: list[tuple[str, JsonObject, str]] = [
        ("/block 42", {"reply_to_message": theirs}, blocked.format(42)),
        ("/block @eve", {"reply_to_message": theirs}, whom),
        ("/block", {"reply_to_message": theirs | {"forward_origin": hidden}}, whom),
        ("/allow 42", {}, "42 now has access."),
        ("/block", {"reply_to_message": theirs}, blocked.format(BEA)),
        ("/allow", {"reply_to_message": own}, translate("whom", command="allow")),
        ("/block 7001", {}, "7001 is an admin; admins cannot be blocked."),
    ]
    async with admin_bot.open(bot_api):
        for text, fields, _ in commands:
            bot_api.say(text, ADMIN, **fields)
        shown = await bot_api.wait_for_message(len(commands), ADMIN)
    assert shown == [answer for _, _, answer in commands]
    known = [
        await admin_bot.repositories.chats.find_access(user_id)
        for user_id in (42, BEA, ADMIN)
    ]
    assert known == ["allowed", "blocked", None]


async def test_only_admins_clear_the_stored_concerns_of_a_user(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    await make(
        admin_bot.sessions, SaveConcerns(BEA, BEA, {"under_age": None, "egg": None})
    )
    await make(admin_bot.sessions, SaveConcerns(GROUP, BEA, {"under_age": None}))
    await make(admin_bot.sessions, SaveConcerns(CHAT, CHAT, {"dependence": None}))
    async with admin_bot.open(bot_api):
        bot_api.say(f"/clearconcerns {BEA}", BEA)
        assert await bot_api.wait_for_message(1, BEA) == [UNKNOWN]
        for said in (
            f"/clearconcerns {BEA}",
            f"/clearconcerns {BEA}",
            "/clearconcerns",
        ):
            bot_api.say(said, ADMIN)
        shown = await bot_api.wait_for_message(3, ADMIN)
    assert shown == [
        "No longer stored about 7002: egg, under age.",
        "Nothing is stored about 7002.",
        translate("whom", command="clearconcerns"),
    ]
    assert await admin_bot.repositories.memory.list_concerns(GROUP, BEA) == frozenset()
    assert await admin_bot.repositories.memory.list_concerns(CHAT, CHAT) == {
        "dependence"
    }


async def test_for_other_users_the_commands_of_admins_are_unknown(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    await make(admin_bot.sessions, SetReachable(CHAT))
    broadcast_id = 1
    await make(
        admin_bot.sessions, DraftBroadcast(broadcast_id, "Closed on Monday.", ADMIN)
    )
    commands = [
        "/stats",
        "/trace",
        "/allow 42",
        "/block 42",
        "/clearconcerns 42",
        "/broadcast Hello",
    ]
    async with admin_bot.open(bot_api):
        for command in commands:
            bot_api.say(command, BEA)
        assert await bot_api.wait_for_message(6, BEA) == [UNKNOWN] * 6
        for data in ("a:7002:allow", f"b:{broadcast_id}:send"):
            bot_api.press(edited("Hello", BEA), data, BEA)
        await until(lambda: len(bot_api.toasts) == 2)
    assert bot_api.toasts == [translate("button_too_old")] * 2
    assert [
        await admin_bot.repositories.chats.find_access(user_id) for user_id in (42, BEA)
    ] == [
        None,
        None,
    ]
    assert bot_api.sent() == [UNKNOWN] * 6


async def test_a_broadcast_is_shown_confirmed_and_sent_once_to_everyone(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    for person in (ADMIN, 31, 32, 33, 34):
        await make(admin_bot.sessions, SetReachable(person))
    await make(admin_bot.sessions, SetAccess(33, "blocked"))
    bot_api.fail(
        "sendMessage", 403, "Forbidden: bot was blocked by the user", chat_id=34
    )
    async with admin_bot.open(bot_api):
        bot_api.say(
            "/broadcast We are *closed* on Monday: https://shop.example/hours.", ADMIN
        )
        shown, asked = await bot_api.wait_for_message(2, ADMIN)
        preview = bot_api.messages(ADMIN)[1]
        (send,) = (button["callback_data"] for button in buttons(preview))
        for _ in range(2):
            bot_api.press(preview, send, ADMIN)
        report = (await bot_api.wait_for_message(4, ADMIN))[3]
        await until(lambda: len(bot_api.toasts) == 2)
    assert shown == "We are closed on Monday: shop.example."
    # The admin also has a private chat with the bot.
    assert asked == "This is how it will look. Send it to 4 chats?"
    assert [bot_api.sent(chat_id) for chat_id in (31, 32, 33, 34)] == [
        [shown],
        [shown],
        [],
        [],
    ]
    assert report == "Sent to 3 chats, 1 failed."
    assert bot_api.sent(ADMIN).count(shown) == 2
    assert bot_api.toasts == ["", translate("broadcast_over")]
    assert buttons(bot_api.messages(ADMIN)[1]) == []
    assert await admin_bot.repositories.broadcasts.get(int(send.split(":")[1])) is None


async def test_who_presses_no_more_news_gets_no_more_broadcasts(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    for person in (ADMIN, 31, 32):
        await make(admin_bot.sessions, SetReachable(person))
    german = Change(user_id=31, added_facts=(Fact("setting", "language=de"),))
    await make(admin_bot.sessions, ChangeMemory(german))
    async with admin_bot.open(bot_api):
        bot_api.say("/broadcast Good news", ADMIN)
        await bot_api.wait_for_message(2, ADMIN)
        (send,) = buttons(bot_api.messages(ADMIN)[1])
        assert send["style"] == "success"
        bot_api.press(bot_api.messages(ADMIN)[1], send["callback_data"], ADMIN)
        await bot_api.wait_for_message(1, 31)
        (news,) = bot_api.messages(31)
        (stop,) = buttons(news)
        assert (stop["text"], "style" in stop) == ("🔕 Keine Neuigkeiten mehr", False)
        bot_api.press(news, stop["callback_data"], 31)
        told = (await bot_api.wait_for_message(2, 31))[1]
        assert told.startswith("Ich schicke Ihnen keine Neuigkeiten mehr.")
        await bot_api.wait_for_message(4, ADMIN)
        bot_api.say("/broadcast More news", ADMIN)
        asked = (await bot_api.wait_for_message(6, ADMIN))[5]
        assert asked.endswith("Send it to 2 chats?")
        bot_api.say("/settings", 31)
        await bot_api.wait_for_message(3, 31)
        labels = [each["text"] for each in buttons(bot_api.messages(31)[2])]
        assert "Neuigkeiten: aus ✓" in labels
        bot_api.say("/forget", 31)
        await bot_api.wait_for_message(4, 31)
        styles = [each.get("style") for each in buttons(bot_api.messages(31)[3])]
        assert styles == ["danger", None]
