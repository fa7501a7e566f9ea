"""The house sommelier's words, dishes, grapes and sentences: TOML files, read once, checked. Pure.

Files of words hold tables whose language keys (`en de fr es it nl`, `any` for all) list phrases;
every other key says what those phrases mean: a field and its values.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from pydantic import BaseModel

from agent.sommelier.wine import Body, Food, Level, Style, Sweetness
from agent.tables import Strict, read_toml
from agent.text import LANGUAGES, Language, fold

Act = Literal[
    "care", "crisis", "dependence", "grapes", "histamine", "sulphites", "fining", "drunk",
    "off_topic", "rude", "complaint", "service", "photo", "hello", "machine", "thanks", "help",
    "taken", "listening",
    "quantity", "about", "pick", "which", "compare", "knowledge", "foods", "like",
    "search", "ask",
]  # fmt: skip
"""What a message wants done."""

FOLDER: Final = Path(__file__).parent / "data"
SCALES: Final[Mapping[str, Sequence[str]]] = {
    "body": [*Body],
    "tannin": [*Level],
    "acidity": [*Level],
    "sweetness": [*Sweetness],
}
"""The steps of what is told by degrees, from the least to the most."""
SCALE_OF: Final[Mapping[str, str]] = {
    "sweetness": "sweetness", "bodies": "body", "tannins": "tannin", "acidities": "acidity",
}  # fmt: skip
"""The scale of each slot of a taste."""
WORDS: Final = ("styles", "words", "questions", "guests", "places", "numbers")
"""The files of plain words; what a later one says of a phrase adds to what an earlier one does."""


class Entry(NamedTuple):
    """Phrases of one language and what they mean; the language is "any" for all."""

    meanings: tuple[tuple[str, tuple[str, ...]], ...]
    language: str
    phrases: tuple[str, ...]


class Spoken(Strict):
    """One sentence or word in every language."""

    en: str
    de: str
    fr: str
    es: str
    it: str
    nl: str

    def __getitem__(self, language: Language) -> str:
        """What it is in `language`."""
        return str(getattr(self, language))


_Table = TypeVar("_Table", bound=BaseModel)


class Must(Strict):
    """What a wine has to be for a food, whatever else it is."""

    styles: tuple[Style, ...] = ()
    sweetness: tuple[Sweetness, ...] = ()
    tannins: tuple[Level, ...] = ()


class Pairing(Spoken):
    """What kind of wine suits a food, best first, and why."""

    styles: tuple[Style, ...] = ()
    bodies: tuple[Body, ...] = ()
    sweetness: tuple[Sweetness, ...] = ()
    tannins: tuple[Level, ...] = ()
    acidities: tuple[Level, ...] = ()
    must: Must = Must()


class Dish(NamedTuple):
    """What a dish counts as in the catalogue, and the pairing that it goes by."""

    foods: tuple[str, ...]
    pairing: str
    side: bool = False


class Build(Strict):
    """How a grape or a region tastes."""

    colour: Style
    body: Body
    tannin: Level
    acidity: Level

    def rank(self, scale: str) -> int:
        """Where it stands on the scale of body, tannin or acidity."""
        return SCALES[scale].index(getattr(self, scale))


class Profile(Strict):
    """What is known of a grape or a region, to compare it and to stand in for it."""

    name: str
    any: tuple[str, ...] = ()
    profile: Build
    notes: tuple[str, ...]
    home: str
    like: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    made: Literal["", "bottle", "tank"] = ""


class Topic(Strict):
    """What people ask: the question, and a short answer."""

    question: str
    answer: str


class Kind(Strict):
    """What follows from a kind of message; data/acts.toml says how to read it."""

    shown: Act
    alone: Act
    marks: tuple[str, ...] = ()
    topic: str = ""


@cache
def load(name: str) -> Mapping[str, Any]:
    """The contents of a data file; raises what reading or parsing raises."""
    return read_toml(dict[str, Any], FOLDER / f"{name}.toml")


@cache
def grammar(name: str) -> frozenset[str]:
    """One list of words of grammar, folded."""
    return frozenset(map(fold, load("grammar")[name].split()))


@cache
def grammar_phrases(name: str) -> tuple[str, ...]:
    """One list of phrases of grammar, folded; commas part them."""
    return tuple(fold(each.strip()) for each in load("grammar")[name].split(","))


@cache
def speech() -> Mapping[Language, Mapping[str, Any]]:
    """The sentences of every language."""
    return {language: load(f"speech/{language}") for language in LANGUAGES}


def _validated(name: str, model: type[_Table]) -> Mapping[str, _Table]:
    return {key: model.model_validate(table) for key, table in load(name).items()}


@cache
def kinds() -> Mapping[str, Kind]:
    """Every kind of message that the classifier knows."""
    return _validated("acts", Kind)


@cache
def pairings() -> Mapping[str, Pairing]:
    """Every pairing, by its name."""
    return _validated("pairings", Pairing)


@cache
def topics(language: Language) -> Mapping[str, Topic]:
    """Every topic that has a short answer, in one language."""
    return _validated(f"topics/{language}", Topic)


@cache
def aromas() -> Mapping[str, Spoken]:
    """What aromas are called."""
    return _validated("aromas", Spoken)


@cache
def profiles() -> Mapping[str, Profile]:
    """Every grape and region that can be compared, by its name."""
    tables = (*load("grapes")["grape"], *load("compared")["wine"])
    return {found.name: found for found in map(Profile.model_validate, tables)}


@cache
def dishes() -> tuple[Dish, ...]:
    """Every dish; a phrase means its place here."""
    return tuple(
        Dish(
            tuple(map(str, map(Food, table["foods"]))),
            table.get("pairing", table["foods"][0]),
            "side" in table,
        )
        for table in load("dishes")["dish"]
    )


def entries() -> Iterator[Entry]:
    """Every phrase of every file, in the order in which names are taken from them."""
    for number, table in enumerate(load("dishes")["dish"]):
        yield from _entries(table, (("dish", (str(number),)),))
    for name in WORDS:
        for table in load(name)["word"]:
            yield from _entries(table, _meant(table))
    for file, kind, field in (("grapes", "grape", "grapes"), ("compared", "wine", "entity")):
        for table in load(file)[kind]:
            names = (table["name"], *table.get("any", ())) if kind == "grape" else table.get("any")
            yield from _entries({"any": names}, ((field, (table["name"],)),))
    for language, written in load("numbers")["cardinals"].items():
        for number, spoken in enumerate(written.split(","), start=2):
            words_ = tuple(map(str.strip, spoken.split("/")))
            yield Entry((("number", (str(number),)),), language, words_)


def described() -> Iterator[Entry]:
    """What tastes feel like: nobody says it in these words, but something near to them."""
    for table in load("described")["taste"]:
        yield from _entries(table, _meant(table))


def _meant(table: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    meant = {key: value for key, value in table.items() if key not in (*LANGUAGES, "any")}
    return tuple((key, _values(each)) for key, each in meant.items())


def _entries(
    table: Mapping[str, Any], meanings: tuple[tuple[str, tuple[str, ...]], ...]
) -> Iterator[Entry]:
    for language in (*LANGUAGES, "any"):
        if table.get(language):
            yield Entry(meanings, language, tuple(table[language]))


def _values(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
