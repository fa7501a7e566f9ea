"""Lead presses of link buttons on to the pages of wines, and count them by wine and week."""

import logging
from typing import Final

from fastapi import APIRouter, HTTPException, Response

from agent.sommelier.queries import Catalogue
from bot.clicks import CLICK_PATH, CountedLinks
from db.repositories.clicks import Clicks

log = logging.getLogger(__name__)

HEADERS: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
"""A browser must ask anew at each press, so that all are counted.

It must not tell the shop from which page its guest comes.
"""


def build_click_router(
    links: CountedLinks, catalogue: Catalogue, clicks: Clicks
) -> APIRouter:
    """Return the route of signed addresses."""
    router = APIRouter(include_in_schema=False)

    @router.get(f"{CLICK_PATH}/{{wine_id}}/{{signature}}")
    async def follow(wine_id: str, signature: str) -> Response:
        """Count a press and redirect to the page of the wine. Store nothing about the guest."""
        if not links.is_signed(wine_id, signature):
            raise HTTPException(404, "there is no such page")
        wines = await catalogue.get([wine_id])
        if not wines or not wines[0].link:
            raise HTTPException(404, "this wine has no page any more")
        try:
            await clicks.count(wine_id)
        except Exception as error:
            # A press that cannot be counted leads to the page all the same.
            log.warning("HTTP: a press was not counted (%s)", type(error).__name__)
        headers = {**HEADERS, "Location": wines[0].link}
        return Response(status_code=302, headers=headers)

    return router
