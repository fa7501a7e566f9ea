"""Read a wine list with the help of models.

One model reads pages and photos of lists, another one fills in what a list lacks.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent.engine.run import Run
from agent.files import Unreadable, parse_in_process
from agent.senses.pictures import VISION, read_picture
from agent.senses.sent_files import render_pages_from, to_data_url
from agent.sommelier.gaps import ask_for_gaps
from agent.sommelier.vocabulary import Currency
from agent.turn import get_deps
from bot.commands.output import WRONG_USE_STATUS, fail, print_text
from bot.resources import open_resources
from config import Settings
from db.wines.lists.importing import (
    CatalogueFile,
    check_reading,
    read_catalogue_safely,
    read_list_bytes,
    source_of,
)
from db.wines.lists.problems import CatalogueFileError, Problem
from db.wines.lists.profiles.pages import ListPage, read_pages

PDF_SIGNATURE: Final = b"%PDF"
PICTURE_SIGNATURES: Final = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF")
MAX_PAGES: Final = 40
DRAWING_SECONDS: Final = 60
"""How much processor time a process may use. Each process draws a few pages of a file."""


async def read_list(
    file: Path,
    currency: Currency | None,
    settings: Settings,
    *,
    asks_model: bool,
) -> CatalogueFile:
    """Return the wines of a file.

    If there is a model for pictures, it reads a PDF or a photo. If `asks_model`, the language model
    fills in what the file lacks. `currency` is the currency of prices that name none.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    data = await asyncio.to_thread(read_list_bytes, file)
    has_pages = data.startswith((PDF_SIGNATURE, *PICTURE_SIGNATURES))
    may_need_model = asks_model or (has_pages and bool(settings.vision_model))
    if not may_need_model:
        # To open the resources takes a second.
        return await read_catalogue_safely(file, currency)
    async with open_resources(settings) as resources:
        run = resources.run
        # The model for pictures is missing if its name is set, but no server.
        has_vision = VISION in get_deps(run).models
        if has_pages and has_vision:
            pages = await _draw_pages(data)
            reading = read_pages([await _read_page(page, run) for page in pages])
            catalogue = check_reading(reading, source_of(file), currency)
        else:
            catalogue = await read_catalogue_safely(file, currency)
        if asks_model:
            catalogue = await _fill_gaps(catalogue, run)
    return catalogue


async def _draw_pages(data: bytes) -> Sequence[str]:
    """Return the pages of a PDF file, or a photo, as data URLs."""
    try:
        if not data.startswith(PDF_SIGNATURE):
            return [await parse_in_process(to_data_url, data)]
        pages: list[str] = []
        while True:
            # Arguments for another process are texts or bytes.
            first_page = str(len(pages))
            next_pages, left_count = await parse_in_process(
                render_pages_from, data, first_page, seconds=DRAWING_SECONDS
            )
            pages += next_pages
            if len(pages) + left_count > MAX_PAGES:
                problem = Problem(f"has more than {MAX_PAGES} pages; split it")
                raise CatalogueFileError(problem)
            if left_count == 0:
                return pages
    except Unreadable as error:
        raise CatalogueFileError(Problem(f"cannot be drawn: {error}")) from None


async def _read_page(page: str, run: Run) -> ListPage:
    """Return what the model for pictures reads on a page, within the limits of a turn."""

    # `read_picture` downloads the pictures of chats, and is given a function for that.
    async def download() -> str:
        return page

    transcription = await read_picture(run.for_turn(), download)
    if transcription is None:
        return ListPage(is_read=False)
    return ListPage(transcription.wines, transcription.unreadable)


async def _fill_gaps(catalogue: CatalogueFile, run: Run) -> CatalogueFile:
    """Return the list with its gaps filled by the language model."""
    if not run.models:
        fail(
            "--ask-model needs a model: set OPENAI_API_KEY or OPENAI_BASE_URL",
            WRONG_USE_STATUS,
        )
    cells_by_id, unanswered_count = await ask_for_gaps(catalogue.wines, run)
    if unanswered_count:
        print_text(
            f"The model gave no answer about {unanswered_count} wines.", error=True
        )
    return catalogue.with_cells_of_model(cells_by_id)
