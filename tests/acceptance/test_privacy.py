"""What is kept of a person: told, sent to them and deleted, as they ask for it in Telegram."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from pydantic import SecretStr

from agent.tracing.records import compute_keyed_hash
from bot import app
from tests.acceptance.test_end_to_end import killed, running_here, traced_to
from tests.acceptance.test_languages import choose
from tests.commands import sommelier
from tests.doubles.bot_api import BotApi
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import JsonObject, eventually

ADA, BOB, GROUP = 7100471, 8200482, -9300493
WORDS = {ADA: "zanzibar", BOB: "quebracho"}


def files(folder: Path) -> bytes:
    """All bytes of the databases below a folder, their logs included."""
    return b"".join(each.read_bytes() for each in sorted(folder.rglob("*.sqlite3*")))


async def last(bot_api: BotApi, count: int, chat_id: int) -> JsonObject:
    await bot_api.wait_for_message(count, chat_id=chat_id)
    return bot_api.messages(chat_id)[count - 1]


async def said(bot_api: BotApi, words: str, chat_id: int) -> JsonObject:
    """The newest message that says this."""

    def saying() -> list[JsonObject]:
        return [each for each in bot_api.messages(chat_id) if words in str(each)]

    await eventually(lambda: bool(saying()))
    return saying()[-1]


async def talk(bot_api: BotApi) -> None:
    """Both write in private and in a group, rate an answer, and tell of an allergy."""
    for count, (user, word) in enumerate(WORDS.items(), 1):
        bot_api.say(f"a red for lamb, says {word}", chat_id=user)
        await last(bot_api, 1, user)
        (answer,) = [
            each for each in bot_api.messages(user) if each.get("reply_markup")
        ]
        asked = f"/ask@sommelier_test_bot what is tannin, {word}?"
        bot_api.say(asked, chat_id=GROUP, user_id=user)
        await last(bot_api, count, GROUP)
        rows = answer["reply_markup"]["inline_keyboard"]
        (like,) = [b["callback_data"] for row in rows for b in row if b["text"] == "👍"]
        bot_api.press(answer, like)
        bot_api.say(f"I am allergic to egg, {word}", chat_id=user)
        await said(bot_api, "read the label", user)


async def people(
    *arguments: str, environment: Mapping[str, str]
) -> CompletedProcess[str]:
    """What the command of operators says."""
    return await asyncio.to_thread(
        sommelier, "people", *arguments, environment=environment
    )


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whom to forget is looked for every few seconds; here more often."""
    monkeypatch.setattr(app, "FORGET_PEOPLE_SECONDS", 0.2)


async def test_a_user_who_asks_to_be_forgotten_is_nowhere_and_others_stay(
    bot_api: BotApi,
    otlp_receiver: OtlpReceiver,
    environment: dict[str, str],
    looks_often: None,
) -> None:
    folder = Path(environment["XDG_DATA_HOME"])
    marks = [*map(str.encode, (str(ADA), WORDS[ADA])), ADA.to_bytes(4, "big")]
    async with running_here(bot_api, environment, **traced_to(otlp_receiver)):
        await talk(bot_api)
        await otlp_receiver.wait_for_spans(26)
        assert all(mark in files(folder) for mark in marks)
        assert WORDS[ADA] in str(otlp_receiver.spans)
        bot_api.say("/privacy", chat_id=ADA)
        told = await said(bot_api, "What I store about you", ADA)
        assert "answer (when, how long it took): 90 days" in told["text"]
        assert "also in Langfuse" in told["text"]
        bot_api.say("/export", chat_id=ADA)
        await said(bot_api, "sommelier.json", ADA)
        (sent,) = [each.files["document"] for each in bot_api.calls_of("sendDocument")]
        exported = json.loads(sent.data)
        assert {"chats", "facts", "messages", "traces", "turns"} <= {
            name for name, rows in exported.items() if rows
        }
        assert WORDS[ADA] in sent.data.decode()
        assert WORDS[BOB] not in sent.data.decode()

        bot_api.say("/forget", chat_id=GROUP, user_id=ADA)
        bot_api.say("/forget@sommelier_test_bot", chat_id=GROUP, user_id=ADA)
        await said(bot_api, "in our private chat", GROUP)
        bot_api.say("/forget", chat_id=ADA)
        sure = await said(bot_api, "cannot be undone", ADA)
        assert WORDS[ADA].encode() in files(folder)
        bot_api.press(
            sure, sure["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
        )
        done = await said(bot_api, "Deleted.", ADA)
        assert "Langfuse deletes its copy within minutes" in done["text"]
        await eventually(lambda: not any(mark in files(folder) for mark in marks))
        await eventually(
            lambda: (
                compute_keyed_hash("user", ADA, SecretStr("sommelier"))
                not in str(otlp_receiver.spans)
            )
        )
        assert WORDS[ADA] not in str(otlp_receiver.spans) + str(otlp_receiver.scores)
        assert WORDS[BOB].encode() in files(folder)
        assert WORDS[BOB] in str(otlp_receiver.spans)
    assert not any(mark in files(folder) for mark in marks)

    # An operator does it for a user who asks them.
    known = environment | traced_to(otlp_receiver)
    shown = await people("export", str(BOB), environment=known)
    kept = {"chats", "facts", "messages", "outbox", "scores", "traces", "turns"}
    assert {name for name, rows in json.loads(shown.stdout).items() if rows} >= kept
    assert WORDS[BOB] in shown.stdout
    otlp_receiver.mode = "503"
    away = await people("forget", str(ADA), "--yes", environment=known)
    assert away.stdout.startswith("Deleted.")
    assert "Traces in Langfuse are still there, and deleted later" in away.stderr
    otlp_receiver.mode = "ok"
    gone = await people("forget", str(BOB), "--yes", environment=known)
    assert (gone.returncode, gone.stderr) == (0, "")
    assert WORDS[BOB].encode() not in files(folder)
    assert WORDS[BOB] not in str(otlp_receiver.spans) + str(otlp_receiver.scores)


async def test_traces_elsewhere_are_deleted_after_a_kill_and_once_they_can_be(
    bot_api: BotApi,
    otlp_receiver: OtlpReceiver,
    environment: dict[str, str],
    looks_often: None,
) -> None:
    settings = traced_to(otlp_receiver)
    folder = Path(environment["XDG_DATA_HOME"])
    with killed(bot_api, environment, **settings):
        bot_api.say(f"a red for lamb, says {WORDS[ADA]}", chat_id=ADA)
        await last(bot_api, 1, ADA)
        await otlp_receiver.wait_for_spans(3)
        otlp_receiver.mode = "503"
        bot_api.say("/forget", chat_id=ADA)
        sure = await last(bot_api, 2, ADA)
        bot_api.press(
            sure, sure["reply_markup"]["inline_keyboard"][0][1]["callback_data"]
        )
        assert "Nothing was deleted" in str(await last(bot_api, 3, ADA))
        bot_api.press(
            sure, sure["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
        )
        await last(bot_api, 4, ADA)
        await eventually(lambda: WORDS[ADA].encode() not in files(folder))
    assert WORDS[ADA] in str(otlp_receiver.spans)
    otlp_receiver.mode = "ok"
    async with running_here(bot_api, environment, **settings):
        await eventually(lambda: WORDS[ADA] not in str(otlp_receiver.spans))


async def test_of_who_wants_numbers_alone_no_words_are_in_traces(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment, **traced_to(otlp_receiver)):
        bot_api.say("/settings", chat_id=ADA)
        await last(bot_api, 1, ADA)
        await choose(bot_api, ADA, "Records: statistics only")
        for user, word in WORDS.items():
            bot_api.say(f"a red for lamb, says {word}", chat_id=user)
        await eventually(
            lambda: sum(span.name == "turn" for span in otlp_receiver.spans) == 2
        )
    assert WORDS[BOB] in str(otlp_receiver.spans)
    assert WORDS[ADA] not in str(otlp_receiver.spans)
