"""`python -m benchmarks.classifiers TASK`: say how good a classifier is, or fit it.

Sentences of one batch are alike, so each batch is judged by what was fitted to all the others.
"""

import argparse
import json
import math
import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from agent.care import (
    CARE_CLASSIFIER,
    CARE_WORDS,
    CONCERNS,
    FULL_AGE,
    LANGUAGE_CLASSIFIER,
    SHORTEST_SLIP,
    WHOSE_CLASSIFIER,
    Message,
    care_of,
)
from agent.classifier import Classifier, written
from agent.text import LANGUAGES as HOUSE_LANGUAGES
from agent.text import Language, words

EVALS: Final = Path(__file__).parent.parent / "tests" / "evals"
CARE: Final = (
    *("care", "care_dialogue", "care_talk", "care_written", "care_retractions", "care_near"),
    "messages",
)
CARE_OUTSIDE: Final = (
    *("care", "care_more", "care_open", "care_unseen", "care_held", "care_five"),
    "care_eight",
    "care_nine",
    "care_roundabout",
    "harmless",
)
ORDINARY: Final = "ordinary"
"""What a sommelier says, in which no care is due."""
JOINTS: Final = (", ", ": ", " – ", ". ", " ")
"""What stands between two sentences that are one."""
LONGEST_LEAD: Final = 8
"""Words of a sentence that may lead to another one."""
TYPED: Final = Path(__file__).with_name("acts")
"""Messages by language and by what they ask of the house; `[act context]` stands above them."""
NOT_PLAIN: Final = frozenset({"sober", "quantity"})
"""What is asked where somebody may be spoken of who does not drink."""
MISTYPED: Final = 0.25
"""How many of the longer words are mistyped where messages are learnt from once more."""
SHORTEST_MISTYPED: Final = 4
EPOCHS: Final = 20
RATE: Final = 0.5


@dataclass(frozen=True)
class Row:
    """A sentence, its label, and which sentences were written with it."""

    text: str
    label: str
    batch: str


@dataclass(frozen=True)
class Task:
    """What a classifier tells apart, where it is kept, what it learns from and what it looks at."""

    labels: tuple[str, ...]
    file: Path
    rows: Callable[[], Iterator[Row]]
    features: Callable[[str], frozenset[int]]
    buckets: int
    judged: tuple[str, ...] = CARE_OUTSIDE
    epochs: int = EPOCHS
    rate: float = RATE
    dropped: float = 0.5
    """How much of what stands in a text each look at it leaves out: no sign alone shall tell."""
    is_mixed: bool = False
    smoothing: float = 0.0


def care_lines() -> Iterator[dict[str, Any]]:
    """Read what was written for care, each with its batch."""
    for folder, names in ((EVALS / "outside", CARE_OUTSIDE), (EVALS, CARE)):
        for name in names:
            for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines():
                batch = name if folder != EVALS else f"own {name}"
                row = json.loads(line)
                yield {"batch": batch, "who": "", "label": row.get("expected")} | row
    for line in (EVALS / "outside" / f"{ORDINARY}.jsonl").read_text("utf-8").splitlines():
        yield {"label": "none", "who": "", "batch": ORDINARY} | json.loads(line)

    for _, language, text, act, _ in typed():
        if act not in NOT_PLAIN:
            yield {"text": text, "language": language, "label": "none", "who": "", "batch": "typed"}


def typed(folder: Path = TYPED) -> Iterator[tuple[int, Language, str, str, str]]:
    """Yield line, language, message, act and context (empty for any) of what people type."""
    for language in HOUSE_LANGUAGES:
        act = context = ""
        lines = (folder / f"{language}.txt").read_text("utf-8").splitlines()
        for at, line in enumerate(lines):
            if line.startswith("[") and line.endswith("]"):
                act, _, context = line[1:-1].partition(" ")
            else:
                yield at, language, line, act, context


def care_rows(labelled: str, labels: Sequence[str]) -> Iterator[Row]:
    """Read the sentences of care that have one of some labels, each text once and mistyped once."""
    known, chance = set[str](), random.Random(7)
    for line in care_lines():
        if line[labelled] in labels and line["text"] not in known:
            known.add(line["text"])
            yield Row(line["text"], line[labelled], line["batch"])
            if line["batch"] != "typed":
                yield Row(mistyped(line["text"], chance), line[labelled], line["batch"])


def care_words() -> str:
    """Return the words that the messages of concerns are made of, the commonest first."""
    count = Counter[str]()
    for line in care_lines():
        if line["label"] in CONCERNS:
            count.update({word for word in words(line["text"]) if len(word) >= SHORTEST_SLIP})
    said = sorted(count, key=lambda word: (-count[word], word))
    known = [word for word in said if word.isalpha() and count[word] > 1]
    return "\n".join(" ".join(known[at : at + 12]) for at in range(0, len(known), 12)) + "\n"


def mistyped(text: str, chance: random.Random) -> str:
    """Return a text with letters of some words exchanged, left out or doubled."""
    said = text.split(" ")
    for place, word in enumerate(said):
        if len(word) >= SHORTEST_MISTYPED and word.isalpha() and chance.random() < MISTYPED:
            at = chance.randrange(1, len(word) - 1)
            one, two = word[at], word[at + 1]
            said[place] = (
                word[:at] + chance.choice((two + one, two, one + one + two)) + word[at + 2 :]
            )
    return " ".join(said)


def care_features(text: str) -> frozenset[int]:
    """Return what care looks at in a message, in the first part of a long one."""
    return next(Message(text).windows(FULL_AGE))


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


LABELS: Final = ("none", *CONCERNS)
QUARTERS: Final = ("1", "2", "3", "4")
WHOSE: Final = ("self", "other")
LANGUAGES: Final = ("en", "de", "fr", "es", "it", "nl", "pt")
TASKS: Final = {
    "care": Task(
        LABELS,
        CARE_CLASSIFIER,
        lambda: care_rows("label", LABELS),
        care_features,
        1 << 16,
        epochs=40,
    ),
    "whose": Task(WHOSE, WHOSE_CLASSIFIER, lambda: care_rows("who", WHOSE), care_features, 1 << 14),
    "language": Task(
        LANGUAGES,
        LANGUAGE_CLASSIFIER,
        lambda: care_rows("language", LANGUAGES),
        care_features,
        1 << 14,
    ),
}


def fitted(rows: Sequence[Row], task: Task) -> Classifier:
    """Fit a classifier by stochastic gradient descent (AdaGrad) on the softmax of the labels."""
    order, chance, count = random.Random(1), np.random.default_rng(1), len(task.labels)
    weights, biases = np.zeros((task.buckets, count)), np.zeros(count)
    squares = np.full((task.buckets, count), 1e-3)
    data = [
        (np.array(sorted({each % task.buckets for each in task.features(row.text)})), row.label)
        for row in (*rows, *(mixed(rows, task.labels[0]) if task.is_mixed else ()))
    ]
    for _ in range(task.epochs):
        order.shuffle(data)
        for whole, label in data:
            found = whole[chance.random(len(whole)) >= task.dropped]
            norm = 1 / math.sqrt(len(found) or 1)
            scores = biases + norm * weights[found].sum(axis=0)
            powers = np.exp(scores - scores.max())
            errors = powers / powers.sum()
            errors -= task.smoothing / count
            errors[task.labels.index(label)] -= 1 - task.smoothing
            biases -= 0.05 * errors
            slopes = np.where(np.abs(errors) > 0.01, errors * norm, 0.0)
            squares[found] += slopes * slopes
            weights[found] -= task.rate * slopes / np.sqrt(squares[found])
    largest = float(np.abs(weights).max()) / 127
    small = array("b", np.rint(weights / largest).astype(np.int8).tobytes())
    scale = largest * math.sqrt(1 - task.dropped)
    return Classifier(task.labels, tuple(round(float(each), 4) for each in biases), scale, small)


def mixed(rows: Sequence[Row], plain: str) -> Iterator[Row]:
    """Yield sentences with a plain one before or behind, whose language may be another.

    So that no lead hides a sentence: all that are not plain, and half of the others.
    """
    chance = random.Random(5)
    leads = [
        row.text.rstrip(".")
        for row in rows
        if row.label == plain and len(row.text.split()) <= LONGEST_LEAD
    ]
    for row in rows:
        if row.label != plain or chance.random() < 0.5:
            parts = [chance.choice(leads), row.text.rstrip(".")]
            text = chance.choice(JOINTS).join(parts if chance.random() < 0.7 else parts[::-1])
            yield Row(text, row.label, row.batch)


def judged(task: Task) -> Iterator[tuple[str, str, float]]:
    """Tell of each sentence of a batch its label, the likeliest one and how likely that is."""
    rows = list(task.rows())
    for batch in task.judged:
        model = fitted([row for row in rows if row.batch != batch], task)
        for row in rows:
            if row.batch == batch:
                likely = model.likelihoods_of(task.features(row.text))
                best = max(task.labels[1:], key=likely.__getitem__)
                yield row.label, best, 1 - likely[task.labels[0]]


def validate(task: Task) -> None:
    """Print what is found of each label in batches that were not learnt from, by threshold."""
    found = list(judged(task))
    total = Counter(label for label, _, _ in found)
    print("unseen batches of", dict(total))
    for least in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        told = [(label, best) for label, best, likely in found if likely >= least]
        right = Counter(label for label, best in told if label == best)
        false = Counter(best for label, best in told if label == task.labels[0])
        shares = {each: f"{right[each] / total[each]:.0%}" for each in total if each in right}
        print(f"from {least} on: right {shares}, false {dict(false)}")


def report(file: Path) -> Iterator[str]:
    """Say which concerns care hears in the messages of a file, and where it hears wrongly.

    Its lines have `id`, `text` and the concern that is `expected`, or `none`.
    """
    total, right = Counter[str](), Counter[str]()
    wrong = list[str]()
    for row in _lines(file):
        care, expected = care_of(row["text"]), row["expected"]
        heard = sorted(care.own | care.others)
        is_right = expected in heard if expected != "none" else not heard
        total[expected] += 1
        right[expected] += is_right
        if not is_right:
            wrong.append(f"  {row['id']}: {expected}, heard {', '.join(heard) or 'none'}")
    yield from (f"{each}: {right[each]} of {total[each]}" for each in LABELS if total[each])
    yield from wrong


def main() -> None:
    """Validate, judge a file, or fit and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--write", action="store_true", help="fit to all sentences and write")
    parser.add_argument("--on", type=Path, help="what care hears in a file, as it stands")
    given = parser.parse_args()
    task = TASKS[given.task]
    if given.on:
        print(*report(given.on), sep="\n")
    elif given.write:
        if task.file == CARE_CLASSIFIER:
            CARE_WORDS.write_text(care_words(), "utf-8")
        task.file.write_bytes(written(fitted(list(task.rows()), task)))
    else:
        validate(task)


if __name__ == "__main__":
    main()
