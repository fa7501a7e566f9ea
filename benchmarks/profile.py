"""`python -m benchmarks.profile`: through which of our modules and functions one turn runs.

The bot as it is started, with its catalogue and its traces, a scripted model and a scripted
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

from bot.app import run_bot
from config import settings_of
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, tool_call

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
    settings = settings_of(
        {
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_BASE_URL": telegram.base_url,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "bench",
            "BURST_SECONDS": "0",
        }
    )
    stop = asyncio.Event()
    running = asyncio.create_task(run_bot(settings, stop))
    search = tool_call("search_wines", {"styles": ["red"], "foods": ["lamb"]})
    for number in (1, 2):
        model.script(search, answer_json(INFORMATIONAL))
        called.clear()
        telegram.say("A red for lamb, please")
        await telegram.wait_for_message(number, timeout=60)
        await asyncio.sleep(1)
    seen = set(called)
    stop.set()
    await running
    called.clear()
    called.update(seen)


if __name__ == "__main__":
    main()
