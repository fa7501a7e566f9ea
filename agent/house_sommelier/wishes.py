"""What of a message is wanted, what is excluded, and what somebody does not tolerate. Pure.

Clauses are told by words: an exclusion reaches over fillers and over lists ("no Riesling, Malbec
or Merlot"), an intolerance over a list of things to eat. Neither makes a wish of what it holds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from agent.house_sommelier.lexicon import Language, Match, Meaning, Token
from agent.house_sommelier.stopwords import stop_words

_FILLERS: Final = frozenset(
    "too very so a an any the that really of like eat drink to be being added overly me is it we "
    "you please wine with anything something thing have want much i from made kind sort be in "
    "contain bottle grape stuff either "
    "trop zu allzu sehr etwas ich de du d la le les l un une al el los gegen muy demasiado troppo "
    "molto di il alla a aus vom von wein weine weinen der den dem das die ein eine einen bitte "
    "einem vin des avec viene vino vini sea sean sia siano del della dei degli delle dal dalla "
    "dall dell con que lo las en gusta uit van wijn wijnen te een het al graag mit "
    "liever".split()
)
_ARTICLES: Final = frozenset(
    "a an the un une uno una ein eine einen einem een der den el il".split()
)
LINKS: Final = frozenset("or nor oder ou o ni and und et y e ne noch of en".split())
EITHER: Final = frozenset("or oder ou o of".split())
_ALSO_NOT: Final = EITHER | frozenset("nor ni ne noch".split())
_ORIGIN_OR_KIND: Final = frozenset({"grapes", "countries", "regions", "styles"})
_TOLERANCE_FILLERS: Final = frozenset(
    "to a an the any all kind of some both protein gegen auf das die den von aux au a la le les l "
    "des du de el los las al alla alle all ai agli allo voor aan het een me my il lo i gli uno "
    "un sehr very highly badly severely type product alguns alguna proteina proteine".split()
)
_FOOD_LIKE: Final = frozenset({"allergen", "elsewhere", "foods"})
_LISTED: Final = frozenset({"grapes", "countries", "regions", "allergen"})
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

Mode = Literal["", "not", "allergy"]


@dataclass(slots=True)
class Said:
    """What was said, still in the order of the text.

    `denied` are the meanings of excluded phrases, `denied_words` the places of excluded words that
    no table knows, `elsewhere` whether an allergen was named that no wine declares.
    """

    wanted: list[Meaning] = field(default_factory=list)
    denied: list[tuple[Meaning, ...]] = field(default_factory=list)
    denied_words: list[int] = field(default_factory=list)
    food_matches: list[Match] = field(default_factory=list)
    elsewhere: bool = False

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

    def courses(self) -> tuple[tuple[str, ...], ...]:
        """The canonical foods of each wanted dish, every dish once."""
        foods = (
            m.values for each in self.food_matches for m in each.meanings if m.field == "foods"
        )
        return tuple(dict.fromkeys(foods))

    def values(self, name: str) -> list[str]:
        """All wanted values of a field, each once."""
        found = (meaning.values for meaning in self.wanted if meaning.field == name)
        return list(dict.fromkeys(value for values in found for value in values))

    def denied_values(self, name: str) -> list[str]:
        """All denied values of a field."""
        found = (each.values for meanings in self.denied for each in meanings if each.field == name)
        return [value for values in found for value in values]

    def want(self, match: Match) -> None:
        """Add a wish."""
        self.wanted += match.meanings
        self.food_matches += [match] * ("foods" in fields_of(match))

    def deny(self, match: Match) -> None:
        """Add an exclusion: of fish the allergen, of "sweet" the wish for dry."""
        allergens = tuple(meaning for meaning in match.meanings if meaning.field == "allergen")
        self.denied.append(allergens or match.meanings)
        self.elsewhere |= "elsewhere" in fields_of(match) and not allergens
        if not allergens:
            self.wanted += [_OPPOSITE[each] for each in match.meanings if each in _OPPOSITE]

    def not_tolerate(self, match: Match) -> None:
        """Add an intolerance."""
        allergens = tuple(meaning for meaning in match.meanings if meaning.field == "allergen")
        self.denied += [allergens] if allergens else []
        self.elsewhere |= not allergens

    def take_back(self, match: Match) -> None:
        """A wish that turned out to be none."""
        for meaning in match.meanings:
            if meaning in self.wanted:
                self.wanted.remove(meaning)
        self.food_matches = [each for each in self.food_matches if each is not match]


def fields_of(match: Match) -> frozenset[str]:
    """The fields that a match speaks of."""
    return frozenset(meaning.field for meaning in match.meanings)


def sort_out(words: Sequence[Token], matches: Sequence[Match]) -> Said:
    """Tell what is wanted from what an exclusion or an intolerance holds."""
    reader = _Reader(words, {match.start: match for match in matches})
    at = 0
    while at < len(words):
        match = reader.starts.get(at)
        if match is None:
            reader.read_word(at)
        else:
            reader.read_match(match)
        at = match.end if match else at + 1
    return reader.said


@dataclass(slots=True)
class _Reader:
    """Where in a message the reading is: inside what clause, and what it has excluded so far."""

    words: Sequence[Token]
    starts: Mapping[int, Match]
    said: Said = field(default_factory=Said)
    mode: Mode = ""
    excluded: frozenset[str] = frozenset()
    linked: bool = False
    also_not: bool = False
    last: list[Match] = field(default_factory=list)

    def read_word(self, at: int) -> None:
        """A word that no table knows: the clause goes on or ends."""
        word = self.words[at]
        self.last = self.last if word.stem in LINKS else []
        if not self.mode:
            return
        if self.mode == "not" and not self.excluded and self._is_name(word):
            self.said.denied_words.append(at)
            return
        goes_on = self._tolerance_goes_on if self.mode == "allergy" else self._denial_goes_on
        if self.said.denied_words[-1:] == [at - 1] or not goes_on(word.stem, at):
            self.mode = ""

    def _is_name(self, word: Token) -> bool:
        named = word.is_word and word.written[0].isupper() and len(word.written) > 1
        return named and word.stem not in _FILLERS and word.stem not in stop_words()

    def _tolerance_goes_on(self, word: str, at: int) -> bool:
        if word == ",":
            return bool(_FOOD_LIKE & self._fields_at(at + 1))
        return word in _TOLERANCE_FILLERS or word in LINKS

    def _denial_goes_on(self, word: str, at: int) -> bool:
        """Whether it reaches beyond this word: "no egg, milk or fish", not "not red, white"."""
        if not self.excluded:
            return word in _FILLERS or word in LINKS
        if word == ",":
            self.excluded = self.excluded if self._is_list(at) else self.excluded & {"allergen"}
            return bool(self.excluded)
        self.linked = self.linked or word in LINKS
        self.also_not = self.also_not or word in _ALSO_NOT
        return word in LINKS or (self.linked and word in _FILLERS and word not in _ARTICLES)

    def _is_list(self, comma: int) -> bool:
        """Whether the comma stands in a list that a link ends: "no Merlot, Malbec or Syrah"."""
        at = comma + 1
        while (match := self.starts.get(at)) and fields_of(match) & self.excluded & _LISTED:
            at = match.end
            if at >= len(self.words):
                return False
            if self.words[at].stem in LINKS:
                return bool(self._fields_at(at + 1) & self.excluded)
            at += 1
        return False

    def _fields_at(self, at: int) -> frozenset[str]:
        match = self.starts.get(at)
        return fields_of(match) if match else frozenset()

    def read_match(self, match: Match) -> None:
        """A known phrase: a wish, a marker, or what a marker holds."""
        fields = fields_of(match)
        if "allergy" in fields:
            self._not_tolerated_before(match)
            self._enter("allergy")
        elif "not_before" in fields:
            self._denied_before()
            self._enter("")
        elif "not" in fields:
            self._enter("not")
        elif self.mode == "allergy":
            self._in_intolerance(match, fields)
        elif self.mode == "not":
            self._in_denial(match, fields)
        else:
            self._want(match, fields)

    def _enter(self, mode: Mode) -> None:
        self.mode, self.excluded, self.last = mode, frozenset(), []
        self.linked = self.also_not = False

    def _not_tolerated_before(self, marker: Match) -> None:
        """ "egg and milk allergy": what stands right before the marker."""
        if not self.last or self.last[-1].end != marker.start:
            return
        for match in reversed(self.last):
            if not fields_of(match) & {"allergen", "elsewhere"}:
                return
            self.said.take_back(match)
            self.said.not_tolerate(match)

    def _denied_before(self) -> None:
        """ "Riesling mag ich nicht"."""
        for match in self.last:
            self.said.take_back(match)
            self.said.deny(match)

    def _in_intolerance(self, match: Match, fields: frozenset[str]) -> None:
        if fields & _FOOD_LIKE:
            self.said.not_tolerate(match)
        elif fields != {"ignore"}:
            self._enter("")
            self._want(match, fields)

    def _in_denial(self, match: Match, fields: frozenset[str]) -> None:
        if fields <= {"cue", "ignore"}:
            return
        if self.excluded and not self.excluded & fields and not self._denies_too(fields):
            self._enter("")
            self._want(match, fields)
            return
        self.said.deny(match)
        self.excluded, self.linked, self.also_not = fields, False, False

    def _denies_too(self, fields: frozenset[str]) -> bool:
        """Whether "nothing French or Chardonnay" goes on to another kind of thing."""
        return self.also_not and bool(self.excluded & _ORIGIN_OR_KIND and fields & _ORIGIN_OR_KIND)

    def _want(self, match: Match, fields: frozenset[str]) -> None:
        before = self.words[match.start - 1].stem if match.start else ""
        if fields == {"cue"} and before in EITHER:
            return
        self.said.want(match)
        self.last.append(match)
