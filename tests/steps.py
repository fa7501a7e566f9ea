"""How many steps a backtracking matcher takes: counted, for a clock never tells the same twice.

It walks the tree that `re` itself parses a pattern into, and tries what `re` tries, without the
short cuts that `re` takes. What is linear here is linear there.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import permutations
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from types import FrameType
from typing import Any

Then = Callable[[int], bool]
Item = tuple[Any, Any]

LETTERS = "aA1 \n.,-\"'é。"
SETS: dict[Any, Callable[[str], bool]] = {
    sre.CATEGORY_WORD: lambda sign: sign.isalnum() or sign == "_",
    sre.CATEGORY_DIGIT: str.isdecimal,
    sre.CATEGORY_SPACE: str.isspace,
}
NOT = {
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
}
BOUND = 6
MANY = 100_000
ONE = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)


def lines(work: Callable[[], object]) -> int:
    """The lines of Python that `work` runs through."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def superlinear(pattern: re.Pattern[str], size: int = 24) -> str | None:
    """A text that costs far more than twice as much at twice its length; None if none was met."""
    for before, repeated, behind in _hostile(pattern):
        once, twice = (
            steps(pattern, before + repeated * each + behind) for each in (size, 2 * size)
        )
        if twice > min(2.6 * once + 60, MANY):
            return f"{before + repeated * 3 + behind!r}: {once} steps, then {twice}"
    return None


def _hostile(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    signs = _telling_signs(pattern)
    yield from (("", one, "") for one in signs)
    for one, other in permutations(signs, 2):
        yield "", one + other, ""
        yield other, one, other


def _telling_signs(pattern: re.Pattern[str]) -> list[str]:
    """One sign of each kind that the pattern tells apart, nine at most."""
    tree = _tree(pattern)
    tests = [each for each in _items(tree) if each[0] in ONE]
    kinds: dict[tuple[bool, ...], str] = {}
    for sign in (*LETTERS, *(chr(told) for kind, told in _items(tree) if kind is sre.LITERAL)):
        alone = _Matcher(sign, pattern.flags)
        kinds.setdefault(tuple(alone.is_one(*each, 0) for each in tests), sign)
    return list(kinds.values())[:9]


def _items(tree: Any) -> Iterator[Item]:
    if isinstance(tree, tuple) and len(tree) == 2 and isinstance(tree[0], type(sre.LITERAL)):
        yield tree
    if isinstance(tree, tuple | list | _parser.SubPattern):
        for part in tree:
            yield from _items(part)


def steps(pattern: re.Pattern[str], text: str) -> int:
    """The steps that `pattern.finditer(text)` takes, all matches of it."""
    matcher = _Matcher(text, pattern.flags)
    tree, at = _tree(pattern), 0
    while at <= len(text) and matcher.steps <= MANY:
        end = matcher.end(tree, at)
        at = at + 1 if end is None or end == at else end
    return matcher.steps


@cache
def _tree(pattern: re.Pattern[str]) -> list[Item]:
    return list(_parser.parse(pattern.pattern, pattern.flags))


def _bounds(told: Any) -> tuple[int, Any, list[Item]]:
    """How often, and what: a bound is a constant, so that a lower one grows as fast."""
    least, most, items = told
    return min(least, BOUND), most if most is sre.MAXREPEAT else min(most, BOUND), list(items)


class _Matcher:
    def __init__(self, text: str, flags: int) -> None:
        self.steps = 0
        self._text = text
        self._flags = flags
        self._known: dict[tuple[int, Any, str], bool] = {}
        self._groups: dict[int, tuple[int, int]] = {}

    def end(self, items: Sequence[Item], at: int) -> int | None:
        ends: list[int] = []
        found = self._run(items, at, lambda end: not ends.append(end))  # type: ignore[func-returns-value]
        return ends[0] if found and ends else None

    def _run(self, items: Sequence[Item], at: int, then: Then) -> bool:
        if not items:
            return then(at)
        (kind, told), rest = items[0], items[1:]
        self.steps += 1
        if self.steps > MANY:
            return True
        if kind in ONE:
            return self.is_one(kind, told, at) and self._run(rest, at + 1, then)
        follow: Then = lambda end: self._run(rest, end, then)  # noqa: E731
        return bool(getattr(self, f"_{str(kind).lower()}")(told, at, follow))

    def is_one(self, kind: Any, told: Any, at: int) -> bool:
        if at >= len(self._text):
            return False
        key = id(told), kind, self._text[at]
        if key not in self._known:
            self._known[key] = self._tells(kind, told, self._text[at])
        return self._known[key]

    def _tells(self, kind: Any, told: Any, sign: str) -> bool:
        if kind is sre.ANY:
            return sign != "\n" or bool(self._flags & re.DOTALL)
        signs = {sign, sign.lower(), sign.upper()} if self._flags & re.IGNORECASE else {sign}
        if kind is sre.IN:
            negated = told[0][0] is sre.NEGATE
            return any(map(self._member, told, [signs] * len(told))) != negated
        return (chr(told) in signs) == (kind is sre.LITERAL)

    def _member(self, part: Item, signs: set[str]) -> bool:
        kind, told = part
        if kind is sre.LITERAL:
            return chr(told) in signs
        if kind is sre.RANGE:
            return any(told[0] <= ord(sign) <= told[1] for sign in signs if len(sign) == 1)
        if kind is sre.CATEGORY:
            sign = next(iter(signs))
            return not SETS[NOT[told]](sign) if told in NOT else SETS[told](sign)
        return False

    def _branch(self, told: Any, at: int, then: Then) -> bool:
        return any(self._run(list(branch), at, then) for branch in told[1])

    def _subpattern(self, told: Any, at: int, then: Then) -> bool:
        group, _, _, items = told

        def keep(end: int) -> bool:
            before = self._groups.get(group)
            self._groups[group] = (at, end)
            if then(end):
                return True
            if before is not None:
                self._groups[group] = before
            return False

        return self._run(list(items), at, then if group is None else keep)

    def _groupref(self, told: Any, at: int, then: Then) -> bool:
        start, end = self._groups.get(told, (0, 0))
        said = self._text[start:end]
        return self._text.startswith(said, at) and then(at + len(said))

    def _max_repeat(self, told: Any, at: int, then: Then) -> bool:
        least, most, items = _bounds(told)
        if len(items) == 1 and items[0][0] in ONE:
            return any(then(end) for end in reversed(list(self._row(least, most, items[0], at))))

        def again(count: int, end: int) -> bool:
            grown = count == 0 or end > at
            if (most is sre.MAXREPEAT or count < most) and grown:
                more = self._run(
                    items, end, lambda far: (far > end or count < least) and again(count + 1, far)
                )
                if more:
                    return True
            return count >= least and then(end)

        return again(0, at)

    def _min_repeat(self, told: Any, at: int, then: Then) -> bool:
        least, most, items = _bounds(told)

        def again(count: int, end: int) -> bool:
            if count >= least and then(end):
                return True
            if most is not sre.MAXREPEAT and count >= most:
                return False
            return self._run(items, end, lambda far: far > end and again(count + 1, far))

        return again(0, at)

    def _possessive_repeat(self, told: Any, at: int, then: Then) -> bool:
        least, most, items = _bounds(told)
        count = 0
        while most is sre.MAXREPEAT or count < most:
            end = self.end(items, at)
            if end is None or (end == at and count >= least):
                break
            at, count = end, count + 1
        return count >= least and then(at)

    def _row(self, least: int, most: Any, item: Item, at: int) -> Iterator[int]:
        count = 0
        while True:
            if count >= least:
                yield at + count
            if most is not sre.MAXREPEAT and count >= most:
                return
            self.steps += 1
            if not self.is_one(*item, at + count):
                return
            count += 1

    def _atomic_group(self, told: Any, at: int, then: Then) -> bool:
        end = self.end(list(told), at)
        return end is not None and then(end)

    def _assert(self, told: Any, at: int, then: Then) -> bool:
        return self._looks(told, at) and then(at)

    def _assert_not(self, told: Any, at: int, then: Then) -> bool:
        return not self._looks(told, at) and then(at)

    def _looks(self, told: Any, at: int) -> bool:
        direction, items = told
        start = at if direction > 0 else at - items.getwidth()[0]
        return start >= 0 and self.end(list(items), start) is not None

    def _at(self, told: Any, at: int, then: Then) -> bool:
        text, multiline = self._text, self._flags & re.MULTILINE
        if told in (sre.AT_BOUNDARY, sre.AT_NON_BOUNDARY):
            word = SETS[sre.CATEGORY_WORD]
            before, after = at > 0 and word(text[at - 1]), at < len(text) and word(text[at])
            return (before != after) == (told is sre.AT_BOUNDARY) and then(at)
        starts = at == 0 or (bool(multiline) and text[at - 1] == "\n")
        ends = at == len(text) or (told is sre.AT_END and bool(multiline) and text[at] == "\n")
        begin = told in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING)
        stands = (starts if told is sre.AT_BEGINNING else at == 0) if begin else ends
        return stands and then(at)
