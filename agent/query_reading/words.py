"""Known phrases in messages, and their meanings.

Phrases are compared by the stems of their words, and the longest match wins. Names of dishes,
grapes, places and kinds of wine are understood in every language, grammatical words only in the
language of the message.
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
MAX_TEXT_CHARS: Final = 2000
"""The rest of a message is ignored."""
MAX_PHRASE_WORDS: Final = 7
MIN_PLURAL_LETTERS: Final = 4
"""Shorter words are not taken for plurals."""
MIN_PART_LETTERS: Final = 4
"""The minimum length of the known part of a compound word."""
MIN_REST_CHARS: Final = 2
MIN_FOREIGN_LETTERS: Final = 4
"""The minimum length of a phrase that is understood in languages other than its own."""
MIN_SCORE_RATIO: Final = 1.3
"""A detected language must beat the user's language by this factor."""
MIN_SCORE: Final = 0.4
"""The minimum score of a detected language."""
OWN_LANGUAGE_FIELDS: Final = frozenset(
    {"role", "cue", "ordinal", "order", "usual_max_price", "number", "allergen"}
)
"""Request fields whose phrases are understood only in messages in their language."""
COMPOUND_FIELDS: Final = frozenset({"dish", "colour", "styles", "countries", "regions", "grapes"})
"""Request fields whose phrases occur in compounds, such as "Braten" in "Zwiebelrostbraten"."""
COMPOUND_LANGUAGES: Final = ("de", "nl")
PHRASE_LANGUAGES: Final = (*DETECTED_LANGUAGES, "any")
"""The language keys in the tables; phrases under `any` belong to every language."""
TOKEN: Final = pattern(
    r"[0-9]+(?:[.,'’][0-9]+)*|[\p{L}\p{M}\p{Nl}\p{No}]+|[-–—€$£¥₹₽₩₺₪฿₫₴%°+±~<>=.,;:!?()/\n]"
)
DASHES: Final = "-–—"
OR_WORDS: Final = frozenset("or oder ou o of u".split())
OR_NOR_WORDS: Final = OR_WORDS | frozenset("nor noch ni".split())
LINK_WORDS: Final = OR_NOR_WORDS | frozenset(
    "and und et y e en ne nem neither , / a an the le la les l un une de du des d der "
    "die das den el los las il lo gli i een het uma um os as any auch also other andere anderen "
    "autre altri altre otro outro vin wine wein vino vinho wijn".split()
)
"""The tokens that may stand between two things excluded by one negation."""
CLAUSE_ENDS: Final = frozenset(".;!?\n()")
DISH_PREPOSITIONS: Final = frozenset(
    "with for zu zum zur für fur mit bei beim pour avec au aux para con a per con col alla al voor "
    "bij met com".split()
)

PhraseKey = tuple[str, ...]
"""The stems of the words of a phrase."""
Meanings = Mapping[str, tuple[str, ...]]
"""Maps request fields to the values of a phrase; the field `role` is its grammatical role."""


class Dish(NamedTuple):
    """The foods in a dish and the name of its pairing; a side counts only without a main dish."""

    foods: tuple[str, ...]
    pairing: str = ""
    is_side: bool = False


class Profile(NamedTuple):
    """The typical wine of a grape or a region; `grapes` are those of the region."""

    grapes: tuple[str, ...]
    style: str
    body: str
    tannin: str
    acidity: str


@cache
def _load_table(name: str) -> Mapping[str, Any]:
    return read_toml(dict[str, Any], DATA_FOLDER / f"{name}.toml")


@cache
def load_dishes() -> tuple[Dish, ...]:
    """Return all dishes; phrases refer to them by their index."""
    return tuple(
        Dish(tuple(row["foods"]), row.get("pairing", row["foods"][0]), row.get("side", False))
        for row in _load_table("dishes")["dish"]
    )


def load_pairings() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return wine filters by name of a pairing, preferred values first."""
    return _load_table("pairings")


@cache
def load_profiles() -> Mapping[str, Profile]:
    """Return the profiles of grapes and regions by name; the table `grapes` contains both."""
    rows = {name: row for table in _load_table("grapes").values() for name, row in table.items()}
    return {
        name: Profile(_split_phrases(row.get("grapes", "")), *row["profile"].split())
        for name, row in rows.items()
    }


def find_profile(names: Sequence[str]) -> Profile | None:
    """Return the profile of the first of these grapes and regions that has one, or None."""
    return next((load_profiles()[name] for name in names if name in load_profiles()), None)


@dataclass(frozen=True, slots=True)
class Token:
    """The word, number or punctuation mark `text[start:end]`; `stem` is its folded singular."""

    written: str
    stem: str
    start: int
    end: int

    @property
    def is_alphanumeric(self) -> bool:
        """Return whether this is a word or a number."""
        return self.written[0].isalnum()

    @property
    def is_capitalised(self) -> bool:
        """Return whether this begins with a capital letter."""
        return self.written[0].isupper()


@dataclass(frozen=True, slots=True)
class Phrase:
    """A known phrase in a message: the tokens from index `start` up to `end`, exclusive."""

    start: int
    end: int
    meanings: Meanings

    @property
    def indices(self) -> range:
        """Return the indices of its tokens."""
        return range(self.start, self.end)

    def values(self, field: str) -> tuple[str, ...]:
        """Return the phrase's values for a field, empty if it has none."""
        return self.meanings.get(field, ())

    def has_role(self, role: str) -> bool:
        """Return whether the phrase has a grammatical role."""
        return role in self.values("role")


def strip_plural(word: str) -> str:
    """Return a folded word without the most common plural endings."""
    if len(word) < MIN_PLURAL_LETTERS or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies") and len(word) > MIN_PLURAL_LETTERS:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("shes", "ches", "xes", "zes", "oes")) else word[:-1]


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text, without dashes unless an amount or the end follows."""
    text = text[:MAX_TEXT_CHARS]
    return [
        Token(match[0], strip_plural(fold(match[0])), *match.span())
        for match in TOKEN.finditer(text)
        # A final dash passes too, since "" is in every string: "-" is a phrase of the table.
        if match[0] not in DASHES or text[match.end() : match.end() + 1] in "0123456789€$£"
    ]


def _phrase_key(phrase: str) -> PhraseKey:
    """Return the key of a phrase; punctuation is part of it only if there are no words."""
    tokens = tokenize(phrase)
    words = [token for token in tokens if token.is_alphanumeric]
    return tuple(token.stem for token in words or tokens)


def _split_phrases(row: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in row.split(",") if phrase.strip())


class _Entry(NamedTuple):
    """A row of a table: its meanings, and its phrases by language."""

    meanings: Meanings
    phrases: Mapping[str, tuple[str, ...]]


def _make_entry(meanings: Mapping[str, Sequence[str]], row: Mapping[str, str]) -> _Entry:
    return _Entry(
        {field: tuple(values) for field, values in meanings.items()},
        {code: _split_phrases(row[code]) for code in PHRASE_LANGUAGES if code in row},
    )


@cache
def _load_entries() -> list[_Entry]:
    """Return the rows of the tables of dishes, words, places and grapes."""
    dish_rows = enumerate(_load_table("dishes")["dish"])
    entries = [_make_entry({"dish": [str(index)]}, row) for index, row in dish_rows]
    for row in (*_load_table("words")["word"], *_load_table("places")["word"]):
        meanings = {field: row[field] for field in row if field not in PHRASE_LANGUAGES}
        entries.append(_make_entry(meanings, row))
    for name, row in _load_table("grapes")["grape"].items():
        entries.append(_make_entry({"grapes": [name]}, {"any": f"{name}, {row.get('any', '')}"}))
    return entries


@cache
def load_lexicon() -> Mapping[PhraseKey, Mapping[str, Meanings]]:
    """Return the meanings of all phrases by key and language."""
    lexicon: dict[PhraseKey, dict[str, dict[str, tuple[str, ...]]]] = {}
    for entry in _load_entries():
        for language, phrases in entry.phrases.items():
            for phrase in phrases:
                meanings = lexicon.setdefault(_phrase_key(phrase), {}).setdefault(language, {})
                # A phrase keeps the roles of all its rows; in other fields the last row wins.
                roles = (*meanings.get("role", ()), *entry.meanings.get("role", ()))
                meanings.update(entry.meanings)
                if roles:
                    meanings["role"] = roles
    return lexicon


@cache
def load_display_names() -> Mapping[tuple[str, str], Mapping[tuple[str, ...], str]]:
    """Return the names of values by field and language: the first phrase of each row."""
    names: dict[tuple[str, str], dict[tuple[str, ...], str]] = {}
    for entry in _load_entries():
        if len(entry.meanings) == 1:  # a phrase with more meanings does not name one value
            ((field, values),) = entry.meanings.items()
            for language, phrases in entry.phrases.items():
                names.setdefault((field, language), {}).setdefault(values, phrases[0])
    return names


@cache
def _known_phrases(language: str) -> Mapping[PhraseKey, Meanings]:
    """Return the phrases that are understood in a language, its own and foreign ones."""
    known: dict[PhraseKey, Meanings] = {}
    for key, by_language in load_lexicon().items():
        meanings: Meanings = {**by_language.get("any", {}), **by_language.get(language, {})}
        if not meanings and len("".join(key)) >= MIN_FOREIGN_LETTERS:
            # If several foreign languages have the phrase, the first one in the table counts.
            foreign = next(iter(by_language.values()))
            meanings = {field: foreign[field] for field in foreign.keys() - OWN_LANGUAGE_FIELDS}
        if meanings:
            known[key] = meanings
    return known


@cache
def _load_compound_parts() -> Mapping[str, Meanings]:
    """Return the single words that are understood within compound words."""
    parts: dict[str, Meanings] = {}
    for key, by_language in load_lexicon().items():
        if len(key) > 1 or len(key[0]) < MIN_PART_LETTERS:
            continue
        for language in ("any", *COMPOUND_LANGUAGES):
            meanings = by_language.get(language, {})
            if fields := COMPOUND_FIELDS & meanings.keys():
                parts.setdefault(key[0], {field: meanings[field] for field in fields})
    return parts


def _compound_meanings(word: str) -> Meanings:
    """Return the meanings of the longest known ending of a word, or else of its beginning."""
    parts = _load_compound_parts()
    suffixes = (word[start:] for start in range(MIN_REST_CHARS, len(word) - MIN_PART_LETTERS + 1))
    prefixes = (word[:end] for end in range(len(word) - MIN_REST_CHARS, MIN_PART_LETTERS - 1, -1))
    return next((parts[part] for part in (*suffixes, *prefixes) if part in parts), {})


def _match_phrases(
    tokens: Sequence[Token], known: Container[PhraseKey]
) -> Iterator[tuple[int, PhraseKey]]:
    """Yield each longest phrase's start and key; tokens starting no phrase get an empty key."""
    stems = tuple(token.stem for token in tokens)
    index = 0
    while index < len(stems):
        keys = (stems[index : index + length] for length in range(MAX_PHRASE_WORDS, 0, -1))
        key = next((key for key in keys if key in known), ())
        yield index, key
        index += max(len(key), 1)


def find_phrases(tokens: Sequence[Token], language: str) -> list[Phrase]:
    """Return the known phrases of a message from left to right, without overlaps."""
    known = _known_phrases(language)
    phrases: list[Phrase] = []
    for index, key in _match_phrases(tokens, known):
        if key:
            phrases.append(Phrase(index, index + len(key), known[key]))
        elif language in COMPOUND_LANGUAGES:
            phrases.append(Phrase(index, index + 1, _compound_meanings(tokens[index].stem)))
    return [phrase for phrase in phrases if phrase.meanings]


def detect_message_language(text: str, default: str) -> str:
    """Return a message's language: the user's `default`, unless another one clearly wins."""
    lexicon, scores = load_lexicon(), score_languages(text)
    for _, key in _match_phrases(tokenize(text), lexicon):
        if len("".join(key)) >= MIN_FOREIGN_LETTERS:
            languages = [language for language in DETECTED_LANGUAGES if language in lexicon[key]]
            for language in languages:
                scores[language] += len(key) / len(languages)
    best = max(scores, key=lambda language: scores[language])
    default_score = sum(score for language, score in scores.items() if language == default)
    return best if scores[best] > max(MIN_SCORE, MIN_SCORE_RATIO * default_score) else default


def get_display_name(field: str, values: Sequence[Any], language: str) -> str:
    """Return the name of this combination of values in a language, or an empty string."""
    key = tuple(map(str, values))
    names = (load_display_names().get((field, code), {}) for code in (language, "any", "en"))
    return next((names_by_values[key] for names_by_values in names if key in names_by_values), "")


@cache
def get_food_name(food: str, language: str) -> str:
    """Return the name of a food of the catalogue in a language, or else in English."""
    english = food.replace("_", " ")
    if language == "en":
        return english
    indices = (str(index) for index, dish in enumerate(load_dishes()) if dish.foods == (food,))
    names = (get_display_name("dish", (index,), language) for index in indices)
    return next(filter(None, names), english)
