"""Each folder of `languages/`: what it says of a language is valid, and is used."""

import re
from collections.abc import Iterator

import pytest

from agent.documents.shop import asks_for_staff, find_shop_topics
from agent.i18n import languages, translate_into, use_language
from agent.language import split_sentences
from agent.languages import ENGLISH, LANGUAGES_FOLDER, Language, load_languages
from agent.memory.taste import describe_fact
from agent.numerals import find_numbers
from agent.places.queries import find_category, load_categories
from agent.query_reading.language_words import load_language_words
from agent.query_reading.names import load_display_names
from agent.query_reading.phrases import detect_language
from agent.query_reading.request import read_request
from agent.query_reading.tables import ANY_LANGUAGE, load_dishes
from agent.sommelier.filters import format_taste
from agent.sommelier.vocabulary import (
    Body,
    Colour,
    Currency,
    Food,
    Sweetness,
    currencies_by_word,
)
from agent.text import fold
from agent.turn import Fact
from bot.look_ups import parse_find

FILES = {
    "language.toml",
    "messages.po",
    "words.toml",
    "aromas.toml",
    "safety.toml",
    "help.toml",
}
REGIONAL_FILES = {"messages_BR.po"}
"""The files that a folder may have; `CONTRIBUTING.md` says what they are for."""


@pytest.fixture(params=sorted(load_languages()))
def language(request: pytest.FixtureRequest) -> Language:
    return load_languages()[request.param]


def test_a_folder_has_no_file_that_nobody_reads() -> None:
    files = {
        file.name for folder in LANGUAGES_FOLDER.glob("*/") for file in folder.iterdir()
    }
    assert files == FILES | REGIONAL_FILES


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


def test_every_phrase_asks_the_shop(language: Language) -> None:
    for topic, phrases in language.shop_questions.items():
        for phrase in phrases.split(","):
            question = f"{phrase.strip().rstrip('*').capitalize()}?"
            assert find_shop_topics([question]) >= {
                "contact" if topic == "staff" else topic
            }
            assert asks_for_staff(question) >= (topic == "staff")


def test_every_name_of_a_kind_of_place_is_understood(language: Language) -> None:
    assert language.places.keys() <= load_categories().keys()
    for category, name in _names_of_places(language):
        assert find_category(name) == category, name


@pytest.mark.parametrize("code", sorted(load_language_words()))
def test_the_example_of_a_language_is_recognised_and_read(code: str) -> None:
    message = load_language_words()[code].example
    request = read_request(message)
    assert detect_language(message) == request.language == code
    assert request.values("styles") == ("red",)
    assert request.values("without_grapes") == ("Merlot",)
    assert request.filters["below"] == 20
    assert [dish.foods for dish in request.dishes.values()] == [("lamb",)]


def test_the_topics_of_a_language_are_those_of_english() -> None:
    languages = load_language_words()
    topics = {topic for words in languages.values() for topic in words.topics}
    assert topics == languages[ENGLISH].topics.keys() != set()


def _names_of_places(language: Language) -> Iterator[tuple[str, str]]:
    for category, names in language.places.items():
        for name in names.split(","):
            yield category, name.strip()
    for names_in_country in language.country_places.values():
        yield from names_in_country.items()


COMPLETE_LANGUAGES = [
    code
    for code in languages()
    if code != ENGLISH and not load_languages()[code].has_partial_catalogue
]
"""The languages, beside English, in which everything is said; others are mixed with English."""
TASTES = (
    "smoky",
    "mineral",
    "earthy",
    "floral",
    "peppery",
    "juicy",
    "unsulphured",
    "organic",
)


@pytest.mark.parametrize("code", COMPLETE_LANGUAGES)
def test_values_shown_of_a_wine_have_a_name_in_each_language(code: str) -> None:
    names = load_display_names()
    named_foods = set()
    for index, dish in enumerate(load_dishes()):
        if (str(index),) in names["dish", code]:
            named_foods.add(dish.foods)
    assert named_foods >= {(food,) for food in Food}
    for taste in TASTES:
        assert names["text", code].get((taste,)), taste


NAMED_FIELDS = ("styles", "colour", "regions", "countries", "grapes")


@pytest.mark.parametrize("code", languages())
def test_names_that_are_shown_are_understood_in_messages(code: str) -> None:
    for field in NAMED_FIELDS:
        for values, name in load_display_names().get((field, code), {}).items():
            request = read_request(name, code)
            read = request.values("styles" if field == "colour" else field)
            assert set(read) >= set(values), name


@pytest.mark.parametrize("code", [ENGLISH, *COMPLETE_LANGUAGES])
def test_every_taste_has_a_name_in_each_language(code: str) -> None:
    names = load_display_names()
    of_any_language = names["text", ANY_LANGUAGE].keys()
    in_english = names["text", ENGLISH].keys()
    proper_names = of_any_language - in_english
    for values in in_english | names["text", "de"].keys():
        assert values in names["text", code] or values in proper_names, values


@pytest.mark.parametrize("code", COMPLETE_LANGUAGES)
def test_a_card_describes_a_wine_in_the_language(code: str) -> None:
    scales = {"sweetness": Sweetness, "bodies": Body, "colour": Colour}
    for field, values in scales.items():
        named = {
            value
            for combination in load_display_names()[field, code]
            for value in combination
        }
        assert named >= set(map(str, values)) - {"none"}, field


SHOWN = {
    "de": ("Rotwein", "Ei", "Burgund", "England"),
    "fr": ("vin rouge", "œuf", "Bourgogne", "Angleterre"),
    "es": ("vino tinto", "huevo", "Borgoña", "Inglaterra"),
    "it": ("vino rosso", "uova", "Borgogna", "Inghilterra"),
    "nl": ("rode wijn", "ei", "Bourgogne", "Engeland"),
    "pt": ("tinto", "ovo", "Borgonha", "Inglaterra"),
}


@pytest.mark.parametrize(("code", "shown"), SHOWN.items())
def test_a_taste_is_told_in_the_words_of_the_language(
    code: str, shown: tuple[str, ...]
) -> None:
    hated = [
        {"styles": ("red",)},
        {"regions": ("Burgundy",)},
        {"countries": ("England",)},
    ]
    facts = [Fact("hate", format_taste(taste), "red") for taste in hated]
    facts.insert(1, Fact("allergy", "egg", "egg"))
    with use_language(code):
        for fact, name in zip(facts, shown, strict=True):
            assert name in describe_fact(fact), fact


@pytest.mark.parametrize("code", COMPLETE_LANGUAGES)
def test_find_knows_the_kinds_of_places_that_it_promises(code: str) -> None:
    promised = translate_into(code, "find_usage").rpartition(". ")[2].rstrip(".")
    and_words = "|".join(load_language_words()[code].grammar.and_words)
    kinds = re.split(rf", | (?:{and_words}) ", promised)
    assert len(kinds) == len(load_categories())
    for kind in kinds:
        words = kind.split()
        endings = (" ".join(words[start:]) for start in range(len(words)))
        assert any(parse_find(f"{ending} Lyon")[0] for ending in endings), kind
