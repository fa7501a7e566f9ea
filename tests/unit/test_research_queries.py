"""Exactly ten distinct, local queries (ADR "query generator"), from whatever a model wrote."""

from itertools import product

import pytest

from agent.i18n import use_language
from agent.places.queries import (
    categories,
    category_named,
    duplicates,
    invalid,
    mentions,
    place_named,
    queries_by_rules,
    queries_of_lines,
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
def test_case_accents_plurals_order_and_fillers_make_no_other_query(
    one: str, two: str, place: str
) -> None:
    assert duplicates([one, two], place) == [(one, two)]


def test_a_query_names_its_place_and_not_only_the_country() -> None:
    assert not mentions("wine bar near me", "Bilbao")
    assert not mentions("wine shop France", "Lyon, France")
    assert mentions("wine shop France", "France")
    assert mentions("渋谷 ワインバー", "東京都渋谷区")


@pytest.mark.parametrize("name", categories())
def test_without_a_model_every_category_has_ten_queries(name: str) -> None:
    for language, place in product(("en", "de", "ja"), PLACES):
        with use_language(language):
            made = queries_by_rules(name, place)
        assert len(made.queries) == 10
        assert invalid(made.queries, place) is None


@pytest.mark.parametrize("written", ["Wine-Bars", "wines by the glass"])
def test_a_category_as_people_write_it(written: str) -> None:
    assert category_named(written) == "WINE_BAR"


@pytest.mark.parametrize("place", ["", " \n ", "???", "\u202e\u200b"])
def test_a_place_without_a_name(place: str) -> None:
    with pytest.raises(ValueError, match="name a town"):
        place_named(place)


@pytest.mark.parametrize(
    "text",
    [
        "## Queries\nwine bar Lyon\nvinothèque Lyon\nEnjoy!",
        "Here are the queries:\n1. wine bar Lyon\n2) vinothèque Lyon\nEnjoy!",
        "```\nwine bar Lyon\nvinothèque Lyon\n```",
        '[\n  "wine bar Lyon",\n  "vinothèque Lyon"\n',
    ],
)
def test_lines_are_read_where_there_is_no_json(text: str) -> None:
    assert queries_of_lines(text) == TWO
