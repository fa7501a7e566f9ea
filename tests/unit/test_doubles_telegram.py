"""The Bot API's double, seen through python-telegram-bot."""

import asyncio
import re
from collections.abc import AsyncIterator

import httpx
import pytest
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter
from telegram.ext import Application, CommandHandler, ContextTypes

from tests.doubles.bot_api import CHAT, BotApi


@pytest.fixture
async def bot(bot_api: BotApi) -> AsyncIterator[Bot]:
    async with Bot(bot_api.token, base_url=f"{bot_api.base_url}/bot") as bot:
        yield bot


async def test_the_bot_knows_itself(bot: Bot) -> None:
    assert bot.username == "sommelier_test_bot"
    assert bot.id == 123456789


async def test_a_wrong_token_is_unauthorized(bot_api: BotApi) -> None:
    stranger = Bot("1:wrong", base_url=f"{bot_api.base_url}/bot")
    with pytest.raises(InvalidToken):
        await stranger.initialize()
    await stranger.shutdown()
    async with httpx.AsyncClient() as client:
        response = await client.post(f"{bot_api.base_url}/bot1:wrong/getMe")
    assert response.json() == {"ok": False, "error_code": 401, "description": "Unauthorized"}


def test_an_unknown_method_is_not_found(bot_api: BotApi) -> None:
    response = httpx.post(f"{bot_api.base_url}/bot{bot_api.token}/sendWine")
    assert response.status_code == 404
    assert response.json()["ok"] is False
    assert [(one.method, one.status) for one in bot_api.calls] == [("sendWine", 404)]


async def test_updates_come_until_they_are_acknowledged(bot_api: BotApi, bot: Bot) -> None:
    ids = [bot_api.say(text) for text in ("one", "two", "three")]
    first = await bot.get_updates(limit=2)
    again = await bot.get_updates(offset=ids[1])
    assert [update.update_id for update in first] == ids[:2]
    assert [update.update_id for update in again] == ids[1:]
    assert bot_api.pending == 2
    assert [one.update_id for one in await bot.get_updates(offset=-1)] == ids[2:]
    assert await bot.get_updates(offset=ids[2] + 1) == ()


async def test_a_long_poll_returns_when_an_update_comes(bot_api: BotApi, bot: Bot) -> None:
    poll = asyncio.create_task(bot.get_updates(timeout=50))
    await asyncio.sleep(0.1)
    assert not poll.done()
    bot_api.say("hello")
    [update] = await poll
    assert update.message
    assert update.message.text == "hello"


async def test_a_long_poll_without_updates_ends_in_time(bot: Bot) -> None:
    assert await bot.get_updates(timeout=1) == ()


async def test_a_second_poller_ends_the_first_with_a_conflict(bot_api: BotApi, bot: Bot) -> None:
    first = asyncio.create_task(bot.get_updates(timeout=10))
    await asyncio.sleep(0.1)
    async with Bot(bot_api.token, base_url=f"{bot_api.base_url}/bot") as other:
        second = asyncio.create_task(other.get_updates(timeout=10))
        with pytest.raises(Conflict, match=r"(?i)terminated by other getUpdates"):
            await first
        bot_api.say("hello")
        assert len(await second) == 1


async def test_polling_conflicts_with_a_webhook(bot_api: BotApi, bot: Bot) -> None:
    await bot.set_webhook("https://wine.example/hook")
    with pytest.raises(Conflict, match="webhook is active"):
        await bot.get_updates()
    bot_api.say("lost")
    assert (await bot.get_webhook_info()).pending_update_count == 1
    await bot.delete_webhook(drop_pending_updates=True)
    assert await bot.get_updates() == ()


async def test_only_allowed_types_of_updates_come(bot_api: BotApi, bot: Bot) -> None:
    bot_api.push({"message_reaction": {}})
    assert await bot.get_updates() == ()
    press = {"callback_query": {"id": "1", "from": PERSON, "chat_instance": "1", "data": "x"}}
    bot_api.push(press)
    assert await bot.get_updates(allowed_updates=["message"]) == ()
    bot_api.push(press)
    [update] = await bot.get_updates(allowed_updates=["callback_query"])
    assert update.callback_query
    assert update.callback_query.data == "x"


PERSON = {"id": 7, "is_bot": False, "first_name": "Ada"}


async def test_a_person_sees_text_without_markup_after_edits_and_deletes(
    bot_api: BotApi, bot: Bot
) -> None:
    message = await bot.send_message(CHAT, "<b>Rioja</b> &amp; <i>lamb</i> 🍷", "HTML")
    other = await bot.send_message(CHAT, "gone soon")
    await bot.send_message(-100, "to the group")
    await bot.edit_message_text("<b>Bandol</b>", CHAT, message.message_id, parse_mode="HTML")
    await bot.delete_message(CHAT, other.message_id)
    assert [entity.type for entity in message.entities] == ["bold", "italic"]
    assert message.text == "Rioja & lamb 🍷"
    assert bot_api.sent(CHAT) == ["Bandol"]
    assert bot_api.sent() == ["Bandol", "to the group"]
    assert [chat["chat"]["type"] for chat in bot_api.messages()] == ["private", "supergroup"]


async def test_editing_what_is_the_same_or_not_there_is_refused(bot: Bot) -> None:
    message = await bot.send_message(CHAT, "Rioja")
    with pytest.raises(BadRequest, match="not modified"):
        await bot.edit_message_text("Rioja", CHAT, message.message_id)
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await bot.edit_message_text("Rioja", CHAT, 999)
    with pytest.raises(BadRequest, match="Message to delete not found"):
        await bot.delete_message(CHAT, 999)


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("", "Message text is empty"),
        ("<b> </b>", "Message text is empty"),
        ("x" * 4097, "Message is too long"),
        ("🍷" * 2049, "Message is too long"),
        ("<b>open", 'Can\'t find end tag corresponding to start tag "b"'),
        ("<b><i>x</b></i>", 'Unmatched end tag at byte offset 7, expected "</i>", found "</b>"'),
        ("x</b>", "Unexpected end tag at byte offset 1"),
        ("<h1>x</h1>", 'Unsupported start tag "h1" at byte offset 0'),
        ("Château <br/>", 'Unsupported "<" at byte offset 9'),
        ("3 < 4", 'Unsupported "<" at byte offset 2'),
        ("gin & tonic", 'Unsupported "&" at byte offset 4'),
        ("&nbsp;", 'Unsupported "&" at byte offset 0'),
        ('<span class="red">x</span>', 'Tag "span" must have class "tg-spoiler"'),
        ("<a>x</a>", 'Tag "a" must have attribute "href"'),
    ],
)
async def test_telegram_refuses_a_text(
    bot_api: BotApi, bot: Bot, text: str, description: str
) -> None:
    with pytest.raises(BadRequest, match=f"(?i){re.escape(description)}"):
        await bot.send_message(CHAT, text, "HTML")
    assert bot_api.sent() == []
    assert [one.status for one in bot_api.calls_of("sendMessage")] == [400]


@pytest.mark.parametrize("text", ["x" * 4096, "🍷" * 2048, "<b>" + "x" * 4096 + "</b>"])
async def test_a_text_of_4096_units_after_parsing_is_sent(bot: Bot, text: str) -> None:
    assert (await bot.send_message(CHAT, text, "HTML")).message_id > 0


async def test_callback_data_has_64_bytes(bot_api: BotApi, bot: Bot) -> None:
    def keyboard(data: str) -> InlineKeyboardMarkup:
        return InlineKeyboardMarkup([[InlineKeyboardButton("yes", callback_data=data)]])

    await bot.send_message(CHAT, "ok", reply_markup=keyboard("é" * 32))
    with pytest.raises(BadRequest, match=r"(?i)button_data_invalid"):
        await bot.send_message(CHAT, "no", reply_markup=keyboard("é" * 32 + "x"))
    [message] = bot_api.messages()
    assert message["reply_markup"]["inline_keyboard"][0][0]["callback_data"] == "é" * 32


async def test_files_arrive_byte_for_byte(bot_api: BotApi, bot: Bot) -> None:
    data = bytes(range(256)) + b"\r\n\r\n--\r\n" + bytes(reversed(range(256)))
    await bot.send_document(
        CHAT, data, caption="<b>Cellar</b>", parse_mode="HTML", filename="a.csv"
    )
    await bot.send_photo(CHAT, data)
    [document], [photo] = bot_api.calls_of("sendDocument"), bot_api.calls_of("sendPhoto")
    assert [file.data for file in document.files.values()] == [data]
    assert [file.filename for file in document.files.values()] == ["a.csv"]
    assert [file.data for file in photo.files.values()] == [data]
    assert bot_api.sent()[0] == "Cellar"


async def test_what_has_no_text_is_answered(bot_api: BotApi, bot: Bot) -> None:
    message = await bot.send_message(CHAT, "hello")
    assert await bot.send_chat_action(CHAT, "typing")
    assert await bot.answer_callback_query("5", "thanks")
    assert await bot.set_message_reaction(CHAT, message.message_id, "👍")
    assert await bot.set_my_commands([("new", "forget our conversation")])
    menu = [{"command": "new", "description": "forget our conversation"}]
    assert bot_api.menus == {("", ""): menu}


def test_json_and_query_are_understood_as_forms_are(bot_api: BotApi) -> None:
    url = f"{bot_api.base_url}/bot{bot_api.token}/SENDMESSAGE"
    assert httpx.post(url, json={"chat_id": 5, "text": "json"}).json()["ok"]
    assert httpx.get(url, params={"chat_id": 5, "text": "123"}).json()["ok"]
    assert bot_api.sent(5) == ["json", "123"]
    assert [one.params["chat_id"] for one in bot_api.calls_of("sendMessage")] == [5, 5]


async def test_faults_strike_as_often_as_scripted_and_where(
    bot_api: BotApi, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "1")
    bot_api.fail("sendMessage", 429, retry_after=7)
    with pytest.raises(RetryAfter) as raised:
        await bot.send_message(CHAT, "one")
    assert str(raised.value) == "Flood control exceeded. Retry in 0:00:07"
    bot_api.fail("sendMessage", 403, "Forbidden: bot was blocked by the user", chat_id=5)
    await bot.send_message(CHAT, "two")
    with pytest.raises(Forbidden, match="blocked"):
        await bot.send_message(5, "three")
    bot_api.fail("sendMessage", 500, times=2)
    for _ in range(2):
        with pytest.raises(NetworkError, match="Internal Server Error"):
            await bot.send_message(CHAT, "four")
    await bot.send_message(CHAT, "five")
    assert bot_api.sent() == ["two", "five"]
    assert [one.status for one in bot_api.calls_of("sendMessage")] == [429, 200, 403, 500, 500, 200]


async def test_a_dropped_answer_leaves_the_work_done(bot_api: BotApi, bot: Bot) -> None:
    bot_api.drop_after("sendMessage")
    with pytest.raises(NetworkError, match="disconnected without sending"):
        await bot.send_message(CHAT, "ambiguous")
    assert bot_api.sent() == ["ambiguous"]
    assert [one.status for one in bot_api.calls_of("sendMessage")] == [None]


async def test_waiting_for_a_message_that_never_comes_says_what_was_seen(
    bot_api: BotApi, bot: Bot
) -> None:
    await bot.send_message(CHAT, "hello")
    with pytest.raises(AssertionError, match=r"2 message\(s\) wanted, a person sees \['hello'\]"):
        await bot_api.wait_for_message(2, timeout=0.05)


async def test_an_application_polls_and_answers_a_command(bot_api: BotApi) -> None:
    async def greet(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
        assert update.effective_message
        await update.effective_message.reply_text("Good evening")

    builder = Application.builder().token(bot_api.token)
    app = builder.base_url(f"{bot_api.base_url}/bot").build()
    app.add_handler(CommandHandler("start", greet))
    async with app:
        assert app.updater
        await app.start()
        await app.updater.start_polling()
        bot_api.say("/start", chat_id=5)
        assert await bot_api.wait_for_message(chat_id=5) == ["Good evening"]
        await app.updater.stop()
        await app.stop()
    assert bot_api.pending == 0
