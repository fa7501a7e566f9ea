"""Read the memory of a user from the file that `/export` has written, so that a bot can store it.

The files of all releases are read. Until 0.2.0, settings and ratings were rows of `facts`.

Conversations and concerns are not read. Concerns expire by themselves, and only a press of the user
may end one earlier, so a file must neither bring one back nor end one.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from agent.cellar.items import to_cellar_item, to_wine
from agent.i18n import languages
from agent.memory.taste import MAX_FACT_CHARS
from agent.numerals import YEARS
from agent.safety.state import ALLERGIES
from agent.sommelier.filters import parse_budget, parse_taste
from agent.sommelier.wine import Wine
from agent.turn import STATED_KINDS, UNDER_AGE_SETTING, CellarItem, Drink, Fact

MAX_EXPORT_BYTES: Final = 50_000_000
MAX_TEXT_CHARS: Final = 2_000
"""The longest note, place or rating."""
MAX_WINE_CHARS: Final = 4_000
"""The longest wine, as JSON."""
MAX_COUNT: Final = 100_000
MAX_PRICE: Final = 1_000_000
CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "traces": ("words", "numbers"),
    "aloud": ("on", "off"),
    "reminders": ("off",),
}
"""The possible values of settings, except the languages and the age.

Reminders are on without a setting, so "on" is never stored.
"""
LANGUAGE_SETTINGS: Final = ("language", "written")
"""The names of the settings with a language as their value."""

Row = dict[str, Any]
T = TypeVar("T")
_TABLES: Final = TypeAdapter(dict[str, list[Row]])


class NotAnExport(ValueError):
    """A file is not the export of one user."""


class TasteRating(NamedTuple):
    """A taste that was recommended to a user, and whether they liked the answer."""

    taste: str
    is_liked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The memory of a user in an export."""

    user_id: int
    facts: tuple[Fact, ...]
    """The facts that the user has stated, and the settings."""
    items: tuple[CellarItem, ...]
    drinks: tuple[Drink, ...]
    ratings: tuple[TasteRating, ...]
    unread: int
    """The number of rows that cannot be read."""


class _Fact(BaseModel):
    kind: str
    value: str = Field(max_length=MAX_FACT_CHARS)
    said: str = Field(default="", max_length=MAX_FACT_CHARS)


class _Setting(BaseModel):
    name: str
    value: str


class _Rating(BaseModel):
    taste: str = Field(max_length=MAX_FACT_CHARS)
    is_liked: bool


_Year = Annotated[int, Field(ge=YEARS.start, lt=YEARS.stop)]
_Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]


class _Bottle(BaseModel):
    wine: dict[str, Any]
    count: int = Field(ge=0, le=MAX_COUNT)
    drink_from: _Year | None = None
    drink_until: _Year | None = None
    note: _Text = ""
    size_ml: int | None = Field(default=None, gt=0, le=MAX_COUNT)
    place: _Text = ""
    bought: _Text = ""


class _Drink(BaseModel):
    wine: dict[str, Any]
    at: datetime
    rating: _Text = ""
    note: _Text = ""


def read_export(data: bytes) -> Exported:
    """Return the memory of a user from their export.

    Raises:
        NotAnExport: the data is not JSON, not an export, or the export of several users.
    """
    reader = _Reader(_read_tables(data))
    user_id = reader.find_user()
    facts = reader.read("facts", _to_fact)
    facts += reader.read("facts", _to_old_setting)
    facts += reader.read("settings", _to_setting)
    ratings = reader.read("facts", _to_old_rating)
    ratings += reader.read("taste_ratings", _to_rating)
    return Exported(
        user_id=user_id,
        facts=tuple(facts),
        items=tuple(reader.read("bottles", _to_item)),
        drinks=tuple(reader.read("drinks", _to_drink)),
        ratings=tuple(ratings),
        unread=reader.unread,
    )


def _read_tables(data: bytes) -> dict[str, list[Row]]:
    try:
        tables = json.loads(data)
    except (ValueError, RecursionError):
        raise NotAnExport("it is not JSON") from None
    try:
        return _TABLES.validate_python(tables)
    except ValidationError:
        raise NotAnExport("it is not what /export writes") from None


class _Reader:
    """Reads the rows of the tables, and counts the rows that it cannot read."""

    def __init__(self, tables: dict[str, list[Row]]) -> None:
        self.tables = tables
        self.unread = 0

    def find_user(self) -> int:
        """Return the id of the user in all rows."""
        user_ids = set()
        for table in ("facts", "settings", "taste_ratings", "bottles", "drinks"):
            for row in self.tables.get(table, ()):
                user_ids.add(row.get("user_id"))
        match list(user_ids):
            case [int(user_id)] if user_id > 0:
                return user_id
            case []:
                raise NotAnExport("it has no taste, cellar or settings")
        raise NotAnExport("it does not belong to a single user")

    def read(self, table: str, convert: Callable[[Row], T | None]) -> list[T]:
        """Return the results of `convert` for the rows of a table.

        If `convert` returns None, the row is not for this function, and is left out. If `convert`
        raises an error, the row is counted as unreadable.
        """
        read = []
        for row in self.tables.get(table, ()):
            try:
                converted = convert(row)
            except (ValueError, KeyError):
                self.unread += 1
                continue
            if converted is not None:
                read.append(converted)
        return read


def _to_fact(row: Row) -> Fact | None:
    """Return a fact that the user has stated, or None for a row of another kind.

    Raises:
        ValueError: the value is not possible for this kind of fact.
    """
    if row.get("kind") not in STATED_KINDS:
        return None
    fact = _Fact.model_validate(row)
    match fact.kind:
        case "allergy" if fact.value in ALLERGIES:
            return Fact("allergy", fact.value, fact.said)
        case "hate" | "like" if parse_taste(fact.value):
            return Fact(fact.kind, fact.value, fact.said)
        case "budget" if _is_possible_budget(fact.value):
            return Fact("budget", fact.value, fact.said)
        case "note":
            return Fact("note", fact.value, fact.said)
    raise ValueError(f"this is not the value of a fact of the kind {fact.kind}")


def _is_possible_budget(value: str) -> bool:
    """Return whether the limits of a budget are possible prices.

    Raises:
        ValueError: the value is not a budget.
    """
    low, high, _ = parse_budget(value)
    limits = (low or 0, high or 0)
    return min(limits) >= 0 and max(limits) <= MAX_PRICE


def _to_setting(row: Row) -> Fact | None:
    """Return a setting, or None if it is not to be stored.

    None is returned for a setting that this bot does not know, and for one that only a press of the
    user may change, such as that they are of age.
    """
    setting = _Setting.model_validate(row)
    choices = CHOICES.get(setting.name, ())
    if setting.name in LANGUAGE_SETTINGS:
        choices = ("auto", *languages())
    stored = f"{setting.name}={setting.value}"
    if setting.value in choices or stored == UNDER_AGE_SETTING:
        return Fact("setting", stored)
    return None


def _to_old_setting(row: Row) -> Fact | None:
    """Return the setting of a row of `facts`, in which `value` is "NAME=VALUE"."""
    if row.get("kind") != "setting":
        return None
    setting = str(row.get("value"))
    name, _, value = setting.partition("=")
    return _to_setting({"name": name, "value": value})


def _to_rating(row: Row) -> TasteRating | None:
    rating = _Rating.model_validate(row)
    if not parse_taste(rating.taste):
        raise ValueError(rating.taste)
    return TasteRating(rating.taste, rating.is_liked)


def _to_old_rating(row: Row) -> TasteRating | None:
    """Return the rating of a row of `facts`, in which `said` is "+" or "-"."""
    if row.get("kind") != "rated":
        return None
    taste = row.get("value")
    is_liked = row.get("said") == "+"
    return _to_rating({"taste": taste, "is_liked": is_liked})


def _to_item(row: Row) -> CellarItem:
    bottle = _Bottle.model_validate(row)
    # Make the key from the label again: for some labels, earlier releases made another key.
    wine = _to_wine(bottle.wine)
    other_fields = bottle.model_dump(exclude={"wine", "count"})
    return to_cellar_item(wine, bottle.count, **other_fields)


def _to_drink(row: Row) -> Drink:
    drink = _Drink.model_validate(row)
    # An opened bottle has the same key and the same fields of its wine as an item of the cellar.
    opened = to_cellar_item(_to_wine(drink.wine), count=0)
    at = drink.at
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return Drink(
        key=opened.key,
        wine=opened.wine,
        at=at,
        rating=drink.rating,
        note=drink.note,
    )


def _to_wine(fields: Mapping[str, Any]) -> Wine:
    """Return the wine of a bottle.

    Raises:
        ValueError: the fields are too long, or not those of a wine.
    """
    if len(json.dumps(fields)) > MAX_WINE_CHARS:
        raise ValueError("the wine is too long")
    # Only an item of a cellar can be read as a wine. Its key and its count do not matter.
    item = CellarItem(key="", wine=fields, count=0)
    return to_wine(item)
