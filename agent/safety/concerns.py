"""Notice concerns and allergies in a message: by phrases, and by a classifier. No I/O.

A phrase, and the classifier where it is sure, make a concern certain. Where the classifier is less
sure, the concern is likely. Neither needs a model, and no model can remove what they noticed.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from agent.safety.classifier import Guess, classify
from agent.safety.phrases import (
    asks_for_numbers,
    find_allergies,
    find_concerns,
    goes_on_with_emergency,
)
from agent.safety.state import (
    CONCERNS,
    EMPTY_SAFETY_STATE,
    Concern,
    SafetyState,
    most_serious_concern,
)
from agent.safety.words import normalize

DRINKING_AGE: Final = 18
CERTAIN_FROM: Final = 0.98
"""The probability from which the classifier makes a concern certain."""
LIKELY_FROM: Final[Mapping[Concern, float]] = {
    "crisis": 0.12,
    "dependence": 0.22,
    "under_age": 0.16,
    "pregnancy": 0.14,
    "medication": 0.12,
    "driving": 0.14,
}
"""The probabilities from which a concern is likely; docs/admin.md says what they let through."""
FORWARDED_HEADER: Final = "[forwarded, written by somebody else]"
"""The line that the bot puts above a forwarded message, for the model."""


def read_safety_state(text: str, drinking_age: int = DRINKING_AGE) -> SafetyState:
    """Return the concerns and allergies that a message states; `drinking_age` is the legal age."""
    normalized = normalize(text.replace(FORWARDED_HEADER, ""))
    stated = find_concerns(normalized, drinking_age)
    guess = classify(normalized)
    by_phrases = frozenset(found.concern for found in stated)
    by_classifier = frozenset(
        concern for concern in CONCERNS if guess.probabilities[concern] >= CERTAIN_FROM
    )
    certain = by_phrases | by_classifier
    likely = frozenset(
        concern
        for concern in CONCERNS
        if guess.probabilities[concern] >= LIKELY_FROM[concern] and not certain
    )
    allergies = list(find_allergies(normalized))
    return SafetyState(
        turn_concerns=certain,
        likely_concerns=likely,
        asks_for_numbers=asks_for_numbers(normalized),
        goes_on_with_emergency=goes_on_with_emergency(normalized),
        allergies=frozenset(found.allergy for found in allergies),
        own_allergies=frozenset(found.allergy for found in allergies if found.is_own),
        language=stated[0].language if stated else "",
        noticed_by=_describe(by_phrases, guess, most_serious_concern(certain or likely)),
    )


def read_conversation_safety(
    messages: Iterable[str], drinking_age: int = DRINKING_AGE
) -> SafetyState:
    """Return the safety state after the last of a user's messages, in order of time."""
    state = EMPTY_SAFETY_STATE
    for text in messages:
        earlier_names = state.concerns | state.allergies
        state = read_safety_state(text, drinking_age).with_stored_names(earlier_names)
    return state


def _describe(by_phrases: frozenset[Concern], guess: Guess, concern: Concern | None) -> str:
    """Return by what a concern was noticed, with the n-grams that weighed most."""
    if concern is None:
        return ""
    if concern in by_phrases:
        return f"{concern}: a phrase"
    n_grams = " | ".join(guess.explain(concern))
    return f"{concern}: the classifier, {guess.probabilities[concern]:.2f}, by {n_grams}"
