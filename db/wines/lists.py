"""Read wine lists and cellars as shops, restaurants and cellar programs write them.

The names of columns and the words in cells are data, in `lists.toml`: in the languages of the bot,
and as common programs export them. A list as `docs/wines-and-documents.md` describes it is read in
the same way.
"""

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

from agent.markdown import strip_invisible
from agent.memory.cellar import YEARS, guess_wine, to_cellar_item
from agent.sommelier.wine import (
    Colour,
    Currency,
    Style,
    Wine,
    known_names,
    normalize,
    parse_currency,
    synonyms,
)
from agent.tables import read_toml
from agent.text import pattern
from agent.turn import CellarItem
from db.tables import Unreadable, decode, read_sheets

SHOWN_PROBLEMS: Final = 20
DELIMITERS: Final = ",;\t|"
LINES_ABOVE_HEADER: Final = 10
"""A title, a date, or the `sep=;` of a spreadsheet may be above the header."""
PEEK: Final = 50_000
"""Characters in which the header is looked for."""
WORKBOOK: Final = b"PK\x03\x04"
OLDEST_VINTAGE: Final = 1780
SAMPLE: Final = 200
"""Rows that are tried to tell which of two columns is meant."""
ID: Final = pattern(r"\A[a-z0-9._-]{1,100}\z")
NUMBER: Final = pattern(
    r"(?i)\A(?:[a-z]{3}|[€$£¥])?\s*"
    r"([1-9]\d{0,2}(?:[.,'\x{2019}\x{a0} ]\d{3})+|\d+)([.,]\d+)?"
    r"[.,]?[-\x{2013}]?\s*(?:[a-z]{3}|[€$£¥]|%(?:\s*vol\.?)?)?\z"
)
"""The digits of a number, perhaps with separators of thousands, and its decimals: `1.234,50 €`,
`CHF 12.-`, `13,5 % vol`."""
BETWEEN: Final = str.maketrans(dict.fromkeys(",/|&+\n", ";"))
REQUIRED: Final = {"name", "style"}
ASSUMED: Final = {"producer": "", "country": "", "allergens": "sulphites"}
"""The value in each row of a file that has no such column."""
COUNT_AND_YEARS: Final = ("count", "drink_from", "drink_until")
"""The fields of a user's bottles beside those of a wine."""
CELLAR_FIELDS: Final = tuple(
    name for name in (*Wine.model_fields, *COUNT_AND_YEARS) if name not in {"id", "in_stock"}
)
"""The fields that are read of a cellar; ids and stocks of other programs mean nothing here."""
GUESSED: Final = ("grapes", "body", "tannin", "acidity")
"""The facts that the name of a wine may tell."""
MOST_WINES: Final = 5000
"""The wines that are read of a user's cellar."""

Row = tuple[int, list[str]]
"""The number of a line, and its cells."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a file; line 0 is the file as a whole."""

    reason: str
    line: int = 0
    column: str = ""


class CatalogueFileError(ValueError):
    """Nothing of a file was imported; `problems` are the reasons, row by row."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.reason for problem in problems[:SHOWN_PROBLEMS]))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """The wines of a file, the problems of its other rows, and how it was understood.

    `columns` are pairs of a column's name and its field, "" for a column that is not used.
    """

    wines: tuple[Wine, ...]
    problems: tuple[Problem, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    read_as: str = ""
    source: str = ""


@cache
def _words() -> dict[str, dict[str, frozenset[str]]]:
    """Read the names of columns and the words in cells, folded, by their tables in `lists.toml`."""
    form = dict[str, dict[str, frozenset[str]]]
    return read_toml(form, Path(__file__).with_suffix(".toml"))


def read_catalogue(path: Path) -> CatalogueFile:
    """Return the wines of a CSV file or workbook, and the problems of its other rows.

    Raises:
        CatalogueFileError: it cannot be read, or is no list of wines.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CatalogueFileError(Problem(f"cannot be read: {error.strerror or error}")) from None
    # A list is known again by its name without numbers: "L 2026-10.csv" is "l".
    words = [word for word in normalize(path.stem).split() if not any(map(str.isdigit, word))]
    return parse_catalogue(data, " ".join(words) or path.stem)


def parse_catalogue(data: bytes, source: str = "") -> CatalogueFile:
    """Return the wines of a file, each id once, and the problems of its other rows.

    Raises:
        CatalogueFileError: it cannot be read, or is no list of wines.
    """
    titles, rows, read_as = _read_table(data)
    columns = _columns_of(titles, rows, Wine.model_fields)
    if missing := sorted(REQUIRED - set(columns)):
        known = ",".join(Wine.model_fields)
        reason = f"no column for: {', '.join(missing)}. Columns may be called: {known}"
        raise CatalogueFileError(Problem(reason, line=1))
    assumed = {field: value for field, value in ASSUMED.items() if field not in columns}
    if "price" in columns and (currency := _currency_in(titles[columns.index("price")])):
        assumed["currency"] = currency
    wines: dict[str, Wine] = {}
    problems: list[Problem] = []
    for line, cells in rows:
        if len(cells) < len(columns) or any(cells[len(columns) :]):
            reason = f"has {len(cells)} fields, the header has {len(columns)}"
            problems.append(Problem(reason, line))
            continue
        try:
            wine = _read_row(assumed | _filled(columns, cells))
        except ValidationError as error:
            problems += [_problem(line, detail) for detail in error.errors(include_url=False)]
            continue
        if wines.setdefault(wine.id, wine) is not wine:
            problems.append(Problem(f"'{wine.id}' is in the file twice", line, "id"))
    named = tuple(zip(titles, columns, strict=True))
    return CatalogueFile(tuple(wines.values()), tuple(problems), named, read_as, source)


def read_cellar(data: bytes) -> tuple[list[CellarItem], int]:
    """Return the bottles that a CSV file or workbook lists, and the number of unreadable rows.

    Raises:
        CatalogueFileError: it is no list of wines.
    """
    titles, rows, _ = _read_table(data)
    columns = _columns_of(titles, rows, CELLAR_FIELDS)
    if "name" not in columns:
        raise CatalogueFileError(Problem("no column of the file holds names of wines"))
    found, unread = dict[str, CellarItem](), max(0, len(rows) - MOST_WINES)
    for _, cells in rows[:MOST_WINES]:
        row = _filled(columns, cells)
        if "name" not in row:
            unread += 1
        elif (read := _bottles_in(row)).count > 0:
            before = found.get(read.key)
            found[read.key] = replace(read, count=read.count + (before.count if before else 0))
    return list(found.values()), unread


def _bottles_in(row: Mapping[str, str]) -> CellarItem:
    """Return the bottles of a row; the name of the wine fills in for missing and odd cells."""
    known = {
        field: cell
        for field, cell in row.items()
        if field in Wine.model_fields and field != "notes" and _is_readable(field, cell)
    }
    named = guess_wine(f"{row['name']} {row.get('region', '')} {row.get('grapes', '')}")
    needed = {"id": "own", "producer": row["name"], "country": "-", "style": named.style}
    wine = _read_row(needed | known)
    guessed = {field: getattr(wine, field) or getattr(named, field) for field in GUESSED}
    unknown = {"producer": row.get("producer", ""), "country": row.get("country", "")}
    numbers = [row.get(name, "").partition(".")[0] for name in COUNT_AND_YEARS]
    # CellarTracker writes 9999 for a year that nobody gave.
    count, *years = (
        int(cell) if cell.isdecimal() and len(cell) <= len("9999") else None for cell in numbers
    )
    begin, end = (year if year in YEARS else None for year in years)
    return to_cellar_item(
        wine.model_copy(update=unknown | guessed),
        1 if count is None else count,
        drink_from=begin,
        drink_until=end,
        note=row.get("notes", "")[:200],
    )


def _read_table(data: bytes) -> tuple[list[str], list[Row], str]:
    """Return the names of a table's columns, its rows that are not blank, and how it was read.

    Most columns are known by its delimiter, or of its sheet.
    """
    try:
        if data.startswith(WORKBOOK):
            read_as, sheets = "a workbook", read_sheets(data).values()
            rows = list(
                enumerate(max(sheets, key=lambda rows: _find_header(rows)[0], default=[]), 1)
            )
        else:
            text, read_as = decode(data)
            peek = text[:PEEK]
            readers = {sign: csv.reader(io.StringIO(peek), delimiter=sign) for sign in DELIMITERS}
            counts = {sign: _find_header(reader)[0] for sign, reader in readers.items()}
            rows = _csv_rows(text, max(counts, key=lambda sign: counts[sign]))
    except Unreadable as error:
        raise CatalogueFileError(Problem(str(error))) from None
    _, above = _find_header(cells for _, cells in rows)
    titles = [title.strip("\ufeff \t") for title in rows[above][1]] if rows else []
    tidy = [
        (line, [" ".join(strip_invisible(cell).split()) for cell in cells])
        for line, cells in rows[above + 1 :]
        if any(cell.strip() for cell in cells)
    ]
    return titles, tidy, read_as


def _find_header(rows: Iterable[Sequence[str]]) -> tuple[int, int]:
    """Return the number of known columns in the header, and the number of rows above it."""
    counts = [
        len({field for title in row for field in _fields(title)[:1]})
        for row in islice(rows, LINES_ABOVE_HEADER)
    ] or [0]
    return max(counts), counts.index(max(counts))


def _csv_rows(text: str, delimiter: str) -> list[Row]:
    """Return the rows of a CSV file, by the lines in which they end."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise CatalogueFileError(Problem(f"is not CSV: {error}", reader.line_num)) from None


def _filled(columns: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return the cells of a row that are not empty, by their fields."""
    return {field: cell for field, cell in zip(columns, cells, strict=False) if field and cell}


def _columns_of(titles: Sequence[str], rows: Sequence[Row], fields: Iterable[str]) -> list[str]:
    """Return the field of each column, "" for a column that is not used.

    Of several columns that may be meant, the one with our own name is taken, else the one of which
    most cells can be read, if that is half of them.
    """
    found = [""] * len(titles)
    for field in fields:
        shares = {
            at: 2.0 if normalize(title) == normalize(field) else _readable_share(rows, at, field)
            for at, title in enumerate(titles)
            if field in _fields(title) and not found[at]
        }
        best = max(shares, key=lambda at: shares[at], default=-1)
        if shares.get(best, 0.0) >= 1 / 2:
            found[best] = field
    return found


def _fields(title: str) -> list[str]:
    """Return the fields that a column of this name may be."""
    name = normalize(title)
    bare = " ".join(word for word in name.split() if word not in _words()["beside"]["words"])
    return [
        field
        for field in (*Wine.model_fields, *COUNT_AND_YEARS)
        if not {name, bare}.isdisjoint([normalize(field), *_words()["headers"].get(field, ())])
    ]


def _readable_share(rows: Sequence[Row], column: int, field: str) -> float:
    """Return the share of a column's cells that can be read as a field."""
    cells = [row[column] for _, row in rows[:SAMPLE] if column < len(row) and row[column]]
    return sum(_is_readable(field, cell) for cell in cells) / max(len(cells), 1)


def _is_readable(field: str, cell: str) -> bool:
    try:
        _read_row({"name": "a", "producer": "a", "country": "a", "style": "red", field: cell})
    except ValidationError:
        return False
    return True


def _read_row(row: Mapping[str, str]) -> Wine:
    """Return the wine of a row: its cells by the fields they are read as.

    Raises:
        ValidationError: a cell cannot be read, or one that is needed is missing.
    """
    return Wine.model_validate(ListRow.model_validate(dict(row)).model_dump())


def _problem(line: int, error: Any) -> Problem:
    reasons = {"missing": "is empty", "value_error": error["msg"].removeprefix("Value error, ")}
    odd = f"'{error['input']}' {error['msg'].removeprefix('Input ')}"
    return Problem(reasons.get(error["type"], odd), line, str(next(iter(error["loc"]), "")))


def _slug(text: str) -> str:
    """Return an id in lower-case ASCII: `trimbach-riesling-2021`; empty if nothing is left."""
    return "-".join(word for word in normalize(text).split() if word.isascii())


def _id(text: str) -> str:
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
    """Return a number as Python reads it; any other text as it is."""
    found = NUMBER.match(text)
    if found is None:
        return text
    return "".join(filter(str.isdigit, found[1])) + (found[2] or "").replace(",", ".")


def _currency_in(text: str) -> Currency | None:
    """Return the currency that a text names: `Preis (CHF)`, `12 €`."""
    found = map(parse_currency, (*normalize(text).split(), *text))
    return next(filter(None, found), None)


def _style(text: str, known: Collection[str] = tuple(Style)) -> str:
    """Return the style that a cell names: `Rotwein`, `Red - Fortified`, `Vino tinto`."""
    padded = f" {normalize(text)} "
    for name, phrases in _words()["styles"].items():
        if name in known and any(f" {phrase} " in padded for phrase in (*phrases, normalize(name))):
            return name
    return text.lower()


def _colour(text: str) -> str:
    return _style(text, known=tuple(Colour))


def _one_of(table: str, text: str) -> str:
    word = normalize(text)
    return next((name for name, words in _words()[table].items() if word in words), text.lower())


def _in_stock(text: str) -> str:
    """Return yes or no for a word, or for a number of bottles."""
    number = _number(text)
    if number.lstrip("-").isdecimal():
        return "yes" if int(number) > 0 else "no"
    return _one_of("words", text)


def _country(text: str) -> str:
    known = normalize(text) in known_names("countries")
    return synonyms("countries", text)[0].title() if known else text


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
    "currency": lambda text: _currency_in(text) or text.upper(),
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
        if currency := _currency_in(cells.get("price", "")):
            cells["currency"] = currency
        return cells | {
            field: read(cells[field]) for field, read in READERS.items() if field in cells
        }
