"""Measure how long other chats wait for hostile texts, and the bot's memory under hostile files.

    python -m benchmarks.attacks

Texts of 4 kB, 100 kB and 1 MB go where the product takes them: a message of a user, an answer of a
model, a reply, a trace. "Others wait" is the longest time in which the event loop did nothing else;
the floor is the same with nothing to do. Files are read as those of users are.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent.engine.contract import Evidence
from agent.engine.messages import LLMResponse
from agent.engine.parsing import parse_final_response
from agent.engine.run import Run
from agent.files import FileReader, Unreadable
from agent.markdown import escape
from agent.senses.sent_files import render_pages, to_data_url
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.tracing.masking import Masking
from agent.turn import clean_and_flag
from bot.telegram.render import split_messages
from db.wines.lists.cellar import read_cellar
from tests.attacks.hostile_files import (
    commas,
    large_picture,
    nested_pdf,
    swelling_pdf,
    swelling_workbook,
)

SIZES = {"4 kB": 4_000, "100 kB": 100_000, "1 MB": 1_000_000}
PIECES = {
    "line breaks": "\n",
    "marks": "a" + "\u0301\u0316" * 1_000,
    "telephone numbers": "0664 123 45 67, ",
    "amounts": "12.34 euros and 56.78 euros ",
    "names": "@ab ",
    "commands": "/a ",
    "addresses": "a.bc,",
    "formatting": "**a** _b_ ",
    "backticks": "`",
}
TICK = 0.001


async def longest_wait(work: Callable[[], Awaitable[object]]) -> float:
    """Return the longest time in seconds in which the event loop ran nothing but `work`."""
    longest, is_done = 0.0, False

    async def tick() -> None:
        nonlocal longest
        while not is_done:
            began = time.perf_counter()
            await asyncio.sleep(TICK)
            longest = max(longest, time.perf_counter() - began - TICK)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(5 * TICK)
    await work()
    is_done = True
    await ticking
    return longest


async def take_message(text: str) -> None:
    clean_and_flag(text, Run(()).span)


async def take_answer(text: str) -> None:
    answer = SommelierResponse.model_construct(
        response_type="informational", concern="none", intro=text, wines=[], closing=""
    )
    response = LLMResponse(content=SOMMELIER.write(answer))
    await parse_final_response(response, SOMMELIER, Evidence(user_texts=[text[:8_000]]))


async def send_reply(text: str) -> None:
    split_messages(escape(text[:33_000]))


async def trace_text(text: str) -> None:
    await asyncio.to_thread(Masking().text, text)


async def measure_texts() -> None:
    async def nothing() -> None:
        await asyncio.sleep(0.2)

    steps = {"message": take_message, "answer": take_answer, "reply": send_reply}
    steps |= {"trace": trace_text}
    await take_answer("First, everything is loaded: 12 euros.")
    print(f"Others wait, s (floor {await longest_wait(nothing):.3f})")
    print(f"{'':20}" + "".join(f"{size:>22}" for size in SIZES))
    for step, work in steps.items():
        cells = []
        for length in SIZES.values():
            waits = {}
            for name, piece in PIECES.items():
                text = (piece * (length // len(piece) + 1))[:length]
                waits[name] = await longest_wait(partial(work, text))
            worst = max(waits, key=lambda name: waits[name])
            cells.append(f"{waits[worst]:.3f} {worst}")
        print(f"{step:20}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


def begin_peak() -> int:
    """Return the memory in MB that is used now, from where the peak is counted."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(f"{name}:"))


async def measure_files() -> None:
    files = {
        "workbook that swells": (swelling_workbook(), read_cellar),
        "2 MB of commas": (commas(), read_cellar),
        "20 MB of commas": (commas(20), read_cellar),
        "49 megapixels": (large_picture(), to_data_url),
        "nested PDF": (nested_pdf(), render_pages),
        "PDF that swells": (swelling_pdf(), render_pages),
    }
    reader = FileReader()
    idle = begin_peak()

    async def read_all() -> None:
        async def read(data: bytes, parse: Callable[[bytes], object], user_id: int) -> None:
            async def download() -> bytes:
                return bytes(bytearray(data))

            with suppress(Unreadable):
                await reader.read(download, parse, user_id=user_id)

        await asyncio.gather(
            *(read(data, parse, number) for number, (data, parse) in enumerate(files.values()))
        )

    wait = await longest_wait(read_all)
    more = memory("VmHWM") - idle
    print(f"{len(files)} hostile files at once: {more} MB above {idle} MB")
    print(f"others wait {wait:.3f} s meanwhile")


if __name__ == "__main__":
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    asyncio.run(measure_texts())
    asyncio.run(measure_files())
