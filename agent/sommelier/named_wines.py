"""Find the wines that a model names in its prose without their ids, so that cards show them too.

A wine of the catalogue is found if a run of capitalised words has both its producer and its name. A
grape, a region or an appellation alone does not name a wine. Sentences with a negation, such as "I
leave out the Muga Reserva", are not searched, because they do not recommend a wine.
"""

from collections.abc import Sequence
from typing import Final

from agent.language import split_sentences
from agent.sommelier.attachment import LIST_ID_PREFIX, AnyWine
from agent.sommelier.claims import is_affirmed
from agent.sommelier.filters import mark_wine, may_be_shown
from agent.sommelier.queries import MAX_NAME_CHARS, Catalogue, WineQuery
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.wine import CELLAR_PREFIX, Wine
from agent.text import pattern, split_words
from agent.turn import Person

NAME: Final = pattern(
    r"\p{Lu}[\p{L}\p{N}'’.&-]*"
    r"(?:\s(?:(?:de|del|della|di|da|do|dos|du|des|la|le|les|las|los|von|van|y|e|et|und|&)\s)*"
    r"(?:[dl]['’])?[\p{Lu}\p{N}][\p{L}\p{N}'’.&-]*)+"
)
"""Two or more capitalised words, with the small ones between them: "Casa de la Ermita"."""
MAX_NAMES: Final = 6
"""The most names of an answer that are looked up."""
MAX_CANDIDATES: Final = 8
"""The most wines that are compared with a name."""
MAX_WINES: Final = 6
"""The most wines that an answer shows."""


async def find_named_wines(
    answer: SommelierResponse,
    sources: Sequence[AnyWine],
    catalogue: Catalogue,
    person: Person,
) -> list[Wine]:
    """Return the wines that an answer names in its prose without recommending them by their ids.

    `sources` are the wines that the tools returned. If the guest has sent a
    wine list, or alcohol-free wines are offered to the guest first, no wines are added. The guest's
    own bottles are not found again in the catalogue.
    """
    if person.safety.prefers_alcohol_free:
        return []
    has_list = any(source.id.startswith(LIST_ID_PREFIX) for source in sources)
    if has_list:
        return []
    excluded = _list_excluded(answer, sources)
    max_named = MAX_WINES - len(answer.wines)
    names = _list_names(answer)
    named_wines: list[Wine] = []
    for name in names[:MAX_NAMES]:
        if len(named_wines) >= max_named:
            break
        wine = await _find_wine(name, catalogue)
        if wine is None:
            continue
        words = _words_of(wine)
        if words in excluded or not may_be_shown(wine, person):
            continue
        marked = mark_wine(wine, person, person.safety.allergies)
        named_wines.append(marked)
        excluded.add(words)
    return named_wines


def _list_excluded(
    answer: SommelierResponse, sources: Sequence[AnyWine]
) -> set[frozenset[str]]:
    """Return the words of the wines that an answer shows already, and of the guest's own."""
    shown_ids = {item.wine_id for item in answer.wines}
    excluded: set[frozenset[str]] = set()
    for source in sources:
        is_own = source.id.startswith(CELLAR_PREFIX)
        if is_own or source.id in shown_ids:
            excluded.add(_words_of(source))
    return excluded


def _words_of(wine: AnyWine) -> frozenset[str]:
    """Return the words of a wine's producer and name, which all its vintages share."""
    return frozenset(split_words(f"{wine.producer} {wine.name}"))


def with_wines(answer: SommelierResponse, wines: Sequence[Wine]) -> SommelierResponse:
    """Return an answer that also shows these wines."""
    recommendations = list(answer.wines)
    for wine in wines:
        recommendations.append(WineRecommendation(wine_id=wine.id))
    return answer.model_copy(update={"wines": recommendations})


def _list_names(answer: SommelierResponse) -> list[str]:
    """Return the runs of capitalised words in the sentences of an answer that affirm something."""
    descriptions = [wine.description for wine in answer.wines]
    names: list[str] = []
    for text in (answer.intro, *descriptions, answer.closing):
        for sentence in split_sentences(text):
            if is_affirmed(sentence):
                names += NAME.findall(sentence)
    return list(dict.fromkeys(names))


async def _find_wine(name: str, catalogue: Catalogue) -> Wine | None:
    """Return the wine in stock whose producer and name both occur in a run of words, or None."""
    name_words = set(split_words(name))
    query = WineQuery(name=name[:MAX_NAME_CHARS], limit=MAX_CANDIDATES)
    result = await catalogue.search(query)
    for wine in result.wines:
        if wine.producer and _words_of(wine) <= name_words:
            return wine
    return None
