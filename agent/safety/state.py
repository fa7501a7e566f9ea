"""The concerns and allergies of a user, as data. No I/O."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

Concern = Literal[
    "crisis", "dependence", "under_age", "pregnancy", "medication", "driving"
]
"""The reasons not to offer alcohol, the most serious first."""
CONCERNS: Final[tuple[Concern, ...]] = get_args(Concern)
FORBIDDING_CONCERNS: Final[frozenset[Concern]] = frozenset(
    {"crisis", "dependence", "under_age", "pregnancy"}
)
"""Concerns that forbid alcohol. Other concerns only put alcohol-free wines first."""
SERIOUS_CONCERNS: Final[frozenset[Concern]] = frozenset({"crisis", "dependence"})
"""Concerns for which there are people to call."""
Allergy = Literal["sulphites", "egg", "milk", "fish", "grapes"]
ALLERGIES: Final[tuple[Allergy, ...]] = get_args(Allergy)


@dataclass(frozen=True, slots=True)
class SafetyState:
    """The concerns and allergies that a user stated."""

    turn_concerns: frozenset[Concern] = frozenset()
    """Concerns that this turn's message certainly states, or that the model detected in it."""
    earlier_concerns: frozenset[Concern] = frozenset()
    """Stored concerns of earlier turns."""
    likely_concerns: frozenset[Concern] = frozenset()
    """Concerns that the message only seems to state. They add a line to the answer, and forbid
    nothing."""
    asks_for_numbers: bool = False
    """Whether the message asks whom to call in an emergency."""
    declines_drinks: bool = False
    """Whether the message says that the user does not want to talk about drinks."""
    goes_on_with_emergency: bool = False
    """Whether the message speaks of an emergency after a crisis: that the user is alone, or has
    taken something."""
    allergies: frozenset[Allergy] = frozenset()
    """All allergies that are stored or stated, including those of other people."""
    own_allergies: frozenset[Allergy] = frozenset()
    """Allergies that the message states in the first person. Only these are stored."""
    language: str = ""
    """The language of the phrase that states the most serious concern."""
    noticed_by: str = ""
    """What has noticed the most serious concern of the message, for the trace."""

    @property
    def concerns(self) -> frozenset[Concern]:
        """Return the certain concerns of this turn and of earlier ones."""
        return self.turn_concerns | self.earlier_concerns

    @property
    def is_crisis(self) -> bool:
        """Return whether this turn reveals a crisis, so that the reply is only help."""
        return "crisis" in self.turn_concerns

    @property
    def is_after_crisis(self) -> bool:
        """Return whether the user was in a crisis within the last day."""
        return "crisis" in self.earlier_concerns

    @property
    def is_under_age(self) -> bool:
        """Return whether the user is too young for wine, also without alcohol."""
        return "under_age" in self.concerns

    @property
    def forbids_alcohol(self) -> bool:
        """Return whether no wine with alcohol may be offered."""
        return not self.concerns.isdisjoint(FORBIDDING_CONCERNS)

    @property
    def forbids_look_ups(self) -> bool:
        """Return whether look-ups are forbidden. Pregnancy forbids alcohol, but no look-ups."""
        forbidding = FORBIDDING_CONCERNS - {"pregnancy"}
        return not self.concerns.isdisjoint(forbidding)

    @property
    def prefers_alcohol_free(self) -> bool:
        """Return whether alcohol-free wines are offered first."""
        if self.forbids_alcohol:
            return False
        # A crisis that is only likely says nothing about alcohol.
        likely_concerns = self.likely_concerns - {"crisis"}
        return bool(self.concerns or likely_concerns)

    @property
    def offers_alcohol_free(self) -> bool:
        """Return whether alcohol-free wines come first, or are the only ones."""
        return self.forbids_alcohol or self.prefers_alcohol_free

    @property
    def marks_alcohol(self) -> bool:
        """Return whether the card of each wine with alcohol says so.

        A concern that is only likely does not change the cards.
        """
        return bool(self.concerns) and not self.forbids_alcohol

    @property
    def new_concern(self) -> Concern | None:
        """Return the most serious concern of this turn that is not an earlier one, or None."""
        return most_serious_concern(self.turn_concerns - self.earlier_concerns)

    def with_concern(self, concern: Concern) -> "SafetyState":
        """Return the state with a concern that the model detected in this turn."""
        # A crisis is answered each time that it is stated, also after an earlier crisis.
        current = self.turn_concerns if concern == "crisis" else self.concerns
        if concern in current:
            return self
        return replace(self, turn_concerns=self.turn_concerns | {concern})

    def with_stored_names(self, names: Collection[str]) -> "SafetyState":
        """Return the state with the stored concerns and allergies. Unknown names are ignored."""
        stored_concerns = {concern for concern in CONCERNS if concern in names}
        stored_allergies = {allergy for allergy in ALLERGIES if allergy in names}
        earlier_concerns = self.earlier_concerns | stored_concerns
        # A concern that is stored needs no line again, except a crisis.
        without_line = earlier_concerns - {"crisis"}
        return replace(
            self,
            earlier_concerns=earlier_concerns,
            allergies=self.allergies | stored_allergies,
            likely_concerns=self.likely_concerns - without_line,
        )


EMPTY_SAFETY_STATE: Final = SafetyState()


def most_serious_concern(concerns: Collection[Concern]) -> Concern | None:
    """Return the most serious of the concerns, or None if there are none."""
    for concern in CONCERNS:
        if concern in concerns:
            return concern
    return None
