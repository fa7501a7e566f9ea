"""What a request wants done: a tool called, or something said. Pure."""

from dataclasses import dataclass
from typing import Final, Literal

from agent.house_sommelier.followups import Request
from agent.house_sommelier.lexicon import fold
from agent.house_sommelier.pointing import wants_alike, wants_to_know_more
from agent.house_sommelier.relative_prices import RELATIVE
from agent.house_sommelier.topics import (
    asks_for_help,
    is_choosing,
    is_greeting,
    is_off_topic,
    is_question,
    is_rude,
    is_thanks,
    leaves_it_open,
    speaks_of_wine,
)

Saying = Literal["hello", "thanks", "help", "ask", "knowledge", "off_topic", "rude"]

SEARCH: Final = "search_wines"
SIMILAR: Final = "find_similar_wines"
DETAILS: Final = "get_wine"
LIBRARY: Final = "search_documents"

_MOST_SHOWN: Final = 3
_SIMILAR_LIMIT: Final = 5
_OTHERS_LIMIT: Final = 12
_MOST_NAME_WORDS: Final = 5
_ABOUT_A_WINE: Final = frozenset({"text", "sweetness", "bodies", "foods"})


@dataclass(frozen=True, slots=True)
class Wish:
    """A tool to call, with its arguments."""

    tool: str
    arguments: dict[str, object]


def decide(request: Request) -> Wish | Saying:
    """What to do about a request before any tool was called."""
    text = " ".join(fold(request.text).split())
    if request.care_now:
        return search(request)
    if wish := _about_shown(request, text):
        return wish
    facts = request.said.filters - {"text"}
    if talk := _talk(request, text, has_facts=bool(facts)):
        return talk
    if facts or request.said.cues or request.said.without:
        return search(request)
    return _without_filters(request, text)


def _talk(request: Request, text: str, *, has_facts: bool) -> Saying | None:
    """What is said to a message that wants no wine; None if it does."""
    if is_off_topic(text) and (is_question(text) or not _is_about_wine(request, text)):
        return "off_topic"
    if is_rude(text) and not has_facts:
        return "rude"
    if asks_for_help(text) and not has_facts:
        return "help"
    return "knowledge" if _is_knowledge(request, text) else None


def _about_shown(request: Request, text: str) -> Wish | None:
    """A wine that the person was shown and points at: more like it, or more about it."""
    said = request.said
    if not request.shown or said.cues & (RELATIVE | {"other"}):
        return None
    if wants_alike(text):
        wine_id = request.pointed or request.shown[0]
        return Wish(SIMILAR, {"wine_id": wine_id, "limit": _SIMILAR_LIMIT})
    if said.filters - _ABOUT_A_WINE:
        return None
    if request.pointed:
        return Wish(DETAILS, {"wine_ids": [request.pointed]})
    if wants_to_know_more(text) and not said.filters:
        return Wish(DETAILS, {"wine_ids": list(request.shown[:_MOST_SHOWN])})
    return None


def _is_about_wine(request: Request, text: str) -> bool:
    """Whether a message names wine, or anything of a wine but its country."""
    return speaks_of_wine(text) or bool(request.said.filters - {"text", "countries"})


def _is_knowledge(request: Request, text: str) -> bool:
    said = request.said
    if not is_question(text) or is_choosing(text):
        return False
    if said.cues or said.filters & {"min_price", "max_price"}:
        return False
    return not (text.startswith("tell me about") and said.name)


def search(request: Request) -> Wish:
    """The search for a request; for others than those shown, more results than usual."""
    arguments = request.query.model_dump(mode="json", exclude_defaults=True)
    if "other" in request.said.cues and request.shown:
        arguments["limit"] = _OTHERS_LIMIT
    return Wish(SEARCH, arguments)


def _without_filters(request: Request, text: str) -> Wish | Saying:
    for saying, is_said in (("hello", is_greeting), ("thanks", is_thanks)):
        if is_said(text):
            return "hello" if saying == "hello" else "thanks"
    if leaves_it_open(text):
        return _anything(request)
    if request.said.name and len(request.said.leftovers) <= _MOST_NAME_WORDS:
        return search(request)
    return search(request) if request.said.filters and not request.said.name else "ask"


def _anything(request: Request) -> Wish:
    """Whatever the house likes, but for what must not be."""
    bound = request.care or request.query.without_allergens
    return search(request) if bound else Wish(SEARCH, {})
