"""Follow-ups that point at wines shown before, and guests who should not drink."""

import json
from typing import Any

import pytest

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
)

CHEAPER: list[tuple[str, str, float]] = [
    ("a red for lamb", "is there anything less expensive than the first one?", 21),
    ("a red for lamb", "cheaper than the last one", 36),
    ("Rotwein zum Lamm", "gibt es etwas Preiswerteres als den dritten?", 36),
    ("Rotwein zum Lamm", "etwas günstigeres", 13),
    ("un rouge pour l'agneau", "moins cher que le troisième ?", 36),
    ("un tinto para cordero", "¿algo más económico que el primero?", 21),
    ("un rosso per l'agnello", "più economico del secondo?", 13),
    ("rode wijn bij lam", "iets goedkopers", 13),
    ("rode wijn bij lam", "goedkoper dan de eerste?", 21),
]


@pytest.mark.parametrize(("before", "text", "limit"), CHEAPER)
async def test_cheaper_is_below_the_wine_that_is_meant(
    before: str, text: str, limit: float
) -> None:
    assert await filters(before, text) == {"styles": ["red"], "foods": ["lamb"], "max_price": limit}


async def test_below_a_cheap_wine_a_cent_will_do() -> None:
    reply = "**1. A 2020**\nX · ≈ €6\nA.\n\n**2. B 2020**\nX · ≈ CHF 30\nB.\n\n[wine ids: a, b]"
    before = [{"role": "user", "content": "a red"}, {"role": "assistant", "content": reply}]
    assert await limits(before, "cheaper than the first") == (5.99, "EUR")
    assert await limits(before, "cheaper than the second") == (27, "CHF")


async def limits(before: list[dict[str, Any]], text: str) -> tuple[float, str]:
    (call,) = (await ask([*before, {"role": "user", "content": text}])).tool_calls
    asked = json.loads(call.arguments)
    return asked["max_price"], asked.get("currency", "EUR")


def listed(wine_id: str, **facts: Any) -> dict[str, Any]:
    return {"wine_id": wine_id, "name": wine_id.title(), "style": "red", **facts}


NEW, OLD = listed("new"), [listed(name) for name in ("landron", "gramona", "clape")]


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("a red for lamb", "something cheaper than the second"),
        ("a red for lamb", "do you have another one?"),
        ("Rotwein zum Lamm", "hast du noch etwas anderes?"),
        ("un rouge pour l'agneau", "autre chose ?"),
        ("un tinto para cordero", "¿otro más barato?"),
        ("un rosso per l'agnello", "qualcos'altro?"),
        ("rode wijn bij lam", "nog een andere?"),
    ],
)
async def test_a_wine_is_not_offered_again(before: str, text: str) -> None:
    assert ids(await answered(before, text, wines=[*OLD, NEW])) == ["new"]
    assert (await answered(before, text, wines=OLD)).response_type == "informational"


async def test_what_was_shown_long_ago_is_not_offered_again_either() -> None:
    said = ("a red for lamb", "thanks", "another one")
    assert ids(await answered(*said, wines=[*OLD, NEW])) == ["new"]


async def test_nothing_cheaper_is_said_plainly() -> None:
    answer = await answered("vin rouge", "moins cher", wines=[])
    assert answer.intro.startswith("Je n'ai rien de moins cher")


@pytest.mark.parametrize(
    ("before", "text", "wine_id"),
    [
        ("a red", "what is the second one like?", "gramona"),
        ("a red", "would the third go with duck?", "clape"),
        ("Rotwein", "erzähl mir vom ersten", "landron"),
        ("un rouge", "dites-m'en plus sur le deuxième", "gramona"),
        ("un tinto", "háblame del último", "clape"),
        ("un rosso", "mi parli del terzo", "clape"),
        ("rode wijn", "wat is de tweede voor een wijn?", "gramona"),
    ],
)
async def test_a_question_about_a_shown_wine_is_about_that_wine(
    before: str, text: str, wine_id: str
) -> None:
    assert await called(before, text) == ("get_wine", {"wine_ids": [wine_id]})


async def test_whether_a_shown_wine_suits_a_dish_is_answered() -> None:
    wine = listed("clape", foods=["duck", "lamb"])
    asked = ("a red", "would the third go with duck?")
    assert (await answered(*asked, wines=[wine])).intro == "Yes, it suits duck."
    asked = ("een rode wijn", "past de derde ook bij vis?")
    assert (await answered(*asked, wines=[wine])).intro.startswith("Mijn lijst noemt hem niet bij")


CARE: list[tuple[str, str]] = [
    ("I'm expecting a baby, what can I toast with?", "With a baby"),
    ("breastfeeding, but I'd love a rosé", "With a baby"),
    ("my 15-year-old son wants bubbles too", "I offer nothing with alcohol"),
    ("I'm 17, a nice red please", "I offer nothing with alcohol"),
    ("we have to drive home after dinner, a red with steak?", "Whoever drives"),
    ("I'm on antibiotics, a white?", "Then no alcohol"),
    ("im siebten Monat schwanger, was passt zu Lachs?", "Mit einem Baby"),
    ("Ich bin 15 und suche einen Sekt", "Wer noch nicht volljährig"),
    ("ich muss heute noch Auto fahren, ein Rotwein?", "Wer fährt"),
    ("Je suis enceinte, un rosé ?", "Avec un bébé"),
    ("J'ai 16 ans, je voudrais un rosé", "Je ne propose pas d'alcool"),
    ("je conduis ce soir, un blanc ?", "Pour qui prend le volant"),
    ("mi mujer está embarazada, ¿un tinto?", "Con un bebé"),
    ("Tengo 17 años, ¿qué vino me recomiendas?", "A los menores"),
    ("luego conduzco, ¿un tinto?", "A quien conduce"),
    ("Sono incinta, cosa posso bere?", "Con un bimbo"),
    ("ho 15 anni, uno spumante", "Ai minorenni"),
    ("devo guidare dopo cena, un bianco?", "A chi guida"),
    ("ik ben zwanger en zoek een rode wijn", "Met een baby"),
    ("mijn zoon is 14 jaar, iets met bubbels voor hem?", "Wie nog geen achttien"),
    ("ik moet nog rijden, iets bij de kaas", "Wie rijdt"),
]
FREE = {"wine_id": "free", "name": "Zero", "style": "alcohol_free", "abv": 0.3}


@pytest.mark.parametrize(("text", "beginning"), CARE)
async def test_who_should_not_drink_is_offered_wine_without_alcohol(
    text: str, beginning: str
) -> None:
    assert (await filters(text))["styles"] == ["alcohol_free"]
    answer = await answered(text, wines=[listed("red"), FREE])
    assert ids(answer) == ["free"]
    assert answer.intro.startswith(beginning)


@pytest.mark.parametrize(("text", "beginning"), CARE)
async def test_and_never_anything_else(text: str, beginning: str) -> None:
    more = await after_results(text, wines=[listed("red")])
    if more.tool_calls:
        messages = conversation(text)
        empty = '{"found": 0, "wines": []}'
        messages += [*exchange(await ask(messages), empty), *exchange(more, empty)]
        more = await ask(messages)
    answer = answer_of(more)
    assert (answer.response_type, answer.wines) == ("informational", [])


@pytest.mark.parametrize(
    "text",
    [
        "I'm not driving tonight, a red",
        "I am 45 and love red",
        "a red aged 12 months in barrels",
        "rot, ich bin 30 und nicht schwanger",
        "j'ai 15 euros pour un rouge",
        "tengo 16 euros, un tinto",
        "ho 15 euro, un rosso",
        "ik heb 15 euro voor een rode wijn",
        "ein stiller Rotwein",
    ],
)
async def test_others_get_their_wine(text: str) -> None:
    assert (await filters(text))["styles"] == ["red"]


async def test_a_pregnancy_is_remembered_and_a_drive_is_not() -> None:
    assert (await filters("ik ben zwanger", "een rode wijn bij lam"))["styles"] == ["alcohol_free"]
    drive = "I'm driving later, something for fish?"
    assert (await filters(drive, "and a red one?"))["styles"] == ["alcohol_free"]
    assert (await filters(drive, "A Spanish red for lamb"))["styles"] == ["red"]


async def test_details_of_a_wine_with_alcohol_are_declined_too() -> None:
    answer = await answered("estoy embarazada", "háblame del primero", wines=[listed("landron")])
    assert answer.intro.startswith("Prefiero no recomendar alcohol")


async def test_no_wish_at_all_still_gets_a_wine() -> None:
    for text in ("surprise me", "überrasch mich", "surprenez-moi", "sorpréndeme", "sorprendimi"):
        assert await filters(text) == {}
    assert await filters("verras me maar") == {}
    assert await filters("I'm allergic to milk", "surprise me") == {"without_allergens": ["milk"]}


ONE_OF_THEM = (
    "Here is what I know.\n\n**1. Gramona Imperial NV**\nX · ≈ €15.50\n[wine ids: gramona]"
)


def after_details(first: str, asked: str) -> list[dict[str, Any]]:
    """Three wines were shown, and then one of them."""
    return [
        *conversation(first, asked),
        {"role": "assistant", "content": ONE_OF_THEM},
    ]


@pytest.mark.parametrize(
    ("first", "asked", "then"),
    [
        ("a red for lamb under 40", "what does the second one cost?", "and a white?"),
        ("Rotwein zum Lamm bis 40 €", "was kostet der zweite?", "und einen weißen?"),
        ("un rouge pour l'agneau, 40 € max", "combien coûte le deuxième ?", "et un blanc ?"),
        ("un tinto para cordero, hasta 40 €", "¿cuánto cuesta el segundo?", "¿y un blanco?"),
        ("un rosso per l'agnello, max 40 €", "quanto costa il secondo?", "e un bianco?"),
        ("rode wijn bij lam, max 40 euro", "wat kost de tweede?", "en een witte?"),
    ],
)
async def test_a_question_about_a_shown_wine_forgets_nothing(
    first: str, asked: str, then: str
) -> None:
    (call,) = (await ask([*after_details(first, asked), user(then)])).tool_calls
    assert json.loads(call.arguments) == {"styles": ["white"], "foods": ["lamb"], "max_price": 40}


@pytest.mark.parametrize(
    ("then", "wine_ids"),
    [
        ("and the third one?", ["clape"]),
        ("ist der dritte bio?", ["clape"]),
        ("is the first vegan?", ["landron"]),
        ("how much alcohol does it have?", ["gramona"]),
        ("ist er vegan?", ["gramona"]),
        ("il est bio ?", ["gramona"]),
        ("why?", ["gramona"]),
        ("does it go with salmon?", ["gramona"]),
        ("passt der zu Lachs?", ["gramona"]),
    ],
)
async def test_the_wine_that_is_meant_after_one_was_looked_at(
    then: str, wine_ids: list[str]
) -> None:
    before = after_details("a red for lamb", "tell me more about the second one")
    (call,) = (await ask([*before, user(then)])).tool_calls
    assert (call.name, json.loads(call.arguments)) == ("get_wine", {"wine_ids": wine_ids})


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.mark.parametrize(
    ("said", "wine_ids"),
    [
        ("which one would you take?", ["landron"]),
        ("welcher ist der beste?", ["landron"]),
        ("lequel est le meilleur ?", ["landron"]),
        ("why these?", ["landron", "gramona", "clape"]),
        ("warum gerade die?", ["landron", "gramona", "clape"]),
        ("perché questi?", ["landron", "gramona", "clape"]),
    ],
)
async def test_questions_about_a_choice(said: str, wine_ids: list[str]) -> None:
    assert await called("a red for lamb", said) == ("get_wine", {"wine_ids": wine_ids})


async def test_a_wine_that_was_not_shown_is_asked_back_and_leaves_no_trace() -> None:
    reply = answer_of(await ask(conversation("a red for lamb", "what about the fifth?")))
    assert reply.intro.startswith("I have not shown you that many.")
    asked = await filters("a red for lamb", "what about the fifth?", "from Spain")
    assert asked == {"styles": ["red"], "foods": ["lamb"], "countries": ["Spain"]}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("a red for lamb", "too expensive!"),
        ("Rotwein zum Lamm", "zu teuer"),
        ("un rouge pour l'agneau", "trop cher"),
        ("un tinto para cordero", "demasiado caro"),
        ("un rosso per l'agnello", "troppo caro"),
        ("rode wijn bij lam", "te duur"),
    ],
)
async def test_too_expensive_is_a_wish_for_less(first: str, then: str) -> None:
    asked = await filters(first, then)
    assert asked == {"styles": ["red"], "foods": ["lamb"], "max_price": 13}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("a red for lamb", "none of these"),
        ("a red for lamb", "I don't like any of them"),
        ("Rotwein zum Lamm", "mir gefällt keiner davon"),
        ("un rouge pour l'agneau", "aucun ne me plaît"),
        ("un tinto para cordero", "no me gusta ninguno"),
        ("un rosso per l'agnello", "non mi piace nessuno"),
    ],
)
async def test_none_of_these_is_a_wish_for_others(first: str, then: str) -> None:
    assert await filters(first, then) == {"styles": ["red"], "foods": ["lamb"], "limit": 12}


async def test_a_vegan_question_is_no_wish_for_good() -> None:
    asked = await filters("a red for lamb", "is the second one vegan?", "from Spain")
    assert asked == {"styles": ["red"], "foods": ["lamb"], "countries": ["Spain"]}
