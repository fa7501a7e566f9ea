"""The picture of the README: `python -m benchmarks.conversation` writes docs/conversation.svg.

The product answers one message, with a model that streams; what stood in the chat while it did and
at the end is drawn as a telephone shows it.
"""

import asyncio
import html
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import ImageFont

from tests.doubles.bot_api import TOKEN, BotApi
from tests.doubles.model_server import ModelServer, Step, answer_json, hang, paced, tool_call
from tests.doubles.server import JsonObject, eventually
from tests.running import whole_bot

PICTURE: Final = Path(__file__).parents[1] / "docs" / "conversation.svg"
GUEST: Final = 4711
QUESTION: Final = "something red for lamb, under 25 euros"
WANTED: Final = {"styles": ["red"], "foods": ["lamb"], "max_price": 25, "limit": 2}
SAID: Final = (
    "Firm and savoury, with the tannin that lamb takes.",
    "Rounder and softer, for meat with a dark sauce.",
)
INTRO: Final = "For your lamb, something with grip."
CLOSING: Final = "Open it an hour before."
TOKENS_A_SECOND: Final = 25
STOP: Final = "Stop"

WIDTH, GAP, PAD, TEXT, LINE = 276, 14, 10, 12.5, 17
FONT: Final = ImageFont.load_default(TEXT)
FAMILY: Final = "-apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif"
SPARE: Final = 0.94
"""How much of a line is filled: fonts differ in width."""


@dataclass(frozen=True)
class Bubble:
    """A message: its text with what is bold in it, and the buttons under it."""

    message: JsonObject
    is_own: bool = False
    rows: Sequence[Sequence[str]] = ()


def model_says(body: JsonObject) -> Step:
    """Look wines up, and recommend what was found."""
    last = body["messages"][-1]
    if last["role"] != "tool":
        return tool_call("search_wines", WANTED)
    ids = [part.split('"')[0] for part in last["content"].split('"wine_id":"')[1:]]
    wines = [{"wine_id": w, "description": s} for w, s in zip(ids, SAID, strict=False)]
    told = {"response_type": "recommendation", "intro": INTRO, "wines": wines, "closing": CLOSING}
    return hang(0.8, paced(answer_json(told), TOKENS_A_SECOND))


async def seen() -> list[tuple[str, list[Bubble]]]:
    """What the chat shows: while it is searched, while it is written, and at the end."""
    with (
        BotApi() as bot_api,
        ModelServer(default=model_says, streaming="yes") as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        settings = {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": bot_api.base_url,
            "OPENAI_API_KEY": "picture",
            "OPENAI_BASE_URL": model.base_url,
            "DATABASE_URL": f"sqlite+aiosqlite:///{folder}/picture.sqlite3",
        }

        async def forming(words: str) -> Bubble:
            await eventually(
                lambda: words in str((bot_api.draft(GUEST) or {}).get("text")),
                seconds=60,
                otherwise=lambda: str(bot_api.draft(GUEST)),
            )
            return Bubble(dict(bot_api.draft(GUEST) or {}), rows=((STOP,),))

        asked = Bubble({"text": QUESTION}, is_own=True)
        async with whole_bot(settings):
            bot_api.say(QUESTION, chat_id=GUEST)
            searching = await forming("Searching")
            writing = await forming(SAID[0])
            await bot_api.wait_for_message(1, chat_id=GUEST, timeout=60)
            await asyncio.sleep(0.5)
            answer = bot_api.messages(GUEST)[-1]
        keyboard = answer["reply_markup"]["inline_keyboard"]
        rows = [[each["text"] for each in row] for row in keyboard]
        return [
            ("It searches …", [asked, searching]),
            ("… writes: only what is checked …", [asked, writing]),
            ("… and answers.", [asked, Bubble(answer, rows=rows)]),
        ]


def lines(message: JsonObject, width: float) -> Iterator[list[tuple[str, bool]]]:
    """A message in lines of that width: words, each with whether it is bold."""
    text, at = str(message["text"]), 0
    bold = [
        (each["offset"], each["offset"] + each["length"])
        for each in message.get("entities", ())
        if each["type"] == "bold"
    ]
    for paragraph in text.split("\n"):
        line, used = list[tuple[str, bool]](), 0.0
        for word in paragraph.split(" "):
            needed = FONT.getlength(f"{word} ")
            if line and used + needed > width * SPARE:
                yield line
                line, used = [], 0.0
            line.append((word, any(start <= at < end for start, end in bold)))
            used += needed
            at += len(word) + 1
        yield line


def drawn_line(line: Sequence[tuple[str, bool]], x: float, y: float) -> str:
    """A line of a message."""
    words = "".join(
        f'<tspan font-weight="{600 if is_bold else 400}">{html.escape(word)} </tspan>'
        for word, is_bold in line
    )
    return f'<text x="{x:g}" y="{y:g}" xml:space="preserve">{words}</text>'


def drawn_button(label: str, x: float, y: float, width: float) -> str:
    """A button under a message."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="26" rx="7" fill="#b9cfe4"/>'
        f'<text x="{x + width / 2:g}" y="{y + 17.5:g}" text-anchor="middle" fill="#17324d"'
        f' font-size="11.5">{html.escape(label)}</text>'
    )


def drawn_bubble(bubble: Bubble, left: float, top: float) -> tuple[str, float]:
    """A message, and where the next begins."""
    widest = WIDTH - 2 * GAP - (44 if bubble.is_own else 0)
    told = list(lines(bubble.message, widest - 2 * PAD))
    height, x = len(told) * LINE + 2 * PAD - 4, left + GAP + (44 if bubble.is_own else 0)
    colour = "#e4f8cd" if bubble.is_own else "#ffffff"
    parts = [
        f'<rect x="{x:g}" y="{top:g}" width="{widest:g}" height="{height:g}" rx="11"'
        f' fill="{colour}"/>'
    ]
    parts += [
        drawn_line(line, x + PAD, top + PAD + 10 + number * LINE)
        for number, line in enumerate(told)
    ]
    below = top + height + 4
    for row in bubble.rows:
        width = (widest - 4 * (len(row) - 1)) / len(row)
        parts += [
            drawn_button(label, x + number * (width + 4), below, width)
            for number, label in enumerate(row)
        ]
        below += 30
    return "\n".join(parts), below + 6


def picture(phones: Sequence[tuple[str, Sequence[Bubble]]]) -> str:
    """The chats side by side."""
    parts, lowest = list[str](), 0.0
    for number, (_, bubbles) in enumerate(phones):
        below = 40.0
        for bubble in bubbles:
            shown, below = drawn_bubble(bubble, number * (WIDTH + GAP), below)
            parts.append(shown)
        lowest = max(lowest, below)
    parts = [_framed(title, number, lowest + 6) for number, (title, _) in enumerate(phones)] + parts
    width, height = len(phones) * (WIDTH + GAP) - GAP, lowest + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' font-family="{FAMILY}" font-size="{TEXT}" fill="#1c2733">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _framed(title: str, number: int, height: float) -> str:
    left = number * (WIDTH + GAP)
    return (
        f'<rect x="{left:g}" y="0" width="{WIDTH}" height="{height:g}" rx="16" fill="#d5e3ee"/>'
        f'<text x="{left + WIDTH / 2:g}" y="25" text-anchor="middle" font-weight="600"'
        f' fill="#4a6478">{html.escape(title)}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(asyncio.run(seen())), "utf-8")
    sys.stdout.write(f"{PICTURE} is written\n")
