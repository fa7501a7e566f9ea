"""Wines that a model names in its prose without their ids are shown as cards; places are not."""

import pytest

from agent.safety.state import SafetyState
from agent.sommelier.named_wines import find_named_wines
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.text import split_words
from agent.turn import NOBODY, Fact, Person
from db.engine import Sessions
from db.wines.catalogue import SqlCatalogue
from db.wines.catalogue_import import STARTER, load_starter
from db.wines.lists.importing import read_catalogue


@pytest.fixture
async def catalogue(sessions: Sessions) -> SqlCatalogue:
    await load_starter(sessions)
    return SqlCatalogue(sessions)


async def named_in(
    intro: str, catalogue: SqlCatalogue, person: Person = NOBODY
) -> list[str]:
    answer = SommelierResponse(response_type="informational", intro=intro)
    return [wine.id for wine in await find_named_wines(answer, [], catalogue, person)]


async def test_a_wine_that_is_named_is_shown(catalogue: SqlCatalogue) -> None:
    said = "Take the Catena Zapata Malbec, or Planeta Etna Bianco 2024 for the fish."
    found = await named_in(said, catalogue)
    assert found == ["catena-malbec-2024", "planeta-etna-bianco-2024"]


async def test_a_wine_that_is_turned_down_or_must_not_be_shown_is_not(
    catalogue: SqlCatalogue,
) -> None:
    assert not await named_in(
        "I would not take the Catena Zapata Malbec here.", catalogue
    )
    hates_red = Person(facts=(Fact("hate", "styles=red"),))
    drives = Person(safety=SafetyState(turn_concerns=frozenset({"driving"})))
    for person in (hates_red, drives):
        assert not await named_in("Take the Catena Zapata Malbec.", catalogue, person)


async def test_grapes_places_and_estates_alone_name_no_wine(
    catalogue: SqlCatalogue,
) -> None:
    names: set[str] = set()
    for wine in read_catalogue(STARTER).wines:
        names |= {wine.country, wine.region, wine.appellation, *wine.grapes}
        names.add(f"{wine.appellation} {wine.region}")
        if not set(split_words(wine.name)) <= set(split_words(wine.producer)):
            names.add(wine.producer)
    for name in sorted(filter(None, names)):
        found = await named_in(f"It recalls {name} at its best.", catalogue)
        assert not found, (name, found)
