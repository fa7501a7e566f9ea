"""Texts made to hold everyone up, through the running bot: a second chat is answered meanwhile.

How long a hostile turn holds the event loop is counted in CPU of its thread, beside that of an
ordinary turn in the same run.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import thread_time

from agent.engine.llm import LLMService
from agent.engine.run import Run
from agent.fallback.words import lexicon
from agent.sommelier.service import Sommelier
from db.engine import Sessions
from db.repositories.people import SqlMessageRepository
from db.wines.catalogue import SqlCatalogue
from db.wines.importing import load_starter
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import ModelServer, answer, answer_json
from tests.running import running

OTHER = 4321
MOST = 25
"""How many ordinary turns a hostile one may hold the event loop; it was hundreds."""
ORDINARY = {"response_type": "informational", "intro": "Yes, there are some.", "closing": ""}
FROM_MODELS = {
    "12,000 letters": "A" * 12_000,
    "98 kB": "A" * 98_000,
    "names": "Château Aa " * 5_000,
    "quotes": "“a " * 20_000,
    "brackets": "[" * 20_000,
    "JSON5": "{" + "a:[1,],'b':" * 5_000,
    "call": "functions." + "_" * 20_000,
    "stops": ".!?" * 20_000,
    "mentions": "@a " * 20_000,
    "lines": "* a\n" * 15_000,
    "prices": "€1" * 30_000,
}
FIELDS = {
    f"{name} in a field": json.dumps(ORDINARY | {"intro": FROM_MODELS[name][:60_000]})
    for name in ("12,000 letters", "names", "quotes", "stops", "mentions", "lines", "prices")
}
FROM_PEOPLE = {
    "underscores": ["red wine " + "_" * 4080],
    "newlines": ["a" + "\n" * 4000] * 40,
    "letters": ["A" * 4096],
    "numbers": ["12 " * 1365],
    "prices": ["€1 or 2 " * 500],
    "marks": ["e" + "\u0301" * 4000],
}


@asynccontextmanager
async def bot(bot_api: BotApi, tmp_path: Path, run: Run, burst: float = 0) -> AsyncIterator[None]:
    engine = await migrated_sqlite(tmp_path / "test.sqlite3")
    sessions = Sessions(engine)
    await load_starter(sessions)
    lexicon()  # its words are loaded once
    sommelier = Sommelier(catalogue=SqlCatalogue(sessions))
    messages = SqlMessageRepository(sessions)
    async with running(bot_api, sommelier, messages, run=run, burst=burst):
        yield
    await engine.dispose()


async def _cost(bot_api: BotApi, texts: list[str], seen: int) -> float:
    """The CPU of the event loop for a turn in one chat, while a second one asks and is answered."""
    start = thread_time()
    for text in texts:
        bot_api.say(text)
    bot_api.say("Do you have Chinon?", chat_id=OTHER)
    await bot_api.wait_for_message(seen, chat_id=OTHER, timeout=120)
    await bot_api.wait_for_message(seen, chat_id=CHAT, timeout=120)
    return thread_time() - start


async def test_no_answer_of_a_model_holds_others_up(
    bot_api: BotApi, model_server: ModelServer, tmp_path: Path
) -> None:
    llm = LLMService(model="m", base_url=model_server.base_url)
    model_server.default = answer_json(ORDINARY)
    async with bot(bot_api, tmp_path, Run([llm])):
        await _cost(bot_api, ["Hello"], 1)
        ordinary = await _cost(bot_api, ["A red?"], 2)
        hostile = {}
        for turn, (name, said) in enumerate((FROM_MODELS | FIELDS).items(), 3):
            model_server.default = answer(said)
            hostile[name] = await _cost(bot_api, ["A white?"], turn) / ordinary
    await llm.close()
    assert {name: cost for name, cost in hostile.items() if cost >= MOST} == {}


async def test_no_message_holds_others_up(bot_api: BotApi, tmp_path: Path) -> None:
    async with bot(bot_api, tmp_path, Run(), burst=0.3):
        await _cost(bot_api, ["A red for lamb, please"], 1)
        ordinary = await _cost(bot_api, ["And a white for fish?"], 2)
        hostile = {
            name: await _cost(bot_api, said, turn) / ordinary
            for turn, (name, said) in enumerate(FROM_PEOPLE.items(), 3)
        }
    assert {name: cost for name, cost in hostile.items() if cost >= MOST} == {}
