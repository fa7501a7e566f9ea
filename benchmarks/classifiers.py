"""`python -m benchmarks.classifiers`: say how good the classifier of care is, or fit it."""

import argparse
import json
import math
import random
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from agent.care import CARE_CLASSIFIER, care_of_rules
from agent.classifier import BUCKETS, Classifier, features, written

EVALS: Final = Path(__file__).parent.parent / "tests" / "evals"
OUTSIDE: Final = EVALS / "outside"
CARE: Final = (
    *(EVALS / "care.jsonl", EVALS / "messages.jsonl"),
    *(OUTSIDE / "care.jsonl", OUTSIDE / "care_more.jsonl"),
)
CONVERSATIONS: Final = ("first_half", "second_half", "third", "fourth", "fourth_second_half")
CONCERNS: Final = (
    *("none", "crisis", "dependence", "under_age"),
    *("pregnancy", "medication", "driving"),
)
FOLDS: Final = 4
EPOCHS: Final = 15
RATE: Final = 0.5

Row = tuple[str, str]
Fitted = tuple[list[list[float]], list[float]]


def care_rows() -> list[Row]:
    """Read the sentences of care, and what people say in conversations where no care is due."""
    read = [each for file in CARE for each in _lines(file)]
    rows = {each["text"]: each["label"] for each in read if each["label"] in CONCERNS}
    for name in CONVERSATIONS:
        for line in _lines(OUTSIDE / f"{name}.jsonl"):
            for message in line["messages"]:
                told = care_of_rules(message)
                if not told.own | told.others:
                    rows.setdefault(message, "none")
    return list(rows.items())


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def fit(rows: Sequence[Row], labels: Sequence[str]) -> Fitted:
    """Fit weights by stochastic gradient descent (AdaGrad) on the softmax of the labels."""
    random_, count = random.Random(1), len(labels)
    weights = [[0.0] * count for _ in range(BUCKETS)]
    squares = [[1e-3] * count for _ in range(BUCKETS)]
    biases = [0.0] * count
    data = [(tuple(features(text)), labels.index(label)) for text, label in rows]
    for _ in range(EPOCHS):
        random_.shuffle(data)
        for found, label in data:
            if found:
                _step(weights, squares, biases, found, label)
    return weights, biases


def _step(
    weights: list[list[float]],
    squares: list[list[float]],
    biases: list[float],
    found: Sequence[int],
    label: int,
) -> None:
    norm = 1 / math.sqrt(len(found))
    likely = _likely((weights, biases), found)
    errors = [each - (at == label) for at, each in enumerate(likely)]
    for at, error in enumerate(errors):
        biases[at] -= 0.05 * error
    wrong = [at for at, error in enumerate(errors) if abs(error) > 0.01]
    for bucket in found:
        row, sums = weights[bucket], squares[bucket]
        for at in wrong:
            slope = errors[at] * norm
            sums[at] += slope * slope
            row[at] -= RATE * slope / math.sqrt(sums[at])


def _likely(fitted: Fitted, found: Sequence[int]) -> list[float]:
    weights, biases = fitted
    norm = 1 / math.sqrt(len(found) or 1)
    sums = [sum(each) for each in zip(*(weights[bucket] for bucket in found), strict=True)]
    scores = [bias + norm * each for bias, each in zip(biases, sums or biases, strict=True)]
    powers = [math.exp(each - max(scores)) for each in scores]
    return [each / sum(powers) for each in powers]


def classifier_of(rows: Sequence[Row], labels: Sequence[str]) -> Classifier:
    """Fit a classifier, with weights of a byte each."""
    weights, biases = fit(rows, labels)
    scale = max(abs(each) for row in weights for each in row) / 127
    small = array("b", (round(each / scale) for row in weights for each in row))
    return Classifier(tuple(labels), tuple(round(each, 4) for each in biases), scale, small)


def validate(rows: list[Row], labels: Sequence[str]) -> None:
    """Print what is found of each label when it was not learnt from, at several thresholds."""
    random.Random(3).shuffle(rows)
    judged: list[tuple[str, str, float]] = []
    for fold in range(FOLDS):
        model = classifier_of([row for at, row in enumerate(rows) if at % FOLDS != fold], labels)
        for text, label in rows[fold::FOLDS]:
            likely = model.likelihoods(text)
            best = max(labels[1:], key=likely.__getitem__)
            judged.append((label, best, likely[best]))
    total = Counter(label for label, _, _ in judged)
    print("unseen quarters of", dict(total))
    for threshold in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        told = [(label, best) for label, best, likely in judged if likely >= threshold]
        right = Counter(label for label, best in told if label == best)
        false = Counter(best for label, best in told if label == labels[0])
        shares = {each: f"{right[each] / total[each]:.0%}" for each in labels[1:]}
        print(f"from {threshold} on: right {shares}, false {dict(false)}")


def main() -> None:
    """Validate, or fit and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="fit to all sentences and write")
    rows = care_rows()
    if parser.parse_args().write:
        CARE_CLASSIFIER.write_bytes(written(classifier_of(rows, CONCERNS)))
    else:
        validate(rows, CONCERNS)


if __name__ == "__main__":
    main()
