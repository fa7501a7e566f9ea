"""What a message corrects of what was recorded last: number, year, name, price, or all. Pure.

What was recorded last is read anew from what a person said before; nothing is kept for it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final

from agent.house_sommelier.data import entries
from agent.house_sommelier.lexicon import Token, parse, tokens
from agent.memory.cellar import (
    MOST,
    YEARS,
    Cue,
    bottles_of,
    called,
    counts_in,
    guessed,
    has_cue,
    listed,
    price_at,
    read_cellar,
    wine_of,
)
from agent.memory.reading import NARROW, objects, own_words, read_message
from agent.sommelier.taste import Wanted, budget_of, is_of, written
from agent.sommelier.wine import Currency
from agent.text import fold, spaced
from agent.turn import Bottles, Fact, Person

LOOKED_BACK: Final = 4
"""Messages before this one that may have recorded something."""
LONGEST: Final = 16
"""Words of a message that corrects, and says what was wrong."""
SHORT: Final = 8
"""Words of one that says only what is right."""
MOST_IN_WORDS: Final = 20
BARE: Final = 3
"""Words of one that may say nothing else than the year."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded last: bottles added, or taken where the count is negative; and facts."""

    bottles: tuple[Bottles, ...] = ()
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Correction:
    """What a correction changes, and what counts as recorded from then on."""

    changed: tuple[Bottles, ...] = ()
    learned: tuple[Fact, ...] = ()
    unlearned: tuple[Fact, ...] = ()
    now: Recorded = Recorded()


def read_correction(message: str, said: Sequence[str], person: Person) -> Correction | None:
    """Read what a message corrects of what those before it, `said`, had recorded; else None."""
    text = _Text(message)
    if not text.may_correct:
        return None
    # Of what is all gone it is still known what was taken.
    full = tuple(replace(each, count=MOST) for each in person.bottles)
    before, last = replace(person, bottles=full), Recorded()
    for each in said[-LOOKED_BACK:]:
        last = _recorded(each, last, before)
    return _corrected(text, last, person)


def _recorded(message: str, last: Recorded, person: Person) -> Recorded:
    """What counts as recorded last after one more message."""
    text = _Text(message)
    if text.may_correct and (correction := _corrected(text, last, person)):
        return correction.now
    talk = read_cellar(message, person)
    facts = read_message(message).learned
    if talk.changed or facts:
        return Recorded(talk.changed, (*facts, *talk.liked))
    return last if talk else Recorded()


class _Text:
    """A message by its words: the numbers and names in it, and which of them it says are wrong."""

    def __init__(self, message: str) -> None:
        self.text = own_words(message)
        self.words: Sequence[Token] = [each for each in tokens(self.text) if each.written != "~"]
        self.folded = [fold(each.written) for each in self.words]
        self.spaced = spaced(self.folded)

    def has(self, cue: Cue) -> bool:
        """Whether it has words of a kind."""
        return has_cue(self.spaced, cue)

    @cached_property
    def is_bare(self) -> bool:
        """Whether it is a year, and hardly more."""
        return self.years != [] and len(self.words) <= BARE

    @property
    def may_correct(self) -> bool:
        """Whether it is short, asks and wishes nothing, and speaks as one does who corrects."""
        if not 0 < len(self.words) <= LONGEST or "?" in self.text or self.has("wish"):
            return False
        corrects = len(self.words) <= SHORT and self.has("corrects")
        speaks_so = bool(self.denied) or self.has("undo") or self.is_bare or corrects
        return speaks_so and not any("dish" in each.fields for each in parse(self.text).spans)

    @cached_property
    def denied(self) -> frozenset[int]:
        """The places of what is said to be wrong: behind a "not", up to where that ends."""
        found, is_denied = set[int](), False
        for at, word in enumerate(self.folded):
            if word in listed("negates"):
                is_denied = True
            elif not self.words[at].is_word or word in listed("instead"):
                is_denied = False
            elif is_denied:
                found.add(at)
                is_denied = word in listed("filling") or not (word.isdecimal() or at in self.counts)
        return frozenset(found)

    @cached_property
    def counts(self) -> dict[int, int]:
        """The numbers that may count bottles, by their places; few words tell no language."""
        articles = listed("one")
        read = counts_in(self.text, self.words)
        known = {at: n for at, n in read.items() if self.folded[at] not in articles}
        in_any = {at: number_words().get(word, 0) for at, word in enumerate(self.folded)}
        return {at: n for at, n in (in_any | known).items() if n}

    @cached_property
    def years(self) -> list[int]:
        """The years that are said to be right."""
        numbers = (
            int(word)
            for at, word in enumerate(self.folded)
            if word.isdecimal() and at not in self.denied
        )
        return [each for each in numbers if each in YEARS]

    @cached_property
    def prices(self) -> dict[int, tuple[float, Currency]]:
        """The prices that are said to be right, by their places."""
        found = ((at, price_at(self.words, at)) for at in range(len(self.words)))
        return {at: price for at, price in found if price and at not in self.denied}

    @property
    def count(self) -> int | None:
        """How many bottles it were: of several numbers the last that is not said to be wrong."""
        right = [n for at, n in self.counts.items() if at not in {*self.denied, *self.prices}]
        return right[-1] if right else None

    @cached_property
    def wrong(self) -> list[tuple[Wanted, str]]:
        """The wines that are said to be wrong."""
        return self._named(self.denied)

    @cached_property
    def right(self) -> list[tuple[Wanted, str]]:
        """The wines that are said to be right."""
        return self._named({*range(len(self.words))} - self.denied)

    def _named(self, places: Collection[int]) -> list[tuple[Wanted, str]]:
        kept = (each.written if at in places else "," for at, each in enumerate(self.words))
        found = objects(" ".join(kept))
        return [each for each in found if not NARROW.isdisjoint(each[0])]


@cache
def number_words() -> Mapping[str, int]:
    """Return the numbers up to twenty that are words, in all languages."""
    of_each = {
        phrase: int(value)
        for entry in entries()
        for field, (value, *_) in entry.meanings
        if field == "number" and value.isdecimal()
        for phrase in entry.phrases
    }
    return {fold(phrase): n for phrase, n in of_each.items() if n <= MOST_IN_WORDS}


def _corrected(text: _Text, last: Recorded, person: Person) -> Correction | None:
    if text.has("undo"):
        return _undone(text, last)
    return _of_bottles(text, last, person) or _of_facts(text, last)


def _undone(text: _Text, last: Recorded) -> Correction | None:
    """All that was recorded last, taken back; nothing if the message names something else."""
    named = [wanted for wanted, _ in objects(text.text)]
    own = called(last.bottles, named, text.folded)
    if not (last.bottles or last.facts) or (named and not own) or len(text.words) > SHORT:
        return None
    back = tuple(replace(each, count=-each.count, note="") for each in (own or last.bottles))
    return Correction(back, unlearned=() if own else last.facts)


def _of_bottles(text: _Text, last: Recorded, person: Person) -> Correction | None:
    named = [wanted for wanted, _ in (*text.wrong, *text.right)]
    kept = called([each for each in person.bottles if each.count], named, text.folded)
    own = called(last.bottles, named, text.folded) or [*last.bottles[-1:]]
    if own and own[0].count < 0:
        return _of_taken(text, own[0], kept, last)
    old = next(iter(own or kept), None)
    if old is None or text.has("drank") or text.has("praise"):
        return None
    new = _right(text, old)
    is_said = text.denied and (text.count or text.years or text.prices)
    if (new.key, new.count, new.wine) == (old.key, old.count, old.wine) and not is_said:
        return None
    is_same = new.key == old.key
    first = () if is_same else (replace(old, count=-old.count, note=""),)
    added = replace(new, count=new.count - old.count if is_same else new.count)
    return Correction((*first, added), now=Recorded((new,), last.facts))


def _of_taken(
    text: _Text, old: Bottles, kept: Sequence[Bottles], last: Recorded
) -> Correction | None:
    """Of bottles that were drunk: how many they were, or that it was another wine."""
    other = next((each for each in kept if each.key != old.key), None)
    count = text.count or -old.count
    if other is None:
        changed = (replace(old, count=-count - old.count),) if count != -old.count else ()
        return Correction(changed, now=Recorded((replace(old, count=-count),))) if changed else None
    back, taken = replace(old, count=-old.count, note=""), replace(other, count=-count)
    facts = _of_facts(text, last) or Correction(now=last)
    return replace(facts, changed=(back, taken), now=Recorded((taken,), facts.now.facts))


def _right(text: _Text, old: Bottles) -> Bottles:
    """Bottles as they are after what a message says of them."""
    wine = wine_of(old)
    is_meant = not text.wrong or any(is_of(wine, wanted) for wanted, _ in text.wrong)
    names = [said for wanted, said in text.right if is_meant and not is_of(wine, wanted)]
    price, currency = next(iter(text.prices.values()), (wine.price, wine.currency))
    year = text.years[-1] if text.years else wine.vintage
    told = {"vintage": year, "price": price, "currency": currency}
    new = guessed(names[-1], year, price, currency) if names else wine.model_copy(update=told)
    return replace(bottles_of(new, text.count or old.count), note=old.note)


def _of_facts(text: _Text, last: Recorded) -> Correction | None:
    """Of a taste another name, of a budget another number."""
    right = text.right
    numbers = [*(price for price, _ in text.prices.values()), *([text.count] if text.count else [])]
    changed = list[tuple[Fact, Fact]]()
    for fact in last.facts:
        if fact.kind == "budget" and numbers and not right:
            changed.append((fact, _spending(fact, numbers[0], text.text)))
        elif fact.kind in ("hate", "like") and right and fact == last.facts[-1]:
            wanted, said = right[-1]
            changed.append((fact, Fact(fact.kind, written(wanted), said)))
    learned = tuple(new for old, new in changed if new.value != old.value)
    unlearned = tuple(old for old, new in changed if new.value != old.value)
    return Correction((), learned, unlearned, Recorded((), learned)) if learned else None


def _spending(fact: Fact, amount: float, said: str) -> Fact:
    low, _, currency = budget_of(fact.value)
    ends = f"{low:g}-{amount:g}" if low is not None and low < amount else f"{amount:g}"
    return Fact("budget", f"{ends} {currency}", said)
