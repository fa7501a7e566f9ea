"""The house sommelier's words, dishes, grapes and sentences: TOML files, read once, checked. Pure.

Files of words hold tables whose language keys (`en de fr es it nl`, `any` for all) list phrases;
every other key says what those phrases mean: a field and its values.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from agent.sommelier.wine import Body, Food, Level, Style, Sweetness
from agent.text import LANGUAGES, Language, fold, pattern, words

Kind = Literal[
    "care", "crisis", "dependence", "grapes", "histamine", "sulphites", "fining", "drunk",
    "off_topic", "rude", "hello", "machine",
    "thanks", "help", "quantity", "about", "which", "compare", "knowledge", "like", "same",
    "search", "ask",
]  # fmt: skip
"""What a message wants done."""

FOLDER: Final = Path(__file__).parent / "data"
_MOST_READ: Final = 2000
# A glass that wine is poured into is no broken glass.
_IN_A_GLASS: Final = pattern(r"(?i)\b(?:in|im) (?:(?:my|the|our|meinem|dem|mijn|het) )?glass?\b")
SCALES: Final[Mapping[str, Sequence[str]]] = {
    "body": [*Body],
    "tannin": [*Level],
    "acidity": [*Level],
    "sweetness": [*Sweetness],
}
"""The steps of what is told by degrees, from the least to the most."""
WORDS: Final = ("styles", "words", "questions", "guests")
"""The files of plain words; what a later one says of a phrase adds to what an earlier one does."""


class Entry(NamedTuple):
    """Phrases of one language and what they mean; the language is "any" for all."""

    meanings: tuple[tuple[str, tuple[str, ...]], ...]
    language: str
    phrases: tuple[str, ...]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Spoken(_Strict):
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


class Must(_Strict):
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


class Build(_Strict):
    """How a grape or a region tastes."""

    colour: Style
    body: Body
    tannin: Level
    acidity: Level

    def rank(self, scale: str) -> int:
        """Where it stands on the scale of body, tannin or acidity."""
        return SCALES[scale].index(getattr(self, scale))


class Profile(_Strict):
    """What is known of a grape or a region, to compare it and to stand in for it."""

    name: str
    any: tuple[str, ...] = ()
    profile: Build
    notes: tuple[str, ...]
    home: str
    like: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    made: Literal["", "bottle", "tank"] = ""


class Subject(Spoken):
    """A subject of wine knowledge: the words it is asked by, and a short answer.

    `about` is a trait, a slot or a style that it explains ("trait:keeps").
    """

    asked: tuple[str, ...]
    signs: tuple[str, ...] = ()
    """Sets of words, `*` for any ending: a message that has one of each is about the subject."""
    about: str = ""
    article: str = ""


class Rule(_Strict):
    """When a message is of a kind; data/kinds.toml says how to read it."""

    kind: Kind
    all: frozenset[str] = frozenset()
    any: tuple[str, ...] = ()
    none: frozenset[str] = frozenset()
    within: frozenset[str] | None = None
    beyond: frozenset[str] | None = None

    def holds(self, facts: frozenset[str], slots: frozenset[str]) -> bool:
        """Whether a message of these facts, which fills these slots, is of the kind."""
        if not self.all <= facts or self.none & facts:
            return False
        if self.any and not any(facts.issuperset(each.split()) for each in self.any):
            return False
        is_within = self.within is None or slots <= self.within
        return is_within and (self.beyond is None or bool(slots - self.beyond))


@cache
def load(name: str) -> Mapping[str, Any]:
    """The contents of a data file; raises what reading or parsing raises."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def grammar(name: str) -> frozenset[str]:
    """One list of words of grammar, as written."""
    return frozenset(load("grammar")[name].split())


@cache
def rules() -> tuple[Rule, ...]:
    """The rules that tell what a message wants done, the gravest first."""
    return tuple(map(Rule.model_validate, load("kinds")["rule"]))


@cache
def speech() -> Mapping[Language, Mapping[str, Any]]:
    """The sentences of every language."""
    return {language: load(f"speech/{language}") for language in LANGUAGES}


@cache
def pairings() -> Mapping[str, Pairing]:
    """Every pairing, by its name."""
    return _validated("pairings", Pairing)


@cache
def subjects() -> Mapping[str, Subject]:
    """Every subject that has a short answer."""
    return _validated("knowledge", Subject)


@cache
def _signs() -> Mapping[str, Sequence[tuple[frozenset[str], tuple[str, ...]]]]:
    """The signs of every subject, each set as whole words and as beginnings of words."""
    signs: dict[str, list[tuple[frozenset[str], tuple[str, ...]]]] = {}
    for name, subject in subjects().items():
        for line in subject.signs:
            listed = fold(line).split()
            begin = tuple(word[:-1] for word in listed if word.endswith("*"))
            signs.setdefault(name, []).append((frozenset(listed), begin))
    return signs


def subjects_by_signs(text: str) -> Iterator[str]:
    """The subjects of which a text shows every sign; a word serves for one sign only."""
    written = set(words(_IN_A_GLASS.sub("in my wine", text[:_MOST_READ])))
    for name, sets in _signs().items():
        hits = [
            {word for word in written if word in whole or word.startswith(begin)}
            for whole, begin in sets
        ]
        if all(hits) and len(set().union(*hits)) >= len(hits):
            yield name


@cache
def aromas() -> Mapping[str, Spoken]:
    """What aromas are called."""
    return _validated("aromas", Spoken)


def _validated(name: str, model: type[_Table]) -> Mapping[str, _Table]:
    return {key: model.model_validate(table) for key, table in load(name).items()}


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
        for table in load(name).get("word", ()) or load(name)["style"]:
            meanings = tuple(
                (field, _values(value))
                for field, value in table.items()
                if field not in (*LANGUAGES, "any")
            )
            yield from _entries(table, meanings)
    for field in ("countries", "regions"):
        for table in load("places")[field]:
            yield from _entries(table, ((field, (table["name"],)),))
    for table in load("grapes")["grape"]:
        names = {"any": (table["name"], *table.get("any", ()))}
        yield from _entries(names, (("grapes", (table["name"],)),))
    for table in load("compared")["wine"]:
        if "any" in table:
            yield from _entries(table, (("entity", (table["name"],)),))
    for name, subject in load("knowledge").items():
        yield from _entries({"any": subject["asked"]}, (("subject", (name,)),))
    yield from _counted()


def _entries(
    table: Mapping[str, Any], meanings: tuple[tuple[str, tuple[str, ...]], ...]
) -> Iterator[Entry]:
    for language in (*LANGUAGES, "any"):
        if language in table:
            yield Entry(meanings, language, tuple(table[language]))


def _values(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _counted() -> Iterator[Entry]:
    """Numbers, currencies and what is counted."""
    for field, table in load("numbers").items():
        match field:
            case "cardinals":
                for language in LANGUAGES:
                    for number, written in enumerate(table[language].split(","), start=2):
                        words = tuple(map(str.strip, written.split("/")))
                        yield Entry((("number", (str(number),)),), language, words)
            case "slang":
                for language, slang in table.items():
                    for word, value in slang.items():
                        yield Entry((("number", (value,)),), language, (word,))
            case "currencies":
                for code, words in table.items():
                    yield Entry((("currency", (code,)),), "any", tuple(words))
            case _:
                yield from _entries(table, ((field, ("yes",)),))
