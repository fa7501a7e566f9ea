"""What a guest does not tolerate or does not want is never a wish, in six languages."""

from typing import Any

import pytest

from agent.house_sommelier.understanding import understand
from tests.house import after_results, answered, conversation, exchange, filters, ids
from tests.house import answer_of as read
from tests.house import ask as send

RED, WHITE, SPARKLING = ["red"], ["white"], ["sparkling"]

INTOLERANCES: list[tuple[str, dict[str, Any]]] = [
    ("I can't have eggs; a red for duck?", {"styles": RED, "foods": ["duck"], "w": ["egg"]}),
    ("any white for an egg intolerant guest", {"styles": WHITE, "w": ["egg"]}),
    (
        "severe milk allergy here, a red for lamb",
        {"styles": RED, "foods": ["lamb"], "w": ["milk"]},
    ),
    ("a guest has a nut and egg allergy: bubbles", {"styles": SPARKLING, "w": ["egg"]}),
    ("I'm allergic to sulphites, a light red", {"styles": RED, "w": ["sulphites"]}),
    ("allergic to shellfish, a white for chicken", {"styles": WHITE, "foods": ["poultry"]}),
    (
        "Meine Frau verträgt keine Milch, Rotwein zu Gulasch",
        {"styles": RED, "foods": ["stew"], "w": ["milk"]},
    ),
    ("Ich bin Eiallergiker: Weißwein?", {"styles": WHITE, "w": ["egg"]}),
    ("gegen Eier allergisch, Rotwein zum Steak", {"styles": RED, "foods": ["beef"], "w": ["egg"]}),
    ("Hühnereiweißunverträglichkeit. Sekt?", {"styles": SPARKLING, "w": ["egg"]}),
    (
        "Fischallergie! Rotwein zu Ente bitte",
        {"styles": RED, "foods": ["duck"], "w": ["fish"]},
    ),
    (
        "intolérance au lait et aux œufs, un blanc pour le saumon",
        {"styles": WHITE, "foods": ["oily_fish"], "w": ["milk", "egg"]},
    ),
    (
        "allergie au poisson, rouge pour un poulet",
        {"styles": RED, "foods": ["poultry"], "w": ["fish"]},
    ),
    (
        "alergia al huevo, un blanco para pollo",
        {"styles": WHITE, "foods": ["poultry"], "w": ["egg"]},
    ),
    (
        "es intolerante a la lactosa: tinto para pizza",
        {"styles": RED, "foods": ["pizza"], "w": ["milk"]},
    ),
    ("sin huevo, un tinto", {"styles": RED, "w": ["egg"]}),
    (
        "ho un'allergia alle uova, un rosso per brasato",
        {"styles": RED, "foods": ["stew"], "w": ["egg"]},
    ),
    ("intollerante al latte: un bianco", {"styles": WHITE, "w": ["milk"]}),
    (
        "mijn man heeft een ei-allergie, wit bij zalm",
        {"styles": WHITE, "foods": ["oily_fish"], "w": ["egg"]},
    ),
    ("allergisch voor eieren en melk, rode wijn", {"styles": RED, "w": ["egg", "milk"]}),
    ("koemelkallergie, bubbels graag", {"styles": SPARKLING, "w": ["milk"]}),
]


@pytest.mark.parametrize(("text", "expected"), INTOLERANCES)
async def test_an_intolerance_is_a_filter_and_no_dish(text: str, expected: dict[str, Any]) -> None:
    asked = await filters(text)
    wanted = {key: value for key, value in expected.items() if key != "w"}
    assert {key: asked.get(key) for key in wanted} == wanted
    assert asked.get("without_allergens", []) == expected.get("w", [])
    assert asked.get("foods", []) == expected.get("foods", [])


async def test_an_intolerance_outlives_the_topic() -> None:
    asked = await filters("I'm allergic to eggs", "thanks!", "a Spanish red for lamb")
    assert asked["without_allergens"] == ["egg"]
    assert (await filters("Milchallergie", "Rotwein"))["without_allergens"] == ["milk"]


async def test_an_allergic_guest_is_told_to_read_the_label() -> None:
    egg = {"wine_id": "e", "name": "E", "style": "red", "allergens": ["egg"]}
    safe = {"wine_id": "s", "name": "S", "style": "red", "allergens": ["sulphites"]}
    answer = await answered("I'm allergic to eggs, a red", wines=[egg, safe])
    assert ids(answer) == ["s"]
    assert "check the label" in answer.closing
    nuts = await answered("I have a nut allergy, a red", wines=[safe])
    assert "only sulphites, egg, milk and fish" in nuts.closing


EXCLUSIONS: list[tuple[str, set[tuple[str, str]]]] = [
    ("nothing from Italy, a red", {("countries", "Italy")}),
    ("a red, not from Bordeaux or Rioja", {("regions", "Bordeaux"), ("regions", "Rioja")}),
    (
        "nothing from France, Italy or Spain, a red",
        {("countries", "France"), ("countries", "Italy"), ("countries", "Spain")},
    ),
    ("bubbles, but no prosecco", {("regions", "Prosecco")}),
    ("something sweet, no fortified wines", {("styles", "fortified")}),
    ("a white with no oak", {("text", "oaky")}),
    ("a red but no Yellow Tail", {("name", "tail"), ("name", "yellow")}),
    ("rot, aber nichts Spanisches", {("countries", "Spain")}),
    ("weiß, bloß nicht aus Italien", {("countries", "Italy")}),
    ("Riesling mag ich nicht, ein Weißwein", {("grapes", "Riesling")}),
    ("alles außer Merlot, rot", {("grapes", "Merlot")}),
    ("ein Sekt, kein französischer", {("countries", "France")}),
    ("rouge, rien d'espagnol", {("countries", "Spain")}),
    ("un rouge sauf du bordeaux", {("regions", "Bordeaux")}),
    (
        "un blanc mais pas de Chablis ni de Sancerre",
        {("regions", "Chablis"), ("regions", "Sancerre")},
    ),
    ("un blanc non boisé, pas boisé", {("text", "oaky")}),
    ("un tinto, nada italiano", {("countries", "Italy")}),
    ("tinto que no sea Rioja", {("regions", "Rioja")}),
    ("un blanco sin Verdejo", {("grapes", "Verdejo")}),
    ("un rosso non piemontese", {("regions", "Piedmont")}),
    ("bollicine, tutto tranne prosecco", {("regions", "Prosecco")}),
    ("un bianco, niente vini francesi", {("countries", "France")}),
    ("rode wijn, geen Spaanse", {("countries", "Spain")}),
    ("wit, liefst niet uit Duitsland", {("countries", "Germany")}),
    ("iets rood, alles behalve merlot", {("grapes", "Merlot")}),
]


@pytest.mark.parametrize(("text", "excluded"), EXCLUSIONS)
async def test_what_is_excluded_is_not_searched_for(
    text: str, excluded: set[tuple[str, str]]
) -> None:
    said = understand(text)
    assert said.without.pairs == excluded
    assert said.query.model_fields_set <= {"styles", "sweetness"}
    assert said.query.model_fields_set


@pytest.mark.parametrize(
    "text",
    [
        "I don't mind, an Italian red",
        "not only Italian red",
        "why not an Italian red?",
        "keine Ahnung, italienischer Rotwein?",
        "je ne sais pas, un rouge italien",
        "no sé, un tinto italiano",
        "non so, un rosso italiano",
        "geen idee, een Italiaanse rode wijn",
    ],
)
async def test_a_no_that_excludes_nothing(text: str) -> None:
    said = understand(text)
    assert (said.query.styles, said.query.countries) == (("red",), ("Italy",))
    assert not said.without


CHABLIS: dict[str, Any] = {
    "wine_id": "chablis", "name": "Dauvissat", "country": "France", "region": "Burgundy",
    "appellation": "Chablis", "grapes": ["Chardonnay"], "style": "white", "notes": "Flint.",
}  # fmt: skip
SOAVE = {
    "wine_id": "soave", "name": "Pieropan", "country": "Italy", "region": "Veneto",
    "appellation": "Soave Classico", "grapes": ["Garganega"], "style": "white", "notes": "Oak.",
}  # fmt: skip
DAO: dict[str, Any] = {
    "wine_id": "dao", "name": "Quinta dos Roques", "country": "Portugal", "region": "Dão",
    "grapes": ["Encruzado"], "style": "white", "notes": "Quince.",
}  # fmt: skip
PORT = {
    "wine_id": "port", "name": "Churchill's White Port", "country": "Portugal", "region": "Douro",
    "appellation": "Port", "style": "fortified", "colour": "white",
}  # fmt: skip
ALL: list[dict[str, Any]] = [CHABLIS, SOAVE, DAO, PORT]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a wine for fish, not French", ["soave", "dao", "port"]),
        ("Wein zum Fisch, kein Chardonnay, nichts aus Portugal", ["soave"]),
        ("un vin pour le poisson, pas de bourgogne", ["soave", "dao", "port"]),
        ("vino para pescado sin madera", ["chablis", "dao", "port"]),
        ("vino per il pesce, niente porto", ["chablis", "soave", "dao"]),
        ("wijn bij vis, geen versterkte wijn", ["chablis", "soave", "dao"]),
        ("a wine for fish, anything but Pieropan", ["chablis", "dao", "port"]),
        ("a wine for fish, no white please", []),
    ],
)
async def test_results_are_held_against_the_exclusions(text: str, kept: list[str]) -> None:
    answer = await answered(text, wines=ALL)
    assert ids(answer) == kept
    assert kept or answer.intro.startswith("Everything I found for that has something")


async def test_the_answer_says_what_was_left_out() -> None:
    answer = await answered("Wein zum Fisch, nichts aus Frankreich", wines=[DAO])
    assert answer.intro == "Gesucht: Fisch, ohne Frankreich. Das passt am besten:"


async def test_an_exclusion_holds_for_follow_ups_until_it_is_asked_for() -> None:
    asked = ("a white for fish, no Chardonnay", "and something from France?")
    assert "chablis" not in ids(await answered(*asked, wines=ALL))
    asked = ("a white for fish, no Chardonnay", "and a Chardonnay?")
    assert "chablis" in ids(await answered(*asked, wines=ALL))


@pytest.mark.parametrize(
    ("said", "left_out"),
    [
        (
            "a dessert wine, nothing fortified",
            {"without_styles": ["fortified"]},
        ),
        (
            "qualcosa per il dolce, niente vini liquorosi",
            {"without_styles": ["fortified"]},
        ),
        ("bubbles, but no rosé", {"without_styles": ["rose"]}),
        (
            "ein Weißwein, kein Riesling und nichts aus Frankreich",
            {"without_grapes": ["Riesling"], "without_countries": ["France"]},
        ),
        (
            "un blanc mais pas de Chablis ni de Sancerre",
            {"without_regions": ["Chablis", "Sancerre"]},
        ),
    ],
)
async def test_exclusions_are_filters_of_the_search(
    said: str, left_out: dict[str, list[str]]
) -> None:
    asked = await filters(said)
    assert {name: asked[name] for name in asked if name.startswith("without_")} == left_out


async def test_an_excluded_style_is_not_asked_for() -> None:
    assert (await filters("a dessert wine, nothing fortified"))["styles"] == ["sweet"]


async def test_more_exclusions_than_a_search_takes_are_still_heeded() -> None:
    countries = (
        "France, Italy, Spain, Germany, Austria, Chile, Greece, Hungary, Georgia, Croatia, "
        "Slovenia, Lebanon, Australia or Portugal"
    )
    said = f"a white for fish, nothing from {countries}"
    assert len((await filters(said))["without_countries"]) == 12
    assert ids(await answered(said, wines=ALL)) == []


async def test_when_exclusions_use_up_a_search_it_looks_deeper_once() -> None:
    said = "a white under 30 for fish, not French"
    more = await after_results(said, wines=[CHABLIS], found=60)
    bands = [call.arguments for call in more.tool_calls]
    assert len(bands) == 3
    assert '"max_price": 12' in bands[0]
    assert '"max_price": 30' in bands[2]
    messages = conversation(said)
    first = await send(messages)
    content = '{"found": 60, "wines": [{"wine_id": "x", "name": "X", "country": "France"}]}'
    messages += [*exchange(first, content), *exchange(more, content)]
    assert read(await send(messages)).intro.startswith("Everything I found")
