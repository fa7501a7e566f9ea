"""The house sommelier over the starter catalogue: what was ruled out is in no answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agent.engine.run import Run
from agent.repositories import StoredMessage
from agent.sommelier.service import Sommelier, window
from agent.sommelier.wine import Allergen, Style, Wine
from db.engine import Sessions, create_engine
from db.schema import upgrade_schema
from db.wines.catalogue import SqlCatalogue
from db.wines.importing import STARTER, import_catalogue, read_catalogue

Check = Callable[[Wine], bool]


@pytest.fixture(scope="module")
def starter_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite+aiosqlite:///{tmp_path_factory.mktemp('starter')}/starter.sqlite3"
    asyncio.run(_fill(url, STARTER))
    return url


async def _fill(url: str, wines: Path) -> None:
    engine = create_engine(url)
    await upgrade_schema(engine)
    await import_catalogue(Sessions(engine), wines)
    await engine.dispose()


@pytest.fixture
async def sommelier(starter_url: str) -> AsyncIterator[Sommelier]:
    engine = create_engine(starter_url)
    yield Sommelier(catalogue=SqlCatalogue(Sessions(engine)))
    await engine.dispose()


@pytest.fixture(scope="module")
def wines() -> dict[str, Wine]:
    return {wine.id: wine for wine in read_catalogue(STARTER).wines}


def no_grape(*grapes: str) -> Check:
    return lambda wine: not set(grapes) & set(wine.grapes)


def no_country(*countries: str) -> Check:
    return lambda wine: wine.country not in countries


def no_region(region: str) -> Check:
    return lambda wine: region not in (wine.region, wine.appellation)


def without(allergen: Allergen) -> Check:
    return lambda wine: allergen not in wine.allergens


def is_alcohol_free(wine: Wine) -> bool:
    return wine.style is Style.ALCOHOL_FREE


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ("sparkling for oysters, anything but French", no_country("France")),
        ("bubbles, but no Champagne and no Prosecco", no_region("Champagne")),
        ("a Burgundy without Pinot Noir", no_grape("Pinot Noir")),
        ("a white, nothing from France, Italy, Germany or Spain",
         no_country("France", "Italy", "Germany", "Spain")),
        ("ein deutscher Weißwein, aber kein Riesling", no_grape("Riesling")),
        ("Rotwein aus Kalifornien, bloß kein Cabernet", no_grape("Cabernet Sauvignon")),
        ("un rouge de Loire, surtout pas de pinot noir", no_grape("Pinot Noir")),
        ("un tinto español, nada de Tempranillo", no_grape("Tempranillo")),
        ("un rosso italiano, niente vini toscani", no_region("Tuscany")),
        ("witte wijn uit Nieuw-Zeeland, geen Sauvignon Blanc", no_grape("Sauvignon Blanc")),
        ("a red for steak, I'm allergic to egg", without(Allergen.EGG)),
        ("Weißwein zu Forelle, Milchallergie", without(Allergen.MILK)),
        ("I'm pregnant: something with lobster for 500 euros", is_alcohol_free),
        ("devo guidare: un Barolo per il brasato?", is_alcohol_free),
    ],
)  # fmt: skip
async def test_no_wine_of_an_answer_is_what_was_ruled_out(
    sommelier: Sommelier, wines: dict[str, Wine], said: str, holds: Check
) -> None:
    reply = await sommelier.answer(said, run=Run())
    assert reply.wine_ids
    assert [wine_id for wine_id in reply.wine_ids if not holds(wines[wine_id])] == []


@pytest.mark.parametrize(
    ("first", "then", "place"),
    [
        ("a red for lamb", "something cheaper than the second", 1),
        ("Rotwein zum Lamm", "etwas Günstigeres als den dritten bitte", 2),
        ("un rouge pour l'agneau", "moins cher que le troisième ?", 2),
        ("un tinto para cordero", "más barato que el segundo", 1),
        ("un rosso per l'agnello", "più economico del terzo", 2),
        ("rode wijn bij lam", "goedkoper dan de tweede", 1),
    ],
)
async def test_cheaper_wines_are_new_and_cheaper(
    sommelier: Sommelier, wines: dict[str, Wine], first: str, then: str, place: int
) -> None:
    shown = await sommelier.answer(first, run=Run())
    history = [
        StoredMessage("user", first),
        StoredMessage("assistant", shown.text, wine_ids=shown.wine_ids),
    ]
    reply = await sommelier.answer(then, run=Run(history=window(history)))
    limit = wines[shown.wine_ids[place]].price_in_euros or 0
    assert reply.wine_ids
    assert not set(reply.wine_ids) & set(shown.wine_ids)
    assert all((wines[each].price_in_euros or limit) < limit for each in reply.wine_ids)


BOX = "got 200 to spend, want a mixed case of 12, half red half white"
KISTE = "scatola da 6 a massimo 70 euro, 4 rossi e 2 bianchi"


@pytest.mark.parametrize(
    ("said", "kinds", "budget"),
    [
        ((BOX,), {"red": 6, "white": 6}, 200),
        ((KISTE,), {"red": 4, "white": 2}, 70),
        ((KISTE, "cambia il più caro con uno francese"), {"red": 4, "white": 2}, 70),
        (("er mag rot, sie mag weiß, es gibt pizza",), {"red": 1, "white": 1}, None),
        (("raclette, il boit du rouge, elle du blanc, 30 euros les deux",),
         {"red": 1, "white": 1}, 30),
        (("un vin rouge et un rosé pour le couscous",), {"red": 1, "rose": 1}, None),
        (("tengo 150 euros y son 10 personas, cena de 3 platos",),
         {"sparkling": 1, "red": 3, "sweet": 1}, 150),
        (("150 euros y son 10 personas, cena de 3 platos", "quita el espumoso y suma otra vez"),
         {"red": 3, "sweet": 2}, 150),
        (("Je 3 rote und 3 weiße, zusammen 60 Euro", "lieber ohne die weißen"), {"red": 3}, 60),
        (("doos van 6, 3 rood 3 wit, max 60 euro", "toch maar 12 flessen"),
         {"red": 6, "white": 6}, None),
        (("4 rode en 2 witte", "doe er nog een dessertwijn bij"),
         {"red": 4, "white": 2, "fortified": 1}, None),
        (("menu 4 plats pour 10 personnes, 250 euros",),
         {"sparkling": 1, "white": 2, "red": 1, "sweet": 1}, 250),
        (("how many bottles for 40 guests, bubbles, white and red?",),
         {"sparkling": 4, "white": 8, "red": 8}, None),
        (("huîtres, gigot et tarte tatin, un vin par plat", "sans le vin du dessert"),
         {"white": 1, "red": 1}, None),
        (("12 bouteilles, 6 rouges, 4 blancs et 2 champagnes", "sans le champagne"),
         {"red": 7, "white": 5}, None),
        (("rioja or ribera del duero for lamb?", "one of each under 30"), {"red": 2}, None),
        (("vino para 25 personas, barbacoa, presupuesto total 150 euros", "y la mitad blanco"),
         {"red": 8, "white": 8}, 150),
        (("120 invités, un blanc et un rouge pour le repas",), {"white": 30, "red": 30}, None),
    ],
)  # fmt: skip
async def test_a_plan_keeps_its_kinds_numbers_and_budget(
    sommelier: Sommelier,
    wines: dict[str, Wine],
    said: tuple[str, ...],
    kinds: dict[str, int],
    budget: float | None,
) -> None:
    history: list[StoredMessage] = []
    for text in said:
        reply = await sommelier.answer(text, run=Run(history=window(history)))
        answered = StoredMessage("assistant", reply.text, wine_ids=reply.wine_ids)
        history += [StoredMessage("user", text), answered]
    sections = reply.text.split("**")[2::2]
    counts = [
        int(told.partition(" × ")[0].split()[-1]) if " × " in told else 1 for told in sections
    ]
    found: dict[str, int] = {}
    for wine_id, count in zip(reply.wine_ids, counts, strict=True):
        found[wines[wine_id].style] = found.get(wines[wine_id].style, 0) + count
    assert found == kinds
    paid = sum((wines[each].price or 0) * n for each, n in zip(reply.wine_ids, counts, strict=True))
    assert f"€{paid:.2f}".removesuffix(".00") in sections[-1]
    assert budget is None or paid <= budget


async def talk(sommelier: Sommelier, *said: str) -> tuple[str, tuple[str, ...]]:
    """The text and the wines of the last answer of a talk."""
    history: list[StoredMessage] = []
    for text in said:
        reply = await sommelier.answer(text, run=Run(history=window(history)))
        answered = StoredMessage("assistant", reply.text, wine_ids=reply.wine_ids)
        history += [StoredMessage("user", text), answered]
    return reply.text, tuple(reply.wine_ids)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("a red for lamb", "no idea, you choose"),
        ("Rotwein zum Lamm", "welcher davon zu Wild?"),
        ("un rouge pour l'agneau", "lequel pour du boeuf ?"),
        ("due rossi per la pizza", "tra i due quale apri"),
        ("Rotwein zum Lamm", "der zweite oder der dritte?"),
        ("ik zoek een wijn", "weet ik niet, kies jij maar"),
        ("un vin pour ce soir", "jsais pas, choisis toi"),
    ],
)
async def test_a_choice_left_to_the_house_is_one_wine(
    sommelier: Sommelier, first: str, then: str
) -> None:
    assert len((await talk(sommelier, first, then))[1]) == 1


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (("rioja or ribera for lamb", "why"), ("Rioja", "Lamb likes")),
        (("nebbiolo o sangiovese?", "e tu da che parte stai"), ("aprirei", "Sangiovese")),
        (("tempranillo, garnacha o monastrell?", "explica las tres"), ("Grenache:", "Monastrell:")),
        (("prosecco cava oder champagner?", "welcher ist der trockenste"), ("Flasche zu Flasche",)),
        (("sancerre ou chablis ?", "une de chaque"), ("Sancerre", "Chablis", "**2.")),
        (("moscatel o pedro ximenez?", "pues el otro"), ("¿A cuál", "Muscat", "Pedro Ximénez")),
        (("a white for fish", "the other one"), ("Which do you mean: ",)),
        (("rode wijn", "waar komt de tweede vandaan", "en de andere?"), ("Herkomst:", "\n")),
        (("drei Weißweine zu Fisch", "was passt zu jedem"), ("Er passt zu", "\n")),
        (("un rouge pour du canard", "d'où vient le premier", "et le dernier ?"), ("Origine",)),
        (("rouge pour l'agneau", "garde le premier et change les deux autres"), (" et ", "reste")),
        (("Rotwein zum Lamm", "beide letzten, was kosten die zusammen"), ("2 Flaschen für",)),
        (("Weißwein zu Fisch", "Unterschied zwischen allen dreien?"), ("Marche", "Mosel")),
        (("Malbec oder Syrah?", "beide bitte"), ("Malbec und Syrah", "**2.")),
        (("due rossi per pizza", "quale è più leggero", "allora l'altro"), ("Malbec",)),
        (("Wein zu Spargel", "passt der zweite zu Fisch?", "und der erste?"), ("Ja, er passt",)),
        (("prosecco or champagne?", "ok which one for mimosas"), ("open Prosecco first",)),
        (("barolo o amarone, differenza?", "e quale costa meno"), ("Barolo e Amarone", "**2.")),
    ],
)  # fmt: skip
async def test_a_follow_up_is_of_what_is_on_the_table(
    sommelier: Sommelier, said: tuple[str, ...], told: tuple[str, ...]
) -> None:
    text, _ = await talk(sommelier, *said)
    assert [each for each in told if each not in text] == []


async def test_what_a_grape_that_is_ruled_out_was_stays(
    sommelier: Sommelier, wines: dict[str, Wine]
) -> None:
    _, shown = await talk(sommelier, "busco un albariño", "mejor uno que no sea albariño")
    assert {wines[each].style for each in shown} == {"white"}


async def test_a_brother_who_drinks_nothing_is_one_drinker_fewer(sommelier: Sommelier) -> None:
    text, shown = await talk(
        sommelier, "goose for 8 adults, how many bottles?", "my brother doesnt drink"
    )
    assert "I count 7 who drink" in text
    assert not shown
