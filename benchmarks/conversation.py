"""The picture of the README: `python -m benchmarks.conversation` writes docs/conversation.svg.

The product answers a message, with a model that streams; what stood in the chat while it did and at
the end is drawn as a telephone shows it. Below that it is shown labels and a wine list, and told of
bottles.
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
from tests.pictures import drawn, read
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
OURS: Final = {"producer": "Trimbach", "name": "Riesling Réserve", "vintage": 2021}
ANOTHERS: Final = {"producer": "Weingut Eulenhof", "name": "Spätburgunder", "vintage": 2019}
PAGE: Final = (
    {"producer": "Trimbach", "name": "Riesling Réserve", "vintage": 2021, "price": 48},
    {"producer": "Ca' del Gallo", "name": "Barolo", "vintage": 2016, "price": 95},
    {"producer": "Bodega Olmo", "name": "Rioja Crianza", "vintage": 2019, "price": 31},
    {"producer": "Weingut Eulenhof", "name": "Spätburgunder", "vintage": 2020, "price": 44},
)
OF_PAGE: Final = "what of this with duck, under 50?"
PICKED: Final = {
    "list#4": "Light and fresh: its acidity cuts the fat.",
    "list#3": "Fuller, with spice for a dark sauce.",
    "list#1": "If it may be white.",
}
OWNED: Final = (
    "I bought six Barolo 2016 at 45",
    "no, seven",
    "drank one, wonderful",
    "what of my own with the duck tonight?",
)

WIDTH, GAP, PAD, TEXT, LINE = 276, 14, 10, 12.5, 17
PHOTO: Final = 92
IN_A_ROW: Final = 3
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
    photo: Sequence[str] = ()


def model_says(body: JsonObject) -> Step:
    """Read what is shown, look wines up, and recommend what was found."""
    last = body["messages"][-1]
    if isinstance(last["content"], list):
        return next(READINGS)
    if "list#" in last["content"]:
        found = [{"wine_id": id, "description": said} for id, said in PICKED.items()]
        told = {"response_type": "recommendation", "intro": "From your list:", "wines": found}
        return answer_json({**told, "closing": ""})
    if last["role"] != "tool":
        return tool_call("search_wines", WANTED)
    ids = [part.split('"')[0] for part in last["content"].split('"wine_id":"')[1:]]
    wines = [{"wine_id": w, "description": s} for w, s in zip(ids, SAID, strict=False)]
    told = {"response_type": "recommendation", "intro": INTRO, "wines": wines, "closing": CLOSING}
    return hang(0.8, paced(answer_json(told), TOKENS_A_SECOND))


READINGS: Final = iter([read("labels", OURS), read("labels", ANOTHERS), read("wine_list", *PAGE)])


def written_on(wine: JsonObject) -> tuple[str, ...]:
    """The lines of a label."""
    return str(wine["producer"]), str(wine["name"]), str(wine["vintage"])


async def seen() -> list[tuple[str, list[Bubble]]]:
    """What the chat shows: searching, writing, answering; of labels, of a list, of bottles."""
    with (
        BotApi() as bot_api,
        ModelServer(default=model_says, streaming="yes") as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        settings = {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": bot_api.base_url,
            "OPENAI_API_KEY": "picture",
            "VISION_MODEL": "gpt-4o",
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
            labels = [await shown(bot_api, written_on(each)) for each in (OURS, ANOTHERS)]
            of_page = await shown(bot_api, [line_of(each) for each in PAGE], OF_PAGE)
            owned = [await said(bot_api, each) for each in OWNED]
        keyboard = answer["reply_markup"]["inline_keyboard"]
        rows = [[each["text"] for each in row] for row in keyboard]
        return [
            ("It searches …", [asked, searching]),
            ("… writes: only what is checked …", [asked, writing]),
            ("… and answers.", [asked, Bubble(answer, rows=rows)]),
            ("It reads labels …", [bubble for pair in labels for bubble in pair]),
            ("… chooses from a wine list …", of_page),
            ("… and keeps your own cellar.", [bubble for pair in owned for bubble in pair]),
        ]


def line_of(wine: JsonObject) -> str:
    """A line of the wine list, its price behind a tab."""
    return f"{' '.join(written_on(wine))}\t{wine['price']}"


async def answered(bot_api: BotApi, asked: Bubble, before: int) -> list[Bubble]:
    """A message, and the answer to it."""
    await bot_api.wait_for_message(before + 1, chat_id=GUEST, timeout=60)
    await asyncio.sleep(0.5)
    return [asked, Bubble(bot_api.messages(GUEST)[-1])]


async def shown(bot_api: BotApi, on_it: Sequence[str], caption: str = "") -> list[Bubble]:
    """A photo with these lines, and the answer to it."""
    before = len(bot_api.messages(GUEST))
    bot_api.send("photo", drawn(on_it), GUEST, caption)
    return await answered(bot_api, Bubble({"text": caption}, is_own=True, photo=on_it), before)


async def said(bot_api: BotApi, words: str) -> list[Bubble]:
    """A message in words, and the answer to it."""
    before = len(bot_api.messages(GUEST))
    bot_api.say(words, chat_id=GUEST)
    return await answered(bot_api, Bubble({"text": words}, is_own=True), before)


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


def drawn_photo(on_it: Sequence[str], x: float, y: float, width: float) -> str:
    """A photo on a table, as high as PHOTO: of a bottle, or of a page of a wine list."""
    shape = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{PHOTO}" rx="8"'
    name = f"photo-{x:g}-{y:g}".replace(".", "-")
    draw = drawn_page if "\t" in on_it[0] else drawn_bottle
    return (
        f'<clipPath id="{name}"><rect {shape}/></clipPath><g clip-path="url(#{name})">'
        f'<rect {shape} fill="#6b5442"/>'
        f'<rect x="{x:g}" y="{y + PHOTO - 16:g}" width="{width:g}" height="16" fill="#4d3b2e"/>'
        f"{draw(on_it, x, y, width)}</g>"
    )


def drawn_bottle(on_it: Sequence[str], x: float, y: float, width: float) -> str:
    """A bottle from its shoulders on, with these three lines on its label."""
    middle = x + width / 2
    sizes = ((8, 400, "#7a5a2c"), (10.5, 700, "#2d2018"), (9, 400, "#7a5a2c"))
    told = "".join(
        f'<text x="{middle:g}" y="{y + 35 + 15 * at:g}" text-anchor="middle" font-size="{size}"'
        f' font-weight="{weight}" fill="{ink}" font-family="Georgia, Times, serif">'
        f"{html.escape(line)}</text>"
        for at, (line, (size, weight, ink)) in enumerate(zip(on_it, sizes, strict=True))
    )
    return (
        f'<rect x="{middle - 66:g}" y="{y - 20:g}" width="132" height="{PHOTO + 14}" rx="5"'
        f' fill="#16281f"/><rect x="{middle - 60:g}" y="{y:g}" width="4" height="{PHOTO - 10}"'
        f' fill="#3b5a47"/><rect x="{middle - 62:g}" y="{y + 14:g}" width="124" height="62"'
        f' fill="#f6efdf"/><rect x="{middle - 58:g}" y="{y + 18:g}" width="116" height="54"'
        f' fill="none" stroke="#c2a25a"/>{told}'
    )


def drawn_page(on_it: Sequence[str], x: float, y: float, width: float) -> str:
    """A page with these lines, the prices at its right edge."""
    page = f'x="{x + 8:g}" y="{y + 8:g}" width="{width - 16:g}" height="{PHOTO}"'
    parts = [f'<rect {page} fill="#f8f3e6"/>']
    for at, line in enumerate(on_it):
        name, _, price = line.partition("\t")
        place = f'y="{y + 26 + 17 * at:g}" font-size="8.3" font-family="Georgia, Times, serif"'
        parts.append(
            f'<text x="{x + 16:g}" {place} fill="#2d2018">{html.escape(name)}</text>'
            f'<text x="{x + width - 16:g}" {place} fill="#7a5a2c" text-anchor="end">{price}</text>'
        )
    return "".join(parts)


def drawn_bubble(bubble: Bubble, left: float, top: float) -> tuple[str, float]:
    """A message, and where the next begins."""
    widest = WIDTH - 2 * GAP - (44 if bubble.is_own else 0)
    told = list(lines(bubble.message, widest - 2 * PAD)) if bubble.message["text"] else []
    x = left + GAP + (44 if bubble.is_own else 0)
    above = PHOTO + 4 if bubble.photo else 0
    height = above + (len(told) * LINE + 2 * PAD - 4 if told else 4)
    colour = "#e4f8cd" if bubble.is_own else "#ffffff"
    parts = [
        f'<rect x="{x:g}" y="{top:g}" width="{widest:g}" height="{height:g}" rx="11"'
        f' fill="{colour}"/>'
    ]
    if bubble.photo:
        parts.append(drawn_photo(bubble.photo, x + 4, top + 4, widest - 8))
    parts += [
        drawn_line(line, x + PAD, top + above + PAD + 10 + number * LINE)
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
    """The chats, three in a row."""
    parts, top = list[str](), 0.0
    for start in range(0, len(phones), IN_A_ROW):
        row, bottom = phones[start : start + IN_A_ROW], top
        bubbles = list[str]()
        for number, (_, said_) in enumerate(row):
            below = top + 40
            for bubble in said_:
                drawn_, below = drawn_bubble(bubble, number * (WIDTH + GAP), below)
                bubbles.append(drawn_)
            bottom = max(bottom, below + 6)
        parts += [_framed(title, at, top, bottom - top) for at, (title, _) in enumerate(row)]
        parts += bubbles
        top = bottom + GAP
    width, height = IN_A_ROW * (WIDTH + GAP) - GAP, top - GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' font-family="{FAMILY}" font-size="{TEXT}" fill="#1c2733">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _framed(title: str, number: int, top: float, height: float) -> str:
    left = number * (WIDTH + GAP)
    return (
        f'<rect x="{left:g}" y="{top:g}" width="{WIDTH}" height="{height:g}" rx="16"'
        f' fill="#d5e3ee"/><text x="{left + WIDTH / 2:g}" y="{top + 25:g}" text-anchor="middle"'
        f' font-weight="600" fill="#4a6478">{html.escape(title)}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(asyncio.run(seen())), "utf-8")
    sys.stdout.write(f"{PICTURE} is written\n")
