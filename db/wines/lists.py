"""Read wine lists as shops, restaurants and cellar programs write them.

The names of columns and the words in cells are data, in `lists.toml`: in the languages of the bot,
and as common programs export them. A list as `docs/wines-and-documents.md` describes it is read in
the same way.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from agent.sommelier.wine import (
    Allergen,
    Body,
    Colour,
    Currency,
    Level,
    Style,
    Sweetness,
    Wine,
    folded,
    known_names,
    names,
)
from agent.tables import StrictModel, read_toml
from agent.text import pattern
from db.wines.tables import CatalogueFileError, Problem, Table, read_table

CELLAR_FIELDS: Final = ("count", "drink_from", "drink_until")
"""The fields of the cellar of a user beside those of a wine."""
OLDEST_VINTAGE: Final = 1780
SAMPLE: Final = 200
"""Rows that are tried to tell which of two columns is meant."""
ID: Final = pattern(r"\A[a-z0-9._-]{1,100}\z")
NUMBER: Final = pattern(r"\A([1-9]\d{0,2}(?:[.,]\d{3})+|\d+)([.,]\d+)?\z")
"""A number, perhaps with separators of thousands, and its decimals."""
BETWEEN: Final = str.maketrans(dict.fromkeys(",/|&+\n", ";"))
REQUIRED: Final = {"name", "style"}
ASSUMED: Final = {"producer": "", "country": "", "allergens": "sulphites"}
"""The value in each row of a file that has no such column."""


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """The wines of a file, the problems of its other rows, and how it was understood.

    `columns` are pairs of a column's name and its field, "" for a column that is not used;
    `assumed` are the fields for which there is no column.
    """

    wines: tuple[Wine, ...]
    problems: tuple[Problem, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    assumed: frozenset[str] = frozenset()
    read_as: str = ""
    source: str = ""


class _Words(StrictModel):
    """The content of `lists.toml`: all words are folded but the currencies."""

    headers: dict[str, tuple[str, ...]]
    beside: dict[str, frozenset[str]]
    styles: dict[Style, frozenset[str]]
    sweetness: dict[Sweetness, frozenset[str]]
    body: dict[Body, frozenset[str]]
    levels: dict[Level, frozenset[str]]
    allergens: dict[Allergen, frozenset[str]]
    words: dict[str, frozenset[str]]
    currencies: dict[Currency, tuple[str, ...]]


@cache
def _words() -> _Words:
    return read_toml(_Words, Path(__file__).with_suffix(".toml"))


def read_catalogue(path: Path) -> CatalogueFile:
    """Return the wines of a CSV file or workbook, and the problems of its other rows.

    Raises:
        CatalogueFileError: it cannot be read, or is no list of wines.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise CatalogueFileError(Problem(0, "", reason)) from None
    # A list is known again by its name without numbers: "L 2026-10.csv" is "l".
    words = [word for word in folded(path.stem).split() if not any(map(str.isdigit, word))]
    return parse_catalogue(data, " ".join(words) or path.stem)


def parse_catalogue(data: bytes, source: str = "") -> CatalogueFile:
    """Return the wines of a file, each id once, and the problems of its other rows.

    Raises:
        CatalogueFileError: it cannot be read, or is no list of wines.
    """
    table = read_table(data, count_known)
    columns = columns_of(table)
    if missing := sorted(REQUIRED - set(columns)):
        known = ",".join(Wine.model_fields)
        reason = f"no column for: {', '.join(missing)}. Columns may be called: {known}"
        raise CatalogueFileError(Problem(1, "", reason))
    assumed = {field: value for field, value in ASSUMED.items() if field not in columns}
    if "price" in columns and (currency := currency_in(table.names[columns.index("price")])):
        assumed["currency"] = currency
    wines: dict[str, Wine] = {}
    problems: list[Problem] = []
    for line, cells in table.rows:
        if len(cells) < len(columns) or any(cells[len(columns) :]):
            reason = f"has {len(cells)} fields, the header has {len(columns)}"
            problems.append(Problem(line, "", reason))
            continue
        filled = zip(columns, cells, strict=False)
        try:
            wine = read_row(assumed | {field: cell for field, cell in filled if field and cell})
        except ValidationError as error:
            problems += [_problem(line, detail) for detail in error.errors(include_url=False)]
            continue
        if wines.setdefault(wine.id, wine) is not wine:
            problems.append(Problem(line, "id", f"'{wine.id}' is in the file twice"))
    named = tuple(zip(table.names, columns, strict=True))
    return CatalogueFile(
        tuple(wines.values()), tuple(problems), named, frozenset(assumed), table.read_as, source
    )


def count_known(header: Sequence[str]) -> int:
    """Count the columns whose names are known."""
    return len({field for name in header for field in _fields(name)[:1]})


def columns_of(table: Table, fields: Iterable[str] = Wine.model_fields.keys()) -> list[str]:
    """Return the field of each column, "" for a column that is not used.

    Of several columns that may be meant, the one with our own name is taken, else the one of which
    most cells can be read, if that is half of them.
    """
    found = [""] * len(table.names)
    meant = [_fields(name) for name in table.names]
    for field in fields:
        possible = [at for at, known in enumerate(meant) if field in known and not found[at]]
        shares = [_readable_share(table, at, field) for at in possible] or [0.0]
        if max(shares) >= 1 / 2:
            found[possible[shares.index(max(shares))]] = field
    return found


def _fields(header: str) -> list[str]:
    """Return the fields that a column of this name may be."""
    name = folded(header)
    bare = " ".join(word for word in name.split() if word not in _words().beside["words"])
    return [
        field
        for field in (*Wine.model_fields, *CELLAR_FIELDS)
        if not {name, bare}.isdisjoint([folded(field), *_words().headers.get(field, ())])
    ]


def _readable_share(table: Table, column: int, field: str) -> float:
    """Return the share of a column's cells that can be read as a field."""
    if folded(table.names[column]) == folded(field):
        return 2.0
    cells = [row[column] for _, row in table.rows[:SAMPLE] if column < len(row) and row[column]]
    return sum(_is_readable(field, cell) for cell in cells) / max(len(cells), 1)


def _is_readable(field: str, cell: str) -> bool:
    try:
        read_row({"name": "a", "producer": "a", "country": "a", "style": "red", field: cell})
    except ValidationError:
        return False
    return True


def read_row(row: Mapping[str, str]) -> Wine:
    """Return the wine of a row: its cells by the fields they are read as.

    Raises:
        ValidationError: a cell cannot be read, or one that is needed is missing.
    """
    return Wine.model_validate(ListRow.model_validate(dict(row)).model_dump())


def _problem(line: int, error: Any) -> Problem:
    column = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "missing":
        return Problem(line, column, "is empty")
    if error["type"] == "value_error":
        return Problem(line, column, error["msg"].removeprefix("Value error, "))
    return Problem(line, column, f"'{error['input']}' {error['msg'].removeprefix('Input ')}")


def _slug(text: str) -> str:
    """Return an id in lower-case ASCII: `trimbach-riesling-2021`; empty if nothing is left."""
    return "-".join(word for word in folded(text).split() if word.isascii())


def _id(text: str) -> str:
    if not ID.match(text):
        raise ValueError("needs an id of the letters a-z, digits, '-', '.' and '_', at most 100")
    return text


def _vintage(text: str) -> int | None:
    if folded(text) in _words().words["no_vintage"]:
        return None
    year = text.removesuffix(".0")
    if not _is_year(year):
        newest = datetime.now(UTC).year
        raise ValueError(f"'{text}' is not a year from {OLDEST_VINTAGE} to {newest}, empty or NV")
    return int(year)


def _is_year(text: str) -> bool:
    is_number = text.isascii() and text.isdigit() and len(text) <= len("2026")
    return is_number and OLDEST_VINTAGE <= int(text) <= datetime.now(UTC).year


def _number(text: str) -> str:
    """Return `1.234,50 €`, `CHF 12.-` or `13,5 % vol` as Python reads it; else the text."""
    bare = text.casefold().replace("vol", "").strip(" .")
    signs = [sign for listed in _words().currencies.values() for sign in listed]
    for sign in (*signs, "%", "\u00a0", "'", "\u2019", " "):
        bare = bare.replace(sign, "")
    found = NUMBER.match(bare.rstrip("-\u2013.,"))
    if found is None:
        return text
    return found[1].replace(".", "").replace(",", "") + (found[2] or "").replace(",", ".")


def currency_in(text: str) -> Currency | None:
    """Return the currency that a text names: `Preis (CHF)`, `12 €`."""
    words = folded(text).split()
    for currency, signs in _words().currencies.items():
        if any(sign in (words if sign.isalpha() else text.casefold()) for sign in signs):
            return currency
    return None


def _style(text: str, known: Collection[str] = tuple(Style)) -> str:
    """Return the style that a cell names: `Rotwein`, `Red - Fortified`, `Vino tinto`."""
    padded = f" {folded(text)} "
    for name, phrases in _words().styles.items():
        if name in known and any(f" {phrase} " in padded for phrase in (*phrases, folded(name))):
            return str(name)
    return text.lower()


def _colour(text: str) -> str:
    return _style(text, known=tuple(Colour))


def _one_of(table: str, text: str) -> str:
    known: Mapping[str, Collection[str]] = getattr(_words(), table)
    word = folded(text)
    return next((str(name) for name, words in known.items() if word in words), text.lower())


def _in_stock(text: str) -> str:
    """Return yes or no for a word, or for a number of bottles."""
    if (word := _one_of("words", text)) in {"yes", "no"}:
        return word
    try:
        return "yes" if float(_number(text)) > 0 else "no"
    except ValueError:
        return text


def _country(text: str) -> str:
    known = folded(text) in known_names("countries")
    return names("countries", text)[0].title() if known else text


def _listed(text: str, read: Callable[[str], str] = str.lower) -> list[str]:
    """Return the items of a list, each once and read by `read`."""
    parts = (part.strip(" .") for part in text.translate(BETWEEN).split(";"))
    return list(dict.fromkeys(filter(None, map(read, parts))))


def _without_share(grape: str) -> str:
    return " ".join(word for word in grape.split() if not word[:1].isdecimal())


READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "id": _slug,
    "country": _country,
    "grapes": partial(_listed, read=_without_share),
    "style": _style,
    "colour": _colour,
    "sweetness": partial(_one_of, "sweetness"),
    "body": partial(_one_of, "body"),
    "acidity": partial(_one_of, "levels"),
    "tannin": partial(_one_of, "levels"),
    "abv": _number,
    "price": _number,
    "currency": lambda text: currency_in(text) or text.upper(),
    "foods": _listed,
    "allergens": partial(_listed, read=partial(_one_of, "allergens")),
    "in_stock": _in_stock,
}
"""Readers of cells, by field."""


class ListRow(Wine):
    """A row of a list, in whatever words; an empty cell has the default of `Wine`."""

    model_config = ConfigDict(allow_inf_nan=False)

    id: Annotated[str, AfterValidator(_id)]
    vintage: Annotated[int | None, BeforeValidator(_vintage)] = None
    abv: float | None = Field(None, ge=0, le=75)
    price: float | None = Field(None, ge=0.01, le=1_000_000)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, cells: dict[str, str]) -> dict[str, object]:
        """Read each cell; id, colour, vintage and currency may follow from other cells."""
        name, _, year = cells.get("name", "").rpartition(" ")
        if "vintage" not in cells and name and _is_year(year):
            cells |= {"vintage": year, "name": name}
        year = cells.get("vintage", "").removesuffix(".0")
        made = _slug(f"{cells.get('producer', '')} {cells.get('name', '')}")
        cells.setdefault("id", made and f"{made}-{year if year.isdecimal() else 'nv'}")
        colour = _colour(cells.get("colour") or cells.get("style", ""))
        if cells.get("colour") or colour in set(Colour):
            cells["colour"] = colour
        if currency := currency_in(cells.get("price", "")):
            cells["currency"] = currency
        return cells | {
            field: read(cells[field]) for field, read in READERS.items() if field in cells
        }
