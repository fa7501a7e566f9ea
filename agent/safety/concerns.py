"""Notice concerns and allergies in a message by phrases and by a classifier.

A concern is certain if a phrase states it, or if the classifier is sure. A concern is likely if the
classifier is less sure. Neither phrases nor classifier need a model, and no model can remove a
concern that they have noticed.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from agent.i18n import current_language
from agent.query_reading.request import is_clear_request
from agent.query_reading.turn_language import FORWARDED_HEADER
from agent.safety.classifier import Guess, classify, load_weights
from agent.safety.phrases import (
    StatedConcern,
    asks_for_numbers,
    declines_drinks,
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
from agent.safety.words import normalize_message

DRINKING_AGE: Final = 18
CERTAIN_FROM: Final = 0.9
"""The probability from which the classifier makes a concern certain."""
LIKELY_FROM: Final[Mapping[Concern, float]] = {
    "crisis": 0.16,
    "dependence": 0.22,
    "under_age": 0.2,
    "pregnancy": 0.16,
    "medication": 0.11,
    "driving": 0.15,
}
"""The probabilities from which a concern is likely. docs/admin.md says how they were chosen."""
LIKELY_FROM_IN_REQUEST: Final[Mapping[Concern, float]] = {
    "crisis": 0.18,
    "dependence": 0.22,
    "under_age": 0.3,
    "pregnancy": 0.2,
    "medication": 0.12,
    "driving": 0.17,
}
"""The thresholds for messages that clearly ask for a wine. Few of these state a concern."""
MEDICATION_FROM_WITH_ALLERGY: Final = 0.25
"""The probability from which a medication is likely if the message states an allergy.

People speak of both in the same words, so such a message is often taken for one about medicine.
"""
MAX_SHORT_WORDS: Final = 5
"""The most words of a short message. It has few n-grams, so the thresholds are doubled for it."""


def read_safety_state(text: str, drinking_age: int = DRINKING_AGE) -> SafetyState:
    """Return the concerns and allergies that a message states.

    `drinking_age` is the legal age in years.
    """
    own_text = text.replace(FORWARDED_HEADER, "")
    normalized = normalize_message(own_text)
    stated_concerns = find_concerns(normalized, drinking_age)
    by_phrases = {stated.concern for stated in stated_concerns}
    guess = classify(normalized, load_weights())
    certain = frozenset(by_phrases) | find_certain_concerns(guess)
    likely: frozenset[Concern] = frozenset()
    if not certain:
        likely = find_likely_concerns(guess, own_text)
    stated_allergies = list(find_allergies(normalized))
    medication_probability = guess.probabilities["medication"]
    if stated_allergies and medication_probability < MEDICATION_FROM_WITH_ALLERGY:
        likely -= {"medication"}
    noticed = most_serious_concern(certain or likely)
    own_allergies = [stated for stated in stated_allergies if stated.is_own]
    return SafetyState(
        turn_concerns=certain,
        likely_concerns=likely,
        asks_for_numbers=asks_for_numbers(normalized),
        declines_drinks=declines_drinks(normalized),
        goes_on_with_emergency=goes_on_with_emergency(normalized),
        allergies=frozenset(stated.allergy for stated in stated_allergies),
        own_allergies=frozenset(stated.allergy for stated in own_allergies),
        language=_find_language(stated_concerns),
        noticed_by=_explain(noticed, by_phrases, guess),
    )


def _find_language(stated_concerns: Sequence[StatedConcern]) -> str:
    """Return the language of the phrases of the most serious concern, or "" without a phrase.

    "Tomo antibióticos" is a phrase in Spanish and in Portuguese. Then it is that of the turn, if
    this is one of them.
    """
    if not stated_concerns:
        return ""
    most_serious = stated_concerns[0]
    if StatedConcern(most_serious.concern, current_language()) in stated_concerns:
        return current_language()
    return most_serious.language


def find_certain_concerns(guess: Guess) -> frozenset[Concern]:
    """Return the concerns that are certain, because the classifier is sure."""
    return _find_above(dict.fromkeys(CONCERNS, CERTAIN_FROM), guess)


def find_likely_concerns(guess: Guess, text: str) -> frozenset[Concern]:
    """Return the concerns that are likely, given what the classifier guesses about the text."""
    if len(text.split()) <= MAX_SHORT_WORDS:
        doubled: dict[Concern, float] = {}
        for concern, threshold in LIKELY_FROM.items():
            doubled[concern] = 2 * threshold
        return _find_above(doubled, guess)
    likely = _find_above(LIKELY_FROM, guess)
    # Reading a request takes time, so it is read only if a concern depends on it.
    if likely and is_clear_request(text, current_language()):
        return _find_above(LIKELY_FROM_IN_REQUEST, guess)
    return likely


def read_conversation_safety(
    messages: Iterable[str], drinking_age: int = DRINKING_AGE
) -> SafetyState:
    """Return the safety state after the last of a user's messages, in order of time."""
    state = EMPTY_SAFETY_STATE
    for text in messages:
        earlier_names = state.concerns | state.allergies
        state_of_message = read_safety_state(text, drinking_age)
        state = state_of_message.with_stored_names(earlier_names)
    return state


def _find_above(
    thresholds: Mapping[Concern, float], guess: Guess
) -> frozenset[Concern]:
    """Return the concerns with at least the probability of their threshold."""
    above: set[Concern] = set()
    for concern, threshold in thresholds.items():
        if guess.probabilities[concern] >= threshold:
            above.add(concern)
    return frozenset(above)


def _explain(
    concern: Concern | None,
    by_phrases: Set[Concern],
    guess: Guess,
) -> str:
    """Return the reason why a concern was noticed: a phrase, or n-grams of the classifier."""
    if concern is None:
        return ""
    if concern in by_phrases:
        return f"{concern}: a phrase"
    probability = guess.probabilities[concern]
    n_grams = " | ".join(guess.explain(concern))
    return f"{concern}: the classifier, {probability:.2f}, by {n_grams}"
