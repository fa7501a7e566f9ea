"""Reply to pictures without a question: list the wines that were read from them."""

from collections.abc import Sequence
from typing import Final

from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.attachment import Attachment, ReadWine, find_in_catalogue
from agent.sommelier.cards import format_facts, get_shown_label
from agent.sommelier.queries import Catalogue
from agent.turn import Person, Reply

MAX_LISTED_WINES: Final = 15
"""The most wines of a wine list that a reply shows."""


async def describe_pictures(
    attachment: Attachment, catalogue: Catalogue, person: Person
) -> Reply:
    """Return a reply with the wines that were read. Labels come with our closest wines."""
    read_wines = await attachment.wines_for(person, catalogue)
    if not attachment.wines:
        return Reply(text=translate("nothing_read"))
    if not read_wines:
        return Reply(text=translate("nothing_suitable"))
    if attachment.shows != "labels":
        return Reply(text=_list_read_wines(read_wines))
    texts: list[str] = []
    ids: list[str] = []
    for wine in read_wines:
        availability, ours = await find_in_catalogue(wine, catalogue, person)
        facts = escape(format_facts(wine))
        lines = [f"**{escape(wine.label)}**", facts, translate(availability)]
        for our_wine in ours:
            label = escape(get_shown_label(our_wine))
            facts = escape(format_facts(our_wine))
            lines.append(f"- **{label}** · {facts}")
            ids.append(our_wine.id)
        texts.append("\n".join(lines))
    distinct_ids = dict.fromkeys(ids)
    return Reply(text="\n\n".join(texts), wine_ids=tuple(distinct_ids))


def _list_read_wines(wines: Sequence[ReadWine]) -> str:
    """Return how many wines of a list were read, and the first of them."""
    lines = [translate("list_read", count=len(wines)), ""]
    for wine in wines[:MAX_LISTED_WINES]:
        facts = escape(format_facts(wine))
        lines.append(f"- {escape(wine.label)} · {facts}")
    further_count = len(wines) - MAX_LISTED_WINES
    if further_count > 0:
        lines.append(translate("further_wines", count=further_count))
    return "\n".join(lines)
