"""Exactly ten distinct queries that name the place (ADR "query generator")."""

from contextvars import copy_context
from itertools import product

import pytest

from agent.i18n import languages, set_app_language, use_language
from agent.places.queries import (
    build_rule_based_queries,
    clean_place_name,
    find_category,
    find_duplicates,
    find_problem,
    get_category_name,
    load_categories,
    mentions_place,
    parse_lines,
)

PLACES = ("Lyon", "San Sebastián, Spain", "東京", "43.26, -2.93", "Łódź, Polska", "Ay")
TWO = ["wine bar Lyon", "vinothèque Lyon"]


@pytest.mark.parametrize(
    ("one", "two", "place"),
    [
        ("wine shop Lyon", "Lyon WINE shops", "Lyon"),
        ("best wine shop in Lyon", "wine shop Lyon", "Lyon"),
        ("東京ワインバー", "東京 ワインバー", "東京"),
        ("Weinbar Köln", "Weinbar Koeln", "Köln"),
    ],
)
def test_case_accents_plurals_order_and_fillers_are_ignored_in_duplicates(
    one: str, two: str, place: str
) -> None:
    assert find_duplicates([one, two], place) == [(one, two)]


def test_a_query_names_its_place_and_not_only_the_country() -> None:
    assert not mentions_place("wine bar near me", "Bilbao")
    assert not mentions_place("wine shop France", "Lyon, France")
    assert mentions_place("wine shop France", "France")
    assert mentions_place("渋谷 ワインバー", "東京都渋谷区")


@pytest.mark.parametrize("name", load_categories())
def test_without_a_model_every_category_has_ten_queries(name: str) -> None:
    for language, place in product(("en", *languages(), "ja"), PLACES):
        with use_language(language):
            queries = build_rule_based_queries(name, place)
        assert len(queries.texts) == 10
        assert find_problem(queries.texts, place) is None


def test_a_kind_of_place_has_the_name_of_the_country_of_the_user() -> None:
    def name_in(app_language: str) -> str:
        set_app_language(app_language)
        return get_category_name("pt", "TASTING")

    assert copy_context().run(name_in, "pt-pt") == "prova de vinhos"
    assert copy_context().run(name_in, "pt-br") == "degustação de vinhos"


def test_without_a_model_the_queries_are_in_the_language_of_the_user() -> None:
    with use_language("de"):
        queries = build_rule_based_queries("WINE_SHOP", "Graz").texts
    assert queries[:2] == ("Weinhandlung Graz", "Weinladen Graz")
    assert not any("wine" in query for query in queries)


@pytest.mark.parametrize(
    ("place", "local", "own_count"),
    [
        ("Lyon, Frankreich", "caviste", 5),
        ("Budapest, Ungarn", "wine shop", 5),
        ("Graz, Österreich", "Weinhandlung", 10),
    ],
)
def test_half_of_the_queries_are_in_the_language_of_a_foreign_place(
    place: str, local: str, own_count: int
) -> None:
    with use_language("de"):
        queries = build_rule_based_queries("WINE_SHOP", place).texts
    assert queries[0] == f"Weinhandlung {place}"
    assert find_problem(queries, place) is None
    assert sum(query.endswith(place) for query in queries) == own_count
    town, _, _ = place.partition(",")
    assert any(query.startswith(f"{local} {town}") for query in queries)


@pytest.mark.parametrize("name", ["Wine-Bars", "wines by the glass"])
def test_a_category_is_found_by_plurals_and_synonyms(name: str) -> None:
    assert find_category(name) == "WINE_BAR"


@pytest.mark.parametrize("place", ["", " \n ", "???", "\u202e\u200b"])
def test_a_place_without_letters_is_rejected(place: str) -> None:
    with pytest.raises(ValueError, match="name a town"):
        clean_place_name(place)


@pytest.mark.parametrize(
    "text",
    [
        "## Queries\nwine bar Lyon\nvinothèque Lyon\nEnjoy!",
        "Here are the queries:\n1. wine bar Lyon\n2) vinothèque Lyon\nEnjoy!",
        "```\nwine bar Lyon\nvinothèque Lyon\n```",
        '[\n  "wine bar Lyon",\n  "vinothèque Lyon"\n',
    ],
)
def test_lines_are_read_if_the_answer_is_not_json(text: str) -> None:
    assert parse_lines(text) == TWO
