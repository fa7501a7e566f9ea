"""`python -m benchmarks.profile`: through which of our modules and functions one turn runs.

The bot with its catalogue and its traces, turns in memory, a scripted model and a scripted
Telegram: after a first turn that loads what is loaded once, one turn with one tool is looked at.
"""

import asyncio
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from agent.engine.llm import LLMService
from agent.engine.run import Run
from agent.house_sommelier import HouseSommelier
from agent.sommelier.service import Sommelier
from agent.tracing.recorder import Recorder
from bot.telegram.feedback import rating
from db.engine import Sessions
from db.repositories.people import SqlMessageRepository
from db.repositories.turns import SqlTurnRepository
from db.wines.catalogue import SqlCatalogue
from db.wines.importing import load_starter
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.running import running

ROOT = Path(__file__).parents[1]
ROOMS = ("agent", "bot", "db")
INFORMATIONAL = {"response_type": "informational", "intro": "Yes, there are some.", "closing": ""}


def main() -> None:
    """Run two turns, and print what the second one ran through."""
    called: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(ROOT)):
            module = path.removeprefix(f"{ROOT}/").removesuffix(".py").replace("/", ".")
            if module.startswith(ROOMS):
                called.add((module, frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    with tempfile.TemporaryDirectory() as folder, BotApi() as telegram, ModelServer() as model:
        os.chdir(folder)
        asyncio.run(turns(telegram, model, called))
    sys.setprofile(None)
    modules = Counter(module for module, _ in called)
    for module, count in sorted(modules.items()):
        print(f"{count:4} {module}")
    print(f"{len(modules)} modules, {len(called)} functions")


async def turns(telegram: BotApi, model: ModelServer, called: set[tuple[str, str]]) -> None:
    """Two turns; of the first nothing is kept in `called`."""
    engine = await migrated_sqlite(Path("profile.sqlite3"))
    sessions = Sessions(engine)
    await load_starter(sessions)
    messages, turns = SqlMessageRepository(sessions), SqlTurnRepository(sessions)
    sommelier = Sommelier(catalogue=SqlCatalogue(sessions), house=HouseSommelier())
    service = LLMService(model="gpt-4o", api_key="bench", base_url=model.base_url)
    kept: dict[str, Any] = {"keep": turns.record, "rating": rating}
    search = tool_call("search_wines", {"styles": ["red"], "foods": ["lamb"]})
    async with running(telegram, sommelier, messages, Recorder(), run=Run([service]), **kept):
        for number in (1, 2):
            model.script(search, answer_json(INFORMATIONAL))
            called.clear()
            telegram.say("A red for lamb, please")
            await telegram.wait_for_message(number, timeout=60)
            await asyncio.sleep(1)
        seen = set(called)
    await service.close()
    await engine.dispose()
    called.clear()
    called.update(seen)


if __name__ == "__main__":
    main()
