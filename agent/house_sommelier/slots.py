"""The parts of a message that want a wine each: "6 reds and 6 whites", a starter and a main. Pure.

Kinds of wine that an "and" joins are parts, as are those that are counted; an "or" makes them
alternatives. What only one part has (its dish, its country) is its own; the rest is for all.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from agent.house_sommelier.lexicon import Phrases, Span

_KINDS: Final = frozenset({"hue", "styles"})
_NAMES: Final = frozenset({"grapes", "regions", "countries"})
_SWEET: Final = frozenset({"sweetness"})
_OWN: Final = frozenset({"dish", "bodies", "sweetness", "order"}) | _NAMES
_LIMITING: Final = frozenset({"max", "min", "about", "between", "currency", "joined"})
_ONE_WINE: Final = {"sparkling", "rose"}
"""Kinds that are one wine if nobody counts them: "she loves bubbles and pink"."""
_A_CHOICE: Final = 4
"""More wines than these are no choice but a case."""
_BACK: Final = 5
_MOST_BOTTLES: Final = 300


class Part(NamedTuple):
    """What one part of a message says, and how many bottles of it: 0 if nobody said, 0.5 half."""

    spans: tuple[Span, ...]
    bottles: float = 0


def parts(phrases: Phrases, wanted: Sequence[Span]) -> list[Part]:
    """The parts of a message, in its order; none if it is about one wine."""
    for fields in (_KINDS, _NAMES, _KINDS | _NAMES, _SWEET):
        heads = _heads([span for span in wanted if span.fields & fields])
        counts = [_count(phrases, head[0].start, fields) for head in heads]
        if _are_parts(phrases, heads, counts, only_counted=fields != _KINDS):
            return _own(phrases, wanted, heads, counts)
        if len(heads) == 1 and (counts[0] > _A_CHOICE or 0 < counts[0] < 1):
            return [Part(tuple(heads[0]), counts[0])]
    return []


def _heads(spans: Sequence[Span]) -> list[list[Span]]:
    """Kinds of wine, those that stand together as one: "sparkling rosé"."""
    heads: list[list[Span]] = []
    for span in spans:
        last = heads[-1][-1] if heads else None
        is_list = len(spans) > 2 and {"white", "red"} & {*span.values("hue")}
        if last and last.end == span.start and last.fields != span.fields and not is_list:
            heads[-1].append(span)
        else:
            heads.append([span])
    return heads


def _are_parts(
    phrases: Phrases, heads: Sequence[list[Span]], counts: Sequence[float], *, only_counted: bool
) -> bool:
    said = [frozenset(each for span in head for each in span.meanings) for head in heads]
    values = [{value for each in head for value in each.values} for head in said]
    if len(heads) < 2 or any(a & b for a, b in pairwise(values)):
        return False
    if not any(counts) and set().union(*values) == _ONE_WINE:
        return False
    between = [at for a, b in pairwise(heads) for at in range(a[-1].end, b[0].start)]
    if any(_is_either(phrases, at) for at in between):
        return False
    swaps = any("swap" in span.fields for span in phrases.spans)
    joints = ("joins", "exchanged_for") if swaps else ("joins",)
    joined = any(phrases.is_among(at, each) for at in between for each in joints)
    is_each = all("only" in phrases.before(head[0].start).fields for head in heads)
    if all(counts) or _are_of_two(phrases, heads, are_kinds=not only_counted):
        return True
    return not only_counted and (joined or is_each)


def _are_of_two(phrases: Phrases, heads: Sequence[list[Span]], *, are_kinds: bool) -> bool:
    """Whether each wine is for another person: "Riesling for me, Malbec for the husband".

    Of grapes and places each has to name one; of colours the first may leave it open.
    """
    if any("but" in span.fields for span in phrases.spans):
        return False
    ends = [_boundary(phrases, a[-1].end, b[0].start) for a, b in pairwise(heads)]
    of = [
        {
            (name, phrases.stem(at))
            for at in range(low, high)
            for name in ("first_persons", "third_persons", "persons")
            if phrases.is_among(at, name) and not phrases.is_among(at, "counting_alone")
        }
        for low, high in pairwise([0, *ends, len(phrases.words)])
    ]
    kinds = [{name for name, _ in each} for each in of]
    if are_kinds:
        return all(kinds[1:]) and (bool(kinds[0]) or {"first_persons"} not in kinds[1:])
    is_apart = all(not a & b for a, b in pairwise(of))
    is_own = any("first_persons" in each for each in kinds)
    return all(len(each) == 1 for each in kinds) and is_apart and (is_own or kinds[0] == kinds[1])


def _is_either(phrases: Phrases, at: int) -> bool:
    is_dutch = phrases.languages[:1] == ("nl",)
    return phrases.is_among(at, "either") and (phrases.stem(at) != "of" or is_dutch)


def _count(phrases: Phrases, head: int, heads: frozenset[str]) -> float:
    """The number before a kind of wine, over its adjectives: "two light French reds"."""
    for at in range(head - 1, max(-1, head - _BACK), -1):
        span = next((each for each in phrases.spans if each.start <= at < each.end), Span(at, at))
        if "half" in span.fields:
            return float(span.values("half")[0])
        if span.values("number") or phrases.stem(at).isdecimal():
            is_limit = phrases.before(span.start).fields & _LIMITING - {"joined"}
            said = (*span.values("number"), phrases.stem(at)[:3])[0].split()[0].lstrip("~")
            known = said.isdecimal() and int(said) <= _MOST_BOTTLES
            return int(said) if known and not is_limit else 0
        if phrases.is_among(at, "one_of_a_kind"):
            return 1
        is_passed = span.fields & _OWN - heads or "bottles" in span.fields or "wine" in span.fields
        if not (is_passed or phrases.is_among(at, "of_them")):
            return 0
    return 0


def _own(
    phrases: Phrases,
    wanted: Sequence[Span],
    heads: Sequence[list[Span]],
    counts: Sequence[float],
) -> list[Part]:
    """Each part with what is said of it and not of all."""
    ends = [_boundary(phrases, a[-1].end, b[0].start) for a, b in pairwise(heads)]
    bounds = [0, *ends, len(phrases.words)]
    segments = [
        [span for span in wanted if low <= span.start < high and span.fields & _OWN]
        for low, high in pairwise(bounds)
    ]
    shared = Counter(
        field for said in segments for field in {each for span in said for each in span.fields}
    )
    return [
        Part(
            (
                *head,
                *(
                    span
                    for span in said
                    if span not in head
                    and (any(shared[each] > 1 for each in span.fields) or _is_beside(span, head))
                ),
            ),
            count,
        )
        for head, said, count in zip(heads, segments, counts, strict=True)
    ]


def _boundary(phrases: Phrases, start: int, end: int) -> int:
    """Where between two kinds the second part begins: at the last word that joins."""
    joints = [at for at in range(start, end) if phrases.is_among(at, "joins")]
    commas = [at for at in range(start, end) if phrases.stem(at) in (",", "\n", ".", ";", "+")]
    return max((*joints, *commas), default=start)


def _is_beside(span: Span, head: Sequence[Span]) -> bool:
    """Whether a word qualifies the kind that it stands beside: "dry white", "rosso leggero"."""
    is_near = span.end == head[0].start or span.start == head[-1].end
    return is_near and "dish" not in span.fields
