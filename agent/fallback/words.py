"""Words of a message, and what the known phrases among them mean.

A phrase is looked up by the stems of its words, the longest first. Names of dishes, grapes, places
and kinds of wine are understood in any language, words of grammar in the message's own alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BeforeValidator, ConfigDict, Field

from agent.sommelier.wine import Body, Food, Level, Style, Sweetness
from agent.tables import StrictModel, read_toml
from agent.text import SPOKEN, Spoken, fold, language_evidence, pattern

FOLDER: Final = Path(__file__).parent / "data"
LONGEST_TEXT: Final = 2000
"""Characters of a message that are read."""
SHORTEST_STEMMED: Final = 4
SHORTEST_PART: Final = 4
"""Letters of a part of a compound word."""
SHORTEST_FOREIGN: Final = 4
"""Letters of a word that is understood in another language than the message's."""
LEAST_LEAD: Final = 1.3
"""A language must score this many times more than the language of the user."""
LEAST_EVIDENCE: Final = 0.4
GRAMMAR: Final = frozenset({"mark", "cue", "ordinal", "order", "cap", "number", "allergen"})
"""Fields whose words count in the message's own language alone."""
COMPOUNDED: Final = frozenset({"dish", "colour", "styles", "countries", "regions", "grapes"})
"""Fields whose words stand at the end of compound words: "Zwiebelrostbraten"."""
COMPOUNDING: Final = frozenset({"de", "nl"})
TOKEN: Final = pattern(
    r"[0-9]+(?:[.,'’][0-9]+)*|[\p{L}\p{M}\p{Nl}\p{No}]+|[-–—€$£¥₹₽₩₺₪฿₫₴%°+±~<>=.,;:!?()/\n]"
)
DASHES: Final = "-–—"

Meanings = Mapping[str, tuple[str, ...]]
"""The meaning of a phrase: fields of a request with their values, or a mark of grammar."""


def _phrases(written: str | tuple[str, ...]) -> tuple[str, ...]:
    """Split the phrases of a table, which commas part."""
    parts = written.split(",") if isinstance(written, str) else written
    return tuple(phrase.strip() for phrase in parts if phrase.strip())


Phrases = Annotated[tuple[str, ...], BeforeValidator(_phrases)]


class Entry(StrictModel):
    """Phrases in each language, and `any` for all."""

    en: Phrases = ()
    de: Phrases = ()
    fr: Phrases = ()
    es: Phrases = ()
    it: Phrases = ()
    nl: Phrases = ()
    pt: Phrases = ()
    any: Phrases = ()


class Word(Entry):
    """A phrase of wine, of a place or of grammar; its other fields are what it means."""

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, tuple[str, ...]] = Field(init=False)


class Dish(Entry):
    """The foods of a dish, and its pairing; a `side` does not count beside another dish."""

    foods: tuple[Food, ...]
    pairing: str = ""
    side: bool = False


class Pairing(StrictModel):
    """The kinds of wine that suit a food, the best first."""

    styles: tuple[Style, ...] = ()
    bodies: tuple[Body, ...] = ()
    sweetness: tuple[Sweetness, ...] = ()
    tannins: tuple[Level, ...] = ()
    acidities: tuple[Level, ...] = ()


class Build(NamedTuple):
    """The taste of the wines of a grape or a region."""

    colour: Style
    body: Body
    tannin: Level
    acidity: Level


class Profile(StrictModel):
    """The build of the wines of a grape or a region, and the grapes that a region is `of`."""

    any: Phrases = ()
    build: Annotated[Build, BeforeValidator(str.split)]
    of: Phrases = ()


@cache
def dishes() -> tuple[Dish, ...]:
    """Return every dish; a phrase means its place here."""
    return tuple(read_toml(dict[str, list[Dish]], FOLDER / "dishes.toml")["dish"])


@cache
def pairings() -> Mapping[str, Pairing]:
    """Return every pairing by its name."""
    return read_toml(dict[str, Pairing], FOLDER / "pairings.toml")


@cache
def _profiles() -> Mapping[str, dict[str, Profile]]:
    return read_toml(dict[str, dict[str, Profile]], FOLDER / "grapes.toml")


@cache
def profiles() -> Mapping[str, Profile]:
    """Return every grape and region whose build is known, by its name."""
    return {name: profile for kind in _profiles().values() for name, profile in kind.items()}


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a sign: as written, as compared, and where it stands in the text."""

    written: str
    stem: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Return whether this is a word or a number."""
        return self.written[0].isalnum()


@dataclass(frozen=True, slots=True)
class Span:
    """A known phrase: from which token to before which, and what it means."""

    start: int
    end: int
    meanings: Meanings

    @property
    def places(self) -> range:
        """Return the places of its tokens."""
        return range(self.start, self.end)

    def values(self, field: str) -> tuple[str, ...]:
        """Return the values of a field, none if it is not spoken of."""
        return self.meanings.get(field, ())

    def has(self, mark: str) -> bool:
        """Return whether the phrase is of a kind of grammar."""
        return mark in self.values("mark")


def stem(word: str) -> str:
    """Return a folded word without the commonest plural endings."""
    if len(word) < SHORTEST_STEMMED or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies") and len(word) > SHORTEST_STEMMED:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("shes", "ches", "xes", "zes", "oes")) else word[:-1]


SHORT: Final = {
    "dont": "do not", "doesnt": "does not", "isnt": "is not", "cant": "can not", "wont": "will not",
    "cannot": "can not", "nn": "non", "nich": "nicht", "ned": "nicht", "nix": "nichts",
}  # fmt: skip


def tokens(text: str) -> list[Token]:
    """Return the words and signs of a text; "don't" is "do not", a dash counts before a number."""
    found: list[Token] = []
    matches = list(TOKEN.finditer(text[:LONGEST_TEXT]))
    for at, match in enumerate(matches):
        written, follows = match[0], matches[at + 1][0] if at + 1 < len(matches) else ""
        folded = fold(written)
        if written in DASHES and not (follows[:1].isdecimal() or follows[:1] in "€$£"):
            continue
        if folded == "t" and found and found[-1].stem.endswith("n") and len(found[-1].stem) > 2:
            last = found.pop()
            before = last.stem if last.stem == "can" else last.stem[:-1]
            found.append(Token(last.written, before, last.start, last.end))
            folded = "not"
        for part in SHORT.get(folded, folded).split() or [folded]:
            found.append(Token(written, stem(part), *match.span()))
    return found


def _key(phrase: str) -> tuple[str, ...]:
    """Return a phrase as it is looked up."""
    if phrase.replace(" ", "").isalpha():
        return tuple(map(stem, fold(phrase).split()))
    found = tokens(phrase)
    return tuple(token.stem for token in found if token.is_word) or tuple(
        token.stem for token in found
    )


def _entries() -> Iterator[tuple[Meanings, Entry]]:
    """Yield every entry of the tables with what it means."""
    for number, dish in enumerate(dishes()):
        yield {"dish": (str(number),)}, dish
    for name in ("words", "places"):
        for word in read_toml(dict[str, list[Word]], FOLDER / f"{name}.toml")["word"]:
            yield word.__pydantic_extra__, word
    for name, grape in _profiles()["grape"].items():
        yield {"grapes": (name,)}, Entry(any=(name, *grape.any))


class Lexicon:
    """Every phrase of the tables by its stems, and what it means in which languages."""

    def __init__(self) -> None:
        self._meanings: dict[tuple[str, ...], dict[str, dict[str, tuple[str, ...]]]] = {}
        self.names: dict[tuple[str, tuple[str, ...], str], str] = {}
        self._longest: dict[str, int] = {}
        for meanings, entry in _entries():
            for language in (*SPOKEN, "any"):
                self._add(meanings, language, getattr(entry, language))

    def _add(self, meanings: Meanings, language: str, phrases: Sequence[str]) -> None:
        """Add the phrases of a language for what they mean; the first is what it is called."""
        if phrases and len(meanings) == 1:
            ((field, values),) = meanings.items()
            self.names.setdefault((field, values, language), phrases[0])
        for key in filter(None, map(_key, phrases)):
            self._longest[key[0]] = max(len(key), self._longest.get(key[0], 0))
            known = self._meanings.setdefault(key, {}).setdefault(language, {})
            for field, values in meanings.items():
                known[field] = (*(known.get(field, ()) if field == "mark" else ()), *values)

    def languages(self, key: tuple[str, ...]) -> list[Spoken]:
        """Return the languages that have a phrase."""
        spoken = self._meanings.get(key, {})
        return [language for language in SPOKEN if language in spoken]

    def meanings(self, key: tuple[str, ...], language: str) -> Meanings:
        """Return what a phrase means: in this language, else what names mean in others."""
        spoken = self._meanings.get(key)
        if spoken is None:
            return {}
        own = {**spoken.get("any", {}), **spoken.get(language, {})}
        if own or len("".join(key)) < SHORTEST_FOREIGN:
            return own
        foreign = next(iter(spoken.values()))
        return {field: values for field, values in foreign.items() if field not in GRAMMAR}

    def phrase_at(self, stems: Sequence[str], at: int, language: str = "") -> tuple[str, ...]:
        """Return the longest phrase from a place on that has a meaning; empty if none has."""
        most = min(self._longest.get(stems[at], 0), len(stems) - at)
        keys = (tuple(stems[at : at + length]) for length in range(most, 0, -1))
        if language:
            return next((key for key in keys if self.meanings(key, language)), ())
        return next((key for key in keys if self.languages(key)), ())

    @cached_property
    def parts(self) -> Mapping[str, Meanings]:
        """Return the words that compound words of German and Dutch are made of."""
        found: dict[str, Meanings] = {}
        for key, spoken in self._meanings.items():
            own = {field for lang in ("any", *COMPOUNDING) for field in spoken.get(lang, {})}
            if len(key) == 1 and len(key[0]) >= SHORTEST_PART and own & COMPOUNDED:
                meanings = self.meanings(key, next(iter({*spoken} & COMPOUNDING), "any"))
                found[key[0]] = {
                    field: values for field, values in meanings.items() if field in COMPOUNDED
                }
        return found

    def compound(self, word: str) -> Meanings:
        """Return what a compound word means by its last known part, or else by its first."""
        ends = range(2, len(word) - SHORTEST_PART + 1)
        tails = (self.parts[word[at:]] for at in ends if word[at:] in self.parts)
        if found := next(tails, None):
            return found
        begins = range(len(word) - 2, SHORTEST_PART - 1, -1)
        heads = (self.parts[word[:at]] for at in begins if word[:at] in self.parts)
        return next(heads, {})


@cache
def lexicon() -> Lexicon:
    """Return every phrase, read when the first message comes."""
    return Lexicon()


def scan(words: Sequence[Token], language: str) -> list[Span]:
    """Return the known phrases of a text from left to right, the longest where several begin."""
    known, stems = lexicon(), [token.stem for token in words]
    found: list[Span] = []
    at = 0
    while at < len(stems):
        key = known.phrase_at(stems, at, language)
        meanings = known.meanings(key, language) if key else {}
        if not key and language in COMPOUNDING:
            meanings = known.compound(stems[at])
        end = at + max(len(key), 1)
        if meanings:
            found.append(Span(at, end, meanings))
        at = end
    return found


def language_of(text: str, default: str) -> str:
    """Return the language of a message by its common words and the phrases that it has.

    `default` is the language of who writes: it counts where another is hardly likelier.
    """
    scores = language_evidence(text)
    known, at = lexicon(), 0
    stems = [token.stem for token in tokens(text)]
    while at < len(stems):
        key = known.phrase_at(stems, at)
        languages = known.languages(key) if len("".join(key)) >= SHORTEST_FOREIGN else []
        for language in languages:
            scores[language] += len(key) / len(languages)
        at += max(len(key), 1)
    best = max(scores, key=lambda language: scores[language])
    own = next((score for language, score in scores.items() if language == default), 0.0)
    return best if scores[best] > max(LEAST_EVIDENCE, LEAST_LEAD * own) else default


def name_of(field: str, values: Sequence[Any], language: str) -> str:
    """Return what a language calls these values together; empty if it has no word for them."""
    key = tuple(map(str, values))
    for spoken in (language, "any", "en"):
        if name := lexicon().names.get((field, key, spoken)):
            return name
    return ""


@cache
def food_name(food: str, language: str) -> str:
    """Return what a language calls a food of the catalogue."""
    if language == "en":
        return food.replace("_", " ")
    for number, dish in enumerate(dishes()):
        if dish.foods == (Food(food),) and (name := name_of("dish", (str(number),), language)):
            return name
    return food.replace("_", " ")
