"""Classifiers: a linear model over what stands in a text, and those that care has."""

import math
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.care import (
    CARE_CLASSIFIER,
    CONCERNS,
    FULL_AGE,
    LANGUAGE_CLASSIFIER,
    WHOSE_CLASSIFIER,
    Message,
)
from agent.classifier import Classifier, Meanings, classifier, features, written

BUCKETS = 1 << 10


def test_a_classifier_reads_as_it_was_written(tmp_path: Path) -> None:
    weights = array("b", bytes(2 * BUCKETS))
    for feature in features("pinot noir"):
        weights[feature % BUCKETS * 2 + 1] = 100
    model = Classifier(("other", "wine"), (0.0, 0.0), 0.05, weights)
    (tmp_path / "some.bin").write_bytes(written(model))
    read = classifier(tmp_path / "some.bin")
    assert read == model
    assert read.likelihoods("Pinot  NOIR!")["wine"] > 0.99
    assert read.likelihoods("")["wine"] == 0.5


def test_a_file_that_was_cut_off_is_told(tmp_path: Path) -> None:
    model = Classifier(("one", "other"), (0.0, 0.0), 1.0, array("b", bytes(BUCKETS)))
    (tmp_path / "cut.bin").write_bytes(written(model)[:-4])
    with pytest.raises(ValueError, match=r"cut\.bin does not hold its weights whole"):
        classifier(tmp_path / "cut.bin")


def test_words_mean_something_whole_or_by_their_ends() -> None:
    meanings = Meanings({"medicine": "pill antibio* *cillin", "gone": "passed_away"})
    known = [word for word in ("pill", "pills", "antibiotico", "ampicillin") if meanings.of(word)]
    assert known == ["pill", "antibiotico", "ampicillin"]
    assert meanings.of("passed away") == {"gone"}


@given(st.text(max_size=3000))
def test_likelihoods_are_shares_of_one_whatever_is_said(text: str) -> None:
    for found in Message(text).windows(FULL_AGE):
        likely = classifier(CARE_CLASSIFIER).likelihoods_of(found).values()
        assert all(0 <= each <= 1 for each in likely)
        assert math.isclose(sum(likely), 1)


def test_each_label_of_care_is_a_concern() -> None:
    assert classifier(CARE_CLASSIFIER).labels == ("none", *CONCERNS)


def test_what_care_reads_is_small() -> None:
    files = (CARE_CLASSIFIER, WHOSE_CLASSIFIER, LANGUAGE_CLASSIFIER)
    assert sum(file.stat().st_size for file in files) <= 600_000
