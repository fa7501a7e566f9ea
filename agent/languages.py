"""The languages that the project knows. Each is a folder of `languages/`, named by its code.

A code is that of ISO 639-1, such as "de". Every file in a folder may be missing, and so may every
entry of a file. A sentence that is missing is said in English. A word that is missing is not
understood in that language. `CONTRIBUTING.md` lists the files.
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
ShopTopic = Literal[
    "hours",
    "address",
    "delivery",
    "returns",
    "payment",
    "services",
    "contact",
    "staff",
]


class Injections(StrictModel):
    """The words of prompt injections in lower case, as parts of regular expressions."""

    ignore: tuple[str, ...] = ()
    """The words of an order to forget something, such as "ignore"."""
    instructions: tuple[str, ...] = ()
    """The words for the instructions of the model. Shortly after `ignore` they are an injection."""
    prompt: tuple[str, ...] = ()
    """The words that ask for the prompt."""
    role: tuple[str, ...] = ()
    """The words that give the model another role."""


class Claims(StrictModel):
    """Phrases, separated by commas, with which an answer claims what only a source can know.

    `*` stands for any ending, and `...` for a few words.
    """

    stock: str
    bottles: str
    """The words after the number of bottles in stock."""
    delivery: str
    opening: str
    reservation: str
    vegan: str
    certified: str
    half: str
    magnum: str
    safe: str
    """The words that say that somebody with an allergy may drink a wine."""
    free_of: str
    """The words before an allergen that an answer says a wine lacks: "contains no"."""
    asked: str
    """The words beside an allergen that a guest asks about: "contains"."""
    negations: str
    """The words that turn a claim into its opposite, such as "not"."""
    unsure: str
    """The words of somebody who does not know, or speaks of such wines in general ("vegan means").
    A sentence with them affirms nothing."""
    doubts: str
    """The words of a condition, a doubt, a question or an offer to look, such as "if" and "ask".
    The rest of their clause affirms nothing."""
    reassurance: str
    """The words that say of an allergen that there is none, or that it does no harm."""
    unsulphured: str
    """The words that say that no sulphites were added."""
    other_subjects: str
    """The words of a clause that denies something of people, or of some wines only: "I", "not all".
    """
    at_ease: str
    """The words that tell a guest with an allergy to drink without a thought."""
    comparisons: str
    """The words beside a grape or a place that is not the wine's own: "like a Chablis"."""


class Language(StrictModel):
    """The facts and words of a language, from its `language.toml`.

    Words are in lower case and separated by spaces.
    """

    locale: str = ""
    """The locale of CLDR in which numbers are written if the app of a user names no country.

    If it is empty, the locale is the code of the language.
    """
    has_partial_catalogue: bool = False
    """Whether sentences may be missing in its `messages.po`."""
    stemmer: str = ""
    """The algorithm of snowballstemmer that stems its words."""
    has_compounds: bool = False
    """Whether words are written together, such as "Zwiebelrostbraten"."""
    capitalises_nouns: bool = False
    """Whether every noun has a capital letter, so that a capital letter does not make a name."""
    common_words: WordSet = frozenset()
    """The most common words, by which the language is recognised. Without them it never is."""
    stop_words: WordSet = frozenset()
    """The words that a search of the documents ignores."""
    abbreviations: WordSet = frozenset()
    """Abbreviations without their last full stop, which does not end a sentence."""
    search_fillers: WordSet = frozenset()
    """Words that do not narrow a search for places, such as "best"."""
    numerals: Mapping[int, WordSet] = {}
    """The number words by their values. Numbers such as "twenty-four" are composed of them."""
    numeral_joint: str = ""
    """The word that may stand between two number words: "and"."""
    money: Mapping[str, str] = {}
    """The words for currencies, by their ISO 4217 codes. If a word stands for several currencies,
    their codes are separated by spaces."""
    score_units: WordSet = frozenset()
    """The units of scores, such as "points"."""
    score_of: tuple[str, ...] = ()
    """The words between a score and the highest one: "92 out of 100 points"."""
    critics: str = ""
    """The names of critics, separated by commas. A number beside such a name may be a score."""
    medals: str = ""
    """The phrases that say that a wine won a medal, separated by commas. `*` is any ending."""
    few_bottles: str = ""
    """The phrases of a language without `claims` that say that few bottles are left."""
    bottles: WordSet = frozenset()
    """The words for bottles of a language without `claims`. `*` stands for any ending.

    A number before such a word must be in a source.
    """
    event_words: WordSet = frozenset()
    """Words before a year that is the date of an event, not a vintage: "since"."""
    titles: WordSet = frozenset()
    """The titles of the nobility with which names of estates begin, such as "baron".

    Their accents count: "comte" is a title, and "comté" a cheese.
    """
    pronouns: WordSet = frozenset()
    """The pronouns with which a sentence may refer to the one before it, such as "it"."""
    places: Mapping[str, str] = {}
    """The names of each category of `agent/places/categories.toml`, separated by commas. The first
    name is used in searches, and all names are understood."""
    country_places: Mapping[str, Mapping[str, str]] = {}
    """The one of these names that is used in a country, by ISO 3166 code and category."""
    place_searches: Mapping[str, str] = {}
    """Ten searches for each of these categories, separated by commas, as people who speak this
    language type them. Without a model, the place is added at the end of each search. A language
    without searches uses those in English."""
    country_place_searches: Mapping[str, Mapping[str, str]] = {}
    """The same searches by country, for countries where people search in other words."""
    shop_questions: Mapping[ShopTopic, str] = {}
    """The phrases of questions about each topic of the shop, separated by commas.

    `*` stands for any ending. A phrase must not fit other questions: "open" alone may be about a
    bottle.
    """
    shop_greetings: str = ""
    """The headings, separated by commas, below which a shop greets its guests."""
    injections: Injections = Injections()
    claims: Claims | None = None
    """If it is None, no claims of answers in this language are found."""


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
    files = read_language_files(Language, LANGUAGE_FILE)
    languages: dict[str, Language] = {}
    for code in language_codes():
        languages[code] = files.get(code, Language())
    return languages
