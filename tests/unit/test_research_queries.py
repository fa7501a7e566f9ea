"""Distinct, local, and read from whatever a model wrote."""

import pytest

from agent.places.distinct import alike, duplicates, mentions
from agent.places.queries import (
    categories,
    category_named,
    invalid,
    language_of_place,
    languages,
    phrases,
    place_named,
    queries_by_rules,
    queries_of_lines,
    unmarked,
)

PLACES = (
    "Lyon",
    "San Sebastián, Spain",
    "Napa Valley",
    "東京",
    "43.26, -2.93",
    "Lyon, France",
    "Wien 1010",
    "Łódź, Polska",
    "Washington, D.C.",
    "Panama City, Panama",
    "Ay",
)
SAME = [
    ("wine shop Lyon", "Wine Shop LYON"),
    ("wine shop Lyon", "wine shops Lyon"),
    ("wine shop Lyon", "Lyon wine shop"),
    ("cave à vin Lyon", "cave a vin Lyon"),
    ("best wine shop in Lyon", "wine shop Lyon"),
    ("winery near Lyon", "Lyon wineries"),
    ("sommelier course Lyon", "sommelier courses in Lyon"),
    ("châteaux à visiter Lyon", "chateau a visiter Lyon"),
    ("natural organic wine shop Lyon", "organic natural wine shop open Lyon"),
    ("Lyon", "in Lyon"),
    ("wine-bar Lyon", "winebar Lyon"),
    ("Weinhandlung Lyon", "Weinhandlungen in Lyon"),
    ("Weingut Lyon", "Weingüter Lyon"),
    ("Weingut Lyon", "Weingueter Lyon"),
    ("Weinprobe Lyon", "Weinproben Lyon"),
    ("Weinladen Lyon", "Weinläden Lyon"),
    ("enoteca Lyon", "enoteche Lyon"),
    ("ristorante vino Lyon", "ristoranti vini Lyon"),
    ("degustazione Lyon", "degustazioni Lyon"),
    ("negozio di vino Lyon", "negozi di vini Lyon"),
    ("bar de vino Lyon", "bares de vinos Lyon"),
    ("degustación Lyon", "degustaciones Lyon"),
    ("degustação Lyon", "degustações Lyon"),
    ("lieu de dégustation Lyon", "lieux de dégustation Lyon"),
    ("bar régional Lyon", "bars régionaux Lyon"),
    ("wijnproeverij Lyon", "wijnproeverijen Lyon"),
    ("vinbar Lyon", "vinbarer Lyon"),
    ("винный бар Lyon", "винные бары Lyon"),
]
SAME_ELSEWHERE = [
    ("東京ワインバー", "東京 ワインバー", "東京"),
    ("東京のワインバー", "ワインバー 東京", "東京"),
    ("東京 ﾜｲﾝﾊﾞｰ", "東京 ワインバー", "東京"),
    ("上海 红酒 吧", "上海红酒吧", "上海"),
    ("와인 바 서울", "서울 와인바", "서울"),
    ("Weinbar Köln", "Weinbar Koeln", "Köln"),
    ("vinbar København", "vinbar Kobenhavn", "København"),
    ("Weinbar Wien", "Wiener Weinbar", "Wien"),
]
DISTINCT = [
    ("wine shop Lyon", "natural wine shop Lyon"),
    ("natural wine shop Lyon", "organic wine shop Lyon"),
    ("wine shop Lyon", "wine merchant Lyon"),
    ("wine bar Lyon", "wine shop Lyon"),
    ("wine bar Lyon Croix-Rousse", "wine bar Lyon Bellecour"),
    ("WSET level 2 Lyon", "WSET level 3 Lyon"),
    ("bar à vin Lyon", "wine bar Lyon"),
    ("Weinbar Lyon", "Weinhandlung Lyon"),
    ("東京 ワインバー", "東京 酒屋"),
    ("champagne bar Lyon", "wine bar Lyon"),
    ("Weinbar Lyon", "Weinbau Lyon"),
    ("wine shop Lyon", "winery shop Lyon"),
    ("東京ワインバー", "東京ワインショップ"),
    ("東京红酒吧", "東京红酒店"),
    ("ร้านไวน์ Lyon", "ไวน์บาร์ Lyon"),
    ("बार वाइन Lyon", "दुकान वाइन Lyon"),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_what_differs_in_nothing_that_matters_is_a_duplicate(one: str, two: str) -> None:
    assert duplicates([one, two], "Lyon") == [(one, two)]


@pytest.mark.parametrize(("one", "two", "place"), SAME_ELSEWHERE)
def test_scripts_without_spaces_and_other_spellings_of_the_place(
    one: str, two: str, place: str
) -> None:
    assert duplicates([one, two], place) == [(one, two)]


@pytest.mark.parametrize(("one", "two"), DISTINCT)
def test_what_searches_for_something_else_is_distinct(one: str, two: str) -> None:
    assert duplicates([one, two], "東京" if "東京" in one else "Lyon") == []


def test_a_long_place_makes_no_duplicates() -> None:
    place = "Saint-Germain-en-Laye, Île-de-France"
    assert duplicates([f"wine shop {place}", f"wine bar {place}"], place) == []


def test_lists_of_words_are_compared_by_their_share() -> None:
    assert alike([*"abcdefg"], [*"abcdefghij"])
    assert not alike([*"abcdefg"], [*"abcdefghijk"])
    assert alike([], [])


@pytest.mark.parametrize(
    ("query", "place", "local"),
    [
        ("wine bar Bilbao", "Bilbao, Spain", True),
        ("wine bar Casco Viejo", "Casco Viejo, Bilbao", True),
        ("wine bar bilbáo", "BILBAO", True),
        ("wine bar near me", "Bilbao", False),
        ("wine bar San Francisco", "San Sebastián", False),
        ("wine bar today", "Ay", False),
        ("東京ワインバー", "東京", True),
        ("wine bar in the old town", "43.26, -2.93", True),
        ("cave à vin lyon", "Lyon, France", True),
        ("cave à vin Lyon Croix-Rousse France", "Lyon, France", True),
        ("wine shop France", "Lyon, France", False),
        ("natural wine France", "Lyon France", False),
        ("wine shop Frankreich", "Lyon, Frankreich", False),
        ("wine shop United States of America", "Boise, United States of America", False),
        ("wine shop New Zealand", "Nelson, New Zealand", False),
        ("wine shop Nelson", "Nelson, New Zealand", True),
        ("wine shop Oregon", "Portland, Oregon", False),
        ("wine shop Portland", "Portland, Oregon", True),
        ("Weinbar Berlin", "Kreuzberg, Berlin, Germany", True),
        ("Weinbar Germany", "Kreuzberg, Berlin, Germany", False),
        ("Weinhandlung Köln", "Germany, Köln", True),
        ("Weinbar Köln Ehrenfeld", "Köln", True),
        ("Weinbar Koln", "Köln", True),
        ("Weinbar Koeln", "Köln", True),
        ("Weinbar Köln", "Koeln", True),
        ("wine bar Cologne", "Köln", False),
        ("wine bar Cologne (Köln)", "Köln", True),
        ("bar de vinhos São Paulo", "São Paulo, Brazil", True),
        ("wine bar Sao Paulo Pinheiros", "São Paulo, Brazil", True),
        ("wine bar Brazil", "São Paulo, Brazil", False),
        ("wine bar São Luís", "São Paulo, Brazil", False),
        ("wine bar nearby", "45.76, 4.83", True),
        ("wine bar nearby", "45.76403, -4.83565", True),
        ("wine shop near 45.76 4.83", "45.76, 4.83", True),
        ("Weinbar Wien", "Wien 1010", True),
        ("Weinbar 1010 Innere Stadt", "Wien 1010", True),
        ("Weinbar Innere Stadt", "Wien 1010", False),
        ("wine bar Vienna", "Wien 1010", False),
        ("vinbar København", "Kobenhavn", True),
        ("vinbar Kobenhavn", "København, Danmark", True),
        ("vinbar Danmark", "København, Danmark", False),
        ("wino Lodz", "Łódź, Polska", True),
        ("şarap İzmir", "Izmir, Türkiye", True),
        ("κρασί Αθήνα", "Αθήνα, Ελλάδα", True),
        ("κρασί Ελλάδα", "Αθήνα, Ελλάδα", False),
        ("wine shop France", "France", True),
        ("wine shop Luxembourg", "Luxembourg, Luxembourg", True),
        ("wine shop Mexico City", "Mexico City, Mexico", True),
        ("wine shop New York", "New York, USA", True),
        ("wine shop USA", "New York, USA", False),
        ("wine bar St Johns", "St. John's", True),
        ("wine bar Paris", "Paris, Texas", True),
        ("wine bar Texas", "Paris, Texas", False),
        ("Weinbar Oder", "Frankfurt (Oder)", True),
        ("Kölner Weinhandlung", "Köln", True),
        ("винный бар в Москве", "Москва", True),
        ("winiarnia w Warszawie", "Warszawa", True),
        ("渋谷 ワインバー", "東京都渋谷区", True),
        ("大阪 ワインバー", "東京都渋谷区", False),
        ("दिल्ली वाइन", "दिल्ली", True),
        ("मुंबई वाइन", "दिल्ली", False),
        ("port tasting", "Porto", False),
    ],
)
def test_a_query_names_its_place(query: str, place: str, local: bool) -> None:
    assert mentions(query, place) is local


@pytest.mark.parametrize("place", ["Lyon, France", "São Paulo, Brazil", "Köln, Deutschland"])
def test_all_queries_that_only_name_the_country_are_told_at_once(place: str) -> None:
    town, country = place.split(", ")
    queries = [*queries_by_rules("WINE_BAR", town).queries]
    assert invalid(queries, place) is None
    for position in (1, 8):
        queries[position] = queries[position].replace(town, country)
    problem = invalid(queries, place)
    assert problem is not None
    assert f"these do not name {place}, or name its country only" in problem
    assert f"query 2: {queries[1]}; query 9: {queries[8]}" in problem


@pytest.mark.parametrize("name", categories())
def test_every_category_has_ten_distinct_queries_of_its_own(name: str) -> None:
    for place in PLACES:
        made = queries_by_rules(name, place)
        assert len(made.queries) == 10
        assert made.by_rules
        assert invalid(made.queries, place) is None


@pytest.mark.parametrize("language", languages())
def test_every_language_has_ten_distinct_queries_for_every_category(language: str) -> None:
    known = languages()[language]
    town = " ".join(known.names[-1])
    for name in categories():
        queries = queries_by_rules(name, town).queries
        assert queries == tuple(f"{phrase} {town}" for phrase in phrases(language, name))
        assert invalid(queries, town) is None
        assert {category_named(each) for each in known.kinds[name]} == {name}


@pytest.mark.parametrize(
    ("place", "language"),
    [
        *(("Köln", "de"), ("Cologne, Germany", "de"), ("Zürich, Switzerland", "de")),
        *(("Athens", "el"), ("Athen", "el"), ("Παγκράτι", "el"), ("Athens, Georgia", "en")),
        *(("Tokyo", "ja"), ("東京都渋谷区", "ja"), ("さいたま", "ja"), ("Kadıköy, Istanbul", "tr")),
        *(
            ("Paris, Texas", "en"),
            ("Montréal, Canada", "fr"),
            ("Genève", "fr"),
            ("Leeds, UK", "en"),
        ),
        *(("Antwerp, Belgium", "nl"), ("Brussels, Belgium", "fr"), ("Tbilisi, Georgia", "ka")),
        *(("Тверь", "ru"), ("Чернівці", "uk"), ("上海市", "zh"), ("수원", "ko"), ("Leeds", "")),
        *(("Ciudad de México", "es"), ("Vila Nova de Gaia", "pt"), ("43.26, -2.93", "")),
    ],
)
def test_a_place_tells_its_language(place: str, language: str) -> None:
    assert language_of_place(place) == language


def test_thirty_countries_are_looked_for_in_their_language() -> None:
    spoken = """
    Germany Austria Liechtenstein France Monaco Spain Mexico Argentina Chile Uruguay Peru
    Colombia Bolivia Ecuador Paraguay Italy Portugal Brazil Angola Netherlands Greece Turkey Japan
    China Taiwan Russia Belarus Ukraine Poland Czechia Slovakia Hungary Romania Moldova Bulgaria
    Croatia Montenegro Serbia Slovenia Denmark Norway Sweden Finland Israel
    """.split()
    assert len(spoken) == 44
    for country in spoken:
        assert language_of_place(country) not in {"", "en"}, country


@pytest.mark.parametrize(
    ("said", "category"),
    [
        *(("οινοποιείο", "WINERY"), ("κάβα", "WINE_SHOP"), ("γευσιγνωσία", "TASTING")),
        *(("şarap barı", "WINE_BAR"), ("şaraphane", "WINERY"), ("ワインバー", "WINE_BAR")),
        *(("酒屋", "WINE_SHOP"), ("酒庄", "WINERY"), ("品酒会", "TASTING"), ("红酒吧", "WINE_BAR")),
        *(("винный бар", "WINE_BAR"), ("винотека", "WINE_SHOP"), ("Weingut", "WINERY")),
        *(("wijnbar", "WINE_BAR"), ("cave à vin", "WINE_SHOP"), ("cantina", "WINERY")),
        *(("cata de vinos", "TASTING"), ("курсы сомелье", "SOMMELIER_COURSE")),
    ],
)
def test_categories_are_asked_for_in_many_languages(said: str, category: str) -> None:
    assert category_named(said) == category


def test_the_six_categories() -> None:
    assert list(categories()) == [
        "WINE_SHOP",
        "WINE_BAR",
        "WINERY",
        "TASTING",
        "RESTAURANT",
        "SOMMELIER_COURSE",
    ]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("wine shop", "WINE_SHOP"),
        ("Wine-Bars", "WINE_BAR"),
        (" wineries ", "WINERY"),
        ("SOMMELIER_COURSE", "SOMMELIER_COURSE"),
        ("Weinbar", "WINE_BAR"),
        ("Weinhandlungen", "WINE_SHOP"),
        ("caves a vins", "WINE_SHOP"),
        ("degustazioni", "TASTING"),
        ("wines by the glass", "WINE_BAR"),
    ],
)
def test_a_category_as_people_write_it(written: str, name: str) -> None:
    assert category_named(written) == name


def test_an_unknown_category_is_named_with_what_there_is() -> None:
    with pytest.raises(ValueError, match="'casino'; use WINE_SHOP, WINE_BAR, WINERY"):
        category_named("casino")


TWO = ("wine bar Lyon", "vinothèque Lyon")


@pytest.mark.parametrize(
    "mark",
    ["{}. ", "({}) ", "[{}] ", "#{} ", "{} - ", "{}: ", "Query {}: ", "Q{}. ", "{}、", "**{}.** "],
)
def test_a_number_is_no_part_of_a_query(mark: str) -> None:
    lines = [f"{mark.format(number)}{query}" for number, query in enumerate(TWO, 1)]
    assert queries_of_lines("\n".join(lines)) == unmarked(lines) == [*TWO]


@pytest.mark.parametrize("mark", ["- ", "* ", "+ ", "• ", "‣ ", "● ", "— "])
def test_a_bullet_is_no_part_of_a_query(mark: str) -> None:
    assert queries_of_lines("\n".join(f"{mark}**{query}**" for query in TWO)) == [*TWO]


def test_what_looks_like_a_number_before_some_is_theirs() -> None:
    districts = ["2. Bezirk Wien Weinbar", "Weinhandlung Wien", "10 best wine bars Wien"]
    assert unmarked(districts) == districts


def test_what_cannot_be_seen_is_no_part_of_a_query() -> None:
    assert unmarked(["wine\u200b bar\u202e Lyon\x07\u2028now"]) == ["wine bar Lyon now"]


@pytest.mark.parametrize("place", ["", " \n ", "???", "\u202e\u200b", "🍷"])
def test_a_place_without_a_name(place: str) -> None:
    with pytest.raises(ValueError, match="the place is empty"):
        place_named(place)


def test_a_place_is_named_on_one_line_and_never_cut() -> None:
    assert place_named(" Frankfurt\n(Oder)\x1b ") == "Frankfurt (Oder)"
    assert place_named("x" * 120) == "x" * 120
    with pytest.raises(ValueError, match="more than 120 characters"):
        place_named("x" * 121)


LISTS = {
    "heading": "## Queries\nwine bar Lyon\nvinothèque Lyon\nEnjoy!",
    "backticks": "`wine bar Lyon`\n`vinothèque Lyon`",
    "numbered": "Here are the queries:\n1. wine bar Lyon\n2) vinothèque Lyon\nEnjoy!",
    "bulleted": "- wine bar Lyon\n• vinothèque Lyon",
    "fenced": "```\nwine bar Lyon\nvinothèque Lyon\n```",
    "quoted": '"wine bar Lyon",\n“vinothèque Lyon”',
    "broken JSON": '[\n  "wine bar Lyon",\n  "vinothèque Lyon"\n',
    "plain lines": "wine bar Lyon\n\nvinothèque Lyon\n",
}


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS.keys())
def test_lines_are_read_where_there_is_no_json(text: str) -> None:
    assert queries_of_lines(text) == ["wine bar Lyon", "vinothèque Lyon"]


@pytest.mark.parametrize("text", ["I cannot do that.", "", "Here they are:\n"])
def test_a_text_that_is_no_list_gives_none(text: str) -> None:
    assert queries_of_lines(text) is None


def test_the_text_file_has_one_query_a_line() -> None:
    text = queries_by_rules("WINERY", "Leeds").as_text
    assert text.startswith("winery Leeds\nvineyard to visit Leeds\n")
    assert text.count("\n") == 10
    assert text.endswith("\n")
