"""From a person's words to what can be searched for. Pure; one message at a time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from agent.house_sommelier.lexicon import (
    Language,
    Match,
    Meaning,
    Token,
    languages,
    scan,
    spelled_out,
    tokens,
)
from agent.house_sommelier.prices import Numbers, read_numbers
from agent.house_sommelier.stopwords import detect_language, stop_words
from agent.wine import WineQuery

_FILLERS: Final = frozenset(
    "too very so a an any the that really of like eat drink to be being added overly me is it we "
    "you please wine with anything something thing have want much i "
    "trop zu allzu sehr etwas ich de du d la le les une un al el los gegen muy demasiado troppo "
    "molto di il alla a".split()
)
_LINKS: Final = frozenset("or nor oder ou o ni and und et y e".split())
_EITHER: Final = frozenset("or oder ou o".split())
_PARTICLES: Final = frozenset("de du des la le les di del della dei von van d the of and".split())
_HUES: Final = ("red", "white", "rose", "orange")
_WITH_OWN_COLOUR: Final = frozenset({"sparkling", "fortified", "sweet", "alcohol_free"})
_SWEET: Final = Meaning("sweetness", ("sweet", "luscious"))
_DRY: Final = Meaning("sweetness", ("bone_dry", "dry"))
_LIGHT: Final = Meaning("bodies", ("light", "medium_light"))
_FULL: Final = Meaning("bodies", ("medium_full", "full"))
_OPPOSITE: Final[Mapping[Meaning, Meaning]] = MappingProxyType(
    {
        _SWEET: _DRY,
        _DRY: Meaning("sweetness", ("off_dry", "medium", "sweet")),
        _LIGHT: Meaning("bodies", ("medium", "medium_full", "full")),
        _FULL: Meaning("bodies", ("light", "medium_light", "medium")),
    }
)
_LISTS: Final = ("sweetness", "bodies", "foods", "grapes", "countries", "regions")
_MOST_VALUES: Final = 6
_MOST_TEXT: Final = 300


@dataclass(frozen=True, slots=True)
class Understood:
    """What a message says. `query.model_fields_set` holds just the filters that it names.

    `name` is what looks like the name of a wine or producer, `leftovers` the words no table knows,
    `dishes` the foods in the person's own words.
    """

    query: WineQuery
    name: str = ""
    leftovers: tuple[str, ...] = ()
    dishes: tuple[str, ...] = ()
    cues: frozenset[str] = frozenset()
    language: Language | None = None

    @property
    def filters(self) -> frozenset[str]:
        """The names of the fields that the message sets."""
        return frozenset(self.query.model_fields_set)


@dataclass(slots=True)
class _Said:
    """What was said, still in the order of the text."""

    wanted: list[Meaning] = field(default_factory=list)
    unwanted: list[Meaning] = field(default_factory=list)
    food_matches: list[Match] = field(default_factory=list)

    def dishes(self, text: str, words: Sequence[Token], language: Language | None) -> Iterator[str]:
        """The wanted foods as they stand in `text`; "spaghetti carbonara" is one."""
        spans: list[tuple[int, int]] = []
        for match in self.food_matches:
            follows = bool(spans) and spans[-1][1] == match.start
            start = spans.pop()[0] if follows else match.start
            spans.append((start, match.end))
        for start, end in spans:
            dish = text[words[start].start : words[end - 1].end]
            yield dish[0].lower() + dish[1:] if start == 0 and language != "de" else dish

    def values(self, name: str) -> list[str]:
        found = (meaning.values for meaning in self.wanted if meaning.field == name)
        return list(dict.fromkeys(value for values in found for value in values))


def understand(text: str) -> Understood:
    """The filters, names and cues in one message."""
    numbers = read_numbers(spelled_out(text))
    words = tokens(numbers.rest)
    matches = scan(words)
    said = _sort_out(words, matches)
    language = detect_language(_telling_stems(words, matches), _foreign_votes(words, matches))
    if numbers.alcohol_free:
        said.wanted.append(Meaning("styles", ("alcohol_free",)))
    fields = {**_said_fields(said, _either_colour(words, matches)), **_number_fields(numbers, said)}
    leftovers = [word.written for word in _unmatched(words, matches)]
    names = [*said.values("name"), *_proper_names(words, matches, language), *numbers.years]
    if not (names or fields or said.values("text")):
        names = leftovers
    ranking = [*said.values("text"), *(names or _lone_capital(leftovers, language))]
    if ranking:
        fields["text"] = " ".join(ranking)[:_MOST_TEXT].strip()
    return Understood(
        query=WineQuery.model_validate(fields),
        name=" ".join(names),
        leftovers=tuple(leftovers),
        dishes=tuple(said.dishes(numbers.rest, words, language)),
        cues=frozenset(said.values("cue")),
        language=language,
    )


def _telling_stems(words: Sequence[Token], matches: Sequence[Match]) -> list[str]:
    """Names are the same in every language: a Sauvignon Blanc is no sign of French."""
    names = {at for match in matches for at in range(*_span_of_name(match))}
    return [word.stem for at, word in enumerate(words) if at not in names]


def _foreign_votes(words: Sequence[Token], matches: Sequence[Match]) -> list[str]:
    """The languages of phrases that belong to one language other than English."""
    keys = (tuple(word.stem for word in words[match.start : match.end]) for match in matches)
    spoken = (languages()[key] for key in keys)
    return [code for codes in spoken if len(codes) == 1 for code in codes if code not in "*en"]


def _span_of_name(match: Match) -> tuple[int, int]:
    is_name = match.meanings[0].field in ("grapes", "regions")
    return (match.start, match.end) if is_name else (match.start, match.start)


def _lone_capital(leftovers: Sequence[str], language: Language | None) -> list[str]:
    """A single unknown word with a capital, even at the start: "Krug under 300"."""
    lone = len(leftovers) == 1 and leftovers[0][0].isupper() and language != "de"
    return list(leftovers) if lone else []


def _sort_out(words: Sequence[Token], matches: Sequence[Match]) -> _Said:
    """Tell what is wanted from what a "no", "not" or "without" before it excludes."""
    said, starts = _Said(), {match.start: match for match in matches}
    negated, excluded, at = False, frozenset[str](), 0
    while at < len(words):
        match = starts.get(at)
        at = match.end if match else at + 1
        if match is None:
            word = words[at - 1].stem
            excluded = excluded & {"allergen"} if word == "," else excluded
            negated = negated and _goes_on(word, excluded)
            continue
        fields = frozenset(meaning.field for meaning in match.meanings)
        if "not" in fields:
            negated, excluded = True, frozenset()
        elif negated and (not excluded or excluded & fields):
            said.unwanted += _exclusion(match.meanings)
            excluded = fields
        else:
            said.wanted += match.meanings
            said.food_matches += [match] * ("foods" in fields)
            negated = False
    said.wanted += [_OPPOSITE[meaning] for meaning in said.unwanted if meaning in _OPPOSITE]
    return said


def _goes_on(word: str, excluded: frozenset[str]) -> bool:
    """Whether a negation reaches beyond this word: "no egg, milk or fish", not "not red, white"."""
    if not excluded:
        return word in _FILLERS or word in _LINKS
    return word in _LINKS or word == ","


def _exclusion(meanings: Iterable[Meaning]) -> list[Meaning]:
    """A negated fish is an allergen; any other negated thing is just itself."""
    allergens = [meaning for meaning in meanings if meaning.field == "allergen"]
    return allergens or list(meanings)


def _either_colour(words: Sequence[Token], matches: Sequence[Match]) -> bool:
    """Whether a colour and a style are alternatives ("white or sparkling"), not one wine."""
    kinds = [match for match in matches if _is_kind(match)]
    return any(
        first.meanings[0].field != second.meanings[0].field
        and any(word.stem in _EITHER for word in words[first.end : second.start])
        for first, second in pairwise(kinds)
    )


def _is_kind(match: Match) -> bool:
    return match.meanings[0].field in ("hue", "styles")


def _said_fields(said: _Said, either_colour: bool) -> dict[str, object]:
    fields: dict[str, object] = {
        name: values[:_MOST_VALUES] for name in _LISTS if (values := said.values(name))
    }
    allergens = said.values("without_allergens")
    allergens += [v for m in said.unwanted if m.field == "allergen" for v in m.values]
    if allergens:
        fields["without_allergens"] = list(dict.fromkeys(allergens))
    return {**_kind_fields(said, either_colour), **fields}


def _kind_fields(said: _Said, either_colour: bool) -> dict[str, object]:
    """A colour is a style of its own, unless it qualifies another: red, but sparkling and red."""
    hues, styles = said.values("hue"), said.values("styles")
    if "alcohol_free" in styles:
        return {"styles": ["alcohol_free"], **({"colours": hues} if hues else {})}
    is_quality = bool(_WITH_OWN_COLOUR & set(styles)) or "luscious" in said.values("sweetness")
    if hues and is_quality and not either_colour:
        return {"styles": styles, "colours": hues} if styles else {"colours": hues}
    unwanted = [value for meaning in said.unwanted for value in _hue(meaning)]
    if unwanted and not (hues or styles):
        styles = [style for style in (*_HUES, "sparkling") if style not in unwanted]
    return {"styles": [*hues, *styles]} if hues or styles else {}


def _hue(meaning: Meaning) -> tuple[str, ...]:
    return meaning.values if meaning.field == "hue" else ()


def _number_fields(numbers: Numbers, said: _Said) -> dict[str, object]:
    limits: dict[str, object] = {
        "min_price": numbers.min_price,
        "max_price": numbers.max_price,
        "min_abv": numbers.min_abv,
        "max_abv": numbers.max_abv,
    }
    fields = {name: limit for name, limit in limits.items() if limit is not None}
    if numbers.currency and (fields.keys() & {"min_price", "max_price"}):
        fields["currency"] = numbers.currency
    if not fields.keys() & {"min_price", "max_price"} and (caps := said.values("cap")):
        fields["max_price"] = min(map(float, caps))
    if not fields.keys() & {"min_abv", "max_abv"} and (weak := said.values("max_abv")):
        fields["max_abv"] = float(weak[0])
    return fields


def _unmatched(words: Sequence[Token], matches: Sequence[Match]) -> list[Token]:
    """The words that no table knows and that are worth searching for."""
    known = {at for match in matches for at in range(match.start, match.end)}
    return [
        word
        for at, word in enumerate(words)
        if at not in known and word.is_word and len(word.stem) > 1 and word.stem not in stop_words()
    ]


def _proper_names(
    words: Sequence[Token], matches: Sequence[Match], language: Language | None
) -> Iterator[str]:
    """Unknown words with a capital: a run of them, or a single one within a sentence.

    German writes every noun with a capital, so there a single one says nothing.
    """
    if all(word.written.isupper() for word in words if word.is_word and len(word.written) > 1):
        return
    for run in _capital_runs(words, matches):
        after_start = run[0] > 0 and words[run[0] - 1].is_word
        if len(run) > 1 or (after_start and language != "de"):
            yield " ".join(words[at].written for at in run)


def _capital_runs(words: Sequence[Token], matches: Sequence[Match]) -> Iterator[list[int]]:
    known = {at for match in matches for at in range(match.start, match.end)}
    run: list[int] = []
    for at in range(len(words) + 1):
        if at < len(words) and at not in known and _may_continue(words[at], bool(run)):
            run.append(at)
            continue
        while run and words[run[-1]].stem in _PARTICLES:
            run.pop()
        if run:
            yield run
        run = []


def _may_continue(word: Token, inside: bool) -> bool:
    if word.written[0].isupper():
        return inside or word.stem not in stop_words()
    return inside and word.stem in _PARTICLES
