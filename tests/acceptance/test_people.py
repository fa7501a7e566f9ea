"""What is kept of a person: shown and deleted, in the database and in Langfuse."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

from pydantic import SecretStr

from agent.tracing.records import keyed_hash
from tests.acceptance.test_end_to_end import running_here
from tests.commands import sommelier as in_a_process
from tests.doubles.bot_api import BotApi
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import JsonObject, eventually

ADA, BOB, GROUP = 7100471, 8200482, -9300493
WORDS = {ADA: "zanzibar", BOB: "quebracho"}


def dump(folder: Path) -> str:
    """All that the databases below a folder hold, as text."""

    def rows() -> Iterator[str]:
        for file in folder.rglob("*.sqlite3"):
            with sqlite3.connect(file) as database:
                tables = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
                for (table,) in tables.fetchall():
                    yield from map(str, database.execute(f"SELECT * FROM {table}"))

    return "\n".join(rows())


async def test_a_person_who_is_forgotten_is_nowhere_any_more_and_others_are(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, environment: dict[str, str]
) -> None:
    langfuse = {
        "LANGFUSE_PUBLIC_KEY": otlp_receiver.public_key,
        "LANGFUSE_SECRET_KEY": otlp_receiver.secret_key,
        "LANGFUSE_BASE_URL": otlp_receiver.base_url,
    }
    async with running_here(bot_api, environment, **langfuse):
        for count, (user, word) in enumerate(WORDS.items(), 1):
            bot_api.say(f"a red for lamb, says {word}", chat_id=user)
            (answer,) = [m for m in await _messages(bot_api, user) if m.get("reply_markup")]
            bot_api.say(
                f"/ask@sommelier_test_bot what is tannin, {word}?", chat_id=GROUP, user_id=user
            )
            await bot_api.wait_for_message(count, chat_id=GROUP, timeout=60)
            row = answer["reply_markup"]["inline_keyboard"][-1]
            bot_api.press(answer, row[0]["callback_data"])
            bot_api.say(f"I am allergic to egg, {word}", chat_id=user)
            await bot_api.wait_for_message(2, chat_id=user, timeout=60)
        await eventually(
            lambda: len({span.trace_id for span in otlp_receiver.spans}) == 6,
            seconds=60,
            otherwise=lambda: str(otlp_receiver.spans),
        )
    folder = Path(environment["XDG_DATA_HOME"])
    before = dump(folder)
    for user, word in WORDS.items():
        assert word in before
        assert str(user) in before
        assert word in str(otlp_receiver.spans)

    async def people(*arguments: str) -> str:
        done = await sommelier("people", *arguments, environment=environment | langfuse)
        assert done.returncode == 0, done.stderr
        return done.stdout

    exported: dict[str, list[JsonObject]] = json.loads(await people("export", str(ADA)))
    kept = {"chats", "facts", "messages", "outbox", "scores", "traces", "turns"}
    assert {name for name, rows in exported.items() if rows} >= kept
    assert WORDS[ADA] in str(exported)
    assert WORDS[BOB] not in str(exported)

    said = await people("forget", str(ADA), "--yes")
    assert "3 turns" in said
    assert "Langfuse was told to delete 3 traces" in said
    after = dump(folder)
    for text in (str(ADA), WORDS[ADA], keyed_hash("user", ADA, SecretStr("sommelier"))):
        assert text not in after
        assert text not in str(otlp_receiver.spans) + str(otlp_receiver.scores)
    assert {line for line in before.splitlines() if WORDS[BOB] in line} <= {*after.splitlines()}
    assert str(BOB) in after
    assert WORDS[BOB] in str(otlp_receiver.spans)
    assert "nothing, there was nothing" in await people("forget", str(ADA), "--yes")


async def test_while_langfuse_is_away_it_is_said_what_is_still_there(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, environment: dict[str, str]
) -> None:
    langfuse = {
        "LANGFUSE_PUBLIC_KEY": otlp_receiver.public_key,
        "LANGFUSE_SECRET_KEY": otlp_receiver.secret_key,
        "LANGFUSE_BASE_URL": otlp_receiver.base_url,
    }
    otlp_receiver.mode = "503"
    done = await sommelier("people", "forget", "1", "--yes", environment=environment | langfuse)
    assert done.returncode == 1
    assert "their traces in Langfuse are still there" in done.stderr
    assert "run this again" in done.stderr


async def sommelier(*arguments: str, environment: dict[str, str]) -> CompletedProcess[str]:
    return await asyncio.to_thread(in_a_process, *arguments, environment=environment)


async def _messages(bot_api: BotApi, chat_id: int) -> list[JsonObject]:
    await bot_api.wait_for_message(1, chat_id=chat_id, timeout=60)
    return bot_api.messages(chat_id)
