"""People ask the staff of a shop: what goes to whom, whatever happens at the same time."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.documents.shop import offer_staff_tool
from agent.engine.run import Run
from agent.fallback.answering import Fallback
from agent.i18n import translate, translate_into
from agent.sommelier.service import Sommelier
from bot.app import App
from db.changes.referrals import MAX_OPEN
from db.engine import Sessions
from db.repositories.people import MessageRepository
from tests.acceptance.test_end_to_end import running_here
from tests.commands import sommelier, sommelier_here
from tests.crash.doubles import sleep_until
from tests.crash.harness import Stage, stage
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.doubles.server import JsonObject, eventually
from tests.fakes import FakeCatalogue
from tests.integration.test_look_ups import buttons
from tests.library import open_model
from tests.running import at_rest, running

ADA, BOB, CLEO = 7001, 7002, 7003
STAFF, ERIN, FRED = -9001, 8001, 8002
WITHOUT_NAME = translate("shop_send_button")
WITH_NAME = translate("shop_send_name", name="Ada")
END = translate("shop_end_button")
SENT, GONE = translate("shop_sent"), translate("staff_unknown")


@dataclass
class Shop:
    """A bot with a staff chat, and what people do there."""

    api: BotApi
    app: App

    async def said(self, words: str, chat: int) -> JsonObject:
        """Return the newest message of the bot in a chat that has these words."""

        def found() -> list[JsonObject]:
            return [
                each
                for each in self.api.messages(chat)
                if words in each.get("text", "")
            ]

        missing = lambda: f"{words!r} is not among {self.api.sent(chat)}"  # noqa: E731
        await eventually(lambda: bool(found()), otherwise=missing)
        return found()[-1]

    def press(self, message: JsonObject, label: str, user: int) -> None:
        (data,) = [
            each["callback_data"] for each in buttons(message) if each["text"] == label
        ]
        self.api.press(message, data, user)

    def reply(
        self, message: JsonObject, text: str, user: int, **fields: object
    ) -> None:
        chat = message["chat"]["id"]
        self.api.say(text, chat, user, reply_to_message=message, **fields)

    async def ask(
        self, user: int, question: str, button: str = WITHOUT_NAME
    ) -> JsonObject:
        """Ask the shop; return the message that the staff get."""
        self.api.say(f"/shop {question}", user)
        preview = await self.said(question, user)
        assert question not in str(self.api.sent(STAFF))
        self.press(preview, button, user)
        return await self.said(question, STAFF)


@asynccontextmanager
async def shop(
    bot_api: BotApi,
    sessions: Sessions,
    staff: int = STAFF,
    *,
    run: Run | None = None,
    **settings: Any,
) -> AsyncIterator[Shop]:
    messages = MessageRepository(sessions)
    catalogue = FakeCatalogue()
    answerer = Sommelier(
        catalogue=catalogue,
        fallback=Fallback(catalogue=catalogue, has_staff=True),
        research_tools=[offer_staff_tool()],
    )
    kept = {"wines": catalogue}
    async with running(
        bot_api,
        answerer,
        messages,
        sessions=sessions,
        run=run,
        kept=kept,
        STAFF_CHAT_ID=str(staff),
        **settings,
    ) as app:
        yield Shop(bot_api, app)
        await at_rest(app)


async def test_a_question_goes_to_the_staff_as_it_was_shown_and_answers_come_back_until_the_end(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    async with shop(bot_api, sqlite_sessions) as on:
        asked = await on.ask(ADA, "Do you deliver on Saturdays?")
        await on.said(SENT, ADA)
        assert "Ada" not in str(asked)
        on.reply(asked, "Yes, see https://shop.example/delivery", user=ERIN)
        answer = await on.said("Yes, see", ADA)
        assert "Erin" not in str(answer)
        assert answer["text"].startswith("💬 The shop writes:")
        assert [each["type"] for each in answer["entities"]][1] == "text_link"
        on.reply(answer, "Then two *bottles*, please", user=ADA)
        more = await on.said("Then two *bottles*", STAFF)
        assert "Guest" in more["text"]
        on.press(more, END, FRED)
        await on.said(translate("shop_ended"), ADA)
        on.reply(answer, "Are you there?", user=ADA)
        await on.said(translate("shop_over"), ADA)
    assert "Are you there?" not in str(bot_api.messages(STAFF))


async def test_the_staff_see_a_name_only_if_its_owner_agrees_and_nothing_of_a_dropped_draft(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    async with shop(bot_api, sqlite_sessions) as on:
        bot_api.say("/shop something private", ADA)
        on.press(
            await on.said("something private", ADA), translate("shop_drop_button"), ADA
        )
        await on.said(translate("shop_dropped"), ADA)
        named = await on.ask(ADA, "And this with my name", WITH_NAME)
    assert "Name: Ada" in named["text"]
    assert len(bot_api.messages(STAFF)) == 1


async def test_a_draft_is_sent_once_and_only_by_its_writer_and_not_without_bound(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    async with shop(bot_api, sqlite_sessions) as on:
        bot_api.say("/shop first", ADA)
        preview = await on.said("first", ADA)
        (send, *_) = (each["callback_data"] for each in buttons(preview))
        bot_api.press(preview, send, BOB)
        bot_api.press(preview, send, ADA)
        bot_api.press(preview, send, ADA)
        await on.said("first", STAFF)
        for question in ("second", "third"):
            await on.ask(ADA, question)
        bot_api.say("/shop fourth", ADA)
        on.press(await on.said("fourth", ADA), WITHOUT_NAME, ADA)
        await on.said(translate("shop_too_many", count=MAX_OPEN), ADA)
        await at_rest(on.app)
    assert [text.splitlines()[2] for text in bot_api.sent(STAFF)] == [
        "first",
        "second",
        "third",
    ]


async def test_replies_that_come_within_a_moment_go_each_to_its_own_guest(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    async with shop(bot_api, sqlite_sessions, JOIN_SECONDS="0.8") as on:
        to_ada, to_bob = await on.ask(ADA, "from Ada"), await on.ask(BOB, "from Bob")
        on.reply(to_ada, "for Ada", ERIN)
        on.reply(to_bob, "for Bob", ERIN)
        bot_api.say("what a day", STAFF, ERIN)  # no reply: for colleagues
        on.reply(to_bob, "for Bob too", FRED)
        await on.said("for Bob too", BOB)
        await on.said("for Ada", ADA)
        await at_rest(on.app)
    assert "Bob" not in str(bot_api.sent(ADA))
    assert "for Ada" not in str(bot_api.sent(BOB))
    assert "what a day" not in str([bot_api.sent(ADA), bot_api.sent(BOB)])


async def test_a_message_that_replies_to_no_known_guest_is_passed_on_to_nobody(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    async with shop(bot_api, sqlite_sessions) as on:
        asked = await on.ask(ADA, "Will you be open?")
        bot_api.say("/forget", ADA)
        sure = await on.said(translate("forget_sure"), ADA)
        on.press(sure, translate("forget_yes_button"), ADA)
        await on.said("has ended", STAFF)  # before it is forgotten, the staff are told
        before = len(bot_api.sent(ADA))
        on.reply(asked, "Yes, we are", ERIN)
        await on.said(GONE, STAFF)
        on.reply({**asked, "message_id": 9999}, "Hello?", ERIN)
        await eventually(lambda: bot_api.sent(STAFF).count(GONE) == 2)
        await at_rest(on.app)
    assert len(bot_api.sent(ADA)) == before
    for table in ("referrals", "outbox"):
        async with sqlite_sessions() as session:
            connection = await session.connection()
            rows = (await connection.exec_driver_sql(f"SELECT * FROM {table}")).all()
            assert rows == []


async def test_groups_and_the_staff_themselves_ask_nobody(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    async with shop(bot_api, sqlite_sessions, staff=ERIN) as on:
        bot_api.say("/shop do you deliver?", -77, ADA)
        await on.said(translate("only_in_private"), -77)
        bot_api.say("/shop do you deliver?", ERIN)
        await on.said(translate("shop_is_here"), ERIN)
        await at_rest(on.app)
    assert len(bot_api.messages(ERIN)) == 1


async def test_the_staff_hear_of_a_message_that_did_not_arrive_and_so_does_the_guest(
    bot_api: BotApi, sqlite_sessions: Sessions
) -> None:
    async with shop(bot_api, sqlite_sessions) as on:
        asked = await on.ask(ADA, "Is anybody there?")
        question = await on.said(SENT, ADA)
        bot_api.fail(
            "sendMessage", 403, "Forbidden: bot was blocked by the user", chat_id=ADA
        )
        on.reply(asked, "We are", ERIN)
        await on.said("may not have arrived", STAFF)
        bot_api.fail("sendMessage", 403, "Forbidden: bot was kicked", chat_id=STAFF)
        on.reply(question, "Hello?", ADA)
        await on.said(translate("shop_undelivered"), ADA)


@pytest.mark.parametrize(
    ("words", "language"),
    [
        ("Can I talk to someone?", "en"),
        ("Kann ich mit jemandem sprechen?", "de"),
        ("Puis-je parler à quelqu'un ?", "fr"),
        ("¿Puedo hablar con alguien?", "es"),
        ("Posso parlare con qualcuno?", "it"),
        ("Kan ik met iemand praten?", "nl"),
        ("Posso falar com alguém?", "pt"),
    ],
)
async def test_a_guest_who_wants_a_person_is_offered_the_shop_without_a_model(
    bot_api: BotApi, sqlite_sessions: Sessions, words: str, language: str
) -> None:
    bot_api.app_languages |= {ADA: language}
    async with shop(bot_api, sqlite_sessions) as on:
        bot_api.say("a red for lamb", ADA)
        await on.said("Chinon", ADA)
        bot_api.say(words, ADA)
        offer = await on.said(translate_into(language, "shop_offer"), ADA)
        on.press(offer, translate_into(language, "ask_shop_button"), ADA)
        preview = await on.said(translate_into(language, "shop_preview"), ADA)
        assert "Chinon Les Granges" in preview["text"]
        on.press(preview, translate_into(language, "shop_send_button"), ADA)
        asked = await on.said(words, STAFF)
        assert preview["text"].partition("\n\n")[2] in asked["text"]


async def test_a_model_offers_the_shop_and_sends_nothing(
    bot_api: BotApi, sqlite_sessions: Sessions, model_server: ModelServer
) -> None:
    answer = {
        "response_type": "informational",
        "intro": "The shop can do that.",
        "wines": [],
    }
    model_server.script(tool_call("offer_staff", {}), answer_json(answer))
    async with (
        open_model(model_server) as model,
        shop(bot_api, sqlite_sessions, run=Run([model])) as on,
    ):
        bot_api.say("I would like twelve bottles for a wedding", ADA)
        message = await on.said("The shop can do that.", ADA)
        assert translate("ask_shop_button") in [
            each["text"] for each in buttons(message)
        ]
        await at_rest(on.app)
    assert bot_api.messages(STAFF) == []


async def test_without_a_staff_chat_the_contact_of_the_shop_is_named(
    bot_api: BotApi, environment: dict[str, str], tmp_path: Path
) -> None:
    document = tmp_path / "shop.md"
    document.write_text("# Our shop\n\n## Contact\n\nPhone 01 234, every day.", "utf-8")
    added = await asyncio.to_thread(
        sommelier, "documents", "add", str(document), environment=environment
    )
    assert added.returncode == 0, added.stderr
    async with running_here(bot_api, environment):
        for count, words in enumerate(("Can I talk to someone?", "/shop"), 1):
            bot_api.say(words, ADA)
            assert "Phone 01 234" in (await bot_api.wait_for_message(count, ADA))[-1]


def test_the_doctor_names_a_staff_chat_to_which_the_bot_cannot_write(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    settings = {
        "TELEGRAM_BOT_TOKEN": bot_api.token,
        "TELEGRAM_BASE_URL": bot_api.base_url,
    }
    settings |= {"STAFF_CHAT_ID": str(STAFF)}
    well = sommelier_here("doctor", environment=environment, **settings)
    assert f"✓ staff: questions of users go to chat {STAFF}" in well.stdout
    bot_api.fail(
        "sendChatAction", 403, "Forbidden: bot was kicked from the supergroup chat"
    )
    bad = sommelier_here("doctor", environment=environment, **settings)
    assert f"✗ staff: the bot cannot write to {STAFF} of STAFF_CHAT_ID" in bad.stdout
    assert bad.returncode == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("passes", [1, 4])
async def test_three_guests_and_two_of_the_staff_write_at_once_and_the_process_is_killed(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, passes: int
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    guests = (ADA, BOB, CLEO)
    settings = {"STAFF_CHAT_ID": str(STAFF)}
    async with stage(tmp_path, server_url=url, settings=settings) as on:
        await on.start()
        for guest in guests:
            on.api.say(f"/shop question of {guest}", guest)
        previews = {
            guest: await shown(on, f"question of {guest}", guest) for guest in guests
        }
        for guest, preview in previews.items():
            (send, *_) = (each["callback_data"] for each in buttons(preview))
            on.api.press(preview, send, guest)
        asked = {
            guest: await shown(on, f"question of {guest}", STAFF) for guest in guests
        }
        told = {guest: await shown(on, SENT, guest) for guest in guests}
        struck = threading.Event()

        def strike(port: int) -> None:
            on.bots[0].kill()
            struck.set()

        on.watch.arm("send asked", strike, passes)
        for number in (1, 2):
            for guest in guests:
                for worker in (ERIN, FRED):
                    text = f"answer {number} of {worker} to {guest}"
                    on.api.say(text, STAFF, worker, reply_to_message=asked[guest])
                on.api.say(
                    f"more {number} of {guest}", guest, reply_to_message=told[guest]
                )
        assert await sleep_until(struck.is_set, 30)
        on.bots[0].reap()
        unrecorded = out_and_unrecorded(on)
        on.bots[0].start()
        await on.bots[0].ready()
        await shown(on, f"more 2 of {CLEO}", STAFF)
        for guest in guests:
            await shown(on, f"answer 2 of {FRED} to {guest}", guest)
        waiting = "SELECT COUNT(*) FROM updates WHERE state IN ('waiting', 'answered')"
        assert await sleep_until(lambda: not on.query(waiting)[0][0], 30)
        for guest in guests:
            expected = [
                f"answer {n} of {w} to {guest}" for n in (1, 2) for w in (ERIN, FRED)
            ]
            assert without_repeats(on.api.sent(guest), "answer", unrecorded) == expected
        more = without_repeats(on.api.sent(STAFF), "more", unrecorded)
        assert sorted(more) == [
            f"more {n} of {guest}" for n in (1, 2) for guest in guests
        ]


def out_and_unrecorded(on: Stage) -> str:
    """Return the messages that had been sent, and were not recorded, when a process was killed."""
    recorded = on.query(
        "SELECT chat_id, message_id FROM outbox WHERE message_id IS NOT NULL"
    )
    return "\n".join(
        message["text"]
        for message in on.api.messages()
        if (message["chat"]["id"], message["message_id"]) not in recorded
    )


def without_repeats(texts: list[str], word: str, unrecorded: str) -> list[str]:
    """Return the lines that begin with a word, without repeats of unrecorded ones.

    Between a send and its record a kill cannot be told from one before: those may come twice.
    """
    found: list[str] = []
    for line in "\n".join(texts).splitlines():
        may_repeat = line in unrecorded.splitlines() and line in found
        if line.startswith(word) and not may_repeat:
            found.append(line)
    return found


async def shown(on: Stage, words: str, chat: int) -> JsonObject:
    """Return the first message in a chat that has these words."""

    def found() -> list[JsonObject]:
        return [each for each in on.api.messages(chat) if words in each.get("text", "")]

    assert await sleep_until(lambda: bool(found()), 30), (words, on.api.sent(chat))
    return found()[0]
