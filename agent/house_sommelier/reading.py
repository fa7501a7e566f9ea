"""One message as a change of the dialogue: what it wishes, rules out, points at and asks. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, pairwise, takewhile
from typing import Final, Literal

from agent.care import Concern, care_of
from agent.house_sommelier.clauses import Clauses
from agent.house_sommelier.data import SCALES, Dish, dishes, grammar, load, subjects_by_signs
from agent.house_sommelier.lexicon import (
    Match,
    Meaning,
    Phrases,
    Token,
    grammar_stems,
    house_words,
    likely_languages,
    respelled,
    scan,
    stop_words,
    tokens,
)
from agent.house_sommelier.numbers import NO_NUMBERS, Numbers, read_numbers
from agent.sommelier.wine import Currency
from agent.text import Language

Care = Concern | Literal["grapes"]
"""Why somebody is offered nothing with alcohol, or no wine at all."""

LIGHT_CARES: Final = frozenset({"pregnancy", "under_age", "driving", "medication", "health"})
"""Those that may be of some guests among others."""
_USUAL: Final = ("red", "white", "rose", "sparkling")
_WITH_OWN_COLOUR: Final = frozenset({"sparkling", "fortified", "sweet", "alcohol_free"})
_MOST_TELLING: Final = ("regions", "grapes", "text", "styles", "hue", "countries")
_FOR: Final = frozenset("for with zu zum zur pour avec para con per voor bij met".split())
_SMALL: Final = frozenset(
    "a an some the my our ein eine einem einer der die das dem un une des du de la le les mon ma "
    "el los las mi il lo gli i uno una een het mijn onze nuestra nuestro".split()
)
_SHORTEST_SAID: Final = 3
_ENTITIES: Final = ("grapes", "regions", "entity")
_MOST_VALUES: Final = 6
_MOST_TEXT: Final = 200
_MOST_COUNT: Final = 4
_FEW_WORDS: Final = 3


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
    named_dishes: tuple[str, ...] = ()
    named_tastes: tuple[str, ...] = ()
    named_price: str = ""
    text: tuple[str, ...] = ()
    name: str = ""
    min_price: float | None = None
    max_price: float | None = None
    currency: Currency | None = None
    min_abv: float | None = None
    max_abv: float | None = None
    order: str = ""
    only: frozenset[str] = frozenset()

    @property
    def said(self) -> frozenset[str]:
        """The names of the slots that hold something."""
        named = (each.name for each in fields(self) if not each.name.startswith(("only", "named_")))
        return frozenset(name for name in named if getattr(self, name) not in ((), "", None))


NO_WISHES: Final = Wishes()


@dataclass(frozen=True, slots=True)
class Change:
    """What one message says.

    `people` are the persons it names, `beneficiaries` those of them whom wine is for.
    `marks` are all words that are no wish, with their fields, in order;
    `denied` pairs of a field and a value; `unknown` the words that nothing knows.
    """

    text: str = ""
    wishes: Wishes = NO_WISHES
    numbers: Numbers = NO_NUMBERS
    denied: frozenset[tuple[str, str]] = frozenset()
    allergens: tuple[str, ...] = ()
    elsewhere: bool = False
    entities: tuple[str, ...] = ()
    care: Care | None = None
    unknown: tuple[str, ...] = ()
    purpose: tuple[str, ...] = ()
    languages: tuple[Language, ...] = ()
    count: int | None = None
    by_style: tuple[int, ...] = ()
    words: int = 0
    is_question: bool = False
    marks: tuple[tuple[str, str], ...] = ()
    people: frozenset[str] = frozenset()
    beneficiaries: frozenset[str] = frozenset()
    intolerance: str = ""
    has_drunk: bool = False

    def said(self, name: str) -> tuple[str, ...]:
        """The values of a mark, in the order of the message."""
        return tuple(dict.fromkeys(value for key, value in self.marks if key == name))

    def has(self, name: str, *values: str) -> bool:
        """Whether a mark was said, with any of `values` if there are any."""
        return any(value in values or not values for value in self.said(name))


def read(text: str, spoken: Language | None = None) -> Change:
    """What a message says; `spoken` is the language of the talk so far."""
    raw = tokens(text)
    told = likely_languages(raw, text)
    words = respelled(raw, compounds=not told or bool({"de", "nl"} & {*told, spoken}))
    languages = likely_languages(words, text) or told
    is_short = spoken is not None and sum(word.is_word for word in words) <= _FEW_WORDS
    language = spoken if spoken in languages or not languages or is_short else languages[0]
    languages = (spoken,) if is_short and spoken else languages
    cared = care_of(text)
    phrases = Phrases(words, scan(words, language))
    numbers = read_numbers(phrases, in_talk=spoken is not None)
    phrases = Phrases(words, [_superlative(each, phrases) for each in phrases.matches])
    phrases = Phrases(words, [_of_kind(each, phrases) for each in phrases.matches])
    matches = phrases.matches
    unused = [each for each in matches if not _is_used(each, numbers)]
    sorted_out = Clauses(Phrases(words, unused))
    symptoms = (("symptom", name) for name in subjects_by_signs(text))
    marks = (*_opening(phrases, language), *_marks(sorted_out.wanted), *symptoms)
    vegan = (value for name, value in marks if name == "without_allergens")
    grapes: Care | None = "grapes" if "grapes" in cared.allergies else None
    care = cared.gravest if cared.gravest in ("crisis", "dependence") else grapes or cared.gravest
    known = _known(matches, sorted_out, numbers)
    unmatched = [word for at, word in enumerate(words) if at not in known and _is_telling(word)]
    names = [each for each in _proper_names(words, known, language) if _tells(each)]
    change = Change(
        text=text,
        wishes=_wishes(sorted_out, numbers),
        numbers=numbers,
        denied=_denied(sorted_out),
        allergens=tuple(dict.fromkeys((*sorted_out.allergens, *vegan))),
        elsewhere=sorted_out.elsewhere or any(each.fields == {"elsewhere"} for each in matches),
        entities=_entities(matches),
        care=None if care in LIGHT_CARES and _counts_sober(numbers, marks) else care,
        unknown=tuple(word.written for word in unmatched),
        purpose=_purpose(words, [word.start for word in unmatched]) if not names else (),
        languages=languages,
        count=_count(phrases, numbers),
        by_style=_by_style(phrases),
        words=sum(word.is_word for word in words),
        is_question="?" in text,
        marks=marks,
        people=cared.people,
        beneficiaries=cared.beneficiaries,
        intolerance=cared.intolerance,
        has_drunk=cared.has_drunk,
    )
    return replace(change, wishes=_named(change, names))


def _of_kind(match: Match, phrases: Phrases) -> Match:
    """ "What white?" asks for a wine."""
    kinds = {"hue", "styles", "wine", "grapes", "subject"}
    chooses = "of_kind" in match.fields and phrases.at(match.end).fields & kinds
    return replace(match, meanings=(Meaning("ask", ("choose",)),)) if chooses else match


def _superlative(match: Match, phrases: Phrases) -> Match:
    """ "El tinto más barato" is the cheapest; "más barato que el segundo" is not."""
    cues = {"cheaper", "dearer"} & set(match.values("cue"))
    articles = grammar_stems("articles_of_superlatives")
    before = {phrases.stem(at) for at in range(match.start - 3, match.start)}
    if not (cues and articles & before and phrases.before(match.start).fields & {"hue", "wine"}):
        return match
    follows, then = phrases.stem(match.end), phrases.stem(match.end + 1)
    # "Más caro que tengas": what follows is no wine that was shown.
    is_clause = follows in grammar("than_or_that") and then and then not in articles
    if follows in grammar("than") | grammar("than_or_that") and not is_clause:
        return match
    order = "cheapest" if cues == {"cheaper"} else "dearest"
    return replace(match, meanings=(Meaning("order", (order,)),))


def _is_used(match: Match, numbers: Numbers) -> bool:
    """Whether a phrase was read as part of a number and says nothing else."""
    return set(range(match.start, match.end)) <= numbers.used and not match.fields & {"hue"}


def _counts_sober(numbers: Numbers, marks: Sequence[tuple[str, str]]) -> bool:
    """Whether "five drive", "half do not drink" tells of guests, not of who asks."""
    among = numbers.guests is not None or ("ask", "quantity") in marks or ("half", "yes") in marks
    return numbers.sober is not None and among


def _opening(phrases: Phrases, language: Language | None) -> tuple[tuple[str, str], ...]:
    """ "Is", "does", "why": how a question begins, whatever it is about."""
    begins = load("questions")["begins"][language or "en"].split()
    opens = phrases.written(0, 1).casefold() in begins and not phrases.at(0).fields
    return (("ask", "why"),) if opens else ()


def _marks(wanted: Sequence[Match]) -> Iterator[tuple[str, str]]:
    for match in wanted:
        for meaning in match.meanings:
            for value in meaning.values:
                yield meaning.field, value


def _known(matches: Sequence[Match], clauses: Clauses, numbers: Numbers) -> frozenset[int]:
    """The places of words that have been understood."""
    spans = (range(match.start, match.end) for match in matches)
    return frozenset(clauses.denied_words).union(numbers.used, *spans)


def _purpose(words: Sequence[Token], unknown: Sequence[int]) -> tuple[str, ...]:
    """The unknown words that a wine is for: "to go with floozle", "zum Schnurzel"."""
    for at, word in enumerate(words):
        if word.stem in _FOR:
            after = [each for each in words[at + 1 : at + 5] if each.stem not in _SMALL]
            if after and after[0].start in unknown and len(after[0].stem) > _SHORTEST_SAID:
                run = takewhile(lambda each: each.start in unknown, after)
                return tuple(each.written for each in run)
    return ()


def _is_telling(word: Token) -> bool:
    is_word = word.is_word and not word.written[0].isdecimal()
    return is_word and len(word.stem) > 1 and word.stem not in stop_words()


def _wishes(clauses: Clauses, numbers: Numbers) -> Wishes:
    """The slots that the words and numbers of a message fill."""
    said: dict[str, list[str]] = {}
    for match in clauses.wanted:
        for meaning in match.meanings:
            written = clauses.written(match)
            values = [written if value == "$" else value for value in meaning.values]
            said.setdefault(meaning.field, []).extend(values)
    for meaning in clauses.implied:
        said.setdefault(meaning.field, []).extend(meaning.values)
    filled = {name: tuple(dict.fromkeys(each))[:_MOST_VALUES] for name, each in said.items()}
    wanted, named = _dishes(clauses)
    return Wishes(
        **_kinds(filled, clauses, numbers),
        sweetness=_on_scale("sweetness", filled, clauses),
        bodies=_on_scale("bodies", filled, clauses),
        **{
            name: filled.get(name, ())
            for name in ("tannins", "acidities", "grapes", "countries", "regions", "text")
        },
        dishes=wanted,
        named_dishes=named,
        named_tastes=_named_tastes(clauses),
        named_price=numbers.written,
        name=" ".join((*filled.get("name", ()), *numbers.years)),
        min_price=numbers.min_price,
        max_price=numbers.max_price if numbers.has_price else _least(filled, "cap"),
        currency=numbers.currency if numbers.has_price else None,
        min_abv=numbers.min_abv or _least(filled, "min_abv"),
        max_abv=numbers.max_abv or _least(filled, "max_abv"),
        order=filled.get("order", ("",))[0],
        only=frozenset("styles" if each == "hue" else each for each in clauses.only),
    )


def _named_tastes(clauses: Clauses) -> tuple[str, ...]:
    """The tastes that only rank, in the person's own words."""
    named = (clauses.written(match) for match in clauses.wanted if match.fields == {"text"})
    return tuple(dict.fromkeys(named))


def _least(values: dict[str, tuple[str, ...]], name: str) -> float | None:
    """The least amount that words such as "cheap" mean; None without any."""
    return min(map(float, values.get(name, ())), default=None)


def _on_scale(name: str, values: dict[str, tuple[str, ...]], clauses: Clauses) -> tuple[str, ...]:
    """The wanted steps of a scale without the denied ones; all others if none is wanted."""
    wanted = values.get(name, ())
    denied = [value for match in clauses.denied for value in match.values(name)]
    if not denied:
        return wanted
    scale = SCALES["sweetness" if name == "sweetness" else "body"]
    return tuple(str(step) for step in wanted or scale if step not in denied)


def _kinds(
    values: dict[str, tuple[str, ...]], clauses: Clauses, numbers: Numbers
) -> dict[str, tuple[str, ...]]:
    """A colour is a style of its own, unless it qualifies another: red, but sparkling and red."""
    hues, styles = values.get("hue", ()), values.get("styles", ())
    if "alcohol_free" in styles or numbers.alcohol_free:
        return {"styles": ("alcohol_free",), "colours": hues}
    qualifies = bool(_WITH_OWN_COLOUR & set(styles)) or "luscious" in values.get("sweetness", ())
    if hues and qualifies and not _are_alternatives(clauses):
        return {"styles": styles, "colours": hues}
    denied = {value for match in clauses.denied for value in match.values("hue")}
    if denied and not (hues or styles):
        styles = tuple(style for style in _USUAL if style not in denied)
    return {"styles": tuple(dict.fromkeys((*hues, *styles)))}


def _are_alternatives(clauses: Clauses) -> bool:
    """Whether a colour and a style are alternatives ("white or sparkling"), not one wine."""
    kinds = [match for match in clauses.wanted if match.fields & {"hue", "styles"}]
    either = grammar_stems("either")
    return any(
        any(word.stem in either for word in clauses.phrases.words[first.end : second.start])
        for first, second in pairwise(kinds)
    )


def _dishes(clauses: Clauses) -> tuple[tuple[Dish, ...], tuple[str, ...]]:
    """The dishes and what the person calls them; what only goes beside counts if alone."""
    found = []
    for match in clauses.wanted:
        for place in match.values("dish")[:1]:
            written = clauses.written(match)
            found.append((dishes()[int(place)], written if match.start else written.lower()))
    mains = [each for each in found if not each[0].side] or found
    named = dict.fromkeys(written for _, written in mains)
    return tuple(dict.fromkeys(dish for dish, _ in mains)), tuple(named)


def _denied(clauses: Clauses) -> frozenset[tuple[str, str]]:
    """What denied phrases rule out: the narrowest that they mean, and unknown names."""
    pairs = {pair for match in clauses.denied for pair in _narrowest(match)}
    names = {("name", clauses.phrases.stem(at)) for at in clauses.denied_words}
    return frozenset(pairs | names)


def _narrowest(match: Match) -> Iterator[tuple[str, str]]:
    """ "No champagne" is no sparkling wine from Champagne; any other is welcome."""
    if "cue" in match.fields:
        return
    name = next((name for name in _MOST_TELLING if name in match.fields), None)
    if name:
        yield from ((name, value) for value in match.values(name))


def _entities(matches: Sequence[Match]) -> tuple[str, ...]:
    """The grapes and regions of a message, in order."""
    named = ((value for field in _ENTITIES for value in match.values(field)) for match in matches)
    return tuple(dict.fromkeys(chain.from_iterable(named)))


def _count(phrases: Phrases, numbers: Numbers) -> int | None:
    """How many wines are to be shown: "3 reds", "one bottle for all of it"."""
    for match in phrases.matches:
        named = match.fields & {"wine", "hue"}
        before = phrases.before(match.start).values("number") if named else ()
        number = float(before[0].split()[0].lstrip("~")) if before else 0
        if not number and named | match.fields & {"bottles"}:
            number = _digits_before(match, phrases) or phrases.is_among(match.start - 1, "single")
        if 1 <= number <= _MOST_COUNT:
            return int(number)
    return _bare_count(phrases, numbers)


def _digits_before(match: Match, phrases: Phrases) -> int:
    """The number in digits right before a phrase; 0 if there is none."""
    before = phrases.stem(match.start - 1)
    return int(before) if before.isdecimal() else 0


def _bare_count(phrases: Phrases, numbers: Numbers) -> int | None:
    """ "And if I allow myself two?": a small number that counts nothing else."""
    found = [
        int(amount)
        for match in phrases.matches
        for amount in match.values("number")
        if amount.isdecimal() and match.start not in numbers.used and int(amount) <= _MOST_COUNT
    ]
    return found[0] if len(found) == 1 else None


def _by_style(phrases: Phrases) -> tuple[int, ...]:
    """How many of each colour, in the order of the message: "2 white, 2 red"."""
    kinds = (match for match in phrases.matches if match.fields & {"hue", "styles"})
    counts = [_digits_before(match, phrases) for match in kinds]
    counts = [count for count in counts if 1 <= count <= _MOST_COUNT]
    return tuple(counts) if len(counts) > 1 else ()


def _named(change: Change, names: Sequence[str]) -> Wishes:
    """The wishes with what looks like the name of a wine or producer."""
    wishes = change.wishes
    name = " ".join(filter(None, (*names, wishes.name)))
    nothing_else = not (wishes.said or change.marks or change.denied or change.allergens)
    if name == wishes.name and nothing_else:
        name = " ".join(change.unknown)
    return replace(wishes, name=name[:_MOST_TEXT].strip())


def _proper_names(
    words: Sequence[Token], known: frozenset[int], language: Language | None
) -> Iterator[str]:
    """Unknown words with a capital: a run of them, or a single one within a sentence.

    German writes every noun with a capital, so there a single one says nothing.
    """
    if all(word.written.isupper() for word in words if word.is_word and len(word.written) > 1):
        return
    for run in _capital_runs(words, known):
        after_start = run[0] > 0 and words[run[0] - 1].is_word
        alone = sum(_is_telling(word) for word in words) == 1
        if len(run) > 1 or ((after_start or alone) and language != "de"):
            yield " ".join(words[at].written for at in run)


def _tells(name: str) -> bool:
    """Whether a name is more than "Château"."""
    return not {token.stem for token in tokens(name)} <= house_words()


def _capital_runs(words: Sequence[Token], known: frozenset[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for at in range(len(words) + 1):
        if at < len(words) and at not in known and _may_continue(words[at], bool(run)):
            run.append(at)
            continue
        while run and words[run[-1]].stem in grammar_stems("particles"):
            run.pop()
        if run:
            yield run
        run = []


def _may_continue(word: Token, inside: bool) -> bool:
    if word.written[0].isupper():
        return inside or word.stem not in stop_words()
    return inside and word.stem in grammar_stems("particles")
