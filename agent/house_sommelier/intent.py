"""What a request wants done: a tool called, or something said. Pure."""

from dataclasses import dataclass
from typing import Final, Literal

from agent.house_sommelier.followups import Request
from agent.house_sommelier.glossary import in_english
from agent.house_sommelier.lexicon import fold
from agent.house_sommelier.pointing import wants_alike
from agent.house_sommelier.relative_prices import RELATIVE
from agent.house_sommelier.topics import (
    asks_for_help,
    asks_how_to_serve,
    is_choosing,
    is_greeting,
    is_off_topic,
    is_other_task,
    is_question,
    is_rude,
    is_small_talk,
    is_thanks,
    leaves_it_open,
    speaks_of_wine,
)

Saying = Literal["hello", "thanks", "help", "ask", "knowledge", "off_topic", "rude", "which"]

SEARCH: Final = "search_wines"
SIMILAR: Final = "find_similar_wines"
DETAILS: Final = "get_wine"
LIBRARY: Final = "search_documents"

_MOST_ASKED: Final = 200
_SIMILAR_LIMIT: Final = 5
_OTHERS_LIMIT: Final = 12
_MOST_NAME_WORDS: Final = 5


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
    if is_small_talk(text) and not has_facts:
        return "hello"
    if is_other_task(text) or (
        is_off_topic(text) and (is_question(text) or not _is_about_wine(request, text))
    ):
        return "off_topic"
    if is_rude(text) and not has_facts:
        return "rude"
    if asks_for_help(text) and not has_facts:
        return "help"
    return "knowledge" if _is_knowledge(request, text) else None


def _about_shown(request: Request, text: str) -> Wish | Saying | None:
    """A wine that the person was shown and points at: more like it, or more about it."""
    said = request.said
    if request.about:
        return Wish(DETAILS, {"wine_ids": list(request.about)})
    if not request.shown or said.cues & (RELATIVE | {"other"}):
        return None
    if wants_alike(text):
        wine_id = request.pointed or request.shown[0]
        return Wish(SIMILAR, {"wine_id": wine_id, "limit": _SIMILAR_LIMIT})
    return "which" if request.points_beyond and not said.filters - {"text"} else None


def _is_about_wine(request: Request, text: str) -> bool:
    """Whether a message names wine, or anything of a wine but its country."""
    return speaks_of_wine(text) or bool(request.said.filters - {"text", "countries"})


def _is_knowledge(request: Request, text: str) -> bool:
    said = request.said
    is_asking = is_question(text) or "?" in text
    wants_to_know = is_question(text) and not is_choosing(text)
    if not (wants_to_know or (is_asking and asks_how_to_serve(text))):
        return False
    if said.cues or said.filters & {"min_price", "max_price", "order"}:
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
    if leaves_it_open(text) and not _names_something(request):
        return _anything(request)
    if request.said.name and len(request.said.leftovers) <= _MOST_NAME_WORDS:
        return search(request)
    return search(request) if request.said.filters and not request.said.name else "ask"


def asked_of_library(request: Request) -> str:
    """A question of knowledge as the English library is asked it."""
    text = request.text[:_MOST_ASKED]
    return (text if request.language == "en" else in_english(text))[:_MOST_ASKED]


def _names_something(request: Request) -> bool:
    """Whether a message that leaves the choice open names a house: "anything from Penfolds"."""
    words = [word for word in request.said.name.split() if not leaves_it_open(fold(word))]
    return request.language != "de" and any(word[0].isupper() for word in words)


def _anything(request: Request) -> Wish:
    """Whatever the house likes, but for what must not be."""
    bound = request.care or request.query.without_allergens
    return search(request) if bound else Wish(SEARCH, {})
