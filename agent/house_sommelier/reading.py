"""One message as a change of the dialogue: what it wishes, rules out, points at and asks. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import dropwhile, pairwise, takewhile
from operator import attrgetter
from typing import Any, Final

from agent.care.concerns import NO_CARE, Care, read_care
from agent.house_sommelier.data import (
    SCALES,
    Dish,
    dishes,
    grammar_phrases,
    load,
    pairings,
)
from agent.house_sommelier.lexicon import (
    Glossary,
    Meaning,
    Phrases,
    Span,
    Token,
    grammar_stems,
    parse,
    stop_words,
    tokens,
    written_out,
)
from agent.house_sommelier.numbers import NO_NUMBERS, Numbers, read_numbers
from agent.house_sommelier.scope import Scope, foods_with_their_tastes, parts
from agent.house_sommelier.topics import Likely, asked_for, topics_in
from agent.sommelier.wine import Currency
from agent.text import Language, fold
from agent.vocabulary import is_word

_USUAL: Final = ("red", "white", "rose", "sparkling")
_WITH_OWN_COLOUR: Final = frozenset({"sparkling", "fortified", "sweet", "alcohol_free"})
_MOST_TELLING: Final = (
    "regions", "grapes", "text", "styles", "hue", "countries", "elsewhere_from",
)  # fmt: skip
_ENTITIES: Final = ("grapes", "regions", "entity")
_KINDS: Final = frozenset({"hue", "styles", "wine", "grapes"})
_A_DESSERT: Final = frozenset({"fruit_dessert", "creamy_dessert"})
_DESSERTS: Final = _A_DESSERT | {"chocolate", "nuts"}
_NARROWER: Final = frozenset({"grapes", "regions", "text"})
"""What they name is less than a kind of wine: no ice wine is no word against sweet ones."""
_TASTES: Final = frozenset({"sweetness", "bodies", "acidities", "text", "tannins", "trait"})
_SCALED: Final = frozenset({"bodies", "tannins", "acidities", "sweetness"})
_FILLED: Final = _SCALED | {"dish", "text"}
"""Fields that words may fill which mean what a phrase of the tables means."""
_OF_WINE: Final = _SCALED | {"hue", "styles", "grapes", "text"}
_MOST_VALUES: Final = 6
_REMEMBERED: Final = 256
_MOST_TEXT: Final = 200
_MOST_COUNT: Final = 4
_NEAR: Final = 3
MOST_SHOWN: Final = 6
"""Wines of one answer."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The slots of a request. Empty is "not said"; `only` names those that must be met."""

    styles: tuple[str, ...] = ()
    colours: tuple[str, ...] = ()
    sweetness: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()
    tannins: tuple[str, ...] = ()
    acidities: tuple[str, ...] = ()
    grapes: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    dishes: tuple[Dish, ...] = ()
    text: tuple[str, ...] = ()
    name: str = ""
    min_price: float | None = None
    max_price: float | None = None
    currency: Currency | None = None
    min_abv: float | None = None
    max_abv: float | None = None
    order: str = ""
    only: frozenset[str] = frozenset()
    named_dishes: tuple[str, ...] = ()
    named_tastes: tuple[str, ...] = ()

    @property
    def said(self) -> frozenset[str]:
        """The names of the slots that hold something."""
        held = zip(_NAMES_OF_SLOTS, _values_of(self), strict=True)
        return frozenset(name for name, value in held if value not in _NOTHING)


_NAMES_OF_SLOTS: Final = tuple(
    each.name for each in fields(Wishes) if not each.name.startswith(("only", "named_"))
)
_NOTHING: Final = ((), "", None)
_values_of: Final = attrgetter(*_NAMES_OF_SLOTS)  # asked for dozens of times for each message

NO_WISHES: Final = Wishes()


@dataclass(frozen=True, slots=True)
class Slot:
    """One part of a plan: what it wants beside what is wanted of all, and how many bottles.

    `bottles` is 0 if nobody said, 0.5 for half of all; `course` what a menu calls it.
    """

    wishes: Wishes = NO_WISHES
    bottles: float = 0
    course: str = ""

    @property
    def said(self) -> frozenset[str]:
        """The names of what is its own."""
        return self.wishes.said


@dataclass(frozen=True, slots=True)
class Change:
    """What one message says.

    `marks` are all words that are no wish, with their fields, in order; `denied` pairs of a field
    and a value; `unknown` the words that nothing knows, `purpose` those of them that wine is for.
    """

    text: str = ""
    kind: str = ""
    wishes: Wishes = NO_WISHES
    numbers: Numbers = NO_NUMBERS
    denied: frozenset[tuple[str, str]] = frozenset()
    allergens: tuple[str, ...] = ()
    elsewhere: bool = False
    entities: tuple[str, ...] = ()
    care: Care = NO_CARE
    unknown: tuple[str, ...] = ()
    purpose: tuple[str, ...] = ()
    languages: tuple[Language, ...] = ()
    count: int | None = None
    slots: tuple[Slot, ...] = ()
    words: int = 0
    is_question: bool = False
    marks: tuple[tuple[str, str], ...] = ()
    definite: frozenset[tuple[str, str]] = frozenset()
    """What was said with a definite article: "the Italian one"."""
    dropped: frozenset[str] = frozenset()
    """The slots and dishes that no longer count: "forget the lamb", "not for lamb after all"."""
    topics: tuple[Likely, ...] = ()
    """What it may ask to know, the likeliest first."""
    unheard: tuple[str, ...] = ()
    """Runs of words that nothing knows and that may be a dish or a taste, as they are written."""

    @property
    def subjects(self) -> tuple[str, ...]:
        """The topics that it asks for."""
        return asked_for(self.topics)

    def said(self, name: str) -> tuple[str, ...]:
        """The values of a mark, in the order of the message."""
        return tuple(dict.fromkeys(value for key, value in self.marks if key == name))

    def has(self, name: str, *values: str) -> bool:
        """Whether a mark was said, with any of `values` if there are any."""
        return any(key == name and (not values or value in values) for key, value in self.marks)


NO_CHANGE: Final = Change()


@lru_cache(_REMEMBERED)
def read(
    text: str,
    spoken: Language | None = None,
    glossary: Glossary = (),
    *,
    judges: bool = False,
    blames: bool = False,
) -> Change:
    """What a message says; `spoken` is the language of the talk so far.

    Where wine is looked for, it `judges` by all words around it what is named and not wanted; of
    a complaint it `blames` the tastes it tells.

    A talk is read again for each of its calls of a tool, so the last messages are remembered.
    """
    typed, text = text, written_out(text, spoken)
    phrases = _filled(parse(text, spoken), text, glossary)
    topics = topics_in(text, phrases)
    numbers = read_numbers(phrases, in_talk=spoken is not None)
    mentioned = [span for span in phrases.spans if _is_mentioned(span, phrases)]
    spans = [_in_context(span, phrases) for span in phrases.spans if span not in mentioned]
    phrases = phrases.with_spans(foods_with_their_tastes(phrases, spans))
    unused = (each for each in phrases.spans if not _is_used(each, numbers))
    scope = Scope(phrases.with_spans(unused), judges=judges, blames=blames)
    known = frozenset(scope.denied_words).union(
        numbers.used, *(range(span.start, span.end) for span in (*spans, *mentioned))
    )
    words = phrases.words
    unknown = [word for at, word in enumerate(words) if at not in known and _is_telling(word)]
    names = [each for each in _proper_names(phrases, known) if _tells(each)]
    marks = [
        (each.field, value) for s in scope.wanted for each in s.meanings for value in each.values
    ]
    marks += _opening(phrases) + _deictic(phrases) + _listed(phrases)
    vegan = [value for name, value in marks if name == "without_allergens"]
    if {("less_of", "yes"), ("allergen", "sulphites")} <= set(marks):
        vegan.append("sulphites")
    wishes = _wishes(scope, numbers)
    if wishes.styles == ("alcohol_free",):
        numbers = replace(numbers, guests=None, sober=None)
    change = Change(
        text=text,
        wishes=wishes,
        numbers=numbers,
        denied=_denied(scope),
        allergens=tuple(dict.fromkeys((*scope.allergens, *vegan))),
        elsewhere=scope.elsewhere,
        entities=entities_in(phrases.spans),
        care=read_care(typed),
        unknown=tuple(word.written for word in unknown),
        purpose=() if names else _purpose(words, {word.start for word in unknown}, wishes),
        languages=phrases.languages,
        count=_count(phrases, numbers),
        slots=_slots(scope, phrases, wishes),
        words=sum(word.is_word for word in words),
        is_question="?" in text or _ends_with(words, "tags_of_questions"),
        marks=tuple(marks),
        topics=topics,
        definite=_definite(scope),
        dropped=_dropped(scope, wishes),
        unheard=_unheard(text, words, {word.start for word in unknown}, names),
    )
    return replace(change, wishes=_named(change, names))


def _filled(phrases: Phrases, text: str, glossary: Glossary) -> Phrases:
    """`phrases` with the words that mean a dish or a taste, where the message names none.

    Where it names a kind of wine, a dish has to be what that is for.
    """
    words, spans = phrases.words, [*phrases.spans]
    for said, all_meanings in glossary:
        meanings = tuple(each for each in all_meanings if each.field != "topic")
        fields = {each.field for each in meanings}
        told = {field for span in spans for field in span.fields}
        start = next((at for at, each in enumerate(words) if text.startswith(said, each.start)), -1)
        if start < 0 or not fields or fields & told or not fields <= _FILLED:
            continue
        last = words[start].start + len(said)
        end = sum(each.end <= last for each in words)
        is_known = any(span.start < end and start < span.end for span in spans)
        is_beside = "dish" in fields and told & _OF_WINE and not _is_led(words, start)
        if end > start and not is_known and not is_beside:
            spans.append(Span(start, end, meanings))
    return phrases.with_spans(sorted(spans, key=lambda span: span.start))


def _unheard(
    text: str, words: Sequence[Token], unknown: set[int], names: Sequence[str]
) -> tuple[str, ...]:
    """The runs of unknown words; a name only where it says what a wine is for."""
    runs: list[str] = []
    for at, word in enumerate(words):
        if word.start not in unknown or (at and words[at - 1].start in unknown):
            continue
        run = [*takewhile(lambda each: each.start in unknown, words[at:])]
        said = text[run[0].start : run[-1].end][:_MOST_TEXT]
        if _is_led(words, at) or not any(each.written in name for each in run for name in names):
            runs.append(said)
    return tuple(dict.fromkeys(runs))


def _is_led(words: Sequence[Token], at: int) -> bool:
    """Whether "with" or "for" stands shortly before a word."""
    leads = grammar_stems("with") | grammar_stems("for")
    return any(each.stem in leads for each in words[max(at - _NEAR, 0) : at])


def _is_mentioned(span: Span, phrases: Phrases) -> bool:
    """Whether a place or a dish only tells of people: "my German boss", "my cousin Nacho"."""
    is_after_person = phrases.is_among(span.start - 1, "persons")
    is_name = phrases.words[span.start].written[:1].isupper() and "de" not in phrases.languages[:1]
    if "dish" in span.fields and is_name and is_after_person:
        return True
    is_place = bool(span.fields) and span.fields <= {"countries", "regions"}
    beside = (span.start - 1, span.end) if "countries" in span.fields else (span.start - 1,)
    of_people = any(phrases.is_among(at, "persons") for at in beside)
    living = any(phrases.is_among(at, "living") for at in range(span.start - 3, span.start))
    return is_place and (of_people or living)


def _in_context(span: Span, phrases: Phrases) -> Span:
    """A phrase as what stands beside it makes it mean."""
    behind = phrases.at(span.end)
    if "of_kind" in span.fields and behind.fields & _KINDS:
        return replace(span, meanings=(Meaning("ask", ("choose",)),))
    if "refine" in span.values("cue") and _ends_definite(span, phrases):
        return replace(span, meanings=tuple(Meaning("most", (end,)) for end in _ends(span)))
    cues = {"cheaper", "dearer"} & set(span.values("cue"))
    before = {phrases.stem(at) for at in range(span.start - 3, span.start)}
    is_kind = phrases.before(span.start).fields & {"hue", "wine"}
    if not (cues and is_kind and grammar_stems("articles_of_superlatives") & before):
        return span
    # "El tinto más barato que tengas" is the cheapest; "más barato que el segundo" is not.
    follows, then = phrases.stem(span.end), phrases.stem(span.end + 1)
    is_clause = follows in grammar_stems("than_or_that") and then not in grammar_stems("articles")
    if follows in grammar_stems("than") | grammar_stems("than_or_that") and not is_clause:
        return span
    order = "cheapest" if cues == {"cheaper"} else "dearest"
    return replace(span, meanings=(Meaning("order", (order,)),))


def _ends_definite(span: Span, phrases: Phrases) -> bool:
    """Whether a comparative calls one of the wines: "the lighter one", "der leichtere"."""
    at = span.end + phrases.is_among(span.end, "pronouns_alone")
    is_last = at >= len(phrases.words) or not phrases.words[at].is_word
    return is_last and phrases.is_among(span.start - 1, "definite") and bool(_ends(span))


def _ends(span: Span) -> list[str]:
    """The ends of scales that a comparative asks for: "body:low" of "lighter"."""
    return [
        end
        for end, slots in load("questions")["ends"].items()
        if any(
            set(steps) <= {*span.values(slot)} for slot, steps in slots.items() if slot in _SCALED
        )
    ]


def _is_used(span: Span, numbers: Numbers) -> bool:
    """Whether a phrase was read as part of a number and says nothing else."""
    return set(range(span.start, span.end)) <= numbers.used and not span.fields & {"hue"}


def _opening(phrases: Phrases) -> list[tuple[str, str]]:
    """How a question begins, whatever it is about: "is", "why", "ist der"."""
    language = (*phrases.languages, "en")[0]
    at = 0
    while phrases.is_among(at, "openers") or (
        phrases.words[at : at + 1] and phrases.stem(at) == ","
    ):
        at += 1
    said = phrases.stem(at)
    asks = not phrases.at(at).fields
    found = (
        [("ask", "why")] if asks and said in load("questions")["begins"][language].split() else []
    )
    is_beside = phrases.is_among(at, "opens_with") or _ends_with(phrases.words, "on_top")
    found += [("served_with", "yes")] if is_beside else []
    return found + ([("copula", "yes")] if phrases.is_among(at, "copulas") else [])


def _ends_with(words: Sequence[Token], name: str) -> bool:
    """Whether the last words are on a list of grammar: "or not", "oder nich", "on it"."""
    said = " ".join(["", *(each.stem for each in words if each.is_word)][-3:])
    return any(said.endswith(f" {each}") for each in grammar_phrases(name))


def _deictic(phrases: Phrases) -> list[tuple[str, str]]:
    """Whether a pronoun means what was shown: "it", "those", "der" with no noun behind it."""
    words = phrases.words
    for at in range(len(words)):
        if phrases.is_among(at, "pronouns"):
            return [("deictic", "yes")]
        alone = at + 1 == len(words) or words[at + 1].stem in stop_words()
        if phrases.is_among(at, "pronouns_alone") and alone and not phrases.at(at + 1).fields:
            return [("deictic", "yes")]
    return []


def _listed(phrases: Phrases) -> list[tuple[str, str]]:
    """Whether wines stand there with a price each, or are said to, as on a restaurant's list."""
    if (
        any("offered" in span.fields for span in phrases.spans)
        and len(entities_in(phrases.spans)) > 1
    ):
        return [("listed", "yes")]
    ends = [span.end for span in phrases.spans if span.fields & {"grapes", "regions"}]
    priced = [
        any(phrases.words[at].written.isdecimal() for at in range(end, min(end + _NEAR + 1, last)))
        for end, last in pairwise([*ends, len(phrases.words)])
    ]
    return [("listed", "yes")] if sum(priced) > 1 and all(priced[:2]) else []


def _definite(scope: Scope) -> frozenset[tuple[str, str]]:
    """What the words behind a definite article say: "the Italian one", "der Riesling"."""
    phrases = scope.phrases
    return frozenset(
        (meaning.field, value)
        for span in scope.wanted
        if any(phrases.is_among(span.start - back, "definite") for back in (0, 1, 2))
        for meaning in span.meanings
        for value in meaning.values
    )


def _purpose(words: Sequence[Token], unknown: set[int], wishes: Wishes) -> tuple[str, ...]:
    """The unknown words that a wine is for: "to go with floozle", "zum Schnurzel".

    "For" alone tells of an occasion as well, so beside other wishes it says nothing of a dish.
    """
    leads = grammar_stems("with" if wishes.said else "for")
    for at, word in enumerate(words):
        if word.stem in leads:
            following = words[at + 1 : at + 6]
            if {each.stem for each in following[:2]} & grammar_stems("own"):
                continue
            after = dropwhile(lambda each: each.start not in unknown, following[: _NEAR + 1])
            run = list(takewhile(lambda each: each.start in unknown, after))
            if run and max(len(each.stem) for each in run) > 3:
                return tuple(each.written for each in run)
    return ()


def _is_telling(word: Token) -> bool:
    is_word = word.is_word and not word.written[0].isdecimal() and len(word.stem) > 1
    everyday = stop_words(), stop_words("chatter"), grammar_stems("fillers")
    return is_word and not any(word.stem in each for each in everyday)


def _wishes(scope: Scope, numbers: Numbers) -> Wishes:
    """The slots that the words and numbers of a message fill."""
    said: dict[str, list[str]] = {}
    for span in scope.wanted:
        for meaning in span.meanings:
            written = scope.phrases.written(span.start, span.end)
            values = [written if value == "$" else value for value in meaning.values]
            said.setdefault(meaning.field, []).extend(values)
    for meaning in [each for each in scope.implied if each.field not in said]:
        said.setdefault(meaning.field, []).extend(meaning.values)
    filled = {name: tuple(dict.fromkeys(each))[:_MOST_VALUES] for name, each in said.items()}
    wanted, named = _dishes(scope)
    lists = ("tannins", "acidities", "grapes", "countries", "regions", "text")
    told = {"text", "trait"}
    tastes = (each for each in scope.wanted if {"text"} <= each.fields <= told)
    limits: dict[str, float | None] = {
        name: min(map(float, filled.get(name, ())), default=None)
        for name in ("cap", "min_abv", "max_abv")
    }
    listed: dict[str, Any] = {name: filled.get(name, ()) for name in lists}
    return Wishes(
        **(listed | _kinds(filled, scope, numbers)),
        sweetness=_on_scale("sweetness", filled, scope),
        bodies=_on_scale("bodies", filled, scope),
        dishes=wanted,
        name=" ".join((*filled.get("name", ()), *numbers.years)),
        min_price=numbers.min_price,
        max_price=numbers.max_price if numbers.has_price else limits["cap"],
        currency=numbers.currency if numbers.has_price else None,
        min_abv=numbers.min_abv or limits["min_abv"],
        max_abv=numbers.max_abv or limits["max_abv"],
        order=filled.get("order", ("",))[0],
        only=frozenset("styles" if each == "hue" else each for each in scope.only),
        named_dishes=named,
        named_tastes=tuple(
            dict.fromkeys(scope.phrases.written(each.start, each.end) for each in tastes)
        ),
    )


def _on_scale(name: str, said: Mapping[str, tuple[str, ...]], scope: Scope) -> tuple[str, ...]:
    """The wanted steps of a scale without the denied ones; all others if none is wanted."""
    wanted = said.get(name, ())
    out = [span for span in scope.denied if not span.fields & _NARROWER or span.fields <= _TASTES]
    denied = [value for span in out for value in span.values(name)]
    steps = wanted or SCALES["sweetness" if name == "sweetness" else "body"]
    return tuple(str(step) for step in steps if step not in denied) if denied else wanted


def _kinds(said: Mapping[str, tuple[str, ...]], scope: Scope, numbers: Numbers) -> dict[str, Any]:
    """A colour is a style of its own, unless it qualifies another: red, but sparkling and red."""
    hues, styles = said.get("hue", ()), said.get("styles", ())
    if "alcohol_free" in styles or numbers.alcohol_free or _is_for_abstainers(said, scope, numbers):
        fizzy = {"text": ("sparkling",)} if "sparkling" in styles else {}
        return {"styles": ("alcohol_free",), "colours": hues, **fizzy}
    if "sweet" in said.get("sweetness", ()) and hues == ("white",):
        # A white that is to be sweet may be one that a list calls sweet.
        return {"styles": tuple(dict.fromkeys((*hues, *styles, "sweet"))), "colours": hues}
    qualifies = _WITH_OWN_COLOUR & set(styles) or "luscious" in said.get("sweetness", ())
    if hues and qualifies and not (_are_alternatives(scope) or parts(scope.phrases, scope.wanted)):
        return {"styles": styles, "colours": hues}
    out = [each for each in scope.denied if not each.fields & _NARROWER]
    denied = {value for each in out for name in ("hue", "styles") for value in each.values(name)}
    if denied & {*_USUAL} and not (hues or styles):
        styles = tuple(style for style in _USUAL if style not in denied)
    return {"styles": tuple(dict.fromkeys((*hues, *styles)))}


def _is_for_abstainers(said: Mapping[str, tuple[str, ...]], scope: Scope, numbers: Numbers) -> bool:
    """Whether wine is looked for that those who drink none may have: "and for the drivers?".

    That some of the guests drink nothing changes how many bottles are needed, and nothing else.
    """
    group = next((each for each in scope.wanted if _drinks_none(each)), None)
    of_wine = {"hue", "styles", "grapes"} & said.keys() or scope.denied
    if group is None or of_wine or "quantity" in said.get("ask", ()):
        return False
    is_party = numbers.guests is not None and numbers.guests > _MOST_COUNT
    if "sober" in group.fields:
        near = range(group.start - _NEAR, group.start + 1)
        return not is_party and any(scope.phrases.is_among(at, "for") for at in near)
    for_them = any(scope.phrases.is_among(at, "for") for at in range(group.start))
    counts = numbers.sober is not None or "dish" in said
    return not is_party and (for_them or not counts)


def _drinks_none(span: Span) -> bool:
    """Whether a phrase tells of somebody who drinks no alcohol: "drivers", "the pregnant one"."""
    return "group" in span.values("abstains") or "sober" in span.fields


def _are_alternatives(scope: Scope) -> bool:
    """Whether a colour and a style are alternatives ("white or sparkling"), not one wine."""
    kinds = [span for span in scope.wanted if span.fields & {"hue", "styles"}]
    return any(
        word.stem in grammar_stems("either")
        for first, second in pairwise(kinds)
        for word in scope.phrases.words[first.end : second.start]
    )


def _dishes(scope: Scope) -> tuple[tuple[Dish, ...], tuple[str, ...]]:
    """The dishes and what the person calls them; what only goes beside counts if alone."""
    found = []
    spans = [span for span in scope.wanted if "dish" in span.fields]
    # "Starter: scallops" names one dish, and when it comes; a dessert may go without a name.
    own = [each for each in spans if "courses" not in each.fields]
    has_sweet = any(is_dessert(_dish_of(each)) for each in own)
    for span in (
        spans
        if not own
        else [
            each for each in spans if each in own or (not has_sweet and is_dessert(_dish_of(each)))
        ]
    ):
        place = span.values("dish")[0]
        written = scope.phrases.written(span.start, span.end)
        found.append((dishes()[int(place)], written if span.start else written.lower()))
    mains = [each for each in found if not each[0].side] or found
    sweets = [each for each in mains if set(each[0].foods) <= _DESSERTS]
    # "For dessert: plum dumplings" names one dish.
    if len(sweets) > 1:
        mains = [each for each in mains if set(each[0].foods) != _A_DESSERT]
    named = dict(reversed(mains))
    chosen = tuple(dict.fromkeys(dish for dish, _ in mains))
    return chosen, tuple(named[dish] for dish in chosen)


def _denied(scope: Scope) -> frozenset[tuple[str, str]]:
    """What denied phrases rule out: the narrowest that they mean, and unknown names.

    "No champagne" is no sparkling wine from Champagne; any other is welcome.
    """
    pairs = {("name", scope.phrases.stem(at)) for at in scope.denied_words}
    for span in scope.denied:
        name = next((name for name in _MOST_TELLING if name in span.fields), "")
        if "cue" not in span.fields:
            pairs.update((name, value) for value in span.values(name))
    return frozenset(pairs)


_SLOTS: Final = {"dish": "dishes", "hue": "styles"}
"""The slots whose fields have another name."""


def _dropped(scope: Scope, wishes: Wishes) -> frozenset[str]:
    """The slots that a message empties, and fills with nothing else."""
    foods = {"dish" for span in scope.denied if "dish" in span.fields}
    named = {f"dish:{place}" for span in scope.denied for place in span.values("dish")[:1]}
    emptied = {_SLOTS.get(field, field) for field in scope.dropped | foods} - wishes.said
    return frozenset(emptied | named)


def entities_in(spans: Sequence[Span]) -> tuple[str, ...]:
    """The grapes and regions of a message, in order."""
    named = (value for span in spans for field in _ENTITIES for value in span.values(field))
    return tuple(dict.fromkeys(named))


def _count(phrases: Phrases, numbers: Numbers) -> int | None:
    """How many wines are to be shown: "3 reds", "one bottle for all of it", "a mixed case"."""
    if numbers.bottles and any("mixed" in span.fields for span in phrases.spans):
        return min(numbers.bottles, MOST_SHOWN)
    for span in phrases.spans:
        if span.fields & {"wine", "hue", "bottles"}:
            single = phrases.is_among(span.start - 1, "single")
            if 1 <= (number := _number_before(span, phrases) or single) <= _MOST_COUNT:
                return int(number)
    bare = [
        int(amount)
        for span in phrases.spans
        for amount in span.values("number")
        if amount.isdecimal() and span.start not in numbers.used and int(amount) <= _MOST_COUNT
    ]
    is_one = any("just_one" in span.fields for span in phrases.spans)
    return 1 if is_one else bare[0] if len(bare) == 1 else None


def _slots(scope: Scope, phrases: Phrases, wishes: Wishes) -> tuple[Slot, ...]:
    """What a message wants a wine each for: kinds that it joins, the courses of a meal."""
    if found := parts(phrases, scope.wanted):
        return tuple(Slot(_wishes_of(scope, each.spans), each.bottles) for each in found)
    fields = {field for span in scope.wanted for field in span.fields}
    beside = _beside(scope)
    served = [each for each in wishes.dishes if each not in beside]
    if "just_one" not in fields and are_courses(served, is_told="courses" in fields):
        return tuple(each for each in _courses(wishes) if each.wishes.dishes[0] not in beside)
    told = [
        int(value) if value.isdecimal() else _number_before(span, phrases)
        for span in phrases.spans
        for value in span.values("menu")
    ]
    menu = str(load("menus")["menu"].get(str(max(told, default=0)), "")).split()
    courses = (each.partition(":") for each in menu)
    return tuple(Slot(Wishes(styles=(style,)), course=course) for course, _, style in courses)


def _beside(scope: Scope) -> set[Dish]:
    """The dishes that are served with the one before: "scallops with cauliflower and cream"."""
    phrases, found = scope.phrases, set[Dish]()
    spans = [span for span in scope.wanted if "dish" in span.fields]
    for first, second in pairwise(spans):
        joint = range(first.end, second.start)
        is_compound = first.end == second.start and "courses" not in first.fields
        is_with = any(phrases.is_among(at, "served_with") for at in joint)
        is_with &= all(phrases.words[at].is_word for at in joint)
        goes_on = _dish_of(first) in found and all(phrases.is_among(at, "links") for at in joint)
        if is_compound or is_with or goes_on:
            found.add(_dish_of(second))
    # "Two vegetarians" are guests, and what is counted is no course.
    counted = {_dish_of(span) for span in spans if _number_before(span, phrases)}
    return (found - {_dish_of(span) for span in spans[:1]}) | counted


def _dish_of(span: Span) -> Dish:
    return dishes()[int(span.values("dish")[0])]


def _number_before(span: Span, phrases: Phrases) -> int:
    """The number before a phrase, in digits or words; 0 without one."""
    spoken = phrases.before(span.start).values("number")
    said = (*spoken, phrases.stem(span.start - 1))[0].partition(" ")[0].lstrip("~")
    return int(said[:3]) if said.isdecimal() else 0


def _courses(wishes: Wishes) -> tuple[Slot, ...]:
    """A slot for each dish; "sweet" is for the dessert, if there is one."""
    named = zip(wishes.dishes, wishes.named_dishes, strict=True)
    return tuple(
        Slot(Wishes(dishes=(dish,), named_dishes=(name,), sweetness=sweetness))
        for dish, name in named
        for sweetness in [wishes.sweetness if is_dessert(dish) else ()]
    )


def is_dessert(dish: Dish) -> bool:
    """Whether a dish is sweet."""
    return set(dish.foods) <= _DESSERTS


def _wishes_of(scope: Scope, spans: Sequence[Span]) -> Wishes:
    """What one part of a message wishes."""
    part = copy(scope)
    part.wanted, part.denied, part.implied = list(spans), [], []
    return replace(_wishes(part, NO_NUMBERS), only=frozenset())


def are_courses(found: Sequence[Dish], *, is_told: bool = False) -> bool:
    """Whether dishes are to have a wine each: courses by name, or what no one wine suits."""
    sweet = [dish for dish in found if is_dessert(dish)]
    kinds = [{*map(str, pairings()[dish.pairing].styles)} for dish in found]
    apart = len(kinds) == 2 and all(kinds) and not set.intersection(*kinds)
    before = [dish for dish in found if dish not in sweet and "cheese" not in dish.pairing]
    return len(found) > 1 and (is_told or apart or bool(sweet and before))


def _named(change: Change, names: Sequence[str]) -> Wishes:
    """The wishes with what looks like the name of a wine or producer."""
    wishes = change.wishes
    name = " ".join(filter(None, (*names, wishes.name)))
    marks = {name for name, _ in change.marks} - _SAYS_LITTLE
    nothing_else = not (wishes.said or marks or change.denied or change.allergens)
    stocked = change.has("ask", "choose") and not (wishes.said or change.denied)
    stocked = stocked and not change.has("wine") and len(change.unknown) <= _MOST_NAMED
    language = (*change.languages, "en")[0]
    nothing_else &= any(not is_word(fold(word), language) for word in change.unknown)
    is_name = (nothing_else or stocked) and not change.purpose and change.words <= _FEW
    if name == wishes.name and is_name:
        name = " ".join(change.unknown)
    return replace(wishes, name=name[:_MOST_TEXT].strip())


_FEW: Final = 8
_SAYS_LITTLE: Final = frozenset("between min max about joined adds deictic copula".split())
_MOST_NAMED: Final = 3


def _proper_names(phrases: Phrases, known: frozenset[int]) -> Iterator[str]:
    """Unknown words with a capital: a run of them, or a single one within a sentence.

    German writes every noun with a capital, so there a single one says nothing.
    """
    words = phrases.words
    if all(word.written.isupper() for word in words if word.is_word and len(word.written) > 1):
        return
    alone = sum(_is_telling(word) for word in words) == 1
    run: list[int] = []
    for at in range(len(words) + 1):
        if at < len(words) and at not in known and _may_continue(words[at], bool(run)):
            run.append(at)
            continue
        while run and words[run[-1]].stem in grammar_stems("particles"):
            run.pop()
        within = bool(run) and run[0] > 0 and words[run[0] - 1].is_word
        if run and phrases.is_among(at, "for"):
            run = []
        if len(run) > 1 or (run and (within or alone) and phrases.languages[:1] != ("de",)):
            yield " ".join(words[each].written for each in run)
        run = []


def _may_continue(word: Token, inside: bool) -> bool:
    if word.written[0].isupper():
        return inside or word.stem not in stop_words()
    return inside and word.stem in grammar_stems("particles")


def _tells(name: str) -> bool:
    """Whether a name is more than "Château"."""
    return not {token.stem for token in tokens(name)} <= stop_words("houses")
