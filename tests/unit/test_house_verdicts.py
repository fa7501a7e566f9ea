"""Questions about a wine that was shown begin with the very answer, and prices rank when asked."""

from typing import Any

import pytest

from agent.house_sommelier import Language
from agent.sommelier.contract import facts_line
from agent.sommelier.wine import Style, Wine
from tests.house import answered, called, filters, ids, spoken

WINE: dict[str, Any] = {
    "wine_id": "gramona",
    "name": "Gramona Imperial 2019",
    "country": "Spain",
    "region": "Penedès",
    "grapes": ["Macabeo"],
    "style": "sparkling",
    "sweetness": "dry",
    "body": "full",
    "abv": 12.5,
    "price": 22.5,
    "allergens": ["sulphites", "egg"],
    "notes": "Fennel.",
}
BARE: dict[str, Any] = {"wine_id": "gramona", "name": "Gramona Imperial NV", "style": "sparkling"}

KNOWN = [
    ("is it vegan?", "It is not vegan: the cellar list names egg in it."),
    ("does it contain egg?", "Yes: the cellar list names egg in it."),
    ("does it contain milk?", "The cellar list names no milk in it; please check the label."),
    ("is it dry?", "It is dry."),
    ("is it full-bodied?", "It is full-bodied."),
    ("how much alcohol?", "It has 12.5 % vol."),
    ("where is it from?", "It comes from Penedès, Spain."),
    ("how much is it?", "It costs about €22.50."),
    ("which grapes is it made from?", "It is made from Macabeo."),
    ("is it in stock?", "It is in stock."),
    ("what vintage is it?", "The vintage is 2019."),
    ("which of them is the lightest?", "It is full-bodied."),
    ("which one is the driest?", "It is dry."),
    ("which is the strongest?", "It has 12.5 % vol."),
    ("welcher davon ist der trockenste?", "Er ist trocken."),
    ("ist er trocken?", "Er ist trocken."),
    ("enthält er Ei?", "Ja: Die Kellerliste nennt Ei darin."),
    ("woher kommt er?", "Herkunft: Penedès, Spanien."),
    ("wie viel Alkohol hat er?", "Er hat 12.5 % vol."),
    ("il est sec ?", "Il est sec."),
    ("combien il coûte ?", "Il coûte environ €22.50."),
    ("il vient d'où ?", "Origine : Penedès, Espagne."),
    ("¿contiene huevo?", "Sí: la lista de la bodega indica huevo."),
    ("¿cuánto cuesta?", "Cuesta unos €22.50."),
    ("¿de dónde viene?", "Origen: Penedès, España."),
    ("quanto alcol ha?", "Ha 12.5 % vol."),
    ("da dove viene?", "Origine: Penedès, Spagna."),
    ("is hij droog?", "Hij is droog."),
    ("waar komt hij vandaan?", "Herkomst: Penedès, Spanje."),
]
UNKNOWN = [
    ("the second one, is it vegan?", "The cellar list does not say whether it is vegan."),
    ("the second one, is it organic?", "The cellar list does not say whether it is organic."),
    ("the second one, is it dry?", "The cellar list does not say how dry or sweet it is."),
    ("the second one, how much is it?", "The cellar list does not say what it costs."),
    ("der zweite, ist der vegan?", "Die Kellerliste sagt nicht, ob er vegan ist."),
    ("le deuxième, il est végan ?", "La liste de la cave ne dit pas s'il est végan."),
    ("el segundo, ¿es vegano?", "La lista de la bodega no dice si es vegano."),
    ("il secondo è vegano?", "La lista della cantina non dice se è vegano."),
    ("de tweede, is die veganistisch?", "De kelderlijst zegt niet of hij veganistisch is."),
]
FIRST = {
    "en": "a red for lamb, please",
    "de": "Rotwein zum Lamm",
    "fr": "un rouge pour l'agneau",
    "es": "un tinto para cordero",
    "it": "un rosso per l'agnello",
    "nl": "rode wijn bij lam",
}


def before(verdict: str) -> str:
    """A first message in the language of a verdict."""
    signs = {
        "en": ("The ", "It ", "Yes: the"),
        "de": ("Die ", "Er ", "Ja: Die", "Herkunft"),
        "fr": ("La liste de la cave", "Il ", "Origine : "),
        "es": ("La lista de la bodega", "Sí", "Cuesta", "Origen"),
        "it": ("La lista della", "Ha ", "Origine:"),
    }
    found = (code for code, starts in signs.items() if verdict.startswith(starts))
    return FIRST[next(found, "nl")]


@pytest.mark.parametrize(("text", "verdict"), KNOWN)
async def test_the_answer_comes_first(text: str, verdict: str) -> None:
    answer = await answered(before(verdict), text, wines=[WINE])
    assert (answer.intro, ids(answer)) == (verdict, ["gramona"])


@pytest.mark.parametrize(("text", "verdict"), UNKNOWN)
async def test_what_the_list_does_not_say_is_said_so(text: str, verdict: str) -> None:
    assert (await called(before(verdict), text))[1] == {"wine_ids": ["gramona"]}
    assert (await answered(before(verdict), text, wines=[BARE])).intro == verdict


async def test_each_of_several_wines_is_answered_for() -> None:
    others = [BARE | {"wine_id": name} for name in ("landron", "clape")]
    answer = await answered("a red for lamb", "are they dry?", wines=[WINE, *others])
    starts = [wine.description.split(".")[0] for wine in answer.wines]
    assert starts == ["It is dry"] + ["The cellar list does not say how dry or sweet it is"] * 2


ORDERS: list[tuple[str, dict[str, Any]]] = [
    ("the cheapest one you have", {"order": "cheapest"}),
    ("what is your most expensive wine?", {"order": "dearest"}),
    ("the least expensive sparkling", {"order": "cheapest", "styles": ["sparkling"]}),
    ("der günstigste Rotwein", {"order": "cheapest", "styles": ["red"]}),
    ("euer teuerster Weißwein", {"order": "dearest", "styles": ["white"]}),
    ("le rouge le moins cher", {"order": "cheapest", "styles": ["red"]}),
    ("votre vin blanc le plus cher", {"order": "dearest", "styles": ["white"]}),
    ("el tinto más barato", {"order": "cheapest", "styles": ["red"]}),
    ("el vino blanco más caro que tengas", {"order": "dearest", "styles": ["white"]}),
    ("il rosso più economico", {"order": "cheapest", "styles": ["red"]}),
    ("il vostro bianco più caro", {"order": "dearest", "styles": ["white"]}),
    ("de goedkoopste rode wijn", {"order": "cheapest", "styles": ["red"]}),
    ("jullie duurste witte wijn", {"order": "dearest", "styles": ["white"]}),
]


@pytest.mark.parametrize(("text", "expected"), ORDERS)
async def test_superlatives_of_price_are_an_order(text: str, expected: dict[str, Any]) -> None:
    assert await filters(text) == expected


async def test_what_is_in_order_is_shown_in_order() -> None:
    wines = [WINE | {"wine_id": f"at-{price}", "price": price} for price in (30, 8, 90, 12)]
    cheapest = await answered("the cheapest one you have", wines=wines)
    assert cheapest.intro == "The cheapest I have come first:"
    assert ids(cheapest) == ["at-8", "at-12", "at-30"]
    dearest = await answered("der teuerste Schaumwein", wines=wines)
    assert dearest.intro == "Das Teuerste zuerst (Schaumwein):"
    assert ids(dearest) == ["at-90", "at-30", "at-12"]


@pytest.mark.parametrize(
    ("before", "text", "wine_id"),
    [
        ("a red for lamb", "which is the cheapest?", "gramona"),
        ("a red for lamb", "which one of these is the most expensive?", "clape"),
        ("Rotwein zum Lamm", "welcher davon ist der günstigste?", "gramona"),
        ("un rouge pour l'agneau", "lequel est le plus cher ?", "clape"),
    ],
)
async def test_the_cheapest_of_those_shown_is_one_of_them(
    before: str, text: str, wine_id: str
) -> None:
    assert await called(before, text) == ("get_wine", {"wine_ids": [wine_id]})


async def test_cheaper_than_a_wine_is_no_superlative() -> None:
    asked = await filters("un tinto para cordero", "¿más barato que el segundo?")
    assert "order" not in asked
    assert asked["max_price"] == 13


@pytest.mark.parametrize(
    ("before", "start"),
    [(FIRST["de"], "Wonach"), (FIRST["fr"], "Que puis-je"), (FIRST["nl"], "Wat mag")],
)
async def test_a_message_of_emoji_is_answered_in_the_language_of_the_talk(
    before: str, start: str
) -> None:
    assert (await spoken(before, "🍷🍷")).intro.startswith(start)


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("en", "Somewhere, Turkey · not in stock"),
        ("de", "Somewhere, Türkei · nicht auf Lager"),
        ("fr", "Somewhere, Turquie · pas en stock"),
        ("es", "Somewhere, Turquía · sin existencias"),
        ("it", "Somewhere, Turchia · non disponibile"),
        ("nl", "Somewhere, Turkije · niet op voorraad"),
    ],
)
def test_the_facts_of_a_wine_are_in_the_language_of_the_talk(language: Language, line: str) -> None:
    wine = Wine(
        id="a",
        producer="A",
        name="B",
        country="Turkey",
        region="Somewhere",
        style=Style.RED,
        in_stock=False,
    )
    assert facts_line(wine, language) == line
