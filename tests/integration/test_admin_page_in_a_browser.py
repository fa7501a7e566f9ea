"""The admin page as a browser shows it: in light and in dark, on a wide and on a narrow screen."""

import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from PIL import Image
from playwright.async_api import Browser, Page

from config import load_settings
from db.engine import Sessions
from db.models import TurnRow
from tests.browser import HOW_TO_GET_ONE, find_chromium, open_browser
from tests.integration.test_admin_page import ADMIN, SCRIPT, admin_page, store_turns
from tests.serving import Running, serving
from tests.stored import store_turn

WIDE, NARROW = {"width": 1100, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    program = await find_chromium()
    if not program:
        pytest.skip(HOW_TO_GET_ONE)
    async with open_browser(program) as opened:
        yield opened


@pytest.fixture
async def served(sqlite_sessions: Sessions) -> AsyncIterator[Running]:
    await store_turns(sqlite_sessions)
    last_week = datetime.now(UTC) - timedelta(days=7)
    await store_turn(sqlite_sessions, TurnRow(turn_id=99, user_id=9, at=last_week))
    router = admin_page(load_settings(None), sqlite_sessions).build_router()
    async with serving(routers=[router]) as running:
        yield running


async def open_page(
    browser: Browser, served: Running, **options: Any
) -> tuple[Page, list[str]]:
    """Open the page; return it, and the list of what goes wrong on it."""
    user, password = ADMIN
    context = await browser.new_context(
        http_credentials={"username": user, "password": password}, **options
    )
    page = await context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    await page.goto(f"http://127.0.0.1:{served.port}/admin", wait_until="load")
    return page, problems


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_the_charts_fit_the_screen_and_have_the_colours_that_its_user_prefers(
    browser: Browser, served: Running, scheme: str, screen: dict[str, int]
) -> None:
    page, problems = await open_page(
        browser, served, viewport=screen, color_scheme=scheme
    )
    charts = page.locator("img.charts")
    shown = await charts.evaluate(
        "image => [image.complete && image.naturalWidth > 0, image.currentSrc, "
        "image.clientWidth / image.clientHeight]"
    )
    is_drawn, address, ratio = shown
    assert is_drawn
    assert ("theme=dark" in address) == (scheme == "dark")
    assert (ratio < 1) == (screen is NARROW)  # below each other, not beside each other
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= screen["width"]  # the table scrolls, not the page
    picture = Image.open(io.BytesIO(await charts.screenshot())).convert("RGB")
    corner = picture.getpixel((1, 1))
    background = await page.evaluate(
        "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)"
    )
    assert corner == tuple(background)
    colours = {colour for _, colour in picture.getcolors(1_000_000) or []}
    assert len(colours) > 50  # bars and texts, with their smooth edges
    assert problems == []


async def test_an_admin_reads_a_trace_from_the_page_and_goes_to_the_week_before(
    browser: Browser, served: Running
) -> None:
    page, problems = await open_page(browser, served, viewport=WIDE)
    heading = page.get_by_role("heading", name="What guests wanted")
    assert await heading.is_visible()
    assert await page.get_by_text(SCRIPT).count() > 0  # as text
    assert not await page.get_by_role("link", name="a week forward").count()
    disliked = page.locator("h2", has_text="Disliked").locator(
        "xpath=following-sibling::details"
    )
    await disliked.first.locator("summary").click()
    await disliked.first.get_by_role("link", name="its trace").click()
    await page.get_by_text("llm.answer [generation]").wait_for()
    await page.get_by_role("link", name="← all").click()
    await page.get_by_role("link", name="a week back").click()
    await page.get_by_role("link", name="a week forward").wait_for()
    turns = page.locator("tr", has=page.locator("td:first-child", has_text="turns"))
    assert (await turns.locator("td").all_text_contents())[-2:] == ["1", "1"]
    await page.get_by_role("link", name="a week forward").click()
    assert (await turns.locator("td").all_text_contents())[-2:] == ["4", "4"]
    assert problems == []
