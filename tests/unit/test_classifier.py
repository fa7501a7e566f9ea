"""Classifiers: a linear model over the parts of words, and the one that care has."""

import json
import math
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.care import CARE_CLASSIFIER, CONCERNS, care_of
from agent.classifier import BUCKETS, Classifier, classifier, features, written


def test_a_classifier_reads_as_it_was_written(tmp_path: Path) -> None:
    weights = array("b", bytes(2 * BUCKETS))
    for bucket in features("pinot noir"):
        weights[bucket * 2 + 1] = 100
    model = Classifier(("other", "wine"), (0.0, 0.0), 0.05, weights)
    (tmp_path / "some.bin").write_bytes(written(model))
    read = classifier(tmp_path / "some.bin")
    assert read == model
    assert read.likelihoods("Pinot  NOIR!")["wine"] > 0.99
    assert read.likelihoods("")["wine"] == 0.5


def test_a_file_that_was_cut_off_is_told(tmp_path: Path) -> None:
    model = Classifier(("one", "other"), (0.0, 0.0), 1.0, array("b", bytes(BUCKETS)))
    (tmp_path / "cut.bin").write_bytes(written(model))
    with pytest.raises(ValueError, match=r"cut\.bin does not hold a weight for each"):
        classifier(tmp_path / "cut.bin")


@given(st.text(max_size=3000))
def test_likelihoods_are_shares_of_one_whatever_is_said(text: str) -> None:
    likely = classifier(CARE_CLASSIFIER).likelihoods(text).values()
    assert all(0 <= each <= 1 for each in likely)
    assert math.isclose(sum(likely), 1)


def test_each_label_of_care_is_a_concern() -> None:
    assert {*classifier(CARE_CLASSIFIER).labels} - {"none"} <= {*CONCERNS}


def test_somebody_who_says_goodbye_is_heard_without_a_phrase_of_any_list() -> None:
    rows = (Path(__file__).parent.parent / "evals" / "outside" / "care_more.jsonl").read_text()
    cases = [json.loads(line) for line in rows.splitlines()]
    crises = [each["text"] for each in cases if each["label"] == "crisis"]
    heard = [text for text in crises if care_of(text).is_crisis]
    assert len(heard) / len(crises) > 0.9
