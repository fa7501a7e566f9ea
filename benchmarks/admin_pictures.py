"""The pictures of docs/admin.md: `python -m benchmarks.admin_pictures` writes docs/admin*.png.

A week of turns is made up; the page is that of the product, as a browser shows it, and the last
picture is what /stats sends.
"""

import asyncio
import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from PIL import Image
from playwright.async_api import Browser
from pydantic import SecretStr

from agent.turn import Lack, StoredMessage, TurnOutcome
from bot.charts import LIGHT, draw
from bot.http.admin_page import AdminPage
from bot.tracing import masking_of
from config import load_settings
from db.engine import Sessions
from db.models import TurnRow
from db.repositories.statistics import StatisticsRepository, Week
from tests.browser import HOW_TO_GET_ONE, find_chromium, open_browser
from tests.databases import migrated_sqlite
from tests.integration.test_admin_page import ADMIN, TOKEN
from tests.serving import serving
from tests.stored import store_turn

DOCS: Final = Path(__file__).parents[1] / "docs"
SEED: Final = 53
OUTCOMES: Final[dict[TurnOutcome, int]] = {
    "answered": 80,
    "salvaged": 4,
    "help": 3,
    "stopped": 2,
    "refused": 1,
    "fallback": 8,
    "failed": 2,
}
"""The share of each outcome, in percent."""
WISHES: Final = (
    ("Do you have a Barolo 2018?", Lack.NAME),
    ("Haben Sie Barolo von Mascarello?", Lack.NAME),
    ("avez-vous du Barolo ?", Lack.NAME),
    ("a magnum of Champagne under 40 euros", Lack.WINES),
    ("Champagne, the cheapest magnum", Lack.WINES),
    ("Are you open on Sundays?", Lack.DOCUMENTS),
    ("kosher wine for Friday", Lack.WINES),
)
DISLIKED: Final = ("a red for lamb", "wrong_wine", "I asked for something light")
PALETTE: Final = 128


async def store_week(sessions: Sessions, now: datetime) -> None:
    """Store a week of turns, with more of them each day."""
    chance = random.Random(SEED)
    number = 0
    for day in range(7):
        for _ in range(24 + 5 * day + chance.randrange(8)):
            number += 1
            (outcome,) = chance.choices([*OUTCOMES], [*OUTCOMES.values()])
            verdict = chance.choices(["liked", "disliked", None], [20, 4, 76])[0]
            at = now - timedelta(days=6 - day, minutes=chance.randrange(60))
            turn = TurnRow(
                turn_id=number,
                user_id=chance.randrange(1, 25),
                at=at,
                outcome=outcome,
                seconds=chance.lognormvariate(1.0, 0.5),
                retries=int(chance.random() < 0.06),
                cost_usd=chance.uniform(0.002, 0.014),
                verdict=verdict if number % 9 else None,
            )
            await store_turn(sessions, turn)
    for words, lack in WISHES:
        number += 1
        await _store_exchange(sessions, number, words, at=now, lack=lack)
    words, reason, comment = DISLIKED
    feedback = {"verdict": "disliked", "reason": reason, "comment": comment}
    await _store_exchange(sessions, number + 1, words, at=now, **feedback)


async def _store_exchange(
    sessions: Sessions, number: int, words: str, **fields: Any
) -> None:
    trace_id = f"{number:032x}"
    turn = TurnRow(
        turn_id=number,
        chat_id=number,
        user_id=number % 20 + 1,
        trace_id=trace_id,
        **fields,
    )
    messages = (
        StoredMessage("user", words),
        StoredMessage("assistant", "Try the Guigal."),
    )
    await store_turn(sessions, turn, messages)


async def take_pictures(browser: Browser, port: int) -> None:
    """Take the picture of the page on a wide screen, and in dark on a narrow one."""
    user, password = ADMIN
    for name, scheme, width in (("admin", "light", 960), ("admin-narrow", "dark", 390)):
        context = await browser.new_context(
            http_credentials={"username": user, "password": password},
            color_scheme="dark" if scheme == "dark" else "light",
            viewport={"width": width, "height": 1100},
        )
        page = await context.new_page()
        await page.goto(f"http://127.0.0.1:{port}/admin", wait_until="load")
        await page.get_by_text("× barolo").click()
        await page.screenshot(path=DOCS / f"{name}.png", full_page=True)
        shrink(DOCS / f"{name}.png")


def shrink(file: Path) -> None:
    """Write a picture again with a palette, for a third of the bytes."""
    Image.open(file).convert("RGB").quantize(PALETTE).save(file, "PNG", optimize=True)


async def main() -> None:
    """Write the pictures."""
    program = await find_chromium()
    if not program:
        raise SystemExit(HOW_TO_GET_ONE)
    settings, now = load_settings(None), datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        engine = await migrated_sqlite(Path(folder) / "pictures.sqlite3")
        sessions = Sessions(engine)
        await store_week(sessions, now)
        page = AdminPage(sessions, masking_of(settings).mask_words, SecretStr(TOKEN))
        async with (
            serving(routers=[page.build_router()]) as running,
            open_browser(program) as opened,
        ):
            await take_pictures(opened, running.port)
        week = await StatisticsRepository(sessions).summarize_week(Week(now.date()))
        (DOCS / "stats.png").write_bytes(draw(week, "png", LIGHT, 2))
        shrink(DOCS / "stats.png")
        await engine.dispose()


if __name__ == "__main__":
    asyncio.run(main())
