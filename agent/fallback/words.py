"""Words of a message, and what the known phrases among them mean.

A phrase is looked up by the stems of its words, the longest first. Names of dishes, grapes, places
and kinds of wine are understood in any language, words of grammar in the message's own alone.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent.language import DETECTED_LANGUAGES, score_languages
from agent.tables import read_toml
from agent.text import fold, pattern

DATA_FOLDER: Final = Path(__file__).parent / "data"
LONGEST_TEXT: Final = 2000
"""Characters of a message that are read."""
LONGEST_PHRASE: Final = 7
"""Words of a phrase."""
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
COMPOUNDING: Final = ("de", "nl")
LANGUAGES: Final = (*DETECTED_LANGUAGES, "any")
"""The languages of phrases; `any` is all of them."""
TOKEN: Final = pattern(
    r"[0-9]+(?:[.,'’][0-9]+)*|[\p{L}\p{M}\p{Nl}\p{No}]+|[-–—€$£¥₹₽₩₺₪฿₫₴%°+±~<>=.,;:!?()/\n]"
)
DASHES: Final = "-–—"

Key = tuple[str, ...]
"""The stems of a phrase."""
Meanings = Mapping[str, tuple[str, ...]]
"""The meaning of a phrase: fields of a request with their values, or a mark of grammar."""


class Dish(NamedTuple):
    """The foods of a dish and its pairing; a `side` does not count beside another dish."""

    foods: tuple[str, ...]
    pairing: str = ""
    side: bool = False


class Profile(NamedTuple):
    """The grapes that a region is `of`, and the build of the wines of a grape or a region."""

    of: tuple[str, ...]
    colour: str
    body: str
    tannin: str
    acidity: str


@cache
def _table(name: str) -> Mapping[str, Any]:
    return read_toml(dict[str, Any], DATA_FOLDER / f"{name}.toml")


@cache
def dishes() -> tuple[Dish, ...]:
    """Return every dish; a phrase means its place here."""
    return tuple(
        Dish(tuple(row["foods"]), row.get("pairing", row["foods"][0]), row.get("side", False))
        for row in _table("dishes")["dish"]
    )


def pairings() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return every pairing by its name: filters for the wines that suit a food, the best first."""
    return _table("pairings")


@cache
def profiles() -> Mapping[str, Profile]:
    """Return every grape and region whose build is known, by its name."""
    rows = (row for kind in _table("grapes").values() for row in kind.items())
    return {name: Profile(_phrases(row.get("of", "")), *row["build"].split()) for name, row in rows}


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a sign: as written, as compared, and where it is in the text."""

    written: str
    stem: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Return whether this is a word or a number."""
        return self.written[0].isalnum()

    @property
    def is_title(self) -> bool:
        """Return whether this begins with a capital letter."""
        return self.written[0].isupper()


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


def strip_plural(word: str) -> str:
    """Return a folded word without the commonest plural endings."""
    if len(word) < SHORTEST_STEMMED or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies") and len(word) > SHORTEST_STEMMED:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("shes", "ches", "xes", "zes", "oes")) else word[:-1]


def tokenize(text: str) -> list[Token]:
    """Return the words and signs of a text; a dash counts before a number alone."""
    text = text[:LONGEST_TEXT]
    return [
        Token(found[0], strip_plural(fold(found[0])), *found.span())
        for found in TOKEN.finditer(text)
        if found[0] not in DASHES or text[found.end() : found.end() + 1] in "0123456789€$£"
    ]


def _key(phrase: str) -> Key:
    """Return a phrase as it is looked up; signs count if it has nothing else."""
    found = tokenize(phrase)
    words = [token for token in found if token.is_word]
    return tuple(token.stem for token in words or found)


def _phrases(row: str) -> tuple[str, ...]:
    """Split the phrases of a table, which commas part."""
    return tuple(phrase.strip() for phrase in row.split(",") if phrase.strip())


@cache
def _entries() -> list[tuple[Meanings, Mapping[str, tuple[str, ...]]]]:
    """Return what each row of the tables means, and its phrases by language."""
    rows = [({"dish": [str(at)]}, row) for at, row in enumerate(_table("dishes")["dish"])]
    rows += [(row, row) for name in ("words", "places") for row in _table(name)["word"]]
    rows += [
        ({"grapes": [name]}, {"any": f"{name}, {row.get('any', '')}"})
        for name, row in _table("grapes")["grape"].items()
    ]
    return [
        (
            {field: tuple(meant[field]) for field in meant if field not in LANGUAGES},
            {language: _phrases(row[language]) for language in LANGUAGES if language in row},
        )
        for meant, row in rows
    ]


@cache
def lexicon() -> Mapping[Key, Mapping[str, Meanings]]:
    """Return the meanings of every phrase by language, read when the first message comes."""
    found: dict[Key, dict[str, dict[str, tuple[str, ...]]]] = {}
    for meanings, phrases in _entries():
        for language, phrase in ((name, phrase) for name in phrases for phrase in phrases[name]):
            known = found.setdefault(_key(phrase), {}).setdefault(language, {})
            for field, values in meanings.items():
                known[field] = (*(known.get(field, ()) if field == "mark" else ()), *values)
    return found


@cache
def names() -> Mapping[tuple[str, str], Mapping[tuple[str, ...], str]]:
    """Return the names of the values of a field in a language: the first phrase for them."""
    found: dict[tuple[str, str], dict[tuple[str, ...], str]] = {}
    for meanings, phrases in _entries():
        if len(meanings) == 1:
            ((field, values),) = meanings.items()
            for language in phrases:
                found.setdefault((field, language), {}).setdefault(values, phrases[language][0])
    return found


@cache
def _phrases_in(language: str) -> Mapping[Key, Meanings]:
    """Return the phrases that a language has, with the names that are understood in it too."""
    found: dict[Key, Meanings] = {}
    for key, spoken in lexicon().items():
        own: Meanings = {**spoken.get("any", {}), **spoken.get(language, {})}
        if not own and len("".join(key)) >= SHORTEST_FOREIGN:
            foreign = next(iter(spoken.values()))
            own = {field: values for field, values in foreign.items() if field not in GRAMMAR}
        if own:
            found[key] = own
    return found


@cache
def _parts() -> Mapping[str, Meanings]:
    """Return the words that compound words of German and Dutch are made of."""
    found: dict[str, Meanings] = {}
    for (word, *further), spoken in lexicon().items():
        for language in ("any", *COMPOUNDING):
            meanings = spoken.get(language, {})
            own = {field: meanings[field] for field in COMPOUNDED & meanings.keys()}
            if own and not further and len(word) >= SHORTEST_PART:
                found.setdefault(word, own)
    return found


def _compound(word: str) -> Meanings:
    """Return what a compound word means by its last known part, or else by its first."""
    parts = _parts()
    tails = (word[at:] for at in range(2, len(word) - SHORTEST_PART + 1))
    heads = (word[:at] for at in range(len(word) - 2, SHORTEST_PART - 1, -1))
    return next((parts[part] for part in (*tails, *heads) if part in parts), {})


def _phrases_of(words: Sequence[Token], known: Container[Key]) -> Iterator[tuple[int, Key]]:
    """Yield the longest known phrase from each place on, and no phrase for a word of none."""
    stems, at = tuple(token.stem for token in words), 0
    while at < len(stems):
        keys = (stems[at : at + length] for length in range(LONGEST_PHRASE, 0, -1))
        key = next((key for key in keys if key in known), ())
        yield at, key
        at += max(len(key), 1)


def find_phrases(words: Sequence[Token], language: str) -> list[Span]:
    """Return the known phrases of a text from left to right, the longest where several begin."""
    known, found = _phrases_in(language), list[Span]()
    for at, key in _phrases_of(words, known):
        compound = _compound(words[at].stem) if not key and language in COMPOUNDING else {}
        if meanings := known.get(key, compound):
            found.append(Span(at, at + max(len(key), 1), meanings))
    return found


def detect_message_language(text: str, default: str) -> str:
    """Return the language of a message by its common words and the phrases that it has.

    `default` is the language of who writes: it counts where another is hardly likelier.
    """
    scores = score_languages(text)
    for _, key in _phrases_of(tokenize(text), lexicon()):
        known = lexicon().get(key, {}) if len("".join(key)) >= SHORTEST_FOREIGN else {}
        languages = [language for language in DETECTED_LANGUAGES if language in known]
        for language in languages:
            scores[language] += len(key) / len(languages)
    best = max(scores, key=lambda language: scores[language])
    own = sum(score for language, score in scores.items() if language == default)
    return best if scores[best] > max(LEAST_EVIDENCE, LEAST_LEAD * own) else default


def get_display_name(field: str, values: Sequence[Any], language: str) -> str:
    """Return what a language calls these values together; empty if it has no word for them."""
    known = (names().get((field, spoken), {}) for spoken in (language, "any", "en"))
    return next((named[key] for named in known if (key := tuple(map(str, values))) in named), "")


@cache
def get_food_name(food: str, language: str) -> str:
    """Return what a language calls a food of the catalogue."""
    places = (str(at) for at, dish in enumerate(dishes()) if dish.foods == (food,))
    names = (get_display_name("dish", (place,), language) for place in places if language != "en")
    return next(filter(None, names), food.replace("_", " "))
