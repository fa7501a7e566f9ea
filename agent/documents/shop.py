"""Recognize questions about the shop itself: opening hours, address, delivery, contact, its people.

A user who wants to talk to the people of the shop is offered a button, either by a tool of the
model or because the message asks for them. The button itself sends nothing. It shows the question
to the user, who can then send it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from agent.documents.passages import Chunk
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.languages import load_languages
from agent.tables import StrictModel
from agent.text import split_words
from agent.turn import StaffOffer, has_stored_user

SHOP_DOCUMENT: Final = "shop.md"
"""The name of the owner's document about the shop."""
CONTACT: Final = "contact"
"""The topic of how to reach the shop."""
UNLIKE_WISHES: Final = frozenset({"returns", "payment", "services"})
"""The topics that no wish for a wine has: "Do you gift-wrap?" asks for no present."""
ONLY_OF_SHOP: Final = UNLIKE_WISHES | {"hours", "address", "delivery"}
"""The topics that no document about wine answers. "When are you open?" is not about bottles.

Contact is not one of them: "skin contact" is about wine.
"""
STAFF: Final = "staff"
"""The topic of questions that ask for a person: "Can I talk to someone?"."""
ANY_ENDING: Final = "*"
"""The end of a phrase that may have any ending: "deliver*"."""
OFFER_STAFF: Final = (
    "Show a button under your answer with which the guest can send their question to the people of "
    "the shop. Use it when they want to talk to a person, order, reserve, complain, or ask what "
    "neither wines nor documents tell."
)
OFFER_STAFF_LINE: Final = (
    "You cannot send or order anything yourself. When a guest needs the people of the shop, call "
    "offer_staff beside your search, and say that the button below leads to them."
)
OFFERED: Final = "The button is under your answer; nothing was sent."


class OfferStaffArguments(StrictModel):
    """The empty arguments of offer_staff."""


def offer_staff_tool() -> Tool:
    """Return the tool offer_staff, for chats in which users can be answered later."""

    async def offer_staff(arguments: OfferStaffArguments, run: Run) -> ToolOutput:
        return ToolOutput(OFFERED, effects=(StaffOffer(),))

    return Tool(
        "offer_staff",
        OFFER_STAFF,
        OfferStaffArguments,
        offer_staff,
        prompt_line=OFFER_STAFF_LINE,
        is_offered=has_stored_user,
    )


def is_shop_document(path: str) -> bool:
    """Return whether this is the path of the document about the shop."""
    _, _, name = path.rpartition("/")
    return name.lower() == SHOP_DOCUMENT


def asks_for_staff(text: str) -> bool:
    """Return whether a text asks for a person of the shop, in any language."""
    return STAFF in _find_topics(text)


def find_shop_topics(questions: Iterable[str]) -> frozenset[str]:
    """Return the topics of the shop that questions are about, such as its hours."""
    topics: set[str] = set()
    for question in questions:
        topics.update(_find_topics(question))
    if STAFF in topics:
        topics.remove(STAFF)
        topics.add(CONTACT)
    return frozenset(topics)


def is_for_shop(question: str) -> bool:
    """Return whether only the shop can answer a question."""
    return not ONLY_OF_SHOP.isdisjoint(find_shop_topics([question]))


def find_greeting(chunks: Sequence[Chunk], language: str) -> str:
    """Return the greeting of the owner in a language, or "" if there is none.

    The greeting is the text in the document about the shop below a heading such as "Welcome" or
    "Willkommen".
    """
    headings = load_languages()[language].shop_greetings.split(",")
    greeting_headings = [split_words(heading) for heading in headings]
    texts = []
    for chunk in chunks:
        if not chunk.headings:
            continue
        innermost_heading = chunk.headings[-1]
        if split_words(innermost_heading) in greeting_headings:
            texts.append(chunk.text)
    return "\n\n".join(texts)


def sort_by_topic(chunks: Sequence[Chunk], topics: Collection[str]) -> list[Chunk]:
    """Return the chunks of the document about the shop, those on the topics first."""

    def is_on_topic(chunk: Chunk) -> bool:
        chunk_topics = find_shop_topics([chunk.source_text])
        return not chunk_topics.isdisjoint(topics)

    return sorted(chunks, key=is_on_topic, reverse=True)


def _find_topics(text: str) -> Iterator[str]:
    """Yield the topics that have a phrase in a text."""
    words = " ".join(split_words(text))
    padded_text = f" {words} "
    for topic, phrases in _load_phrases().items():
        if any(phrase in padded_text for phrase in phrases):
            yield topic


@cache
def _load_phrases() -> Mapping[str, Sequence[str]]:
    """Return the padded phrases of all languages by topic."""
    phrases: dict[str, list[str]] = {}
    for language in load_languages().values():
        for topic, row in language.shop_questions.items():
            phrases_of_topic = phrases.setdefault(topic, [])
            for phrase in row.split(","):
                phrases_of_topic.append(_pad(phrase))
    return phrases


def _pad(phrase: str) -> str:
    """Return a phrase with a space before and after it, so that it matches whole words only.

    A phrase that may have any ending ("deliver*") has no space after it.
    """
    phrase = phrase.strip()
    beginning = phrase.removesuffix(ANY_ENDING)
    words = " ".join(split_words(beginning))
    if phrase.endswith(ANY_ENDING):
        return f" {words}"
    return f" {words} "
