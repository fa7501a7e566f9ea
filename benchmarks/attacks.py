"""Measure how long other chats wait for hostile texts, and the bot's memory under hostile files.

    python -m benchmarks.attacks

Texts of 4 kB, 100 kB and 1 MB go where the product takes them, cut as it cuts them: a message of a
user, an answer of a model, its draft, a reply, a trace. "Others wait" is the longest time in which
the event loop did nothing else. It stands beside that for a harmless text of the same size, and
beside a floor, with nothing to do. On a busy machine it is mostly the wait for a processor: the
processor time that the event loop took at once says what a quiet machine would take.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from agent import size_limits
from agent.engine.contract import Evidence
from agent.engine.messages import LLMResponse
from agent.engine.parsing import parse_draft, parse_final_response
from agent.engine.run import Run
from agent.fallback.answering import Fallback
from agent.markdown import escape
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.service import Sommelier
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.text import MAX_INLINE_CHARS, in_thread_if_long
from agent.tracing.masking import Masking
from benchmarks.hostile_files import measure_files
from bot.telegram.render import split_messages
from bot.telegram.sender import build_messages
from bot.turn import Destination
from tests.fakes import FakeCatalogue

SIZES = {"4 kB": 4_000, "100 kB": 100_000, "1 MB": 1_000_000}
HARMLESS = "A Barolo is good with lamb. "
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
    "escapes": "\\`",
    "quotes": "> a\n",
    "commas": ",",
    "words": "red not Barolo, ",
    "no spaces": "a",
}
TICK = 0.001
TRIES = 3
"""Of each text, the shortest wait counts: other programs interrupt this one."""
CATALOGUE = FakeCatalogue()
SOMMELIER_WITHOUT_MODEL = Sommelier(
    catalogue=CATALOGUE, fallback=Fallback(catalogue=CATALOGUE)
)


class Wait(NamedTuple):
    """How long others waited, and how much processor time the event loop took at once, in ms."""

    longest: float
    processor: float


async def longest_wait(work: Callable[[], Awaitable[object]]) -> Wait:
    """Return the longest time in which the event loop ran nothing but `work`."""
    longest, processor, is_done = 0.0, 0.0, False

    async def tick() -> None:
        nonlocal longest, processor
        while not is_done:
            began, used = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TICK)
            longest = max(longest, time.perf_counter() - began - TICK)
            processor = max(processor, time.thread_time() - used)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(5 * TICK)
    await work()
    is_done = True
    await ticking
    return Wait(1000 * longest, 1000 * processor)


async def take_message(text: str) -> None:
    await SOMMELIER_WITHOUT_MODEL.answer(text[: size_limits.MESSAGE_CHARS], Run(()))


def written_answer(text: str) -> str:
    answer = SommelierResponse.model_construct(
        response_type="informational", concern="none", intro=text, wines=[], closing=""
    )
    return SOMMELIER.write(answer)


async def take_answer(text: str) -> None:
    response = LLMResponse(content=written_answer(text)[: size_limits.ANSWER_CHARS])
    evidence = Evidence(user_texts=[text[: size_limits.MESSAGE_CHARS]])
    await parse_final_response(response, SOMMELIER, evidence)
    whole = LLMResponse(content=written_answer(text[: size_limits.ANSWER_CHARS // 3]))
    await parse_final_response(whole, SOMMELIER, evidence)


async def show_draft(text: str) -> None:
    draft = parse_draft(written_answer(text)[:MAX_INLINE_CHARS], SOMMELIER, Evidence())
    split_messages(draft.text)


async def send_reply(text: str) -> None:
    await build_messages(Destination(1), [text])
    answer = text[: size_limits.ANSWER_CHARS]
    markdown = await in_thread_if_long(len(answer), escape, answer)
    await build_messages(Destination(1), [markdown])


async def trace_text(text: str) -> None:
    await asyncio.to_thread(Masking().mask_text, text)


STEPS = {
    "message": take_message,
    "answer": take_answer,
    "draft": show_draft,
    "reply": send_reply,
    "trace": trace_text,
}


async def shortest_of(
    step: Callable[[str], Awaitable[None]], piece: str, length: int
) -> Wait:
    """Return how long others wait for a step with a text of `length`, in the best of some tries."""
    waits = []
    for number in range(TRIES):
        # A text of its own for each try, because some results are cached.
        text = f"{number} {piece * (length // len(piece) + 1)}"[:length]
        waits.append(await longest_wait(partial(step, text)))
    return min(waits)


async def measure_texts() -> None:
    async def nothing() -> None:
        await asyncio.sleep(0.2)

    for step in STEPS.values():  # loads what is loaded late
        await step(f"12 euros for **a** `b`, not a.com. {HARMLESS}" * 200)
    floor = await longest_wait(nothing)
    print(
        f"Others wait, ms (floor {floor.longest:.0f}); processor time of the loop, ms"
    )
    print("step     size       harmless  worst  processor  text")
    for name, step in STEPS.items():
        for size, length in SIZES.items():
            harmless = await shortest_of(step, HARMLESS, length)
            waits = {
                of: await shortest_of(step, piece, length)
                for of, piece in PIECES.items()
            }
            worst = max(waits, key=lambda of: waits[of])
            times = f"{harmless.longest:8.0f} {waits[worst].longest:6.0f}"
            most = max(wait.processor for wait in waits.values())
            print(f"{name:8} {size:10} {times}  {most:9.0f}  {worst}", flush=True)


if __name__ == "__main__":
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    asyncio.run(measure_texts())
    print(f"load {os.getloadavg()[0]:.1f}")
    measure_files()
