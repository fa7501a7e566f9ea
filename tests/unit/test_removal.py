"""Which bottles a text removes from a cellar: those it names clearly, as many as it says."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cellar.items import guess_wine, to_cellar_item
from agent.cellar.removal import (
    Found,
    NotFound,
    Removal,
    TooFew,
    Unclear,
    find_item_to_remove,
    parse_removal,
)
from agent.sommelier.vocabulary import Style
from agent.sommelier.wine import Wine
from agent.turn import CellarItem

BOTTLES = (
    "Barolo 2016",
    "Barolo 2019",
    "Barolo Cannubi 2016",
    "Barbera d'Alba 2021",
    "Lapierre Morgon",
    "Château Margaux 2010",
    "Château Latour 2010",
    "Bollinger",
    "Bollinger Rosé",
)


def cellar(*labels: str, count: int = 12) -> list[CellarItem]:
    """Return items with the ids 1, 2, ..."""
    items = [to_cellar_item(guess_wine(label), count) for label in labels]
    return [replace(item, number=number) for number, item in enumerate(items, start=1)]


def removed(items: list[CellarItem], line: str) -> Removal:
    count, name = parse_removal(line)
    return find_item_to_remove(items, name, count)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("1 Barolo 2019", "barolo 2019"),
        ("1 BAROLO cannubi", "barolo cannubi 2016"),
        (
            "3 × Barolo 2016",
            "barolo 2016",
        ),  # as the bot writes it, and though Cannubi fits, too
        ("the Barbera from Alba", "barbera d alba 2021"),
        (
            "1 bottle of Lapierre Morgon 2021",
            "lapierre morgon",
        ),  # the stored vintage is not known
        ("Morgon Gamay", "lapierre morgon"),  # its grape is known
        ("une bouteille de Margaux", "chateau margaux 2010"),
        ("2 Bollinger", "bollinger"),
        ("4 own:2", "barolo 2019"),
    ],
)
def test_bottles_are_removed_by_producer_name_or_id(line: str, key: str) -> None:
    removal = removed(cellar(*BOTTLES), line)
    assert isinstance(removal, Found)
    assert removal.item.key == key
    assert removal.item.count == -parse_removal(line)[0]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "1 Opus One 2019",
            "1 2018",
            "2018",
            "1 2016",
            "12",
            "",
            "own:99",
            "own:",
            "1 wine",
        ),
        *(
            "Morgon 2021 from Domaine de la Côte",
            "Château Palmer 2010",
            "d'Asti",
            "Barolo 2018",
        ),
    ],
)
def test_a_vintage_or_a_common_word_took_bottles_of_another_wine(line: str) -> None:
    items = cellar(*(bottle for bottle in BOTTLES if "Morgon" not in bottle))
    assert removed(items, line) == NotFound()


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        ("2 Barolo", [1, 2, 3]),
        ("Barolo Sarmassa 2016", [1, 3]),  # "Sarmassa" is none of these
        ("Morgon 2021 from Foillard", [5]),
    ],
)
def test_a_wine_was_taken_where_several_fit_or_none_fully(
    line: str, ids: list[int]
) -> None:
    removal = removed(cellar(*BOTTLES), line)
    assert isinstance(removal, Unclear)
    assert [item.number for item in removal.items] == ids


def test_all_bottles_were_taken_where_more_were_asked_for() -> None:
    items = cellar("Barolo 2016", count=3)
    assert removed(items, "9 Barolo") == TooFew(items[0])
    assert isinstance(removed(items, "3 Barolo"), Found)
    assert removed(cellar("Barolo 2016", count=0), "1 Barolo") == NotFound()


NAMES = (
    "Barolo Cannubi Lapierre Morgon Margaux Opus Barbera Alba Bollinger".lower().split()
)
COMMON = "the from di d' de la Château Domaine bottle of wine 1 2016 2018 2021".split()
words = st.sampled_from(NAMES)
vintages = st.none() | st.sampled_from([2016, 2018, 2021])


@st.composite
def items_in_cellar(draw: st.DrawFn, number: int) -> CellarItem:
    wine = Wine(
        id="own:",
        producer=f"Domaine de {draw(words)}",
        name=" d'".join(draw(st.lists(words, min_size=1, max_size=2))),
        vintage=draw(vintages),
        country="Italy",
        style=Style.RED,
    )
    return replace(to_cellar_item(wine, draw(st.integers(0, 12))), number=number)


cellars = st.tuples(*(items_in_cellar(number) for number in range(1, 5))).map(list)
saids = st.lists(words | st.sampled_from(COMMON), max_size=6).map(" ".join)


@given(items=cellars, said=saids, count=st.integers(1, 15))
def test_no_removal_takes_a_bottle_that_shares_no_word_with_what_was_said(
    items: list[CellarItem], said: str, count: int
) -> None:
    removal = find_item_to_remove(items, said, count)
    if not isinstance(removal, Found):
        return
    (item,) = (item for item in items if item.number == removal.item.number)
    said_names = set(said.split()).intersection(NAMES)
    assert said_names
    assert said_names <= set(item.key.split())
    assert 0 < count == -removal.item.count <= item.count
    years = [year for year in ("2016", "2018", "2021") if year in said.split()]
    vintage = item.wine.get("vintage")
    assert not years or vintage is None or str(vintage) in years
