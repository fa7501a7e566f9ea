"""What a person is shown of the catalogue: by their taste, their budget, and their care."""

from dataclasses import replace

import pytest

from agent.care.concerns import Care
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox
from agent.memory.cellar import bottles_of, guess_wine
from agent.memory.tools import memory_tools
from agent.sommelier.safety import find_wines
from agent.sommelier.wine import Style, WineQuery
from agent.turn import Deps, Fact, Person
from db.engine import Sessions
from db.wines.catalogue import SqlCatalogue


@pytest.fixture
def catalogue(cellar_sessions: Sessions) -> SqlCatalogue:
    return SqlCatalogue(cellar_sessions)


REDS = WineQuery(styles=(Style.RED,))


async def test_hates_are_left_out_and_likes_come_first(catalogue: SqlCatalogue) -> None:
    hating = Person(facts=(Fact("hate", "grapes=Merlot"), Fact("hate", "bodies=full;styles=red")))
    found = await find_wines(catalogue, REDS, hating)
    assert found.wines
    assert not any("Merlot" in wine.grapes or wine.body == "full" for wine in found.wines)
    liking = Person(
        facts=(Fact("like", "grapes=Tempranillo"), Fact("rated", "countries=Spain", "+"))
    )
    found = await find_wines(catalogue, REDS, liking)
    assert [wine.country for wine in found.wines[:2]] == ["Spain", "Spain"]
    assert found.missed == {}


async def test_a_usual_budget_is_the_limit_unless_one_is_named_or_nothing_is_left(
    catalogue: SqlCatalogue,
) -> None:
    person = Person(facts=(Fact("budget", "15 EUR"),))
    assert all(
        (wine.price or 99) <= 15 for wine in (await find_wines(catalogue, REDS, person)).wines
    )
    dear = WineQuery(styles=(Style.RED,), min_price=40)
    assert (await find_wines(catalogue, dear, person)).wines
    grand = WineQuery(regions=("Sauternes",))
    assert (await find_wines(catalogue, grand, Person(facts=(Fact("budget", "5 EUR"),)))).wines


@pytest.mark.parametrize("concern", ["driving", "medication"])
async def test_who_had_better_not_drink_is_shown_wines_without_alcohol_first(
    catalogue: SqlCatalogue, concern: str
) -> None:
    found = await find_wines(catalogue, REDS, Person(Care().with_remembered([concern])))
    styles = [wine.style for wine in found.wines]
    assert styles == [Style.ALCOHOL_FREE, *[Style.RED] * (REDS.limit - 1)]


async def test_a_model_is_told_what_the_guest_owns_but_no_wine_that_they_must_not_drink() -> None:
    call = ToolCall("call_1", "own_cellar", "{}")
    barolo = replace(bottles_of(guess_wine("Barolo 2016", 45), 6), id=1)
    owner = Person(facts=(Fact("hate", "grapes=Nebbiolo"),), bottles=(barolo,), user_id=7)
    told = await Toolbox(memory_tools()).call(call, Run(deps=Deps(person=owner)))
    assert '"bottles":6' in told.text
    minor = replace(owner, care=Care().with_remembered(["under_age"]))
    told = await Toolbox(memory_tools()).call(call, Run(deps=Deps(person=minor)))
    assert told.error_type
