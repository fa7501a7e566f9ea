"""The state of a dialogue: what each further message changes, and what it keeps."""

import json
from typing import Any

import pytest

from agent.house_sommelier.reading import read
from agent.text import language_of
from tests.house import (
    after_results,
    allows,
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
    expected = {"styles": ["red"], "foods": ["lamb"], "max_price": limit}
    assert allows(await filters(before, text), expected)


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
    others = await after_results(*asked, wines=[wine])
    assert json.loads(others.tool_calls[0].arguments)["foods"] == ["fish"]
    messages = conversation(*asked)
    messages += exchange(await ask(messages), json.dumps({"found": 1, "wines": [wine]}))
    messages += exchange(others, json.dumps({"found": 1, "wines": [listed("a", foods=["fish"])]}))
    answer = answer_of(await ask(messages))
    assert answer.intro.startswith("Mijn lijst noemt hem niet bij")
    assert ids(answer) == ["a"]


CARE: list[tuple[str, str]] = [
    ("I'm expecting a baby, what can I toast with?", "In pregnancy"),
    ("breastfeeding, but I'd love a rosé", "In pregnancy"),
    ("my 15-year-old son wants bubbles too", "I offer nothing with alcohol"),
    ("I'm 17, a nice red please", "I offer nothing with alcohol"),
    ("we have to drive home after dinner, a red with steak?", "Whoever drives"),
    ("I'm on antibiotics, a white?", "With medicine"),
    ("im siebten Monat schwanger, was passt zu Lachs?", "In der Schwangerschaft"),
    ("bin im 6. Monat, geht ein Glas Cava?", "In der Schwangerschaft"),
    ("sono al quarto mese, un prosecco?", "In gravidanza"),
    ("sono al quarto mese, un calicino frizzantino?", "In gravidanza"),
    ("Ich bin 15 und suche einen Sekt", "Wer noch nicht volljährig"),
    ("ich muss heute noch Auto fahren, ein Rotwein?", "Wer fährt"),
    ("Je suis enceinte, un rosé ?", "Enceinte ou"),
    ("J'ai 16 ans, je voudrais un rosé", "Je ne propose pas d'alcool"),
    ("je conduis ce soir, un blanc ?", "Pour qui prend le volant"),
    ("mi mujer está embarazada, ¿un tinto?", "En el embarazo"),
    ("Tengo 17 años, ¿qué vino me recomiendas?", "A los menores"),
    ("luego conduzco, ¿un tinto?", "A quien conduce"),
    ("Sono incinta, cosa posso bere?", "In gravidanza"),
    ("ho 15 anni, uno spumante", "Ai minorenni"),
    ("devo guidare dopo cena, un bianco?", "A chi guida"),
    ("ik ben zwanger en zoek een rode wijn", "Tijdens de zwangerschap"),
    ("mijn zoon is 14 jaar, iets met bubbels voor hem?", "Wie nog geen achttien"),
    ("ik moet nog rijden, iets bij de kaas", "Wie rijdt"),
]
FREE = {"wine_id": "free", "name": "Zero", "style": "alcohol_free", "abv": 0.0}
NEARLY_FREE = FREE | {"wine_id": "nearly", "abv": 0.5}


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


CARED_FOR: list[tuple[str, str | None]] = [
    ("my nephew turns seventeen next week, a fizzy one he may have?", "under_age"),
    ("unser Enkel, 15, soll mal probieren", "under_age"),
    ("notre fille de 14 ans voudrait goûter un rosé", "under_age"),
    ("mi sobrino tiene dieciséis y quiere probar un tinto", "under_age"),
    ("mio fratellino ha 13 anni, un vino leggero?", "under_age"),
    ("ons zoontje van twaalf wil proosten", "under_age"),
    ("bubbles for the youngsters at the table", "under_age"),
    ("Sekt für die Kinder zum Anstoßen", "under_age"),
    ("du mousseux pour les ados", "under_age"),
    ("algo para los chavales", "under_age"),
    ("spumante per gli adolescenti", "under_age"),
    ("iets voor de tieners", "under_age"),
    ("i'm in 10th grade and want a red", "under_age"),
    ("bin in der 9. klasse, welcher wein", "under_age"),
    ("taking amoxicillin, is a rosé ok", "medication"),
    ("nehme gerade Doxycyclin, geht ein Riesling", "medication"),
    ("je prends des somnifères, un petit rouge ?", "medication"),
    ("estoy tomando paracetamol, un blanco?", "medication"),
    ("prendo anticoagulanti, un rosso?", "medication"),
    ("ik slik slaappillen, een glas rood?", "medication"),
    ("third trimester, a glass of fizz?", "pregnancy"),
    ("bin am Stillen, ein Glas Riesling?", "pregnancy"),
    ("je suis en pleine grossesse, un blanc", "pregnancy"),
    ("estoy dando el pecho, una copita?", "pregnancy"),
    ("sono in stato interessante, un rosso?", "pregnancy"),
    ("ik geef borstvoeding, wit?", "pregnancy"),
    ("i drink three bottles every day, cheaper red?", "dependence"),
    ("2 years sober now, which red for a toast?", "dependence"),
    ("seit drei Monaten trocken, was trinke ich zum Fest?", "dependence"),
    ("cinq mois sans boire, quel champagne pour trinquer ?", "dependence"),
    ("trinke jeden Tag zwei Flaschen, welcher Wein", "dependence"),
    ("zwei Flaschen am Tag, welcher Wein", "dependence"),
    ("je bois deux litres par jour, un rouge", "dependence"),
    ("bebo una botella cada noche, otro tinto", "dependence"),
    ("due bottiglie al giorno, un bianco più leggero", "dependence"),
    ("drie flessen per dag, iets lichters", "dependence"),
    ("my hands tremble when i wake up", "dependence"),
    ("I hide the bottles from my family", "dependence"),
    ("verstecke die Flaschen vor meiner Frau, ich", "dependence"),
    ("je n'arrive plus à arrêter de boire", "dependence"),
    ("no puedo parar de beber", "dependence"),
    ("he relapsed last month", "dependence"),
    ("I start with a glass first thing in the morning", "dependence"),
    ("my liver is damaged, light white?", "health"),
    ("habe Hepatitis, ein Glas?", "health"),
    ("j'ai le foie malade, un blanc", "health"),
    ("due mesi fa ho smesso di bere", "dependence"),
    ("ich brauche morgens einen Schluck", "dependence"),
    ("nursing home party, a red", None),
    ("driving home afterwards, a red", "driving"),
    ("fahre danach heim, ein Weißer", "driving"),
    ("good morning, I need a bottle of wine for dinner", None),
    ("necesito un vino para mañana", None),
    ("liver with onions, which red?", None),
    ("Leber mit Zwiebeln, welcher Wein", None),
    ("foie gras, un blanc", None),
    ("a hidden gem of a wine for my wife", None),
    ("red under 18 for my brother", None),
    ("for my daughter's wedding, 12 bottles of red", None),
    ("a 12 year old rioja for my boss", None),
    ("my daughter and 6 friends, a white", None),
    ("12 euro rosso per mia sorella, 15 max", None),
    ("we eat kid goat, a red", None),
    ("further ado, a red please", None),
    ("how many bottles a day does a restaurant sell", None),
    ("a wine without alcohol, I can not find one", None),
    ("un vino de 10 años para cordero", None),
    ("small producers, piccoli produttori, rosso", None),
    ("guida ai vini rossi", None),
    ("should i shake the bottle before drinking?", None),
    ("champagne breakfast for 4, I need something dry", None),
    ("dinner with our kids, a red for us adults", None),
    ("wine from 2016 for my son", None),
    ("I'm not pregnant, a red", None),
    ("ein stiller Rotwein", None),
    ("Rotwein, 16 Euro, für meinen Bruder", None),
    ("a case of 6 for my sister", None),
    ("un regalo per mia figlia di 30 anni", None),
    ("a white for 8 people, 15 euros", None),
]


async def test_details_of_a_wine_with_alcohol_are_declined_too() -> None:
    answer = await answered("estoy embarazada", "háblame del primero", wines=[listed("landron")])
    assert answer.intro.startswith("Prefiero no recomendar alcohol")


@pytest.mark.parametrize(
    ("before", "said", "wine_ids"),
    [
        ("a red for lamb", "which one would you take?", ["landron", "gramona", "clape"]),
        ("Rotwein zum Lamm", "welcher ist der beste?", ["landron", "gramona", "clape"]),
        ("un rouge pour l'agneau", "lequel est le meilleur ?", ["landron", "gramona", "clape"]),
        ("a red for lamb", "why these?", ["landron", "gramona", "clape"]),
        ("Rotwein zum Lamm", "warum gerade die?", ["landron", "gramona", "clape"]),
        ("un rosso per l'agnello", "perché questi?", ["landron", "gramona", "clape"]),
    ],
)
async def test_questions_about_a_choice(before: str, said: str, wine_ids: list[str]) -> None:
    assert await called(before, said) == ("get_wine", {"wine_ids": wine_ids})


KEPT: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("a red for pizza", "rather a rosé"), {"styles": ["rose"], "foods": ["pizza"]}),
    (("a white for sea bass", "change of plan, forget the fish, lamb now"), {"foods": ["lamb"]}),
    (("pizza, vino rosso", "allora bollicine"), {"styles": ["sparkling"], "foods": ["pizza"]}),
    (
        ("roast pork", "white", "german?", "dry tho"),
        {
            "styles": ["white"],
            "countries": ["Germany"],
            "sweetness": ["bone_dry", "dry"],
            "foods": ["pork"],
        },
    ),
    (
        ("marisco, un blanco", "mi jefe no bebe blanco"),
        {"foods": ["shellfish"], "styles": ["rose", "sparkling"]},
    ),
    (("ein Rotwein", "zu stark für mich"), {"bodies": ["light", "medium_light", "medium"]}),
    (("un rouge", "plus souple"), {"styles": ["red"], "tannins": ["none", "low"]}),
    (("a white", "crisper please"), {"styles": ["white"], "acidities": ["high"]}),
    (
        ("a white, no Riesling", "no Chardonnay either"),
        {"without_grapes": ["Chardonnay", "Riesling"]},
    ),
]


@pytest.mark.parametrize(("said", "expected"), KEPT)
async def test_a_change_keeps_what_it_does_not_name(
    said: tuple[str, ...], expected: dict[str, Any]
) -> None:
    asked = await filters(*said)
    if "styles" in expected and len(expected["styles"]) > 1:
        assert not set(asked["styles"]) & {"white"}
        expected = {name: expected[name] for name in expected if name != "styles"}
    assert {name: asked.get(name) for name in expected} == expected


HARD_CASES: list[tuple[tuple[str, ...], str]] = [
    (("im 16 whats good to start with",), "care"),
    (("nach 2 bier noch fahren ok?",), "drunk"),
    (("my doctor says no alcohol for me but i miss red",), "care"),
]


async def test_the_first_but_from_elsewhere_is_alike_and_filtered() -> None:
    tool, asked = await called("a red under 30", "the first one, but Portuguese")
    assert (tool, asked["wine_id"]) == ("find_similar_wines", "landron")
    assert (asked["countries"], asked["max_price"]) == (["Portugal"], 30)
    tool, asked = await called("a red", "the like of the second from Sicily, under 15")
    assert (tool, asked["wine_id"]) == ("find_similar_wines", "gramona")
    assert (asked["regions"], asked["max_price"]) == (["Sicily"], 15)


async def test_what_was_turned_down_is_not_searched_for_again() -> None:
    assert (await filters("a red", "not that one"))["not_ids"] == ["landron", "gramona", "clape"]
    assert "landron" in (await filters("a red", "not that one", "under 20"))["not_ids"]
    assert "not_ids" not in await filters("a red", "under 20")


async def test_a_wine_that_was_not_shown_is_asked_back_and_leaves_no_trace() -> None:
    reply = answer_of(await ask(conversation("a red for lamb", "what about the fifth?")))
    assert reply.intro.startswith("I have not shown you that many.")
    asked = await filters("a red for lamb", "what about the fifth?", "from Spain")
    assert allows(asked, {"styles": ["red"], "foods": ["lamb"], "countries": ["Spain"]})


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
    assert allows(asked, {"styles": ["red"], "foods": ["lamb"], "max_price": 13})


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
    assert allows(await filters(first, then), {"styles": ["red"], "foods": ["lamb"], "limit": 12})


async def test_a_vegan_question_is_no_wish_for_good() -> None:
    asked = await filters("a red for lamb", "is the second one vegan?", "from Spain")
    assert allows(asked, {"styles": ["red"], "foods": ["lamb"], "countries": ["Spain"]})


async def test_an_intolerance_outlives_the_topic() -> None:
    asked = await filters("I'm allergic to eggs", "thanks!", "a Spanish red for lamb")
    assert asked["without_allergens"] == ["egg"]
    assert (await filters("Milchallergie", "Rotwein"))["without_allergens"] == ["milk"]


CHOSEN: list[tuple[str, str, list[str]]] = [
    ("a red for lamb", "which would you start with?", ["landron", "gramona", "clape"]),
    ("un rouge pour l'agneau", "le moins cher des trois ?", ["landron", "gramona", "clape"]),
    ("Rotwein zum Lamm", "welcher ist der jüngste", ["landron", "gramona", "clape"]),
    ("a red", "compare the first two", ["landron", "gramona"]),
    ("a red", "the Gramona, how strong is it?", ["gramona"]),
    ("a red", "what does the Spanish one taste like?", ["gramona"]),
    ("ein Rotwein", "passt der Muscadet zu Austern?", ["landron"]),
    ("a white", "does it go with bacalhau a bras?", ["landron", "gramona", "clape"]),
    ("un bianco", "con la pasta alla norma va bene?", ["landron", "gramona", "clape"]),
    ("a white", "and are those sweet or dry", ["landron", "gramona", "clape"]),
    ("a red", "whats that come to altogether", ["landron", "gramona", "clape"]),
]


@pytest.mark.parametrize(("before", "text", "wine_ids"), CHOSEN)
async def test_what_was_shown_is_told_by_what_it_is(
    before: str, text: str, wine_ids: list[str]
) -> None:
    assert await called(before, text) == ("get_wine", {"wine_ids": wine_ids})


@pytest.mark.parametrize(
    ("said", "excluded"),
    [
        (("pizza", "no vabbe frizzante no"), {"without_styles": "sparkling"}),
        (("ein Wein zum Fisch", "rot eher nicht"), {"without_styles": "red"}),
        (("un vin", "le bordeaux non merci"), {"without_regions": "Bordeaux"}),
        (("any white so long as its not chardonnay, pinot grigio or from france",),
         {"without_grapes": "Pinot Gris", "without_countries": "France"}),
        (("un blanco q no sea ni verdejo ni albariño, para gambas",),
         {"without_grapes": "Verdejo"}),
        (("white burgundy 30-45", "same money but from anywhere else"),
         {"without_regions": "Burgundy"}),
        (("un blanc sec", "étranger alors"), {"without_countries": "France"}),
        (("oak makes me gag, nothing italian, my ex was italian",),
         {"without_countries": "Italy"}),
    ],
)  # fmt: skip
async def test_a_no_behind_its_word_or_over_a_list_excludes(
    said: tuple[str, ...], excluded: dict[str, str]
) -> None:
    asked = await filters(*said)
    for name, value in excluded.items():
        assert value in asked[name]
        wished = name.removeprefix("without_")
        assert value not in asked.get(wished, ()) or wished in asked["soft"]


async def test_a_dish_has_its_own_adjectives() -> None:
    asked = await filters("Leberkäse mit süßem Senf, welcher Wein?")
    assert "sweet" not in asked["sweetness"]


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("low alcohol whites?? like 11 or less", {"max_abv": 11}),
        ("exactly 60 for three bottles", {"max_price": 20}),
        ("45 euros tout compris pour deux bouteilles de rouge", {"max_price": 22.5}),
        ("100 euro, 6 flaschen rot", {"max_price": 16.67}),
    ],
)
async def test_a_number_is_what_its_neighbours_make_it(text: str, limits: dict[str, float]) -> None:
    asked = await filters(text)
    limited = ("min_price", "max_price", "min_abv", "max_abv")
    assert {name: asked[name] for name in limited if name in asked} == limits


async def test_the_first_is_swapped_for_another_of_its_course() -> None:
    said = ("oysters to start, then duck, then a cheeseboard. wine for each?",)
    assert len((await ask(conversation(*said))).tool_calls) == 3
    asked = await filters(*said, "swap the first for something else")
    assert asked["foods"] == ["oysters"]
    assert "landron" in asked["not_ids"]


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("shartoneh", "grapes", "Chardonnay"),
        ("shatoonuf du pape", "regions", "Châteauneuf-du-Pape"),
    ],
)
async def test_a_name_is_known_by_its_sound(text: str, field: str, value: str) -> None:
    assert (await filters(text))[field] == [value]


async def test_who_drinks_nothing_is_offered_nothing_with_alcohol() -> None:
    text = "my mate doesnt drink (religion) and i want something nice for the toast for him"
    assert (await filters(text))["styles"] == ["alcohol_free"]


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("a red for lamb", "and something for the designated driver?"),
        ("a red for lamb", "what do you have for the non-drinkers"),
        ("Rotwein zum Lamm", "und für die beiden, die nichts trinken?"),
        ("un rouge pour l'agneau", "et pour ceux qui ne boivent pas d'alcool ?"),
        ("un tinto para cordero", "¿y para quien conduce?"),
        ("un rosso per l'agnello", "e per gli astemi?"),
        ("rode wijn bij lam", "en voor wie moet rijden?"),
    ],
)
async def test_those_who_drink_nothing_get_wine_without_alcohol(before: str, text: str) -> None:
    assert (await filters(before, text))["styles"] == ["alcohol_free"]


async def test_wine_for_the_others_may_have_alcohol_again() -> None:
    talk = ("a red for lamb", "and for the drivers?", "and a white for everybody else")
    assert (await filters(*talk))["styles"] == ["white"]


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("a red for lamb", "the fuller one"),
        ("Rotwein zum Lamm", "der leichtere"),
        ("un rouge pour l'agneau", "le plus léger ?"),
        ("un tinto para cordero", "el menos alcohólico"),
        ("un rosso per l'agnello", "il più leggero?"),
        ("Rotwein zum Lamm", "warum der erste und nicht der zweite?"),
    ],
)
async def test_the_lighter_one_is_one_of_those_shown(before: str, text: str) -> None:
    assert (await called(before, text))[0] == "get_wine"


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("a red for lamb", "more"),
        ("Rotwein zum Lamm", "noch mehr"),
        ("un rouge pour l'agneau", "encore"),
        ("un rosso per l'agnello", "ancora"),
        ("rode wijn bij lam", "meer"),
    ],
)
async def test_more_are_further_ones_of_the_same_kind(before: str, text: str) -> None:
    asked = await filters(before, text)
    assert asked["styles"] == ["red"]
    assert asked["not_ids"]


async def test_an_exclusion_of_a_continent_or_a_short_name_holds() -> None:
    assert "Chile" in (await filters("a red", "nothing from South America"))["without_countries"]
    left = (await filters("un tinto que no sea rioja ni ribera"))["without_regions"]
    assert left == ["Ribera del Duero", "Rioja"]


async def test_who_eats_was_said_with_the_dish() -> None:
    talk = ("roast duck for 6", "how many bottles", "two of them do not drink")
    first, then = [(await spoken(*talk[:n])).intro for n in (2, 3)]
    assert "6 who drink wine" in first
    assert "4 who drink wine" in then


async def test_why_there_is_egg_in_wine_is_explained() -> None:
    assert (await called("pourquoi met-on des œufs dans le vin rouge ?"))[0] == "search_documents"
    assert (await called("Wieso schmeckt Wein nach Vanille?"))[0] == "search_documents"


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("a red for lamb", "like the third one but half the price"),
        ("un rouge pour l'agneau", "comme le troisième mais à moitié prix"),
        ("un rosso per l'agnello", "come il terzo ma a metà prezzo"),
    ],
)
async def test_half_the_price_is_half_of_what_was_shown(before: str, text: str) -> None:
    _, asked = await called(before, text)
    assert asked["max_price"] == 20


async def test_the_end_of_a_scale_of_those_is_one_of_those() -> None:
    for text in ("which of these three has the most acid", "the lightest of those please"):
        assert (await called("a red for lamb", text))[0] == "get_wine"


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("my in-laws are muslim, what do i pour them?", "something red looking would be nice"),
        ("wir brauchen heute etwas Alkoholfreies", "lieber rot"),
    ],
)
async def test_who_asked_for_none_is_shown_no_alcohol_when_the_colour_changes(
    before: str, text: str
) -> None:
    asked = await filters(before, text)
    assert asked["styles"] == ["alcohol_free"]
    assert asked["colours"] == ["red"]


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("ta suggestion d'hier était infecte", "Je suis désolé"),
        ("kann ich ein Bild vom Etikett schicken?", "Schicken Sie das Bild"),
        ("alright, the first one it is", "A good choice"),
    ],
)
async def test_talk_about_wines_shows_none(text: str, begins: str) -> None:
    answer = await spoken("a red for lamb", text)
    assert answer.wines == []
    assert answer.intro.startswith(begins)


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("wie lang kann man den zweiten wohl liegen lassen", "get_wine"),
        ("quanto tempo regge una volta stappato?", "get_wine"),
        ("y el tercero, ¿de qué país es?", "get_wine"),
        ("hoe zit het met de prijs van de eerste", "get_wine"),
        ("ok whats in it then, like the grape", "get_wine"),
    ],
)
async def test_what_is_asked_of_a_shown_wine_is_looked_up(text: str, tool: str) -> None:
    assert (await called("a red for lamb", text))[0] == tool


STAYS = [listed("landron", price=24), listed("gramona", price=15.5)]
CHOICE = (*STAYS, listed("clape", price=40))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("a red for lamb", "swap the third"),
        ("Rotwein zum Lamm", "tausch den dritten"),
        ("un rouge pour l'agneau", "remplace le troisième"),
        ("un rosso per l'agnello", "al posto dell'ultimo metti un rosato"),
    ],
)
async def test_one_of_a_choice_is_replaced_and_the_rest_stays(said: str, text: str) -> None:
    messages = conversation(said, text)
    for wines in ([NEW], STAYS):
        asked = await ask(messages)
        messages += exchange(asked, json.dumps({"found": len(wines), "wines": wines}))
    assert asked.tool_calls[0].name == "get_wine"
    answer = answer_of(await ask(messages))
    assert ids(answer) == ["landron", "gramona", "new"]
    assert "Auguste Clape Cornas 2019" in answer.intro


async def test_what_stays_of_a_choice_has_nothing_that_was_ruled_out_since() -> None:
    messages = conversation("a red for lamb", "swap the third, and I'm allergic to egg")
    for wines in ([NEW], [STAYS[0], STAYS[1] | {"allergens": ["egg"]}]):
        asked = await ask(messages)
        messages += exchange(asked, json.dumps({"found": len(wines), "wines": wines}))
    assert ids(answer_of(await ask(messages))) == ["landron", "new"]


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        (("a red for lamb", "what do they come to together?"), "€79.50"),
        (("Rotwein zum Lamm", "was kosten die zusammen"), "€79.50"),
        (("a red for lamb", "6 of each, how much is that"), "6 bottles of Clape"),
        (("wedding, 90 guests, 5 hours", "and at 12 a bottle?"), "57–71"),
        (("wedding, 90 guests, 5 hours", "a third of them dont drink"), "60 who drink"),
        (("bruiloft 60 man, hoeveel flessen", "en bij 10 euro per fles?"), "380–470 (EUR)"),
    ],
)
async def test_bottles_are_added_up_in_words(said: tuple[str, ...], fact: str) -> None:
    reply = "57–71" if "wedding" in said[0] or "bruiloft" in said[0] else None
    messages = conversation(*said) if reply is None else conversation(*said, reply=reply)
    if (asked := await ask(messages)).tool_calls:
        messages += exchange(asked, json.dumps({"found": 3, "wines": CHOICE}))
    answer = answer_of(await ask(messages))
    assert fact in answer.intro
    assert not ids(answer)


@pytest.mark.parametrize(
    ("first", "text", "begins"),
    [
        ("what goes with sushi", "would a red work too?", "With sushi I would rather not"),
        ("was passt zu Forelle", "warum kein Riesling?", "Ja, Riesling passt"),
        ("vino per le ostriche", "e un rosso ci sta?", "Con ostriche eviterei"),
    ],
)
async def test_whether_a_kind_goes_with_the_dish_is_said_first(
    first: str, text: str, begins: str
) -> None:
    wine = listed("new", foods=["fish"], misses=["foods"])
    assert (await answered(first, text, wines=[wine])).intro.startswith(begins)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("what do you think of malbec", "Malbec:"),
        ("il pinot grigio è davvero così banale?", "Pinot Gris:"),
        ("is dure wijn echt lekkerder?", "Deels."),
        ("was heißt mineralisch", "Mineralität"),
    ],
)
async def test_an_opinion_is_given_in_words(text: str, begins: str) -> None:
    messages = conversation(text)
    messages += exchange(await ask(messages), "nothing in the library matches")
    answer = answer_of(await ask(messages))
    assert answer.intro.startswith(begins)
    assert not ids(answer)


async def test_people_from_a_country_wish_for_no_wine_of_it() -> None:
    for text in ("a red for my German boss", "un rosso per dei clienti tedeschi"):
        assert not read(text).wishes.countries


@pytest.mark.parametrize(
    "text", ["just tell me what goes with floozlewump", "was passt zu Schnurzel?"]
)
async def test_a_dish_nobody_knows_is_asked_about(text: str) -> None:
    answer = await spoken(text)
    assert text.removesuffix("?").split()[-1] in answer.intro
    assert not ids(answer)


async def test_what_was_just_explained_is_looked_for_by_its_name() -> None:
    asked = await filters_after("c'est quoi un vin de voile", "vous en avez ?")
    assert asked["text"] == "vin jaune"


async def filters_after(first: str, text: str) -> dict[str, Any]:
    """The search that a message leads to behind an answer in words."""
    (call,) = (await ask(conversation(first, text, reply="Un vin du Jura."))).tool_calls
    return dict(json.loads(call.arguments))


async def test_a_case_by_kinds_is_paid_for_together() -> None:
    text = "6 bottles, 2 white 2 red 2 rosé, 45 euros"
    asked = [json.loads(call.arguments) for call in (await ask(conversation(text))).tool_calls]
    assert [each["styles"] for each in asked] == [["white"], ["red"], ["rose"]]
    assert {each["max_price"] for each in asked} == {7.5}


async def test_a_new_price_for_a_case_is_shared_as_the_first_was() -> None:
    first = "a case of six reds, 60 euros in total"
    assert (await filters(first))["max_price"] == 10
    assert (await filters(first, "and if I go up to 90?"))["max_price"] == 15


JOINED = [
    ("how many bottles for 12 people at dinner", "20 more people are coming", "32"),
    ("wie viele Flaschen für 12 Leute zum Essen", "es kommen doch noch 5 Leute dazu", "17"),
    ("combien de bouteilles pour 12 personnes au dîner", "5 personnes de plus", "17"),
    ("cuántas botellas para 12 personas en una cena", "al final vienen veinte adultos más", "32"),
    ("quante bottiglie per 12 persone a cena", "vengono altri 5 amici", "17"),
    ("hoeveel flessen voor 12 personen bij het eten", "er komen toch nog 5 man bij", "17"),
]


@pytest.mark.parametrize(("before", "text", "guests"), JOINED)
async def test_who_comes_besides_is_counted_with_the_others(
    before: str, text: str, guests: str
) -> None:
    assert f" {guests} " in (await spoken(before, text)).intro


SERVED = [
    ("what wine with labskaus with fried egg and rollmops?", 0),
    ("Wein zu Labskaus mit Spiegelei und Rollmops?", 0),
    ("chicken with sour cream, what wine?", 0),
    ("oysters, then steak, then lemon tart: a wine each", 3),
]


@pytest.mark.parametrize(("text", "courses"), SERVED)
def test_what_lies_on_one_plate_is_one_course(text: str, courses: int) -> None:
    assert len(read(text).slots) == courses


TOO_MUCH = [
    ("the last white was way too sour", "acidities", ("low", "medium")),
    ("der weiße war mir zu sauer", "acidities", ("low", "medium")),
    ("c'était trop acide", "acidities", ("low", "medium")),
    ("un vino dulcísimo", "sweetness", ("sweet", "luscious")),
    ("un vino dolcissimo", "sweetness", ("sweet", "luscious")),
    ("veel te zoet", "sweetness", ("bone_dry", "dry")),
]


@pytest.mark.parametrize(("text", "slot", "values"), TOO_MUCH)
def test_what_was_too_much_is_wanted_less(text: str, slot: str, values: tuple[str, ...]) -> None:
    assert getattr(read(text).wishes, slot) == values


async def test_of_a_wine_that_was_too_sour_the_colour_stays() -> None:
    told = "el blanco que me recomendaste no me gustó nada, era demasiado ácido"
    asked = await filters(told)
    assert (asked["styles"], asked["acidities"]) == (["white"], ["low", "medium"])


BLAMED = [
    ("el blanco que me recomendaste no me gustó nada, era acidísimo", ["low", "medium"]),
    ("le vin était nul, acide et vert", ["low", "medium"]),
]


@pytest.mark.parametrize(("text", "acidities"), BLAMED)
async def test_what_a_bad_wine_tasted_of_is_wanted_less(text: str, acidities: list[str]) -> None:
    assert (await filters(text))["acidities"] == acidities


def test_a_price_for_all_together_is_no_price_for_each() -> None:
    text = "fish, then steak, then lemon tart. one wine for each, together under 60"
    change = read(text)
    assert change.has("total")
    assert change.numbers.max_price == 60


@pytest.mark.parametrize("text", ["oh come on, don't be silly", "my sister is 19, she buys it"])
async def test_who_is_under_age_and_presses_gets_no_alcohol_either(text: str) -> None:
    asked = await filters("I turn 17 on friday, which fizz for my party?", text)
    assert asked["styles"] == ["alcohol_free"]


async def test_what_an_explanation_leaves_out_is_explained_too() -> None:
    told = "Crémant: Schaumwein, eher leicht. Champagne: Schaumwein, mittelkräftig."
    messages = conversation("Unterschied Crémant und Champagner?", "und prosecco", reply=told)
    answer = await ask(messages)
    assert [call.name for call in answer.tool_calls] == ["search_documents"]


@pytest.mark.parametrize(
    ("explained", "then"),
    [
        ("whats tannin", "ah thats the thing i hate!! so what red can i drink then"),
        ("was ist Tannin?", "ein Roter mit kaum davon, bitte"),
        ("c'est quoi les tanins ?", "montre moi un rouge qui en a presque pas"),
        ("wat is tannine", "welke rode heeft dat bijna niet"),
    ],
)
async def test_how_much_is_wanted_of_what_was_explained(explained: str, then: str) -> None:
    asked = await ask(conversation(explained, then, reply="Tannin comes from skins."))
    arguments = json.loads(asked.tool_calls[0].arguments)
    assert (arguments["tannins"], arguments["styles"]) == (["none", "low"], ["red"])


@pytest.mark.parametrize(
    ("before", "then"),
    [
        ("a light red please", "now the opposite for my mate"),
        ("einen leichten Roten bitte", "und jetzt das Gegenteil"),
        ("un rouge léger", "et à l'inverse ?"),
        ("un tinto ligero", "y lo contrario?"),
    ],
)
async def test_the_opposite_is_the_other_end_of_a_taste(before: str, then: str) -> None:
    asked = await filters(before, then)
    assert {"medium_full", "full"} & {*asked["bodies"]}
    assert not {"light", "medium_light"} & {*asked["bodies"]}


@pytest.mark.parametrize(
    "said",
    [
        ("she has mussels, i have a steak. one bottle for the two of us",),
        ("oysters, then lamb. a wine each", "just one bottle for everything?"),
        ("fisch für meine frau, steak für mich, eine flasche für uns beide",),
    ],
)
async def test_one_bottle_for_two_dishes_bridges_them(said: tuple[str, ...]) -> None:
    asked = await filters(*said)
    assert asked["styles"] == ["red", "rose"]
    assert asked["tannins"] == ["low", "none"]


@pytest.mark.parametrize(
    "text",
    [
        "erst fisch, dann rind, zum nachtisch was mit rhabarber",
        "huîtres, puis agneau, en dessert un truc de ma tante",
        "oysters then lamb, for dessert something my aunt makes, a wine each",
        "erst fisch, dann rind, zum nachtisch tiramisu",
    ],
)
async def test_a_dessert_without_a_name_gets_its_wine(text: str) -> None:
    assert len((await ask(conversation(text))).tool_calls) == 3


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("jveux un rouge pour ce soir stp", {"styles": ["red"]}),
        ("elle boit pas dalcool, ya un truc pour elle ?", {"styles": ["alcohol_free"]}),
    ],
)
async def test_what_is_run_together_is_written_out(text: str, means: dict[str, Any]) -> None:
    assert allows(await filters(text), means)


async def test_an_ordinary_word_is_no_misspelt_grape() -> None:
    asked = await filters("seriously, a white for the counter at home")
    assert asked.keys().isdisjoint({"grapes", "regions"})


@pytest.mark.parametrize(
    "text",
    ["nen rosé der nicht nach erdbeerbonbon schmeckt", "un rosé pas genre bonbon",
     "a rosé that doesnt taste like strawberry candy", "un rosato che non sappia di caramella"],
)  # fmt: skip
async def test_what_tastes_of_sweets_is_sweet(text: str) -> None:
    assert (await filters(text))["sweetness"] == ["bone_dry", "dry"]


@pytest.mark.parametrize(
    ("text", "grape"),
    [
        ("i usually drink malbec, recommend me something different", "Malbec"),
        ("ich trinke sonst immer Riesling, mal was anderes bitte", "Riesling"),
        ("di solito bevo barbera, qualcosa di diverso?", "Barbera"),
    ],
)
async def test_another_than_the_usual_keeps_its_colour_and_leaves_its_grape(
    text: str, grape: str
) -> None:
    asked = await filters(text)
    assert asked["without_grapes"] == [grape]
    assert asked["styles"] == (["white"] if grape == "Riesling" else ["red"])


@pytest.mark.parametrize("text", ["rosé?", "un rosé"])
async def test_a_word_that_names_a_wine_keeps_the_language(text: str) -> None:
    said = ("etwas Leichtes zum Grillen", "und ein Weißer für uns?", text)
    answer = await answered(*said, wines=[listed("tavel", style="rose")])
    assert language_of(f"{answer.intro} {answer.closing}") == "de"


async def test_who_asks_for_anything_is_shown_some() -> None:
    assert (await called("is there anything i can drink?"))[0] == "search_wines"


@pytest.mark.parametrize(
    "text",
    [
        "8 bottles, half of the guests want white, the others red",
        "8 Flaschen, die Hälfte trinkt nur weiß, die anderen rot",
    ],
)
async def test_who_drinks_only_one_colour_is_counted(text: str) -> None:
    calls = (await ask(conversation(text))).tool_calls
    asked = [json.loads(call.arguments)["styles"] for call in calls]
    assert sorted(asked) == [["red"], ["white"]]


async def test_a_dish_of_two_languages_is_meant_in_each() -> None:
    foods = (await filters("a red for a bbq party"))["foods"]
    assert foods == (await filters("a red for a barbecue"))["foods"]


async def test_a_taste_before_a_dish_with_its_own_preposition_is_the_wine() -> None:
    asked = await filters("etwas Leichtes zum Grillen")
    assert asked["foods"] == ["barbecue"]
    assert "light" in asked["bodies"]


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        (("rotwein", "auch nix über 14%"), "max_abv", 14.0),
        (("rood niks boven de 20",), "max_price", 20.0),
        (("rotwein, 80 ist schmerzgrenze",), "max_price", 80.0),
        (("red", "60 is my limit"), "max_price", 60.0),
        (("rosso", "80 è il massimo"), "max_price", 80.0),
        (("un rosato leggero di grado, max 12",), "max_abv", 12.0),
        (("weißwein mit quasi null restzucker",), "sweetness", ["bone_dry"]),
    ],
)
async def test_a_limit_is_heard_before_and_behind_its_number(
    said: tuple[str, ...], field: str, value: object
) -> None:
    asked = await filters(*said)
    assert asked[field] == value
    assert not {"min_abv", "min_price"} & asked.keys() or asked.get("max_price")


@pytest.mark.parametrize(
    ("first", "then", "style"),
    [
        ("welke wijnen van jullie zijn biologisch", "alleen wit", "white"),
        ("un rouge bio", "plutôt un blanc", "white"),
        ("do you have organic whites", "a red then", "red"),
    ],
)
async def test_how_a_wine_is_made_outlasts_its_colour(first: str, then: str, style: str) -> None:
    asked = await filters(first, then)
    assert (asked["styles"], asked["text"]) == ([style], "organic")


async def test_neither_of_a_country_is_not_from_there() -> None:
    assert (await filters("bollicine", "neanche spagnole"))["without_countries"] == ["Spain"]


async def test_what_is_not_from_a_country_is_not_from_its_region() -> None:
    asked = await filters("a red from Tuscany", "not Italian, though")
    assert asked["without_countries"] == ["Italy"]
    assert "regions" not in asked


PRICED = [
    listed("landron", acidity="high", price=24.0),
    listed("gramona", acidity="medium", price=15.5),
    listed("clape", acidity="low", price=40.0),
]


@pytest.mark.parametrize(
    ("then", "wine", "begins"),
    [
        ("and is it very acidic?", PRICED[1], "Rather not"),
        ("hat der viel Säure?", PRICED[0], "Ja"),
        ("è molto acido?", PRICED[2], "Direi di no"),
        ("heeft die veel zuren?", PRICED[0], "Ja"),
    ],
)
async def test_how_it_is_is_asked_of_what_was_shown(
    then: str, wine: dict[str, Any], begins: str
) -> None:
    assert (await answered("white", then, wines=[wine])).intro.startswith(begins)


@pytest.mark.parametrize(
    "said",
    [
        ("a white for tonight", "sort them by price"),
        ("un vino blanco barato", "ordénamelos por precio"),
        ("un vin blanc pour ce soir", "trie-les par prix"),
    ],
)
async def test_what_was_shown_is_told_by_price(said: tuple[str, str]) -> None:
    told = (await answered(*said, wines=PRICED)).intro
    assert told.index("15.50") < told.index("24") < told.index("40")


@pytest.mark.parametrize("text", ["are 2 bottles enough for 7?", "bastano 2 bottiglie per 7?"])
async def test_whether_bottles_are_enough_is_reckoned(text: str) -> None:
    for said in ((text,), ("wine for chicken", text)):
        assert "4–5" in (await spoken(*said)).intro


async def test_the_other_of_two_is_the_one_that_did_not_come_out() -> None:
    asked = "nebbiolo or sangiovese, which is more tannic?", "give me the other one, with steak"
    told = "Nebbiolo is usually more tannic, Sangiovese softer."
    (call,) = (await ask(conversation(*asked, reply=told))).tool_calls
    assert json.loads(call.arguments)["grapes"] == ["Sangiovese"]


@pytest.mark.parametrize(
    ("said", "bottles"),
    [
        (("fizz for a wedding toast, 80 guests, just one glass each",), "14–17"),
        (("Sekt zum Anstoßen für 60 Gäste, ein Glas pro Kopf, wie viele Flaschen?",), "10–13"),
        (("combien de bouteilles pour 30 invités, deux verres par personne ?",), "10–13"),
        (("cuántas botellas para 24 invitados, dos copas por persona?",), "8–10"),
        (("quante bottiglie per 30 ospiti, due bicchieri a testa?",), "10–13"),
        (("we zijn met 14, 3 avonden, hoeveel flessen?",), "21–27"),
        (("how many bottles for 18 guests?", "10 more are coming"), "14–18"),
        (("wie viele Flaschen für 18 Gäste?", "es kommen noch 10 dazu"), "14–18"),
        (("cuántas botellas para 18 invitados?", "se apuntan 10 más"), "14–18"),
        (("quante bottiglie per 18 ospiti?", "si aggiungono altri 10"), "14–18"),
        (("hoeveel flessen voor 18 gasten?", "er komen er nog 10 bij"), "14–18"),
        (("how many bottles for 10 of us for a weekend?",), "10–13"),
        (
            (
                "wie viele Flaschen für 60 Gäste beim Essen?",
                "15 davon sind Kinder hab ich vergessen",
            ),
            "23–29",
        ),
    ],
)
async def test_what_each_is_poured_is_counted_as_told(said: tuple[str, ...], bottles: str) -> None:
    asked = await ask(conversation(*said, reply="Gern."))
    wines = [{"wine_id": "a", "name": "Fizz", "style": "sparkling"}]
    answer = answer_of(await after_results(*said, wines=wines) if asked.tool_calls else asked)
    assert bottles in f"{answer.intro} {answer.closing}"


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("i love malbec but show me something different", {"without_grapes": ["Malbec"]}),
        ("barolo hat er schon drei, was anderes bitte", {"without_regions": ["Barolo"]}),
        (
            "le flipa el ribera, quiero otra cosa parecida",
            {"without_regions": ["Ribera del Duero"]},
        ),
        (
            "mi piace il nebbiolo ma costa un botto, qualcosa di simile",
            {"without_grapes": ["Nebbiolo"]},
        ),
    ],
)
async def test_what_is_known_is_left_out_where_another_is_wanted(
    said: str, left: dict[str, Any]
) -> None:
    asked = await filters(said)
    assert asked["styles"] == ["red"]
    assert {name: asked[name] for name in left} == left


@pytest.mark.parametrize(
    "said",
    [
        "list has a chianti 38, a malbec 34 and a beaujolais 31. ribeye for me. one bottle. quick",
        "im restaurant gibt es chianti, malbec oder beaujolais, was nehm ich zum steak?",
        "au resto, sur la carte ils ont chianti, malbec et beaujolais. avec une entrecôte ?",
    ],
)
async def test_of_a_restaurants_list_one_is_chosen(said: str) -> None:
    answer = await spoken(said)
    assert "Malbec" in answer.intro
    assert not answer.wines


@pytest.mark.parametrize(
    ("said", "foods"),
    [
        ("oysters tonight, no wait, lamb", ["lamb"]),
        ("heute gibts Lachs, ach quatsch, Lamm", ["lamb"]),
        ("ce soir raclette.. nan je déconne, un gigot d'agneau", ["lamb"]),
        ("hoy pescado, no espera, cordero", ["lamb"]),
        ("stasera pesce, no aspetta, agnello", ["lamb"]),
        ("vanavond vis, nee wacht, lam", ["lamb"]),
    ],
)
async def test_what_is_taken_back_counts_no_more(said: str, foods: list[str]) -> None:
    assert (await filters(said))["foods"] == foods


@pytest.mark.parametrize(
    "said",
    [
        "less alcohol maybe? 13 max",
        "minder alcohol kan dat ook? 13 max",
        "weniger Alkohol, max 13?",
    ],
)
async def test_a_limit_of_alcohol_is_no_question_of_knowledge(said: str) -> None:
    asked = await filters("a full red", said)
    assert asked["max_abv"] == 13.0
    assert "max_price" not in asked


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("priorat ya le regalé el año pasado", "Priorat"),
        ("barolo he already has three of", "Barolo"),
        ("le chablis il en a déjà", "Chablis"),
        ("rioja heeft hij al genoeg", "Rioja"),
    ],
)
async def test_what_somebody_has_already_is_left_out(said: str, left: str) -> None:
    assert left in (await filters("a bottle for my boss, 25 to 40 euros", said))["without_regions"]


def test_whoever_is_off_a_colour_wants_the_other() -> None:
    change = read("shes off red at the mo, something white then", judges=True)
    assert change.wishes.styles == ("white",)


async def test_a_sum_for_all_bottles_of_a_party_is_its_budget() -> None:
    asked = await filters(
        "verjaardag 25 man, borrel van 4 tot 8. hoeveel wijn", "mag bij elkaar 70 kosten"
    )
    assert asked["max_price"] <= 70 / 14


@pytest.mark.parametrize("said", ["riesling vind ik te zuur", "Riesling finde ich zu sauer"])
async def test_what_is_told_to_taste_wrong_is_left_out_with_the_taste(said: str) -> None:
    asked = await filters("a white under 15", said)
    assert (asked["without_grapes"], asked["acidities"]) == (["Riesling"], ["low", "medium"])


@pytest.mark.parametrize(
    ("said", "region"), [("y un oporto qué tal", "Port"), ("un oporto", "Port")]
)
async def test_port_is_known_by_its_spanish_name(said: str, region: str) -> None:
    assert (await filters("un vino para mi padre", said))["regions"] == [region]
