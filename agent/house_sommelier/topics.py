"""What people ask of wine: a bank of topics with short answers, and which a message asks. Pure.

A linear model tells the topic from words, their beginnings, what they mean in six languages
(data/terms.toml) and what the lexicon makes of them, so that what was learnt in one language serves
in the others. It is fitted to `benchmarks/topics` by `python -m benchmarks.topics --write`.
"""

import json
import math
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent.classifier import LONGEST_WORD, Meanings
from agent.house_sommelier.data import dishes, load
from agent.house_sommelier.lexicon import Phrases, Span, parse
from agent.text import pattern, words

TOPIC_MODEL: Final = Path(__file__).with_name("topics.bin")
SURE: Final = 0.5
"""From how likely on a topic is asked for by a message alone, whatever was asked before."""
ASKED: Final = 0.3
"""From how likely on a question is of a topic, also where it names a kind of wine."""
CERTAIN: Final = 0.8
"""From how likely on a message is a question of a topic, whatever else it looks like."""
LIKELY: Final = 0.2
"""From how likely on a topic that leads is answered."""
NEAR: Final = 0.1
"""From how likely on a topic is offered."""
LEAD: Final = 2.5
"""How many times likelier than the next a topic is that is answered alone."""
OF_ANY: Final = 0.5
"""From how likely on a message without its names is of topics that are asked of any wine."""
TOGETHER: Final = 0.4
"""From how likely on two topics that none leads are answered both."""
FAULTS: Final = frozenset(
    "cork_taint volatile_acidity oxidation reduction heat_damage brettanomyces mousiness fizz "
    "leaking_bottle gushing cloudy_wine light_damage smoke_taint geranium_taint broken_glass "
    "cork_crumbs broken_cork mould_on_cork sediment tartrates".split()
)
_FAULTY: Final = 0.06
"""From how likely on a fault is what a complaint tells of."""
_BEGINNINGS: Final = (4, 5, 6)
_MOST_WORDS: Final = 60
_MOST_PAIRED: Final = 10
_MOST_NEAR: Final = 2
_HEARD: Final = frozenset(
    "hue styles grapes regions countries entity text sweetness bodies tannins acidities allergen "
    "without_allergens wine".split()
)
"""Fields of the lexicon that tell of a topic."""
_WEIGHTS: Final = {"w": 1.0, "q": 0.5, "t": 4.0, "u": 2.0, "m": 2.0}
"""What a word, a beginning, a meaning, two of them and a phrase of the lexicon weigh."""


_NAMES: Final = frozenset({"grapes", "regions", "countries"})
_SENTENCE: Final = pattern(r"[.!?…\n\p{So}]+\s*")
_SHORTEST: Final = 4
"""Words of a question that may tell its topic by itself."""


class Likely(NamedTuple):
    """A topic and how likely it is asked for, from 0 to 1."""

    name: str
    share: float


def weight_of(feature: str) -> float:
    """Return what a feature weighs by its kind."""
    return _WEIGHTS[feature[0]]


def features(text: str, spans: Iterable[Span]) -> frozenset[str]:
    """Return what tells the topic of a message: its words and the known phrases in them."""
    said = [each[:LONGEST_WORD] for each in words(text)[:_MOST_WORDS]]
    meant = list(dict.fromkeys(each for word in said for each in sorted(_terms().of(word))))
    pairs = combinations(meant[:_MOST_PAIRED], 2)
    return frozenset(
        (
            *(f"w {word}" for word in said),
            *(f"q {word[:size]}" for word in said for size in _BEGINNINGS if len(word) > size),
            *(f"t {each}" for each in meant),
            *(f"u {min(pair)} {max(pair)}" for pair in pairs),
            *(f"m {each}" for each in _heard(spans)),
        )
    )


def _heard(spans: Iterable[Span]) -> Iterator[str]:
    for field, values in (meaning for span in spans for meaning in span.meanings):
        if field == "dish":
            for dish in (dishes()[int(value)] for value in values):
                yield from (dish.pairing, *dish.foods)
        elif field in _HEARD:
            yield from (f"{field} {value}" for value in values)


@cache
def _terms() -> Meanings:
    return Meanings(load("terms"))


@dataclass(frozen=True, slots=True)
class TopicModel:
    """A sparse linear model: each feature weighs for those topics only that it was seen with.

    A feature is its checksum in `sums` (ascending); its own weight is in `sizes`, and its topics
    and what it weighs for them are those before `ends`.
    """

    labels: tuple[str, ...]
    scale: float
    rarest: float
    sums: "array[int]"
    sizes: "array[float]"
    ends: "array[int]"
    owners: "array[int]"
    weights: "array[int]"

    def likely(self, found: Iterable[str]) -> tuple[Likely, ...]:
        """Return the likeliest labels for what has these features, the first first."""
        scores, norm = [0.0] * len(self.labels), 0.0
        for feature in found:
            at = self._place(feature)
            size = self.rarest * weight_of(feature) if at is None else self.sizes[at]
            norm += size * size
            if at is None:
                continue
            own = slice(self.ends[at - 1] if at else 0, self.ends[at])
            for owner, weight in zip(self.owners[own], self.weights[own], strict=True):
                scores[owner] += size * weight
        if not norm:
            return ()
        powers = [math.exp(self.scale * each / math.sqrt(norm)) for each in scores]
        total = sum(powers)
        best = sorted(range(len(powers)), key=powers.__getitem__, reverse=True)[: _MOST_NEAR + 1]
        return tuple(Likely(self.labels[at], powers[at] / total) for at in best)

    def _place(self, feature: str) -> int | None:
        checksum = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
        at = bisect_left(self.sums, checksum)
        return at if at < len(self.sums) and self.sums[at] == checksum else None


@cache
def topic_model() -> TopicModel:
    """Read the model, once.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is none, or was cut off.
    """
    head, _, body = TOPIC_MODEL.read_bytes().partition(b"\n")
    about = json.loads(head)
    try:
        packed = memoryview(zlib.decompress(body))
    except zlib.error as error:
        raise ValueError(f"{TOPIC_MODEL.name} is not whole, {error}: fit it again") from error
    parts: list[Any] = []
    for kind, length in zip("IfIHb", about["lengths"], strict=True):
        part = array(kind)
        size = length * part.itemsize
        part.frombytes(packed[:size])
        packed = packed[size:]
        parts.append(part)
    return TopicModel(tuple(about["labels"]), about["scale"], about["rarest"], *parts)


def topics_in(text: str, said: Phrases) -> tuple[Likely, ...]:
    """Return the topics that a message most likely asks for, the likeliest first.

    Of several sentences the question alone may tell it better than all of them, and what is asked
    of a wine is told better without its name: "a Chianti of 2021, does it want a decanter?".
    """
    found = [topic_model().likely(features(text, said.spans))]
    *before, asked = _SENTENCE.split(text.rstrip("? "))
    if before and "?" in text[-3:] and len(words(asked)) >= _SHORTEST:
        said = parse(asked)
        found.append(topic_model().likely(features(asked, said.spans)))
    best = max(found, key=_share)
    without = _without_names(said)
    is_of_any = _share(best) >= LIKELY and best[0].name in _of_any()
    if len(without.split()) >= _SHORTEST and not is_of_any:
        likely = topic_model().likely(features(without, parse(without).spans))
        of_any = tuple(each for each in likely if each.name in _of_any())
        found += [of_any[:1]] if sum(each.share for each in of_any) >= OF_ANY else []
    return max(found, key=_share)


def _share(likely: Sequence[Likely]) -> float:
    return likely[0].share if likely else 0.0


@cache
def _of_any() -> frozenset[str]:
    return frozenset(load("questions")["of_any"]["topics"]) | FAULTS


def _without_names(said: Phrases) -> str:
    """The words of a message without its names of grapes and places."""
    named = (each for each in said.spans if each.fields & _NAMES)
    left_out = {at for each in named for at in range(each.start, each.end)}
    return " ".join(
        each.written for at, each in enumerate(said.words) if at not in left_out and each.is_word
    )


def asked_for(likely: Sequence[Likely]) -> tuple[str, ...]:
    """Return the topics to answer: the one that leads, two that are near each other, or none."""
    if not likely:
        return ()
    first, second = (*likely, Likely("", 0.0))[:_MOST_NEAR]
    if first.share >= max(LIKELY, LEAD * second.share):
        return (first.name,)
    return (first.name, second.name) if first.share + second.share >= TOGETHER else ()


def fault_in(likely: Iterable[Likely]) -> tuple[str, ...]:
    """Return the fault of a wine that a complaint most likely tells of, or none."""
    return tuple(each.name for each in likely if each.name in FAULTS and each.share >= _FAULTY)[:1]


def is_likely(likely: Iterable[Likely], share: float) -> bool:
    """Whether any topic is that likely asked for."""
    return any(each.share >= share for each in likely)


def offered(likely: Iterable[Likely]) -> tuple[str, ...]:
    """Return the topics that are near to what is asked, to be offered."""
    near = [each.name for each in likely if each.share >= NEAR]
    return tuple(near[:_MOST_NEAR])
