"""Each folder of `languages/`: what it says of a language is valid, and is used."""

from collections.abc import Iterator

import pytest

from agent.language import detect_language, split_sentences
from agent.languages import LANGUAGES_FOLDER, Language, load_languages
from agent.numerals import find_numbers
from agent.places.queries import categories, find_category
from agent.query_reading.language_words import load_language_words
from agent.query_reading.request import read_request
from agent.sommelier.wine import Currency, currencies_by_word
from agent.text import fold

FILES = {"language.toml", "messages.po", "words.toml", "safety.toml", "help.toml"}
"""The files that a folder may have; `CONTRIBUTING.md` says what they are for."""


@pytest.fixture(params=sorted(load_languages()))
def language(request: pytest.FixtureRequest) -> Language:
    return load_languages()[request.param]


def test_a_folder_has_no_file_that_nobody_reads() -> None:
    files = {file.name for folder in LANGUAGES_FOLDER.glob("*/") for file in folder.iterdir()}
    assert files == FILES


def test_every_number_word_is_read(language: Language) -> None:
    for number, words in language.numerals.items():
        for word in words:
            assert find_numbers(f"{word}.") == {number}, word


def test_every_currency_word_makes_an_amount(language: Language) -> None:
    for codes, words in language.money.items():
        for word in words.split():
            assert currencies_by_word()[fold(word)] >= {*map(Currency, codes.split())}


def test_an_abbreviation_ends_no_sentence(language: Language) -> None:
    for word in language.abbreviations:
        assert len(split_sentences(f"See {word}. Barolo.")) == 1, word


def test_every_name_of_a_kind_of_place_is_understood(language: Language) -> None:
    assert language.places.keys() <= categories().keys()
    for category, name in _names_of_places(language):
        assert find_category(name) == category, name


@pytest.mark.parametrize("code", sorted(load_language_words()))
def test_the_example_of_a_language_is_recognised_and_read(code: str) -> None:
    message = load_language_words()[code].example
    request = read_request(message)
    assert detect_language(message) == request.language == code
    assert request.values("styles") == ("red",)
    assert request.values("without_grapes") == ("Merlot",)
    assert request.filters["max_price"] == 20
    assert [dish.foods for dish in request.dishes.values()] == [("lamb",)]


def _names_of_places(language: Language) -> Iterator[tuple[str, str]]:
    for category, names in language.places.items():
        for name in names.split(","):
            yield category, name.strip()
