"""What a message wants done, as a classifier tells it from its words and what they mean. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Final, Literal, get_args

from agent.classifier import Meanings, classifier, features, hashed
from agent.house_sommelier.data import SCALE_OF, SCALES, kinds, load
from agent.house_sommelier.reading import NO_WISHES, Change
from agent.house_sommelier.topics import SURE, is_likely
from agent.text import LANGUAGES, Language, words

ACT_CLASSIFIER: Final = Path(__file__).with_name("acts.bin")
Context = Literal["start", "wines", "told"]
"""What the reply before was: none, one that showed wines, another."""
CONTEXTS: Final[tuple[Context, ...]] = get_args(Context)
SPEECH_CLASSIFIER: Final = Path(__file__).with_name("speech.bin")
_SURE: Final = 0.25
_LIKELY: Final = 0.15
"""How sure a kind has to be where only those count that are asked of a shown wine."""
_A_LANGUAGE: Final = 0.5
_OTHER_LANGUAGE: Final = 0.85
_OF_A_NAME: Final = 2
_WORDS_TELL: Final = 4
"""How much likelier the lexicon's words make a language."""
_HUES: Final = frozenset({"red", "white", "rose"})
_OF_WHAT_WAS_SHOWN: Final = frozenset(
    "cheaper dearer lighter fuller drier sweeter softer fresher other swap like take".split()
)
_RIVALS: Final = (frozenset({"ageing", "keeps", "storing"}), frozenset({"price", "total"}))
"""Traits that one word may mean, of which the classifier tells the right one."""
_LONG: Final = 9
_PARTS: Final = (4,)
"""Letters of the parts of words: others tell no more of what is wanted."""
_MOST_PAIRED: Final = 8
_MOST_WORDS: Final = 40
_MOST_NAMED: Final = 3
_KINDS: Final = frozenset({"styles", "grapes"})
_FACTS: Final = (
    "is_question", "unknown", "entities", "denied", "allergens", "purpose", "definite",
)  # fmt: skip
_COUNTS: Final = ("guests", "sober", "hours", "bottles", "has_price")
_NAMES: Final = frozenset({"ordinal", "dish", "text", "allergen", "litres"})
"""Marks of which the value tells nothing of what is wanted."""


def with_kind(change: Change, context: Context) -> Change:
    """`change` with the kind of message it is, and its marks; none where nothing is sure."""
    is_of_shown = context == "wines" and change.has("ordinal")
    kind = _kind_in(change, context, is_of_shown=is_of_shown)
    if not kind:
        return change
    if kind == "sober":
        hues = tuple(each for each in change.wishes.styles if each in _HUES)
        # What was asked for first holds; one bottle for a guest beside others does not.
        only = frozenset({"styles"} if context != "wines" else ())
        wishes = replace(change.wishes, styles=("alcohol_free",), name="", only=only)
        return replace(
            change, kind=kind, wishes=replace(wishes, colours=hues or wishes.colours), purpose=()
        )
    if context == "wines" and _asks_which(change, kind):
        change, kind = _by_taste(change), "most"
    asks_why = kind == "why" and change.wishes.said & _KINDS and not change.definite
    kind = "fits" if asks_why and change.words <= _LONG else kind
    if kind == "fits" and change.denied and change.is_question:
        change = _asked_for(change)
    names = change.unknown if kind == "stock" and not change.purpose else ()
    if names and len(names) <= _MOST_NAMED and not change.wishes.name:
        change = replace(change, wishes=replace(change.wishes, name=" ".join(names)))
    added = (mark.partition(":") for mark in kinds()[kind].marks)
    marks = tuple((name, value) for name, _, value in added)
    if is_of_shown and change.has("copula") and change.wishes.said & SCALE_OF.keys():
        # "Is the second too heavy?" asks of its body, whatever else it sounds like.
        marks = tuple(each for each in marks if each[0] != "trait")
    if kind in ("most", "pick") and change.has("cue", "cheaper", "dearer"):
        # "The cheaper of the two" is one of them.
        order = "cheapest" if change.has("cue", "cheaper") else "dearest"
        wishes = replace(change.wishes, order=order)
        without = tuple(each for each in change.marks if each[0] != "cue")
        change = replace(change, wishes=wishes, marks=without)
    rivals = next((each for each in _RIVALS if any(value in each for _, value in marks)), ())
    own = (each for each in change.marks if each[0] != "trait" or each[1] not in rivals)
    return replace(change, kind=kind, marks=(*marks, *own))


def _kind_in(change: Change, context: Context, *, is_of_shown: bool) -> str:
    """The kind of a message where it stands; empty if none is sure."""
    kind = _kind(act_features(change, context), is_of_shown=is_of_shown)
    if context == "start" and kind in _OF_WHAT_WAS_SHOWN:
        return "search"
    if kind == "sober" and change.denied:
        # "One guest doesn't drink red": that is no word against wine.
        return "search"
    counts = (change.numbers.sober or 0) > 1 and context == "wines"
    # "Fifteen of them drink no alcohol": so many bottles fewer.
    return "quantity" if kind == "sober" and counts else kind


def _asks_which(change: Change, kind: str) -> bool:
    """Whether one of the wines shown is to be named by its taste: "not too sour, so which?"."""
    tastes = change.wishes.said <= SCALE_OF.keys() and bool(change.wishes.said)
    asks = change.has("ask", "which") or kind in ("most", "pick")
    return asks and tastes and not change.has("ask", "choose")


def _by_taste(change: Change) -> Change:
    """`change` with the taste that it wishes as the end of a scale: "not too sour" as "mildest"."""
    ends: list[tuple[str, str]] = []
    for slot in change.wishes.said:
        steps, told = SCALES[SCALE_OF[slot]], getattr(change.wishes, slot)
        is_low = steps.index(told[0]) + steps.index(told[-1]) < len(steps)
        ends.append(("most", f"{SCALE_OF[slot]}:{'low' if is_low else 'high'}"))
    return replace(change, wishes=NO_WISHES, marks=(*ends, *change.marks))


def _asked_for(change: Change) -> Change:
    """`change` with what it rules out as what it asks about: "why no Riesling?"."""
    said = {
        name: tuple(value for field, value in change.denied if field == source)
        for name, source in (("grapes", "grapes"), ("regions", "regions"), ("styles", "hue"))
    }
    asked: dict[str, Any] = {name: values for name, values in said.items() if values}
    return replace(change, denied=frozenset(), wishes=replace(change.wishes, **asked))


def language_told(change: Change, spoken: Language | None) -> Language | None:
    """The language of a message where that is sure; another than is spoken needs more.

    A word or two that name a wine ("rosé?") are said in many.
    """
    if spoken and change.words <= _OF_A_NAME and change.wishes.said:
        return None
    words_of = dict.fromkeys(change.languages, _WORDS_TELL)
    likely = {
        each: share * words_of.get(each, 1) for each, share in _languages(change.text).items()
    }
    return _sure(likely, spoken, tells=bool(words_of and not spoken))


def language_at_a_glance(said: Sequence[str]) -> Language:
    """The language of what a person said in a talk, without reading what it means.

    Of 643 talks this is wrong in 9, reading them in 5, at 25 times the work.
    """
    spoken: Language | None = None
    for text in said:
        spoken = _sure(_languages(text), spoken) or spoken
    return spoken or "en"


def _sure(
    likely: Mapping[Language, float], spoken: Language | None, *, tells: bool = False
) -> Language | None:
    """The likeliest language if that is sure; another than is spoken needs more."""
    best = max(likely, key=likely.__getitem__)
    enough = _OTHER_LANGUAGE if best != (spoken or "en") and not tells else _A_LANGUAGE
    return best if likely[best] >= enough * sum(likely.values()) else None


@lru_cache(512)
def _languages(text: str) -> Mapping[Language, float]:
    likely = classifier(SPEECH_CLASSIFIER).likelihoods(text)
    return {each: likely[each] for each in LANGUAGES}


@lru_cache(512)
def _kind(found: frozenset[int], *, is_of_shown: bool) -> str:
    """The likeliest kind if that is sure; of a wine that is pointed at, the likeliest of those."""
    likely = classifier(ACT_CLASSIFIER).likelihoods_of(found)
    best = max(likely, key=likely.__getitem__)
    if likely[best] < _SURE and is_of_shown:
        of_shown = [each for each in likely if kinds()[each].shown != kinds()[each].alone]
        best = max(of_shown, key=likely.__getitem__)
        return best if likely[best] >= _LIKELY else ""
    return best if likely[best] >= _SURE else ""


def act_features(change: Change, context: Context) -> frozenset[int]:
    """Return what the classifier of acts looks at: the words of a message and its signs."""
    return features(change.text, _PARTS) | hashed(f"f {each}" for each in signs_of(change, context))


def signs_of(change: Change, context: Context) -> frozenset[str]:
    """What a message shows besides its words: what these mean, what it holds, where it stands."""
    numbers = change.numbers
    marks = {
        name if name in _NAMES else f"{name}:{value}"
        for name, value in change.marks
        if name not in change.wishes.said
    }
    holds = {f"has {name}" for name in _FACTS if getattr(change, name)}
    holds |= {f"has {name}" for name in _COUNTS if getattr(numbers, name)}
    holds |= {
        name
        for name, held in (
            ("strange", len(change.unknown) > 2),
            ("several", len(change.entities) > 1),
            ("name", bool(change.wishes.name)),
            ("cared", bool(change.care.gravest)),
            ("topic", is_likely(change.topics, SURE)),
        )
        if held
    }
    signs = marks | holds | {f"slot:{name}" for name in change.wishes.said or ("none",)}
    signs |= {f"{name}:{value}" for name in SCALE_OF for value in getattr(change.wishes, name)} | {
        f"order:{change.wishes.order}"
    }
    signs.add(f"words:{min(change.words, _LONG)}")
    pairs = {f"{one}+{two}" for one, two in combinations(sorted(marks)[:_MOST_PAIRED], 2)}
    said = _concepts(change.text)
    signs |= {f"k {each}" for each in said}
    pairs |= {f"k {one} {two}" for one, two in pairwise(said)}
    return frozenset((*signs, *pairs, *(f"{context} {each}" for each in signs), context))


def _concepts(text: str) -> list[str]:
    """What the everyday words of a text mean, in their order."""
    return [each for word in words(text)[:_MOST_WORDS] for each in sorted(_meanings().of(word))]


@cache
def _meanings() -> Meanings:
    return Meanings(load("concepts"))
