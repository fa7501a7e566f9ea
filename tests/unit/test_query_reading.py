"""Requests that are read from messages, and their merging with earlier ones."""

import string
from contextvars import copy_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fallback.merging import merge
from agent.i18n import set_app_language
from agent.query_reading.asked_names import read_asked_name
from agent.query_reading.names import get_food_name
from agent.query_reading.phrases import detect_language
from agent.query_reading.request import SCALES, read_request
from agent.query_reading.tables import (
    load_dishes,
    load_pairings,
    load_profiles,
    load_rows,
)
from agent.query_reading.turn_language import find_language
from agent.sommelier.building_queries import parse_query
from agent.sommelier.queries import WineQuery
from agent.sommelier.vocabulary import Body, Food, Level, Style, Sweetness

REQUESTS = {
    "en": "a red for lamb under 20 euros, no Merlot",
    "de": "einen Rotwein zu Lamm, unter 20 Euro, kein Merlot",
    "fr": "un rouge pour de l'agneau, moins de 20 euros, pas de Merlot",
    "es": "un tinto para cordero, menos de 20 euros, sin Merlot",
    "it": "un rosso per l'agnello, meno di 20 euro, niente Merlot",
    "nl": "een rode wijn bij lam, onder 20 euro, geen Merlot",
    "pt": "um tinto para cordeiro, menos de 20 euros, sem Merlot",
}


@pytest.mark.parametrize(
    ("text", "foods"),
    [
        ("a wine for goat", ("lamb",)),
        ("a wine for goat cheese", ("goat_cheese",)),
        ("ein Wein zu Ziege", ("lamb",)),
        ("ein Wein zu Käse von der Ziege", ("goat_cheese",)),
        ("un vin pour du chèvre", ("goat_cheese",)),
        ("een wijn bij geit", ("lamb",)),
        ("a wine for pecan pie", ("creamy_dessert", "nuts")),
        ("un vino para turrón", ("creamy_dessert", "nuts")),
        ("vinho para bolo de nozes", ("creamy_dessert", "nuts")),
        ("a wine for gyros", ("barbecue", "pork")),
        ("a wine for shish taouk", ("barbecue", "poultry")),
    ],
)
def test_meat_is_no_cheese_and_a_sweet_bake_no_snack(
    text: str, foods: tuple[str, ...]
) -> None:
    (dish,) = read_request(text).dishes.values()
    assert dish.foods == foods


def test_no_dish_of_a_language_stands_in_two_rows() -> None:
    """The later row would win, and nobody who reads the first would know."""
    seen: set[tuple[str, str]] = set()
    twice: list[tuple[str, str]] = []
    for row in load_rows():
        if "dish" not in row.meanings:
            continue
        for language, phrases in row.phrases.items():
            names = {(language, phrase.casefold()) for phrase in phrases}
            twice += names & seen
            seen |= names
    assert twice == []


def test_friulano_is_a_grape_and_no_place() -> None:
    request = read_request("a Friulano please")
    assert request.values("grapes") == ("Friulano",)
    assert not request.values("regions")


@pytest.mark.parametrize(
    "text",
    [
        "a red for lamb without egg",
        "ein Roter zu Lamm ohne Ei",
        "un rouge pour l'agneau, sans œuf",
        "un tinto para cordero, sin huevo",
        "un rosso per l'agnello, senza uova",
        "um tinto para cordeiro, sem ovo",
    ],
)
def test_a_wine_without_egg_is_a_wish_about_the_wine(text: str) -> None:
    assert read_request(text).values("without_allergens") == ("egg",)
    assert not read_request("a red, no fish tonight").values("without_allergens")


@pytest.mark.parametrize(
    "text",
    [
        "DON'T give me Merlot",
        "dont want Merlot",
        "do not show me Merlot",
        "I cannot have Merlot",
    ],
)
def test_a_negated_wish_excludes(text: str) -> None:
    request = read_request(text)
    assert request.values("without_grapes") == ("Merlot",)
    assert not request.values("grapes")


def test_a_word_means_what_it_means_in_the_country_of_the_user() -> None:
    def read_in(app_language: str) -> WineQuery:
        set_app_language(app_language)
        return parse_query("quero um tinto suave", "pt")

    in_portugal = copy_context().run(read_in, "pt-pt")
    in_brazil = copy_context().run(read_in, "pt-br")
    assert in_portugal.tannins
    assert not in_portugal.sweetness
    assert set(in_brazil.sweetness) == {Sweetness.MEDIUM, Sweetness.SWEET}
    assert not in_brazil.tannins


@pytest.mark.parametrize("text", ["un vin à 20 euros", "una bottiglia a 20 euro"])
def test_a_preposition_is_no_currency(text: str) -> None:
    request = read_request(text)
    assert (request.filters["max_price"], request.filters["currency"]) == (20, "EUR")


@pytest.mark.parametrize(("language", "text"), REQUESTS.items())
def test_a_request_is_understood_in_every_language(language: str, text: str) -> None:
    request = read_request(text)
    assert (request.language, detect_language(text, "en")) == (language, language)
    assert request.values("styles") == ("red",)
    assert [dish.foods for dish in request.dishes.values()] == [("lamb",)]
    assert (request.filters["below"], request.filters["currency"]) == (20, "EUR")
    assert request.values("without_grapes") == ("Merlot",)
    assert not request.unknown_words
    query = parse_query(text)
    assert (query.styles, query.without_grapes) == ((Style.RED,), ("Merlot",))
    assert query.below == 20
    assert "foods" in query.soft


SHORT_WISHES = {
    "de": "etwas zu Spargel|trockener Riesling|12 Flaschen Grenache|Rosé für den Sommer",
    "fr": "du vin pour une raclette|champagne pour l'apéro|un rouge corsé|blanc moelleux",
    "it": "un bianco per il pesce|spumante per aperitivo|vino per formaggi|20 euro rosso",
    "es": "un cava para brindar|vino tinto|algo para el jamón|un rosado barato",
    "pt": "um tinto para bacalhau|vinho para leitão|tinto encorpado|tinto para polvo",
    "nl": "wijn bij mosselen|iets fris bij kip|een volle rode|14 flessen Bobal",
    "en": "Barolo|Chianti|a pinot noir|Pinot Grigio|Rioja|a vinho verde|Ribera del Duero|coq au vin"
    "|jamón ibérico|spaghetti alle vongole|tiramisu|bouillabaisse|a Rosso di Montalcino",
}


@pytest.mark.parametrize("language", SHORT_WISHES)
def test_a_short_wish_shows_its_language_to_who_usually_writes_english(
    language: str,
) -> None:
    for text in SHORT_WISHES[language].split("|"):
        assert detect_language(text, "en") == language, text


@pytest.mark.parametrize(
    "dish", ["spaghetti bolognese", "steak frites", "ribeye", "madras", "osso buco"]
)
def test_a_dish_known_everywhere_does_not_change_the_language(dish: str) -> None:
    for usual_language in SHORT_WISHES:
        assert detect_language(dish, usual_language) == usual_language


@pytest.mark.parametrize(
    ("text", "user_language", "language"),
    [
        ("Du bist echt dumm", "de", "de"),
        ("va te faire voir", "fr", "fr"),
        ("merci beaucoup", "de", "fr"),
        ("obrigado", "en", "pt"),
    ],
)
def test_one_word_shared_with_another_language_does_not_change_the_language(
    text: str, user_language: str, language: str
) -> None:
    assert detect_language(text, user_language) == language


@pytest.mark.parametrize(
    ("texts", "usual", "language"),
    [
        (["Tomo antibióticos. ¿Un tinto?"], "es", "es"),
        (["Tomo antibióticos. Um tinto?"], "pt", "pt"),
        (["[forwarded, written by somebody else]\n> Zum Lamm ein Rotwein"], "fr", "fr"),
        (["Un rouge ?\n\n> Was passt zu Lamm? Ein Rotwein?"], "fr", "fr"),
        (["Was passt zu Lamm?", "Merlot"], "en", "de"),
        (["Un rouge pour l'agneau", "/find Weinbar in Wien", "Merci !"], "en", "fr"),
    ],
)
def test_the_language_of_a_turn_is_that_of_the_words_of_the_user(
    texts: list[str], usual: str, language: str
) -> None:
    assert find_language(texts, usual) == language


@pytest.mark.parametrize(
    ("text", "allergen"),
    [
        ("egg allergy. a white for fish", "egg"),
        ("I am allergic to sulphites, something for fish", "sulphites"),
        ("A white for fish, for someone with an egg and milk allergy", "egg milk"),
        ("Ich bin allergisch gegen Sulfite, etwas zu Fisch", "sulphites"),
        ("Ein Weißwein zum Fisch, ich bin gegen Eier allergisch", "egg"),
        ("allergie aux œufs et au lait. un blanc pour du poisson", "egg milk"),
        ("Je suis allergique aux sulfites, quelque chose pour le poisson", "sulphites"),
        ("Soy alérgica al huevo, algo para el pescado", "egg"),
        ("Un bianco con il pesce, sono allergica al latte", "milk"),
        ("Sono allergico alle uova: qualcosa per il pesce", "egg"),
        ("Ik verdraag geen eieren, iets bij vis", "egg"),
        ("Ik kan niet tegen melk. Een witte wijn bij vis", "milk"),
        ("Um branco para peixe, sou alérgico a sulfitos", "sulphites"),
        ("Eggs make her ill. A white for fish", "egg"),
        ("Ein Weißwein zu Fisch. Eier verträgt sie nicht", "egg"),
    ],
)
def test_a_dish_was_taken_for_an_allergy_of_another_clause(
    text: str, allergen: str
) -> None:
    request = read_request(text)
    assert request.values("without_allergens") == tuple(allergen.split())
    assert [dish.foods for dish in request.dishes.values()] == [("fish",)]


@pytest.mark.parametrize(
    ("text", "allergens"),
    [
        ("allergic to eggs, nuts and fish. a red for lamb", "egg fish"),
        ("someone with a fish and egg allergy, lamb tonight", "fish egg"),
        ("Allergic to fish. Also eggs. A red for lamb", "fish egg"),
        ("Fish tonight? I am allergic to it. So lamb", "fish"),
        ("I can't have eggs (allergic), a red for lamb", "egg"),
        ("Ich vertrage keine Eier und keinen Fisch, was passt zu Lamm?", "egg fish"),
        (
            "Je suis allergique au poisson et aux œufs. Un rouge pour l'agneau",
            "fish egg",
        ),
        ("Tengo alergia al huevo y al pescado, un tinto para cordero", "egg fish"),
        ("Allergica a uova e pesce, un rosso per l'agnello", "egg fish"),
        ("Allergisch voor ei en vis, een rode wijn bij lam", "egg fish"),
        ("Sou alérgico a ovo e peixe, um tinto para cordeiro", "egg fish"),
    ],
)
def test_each_allergy_that_is_listed_is_excluded(text: str, allergens: str) -> None:
    request = read_request(text)
    assert sorted(request.values("without_allergens")) == sorted(allergens.split())
    assert ("fish",) not in [dish.foods for dish in request.dishes.values()]


@pytest.mark.parametrize(
    ("text", "low", "high", "currency"),
    [
        ("a red up to £15", None, 15, "GBP"),
        ("20-30 € white", 20, 30, "EUR"),
        ("vino por no más de veinte euros", None, 20, "EUR"),
        ("a bottle of around 40 dollars", 32, 48, "USD"),
        ("un rosso, sui 20 euro al massimo", None, 20, "EUR"),
        ("einen Roten bis 1.234,56 €", None, 1234.56, "EUR"),
        ("a cheap red", None, 12, "EUR"),
        ("ein Roter für fünfzehn Euro", None, 15, "EUR"),
        ("höchstens siebenundzwanzig Euro, weiß", None, 27, "EUR"),
        ("between twenty and thirty euros", 20, 30, "EUR"),
        ("pas plus de quatre-vingt-dix euros", None, 90, "EUR"),
    ],
)
def test_an_amount_with_a_currency_or_a_limit_is_a_price(
    text: str, low: float | None, high: float | None, currency: str
) -> None:
    query = parse_query(text)
    assert (query.min_price, query.max_price, query.currency.value) == (
        low,
        high,
        currency,
    )


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("white, but absolutely no chardonnay or Riesling", {"Chardonnay", "Riesling"}),
        ("anything but French", {"France"}),
        ("I don't like Chardonnay", {"Chardonnay"}),
        ("geen sauvignon en geen wijn uit Frankrijk", {"Sauvignon Blanc", "France"}),
        ("um branco sem madeira", {"oaky"}),
    ],
)
def test_a_negation_excludes_things_in_its_clause(text: str, without: set[str]) -> None:
    filters = read_request(text).filters
    excluded = [
        values for name, values in filters.items() if name.startswith("without_")
    ]
    assert {value for values in excluded for value in values} == without


@pytest.mark.parametrize(
    ("text", "is_question"),
    [
        ("what is tannin?", True),
        ("Muss man alte Rotweine dekantieren?", True),
        ("which red for pizza?", False),
        ("what is a good red for lamb?", False),
    ],
)
def test_questions_for_knowledge_differ_from_requests_for_wine(
    text: str, is_question: bool
) -> None:
    assert read_request(text).is_question == is_question


def test_new_filters_replace_earlier_ones_and_a_new_dish_resets_them() -> None:
    first = read_request("a red Rioja for lamb under 20 euros, no Merlot")
    white = merge(first, read_request("white, sorry"))
    assert (white.values("styles"), white.values("regions")) == (("white",), ())
    assert white.dishes == first.dishes
    rest = {name: first.filters[name] for name in first.filters if name != "regions"}
    assert white.filters == rest | {"styles": ("white",)}
    italian = merge(first, read_request("from Italy"))
    assert (italian.values("countries"), italian.values("regions")) == (("Italy",), ())
    assert italian.values("styles") == ("red",)
    merlot = merge(first, read_request("a Merlot after all"))
    assert "without_grapes" not in merlot.filters
    sushi = merge(first, read_request("and with sushi?"))
    assert sushi.filters == {}


KNOWN_WORDS = st.sampled_from(
    [
        "red",
        "no",
        "nicht",
        "lamb",
        "Merlot",
        "20",
        "€",
        "under",
        "or",
        ",",
        "other",
        "?",
        "dry",
    ]
)
ANYTHING = st.one_of(
    st.text(max_size=300),
    st.lists(KNOWN_WORDS, max_size=40).map(" ".join),
    st.text(string.digits + ".,€$- ", max_size=60),
)


@given(ANYTHING)
def test_any_text_makes_a_query_that_never_includes_an_excluded_value(
    text: str,
) -> None:
    request = read_request(text)
    assert isinstance(parse_query(text), WineQuery)
    merged = merge(request, request)
    assert merged.inclusions.keys() >= request.inclusions.keys()
    for name, values in request.inclusions.items():
        assert not set(values) & set(request.values(f"without_{name}"))


def test_the_tables_are_consistent() -> None:
    scales = {
        "sweetness": Sweetness,
        "bodies": Body,
        "tannins": Level,
        "acidities": Level,
    }
    assert {name: [*steps] for name, steps in SCALES.items()} == {
        name: [*map(str, steps)] for name, steps in scales.items()
    }
    for _, colour, *build in load_profiles().values():
        fields = dict(zip(("bodies", "tannins", "acidities"), build, strict=True))
        WineQuery.model_validate({"styles": colour} | fields)
    for pairing in load_pairings().values():
        WineQuery.model_validate(pairing)
    for dish in load_dishes():
        assert not dish.pairing or dish.pairing in load_pairings()
    assert {food for dish in load_dishes() for food in dish.foods} == set(Food)
    assert {dish.foods[0] for dish in load_dishes() if len(dish.foods) == 1} == set(
        Food
    )
    for language in REQUESTS:
        assert {get_food_name(food, language) for food in Food}


@pytest.mark.parametrize(
    ("text", "language", "currency"),
    [("20 A$", "en", "AUD"), ("up to C$30", "en", "CAD"), ("até R$ 90", "pt", "BRL")],
)
def test_a_dollar_sign_has_its_country(text: str, language: str, currency: str) -> None:
    assert read_request(text, language).filters["currency"] == currency


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("un plateau de quatre fromages", "fr"),
        ("a cheese board with four cheeses", "en"),
    ],
)
def test_a_number_of_things_is_no_price_and_no_unknown_word(
    text: str, language: str
) -> None:
    request = read_request(text, language)
    assert request.filters == {}
    assert request.unknown_words == ()
    assert request.dishes


@pytest.mark.parametrize("ending", ["", "e", "en", "er", "es"])
@pytest.mark.parametrize(
    "adjective",
    ["halbtrocken", "feinherb", "vollmundig", "samtig", "fruchtig", "würzig", "blumig"],
)
def test_a_german_adjective_is_read_with_every_ending(
    adjective: str, ending: str
) -> None:
    wish = read_request(f"Rotwein, {adjective}", "de")
    inflected = read_request(f"Rotwein, {adjective}{ending}", "de")
    assert len(wish.filters) == 2
    assert inflected.filters == wish.filters


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("was passt zu labskaus?", "Labskaus"),
        ("was passt zu handkäs?", "Handkäs"),
        ("was passt zu raclette?", "Raclette"),
        ("zu thailändischem Essen", "scharfe asiatische Küche"),
    ],
)
def test_a_german_dish_without_its_capital_keeps_its_name(text: str, name: str) -> None:
    request = read_request(text, "de")
    assert list(request.dishes) == [name]


def test_a_taste_without_oak_does_not_turn_round_another_negation() -> None:
    request = read_request("ein Roter, nicht rauchig, ohne Barrique", "de")
    assert request.values("text") == ()
    assert request.values("without_text") == ("smoky smoke", "oaky")


@pytest.mark.parametrize(
    ("text", "language", "grapes"),
    [
        ("no oaked Chardonnay", "en", ("Chardonnay",)),
        ("I don't want an oaky Chardonnay", "en", ("Chardonnay",)),
        ("bitte keinen Chardonnay mit Holz", "de", ("Chardonnay",)),
        ("un chardonnay pas boisé", "fr", ("Chardonnay",)),
        ("pas de chardonnay boisé", "fr", ("Chardonnay",)),
        ("nada de chardonnay con madera", "es", ("Chardonnay",)),
        ("geen houtige chardonnay", "nl", ("Chardonnay",)),
        (
            "J'aime le riesling, mais pas de chardonnay boisé",
            "fr",
            ("Riesling",),
        ),
    ],
)
def test_an_excluded_taste_does_not_exclude_the_grape_that_it_describes(
    text: str, language: str, grapes: tuple[str, ...]
) -> None:
    request = read_request(text, language)
    assert request.values("grapes") == grapes
    assert request.values("without_grapes") == ()
    assert request.values("text") == ()
    assert request.values("without_text") == ("oaky",)


@pytest.mark.parametrize(
    ("language", "text", "low", "below"),
    [
        ("en", "a red under 20", None, 20),
        ("en", "over 10 but under 20 euros", 10, 20),
        ("en", "under 100 euros in all, for 5 bottles", None, 20),
        ("en", "about 20 euros, but under 25", 16, 25),
        ("de", "ein Roter unter einem Zwanziger", None, 20),
        ("de", "zwischen 10 und unter 20 Euro", 10, 20),
        ("fr", "un rouge à moins d'une vingtaine d'euros", None, 20),
        ("it", "sotto i 20 euro", None, 20),
        ("es", "más barato que 20 euros", None, 20),
        ("pt", "abaixo dos 20 euros", None, 20),
        ("nl", "onder de 20 euro", None, 20),
    ],
)
def test_a_price_said_with_under_excludes_its_amount(
    language: str, text: str, low: float | None, below: float
) -> None:
    filters = read_request(text, language).filters
    assert (filters.get("min_price"), filters["below"]) == (low, below)
    assert "max_price" not in filters


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "not below 20 euros"),
        ("de", "nicht unter 20 Euro"),
        ("fr", "rien en dessous de 20 euros"),
        ("it", "non meno di 20 euro"),
        ("es", "nada por debajo de 20 euros"),
        ("pt", "não menos de 20 euros"),
        ("nl", "niet onder de 20 euro"),
    ],
)
def test_not_under_an_amount_is_a_minimum(language: str, text: str) -> None:
    filters = read_request(text, language).filters
    assert filters == {"min_price": 20, "currency": "EUR"}


def test_a_vintage_before_a_price_is_no_range() -> None:
    request = read_request("trois bouteilles de Chianti 2021 à 18 euros", "fr")
    assert request.filters["max_price"] == 18
    assert "min_price" not in request.filters


def test_nothing_over_an_amount_is_a_maximum_and_a_negation() -> None:
    request = read_request("nothing over 20 euros or Merlot")
    assert (request.filters.get("max_price"), request.filters.get("min_price")) == (
        20,
        None,
    )
    assert request.values("without_grapes") == ("Merlot",)


@pytest.mark.parametrize(
    ("text", "language", "offer"),
    [
        ("Was kostet der Chablis im Glas?", "de", "glass"),
        ("a red by the glass under 10 euros", "en", "glass"),
        ("une demi-bouteille de Sauternes", "fr", "half"),
        ("una magnum di Barolo", "it", "magnum"),
    ],
)
def test_another_offer_than_a_bottle_is_read(
    text: str, language: str, offer: str
) -> None:
    assert read_request(text, language).filters["offer"] == offer


def test_an_appellation_in_small_letters_is_read_beside_a_dish() -> None:
    request = read_request("un coteaux du layon pour le foie gras", "fr")
    assert request.values("regions") == ("Coteaux du Layon",)
    assert request.dishes


def test_one_of_the_three_is_no_price() -> None:
    request = read_request("lequel des trois est le plus léger ?", "fr")
    assert "min_price" not in request.filters


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("a rosé for a summer lunch", "en"),
        ("a red for a winter evening", "en"),
        ("ein Rotwein für einen Winterabend", "de"),
        ("un rosé pour une journée d'été", "fr"),
    ],
)
def test_a_kind_of_wine_for_an_occasion_is_no_name(text: str, language: str) -> None:
    assert read_asked_name(text, language) is None
    assert read_asked_name("Cheval Blanc for my birthday", "en") is not None


@pytest.mark.parametrize(
    ("language", "text", "price_of_a_bottle"),
    [
        ("en", "six bottles, 120 euros in all", 20),
        ("fr", "un rouge pour 12 personnes, 120 € en tout", 20),
        ("de", "Rotwein für 8 Leute, insgesamt höchstens 100 Euro", 25),
        ("nl", "rood voor 10 mensen, 150 euro in totaal", 30),
        ("it", "rosso per otto persone, 80 euro in tutto", 20),
        ("es", "tinto, 100 euros en total para 5 botellas", 20),
        ("pt", "tinto para 6 pessoas, 90 euros ao todo", 30),
        ("en", "a red for the party, 120 euros in all", 120),
        ("en", "6 bottles in all, 20 euros each", 20),
    ],
)
def test_a_price_of_all_bottles_is_shared_among_them(
    language: str, text: str, price_of_a_bottle: float
) -> None:
    filters = read_request(text, language).filters
    assert filters["max_price"] == price_of_a_bottle
    assert "min_price" not in filters


@pytest.mark.parametrize("text", ["5000円以下の赤ワイン", "赤ワイン 5000円"])
def test_a_price_in_yen_is_read(text: str) -> None:
    filters = read_request(text, "ja").filters
    assert (filters["max_price"], filters["currency"]) == (5000, "JPY")
