"""What a search finds, in which order, and what it says when it finds nothing."""

import asyncio
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncEngine

from agent.safety.state import SafetyState
from agent.sommelier.conversion import convert_roughly
from agent.sommelier.filters import find_wines, get_wines
from agent.sommelier.offers import Offer
from agent.sommelier.queries import WineQuery
from agent.sommelier.vocabulary import Allergen, Colour, Currency, OfferKind, Style
from agent.sommelier.wine import Wine
from agent.turn import Fact, Person
from db.engine import Sessions, create_engine
from db.wines.catalogue import SqlCatalogue
from db.wines.catalogue_import import import_wines
from db.wines.lists.importing import CatalogueFile, parse_catalogue
from db.wines.search import WineIndex

FOR_LAMB = "borsao guigal jamet muga penfolds"
"""The red wines for lamb, by the first words of their ids, which are unique in the cellar."""


@pytest.fixture
def catalogue(cellar_sessions: Sessions) -> SqlCatalogue:
    return SqlCatalogue(cellar_sessions)


async def found(catalogue: SqlCatalogue, **query: Any) -> list[str]:
    """The first words of the ids of the wines, best first."""
    result = await catalogue.search(WineQuery(**{"limit": 12, **query}))
    assert result.total >= len(result.wines)
    return [first_word(wine) for wine in result.wines]


def first_word(wine: Wine) -> str:
    return wine.id.partition("-")[0]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"styles": ["red"], "foods": ["lamb"]}, FOR_LAMB),
        ({"styles": ["sparkling"], "foods": ["oysters"], "max_price": 30}, "raventos"),
        ({"colours": ["red"], "sweetness": ["sweet", "luscious"]}, "taylors"),
        (
            {"styles": ["white"], "acidities": ["high"], "max_price": 20},
            "luneau trimbach",
        ),
        (
            {
                "styles": ["red"],
                "foods": ["lamb"],
                "not_ids": ["borsao-garnacha-2021", "x\x00"],
            },
            "guigal jamet muga penfolds",
        ),
        ({"min_abv": 20}, "taylors"),
        ({"max_abv": 0.5}, "leitz"),
        ({"vegan": True, "styles": ["red"], "foods": ["lamb"]}, "borsao guigal jamet"),
        ({"without_allergens": ["sulphites"]}, "lapierre radikon"),
        ({"grapes": ["shiraz"]}, "guigal jamet penfolds"),
        ({"countries": ["UK"], "in_stock_only": False}, "nyetimber"),
        ({"countries": ["United States", "australia"]}, "penfolds ridge"),
        ({"regions": ["cote rotie"]}, "jamet"),
        ({"regions": ["Bourgogne", "Piemonte"]}, "lapierre vajra"),
        (
            {"styles": ["red"], "foods": ["lamb"], "without_grapes": ["Shiraz"]},
            "borsao muga",
        ),
        (
            {"styles": ["red"], "without_countries": ["france", "ITALIA", "Spain"]},
            "penfolds private",
        ),
        ({"styles": ["sparkling"], "without_styles": ["rose"]}, "bollinger raventos"),
    ],
    ids=str,
)
async def test_filters_return_exactly_the_matching_wines(
    catalogue: SqlCatalogue, query: dict[str, Any], ids: str
) -> None:
    assert sorted(await found(catalogue, **query)) == ids.split()


async def test_either_origin_filter_excludes_countries_and_regions(
    catalogue: SqlCatalogue,
) -> None:
    """A model that calls Champagne a country must not be shown Champagne."""
    for name in ("without_countries", "without_regions"):
        sparkling = partial(found, catalogue, styles=["sparkling"])
        assert await sparkling(**{name: ["Champagne", "US"]}) == ["raventos"]
        assert await sparkling(**{name: ["France", "Catalonia"]}) == []


async def test_price_limits_are_converted_and_inclusive(
    catalogue: SqlCatalogue,
) -> None:
    american = partial(found, catalogue, countries=["United States"])
    # The one wine costs 70 dollars, which are 61.60 euros.
    assert (
        await american(max_price=61.60)
        == await american(max_price=54, currency="GBP")
        != []
    )
    assert await american(min_price=70, currency="USD") == ["ridge"]
    assert (
        await american(max_price=61.59)
        == await american(max_price=69.9, currency="USD")
        == []
    )


async def test_text_ranks_and_never_excludes(catalogue: SqlCatalogue) -> None:
    reds = {"styles": ["red"], "foods": ["lamb"], "max_price": 500}
    plain = await found(catalogue, **reds)
    smoky = await found(catalogue, **reds, text="olives, violets, bacon")
    assert smoky[0] == "jamet"
    assert set(smoky) == set(plain)
    assert await found(catalogue, **reds, text="xyzzy") == plain
    alone = await found(catalogue, text="something with saffron please")
    assert "suduiraut" in alone[:2]


async def test_soft_filters_rank_and_unmet_ones_are_listed(
    catalogue: SqlCatalogue,
) -> None:
    asked = {
        "styles": ["red"],
        "foods": ["lamb"],
        "countries": ["Portugal", "Australia"],
    }
    result = await catalogue.search(
        WineQuery.model_validate(asked | {"soft": [*asked]})
    )
    assert result.total == 21
    assert first_word(result.wines[0]) == "penfolds"
    assert sorted(map(first_word, result.wines[:5])) == FOR_LAMB.split()
    assert result.unmet_filters["muga-rioja-reserva-2018"] == ("countries",)
    assert "penfolds-bin-28-2019" not in result.unmet_filters


async def test_the_first_grape_counts_more_than_a_later_one(
    catalogue: SqlCatalogue,
) -> None:
    for soft in ((), ("grapes",)):
        mourvedre = await found(catalogue, grapes=["Mourvèdre"], soft=soft)
        assert mourvedre[:2] == ["tempier", "guigal"]


async def test_no_producer_comes_twice_while_others_are_as_good(
    sessions: Sessions,
) -> None:
    wines = [
        Wine(
            id=f"{house}-{number}",
            producer=house,
            name=str(number),
            country="X",
            style="red",
        )
        for house in ("a", "b", "c")
        for number in range(5)
    ]
    await import_wines(sessions, CatalogueFile(tuple(wines)))
    houses = await found(SqlCatalogue(sessions), styles=["red"], limit=6)
    assert sorted(houses) == ["a", "a", "b", "b", "c", "c"]
    assert len({*houses[:3]}) == 3


async def test_expensive_and_alcohol_free_wines_are_not_first_by_default(
    sessions: Sessions,
) -> None:
    wines = [
        Wine(
            id=f"w{at}",
            producer=f"p{at}",
            name="n",
            country="X",
            style=Style.RED if price > 7 else Style.ALCOHOL_FREE,
            price=price,
        )
        for at, price in enumerate([8, 15, 30, 80, 90, 180, 200, 300, 5, 6, 7])
    ]
    await import_wines(sessions, CatalogueFile(tuple(wines)))
    catalogue = SqlCatalogue(sessions)
    for countries in ([], ["X"], ["X", "Y"], ["X", "Z"]):
        assert set(await found(catalogue, countries=countries, limit=3)) == {
            "w0",
            "w1",
            "w2",
        }
    assert (await found(catalogue, min_price=100, limit=1))[0] in {"w5", "w6", "w7"}
    assert len(await found(catalogue, styles=["alcohol_free"])) == 3


async def test_cheapest_wines_come_first_and_unpriced_ones_last(
    catalogue: SqlCatalogue,
) -> None:
    query = WineQuery(limit=12, styles=(Style.RED,), order="cheapest")
    *priced, last = (await catalogue.search(query)).wines
    assert (len(priced), last.id) == (7, "private-cellar-mystery-red")
    assert priced == sorted(priced, key=lambda wine: wine.price_in_euros or 0)
    named = await found(catalogue, styles=["red"], text="Penfolds", order="cheapest")
    assert (named[0], len(named)) == ("penfolds", 8)


@pytest.mark.parametrize(
    ("query", "relax"),
    [
        (
            {"styles": ["white"], "foods": ["lamb"], "max_price": 20},
            {"styles": 2, "foods": 3},
        ),
        (
            {"styles": ["sparkling"], "countries": ["England"]},
            {"countries": 3, "in_stock_only": 1},
        ),
        ({"text": "xyzzy"}, {}),
        ({"countries": ["Atlantis"], "regions": ["?"]}, {}),
    ],
    ids=str,
)
async def test_an_empty_result_counts_the_wines_without_each_filter(
    catalogue: SqlCatalogue, query: dict[str, Any], relax: dict[str, int]
) -> None:
    result = await catalogue.search(WineQuery(**query))
    assert result.wines == ()
    assert result.total == 0
    assert result.relax == relax


async def test_wines_that_another_process_imports_are_found_at_the_next_search(
    engine: AsyncEngine, cellar: dict[str, Wine]
) -> None:
    here, there = SqlCatalogue(Sessions(engine)), Sessions(engine)
    assert await found(here, styles=["sparkling"]) == []
    await import_wines(there, CatalogueFile((*cellar.values(),), source="list"))
    assert await found(here, styles=["sparkling"], countries=["Spain"]) == ["raventos"]
    await import_wines(there, CatalogueFile((), source="list"))
    assert await found(here, styles=["sparkling"]) == []


async def test_a_search_for_another_offer_looks_at_its_price_and_stock(
    sessions: Sessions,
) -> None:
    bottle, half = Offer(price=49.9), Offer(kind=OfferKind.HALF, price=26.95)
    glass = Offer(kind=OfferKind.GLASS, price=9, in_stock=False)
    wines = [
        sparkling("a", "Brut", 0, offers=(bottle, half)),
        sparkling("b", "Brut", 0, offers=(bottle, glass)),
    ]
    await import_wines(sessions, CatalogueFile(tuple(wines)))
    catalogue = SqlCatalogue(sessions)
    assert await found(catalogue, max_price=30) == []
    assert await found(catalogue, offer="glass") == []
    (wine,) = (
        await catalogue.search(WineQuery(offer=OfferKind.HALF, max_price=30))
    ).wines
    assert (wine.id, wine.offers) == ("a", (half, bottle))


NASTY = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="\"'*():&|!<>-^~\\%_;{}[] abNOTANDORNEAR\x00", max_size=60),
)


def test_no_text_breaks_a_search(cellar_url: str) -> None:
    with asyncio.Runner() as runner:
        engine = create_engine(cellar_url)
        catalogue = SqlCatalogue(Sessions(engine))

        def total(query: WineQuery) -> int:
            return runner.run(catalogue.search(query)).total

        @settings(max_examples=40, deadline=None)
        @given(text=NASTY, name=NASTY)
        def check(text: str, name: str) -> None:
            assert total(WineQuery(styles=(Style.RED,), text=text)) == 8
            named = WineQuery(
                text=text, grapes=(name,), countries=(name,), regions=(name,)
            )
            assert total(named) <= total(WineQuery(grapes=(name,))) <= 21
            without = {
                f"without_{kind}": [name] for kind in ("grapes", "countries", "regions")
            }
            without["not_ids"] = [name]
            assert total(WineQuery.model_validate(without)) + total(named) <= 21

        check()
        runner.run(engine.dispose())


async def test_a_price_below_is_exact_and_around_is_near(
    catalogue: SqlCatalogue,
) -> None:
    below = await catalogue.search(WineQuery(below=20, limit=12))
    assert below.wines
    assert all(
        wine.price is not None and (wine.price_in_euros or 0) < 20
        for wine in below.wines
    )
    in_francs = await catalogue.search(
        WineQuery(below=20, currency=Currency.CHF, order="dearest")
    )
    for wine in in_francs.wines:
        assert convert_roughly(wine.price or 0, wine.currency, Currency.CHF) < 20
    around = await catalogue.search(WineQuery(around=60, limit=12))
    prices = [wine.price_in_euros or 0 for wine in around.wines]
    assert prices
    assert all(45 <= price <= 75 for price in prices)
    assert prices == sorted(prices, key=lambda price: abs(price - 60))


async def test_oak_is_detected_in_the_notes(catalogue: SqlCatalogue) -> None:
    oaked = (await catalogue.search(WineQuery(oak=True, limit=12))).wines
    assert oaked
    assert all(
        "oak" in wine.notes.lower() or "barr" in wine.notes.lower() for wine in oaked
    )
    unoaked = (await catalogue.search(WineQuery(oak=False, limit=12))).wines
    assert unoaked
    assert not {wine.id for wine in oaked} & {wine.id for wine in unoaked}


def sparkling(wine_id: str, name: str, price: float, **facts: Any) -> Wine:
    told = {
        "producer": wine_id.title(),
        "country": "X",
        "style": Style.SPARKLING,
        **facts,
    }
    return Wine(id=wine_id, name=name, price=price, **told)


BUBBLES = (
    sparkling("a", "Brut", 14, appellation="Crémant du Jura"),
    sparkling(
        "b", "Prosecco Brut", 12, notes="Brut bubbles by the traditional method."
    ),
    sparkling("c", "Grande Cuvée", 190, notes="Elegant bubbles for a toast."),
    sparkling("d", "Sekt", 13),
    sparkling("e", "Cava", 15),
    sparkling(
        "f",
        "Zero",
        9,
        style="alcohol_free",
        colour="rose",
        abv=0.0,
        notes="Pink bubbles.",
    ),
    sparkling(
        "g", "Zero", 8, style="alcohol_free", colour="rose", notes="A still rosé."
    ),
    sparkling(
        "h", "Zero", 8, style="alcohol_free", colour="white", abv=0.5, notes="Bubbles."
    ),
    sparkling(
        "i", "Zero", 8, style="alcohol_free", colour="white", abv=0.0, notes="Still."
    ),
)


@pytest.fixture
async def bubbles(sessions: Sessions) -> SqlCatalogue:
    await import_wines(sessions, CatalogueFile(BUBBLES))
    return SqlCatalogue(sessions)


async def test_named_wines_come_first_and_expensive_ones_last(
    bubbles: SqlCatalogue,
) -> None:
    asked = {"styles": ["sparkling"], "text": "Crémant brut traditional method"}
    assert (await found(bubbles, **asked))[0] == "a"
    toast = {"styles": ["sparkling"], "text": "elegant bubbles for a toast"}
    assert (await found(bubbles, **toast))[-1] == "c"
    assert (await found(bubbles, **toast, max_price=200))[0] == "c"
    assert (await found(bubbles, **toast, order="dearest"))[0] == "c"
    assert (await found(bubbles, styles=["sparkling"], text="Grande Cuvée"))[0] == "c"


async def test_bubbles_and_colours_without_alcohol_are_found_in_one_search(
    bubbles: SqlCatalogue,
) -> None:
    assert await found(bubbles, alcohol_free=True, styles=["sparkling"]) == ["f", "h"]
    assert set(await found(bubbles, alcohol_free=True, styles=["rose"])) == {"f", "g"}
    assert set(await found(bubbles, alcohol_free=True, max_abv=0)) == {"f", "i"}


async def test_alcohol_free_results_list_unmet_filters(bubbles: SqlCatalogue) -> None:
    pregnant = Person(safety=SafetyState(turn_concerns=frozenset({"pregnancy"})))
    query = WineQuery(styles=(Style.SPARKLING,), colours=(Colour.ROSE,), limit=3)
    result = await find_wines(bubbles, query, pregnant)
    # The strength of "g" is not known, so it is not shown.
    assert [wine.id for wine in result.wines] == ["f", "i"]
    assert result.total == 2
    assert result.unmet_filters == {"i": ("colours", "styles")}


LIST = b"""name,style,allergens,notes
Eggy,red,sulphites;egg,
Untold,red,,
Declared,red,sulphites,
Vegan,red,sulphites,"A vegan red, fined with clay."
Not Vegan,red,sulphites,Not vegan.
"""


async def test_wines_with_undeclared_allergens_come_last_and_are_marked(
    sessions: Sessions,
) -> None:
    catalogue = SqlCatalogue(sessions)
    await import_wines(sessions, parse_catalogue(LIST))
    person = Person(SafetyState(allergies=frozenset({"egg"})))
    result = await find_wines(
        catalogue, WineQuery(styles=(Style.RED,), order="cheapest"), person
    )
    marks = {wine.name: wine.unknown_allergens for wine in result.wines}
    assert next(iter(marks)) == "Vegan"
    egg = (Allergen.EGG,)
    assert marks == {"Vegan": (), "Untold": egg, "Declared": egg, "Not Vegan": egg}
    again = await get_wines(catalogue, ["declared-nv"], person)
    assert [wine.unknown_allergens for wine in again] == [egg]
    # A wish counts as much as a stored allergy; nobody else reads of it.
    wish = WineQuery(without_allergens=(Allergen.SULPHITES,))
    found_for_wish = await find_wines(catalogue, wish, Person())
    assert {wine.unknown_allergens for wine in found_for_wish.wines} <= {
        (Allergen.SULPHITES,)
    }
    assert not any(
        wine.unknown_allergens
        for wine in (await find_wines(catalogue, WineQuery(), Person())).wines
    )


async def similar(catalogue: SqlCatalogue, wine_id: str, **query: Any) -> list[str]:
    result = await catalogue.search(WineQuery(**{"like": wine_id, "limit": 2, **query}))
    return [first_word(wine) for wine in result.wines]


async def test_similar_wines_are_near_in_stock_pass_the_filters_and_are_others(
    catalogue: SqlCatalogue,
) -> None:
    assert await similar(catalogue, "bollinger-special-cuvee-nv") == [
        "billecart",
        "raventos",
    ]
    assert (
        await similar(catalogue, "bollinger-special-cuvee-nv", countries=["England"])
        == []
    )
    assert (await similar(catalogue, "jamet-cote-rotie-2018", max_price=20))[
        0
    ] == "guigal"
    for soft in ([], ["countries"]):
        spanish = {"countries": ["Spain"], "soft": soft}
        assert set(await similar(catalogue, "jamet-cote-rotie-2018", **spanish)) == {
            "muga",
            "borsao",
        }


@pytest.mark.parametrize("unknown", ["nobody", "x' OR 1=1 --", "\x00"])
async def test_an_unknown_id_finds_nothing(
    catalogue: SqlCatalogue, cellar: dict[str, Wine], unknown: str
) -> None:
    known = cellar["taylors-lbv-2017"]
    assert await catalogue.get([unknown, "\ud800", known.id]) == [known]
    assert await similar(catalogue, unknown) == []


async def test_disliked_values_are_excluded_and_liked_ones_come_first(
    catalogue: SqlCatalogue,
) -> None:
    reds = WineQuery(
        styles=(Style.RED,), grapes=(), countries=()
    )  # as a strict schema wants it
    hating = Person(
        facts=(Fact("hate", "grapes=Merlot"), Fact("hate", "bodies=full;styles=red"))
    )
    found = await find_wines(catalogue, reds, hating)
    assert found.wines
    assert not any(
        "Merlot" in wine.grapes or wine.body == "full" for wine in found.wines
    )
    liking = Person(
        facts=(Fact("like", "grapes=Tempranillo"), Fact("rated", "countries=Spain"))
    )
    found = await find_wines(catalogue, reds, liking)
    assert [wine.country for wine in found.wines[:2]] == ["Spain", "Spain"]
    assert found.unmet_filters == {}


@pytest.mark.parametrize("concern", ["driving", "medication"])
async def test_alcohol_free_wines_can_be_ranked_first(
    catalogue: SqlCatalogue, concern: str
) -> None:
    person = Person(SafetyState().with_stored_names([concern]))
    found = await find_wines(catalogue, WineQuery(styles=(Style.RED,), limit=3), person)
    styles = [wine.style for wine in found.wines]
    assert styles == [Style.ALCOHOL_FREE, Style.RED, Style.RED]


def red(wine_id: str, name: str, **facts: Any) -> Wine:
    told = {"producer": "A", "country": "Italy", "style": "red", "price": 20, **facts}
    return Wine.model_validate({"id": wine_id, "name": name, **told})


TO_RANK = (
    red("full", "Rosso", body="full", notes="Vegan."),
    red("light", "Rosso of the hills", body="light", notes="Vegan."),
    red("sold out", "Rosso", body="full", in_stock=False),
)


@pytest.mark.parametrize("extra", [{}, {"vegan": True}, {"in_stock_only": False}])
def test_other_filters_beside_soft_ones_do_not_change_the_order(
    extra: dict[str, Any],
) -> None:
    """The points of the soft filters were taken from the wrong rank, and words outweighed them."""
    index = WineIndex(TO_RANK)
    query = WineQuery(bodies=["full"], soft=("bodies",), text="of the hills", **extra)
    first, second, *others = [wine.id for wine in index.search(query).wines]
    assert (first, second) == ("full", "light")
    assert others == (["sold out"] if "in_stock_only" in extra else [])


def test_a_filter_that_can_only_exclude_cannot_be_soft() -> None:
    for name in ("vegan", "name", "price", "offer"):
        with pytest.raises(ValidationError, match="can only exclude"):
            WineQuery(soft=(name,))


def test_an_offer_that_no_wine_has_can_be_relaxed() -> None:
    result = WineIndex(TO_RANK).search(WineQuery(offer=OfferKind.MAGNUM))
    assert (result.wines, result.relax["offer"]) == ((), 2)
