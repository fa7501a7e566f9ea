"""Texts made to take long, and how much CPU a text takes beside one of half its length."""

import gc
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice, permutations, product
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from time import thread_time_ns
from typing import Any, NamedTuple

SIZE = 4000
MOST = 2.5
"""How many times the CPU a text of twice the length may take."""
TRIES = 5
LOOKS = 3
"""How often growth must be seen: a busy machine shows some where there is none."""
UNBOUNDED = 500


class Hostile(NamedTuple):
    """A text of any length: the same over and over, between a beginning and an end."""

    before: str
    repeated: str
    behind: str = ""

    def of(self, size: int) -> str:
        """The text of about so many characters."""
        return self.before + self.repeated * (size // len(self.repeated)) + self.behind


def superlinear(work: Callable[[str], object], hostile: Hostile, size: int = SIZE) -> str | None:
    """How the CPU grows that a text of twice the size takes, if more than it may; None if not.

    One step up is none: RE2 has a faster way for short texts. What grows grows at four times the
    size as well, and each time it is looked at.
    """
    for _ in range(LOOKS):
        found = _growth(work, hostile, size) and _growth(work, hostile, 4 * size)
        if not found:
            return None
    return found


def _growth(work: Callable[[str], object], hostile: Hostile, size: int) -> str | None:
    """Time on the CPU, the least of several tries, beside a plain pass over the same text.

    What else the machine does counts in none of them. No text comes twice, as some is remembered.
    """
    once = twice = floor = float("inf")
    gc.disable()
    try:
        for turn in range(0, 2 * TRIES, 2):
            shorter, longer = hostile.of(size + turn * 8), hostile.of(2 * size + turn * 8 + 8)
            once, floor = min(once, _cpu(work, shorter)), min(floor, 4 * _cpu(_pass, shorter))
            if once < floor:
                return None
            twice = min(twice, _cpu(work, longer))
            if twice <= MOST * once + floor:
                return None
    finally:
        gc.enable()
    return f"{hostile}: {twice / once:.1f} times as much, {once / floor:.0f} times a plain pass"


def _cpu(work: Callable[[str], object], text: str) -> int:
    start = thread_time_ns()
    work(text)
    return thread_time_ns() - start


def _pass(text: str) -> None:
    for _ in text:
        pass


def looks_far(source: str) -> bool:
    """Whether a match of the pattern may be of any length."""
    return int(_tree(source).getwidth()[1]) > UNBOUNDED


def hostile_to(source: str) -> Iterable[Hostile]:
    """Texts of what a pattern is made of: its characters, what it matches, and what it nearly does.

    Those that begin like a match and go on with one character for ever come first; each comes once.
    """
    return dict.fromkeys(_made_of(source))


def _made_of(source: str) -> Iterator[Hostile]:
    tree = _tree(source)
    signs = list(dict.fromkeys([*_signs(tree), *"aA1 \n.é"]))[:6]
    samples = [each for each in dict.fromkeys(_samples(tree)) if each][:5]
    for sample in samples:
        yield from (
            Hostile("", part) for part in (sample, f"{sample} ", sample[:-1], sample[1:]) if part
        )
        for cut, sign in product({1, len(sample) // 2, len(sample) - 1, len(sample)}, signs[:3]):
            yield Hostile(sample[:cut], sign)
            yield Hostile("", sign, sample[cut:])
    yield from (Hostile("", sign) for sign in signs)
    for one, other in permutations(signs, 2):
        yield Hostile("", one + other)
        yield Hostile(other, one, other)


def _tree(source: str) -> Any:
    return _parser.parse(_for_re(source))


def _for_re(source: str) -> str:
    """The pattern with the classes of RE2 spelt out, as far as they matter here."""
    made, at, inside = "", 0, False
    while at < len(source):
        sign = source[at : at + 2] if source[at] == "\\" else source[at]
        at += len(sign)
        if sign.lower() == r"\p":
            name, at = source[at + 1 : source.index("}", at)], source.index("}", at) + 1
            sign = _of_class(name) if sign == r"\p" else "0 ."
            sign = sign if inside else f"[{sign}]"
        elif sign == r"\x" and source[at] == "{":
            sign = chr(int(source[at + 1 : source.index("}", at)], 16))
            at = source.index("}", at) + 1
        elif sign == "[" and not inside:
            inside = True
            more = len(source[at:]) - len(source[at:].lstrip("^"))
            sign, at = sign + source[at : at + more + 1], at + more + 1
            if sign[-1] == "\\":
                sign, at = sign[:-1], at - 1
        elif sign == "]":
            inside = False
        made += sign
    return made


@cache
def _of_class(name: str) -> str:
    """A few characters of a category or of a script of Unicode, as its characters are named."""
    found = (
        each
        for each in map(chr, range(0x30000))
        if unicodedata.category(each).startswith(name)
        or (unicodedata.name(each, "").startswith(f"{name.upper()} ") and each.isalpha())
    )
    return "".join(islice(found, 0, 90, 30))


def _signs(tree: Any) -> Iterator[str]:
    """One or two characters of each kind that the pattern tells apart."""
    for kind, told in _items(tree):
        if kind in (sre.LITERAL, sre.NOT_LITERAL):
            yield chr(told)
        elif kind is sre.IN:
            yield from _members(told)[:2]


def _items(tree: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(tree, tuple) and len(tree) == 2 and isinstance(tree[0], type(sre.LITERAL)):
        yield tree
    if isinstance(tree, tuple | list | _parser.SubPattern):
        for part in tree:
            yield from _items(part)


def _members(told: Any) -> list[str]:
    kinds = {sre.CATEGORY_WORD: "aé", sre.CATEGORY_DIGIT: "1", sre.CATEGORY_SPACE: " \n"}
    found = ""
    for kind, each in told:
        if kind is sre.LITERAL:
            found += chr(each)
        elif kind is sre.RANGE:
            found += chr(each[0]) + chr(each[1])
        elif kind is sre.CATEGORY:
            found += kinds.get(each, ".;")
    if told[0][0] is sre.NEGATE:
        return [each for each in "a A1.é" if each not in found] or ["\u2603"]
    return list(found)


def _samples(tree: Any) -> list[str]:
    """What a pattern matches: as short as can be, and with each part in its other forms."""
    parts = [_forms(kind, told) for kind, told in tree]
    base = [each[0] for each in parts]
    others = (
        "".join([*base[:at], form, *base[at + 1 :]])
        for at, forms in enumerate(parts)
        for form in forms[1:]
    )
    return ["".join(base), *others]


def _forms(kind: Any, told: Any) -> list[str]:
    if kind is sre.LITERAL:
        return [chr(told)]
    if kind is sre.IN:
        return _members(told)[:3]
    if kind in (sre.ANY, sre.NOT_LITERAL):
        return ["a"]
    if kind is sre.BRANCH:
        return [form for branch in told[1] for form in _samples(branch)[:2]][:6] or [""]
    if kind is sre.SUBPATTERN:
        return _samples(told[3])[:4]
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        least, most, items = told
        inner = _samples(items)[:2]
        return [each * count for each in inner for count in {max(least, 1), min(least + 3, most)}]
    return [""]
