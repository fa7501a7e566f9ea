"""How people really write: amounts in words, slips of the pen, emphasis, small talk."""

import json
from typing import Any

import pytest

from agent.house_sommelier.glossary import in_english
from agent.house_sommelier.number_words import in_digits
from agent.house_sommelier.understanding import understand
from tests.house import (
    after_results,
    answer_of,
    answered,
    ask,
    called,
    conversation,
    exchange,
    filters,
    ids,
    spoken,
)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("a red, under twenty euros", {"max_price": 20}),
        ("red wine, fifteen bucks", {"max_price": 15, "currency": "USD"}),
        ("between fifteen and twenty-five, red", {"min_price": 15, "max_price": 25}),
        ("at most a hundred pounds", {"max_price": 100, "currency": "GBP"}),
        ("Rotwein unter zwanzig Euro", {"max_price": 20}),
        ("zwischen fünfzehn und fünfunddreißig Euro", {"min_price": 15, "max_price": 35}),
        ("un rouge à moins de vingt-cinq euros", {"max_price": 25}),
        ("entre quinze et soixante-quinze euros", {"min_price": 15, "max_price": 75}),
        ("tinto por menos de treinta y cinco euros", {"max_price": 35}),
        ("sotto i ventotto euro", {"max_price": 28}),
        ("rood, minder dan vijfentwintig euro", {"max_price": 25}),
        ("white for salmon, 15 to 30", {"min_price": 15, "max_price": 30}),
        ("Weißwein, 15 bis 30", {"min_price": 15, "max_price": 30}),
        ("rosé for 12.50", {"max_price": 12.5}),
    ],
)
async def test_amounts_in_words_and_without_a_currency(text: str, limits: dict[str, Any]) -> None:
    asked = await filters(text)
    prices = ("min_price", "max_price", "currency")
    assert {name: asked[name] for name in prices if name in asked} == limits


@pytest.mark.parametrize(
    "text",
    [
        "a white and two reds",
        "we are six, red please",
        "red, ten or twelve of us",
        "table for 10 to 12, red wine",
        "rot, wir sind zu zwölft",
        "ein Roter für acht Personen",
        "a 0.75 l bottle of red",
        "red with 13.50 %",
    ],
)
async def test_numbers_that_are_no_prices(text: str) -> None:
    assert not {"min_price", "max_price"} & (await filters(text)).keys()


async def test_a_limit_in_words_is_named_in_the_answer() -> None:
    answer = await answered("a red, under thirty-five dollars", wines=[MALBEC])
    assert "up to $35" in answer.intro


def test_other_words_stay_as_they_are() -> None:
    assert in_digits("one or two for my mother") == "one or two for my mother"


MALBEC: dict[str, Any] = {
    "wine_id": "malbec", "name": "Zorzal Malbec 2019", "country": "Argentina", "style": "red",
    "grapes": ["Malbec"], "sweetness": "medium", "body": "full", "foods": ["burgers", "pizza"],
}  # fmt: skip
YQUEM: dict[str, Any] = {
    "wine_id": "yquem", "name": "Château d'Yquem 2015", "country": "France", "style": "sweet",
    "sweetness": "luscious",
}  # fmt: skip
CHALON: dict[str, Any] = {
    "wine_id": "chalon", "name": "Jean Macle Château-Chalon 2015", "country": "France",
    "style": "white",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("any Barollo?", "regions", "Barolo"),
        ("a chardonay please", "grapes", "Chardonnay"),
        ("Reisling", "grapes", "Riesling"),
        ("a gruner veltlinner", "grapes", "Grüner Veltliner"),
        ("gewurtztraminner", "grapes", "Gewürztraminer"),
        ("Margeaux", "regions", "Margaux"),
        ("ein Tempranilo", "grapes", "Tempranillo"),
        ("proseco", "regions", "Prosecco"),
    ],
)
async def test_a_slip_in_a_grape_or_region_is_understood(text: str, field: str, value: str) -> None:
    assert (await filters(text))[field] == [value]


async def test_an_excluded_grape_may_be_misspelt() -> None:
    assert (await filters("a white for fish, no chardonay"))["without_grapes"] == ["Chardonnay"]


@pytest.mark.parametrize("text", ["wine from the province", "a heritage wine", "un vin de champ"])
def test_other_words_are_no_misspelt_names(text: str) -> None:
    assert not understand(text).filters & {"grapes", "regions"}


@pytest.mark.parametrize("text", ["Tignanello 2015", "Château Unheardof 2015"])
async def test_a_year_and_chateau_make_no_other_wine_the_one_asked_for(text: str) -> None:
    answer = await answered(text, wines=[CHALON, YQUEM])
    assert (ids(answer), answer.response_type) == ([], "informational")


async def test_anything_from_a_house_is_that_house() -> None:
    tool, arguments = await called("Do you have anything from Zorzal?")
    assert (tool, arguments) == ("search_wines", {"text": "Zorzal"})


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("eggs and milk make me sick, red for steak", ["egg", "milk"]),
        ("a white for fish; sulphites give me a headache", ["sulphites"]),
        ("Milch bekommt mir nicht, ein Rotwein bitte", ["milk"]),
        ("los huevos me sientan mal, un tinto", ["egg"]),
        ("le uova mi fanno male, un rosso", ["egg"]),
    ],
)
async def test_what_makes_one_ill_is_no_dish(text: str, denied: list[str]) -> None:
    asked = await filters(text)
    assert sorted(asked["without_allergens"]) == denied
    assert not {"eggs"} & set(asked.get("foods", ()))


@pytest.mark.parametrize(
    "text",
    [
        "for my husband who doesn't drink, something for roast chicken",
        "I don't drink, what goes with lamb?",
        "pour mon père qui ne boit pas, avec le poulet",
        "para mi tía que no bebe, con pescado",
        "per mio zio che non beve, con la pizza",
    ],
)
async def test_who_does_not_drink_gets_no_alcohol(text: str) -> None:
    assert (await filters(text))["styles"] == ["alcohol_free"]


async def test_who_does_not_drink_red_gets_wine() -> None:
    asked = await filters("my wife doesn't drink red, something for chicken")
    assert "alcohol_free" not in asked.get("styles", ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Rotwein für Burger", "Passt zu: Burger; Rotwein, kräftig, lieblich, aus Malbec."),
        (
            "un tinto para hamburguesas",
            "Va con hamburguesas; vino tinto, con cuerpo, semidulce, de Malbec.",
        ),
        (
            "un rosso per la pizza",
            "Si abbina a pizza; vino rosso, corposo, amabile, da uve Malbec.",
        ),
    ],
)
async def test_sweetness_and_dishes_are_told_in_the_language(text: str, told: str) -> None:
    answer = await answered(text, wines=[MALBEC])
    assert answer.wines[0].description == told


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ein süßer Wein", "Süßwein."),
        ("un vin doux", "Vin doux."),
        ("un vino dulce", "Vino dulce."),
        ("un vino dolce", "Vino dolce."),
        ("een zoete wijn", "Zoete wijn."),
    ],
)
async def test_a_sweet_wine_has_a_name_in_each_language(text: str, kind: str) -> None:
    assert (await answered(text, wines=[YQUEM])).wines[0].description == kind


@pytest.mark.parametrize(
    ("text", "intro"),
    [
        ("how are you?", "Hello!"),
        ("wie geht es Ihnen?", "Hallo!"),
        ("write me a poem about wine", "That is beyond my cellar"),
        ("erzähl mir einen Witz über Wein", "Das liegt leider außerhalb"),
        ("scrivimi una poesia sul vino", "Questo va oltre"),
    ],
)
async def test_small_talk_and_other_tasks(text: str, intro: str) -> None:
    assert (await spoken(text)).intro.startswith(intro)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Muss man alte Rotweine dekantieren?", "decant"),
        ("Pourquoi mon vin sent le carton mouillé ?", "cork taint"),
        ("Perché il vino contiene solfiti?", "sulphites"),
        ("¿A qué temperatura se sirve el Chablis?", "serving temperature"),
        ("Hoe lang is een geopende fles houdbaar?", "opened bottle"),
    ],
)
async def test_a_question_in_another_language_is_put_to_the_english_library(
    text: str, terms: str
) -> None:
    tool, arguments = await called(text)
    assert tool == "search_documents"
    assert terms in arguments["query"]


def test_words_that_say_nothing_are_not_searched_for() -> None:
    """ "perché" would find pike-perch."""
    assert in_english("Perché il vino contiene solfiti?") == "contiene solfiti sulphites"


async def test_a_limit_that_protects_somebody_is_never_offered_for_giving_up() -> None:
    relax = {"without_allergens": 88, "without_grapes": 9, "foods": 2}
    said = "a red for cheese without sulphites, no Merlot"
    found = await after_results(said, wines=[], relax=relax)
    assert "88" not in found.content
    assert "9" not in found.content
    assert "Without the dish there are 2." in found.content


STEAK_RED: dict[str, Any] = {"wine_id": "rubicon", "name": "Rubicon", "foods": ["beef"]}
OYSTER_WHITE: dict[str, Any] = {"wine_id": "luneau", "name": "Luneau", "foods": ["oysters"]}


async def test_each_course_gets_a_wine() -> None:
    said = "a red for steak and a white for oysters, both under 30"
    reds = [{**STEAK_RED, "wine_id": f"red-{number}"} for number in range(3)]
    messages = conversation(said)
    first = await ask(messages)
    messages += exchange(first, json.dumps({"found": 60, "wines": reds}))
    more = await ask(messages)
    (call,) = more.tool_calls
    asked = json.loads(call.arguments)
    assert (asked["foods"], asked["max_price"]) == (["oysters"], 30)
    messages += exchange(more, json.dumps({"found": 9, "wines": [OYSTER_WHITE]}))
    assert ids(answer_of(await ask(messages))) == ["red-0", "luneau", "red-1"]


async def test_one_wine_for_two_dishes_is_enough() -> None:
    both = {"wine_id": "both", "name": "Both", "foods": ["beef", "oysters"]}
    answer = await answered("a wine for steak and oysters", wines=[both, STEAK_RED, MALBEC])
    assert ids(answer) == ["both", "rubicon", "malbec"]
