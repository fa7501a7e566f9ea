"""Decide what is answered to a user with concerns, and how long each concern is stored."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final

from agent.safety.state import CONCERNS, Concern, SafetyState

PERMANENT_CONCERNS: Final = frozenset({"under_age", "dependence"})
"""The concerns that /new does not delete."""
RETRACTABLE_CONCERNS: Final[frozenset[Concern]] = frozenset(CONCERNS) - {
    "dependence",
    "under_age",
}
"""The concerns that the button "That's not what I meant" removes. Dependence has its own button."""
DURATIONS: Final[Mapping[str, timedelta]] = {
    "crisis": timedelta(days=1),
    "driving": timedelta(hours=12),
    "medication": timedelta(days=14),
    "pregnancy": timedelta(days=280),
    "under_age": timedelta(days=365),
}
"""How long a concern is stored, unless /new deletes it. A concern that is not here has no limit."""
LIKELY_LINE_INTERVAL: Final = timedelta(hours=2)
"""The time between two lines that tell a user whom to call because of a likely concern."""


class SafetyAction(StrEnum):
    """The decisions of safety about a turn."""

    ANSWER = "answer"
    """The message is answered, with wines that the user may be shown."""
    CRISIS_HELP = "crisis_help"
    """Only help is shown: the message states a crisis."""
    NUMBERS = "numbers"
    """Only the numbers to call are shown: the user asks for them, or writes on after a crisis."""
    QUESTION = "question"
    """Only help for dependence, and the question of what the user would like, are shown."""
    DEPENDENCE_HELP = "dependence_help"
    """Only help for dependence is shown: the user is under age, and is offered no drinks."""
    NO_DRINKS = "no_drinks"
    """Only a promise is shown: a user with a dependence does not want to talk about drinks."""
    REFUSAL = "refusal"
    """The look-up is refused, or any message of a user under age, with the reason."""


PRIVATE_ACTIONS: Final = frozenset(
    {
        SafetyAction.CRISIS_HELP,
        SafetyAction.NUMBERS,
        SafetyAction.QUESTION,
        SafetyAction.DEPENDENCE_HELP,
        SafetyAction.NO_DRINKS,
    }
)
"""The actions with a reply that only the user may see.

In a group, the user is invited to a private chat instead."""


def decide(
    safety: SafetyState,
    *,
    asks_for_wine: bool,
    is_look_up: bool = False,
) -> SafetyAction:
    """Return the decision of safety about a message.

    `asks_for_wine` says that the message clearly describes a wine. After a crisis, for a day, every
    message that does not ask for a wine is answered with help.
    """
    if safety.is_crisis:
        return SafetyAction.CRISIS_HELP
    if safety.asks_for_numbers or _is_still_in_crisis(safety, asks_for_wine):
        return SafetyAction.NUMBERS
    if safety.is_under_age:
        if safety.new_concern == "dependence":
            return SafetyAction.DEPENDENCE_HELP
        return SafetyAction.REFUSAL
    if is_look_up and safety.forbids_look_ups:
        return SafetyAction.REFUSAL
    if asks_for_wine:
        return SafetyAction.ANSWER
    if safety.new_concern == "dependence":
        return SafetyAction.QUESTION
    if safety.declines_drinks and "dependence" in safety.earlier_concerns:
        return SafetyAction.NO_DRINKS
    return SafetyAction.ANSWER


def _is_still_in_crisis(safety: SafetyState, asks_for_wine: bool) -> bool:
    """Return whether a message after a crisis is answered with help, too."""
    if not safety.is_after_crisis:
        return False
    is_serious = safety.goes_on_with_emergency or "crisis" in safety.likely_concerns
    return is_serious or not asks_for_wine
