"""Offer the people of the shop: by a tool of the model, or when a message asks for them.

Nothing is sent by either: a button under the answer lets the user see and send their question.
"""

from functools import cache
from typing import Final

from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.languages import load_languages
from agent.tables import StrictModel
from agent.text import split_words
from agent.turn import StaffOffer, has_stored_user

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
ANY_ENDING: Final = "*"


class OfferStaffArguments(StrictModel):
    """The empty arguments of offer_staff."""


def offer_staff_tool() -> Tool:
    """Return the tool offer_staff, for chats whose users can be answered later."""

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


def asks_for_staff(text: str) -> bool:
    """Return True if a text asks for a person: "Can I talk to someone?", in any language."""
    words = pad_words(text)
    return any(phrase in words for phrase in _phrases())


@cache
def _phrases() -> list[str]:
    """Return the phrases of all languages."""
    languages = load_languages().values()
    return read_phrases(",".join(language.ask_for_staff for language in languages))


def read_phrases(listed: str) -> list[str]:
    """Return the phrases of a list, separated by commas, with the spaces around their words.

    A phrase with an asterisk stands for all that begin so: "deliver*" is " deliver".
    """
    phrases = []
    for phrase in filter(None, map(str.strip, listed.split(","))):
        words = " ".join(split_words(phrase.removesuffix(ANY_ENDING)))
        phrases.append(f" {words}" if phrase.endswith(ANY_ENDING) else f" {words} ")
    return phrases


def pad_words(text: str) -> str:
    """Return the words of a text with a space around each, so that phrases are found in it."""
    return f" {' '.join(split_words(text))} "
