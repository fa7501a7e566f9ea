"""What care for a person means for wines: which are found, which may be shown, what is said of it.

Whoever must not drink is shown nothing with alcohol, whoever had better not finds what is without
first, and an allergy leaves out every wine that must declare it: in what tools return, and again in
what an answer may hold.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from agent.care import FORBIDDING, NO_CARE, Care, Concern, is_ordinary
from agent.care_help import Help
from agent.engine.contract import Evidence, Grounding, OutputContract
from agent.engine.run import Run
from agent.sommelier import taste
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine import (
    Allergen,
    AnyWine,
    Catalogue,
    Colour,
    Style,
    Wine,
    WineQuery,
    WineSearchResult,
    known_names,
)
from agent.tables import read_toml
from agent.text import sentences, words
from agent.turn import NOBODY, Person

MOST_ALCOHOL: Final = 0.5
"""Up to how many % vol. a wine counts as one without alcohol."""
NO_ALCOHOL: Final = 0.05
"""Up to how many it has none at all, for those who must not have any."""
OFFERED_FIRST: Final = 3
"""How many wines without alcohol go before what was searched for."""
LONGEST_NAME: Final = 4
SHORTEST_HEAD: Final = 5

FORBIDDEN: Final = (
    "Who writes is not offered alcohol. Recommend only wines of style alcohol_free that a tool "
    "returns, and name no other wine, grape, region or drink with alcohol."
)
FIRST: Final = (
    "Who writes had better not drink alcohol now. Begin with a wine of style alcohol_free; wines "
    "with alcohol may follow for others, if there are others. Do not lecture: why is said already."
)
NOTE_FORBIDDEN: Final = "only wines without alcohol are shown to this person"
NOTE_FIRST: Final = "wines without alcohol come first for this person"
REACTING: Final = (
    "Who writes, or whom the wine is for, gets ill from {kinds} wine: recommend none and name none."
)
NOTE_ALLERGY: Final = "what somebody reacts to is left out for this person: {left_out}"


def person_in(run: Run) -> Person:
    """Return what is known of who asks; nobody where nothing is."""
    known = run.context
    return known if isinstance(known, Person) else replace(NOBODY, care=care_in(run))


def care_in(run: Run) -> Care:
    """Return what care who asks needs; none where nothing is known."""
    known = run.context.care if isinstance(run.context, Person) else run.context
    return known if isinstance(known, Care) else NO_CARE


def instructions(care: Care) -> str:
    """Say for a model what care asks of its answer; empty if nothing."""
    asked = FORBIDDEN if care.forbids_alcohol else FIRST if care.is_cautious else ""
    reacting = REACTING.format(kinds=" or ".join(sorted(care.reactions))) if care.reactions else ""
    return "\n".join(f"- {each}" for each in (asked, reacting) if each)


def left_out(person: Person) -> str:
    """Say for a model what care and taste leave out of a result; empty if nothing."""
    of_taste = taste.note(person) if person.facts else ""
    return "; ".join(filter(None, (note(person.care), of_taste)))


def note(care: Care) -> str:
    """Say for a model what was left out of a result, or put first in it; empty if nothing."""
    left_out = ", ".join(
        (*sorted(care.allergies), *(f"{each} wine" for each in sorted(care.reactions)))
    )
    allergy = NOTE_ALLERGY.format(left_out=left_out) if left_out else ""
    sober = NOTE_FORBIDDEN if care.forbids_alcohol else NOTE_FIRST if care.is_cautious else ""
    return "; ".join(filter(None, (sober, allergy)))


def is_without_alcohol(wine: AnyWine) -> bool:
    """Whether a wine counts as one without alcohol."""
    return wine.style == Style.ALCOHOL_FREE and (wine.abv or 0) <= MOST_ALCOHOL


def may_be_shown(wine: AnyWine, care: Care) -> bool:
    """Whether care lets a wine be shown at all."""
    if "grapes" in care.allergies or care.allergies.intersection(wine.allergens):
        return False
    kinds = {wine.style, wine.colour if isinstance(wine, Wine) else None}
    if care.reactions and (None is wine.style or kinds.intersection(care.reactions)):
        return False
    has_none = is_without_alcohol(wine) and (wine.abv or 0) <= NO_ALCOHOL
    return has_none or not care.forbids_alcohol


def catalogue_for(catalogue: Catalogue, person: Person) -> Catalogue:
    """Return the part of a catalogue that a person may be shown and wants to see; else all."""
    care = person.care
    if person.facts:
        catalogue = taste.catalogue_of_taste(catalogue, person)
    leaves_out = care.forbids_alcohol or care.allergies or care.reactions
    is_whole = not (leaves_out or care.is_cautious)
    return catalogue if is_whole else _CarefulCatalogue(catalogue, care)


class _CarefulCatalogue:
    """Fulfils `Catalogue` with what care lets a person be shown."""

    def __init__(self, catalogue: Catalogue, care: Care) -> None:
        self._catalogue, self._care = catalogue, care

    async def search(self, query: WineQuery) -> WineSearchResult:
        """Find wines that pass `query` and may be shown, those without alcohol first if asked."""
        found = self._allowed(await self._catalogue.search(self._narrowed(query)))
        if self._care.is_cautious and Style.ALCOHOL_FREE not in query.styles:
            without = query.model_copy(update={"limit": OFFERED_FIRST})
            first = self._allowed(await self._catalogue.search(self._sober(without)))
            return _joined(first, found)
        return found

    async def similar(self, wine_id: str, query: WineQuery) -> WineSearchResult:
        """Find others that may be shown, most like this wine first."""
        return self._allowed(await self._catalogue.similar(wine_id, self._narrowed(query)))

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        """Return those of these wines that may be shown."""
        wines = await self._catalogue.get(wine_ids)
        return [wine for wine in wines if may_be_shown(wine, self._care)]

    async def count(self) -> int:
        """Return how many wines the whole catalogue holds."""
        return await self._catalogue.count()

    def _narrowed(self, query: WineQuery) -> WineQuery:
        told = self._care.allergies - {"grapes", "histamine"}
        declared = {Allergen(each) for each in told}
        update: dict[str, object] = {
            "without_allergens": tuple({*query.without_allergens, *declared})
        }
        if ill_of := tuple(map(Style, self._care.reactions)):
            update["without_styles"] = tuple({*query.without_styles, *ill_of})
            update["soft"] = tuple({*query.soft, "styles", "colours"})
        narrowed = query.model_copy(update=update)
        return self._sober(narrowed) if self._care.forbids_alcohol else narrowed

    def _sober(self, query: WineQuery) -> WineQuery:
        """The same search among wines without alcohol, where what was asked can only rank."""
        colours = tuple(colour for colour in Colour if Style(colour) in query.styles)
        soft = {"colours", "sweetness", "bodies", "tannins", "acidities", "foods", "grapes"}
        update = {
            "styles": (Style.ALCOHOL_FREE,),
            "without_styles": (),
            "colours": query.colours or colours,
            "soft": tuple(sorted({*query.soft, *soft, "countries", "regions"} - {"styles"})),
            "min_abv": None,
            "max_abv": None,
        }
        return query.model_copy(update=update)

    def _allowed(self, found: WineSearchResult) -> WineSearchResult:
        wines = tuple(wine for wine in found.wines if may_be_shown(wine, self._care))
        total = found.total if len(wines) == len(found.wines) else len(wines)
        return found.model_copy(update={"wines": wines, "total": total})


def _joined(first: WineSearchResult, then: WineSearchResult) -> WineSearchResult:
    """One result of two, each wine once."""
    known = {wine.id for wine in first.wines}
    wines = (*first.wines, *(wine for wine in then.wines if wine.id not in known))
    return WineSearchResult(
        wines=wines,
        total=max(then.total, len(wines)),
        relax={} if wines else then.relax,
        missed={**then.missed, **first.missed},
    )


class Careful:
    """Holds the answers of a turn to what care asks, and to what the model itself heard.

    A concern that one attempt names holds for all others: a model can add one and lift none. Where
    everything `said` is surely ordinary it heard what nobody told, as small models do. In a crisis
    nothing of an answer counts, and help is what is rendered.
    """

    def __init__(
        self,
        contract: OutputContract[SommelierResponse],
        care: Care,
        said: Sequence[str],
        help: Help | None = None,
    ) -> None:
        self._contract, self._said, self._help = contract, said, help or Help()
        self.care, self._before = care, care
        rule: Grounding[SommelierResponse] = self._grounding
        self.contract = contract.with_rules(
            semantic=self._semantic,
            grounding=rule,
            salvage=self._salvage,
            partial=self._partial,
            render=self._render,
        )

    @property
    def heard(self) -> frozenset[Concern]:
        """What only the model heard, whoever it is about."""
        return self.care.all - self._before.all

    @property
    def lasting(self) -> frozenset[Concern]:
        """What of that is to be remembered of who writes. A crisis is not: help alone is said."""
        return self.heard & self.care.own & FORBIDDING - {"crisis"}

    @cached_property
    def _is_ordinary(self) -> bool:
        return all(map(is_ordinary, self._said))

    def _semantic(self, response: SommelierResponse) -> str | None:
        if response.concern != "none" and not self._is_ordinary:
            self.care = self.care.adding(response.concern)
        return None if self.care.is_crisis else self._contract.semantic(response)

    def _grounding(self, response: SommelierResponse, evidence: Evidence) -> str | None:
        if self.care.is_crisis:
            return None
        broken = self._contract.grounding(response, evidence)
        return broken or broken_care(response, evidence, self.care)

    def _salvage(self, response: SommelierResponse, evidence: Evidence) -> SommelierResponse | None:
        left = self._contract.salvage(response, evidence)
        return left and careful_part(left, evidence, self.care)

    def _partial(
        self, written: Mapping[str, object], evidence: Evidence
    ) -> SommelierResponse | None:
        if self.care.is_crisis or self._contract.partial is None:
            return None
        begun = self._contract.partial(written, evidence)
        begun = begun and careful_part(begun, evidence, self.care)
        return None if begun is None or broken_care(begun, evidence, self.care) else begun

    def _render(self, response: SommelierResponse, evidence: Evidence) -> str:
        if self.care.is_crisis:
            return self._help.in_crisis(self.care)
        return self._contract.render(response, evidence)


def broken_care(response: SommelierResponse, evidence: Evidence, care: Care) -> str | None:
    """Say what in a response a person must not be shown; None if nothing."""
    shown = [wine for each in response.wines if (wine := _wine(each.wine_id, evidence))]
    if refused := next((wine for wine in shown if not may_be_shown(wine, care)), None):
        return f"{refused.label} must not be shown to this person; {note(care)}"
    if care.forbids_alcohol:
        texts = (response.intro, response.closing, *(each.description for each in response.wines))
        names = (name for text in texts for name in named_with_alcohol(text, evidence))
        if name := next(names, ""):
            return f"the text names {name}; {FORBIDDEN}"
    known = [each for each in evidence.found.values() if isinstance(each, AnyWine)]
    found = any(is_without_alcohol(wine) for wine in known)
    if care.is_cautious and found and shown and not is_without_alcohol(shown[0]):
        return "the first wine must be one of style alcohol_free: this person had better not drink"
    return None


def careful_part(
    response: SommelierResponse, evidence: Evidence, care: Care
) -> SommelierResponse | None:
    """Return a response without what a person must not be shown; None if nothing is left."""

    def kept(text: str) -> str:
        if not care.forbids_alcohol:
            return text
        said = sentences(text)
        return " ".join(each for each in said if not any(named_with_alcohol(each, evidence)))

    shown = [(each, _wine(each.wine_id, evidence)) for each in response.wines]
    allowed = [(each, wine) for each, wine in shown if wine and may_be_shown(wine, care)]
    if care.is_cautious:
        allowed.sort(key=lambda each: not is_without_alcohol(each[1]))
    wines = [each.model_copy(update={"description": kept(each.description)}) for each, _ in allowed]
    if response.wines and not wines:
        return None
    update = {"intro": kept(response.intro), "closing": kept(response.closing), "wines": wines}
    return response.model_copy(update=update)


def _wine(wine_id: str, evidence: Evidence) -> AnyWine | None:
    found = evidence.found.get(wine_id)
    return found if isinstance(found, AnyWine) else None


def named_with_alcohol(text: str, evidence: Evidence) -> Iterator[str]:
    """Find what a text names that holds alcohol: grapes, regions, kinds of wine, other drinks.

    Not in a sentence that speaks of what is without or says no, nor in the name of a wine that is
    without.
    """
    found = (each for each in evidence.found.values() if isinstance(each, AnyWine))
    labels = (wine.label for wine in found if is_without_alcohol(wine))
    shown = frozenset(word for label in labels for word in words(label))
    for sentence in sentences(text):
        said = words(sentence)
        if not any(_known(said, _vocabulary()["harmless"])):
            names = _known(said, _vocabulary()["drinks"])
            yield from (name for name in names if not shown.issuperset(name.split()))


def _known(said: Sequence[str], vocabulary: Collection[str]) -> Iterator[str]:
    """The runs of words that are in a vocabulary, or begin as one of its words does."""
    for at, word in enumerate(said):
        runs = (" ".join(said[at : at + length]) for length in range(1, LONGEST_NAME + 1))
        heads = (f"{word[:length]}*" for length in range(SHORTEST_HEAD, len(word) + 1))
        if run := next((run for run in runs if run in vocabulary), ""):
            yield run
        elif any(head in vocabulary for head in heads):
            yield word


@cache
def _vocabulary() -> Mapping[str, frozenset[str]]:
    """The words of `caring.toml`, and all names of grapes and regions."""
    read = read_toml(dict[str, str], Path(__file__).with_suffix(".toml"))
    words_of = {name: {each.replace("_", " ") for each in read[name].split()} for name in read}
    names = {name for kind in ("grapes", "regions") for name in known_names(kind)}
    return {
        "drinks": frozenset(words_of["drinks"] | names),
        "harmless": frozenset(words_of["harmless"]),
    }
