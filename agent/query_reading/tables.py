"""Load the tables of what is read in messages: dishes, words, places, grapes, and pairings.

A phrase of a table is known by its key, the stems of its words, and has meanings: the fields of a
request with their values. The field `role` says what a phrase does, such as `not` or `max`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent.query_reading.language_words import WORDS_FILE, load_language_words
from agent.query_reading.tokens import tokenize
from agent.tables import read_toml

DATA_FOLDER: Final = Path(__file__).parent / "data"
ANY_LANGUAGE: Final = "any"
"""The key of the phrases of a row that belong to every language. Its other keys are meanings."""

PhraseKey = tuple[str, ...]
"""The stems of the words of a phrase."""
Values = tuple[str, ...]
Meanings = Mapping[str, Values]
"""The values of a phrase, by the field of the request that gets them."""
Phrases = tuple[str, ...]
"""The phrases of a row of a table in one language, as they are written."""
PhraseColumn = Mapping[str, str]
"""The phrases of a language, separated by commas, by the names of the rows of a table."""


class Dish(NamedTuple):
    """The foods in a dish and the name of its pairing. A side counts only without a main dish."""

    foods: tuple[str, ...]
    pairing: str = ""
    is_side: bool = False


class Profile(NamedTuple):
    """The typical wine of a grape or a region. `grapes` are the grapes of the region."""

    grapes: tuple[str, ...]
    style: str
    body: str
    tannin: str
    acidity: str


class TableRow(NamedTuple):
    """A row of a table: its meanings, and its phrases by language."""

    meanings: Meanings
    phrases: Mapping[str, Phrases]


@cache
def load_dishes() -> tuple[Dish, ...]:
    """Return all dishes. Phrases refer to a dish by its index."""
    dishes: list[Dish] = []
    for row in _load_table("dishes").values():
        foods = tuple(row["foods"])
        pairing = row.get("pairing", foods[0])
        is_side = row.get("side", False)
        dishes.append(Dish(foods, pairing, is_side))
    return tuple(dishes)


@cache
def load_dish_names(language: str) -> Mapping[PhraseKey, str]:
    """Return the phrases of a language for dishes as its table writes them, by key."""
    names: dict[PhraseKey, str] = {}
    for row in _dish_rows():
        for phrase in row.phrases.get(language, ()):
            names.setdefault(_make_key(phrase), phrase)
    return names


def load_pairings() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the filters of each pairing by its name. The best values of a filter come first."""
    return _load_table("pairings")


@cache
def load_profiles() -> Mapping[str, Profile]:
    """Return the profiles of grapes and regions by name."""
    profiles: dict[str, Profile] = {}
    for table in _load_table("grapes").values():
        for name, row in table.items():
            listed_grapes = row.get("grapes", "")
            grapes = _split_phrases(listed_grapes)
            style, body, tannin, acidity = row["profile"].split()
            profiles[name] = Profile(
                grapes=grapes,
                style=style,
                body=body,
                tannin=tannin,
                acidity=acidity,
            )
    return profiles


def find_profile(names: Sequence[str]) -> Profile | None:
    """Return the profile of the first of these grapes and regions that has one, or None."""
    profiles = load_profiles()
    for name in names:
        profile = profiles.get(name)
        if profile is not None:
            return profile
    return None


@cache
def load_rows() -> tuple[TableRow, ...]:
    """Return the rows of the tables of dishes, words, places and grapes.

    Raises:
        ValueError: a language has phrases for a row that is in no table.
    """
    return (*_dish_rows(), *_word_rows(), *_grape_rows())


@cache
def load_lexicon() -> Mapping[PhraseKey, Mapping[str, Meanings]]:
    """Return the meanings of all phrases by key and language."""
    lexicon: dict[PhraseKey, dict[str, dict[str, Values]]] = {}
    for row in load_rows():
        for language, phrases in row.phrases.items():
            for phrase in phrases:
                key = _make_key(phrase)
                by_language = lexicon.setdefault(key, {})
                meanings = by_language.setdefault(language, {})
                _add_meanings(meanings, row.meanings)
    return lexicon


@cache
def load_country_lexicon() -> Mapping[tuple[str, str], Mapping[PhraseKey, Meanings]]:
    """Return the meanings that phrases have in one country only, by language and country."""
    rows = {**_load_table("words"), **_load_table("places")}
    lexicon: dict[tuple[str, str], dict[PhraseKey, Meanings]] = {}
    for language, words in load_language_words().items():
        for country, phrases_by_row in words.country_words.items():
            meanings_by_key = lexicon.setdefault((language, country), {})
            for name, phrases in phrases_by_row.items():
                meanings = _read_meanings(rows[name])
                for phrase in _split_phrases(phrases):
                    meanings_by_key[_make_key(phrase)] = meanings
    return lexicon


def _add_meanings(meanings: dict[str, Values], new: Meanings) -> None:
    """Add the meanings of another row to a phrase.

    The roles of the row are added, and the other values replaced.
    """
    earlier_roles = meanings.get("role", ())
    meanings.update(new)
    if earlier_roles:
        new_roles = new.get("role", ())
        meanings["role"] = earlier_roles + new_roles


def _make_key(phrase: str) -> PhraseKey:
    """Return the key of a phrase. Punctuation is part of it only if the phrase has no words."""
    tokens = tokenize(phrase)
    words = [token for token in tokens if token.is_alphanumeric]
    parts = words or tokens
    return tuple(token.stem for token in parts)


def _dish_rows() -> Iterator[TableRow]:
    phrases_by_language = _load_phrases("dishes")
    dishes = _load_table("dishes")
    for index, (name, row) in enumerate(dishes.items()):
        index_text = str(index)
        meanings = {"dish": (index_text,)}
        phrases = _list_phrases_of(name, row, phrases_by_language)
        yield TableRow(meanings, phrases)


def _word_rows() -> Iterator[TableRow]:
    for table in ("words", "places"):
        phrases_by_language = _load_phrases(table)
        for name, row in _load_table(table).items():
            meanings = _read_meanings(row)
            phrases = _list_phrases_of(name, row, phrases_by_language)
            yield TableRow(meanings, phrases)


def _read_meanings(row: Mapping[str, Any]) -> Meanings:
    """Return the meanings of a row of words or places."""
    meanings: dict[str, Values] = {}
    for field, values in row.items():
        if field != ANY_LANGUAGE:
            meanings[field] = tuple(values)
    return meanings


def _grape_rows() -> Iterator[TableRow]:
    names_by_language = _load_phrases("grapes")
    for grape, row in _load_table_rows("grapes").items():
        names = _list_phrases_of(grape, row, names_by_language)
        other_names = names.pop(ANY_LANGUAGE, ())
        names[ANY_LANGUAGE] = (grape, *other_names)
        meanings = {"grapes": (grape,)}
        yield TableRow(meanings, names)


def _load_phrases(table: str) -> dict[str, PhraseColumn]:
    """Return the phrases of each language for the rows of a table."""
    by_language: dict[str, PhraseColumn] = {}
    for code, words in load_language_words().items():
        phrases: PhraseColumn = getattr(words, table)
        rows = _load_table_rows(table)
        unknown_rows = phrases.keys() - rows.keys()
        if unknown_rows:
            names = ", ".join(sorted(unknown_rows))
            raise ValueError(
                f"{code}/{WORDS_FILE}: data/{table}.toml has no row {names}"
            )
        by_language[code] = phrases
    return by_language


def _list_phrases_of(
    name: str,
    row: Mapping[str, Any],
    phrases_by_language: Mapping[str, PhraseColumn],
) -> dict[str, Phrases]:
    """Return the phrases of a row by language. The phrases of every language are the last."""
    row_phrases: dict[str, Phrases] = {}
    for language, phrases in phrases_by_language.items():
        if name in phrases:
            row_phrases[language] = _split_phrases(phrases[name])
    if ANY_LANGUAGE in row:
        row_phrases[ANY_LANGUAGE] = _split_phrases(row[ANY_LANGUAGE])
    return row_phrases


def _split_phrases(text: str) -> Phrases:
    """Return the phrases of a text, which commas separate.

    A phrase may go over the end of a line.
    """
    phrases: list[str] = []
    for part in text.split(","):
        words = part.split()
        if words:
            phrases.append(" ".join(words))
    return tuple(phrases)


def _load_table_rows(table: str) -> Mapping[str, Any]:
    """Return the rows of a table by name."""
    rows = _load_table(table)
    if table == "grapes":
        rows = rows["grape"]
    return rows


@cache
def _load_table(name: str) -> Mapping[str, Any]:
    file = DATA_FOLDER / f"{name}.toml"
    return read_toml(dict[str, Any], file)
