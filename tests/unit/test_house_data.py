"""The data of the house sommelier: every language has every key, every value is the catalogue's."""

from typing import get_args

import pytest

from agent.classifier import classifier
from agent.house_sommelier import data
from agent.house_sommelier.acts import ACT_CLASSIFIER, SPEECH_CLASSIFIER
from agent.house_sommelier.topics import topic_model
from agent.house_sommelier.wines import ListedWine
from agent.house_sommelier.wording import foods_in_words
from agent.sommelier.wine import Allergen, Body, Food, Level, Style, Sweetness
from agent.text import LANGUAGES, Language

VALUES = {
    "styles": Style,
    "sweetness": Sweetness,
    "bodies": Body,
    "tannins": Level,
    "acidities": Level,
    "without_allergens": Allergen,
    "allergen": Allergen,
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_sentence_with_the_same_gaps(language: Language) -> None:
    english, spoken = data.speech()["en"], data.speech()[language]
    assert spoken.keys() == english.keys()
    for key, sentence in spoken.items():
        if isinstance(sentence, dict):
            assert sentence.keys() == english[key].keys()
        else:
            assert gaps(sentence) <= gaps(english[key]) | {"are"}


def gaps(sentence: str) -> set[str]:
    return {part.partition("}")[0] for part in sentence.split("{")[1:]}


def test_every_topic_is_told_in_every_language_and_can_be_learnt() -> None:
    told = {language: data.topics(language) for language in LANGUAGES}
    assert {*topic_model().labels} == {*told["en"]}
    for language, topics in told.items():
        assert topics.keys() == told["en"].keys(), language
        for name, topic in topics.items():
            assert 15 <= len(topic.answer.split()) <= 85, (language, name)
            assert topic.question, (language, name)
            assert not {*"[]*<>"} & {*topic.answer}, (language, name)
    assert data.load("articles").keys() <= told["en"].keys()


@pytest.mark.parametrize(
    ("name", "of"), [("questions", "word"), ("guests", "word"), ("described", "taste")]
)
def test_every_word_is_told_in_every_language(name: str, of: str) -> None:
    for table in data.load(name)[of]:
        assert set(LANGUAGES) <= table.keys(), table


@pytest.mark.parametrize("name", ["max", "min", "about", "people", "hours", "sober", "total"])
def test_every_counted_word_is_told_in_every_language(name: str) -> None:
    (table,) = (table for table in data.load("numbers")["word"] if name in table)
    assert table.keys() >= set(LANGUAGES)


def test_every_value_is_one_of_the_catalogue() -> None:
    for entry in (*data.entries(), *data.described()):
        for field, values in entry.meanings:
            assert entry.phrases
            assert values
            assert field not in VALUES or set(values) <= set(VALUES[field])


def test_every_file_is_as_its_model_says() -> None:
    assert data.pairings()
    notes = {note for profile in data.profiles().values() for note in profile.notes}
    assert notes <= data.aromas().keys()
    assert all(dish.pairing in data.pairings() for dish in data.dishes())
    likes = {like for profile in data.profiles().values() for like in profile.like}
    assert likes <= data.profiles().keys()


def test_every_wine_is_served_and_kept_somehow() -> None:
    for lines in data.load("serving").values():
        assert {line["say"] for line in lines} <= data.speech()["en"].keys()
        assert lines[-1].keys() == {"say"}
        told = {name for line in lines for name in line} - {"say", "called"}
        assert told <= ListedWine.model_fields.keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_food_has_a_name(language: Language) -> None:
    named = foods_in_words(map(str, Food), language)
    assert not [
        name for name in named if "_" in name or (name in ("oily fish", "") and language != "en")
    ]


def test_every_act_is_told_by_a_kind_or_by_care() -> None:
    told = {act for kind in data.kinds().values() for act in (kind.shown, kind.alone)}
    by_care = {"care", "crisis", "dependence", "grapes", "drunk", "histamine", "sulphites"}
    by_state = {"fining", "which", "listening"}
    assert told | by_care | by_state == set(get_args(data.Act))


def test_the_classifier_tells_every_kind_and_no_other() -> None:
    assert {*classifier(ACT_CLASSIFIER).labels} == {*data.kinds()}
    assert {*classifier(SPEECH_CLASSIFIER).labels} == {*LANGUAGES}
