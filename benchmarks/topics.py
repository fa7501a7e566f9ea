"""`python -m benchmarks.topics`: say how well the house finds what is asked of it, or fit it.

`benchmarks/topics/` holds wordings by topic and language ("any" for words of the question alone).
Each fifth of them is judged by what was fitted to the others, to the answers, and to messages of
`benchmarks/acts` that ask nothing.
"""

import argparse
import json
import math
import random
import tomllib
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from agent.house_sommelier.data import topics
from agent.house_sommelier.lexicon import parse
from agent.house_sommelier.topics import (
    TOPIC_MODEL,
    TopicModel,
    asked_for,
    features,
    weight_of,
)
from agent.text import LANGUAGES, sentences
from benchmarks.house import messages

WORDINGS: Final = Path(__file__).with_name("topics")
NONE: Final = "none"
FOLDS: Final = 5
EPOCHS: Final = 8
RATE: Final = 0.5
SCALE: Final = 1.5
RARITY: Final = 1.5
"""To which power a feature weighs more the rarer it is."""
OF_AN_ANSWER: Final = 0.5
"""What a sentence of an answer counts beside a wording."""
OF_A_WISH: Final = 0.3
"""What a message that asks nothing counts: there are many."""
ASKING_NOTHING: Final = frozenset(
    "search cheaper dearer lighter fuller drier sweeter softer fresher sober other swap like pick "
    "take total quantity price stock size hello thanks help machine complaint rude off_topic "
    "service photo unclear abv vintage grapes organic origin yes".split()
)
"""Acts that no topic answers."""


class Row(NamedTuple):
    """A text, the topic it asks for, its fifth (none is learnt from always) and its weight."""

    text: str
    label: str
    fold: int | None = None
    weight: float = 1.0
    language: str = ""


def rows() -> Iterator[Row]:
    """Read wordings, the answers to them, and messages that ask nothing."""
    for file in sorted(WORDINGS.glob("*.toml")):
        for name, wordings in tomllib.loads(file.read_text("utf-8")).items():
            yield Row(name.replace("_", " "), name)
            for language, said in wordings.items():
                for at, text in enumerate(said):
                    fold = None if language == "any" else at % FOLDS
                    yield Row(text, name, fold, language=language)
    for language in LANGUAGES:
        for name, topic in topics(language).items():
            yield from (Row(each, name, None, OF_AN_ANSWER) for each in sentences(topic.answer))
    told = {(text, fold) for _, text, act, fold, _ in messages() if act in ASKING_NOTHING}
    yield from (Row(text, NONE, int(fold), OF_A_WISH) for text, fold in sorted(told))


@lru_cache(None)
def features_of(text: str) -> frozenset[str]:
    """Return what the house looks at in a text."""
    return features(text, parse(text).spans)


def fitted(data: Sequence[Row]) -> TopicModel:
    """Fit by stochastic gradient descent (AdaGrad) on the softmax of the topics.

    A feature learns for those topics only that it was seen with, which keeps the model small.
    """
    found = [features_of(row.text) for row in data]
    seen = Counter(each for row in found for each in row)
    kept = sorted((each for each in seen if seen[each] > 1), key=_checksum)
    place = {each: at for at, each in enumerate(kept)}
    sizes = np.array([_size(each, seen[each], len(data)) for each in kept], np.float32)
    labels = sorted({row.label for row in data} - {NONE})
    owner = {label: at for at, label in enumerate(labels)}
    rarest = math.log(len(data)) ** RARITY
    told = [np.array(sorted(place[each] for each in row if each in place), int) for row in found]
    rare = [
        sum((rarest * weight_of(each)) ** 2 for each in row if each not in place) for row in found
    ]
    mask = np.zeros((len(kept), len(labels)), bool)
    for row, at in zip(data, told, strict=True):
        if row.label != NONE:
            mask[at, owner[row.label]] = True
    weights = _descended(data, told, rare, sizes, mask, owner)
    step = float(np.abs(weights).max()) / 127
    places, owners = np.nonzero(mask)
    small = np.rint(weights[places, owners] / step).astype(int)
    ends = np.cumsum(mask.sum(1))
    return TopicModel(
        tuple(labels),
        step * SCALE,
        rarest,
        array("I", map(_checksum, kept)),
        array("f", sizes.tolist()),
        array("I", ends.tolist()),
        array("H", owners.tolist()),
        array("b", small.tolist()),
    )


def _checksum(feature: str) -> int:
    return zlib.crc32(feature.encode("utf-8", "surrogatepass"))


def _size(feature: str, count: int, total: int) -> float:
    return float(weight_of(feature) * math.log(total / count) ** RARITY)


def _descended(
    data: Sequence[Row],
    told: Sequence[Any],
    rare: Sequence[float],
    sizes: Any,
    mask: Any,
    owner: dict[str, int],
) -> Any:
    weights = np.zeros(mask.shape, np.float32)
    squares = np.full(mask.shape, 1e-3, np.float32)
    order, shuffled = list(range(len(data))), random.Random(1)
    for _ in range(EPOCHS):
        shuffled.shuffle(order)
        for at in order:
            places = told[at]
            if not len(places):
                continue
            size = sizes[places]
            size = size * (SCALE / np.sqrt((size * size).sum() + rare[at]))
            scores = size @ weights[places]
            powers = np.exp(scores - scores.max())
            powers /= powers.sum()
            if data[at].label == NONE:
                powers -= 1 / len(powers)
            else:
                powers[owner[data[at].label]] -= 1
            slope = np.outer(size, powers * data[at].weight) * mask[places]
            squares[places] += slope * slope
            weights[places] -= RATE * slope / np.sqrt(squares[places])
    return weights


def written(model: TopicModel) -> bytes:
    """Return a model as its file holds it: a line of JSON, then the packed arrays."""
    parts = (model.sums, model.sizes, model.ends, model.owners, model.weights)
    about = {
        "labels": model.labels,
        "scale": model.scale,
        "rarest": model.rarest,
        "lengths": [len(each) for each in parts],
    }
    packed = b"".join(each.tobytes() for each in parts)
    return json.dumps(about).encode() + b"\n" + zlib.compress(packed, 9)


def validate() -> None:
    """Print how many wordings find their topic, and how many answers are of another."""
    data = list(rows())
    told: list[tuple[Row, tuple[str, ...], list[str]]] = []
    for fold in range(FOLDS):
        model = fitted([row for row in data if row.fold != fold])
        for row in (each for each in data if each.fold == fold):
            likely = model.likely(features_of(row.text))
            told.append((row, asked_for(likely), [each.name for each in likely]))
    asked = [each for each in told if each[0].label != NONE]
    others = [each for each in told if each[0].label == NONE]
    _report("all", asked)
    for language in LANGUAGES:
        _report(language, [each for each in asked if each[0].language == language])
    answered = sum(bool(given) for _, given, _ in others)
    print(f"of {len(others)} that ask nothing {answered / len(others):.1%} are answered")


def _report(name: str, told: list[tuple[Row, tuple[str, ...], list[str]]]) -> None:
    count = len(told)
    first = sum(near[:1] == [row.label] for row, _, near in told)
    three = sum(row.label in near for row, _, near in told)
    given = [(row, names) for row, names, _ in told if names]
    wrong = sum(row.label not in names for row, names in given)
    print(
        f"{name}: {first / count:.1%} of {count} first, {three / count:.1%} among three; "
        f"{len(given) / count:.1%} answered, {wrong / (len(given) or 1):.1%} of these wrong"
    )


def main() -> None:
    """Validate, or fit and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="fit to all wordings and write")
    if parser.parse_args().write:
        TOPIC_MODEL.write_bytes(written(fitted(list(rows()))))
    else:
        validate()


if __name__ == "__main__":
    main()
