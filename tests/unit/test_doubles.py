"""The doubles behave as what they stand for, seen through the clients that the product uses."""

import asyncio
import json
import logging
import os
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from langfuse import Langfuse
from openai.types.chat import ChatCompletion
from opentelemetry.sdk.trace import TracerProvider
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter
from telegram.ext import Application, CommandHandler, ContextTypes

from tests.conftest import NetworkForbidden, NetworkGuard
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import (
    ModelServer,
    Step,
    Totals,
    answer,
    answer_json,
    call,
    cut,
    error,
    hang,
    no_choices,
    null_content,
    raw,
    reasoning_only,
    refusal,
    reset,
    tool_call,
    tool_calls,
)
from tests.doubles.openai_rules import history_error, strict_error
from tests.doubles.otlp import Mode, OtlpReceiver
from tests.doubles.server import JsonObject, LoopbackServer
from tests.doubles.telegram_html import EntitiesError, parse_html

USER: JsonObject = {"role": "user", "content": "a red for lamb"}


# The servers themselves


def test_a_stopped_server_leaves_no_thread_and_frees_its_port() -> None:
    with LoopbackServer([]) as server:
        port = int(server.base_url.rpartition(":")[2])
        assert httpx.get(server.base_url).status_code == 404
        assert "LoopbackServer" in [thread.name for thread in threading.enumerate()]
    assert "LoopbackServer" not in [thread.name for thread in threading.enumerate()]
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))


def test_starting_and_stopping_is_quick() -> None:
    began = time.monotonic()
    for _ in range(10):
        with LoopbackServer([]):
            pass
    assert time.monotonic() - began < 1


def test_a_bug_of_a_double_is_raised_when_it_stops() -> None:
    def broken(_: JsonObject) -> Step:
        raise ZeroDivisionError

    server = ModelServer(broken).start()
    httpx.post(f"{server.base_url}/chat/completions", json={"messages": [USER]})
    with pytest.raises(RuntimeError, match="ModelServer itself failed"):
        server.__exit__()


# The machine that tests see


async def test_reaching_for_the_network_names_the_address(network_guard: NetworkGuard) -> None:
    with pytest.raises(NetworkForbidden, match=r"tried to look up wine\.example"):
        socket.create_connection(("wine.example", 443))
    with socket.socket() as connection, pytest.raises(NetworkForbidden, match=r"192\.0\.2\.1"):
        connection.connect(("192.0.2.1", 443))
    assert network_guard.refused == ["look up wine.example", "connect to ('192.0.2.1', 443)"]
    network_guard.refused.clear()


def test_the_machine_is_empty(tmp_path: Path) -> None:
    foreign = re.compile("OPENAI_|LANGFUSE_|TELEGRAM_|LLM_|DATABASE_URL", re.IGNORECASE)
    assert [name for name in os.environ if foreign.match(name)] == []
    assert os.environ["XDG_DATA_HOME"] == str(tmp_path / "data")
    assert Path.cwd() == tmp_path


# Telegram


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
    began = time.monotonic()
    poll = asyncio.create_task(bot.get_updates(timeout=10))
    await asyncio.sleep(0.1)
    assert not poll.done()
    bot_api.say("hello")
    [update] = await poll
    assert update.message
    assert update.message.text == "hello"
    assert time.monotonic() - began < 5


async def test_a_long_poll_without_updates_ends_in_time(bot: Bot) -> None:
    began = time.monotonic()
    assert await bot.get_updates(timeout=1) == ()
    assert 0.9 < time.monotonic() - began < 5


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


def test_every_tag_of_telegram_becomes_its_entity() -> None:
    source = (
        "<b>1</b><strong>2</strong><i>3</i><em>4</em><u>5</u><ins>6</ins><s>7</s><strike>8</strike>"
        '<del>9</del><a href="https://wine.example/?a=1&amp;b=2">A</a><code>B</code><pre>C</pre>'
        "<blockquote>D</blockquote><blockquote expandable>E</blockquote>"
        '<tg-spoiler>F</tg-spoiler><span class="tg-spoiler">G</span>'
        '<tg-emoji emoji-id="5">H</tg-emoji>&lt;&gt;&amp;&quot;&#39;&#x27;'
    )
    text, entities = parse_html(source)
    assert text == "123456789ABCDEFGH<>&\"''"
    assert [entity["type"] for entity in entities] == (
        ["bold"] * 2 + ["italic"] * 2 + ["underline"] * 2 + ["strikethrough"] * 3
    ) + (
        ["text_link", "code", "pre", "blockquote", "expandable_blockquote"]
        + ["spoiler"] * 2
        + ["custom_emoji"]
    )
    assert entities[9] == {
        "type": "text_link",
        "offset": 9,
        "length": 1,
        "url": "https://wine.example/?a=1&b=2",
    }


def test_offsets_count_utf16_units_of_the_trimmed_text() -> None:
    text, entities = parse_html("\n 🍷 <b>red <i>🍇</i> </b>\n")
    assert text == "🍷 red 🍇"
    assert entities == [
        {"type": "bold", "offset": 3, "length": 6},
        {"type": "italic", "offset": 7, "length": 2},
    ]


def test_only_the_first_100_entities_count() -> None:
    text, entities = parse_html("<b>x</b> " * 101)
    assert len(text) == 201
    assert len(entities) == 100
    assert entities[-1]["offset"] == 198


def test_a_tag_may_not_hide_in_an_attribute() -> None:
    with pytest.raises(EntitiesError, match="Unsupported"):
        parse_html('<a href="x"onclick="y">z</a>')


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
    assert bot_api.commands == [{"command": "new", "description": "forget our conversation"}]


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


async def test_a_delayed_method_is_slow(bot_api: BotApi, bot: Bot) -> None:
    bot_api.delay("sendMessage", 0.2)
    began = time.monotonic()
    await bot.send_message(CHAT, "slow")
    assert time.monotonic() - began >= 0.2


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


# The model


@pytest.fixture
async def client(model_server: ModelServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=model_server.base_url, api_key="key", max_retries=0, timeout=5
    ) as client:
        yield client


async def ask(client: openai.AsyncOpenAI, *messages: JsonObject, **more: Any) -> ChatCompletion:
    history: Any = messages or (USER,)
    completion: ChatCompletion = await client.chat.completions.create(
        model="gpt-4o", messages=history, **more
    )
    return completion


async def test_steps_answer_in_order_and_are_counted(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(
        answer("Rioja", usage=(100, 20), cached=30), answer_json({"a": "é"}, "length")
    )
    first, second = await ask(client), await ask(client)
    assert first.choices[0].message.content == "Rioja"
    assert first.choices[0].finish_reason == "stop"
    assert first.usage
    assert first.usage.prompt_tokens_details
    assert first.usage.prompt_tokens_details.cached_tokens == 30
    assert second.choices[0].message.content == '{"a": "é"}'
    assert second.choices[0].finish_reason == "length"
    assert second.usage
    assert model_server.usage == Totals(
        2, 100 + second.usage.prompt_tokens, 20 + second.usage.completion_tokens, 30
    )
    assert [one.json["messages"] for one in model_server.requests] == [[USER], [USER]]
    assert model_server.requests[0].headers["authorization"] == "Bearer key"
    assert model_server.requests[0].bytes == int(model_server.requests[0].headers["content-length"])


async def test_tool_calls_have_ids_of_their_own(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(
        tool_call("search_wines", {"text": "lamb"}),
        tool_calls([call("a", {}), call("b", "{not json", id="x")], content="Let me look"),
    )
    first, second = await ask(client), await ask(client)
    [one] = first.choices[0].message.tool_calls or []
    assert one.type == "function"
    assert (one.id, one.function.name) == ("call_1", "search_wines")
    assert json.loads(one.function.arguments) == {"text": "lamb"}
    assert first.choices[0].finish_reason == "tool_calls"
    assert second.choices[0].message.content == "Let me look"
    assert [tool.id for tool in second.choices[0].message.tool_calls or []] == ["call_2", "x"]


async def test_answers_without_an_answer(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(refusal("No."), null_content(), reasoning_only("hm", ""), no_choices())
    assert (await ask(client)).choices[0].message.refusal == "No."
    assert (await ask(client)).choices[0].message.content is None
    thinking = (await ask(client)).choices[0].message
    assert thinking.content == ""
    assert thinking.model_dump()["reasoning_content"] == "hm"
    assert (await ask(client)).choices == []


async def test_errors_carry_status_and_headers(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(error(429, headers={"retry-after": "3"}), error(401), error(500))
    with pytest.raises(openai.RateLimitError) as limited:
        await ask(client)
    assert limited.value.response.headers["retry-after"] == "3"
    with pytest.raises(openai.AuthenticationError):
        await ask(client)
    with pytest.raises(openai.InternalServerError):
        await ask(client)
    assert model_server.usage == Totals()


@pytest.mark.parametrize("step", [reset(), cut(), hang(0.01)])
async def test_a_broken_connection_is_a_connection_error_and_costs_nothing(
    model_server: ModelServer, client: openai.AsyncOpenAI, step: Step
) -> None:
    model_server.script(step)
    with pytest.raises(openai.APIConnectionError):
        await ask(client)
    assert model_server.usage == Totals()


async def test_an_answer_nobody_waited_for_is_not_counted(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(hang(0.3, then=answer("late")), hang(0.1, then=answer("in time")))
    with pytest.raises(openai.APITimeoutError):
        await ask(client, timeout=0.1)
    assert (await ask(client)).choices[0].message.content == "in time"
    await asyncio.sleep(0.3)
    assert model_server.usage.requests == 1


async def test_raw_bytes_come_as_they_are(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(raw(b"<html>", content_type="text/html"), raw(b'{"choices": 5', 200))
    assert str(await ask(client)) == "<html>"
    with pytest.raises(json.JSONDecodeError):
        await ask(client)


async def test_the_default_answers_when_the_script_is_over(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(answer("scripted"))
    model_server.default = lambda body: answer(body["messages"][-1]["content"].upper())
    contents = [(await ask(client)).choices[0].message.content for _ in range(3)]
    assert contents == ["scripted", "A RED FOR LAMB", "A RED FOR LAMB"]
    assert model_server.steps_left == 0


async def test_a_request_beyond_the_script_fails_the_test(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    with pytest.raises(openai.InternalServerError, match="no step left"):
        await ask(client)
    with pytest.raises(AssertionError, match=r"beyond the script.*a red for lamb"):
        model_server.verify()
    model_server.unscripted.clear()


async def test_a_malformed_history_is_refused_and_uses_no_step(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(answer("fine"))
    with pytest.raises(openai.BadRequestError, match="must be a response to a preceding"):
        await ask(client, USER, {"role": "tool", "tool_call_id": "x", "content": "{}"})
    with pytest.raises(AssertionError, match="OpenAI would refuse"):
        model_server.verify()
    model_server.violations.clear()
    assert model_server.steps_left == 1


def asking(*ids: str, content: str | None = None) -> JsonObject:
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [{**call("search_wines", {}), "id": id_} for id_ in ids],
    }


def tool(id_: str, content: str | None = "{}") -> JsonObject:
    return {"role": "tool", "tool_call_id": id_, "content": content}


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "system", "content": "Be kind"}, USER],
        [USER, asking("a", "b"), tool("b"), tool("a"), USER],
        [USER, asking("a", content="Let me look"), tool("a"), asking("b"), tool("b")],
        [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    ],
)
def test_a_history_that_openai_accepts(messages: list[JsonObject]) -> None:
    assert history_error(messages) is None


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "empty array"),
        ([USER, asking("a")], "did not have response messages: a"),
        ([USER, asking("a", "b"), tool("a"), USER], "did not have response messages: b"),
        ([USER, asking("a"), USER, tool("a")], "did not have response messages: a"),
        ([USER, asking("a"), tool("a"), tool("a")], "must be a response to a preceding"),
        ([USER, asking("a"), tool("b")], "must be a response to a preceding"),
        ([USER, asking("a", "a"), tool("a"), tool("a")], "an id is used twice"),
        ([USER, asking("a"), tool("a"), asking("a"), tool("a")], "an id is used twice"),
        ([USER, asking("")], "id, type, function.name or arguments are wrong"),
        ([USER, asking()], "got null"),
        ([USER, asking(content="x")], "empty array"),
        ([USER, {"role": "assistant", "content": None}], "got null"),
        ([USER, asking("a"), tool("a", None)], "got null"),
        ([{"role": "user", "content": {"a": 1}}], "expected a string or an array"),
        ([{"role": "wine", "content": "x"}], "'wine'"),
        ([USER | {"tool_calls": []}], "Unknown parameter"),
    ],
)
def test_a_history_that_openai_refuses(messages: list[JsonObject], problem: str) -> None:
    assert problem in (history_error(messages) or "")
    with pytest.raises(AssertionError, match=re.escape(problem)):
        ModelServer().check_history(messages)


OPEN_SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED_SCHEMA = OPEN_SCHEMA | {"required": ["a"], "additionalProperties": False}
SCHEMA_WITH_DEFAULT = CLOSED_SCHEMA | {"properties": {"a": {"type": "string", "default": ""}}}


def schema_format(schema: JsonObject) -> JsonObject:
    return {
        "type": "json_schema",
        "json_schema": {"name": "wine", "strict": True, "schema": schema},
    }


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"temperature": 0.1, "max_completion_tokens": 5}, None),
        ({"top_k": 5}, "Unknown parameter: 'top_k'"),
        ({"max_tokens": 5, "max_completion_tokens": 5}, "at the same time"),
        ({"tools": []}, "Invalid 'tools'"),
        ({"tool_choice": "auto"}, "only allowed when 'tools' are specified"),
        ({"response_format": {"type": "json_object"}}, "must contain the word 'json'"),
        ({"response_format": schema_format(CLOSED_SCHEMA)}, None),
        ({"response_format": schema_format(OPEN_SCHEMA)}, "'additionalProperties' is required"),
        ({"response_format": schema_format(SCHEMA_WITH_DEFAULT)}, "'default' is not permitted"),
    ],
)
def test_strict_rules(more: JsonObject, problem: str | None) -> None:
    found = strict_error({"model": "gpt-4o", "messages": [USER], **more})
    assert found is None if problem is None else problem in (found or "")


async def test_options_make_a_server_poorer(
    model_server: ModelServer, client: openai.AsyncOpenAI
) -> None:
    model_server.script(answer("ok"))
    model_server.strict = True
    with pytest.raises(openai.BadRequestError, match="word 'json'"):
        await ask(client, response_format={"type": "json_object"})
    model_server.rejects_response_format = model_server.knows_only_max_tokens = True
    with pytest.raises(openai.BadRequestError, match="'response_format' is not supported"):
        await ask(client, response_format={"type": "json_object"})
    with pytest.raises(openai.BadRequestError, match="'max_completion_tokens' is not supported"):
        await ask(client, max_completion_tokens=5)
    assert (await ask(client, max_tokens=5)).choices[0].message.content == "ok"


async def test_models_are_listed(client: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in client.models.list()] == ["gpt-4o", "gpt-4o-mini"]


# Langfuse


@pytest.fixture
def langfuse(otlp_receiver: OtlpReceiver) -> Iterator[Langfuse]:
    provider = TracerProvider()
    client = Langfuse(
        public_key=otlp_receiver.public_key,
        secret_key=otlp_receiver.secret_key,
        base_url=otlp_receiver.base_url,
        tracer_provider=provider,
        timeout=1,
    )
    yield client
    client.shutdown()
    provider.shutdown()
    client.api._client_wrapper.httpx_client.httpx_client.close()


async def test_spans_arrive_as_a_tree_with_what_was_recorded(
    otlp_receiver: OtlpReceiver, langfuse: Langfuse
) -> None:
    with langfuse.start_as_current_observation(name="turn", as_type="agent", input="hi") as turn:
        with langfuse.start_as_current_observation(
            name="llm.plan",
            as_type="generation",
            model="gpt-4o",
            usage_details={"input": 7, "output": 2},
            cost_details={"total": 0.5},
            metadata={"step": 1, "error_type": "schema"},
        ) as generation:
            generation.update(output={"a": 1}, level="WARNING")
        with langfuse.start_as_current_observation(name="tool.search", as_type="tool"):
            langfuse.start_observation(name="retrieve.wines", as_type="retriever").end()
        turn.score_trace(name="outcome", value="answered", score_id="s1", data_type="CATEGORICAL")
    langfuse.flush()
    await otlp_receiver.wait_for_spans(4)
    assert otlp_receiver.tree() == (
        "turn",
        "agent",
        [
            ("llm.plan", "generation", []),
            ("tool.search", "tool", [("retrieve.wines", "retriever", [])]),
        ],
    )
    root, plan = otlp_receiver.span("turn"), otlp_receiver.span("llm.plan")
    assert otlp_receiver.tree(root.trace_id)[0] == "turn"
    assert (root.input, root.level, root.parent_id) == ("hi", "DEFAULT", None)
    assert (plan.output, plan.level, plan.model) == ({"a": 1}, "WARNING", "gpt-4o")
    assert plan.metadata == {"step": 1, "error_type": "schema"}
    assert (plan.usage, plan.cost) == ({"input": 7, "output": 2}, {"total": 0.5})
    assert (plan.parent_id, plan.trace_id) == (root.span_id, root.trace_id)
    assert root.start <= plan.start <= plan.end <= root.end
    [score] = await otlp_receiver.wait_for_scores(1)
    assert (score["name"], score["value"], score["traceId"]) == (
        "outcome",
        "answered",
        root.trace_id,
    )


async def test_a_score_sent_again_replaces_the_first(
    otlp_receiver: OtlpReceiver, langfuse: Langfuse
) -> None:
    for value in (1, 0):
        langfuse.create_score(name="user_feedback", value=value, trace_id="a" * 32, score_id="s")
    langfuse.flush()
    await otlp_receiver.wait_for_scores(1)
    assert [score["value"] for score in otlp_receiver.scores] == [0]


def test_the_old_ingestion_takes_scores_too(otlp_receiver: OtlpReceiver) -> None:
    event = {"id": "e", "type": "score-create", "body": {"id": "s", "name": "outcome"}}
    response = httpx.post(
        f"{otlp_receiver.base_url}/api/public/ingestion", json={"batch": [event]}, auth=("a", "b")
    )
    assert response.json() == {"successes": [{"id": "e", "status": 201}], "errors": []}
    assert otlp_receiver.scores == [{"id": "s", "name": "outcome"}]


def test_the_client_finds_a_healthy_server_without_prompts(
    otlp_receiver: OtlpReceiver, langfuse: Langfuse
) -> None:
    assert langfuse.auth_check()
    assert langfuse.api.health.health().status == "OK"
    with pytest.raises(Exception, match="Prompt not found"):
        langfuse.get_prompt("sommelier", max_retries=0)
    assert httpx.get(f"{otlp_receiver.base_url}/api/public/projects").status_code == 401


@pytest.mark.parametrize(("mode", "status"), [("503", 503), ("500", 500), ("401", 401)])
def test_a_broken_server_answers_so_everywhere(
    otlp_receiver: OtlpReceiver, mode: Mode, status: int
) -> None:
    otlp_receiver.mode = mode
    root = f"{otlp_receiver.base_url}/api/public"
    assert httpx.get(f"{root}/health", auth=("a", "b")).status_code == status
    assert httpx.post(f"{root}/scores", json=[], auth=("a", "b")).status_code == status
    assert httpx.post(f"{root}/otel/v1/traces", auth=("a", "b")).status_code == status
    assert (otlp_receiver.spans, otlp_receiver.scores) == ([], [])


def test_a_black_hole_never_answers_and_still_stops(otlp_receiver: OtlpReceiver) -> None:
    otlp_receiver.mode = "black_hole"
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{otlp_receiver.base_url}/api/public/health", timeout=0.1)
    assert otlp_receiver.requests == ["GET /api/public/health"]


async def test_waiting_for_spans_says_which_came(otlp_receiver: OtlpReceiver) -> None:
    with pytest.raises(AssertionError, match=r"1 span\(s\) wanted, got \[\]"):
        await otlp_receiver.wait_for_spans(1, timeout=0.02)


def test_nothing_is_logged_by_a_server_that_stops_under_a_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), OtlpReceiver("black_hole") as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{server.base_url}/api/public/health", timeout=0.05)
        waiting = threading.Thread(target=_get_and_forget, args=(server.base_url,))
        waiting.start()
        deadline = time.monotonic() + 5
        while len(server.requests) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert len(server.requests) == 2
    waiting.join()
    assert caplog.records == []


def _get_and_forget(base_url: str) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{base_url}/api/public/health", timeout=5)
