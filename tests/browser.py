"""A real browser for tests and pictures: any Chromium of this machine, driven by Playwright."""

import os
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, async_playwright

NAMES = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")
HOW_TO_GET_ONE = (
    "no Chromium: install Debian's `chromium`, or run `playwright install chromium`"
)


async def find_chromium() -> str:
    """Return the program: CHROMIUM, one on the path, or Playwright's own; "" if there is none."""
    async with async_playwright() as playwright:
        own = playwright.chromium.executable_path
    return _find_existing([os.environ.get("CHROMIUM"), *map(shutil.which, NAMES), own])


def _find_existing(paths: Iterable[str | None]) -> str:
    return next((path for path in paths if path and Path(path).exists()), "")


@asynccontextmanager
async def open_browser(program: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        # Containers run as root, for whom Chromium has no sandbox.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = await playwright.chromium.launch(
            executable_path=program, args=arguments
        )
        try:
            yield browser
        finally:
            await browser.close()
