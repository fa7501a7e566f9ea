"""The languages that the project knows: each is a folder of `languages/`, named by its code.

A code is that of ISO 639-1, such as "de". Every file in a folder may be missing, and so may every
entry of a file: what a language lacks is said in English, or is not understood in it.
`CONTRIBUTING.md` lists the files.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeVar

from agent.tables import StrictModel, WordSet, read_toml

T = TypeVar("T")

LANGUAGES_FOLDER: Final = Path(__file__).parents[1] / "languages"
ENGLISH: Final = "en"
"""The language of the project, in which everything can be said."""
LANGUAGE_FILE: Final = "language.toml"
ShopTopic = Literal["hours", "address", "delivery", "contact", "staff"]


class Injections(StrictModel):
    """Prompt injections in lower case, as parts of regular expressions.

    `ignore` shortly before `instructions` is an order to forget them, `prompt` asks for them, and
    `role` gives the model another role.
    """

    ignore: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ()
    role: tuple[str, ...] = ()


class Claims(StrictModel):
    """Phrases by which an answer affirms what only a source can know, separated by commas.

    `*` stands for any ending, `...` for a few words.
    """

    stock: str
    bottles: str
    """The words that stand behind the number of bottles in stock."""
    delivery: str
    opening: str
    reservation: str
    vegan: str
    certified: str
    half: str
    magnum: str
    safe: str
    """The words that say that somebody with an allergy may drink a wine."""
    critics: str
    """The names of critics: a number beside them is a score."""
    free_of: str
    """The words before an allergen that a wine is said to lack: "contains no"."""
    asked: str
    """The words beside an allergen that a guest asks about: "contains"."""
    negations: str
    unsure: str
    """The words of who does not know, asks, offers to look, or speaks of such wines in general
    ("vegan means"): the sentence affirms nothing."""


class Language(StrictModel):
    """Holds what is known of a language: the content of its `language.toml`.

    Words are written as the language writes them, in lower case, separated by spaces.
    """

    locale: str = ""
    """The locale of CLDR in which numbers are written for users whose app names no country; by
    default the code of the language."""
    has_partial_catalogue: bool = False
    """True if sentences may be missing in its `messages.po`."""
    stemmer: str = ""
    """The algorithm of snowballstemmer that stems its words."""
    has_compounds: bool = False
    """True if words are written together, such as "Zwiebelrostbraten"."""
    capitalises_nouns: bool = False
    """True if every noun has a capital, so that a capital makes no name."""
    common_words: WordSet = frozenset()
    """The most common words, by which the language is recognised; without them it never is."""
    stop_words: WordSet = frozenset()
    """The words that a search of the documents ignores."""
    abbreviations: WordSet = frozenset()
    """Abbreviations without their last full stop, which does not end a sentence."""
    search_fillers: WordSet = frozenset()
    """Words that do not narrow a search for places, such as "best"."""
    numerals: Mapping[int, WordSet] = {}
    """The number words of which numbers such as "twenty-four" are composed, by their values."""
    numeral_joint: str = ""
    """The word that may stand between two number words: "and"."""
    money: Mapping[str, str] = {}
    """The words for a currency, or for several, whose codes (ISO 4217) are separated by spaces."""
    score_units: WordSet = frozenset()
    """The units of scores, such as "points"."""
    score_of: tuple[str, ...] = ()
    """The words between a score and the highest one: "92 out of 100 points"."""
    event_words: WordSet = frozenset()
    """Words before a year that is the date of an event, not a vintage: "since"."""
    pronouns: WordSet = frozenset()
    """The pronouns with which a sentence may refer to the one before it, such as "it"."""
    places: Mapping[str, str] = {}
    """The names of each category of `agent/places/categories.toml`, separated by commas: first as
    they are searched for; all are understood."""
    place_searches: Mapping[str, str] = {}
    """Ten searches for each of these categories, separated by commas, as people of this language
    type them; without a model the place stands behind each. By default they are in English."""
    shop_questions: Mapping[ShopTopic, str] = {}
    """Phrases, separated by commas, by which a question is about the shop itself, or asks for its
    people. A word that ends with * stands for all that begin so. "Open" alone is too little:
    bottles are open too."""
    shop_greetings: str = ""
    """Headings, separated by commas, above the words with which a shop greets its guests."""
    injections: Injections = Injections()
    claims: Claims | None = None
    """Without it, nothing that an answer affirms in this language is found."""


@cache
def language_codes() -> tuple[str, ...]:
    """Return the codes of all languages, English first."""
    codes = []
    for folder in sorted(LANGUAGES_FOLDER.iterdir()):
        if folder.is_dir() and folder.name != ENGLISH:
            codes.append(folder.name)
    return ENGLISH, *codes


def read_language_files(data_type: type[T], name: str) -> dict[str, T]:
    """Return the files with a name, such as "words.toml", by language, English first.

    Raises:
        ValueError: a file is not valid TOML, or not of this type.
    """
    contents: dict[str, T] = {}
    for code in language_codes():
        file = LANGUAGES_FOLDER / code / name
        if file.exists():
            contents[code] = read_toml(data_type, file)
    return contents


@cache
def load_languages() -> Mapping[str, Language]:
    """Return all languages by their codes, English first.

    Raises:
        ValueError: a `language.toml` is not valid.
    """
    known = read_language_files(Language, LANGUAGE_FILE)
    return {code: known.get(code, Language()) for code in language_codes()}
