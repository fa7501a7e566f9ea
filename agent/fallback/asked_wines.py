"""Find the wines that a message asks for by name, and say whether there are any."""

from collections.abc import Sequence
from typing import NamedTuple

from agent.engine.run import Span
from agent.fallback.merging import Wish
from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.asked_queries import find_asked_query
from agent.sommelier.filters import find_wines
from agent.sommelier.queries import Catalogue, WineQuery, WineSearchResult
from agent.sommelier.wine import Wine
from agent.turn import Person


class AskedWines(NamedTuple):
    """The wines that a message asks for by name, and what the search for them found.

    `is_left_out` means that a wine has the name, but may not be shown to this person.
    """

    query: WineQuery
    result: WineSearchResult
    is_left_out: bool

    @property
    def shown(self) -> Sequence[Wine]:
        """Return the wines with the name, or else those of the nearest kind that was found."""
        result = self.result
        return (
            result.wines or result.other_vintages or result.mentioned or result.closest
        )


async def find_asked_wines(
    catalogue: Catalogue,
    wish: Wish,
    person: Person,
    span: Span,
) -> AskedWines | None:
    """Return the wines that the last message asks for by name, or None if it names no wine."""
    request = wish.own_request
    query = await find_asked_query(catalogue, request.text, request.language)
    if query is None:
        return None
    filters = query.model_dump(mode="json", exclude_defaults=True)
    with span.child("retrieve.wines", "retriever", input=filters) as retrieval:
        result = await find_wines(catalogue, query, person)
        asked_wines = AskedWines(query, result, is_left_out=False)
        retrieval.update(output=[wine.id for wine in asked_wines.shown])
    has_name = bool(result.wines or result.other_vintages)
    if wish.last_shown and not has_name:
        return None  # "have you got one cheaper than the second?" names no wine
    if not result.wines:
        # Search again without the person's limits, to see whether only they hide the wine.
        unlimited_result = await catalogue.search(query)
        is_left_out = bool(unlimited_result.wines)
        return asked_wines._replace(is_left_out=is_left_out)
    return asked_wines


def write_asked_intro(asked_wines: AskedWines) -> str:
    """Return the sentence that says whether there is a wine with the name asked for."""
    result = asked_wines.result
    if not result.wines:
        return _write_missing_intro(asked_wines)
    best_wine = result.wines[0]
    if not best_wine.in_stock:
        return translate("asked_sold_out")
    unmet_filters = result.unmet_filters.get(best_wine.id, ())
    if "offer" in unmet_filters:
        offer = translate(f"offer_{asked_wines.query.offer}")
        return translate("asked_other_offer", offer=offer)
    return translate("asked_in_stock")


def _write_missing_intro(asked_wines: AskedWines) -> str:
    """Return the sentence that says why no wine with the name asked for is shown.

    It also announces the wines that come near the name, if there are any.
    """
    result = asked_wines.result
    name = escape(asked_wines.query.name)
    if asked_wines.is_left_out:
        return translate("asked_left_out", name=name)
    if result.other_vintages:
        return translate("asked_other_vintage", name=name)
    if result.mentioned:
        return translate("asked_perhaps")
    intro = translate("fallback_no_name", name=name)
    if result.closest:
        intro += f" {translate('asked_closest')}"
    return intro
