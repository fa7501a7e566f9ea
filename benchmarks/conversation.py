"""The picture of the README: `python -m benchmarks.conversation` writes docs/conversation.png.

The product answers real messages, with a scripted model and without one; a page shows what the
chats hold, and headless Chromium takes its picture. The browser breaks the lines, so no text leaves
its bubble, whatever the font.
"""

import asyncio
import html
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.admin_pictures import shrink
from tests.browser import HOW_TO_GET_ONE, find_chromium, open_browser
from tests.doubles.bot_api import TOKEN, BotApi
from tests.doubles.model_server import ModelServer, Step, answer, answer_json, tool_call
from tests.doubles.server import JsonObject
from tests.running import whole_bot

PICTURE: Final = Path(__file__).parents[1] / "docs" / "conversation.png"
USER: Final = 4711
WIDTH: Final = 980
WISH: Final = "something red for lamb, under 25 euros"
QUESTION: Final = "/ask What does sur lie mean?"
CELLAR: Final = "I bought six Barolo 2016 at 45. And I can't stand Chardonnay."
DESCRIPTIONS: Final = (
    "Firm and savoury, with the grip that roast lamb takes.",
    "Softer and rounder, if a dark sauce comes with it.",
)
STYLE: Final = """
body { margin: 0; padding: 16px; width: 948px; background: #fff; color: #1c2733;
       font: 13.5px/1.4 system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif }
main { display: grid; grid-template-columns: repeat(3, 1fr); gap: 16px; align-items: start }
section { background: #d5e3ee; border-radius: 16px; padding: 12px; display: grid; gap: 8px }
h2 { margin: 0; font-size: 13px; text-align: center; color: #4a6478 }
p { margin: 0; padding: 8px 11px; border-radius: 12px; background: #fff; white-space: pre-wrap;
    overflow-wrap: anywhere }
p.own { background: #e4f8cd; margin-left: 36px }
div { display: flex; flex-wrap: wrap; gap: 4px }
div span { flex: 1 1 auto; padding: 4px 8px; border-radius: 8px; background: #b9cfe4;
           color: #17324d; text-align: center; font-size: 12px }
q { display: block; padding-left: 8px; border-left: 3px solid #b9cfe4; quotes: none;
    font-size: 12px; color: #4a6478 }
code { font-size: 12px; color: #2f6ea5 }
small { display: inline-block; width: 12px; border: 1px solid; border-radius: 50%;
        font: 9px/12px sans-serif; text-align: center }
"""
TAGS: Final = {"bold": "b", "italic": "i", "code": "code", "expandable_blockquote": "q"}

Model = Callable[[JsonObject], Step]


def model_answers(body: JsonObject) -> Step:
    """Answer as a good model would: look up first, then write about what was found."""
    messages = body["messages"]
    asked = next(m["content"] for m in reversed(messages) if m["role"] == "user")
    result = messages[-1]["content"] if messages[-1]["role"] == "tool" else ""
    if "Barolo" in asked:
        calls = [c for m in messages for c in m.get("tool_calls") or ()]
        return _remember({call["function"]["name"] for call in calls})
    if "sur lie" in asked:
        path = re.findall(r"\[([\w/.-]+\.md)\]", asked)[0]
        return answer(
            f"It means that the wine rests on its fine lees, a creamy layer of mostly dead yeast, "
            f"instead of being racked off them at once [{path}]."
        )
    if not result:
        return tool_call(
            "search_wines",
            {"styles": ["red"], "foods": ["lamb"], "max_price": 25, "limit": 2},
        )
    ids = [row["wine_id"] for row in json.loads(result)["wines"]]
    wines = [
        {"wine_id": wine_id, "description": text}
        for wine_id, text in zip(ids, DESCRIPTIONS, strict=False)
    ]
    return _say("For your lamb, something with grip.", wines, "Open it an hour before.")


def _remember(done: set[str]) -> Step:
    if "change_cellar" not in done:
        bought = {
            "action": "add",
            "name": "Barolo",
            "vintage": 2016,
            "count": 6,
            "price": 45,
        }
        return tool_call("change_cellar", bought)
    if "remember" not in done:
        disliked = {"kind": "hate", "value": "Chardonnay", "grapes": "Chardonnay"}
        return tool_call("remember", disliked)
    return _say("Six fine bottles; they can wait, too. And no more Chardonnay from me.")


def _say(intro: str, wines: Sequence[JsonObject] = (), closing: str = "") -> Step:
    kind = "recommendation" if wines else "informational"
    return answer_json(
        {"response_type": kind, "intro": intro, "wines": [*wines], "closing": closing}
    )


async def chat(
    messages: Sequence[str], model: Model | None
) -> list[tuple[str, JsonObject]]:
    """Return each message with what the bot sent for it."""
    with BotApi() as bot_api, tempfile.TemporaryDirectory() as folder:
        settings = {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": bot_api.base_url,
            "DATABASE_URL": f"sqlite+aiosqlite:///{folder}/picture.sqlite3",
        }
        if model is None:
            return await _talk(bot_api, settings, messages)
        with ModelServer(default=model, streaming="yes") as server:
            settings |= {
                "OPENAI_API_KEY": "picture",
                "OPENAI_BASE_URL": server.base_url,
            }
            return await _talk(bot_api, settings, messages)


async def _talk(
    bot_api: BotApi, settings: Mapping[str, str], messages: Sequence[str]
) -> list[tuple[str, JsonObject]]:
    answers = []
    async with whole_bot(settings):
        for number, message in enumerate(messages, 1):
            bot_api.say(message, chat_id=USER)
            await bot_api.wait_for_message(number, chat_id=USER, timeout=60)
            await asyncio.sleep(0.5)
            answers.append((message, bot_api.messages(USER)[-1]))
    return answers


def as_html(message: JsonObject) -> Iterator[str]:
    """Return the bubble of a message of the bot, and the buttons under it."""
    text, entities = (
        str(message["text"]).encode("utf-16-le"),
        message.get("entities", ()),
    )
    starts, ends = dict[int, list[str]](), dict[int, list[str]]()
    for entity in entities:
        if tag := TAGS.get(entity["type"]):
            starts.setdefault(entity["offset"], []).append(f"<{tag}>")
            ends.setdefault(entity["offset"] + entity["length"], []).append(f"</{tag}>")
    at = sorted({0, *starts, *ends, len(text) // 2})
    parts = [
        "".join([*ends.get(start, ()), *starts.get(start, ())])
        + html.escape(text[2 * start : 2 * end].decode("utf-16-le"))
        for start, end in zip(at, [*at[1:], at[-1]], strict=True)
    ]
    # Few fonts have the sign of a note.
    yield f"<p>{''.join(parts)}</p>".replace("ⓘ", "<small>i</small>")
    for row in message.get("reply_markup", {}).get("inline_keyboard", ()):
        labels = "".join(
            f"<span>{html.escape(button['text'])}</span>" for button in row
        )
        yield f"<div>{labels}</div>"


def page(chats: Mapping[str, Sequence[tuple[str, JsonObject]]]) -> str:
    """Return a page with the chats side by side."""
    sections = []
    for title, messages in chats.items():
        bubbles = [
            bubble
            for said, reply in messages
            for bubble in (f'<p class="own">{html.escape(said)}</p>', *as_html(reply))
        ]
        sections.append(f"<section><h2>{title}</h2>{''.join(bubbles)}</section>")
    return (
        f'<meta charset="utf-8"><style>{STYLE}</style><main>{"".join(sections)}</main>'
    )


async def take_picture(source: str, to: Path) -> None:
    """Take the picture of a page."""
    program = await find_chromium()
    if not program:
        raise SystemExit(HOW_TO_GET_ONE)
    async with open_browser(program) as browser:
        page = await browser.new_page(viewport={"width": WIDTH, "height": 600})
        await page.set_content(source)
        await page.screenshot(path=to, full_page=True)
    shrink(to)


async def conversations() -> dict[str, list[tuple[str, JsonObject]]]:
    """Return the chats of the picture."""
    return {
        "Wines of the catalogue": await chat([WISH], model_answers),
        "Memory, and cited answers": await chat([CELLAR, QUESTION], model_answers),
        "Without a model": await chat([WISH], None),
    }


async def main() -> None:
    """Write the picture."""
    await take_picture(page(await conversations()), PICTURE)
    print(f"{PICTURE.name}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    asyncio.run(main())
