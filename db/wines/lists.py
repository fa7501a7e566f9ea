"""Read wine lists and cellars in the formats of shops, restaurants and cellar programs.

The known column names of each field are in `agent/sommelier/wine_fields.toml`, those of cellars and
the known cell values in `lists.toml`: in the languages of the bot, and as common programs export
them. They include the format of `docs/wines-and-documents.md`.
"""

import asyncio
import csv
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from itertools import islice
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

from agent.files import Unreadable, parse_in_process, read_regular_file
from agent.markdown import strip_invisible
from agent.memory.cellar import YEARS, guess_wine, to_cellar_item
from agent.sommelier.wine import (
    Colour,
    Currency,
    Offer,
    Style,
    Wine,
    known_names,
    normalize,
    parse_currency,
    synonyms,
)
from agent.sommelier.wine_fields import wine_fields
from agent.tables import read_toml
from agent.text import cut, pattern
from agent.turn import CellarItem
from db.tables import decode, read_sheets, take_rows

MAX_SHOWN_PROBLEMS: Final = 20
DELIMITERS: Final = ",;\t|"
HEADER_SEARCH_ROWS: Final = 10
"""The header may follow a title, a date, or the `sep=;` of a spreadsheet."""
HEADER_SEARCH_CHARS: Final = 50_000
WORKBOOK_SIGNATURE: Final = b"PK\x03\x04"
OLDEST_VINTAGE: Final = 1780
MAX_SAMPLED_ROWS: Final = 200
"""The number of rows that are read to choose between columns for a field."""
ID: Final = pattern(r"\A[a-z0-9._-]{1,100}\z")
NUMBER: Final = pattern(
    r"(?i)\A(?:[a-z]{3}|[€$£¥])?\s*"
    r"([1-9]\d{0,2}(?:[.,'\x{2019}\x{a0} ]\d{3})+|\d+)([.,]\d+)?"
    r"[.,]?[-\x{2013}]?\s*(?:[a-z]{3}|[€$£¥]|%(?:\s*vol\.?)?)?\z"
)
"""A number with its thousands separators, then its decimals: `1.234,50 €`, `CHF 12.-`,
`13,5 % vol`."""
LIST_SEPARATORS: Final = str.maketrans(dict.fromkeys(",/|&+\n", ";"))
REQUIRED: Final = {"name", "style"}
COLUMN_DEFAULTS: Final = {"producer": "", "country": "", "allergens": "sulphites"}
"""Values for the columns that a file does not have."""
COUNT_AND_YEARS: Final = ("count", "drink_from", "drink_until")
"""The fields of a user's bottles, in addition to those of a wine."""
GUESSED_FIELDS: Final = ("grapes", "body", "tannin", "acidity")
"""Fields that can be guessed from the name of a wine."""
MAX_CELLAR_ROWS: Final = 5000
MAX_LIST_BYTES: Final = 50_000_000
MAX_CELL_CHARS: Final = 5_000
READ_SECONDS: Final = 120
"""Processor time for the list of a shop; 20,000 wines need some 40."""

Row = tuple[int, list[str]]
"""A line number and the cells."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file; line 0 stands for the whole file."""

    reason: str
    line: int = 0
    column: str = ""


class CatalogueFileError(Unreadable):
    """A file that was not imported; `problems` are the reasons."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.reason for problem in problems[:MAX_SHOWN_PROBLEMS]))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """The wines of a file, and the problems of its other rows.

    `columns` pairs each column name with its field, "" if it is unused. `read_as` is the encoding
    or "a workbook". `source` identifies later versions of the list.
    """

    wines: tuple[Wine, ...]
    problems: tuple[Problem, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    read_as: str = ""
    source: str = ""


@cache
def _words() -> dict[str, dict[str, frozenset[str]]]:
    """Return the tables of `lists.toml`: normalised names and words by field or value."""
    return read_toml(dict[str, dict[str, frozenset[str]]], Path(__file__).with_suffix(".toml"))


def read_catalogue(path: Path) -> CatalogueFile:
    """Return the wines of a CSV file or workbook, and the problems of its other rows.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    return parse_catalogue(_read_bytes(path), _source_of(path))


async def read_catalogue_safely(path: Path) -> CatalogueFile:
    """Return the wines of a file from outside, which is parsed in a process with limits.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    data = await asyncio.to_thread(_read_bytes, path)
    try:
        read = await parse_in_process(
            parse_or_list_problems, data, _source_of(path), seconds=READ_SECONDS
        )
    except Unreadable as error:
        raise CatalogueFileError(Problem(str(error))) from None
    if isinstance(read, CatalogueFile):
        return read
    raise CatalogueFileError(*read)


def parse_or_list_problems(data: bytes, source: str) -> CatalogueFile | list[Problem]:
    """Return the wines of a file, or why it is not a wine list."""
    try:
        return parse_catalogue(data, source)
    except CatalogueFileError as error:
        return list(error.problems)


def _read_bytes(path: Path) -> bytes:
    try:
        return read_regular_file(path, MAX_LIST_BYTES)
    except Unreadable as error:
        raise CatalogueFileError(Problem(str(error))) from None


def _source_of(path: Path) -> str:
    """Return the name that versions of a list share: that of "List 2026-10.csv" is "list"."""
    words = [word for word in normalize(path.stem).split() if not any(map(str.isdigit, word))]
    return " ".join(words) or path.stem


def parse_catalogue(data: bytes, source: str = "") -> CatalogueFile:
    """Return the wines of a file with unique ids, and the problems of its other rows.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    titles, rows, read_as = _read_table(data)
    columns = _match_columns(titles, rows, wine_fields())
    missing = sorted(REQUIRED - set(columns))
    if missing:
        known = ",".join(wine_fields())
        reason = f"no column for: {', '.join(missing)}. Columns may be called: {known}"
        raise CatalogueFileError(Problem(reason, line=1))
    defaults = {field: value for field, value in COLUMN_DEFAULTS.items() if field not in columns}
    if "price" in columns and (currency := _find_currency(titles[columns.index("price")])):
        defaults["currency"] = currency
    wines: dict[str, Wine] = {}
    problems: list[Problem] = []
    for line, cells in rows:
        if len(cells) < len(columns) or any(cells[len(columns) :]):
            reason = f"has {len(cells)} fields, the header has {len(columns)}"
            problems.append(Problem(reason, line))
            continue
        try:
            wine = _parse_row(defaults | _filled_cells(columns, cells))
        except ValidationError as error:
            problems += [_problem(line, detail) for detail in error.errors(include_url=False)]
            continue
        if wines.setdefault(wine.id, wine) is not wine:
            problems.append(Problem(f"'{wine.id}' is in the file twice", line, "id"))
    column_fields = tuple(zip(titles, columns, strict=True))
    return CatalogueFile(tuple(wines.values()), tuple(problems), column_fields, read_as, source)


def read_cellar(data: bytes) -> tuple[list[CellarItem], int]:
    """Return the bottles in a CSV file or workbook, and the number of unreadable rows.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    titles, rows, _ = _read_table(data)
    kept = [name for name, field in wine_fields().items() if field.in_cellar]
    columns = _match_columns(titles, rows, [*kept, *COUNT_AND_YEARS])
    if "name" not in columns:
        raise CatalogueFileError(Problem("no column of the file holds names of wines"))
    items: dict[str, CellarItem] = {}
    unread_count = max(0, len(rows) - MAX_CELLAR_ROWS)
    for _, cells in rows[:MAX_CELLAR_ROWS]:
        row = _filled_cells(columns, cells)
        if "name" not in row:
            unread_count += 1
            continue
        item = _to_bottles(row)
        if item.count > 0:
            previous = items.get(item.key)
            items[item.key] = replace(item, count=item.count + (previous.count if previous else 0))
    return list(items.values()), unread_count


def _to_bottles(row: Mapping[str, str]) -> CellarItem:
    """Return the bottles of a row; guess missing and unreadable cells from the wine's name."""
    readable = {
        field: cell
        for field, cell in row.items()
        if field in wine_fields() and field != "notes" and _is_readable(field, cell)
    }
    guess = guess_wine(f"{row['name']} {row.get('region', '')} {row.get('grapes', '')}")
    placeholders = {"id": "own", "producer": row["name"], "country": "-", "style": guess.style}
    wine = _parse_row(placeholders | readable)
    guessed = {field: getattr(wine, field) or getattr(guess, field) for field in GUESSED_FIELDS}
    originals = {"producer": row.get("producer", ""), "country": row.get("country", "")}
    numbers = [row.get(name, "").partition(".")[0] for name in COUNT_AND_YEARS]
    # CellarTracker exports an unknown year as 9999.
    count, *years = (
        int(cell) if cell.isdecimal() and len(cell) <= len("9999") else None for cell in numbers
    )
    drink_from, drink_until = (year if year in YEARS else None for year in years)
    return to_cellar_item(
        wine.model_copy(update=originals | guessed),
        1 if count is None else count,
        drink_from=drink_from,
        drink_until=drink_until,
        note=row.get("notes", "")[:200],
    )


def _read_table(data: bytes) -> tuple[list[str], list[Row], str]:
    """Return the column names of a table, its non-blank rows, and how it was read.

    Choose the delimiter, or the sheet, for which the header has the most known columns.
    """
    try:
        if data.startswith(WORKBOOK_SIGNATURE):
            read_as, sheets = "a workbook", read_sheets(data).values()
            rows = list(
                enumerate(max(sheets, key=lambda rows: _find_header(rows)[0], default=[]), 1)
            )
        else:
            text, read_as = decode(data)
            start = text[:HEADER_SEARCH_CHARS]
            readers = {mark: csv.reader(io.StringIO(start), delimiter=mark) for mark in DELIMITERS}
            counts = {mark: _find_header(reader)[0] for mark, reader in readers.items()}
            rows = _parse_csv(text, max(counts, key=lambda mark: counts[mark]))
    except Unreadable as error:
        raise CatalogueFileError(Problem(str(error))) from None
    _, header_row = _find_header(cells for _, cells in rows)
    titles = [title.strip("\ufeff \t") for title in rows[header_row][1]] if rows else []
    table = [
        (line, [" ".join(strip_invisible(cut(cell, MAX_CELL_CHARS)).split()) for cell in cells])
        for line, cells in rows[header_row + 1 :]
        if any(cell.strip() for cell in cells)
    ]
    return titles, table, read_as


def _find_header(rows: Iterable[Sequence[str]]) -> tuple[int, int]:
    """Return the number of known columns in the likeliest header row, and the row's index."""
    counts = [
        len({field for title in row for field in _possible_fields(title)[:1]})
        for row in islice(rows, HEADER_SEARCH_ROWS)
    ] or [0]
    return max(counts), counts.index(max(counts))


def _parse_csv(text: str, delimiter: str) -> list[Row]:
    """Return the rows of a CSV file with the numbers of their last lines."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, row) for row in take_rows(reader)]
    except csv.Error as error:
        raise CatalogueFileError(Problem(f"is not CSV: {error}", reader.line_num)) from None


def _filled_cells(columns: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return the non-empty cells of a row by field."""
    return {field: cell for field, cell in zip(columns, cells, strict=False) if field and cell}


def _match_columns(titles: Sequence[str], rows: Sequence[Row], fields: Iterable[str]) -> list[str]:
    """Return the field of each column, "" for an unused column.

    Of several columns for a field, choose the one named like the field, or else the one with the
    largest share of readable cells, if at least half.
    """
    column_fields = [""] * len(titles)
    for field in fields:
        shares = {
            index: 2.0 if normalize(title) == normalize(field) else _share(rows, index, field)
            for index, title in enumerate(titles)
            if field in _possible_fields(title) and not column_fields[index]
        }
        best = max(shares, key=lambda index: shares[index], default=-1)
        if shares.get(best, 0.0) >= 1 / 2:
            column_fields[best] = field
    return column_fields


def _possible_fields(title: str) -> list[str]:
    """Return the fields that a column name may stand for."""
    name = normalize(title)
    bare = " ".join(word for word in name.split() if word not in _words()["ignored"]["words"])
    return [field for field, names in _column_names().items() if not names.isdisjoint({name, bare})]


@cache
def _column_names() -> dict[str, frozenset[str]]:
    """Return the normalised names of columns by the field that they may stand for."""
    columns = {name: field.columns for name, field in wine_fields().items()}
    columns |= _words()["headers"]
    return {field: names | {normalize(field)} for field, names in columns.items()}


def _share(rows: Sequence[Row], column: int, field: str) -> float:
    """Return the share of readable cells, if the column is read as `field`."""
    cells = [row[column] for _, row in rows[:MAX_SAMPLED_ROWS] if column < len(row) and row[column]]
    return sum(_is_readable(field, cell) for cell in cells) / max(len(cells), 1)


def _is_readable(field: str, cell: str) -> bool:
    try:
        _parse_row({"name": "a", "producer": "a", "country": "a", "style": "red", field: cell})
    except ValidationError:
        return False
    return True


def _parse_row(row: Mapping[str, str]) -> Wine:
    """Return the wine of a row, whose cells are given by field.

    Raises:
        ValidationError: a cell is unreadable, or a required one is missing.
    """
    return Wine.model_validate(ListRow.model_validate(dict(row)).model_dump())


def _problem(line: int, error: Any) -> Problem:
    reasons = {"missing": "is empty", "value_error": error["msg"].removeprefix("Value error, ")}
    default = f"'{error['input']}' {error['msg'].removeprefix('Input ')}"
    names = [part for part in error["loc"] if isinstance(part, str)]  # others are positions
    return Problem(reasons.get(error["type"], default), line, names[-1] if names else "")


def _slug(text: str) -> str:
    """Return an id in lower-case ASCII, such as `trimbach-riesling-2021`; it may be empty."""
    return "-".join(word for word in normalize(text).split() if word.isascii())


def _check_id(text: str) -> str:
    if not ID.match(text):
        raise ValueError("needs an id of the letters a-z, digits, '-', '.' and '_', at most 100")
    return text


def _vintage(text: str) -> int | None:
    if normalize(text) in _words()["words"]["no_vintage"]:
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
    """Return a number in Python's format; return any other text unchanged."""
    number = NUMBER.match(text)
    if number is None:
        return text
    return "".join(filter(str.isdigit, number[1])) + (number[2] or "").replace(",", ".")


def _find_currency(text: str) -> Currency | None:
    """Return the currency in a text like `Preis (CHF)` or `12 €`; None if there is none."""
    currencies = map(parse_currency, (*normalize(text).split(), *text))
    return next(filter(None, currencies), None)


def _style(text: str, allowed: Collection[str] = tuple(Style)) -> str:
    """Return the style in a cell like `Rotwein` or `Red - Fortified`, or else the cell."""
    padded = f" {normalize(text)} "
    for name, phrases in _words()["styles"].items():
        names = (*phrases, normalize(name))
        if name in allowed and any(f" {phrase} " in padded for phrase in names):
            return name
    return text.lower()


def _colour(text: str) -> str:
    return _style(text, allowed=tuple(Colour))


def _translate(table: str, text: str) -> str:
    """Return the value that a table of `lists.toml` gives for a cell, or else the cell."""
    word = normalize(text)
    return next((name for name, words in _words()[table].items() if word in words), text.lower())


def _in_stock(text: str) -> str:
    """Return "yes" or "no" for a word or a number of bottles, or else the word."""
    number = _number(text)
    if number.lstrip("-").isdecimal():
        return "yes" if int(number) > 0 else "no"
    return _translate("words", text)


def _country(text: str) -> str:
    is_known = normalize(text) in known_names("countries")
    return synonyms("countries", text)[0].title() if is_known else text


def _split_list(text: str, read: Callable[[str], str] = str.lower) -> list[str]:
    """Return the unique items of a list, each converted by `read`."""
    parts = (part.strip(" .") for part in text.translate(LIST_SEPARATORS).split(";"))
    return list(dict.fromkeys(filter(None, map(read, parts))))


def _strip_percentage(grape: str) -> str:
    return " ".join(word for word in grape.split() if not word[:1].isdecimal())


CELL_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "id": _slug,
    "country": _country,
    "grapes": partial(_split_list, read=_strip_percentage),
    "style": _style,
    "colour": _colour,
    "sweetness": partial(_translate, "sweetness"),
    "body": partial(_translate, "body"),
    "acidity": partial(_translate, "levels"),
    "tannin": partial(_translate, "levels"),
    "abv": _number,
    "price": _number,
    "currency": lambda text: _find_currency(text) or text.upper(),
    "foods": _split_list,
    "allergens": partial(_split_list, read=partial(_translate, "allergens")),
    "in_stock": _in_stock,
}


class ListedOffer(Offer):
    """An offer in a wine list, where no wine is free of charge."""

    model_config = ConfigDict(allow_inf_nan=False)

    price: float | None = Field(None, ge=0.01, le=1_000_000)


class ListRow(Wine):
    """A row of a wine list, validated from the cells; empty cells get the defaults of `Wine`."""

    model_config = ConfigDict(allow_inf_nan=False)

    id: Annotated[str, AfterValidator(_check_id)]
    vintage: Annotated[int | None, BeforeValidator(_vintage)] = None
    abv: float | None = Field(None, ge=0, le=75)
    offers: tuple[ListedOffer, ...] = (ListedOffer(),)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, cells: dict[str, str]) -> dict[str, object]:
        """Read each cell; derive a missing id, colour, vintage or currency from other cells."""
        name, _, year = cells.get("name", "").rpartition(" ")
        if "vintage" not in cells and name and _is_year(year):
            cells |= {"vintage": year, "name": name}
        year = cells.get("vintage", "").removesuffix(".0")
        slug = _slug(f"{cells.get('producer', '')} {cells.get('name', '')}")
        cells.setdefault("id", slug and f"{slug}-{year if year.isdecimal() else 'nv'}")
        colour = _colour(cells.get("colour") or cells.get("style", ""))
        if cells.get("colour") or colour in set(Colour):
            cells["colour"] = colour
        if currency := _find_currency(cells.get("price", "")):
            cells["currency"] = currency
        return cells | {
            field: read(cells[field]) for field, read in CELL_READERS.items() if field in cells
        }
