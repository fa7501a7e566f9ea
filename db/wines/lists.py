"""Wine lists as they come: CSV of shops, restaurants and cellar programs, and what it means.

Encoding, delimiter and header are found, all that is wrong is collected. Names of columns and words
in cells are data, in `lists.toml`, in the languages of the bot and as common programs export them.
A list that is written as `docs/wines.md` says is read by the same way.
"""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from agent.markdown import visible
from agent.sommelier.wine import (
    Allergen,
    Body,
    Colour,
    Currency,
    Food,
    Level,
    Style,
    Sweetness,
    Wine,
    folded,
    known_names,
    names,
)
from agent.tables import Strict, read_toml

SHOWN_PROBLEMS: Final = 20
DELIMITERS: Final = ",;\t|"
LINES_BEFORE_HEADER: Final = 10
"""A title, a date, or the `sep=;` of a spreadsheet may stand above the header."""
PEEK: Final = 50_000
"""Characters in which the header is looked for."""
BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")

Row = tuple[int, list[str]]
"""The line that a row begins in, and its cells."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in a file; the header is in line 1 as a rule, line 0 the file as a whole."""

    line: int
    column: str
    reason: str

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line else []
        place += [self.column] if self.column else []
        return f"{', '.join(place)}: {self.reason}" if place else self.reason


class CatalogueFileError(Exception):
    """Nothing of a file was imported; `problems` says why, row by row."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            lines.append(f"... and {len(self.problems) - SHOWN_PROBLEMS} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file: the names of its columns, and its rows that hold anything."""

    delimiter: str
    names: tuple[str, ...]
    rows: tuple[Row, ...]


class FileRow(BaseModel):
    """A row of a kind of file: its fields are the columns, and tell how they are read."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    def wine(self) -> Wine:
        """Make the wine of the row."""
        raise NotImplementedError

    def left_out(self) -> Iterable[tuple[str, str]]:
        """Name what the wine is imported without, and why."""
        return ()

    @classmethod
    def columns(cls) -> list[str]:
        """Return the names of the columns."""
        return [each.alias or name for name, each in cls.model_fields.items()]


@dataclass(slots=True)
class ReadRow:
    """What a row came to: a wine, or problems."""

    line: int
    wine: Wine | None = None
    problems: list[Problem] = field(default_factory=list)
    left_out: list[Problem] = field(default_factory=list)


def decoded(content: bytes, encoding: str | None = None) -> tuple[str, str]:
    """Return a file's text and its encoding: UTF-8, UTF-16 with a mark, else Windows-1252.

    Raises:
        UnicodeDecodeError: it is in none of them, or not in the one that is named.
        LookupError: there is no such encoding.
    """
    if encoding is not None:
        return content.decode(encoding), encoding
    if content.startswith(BYTE_ORDER_MARKS):
        return content.decode("utf-16"), "utf-16"
    try:
        return content.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        return content.decode("cp1252"), "cp1252"


def read_table(content: str, known: Callable[[Sequence[str]], int]) -> Table:
    """Return what a CSV text holds; `known` counts the names of columns that it knows.

    Raises:
        CatalogueFileError: it is not CSV.
    """
    delimiter, above = _header(content[:PEEK], known)
    rows = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    found: list[Row] = []
    names: tuple[str, ...] = ()
    line = 0
    try:
        for number, row in enumerate(rows):
            start, line = line + 1, rows.line_num
            if number == above:
                names = tuple(name.strip("\ufeff \t") for name in row)
            elif number > above and any(cell.strip() for cell in row):
                found.append((start, [" ".join(visible(cell).split()) for cell in row]))
    except csv.Error as error:
        raise CatalogueFileError([Problem(line + 1, "", f"is not CSV: {error}")]) from None
    return Table(delimiter, names, tuple(found))


def _header(start: str, known: Callable[[Sequence[str]], int]) -> tuple[str, int]:
    """The delimiter by which most columns are known, and how many rows are above their names."""
    best, found = 0, (DELIMITERS[0], 0)
    for delimiter in DELIMITERS:
        rows = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)
        for above, row in enumerate(islice(_readable(rows), LINES_BEFORE_HEADER)):
            if (count := known(row)) > best:
                best, found = count, (delimiter, above)
    return found


def _readable(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    try:
        yield from rows
    except csv.Error:
        return


def read_rows(
    table: Table, columns: Sequence[str], kind: type[FileRow], everywhere: Mapping[str, str]
) -> Iterator[ReadRow]:
    """Yield what the rows come to; `columns` names the field of each column, "" for none.

    `everywhere` holds what is so in every row that does not say otherwise.
    """
    for line, cells in table.rows:
        surplus = cells[len(columns) :]
        if len(cells) < len(columns) or any(surplus):
            reason = f"has {len(cells)} fields, the header has {len(columns)}"
            yield ReadRow(line, problems=[Problem(line, "", reason)])
        else:
            filled = zip(columns, cells, strict=False)
            said = {name: text for name, text in filled if name and text}
            yield _read_row(line, {**everywhere, **said}, kind)


def _read_row(line: int, cells: dict[str, str], kind: type[FileRow]) -> ReadRow:
    try:
        read = kind.model_validate(cells)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        return ReadRow(line, problems=[_problem(line, each) for each in problems])
    left_out = [Problem(line, *each) for each in read.left_out()]
    return ReadRow(line, read.wine(), left_out=left_out)


def _problem(line: int, error: Any) -> Problem:
    column = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "missing":
        return Problem(line, column, "is empty")
    if error["type"] == "value_error":
        return Problem(line, column, error["msg"].removeprefix("Value error, "))
    return Problem(line, column, f"'{error['input']}' {error['msg'].removeprefix('Input ')}")


MAX_ID: Final = 100
OLDEST_VINTAGE: Final = 1780
SAMPLE: Final = 200
"""Rows by whose cells it is told which column is meant."""
_ID_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-._")
_BETWEEN: Final = str.maketrans(dict.fromkeys(",/|&+\n", ";"))
_THOUSANDS: Final = 3
"""Digits behind a single point or comma that parts thousands."""


class _Words(Strict):
    """What `lists.toml` holds, every word folded but the currencies."""

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
    file = Path(__file__).with_suffix(".toml")
    return read_toml(_Words, file)


def known_columns(header: Sequence[str]) -> int:
    """Count the names of columns that are known."""
    return len({each for name in header for each in _fields(name)[:1]})


def columns_of(table: Table) -> list[str]:
    """Return the field of each column, "" for one that is not used.

    Of several columns that may be meant, the one that bears our own name is taken, else the one
    whose cells can be read most; one of which less than half can be read is not.
    """
    found = [""] * len(table.names)
    meant = [_fields(name) for name in table.names]
    for wanted in OwnRow.columns():
        shares = [
            (_share(table, at, wanted, own=folded(table.names[at]) == folded(wanted)), -at)
            for at, fields in enumerate(meant)
            if wanted in fields and not found[at]
        ]
        share, at = max(shares, default=(0.0, 0))
        if share >= 1 / 2:
            found[-at] = wanted
    return found


def currency_of(header: str) -> Currency | None:
    """Return the currency that the name of a column tells: `Preis (CHF)`."""
    return _currency(header)


def _fields(header: str) -> list[str]:
    """The fields that a column of this name may be, our own name first."""
    name = folded(header)
    own = [field for field in OwnRow.columns() if name == folded(field)]
    words = name.split()
    beside = _words().beside["words"]
    forms = {name, " ".join(word for word in words if word not in beside)}
    named = [field for field, known in _words().headers.items() if forms & {*known, folded(field)}]
    return [*own, *(field for field in named if field not in own)]


def _share(table: Table, at: int, wanted: str, *, own: bool) -> float:
    """How many of a column's cells can be read as a field."""
    if own:
        return 2.0
    cells = [cells[at] for _, cells in table.rows[:SAMPLE] if at < len(cells) and cells[at]]
    if not cells:
        return 0.0
    return sum(_is_read(wanted, cell) for cell in cells) / len(cells)


_SMALLEST: Final = {"name": "a", "producer": "a", "country": "a", "style": "red"}


def _is_read(wanted: str, cell: str) -> bool:
    if wanted == "foods":
        return any(each in set(Food) for each in _foods(cell))
    try:
        OwnRow.model_validate(_SMALLEST | {wanted: cell})
    except ValidationError:
        return False
    return True


def slug(*parts: str) -> str:
    """Return an id in lower-case ASCII: `trimbach-riesling-2021`; empty if nothing is left."""
    return "-".join(word for word in folded(" ".join(parts)).split() if word.isascii())


def _id(text: str) -> str:
    if not text or set(text) - _ID_CHARACTERS:
        raise ValueError("needs an id of the letters a-z, digits, '-', '.' and '_'")
    if len(text) > MAX_ID:
        raise ValueError(f"'{text}' has more than {MAX_ID} characters")
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
    """A number as Python reads it: `1.234,50 €`, `CHF 12.-` and `13,5 % vol`; else the text."""
    bare = text.casefold().replace("vol", "").strip(" .")
    for sign in (*_signs(), "%", "\u00a0", "'", "\u2019", " "):
        bare = bare.replace(sign, "")
    bare = bare.rstrip("-\u2013.,")
    if not bare.replace(",", "").replace(".", "").isdecimal():
        return text
    decimal = max(".,", key=bare.rfind)
    if bare.count(decimal) > 1 or (_parts_thousands(bare, decimal)):
        return bare.replace(".", "").replace(",", "")
    return bare.replace({".": ",", ",": "."}[decimal], "").replace(decimal, ".")


def _parts_thousands(bare: str, decimal: str) -> bool:
    alone = "." not in bare or "," not in bare
    whole, _, behind = bare.partition(decimal)
    return alone and len(behind) == _THOUSANDS and whole.strip("0") != ""


def _signs() -> Iterator[str]:
    return (sign for signs in _words().currencies.values() for sign in signs)


def _currency(text: str) -> Currency | None:
    said = text.casefold()
    for currency, signs in _words().currencies.items():
        if any(sign in (said if not sign.isalpha() else folded(text).split()) for sign in signs):
            return currency
    return None


def _style(text: str) -> str:
    """What kind of wine a cell tells: `Rotwein`, `Red - Fortified`, `Vino tinto`."""
    return _first_of(_words().styles, text) or text.lower()


def _colour(text: str) -> str:
    colours = {each: _words().styles[Style(each)] for each in Colour}
    return _first_of(colours, text) or text.lower()


def _first_of(known: Mapping[Any, Collection[str]], text: str) -> str:
    said = f" {folded(text)} "
    for name, phrases in known.items():
        if any(f" {phrase} " in said for phrase in (*phrases, folded(name))):
            return str(name)
    return ""


def _one_of(table: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        word = folded(text)
        known: Mapping[str, Collection[str]] = getattr(_words(), table)
        return next((str(name) for name, each in known.items() if word in each), text.lower())

    return read


def _in_stock(text: str) -> str:
    """Whether there is any: a word, or how many bottles there are."""
    word = folded(text)
    for value in ("yes", "no"):
        if word in _words().words[value]:
            return value
    try:
        return "yes" if float(_number(text)) > 0 else "no"
    except ValueError:
        return text


def _country(text: str) -> str:
    known = folded(text) in known_names("countries")
    return names("countries", text)[0].title() if known else text


def _listed(text: str) -> list[str]:
    return [part for each in text.translate(_BETWEEN).split(";") if (part := each.strip(" ."))]


def _grapes(text: str) -> list[str]:
    """The grapes of a blend, without their shares."""
    parts = (" ".join(w for w in each.split() if not w[:1].isdecimal()) for each in _listed(text))
    return list(dict.fromkeys(part for part in parts if part))


def _foods(text: str) -> list[str]:
    return list(dict.fromkeys(each.lower() for each in _listed(text)))


def _allergens(text: str) -> list[str]:
    return list(dict.fromkeys(_one_of("allergens")(each) for each in _listed(text)))


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "id": slug,
    "vintage": _vintage,
    "country": _country,
    "grapes": _grapes,
    "style": _style,
    "colour": _colour,
    "sweetness": _one_of("sweetness"),
    "body": _one_of("body"),
    "acidity": _one_of("levels"),
    "tannin": _one_of("levels"),
    "abv": _number,
    "price": _number,
    "currency": lambda text: _currency(text) or text.upper(),
    "foods": _foods,
    "allergens": _allergens,
    "in_stock": _in_stock,
}


class OwnRow(FileRow, Wine):
    """A row of a list, in whatever words; what is empty is as `Wine` has it by default."""

    id: Annotated[str, AfterValidator(_id)]
    vintage: Annotated[int | None, BeforeValidator(_vintage)] = None
    abv: float | None = Field(None, ge=0, le=75)
    price: float | None = Field(None, ge=0.01, le=1_000_000)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, cells: dict[str, str]) -> dict[str, object]:
        """Read every cell; what is not said follows from others: id, colour, vintage, currency."""
        cells = dict(cells)
        name, _, year = cells.get("name", "").rpartition(" ")
        if "vintage" not in cells and name and _is_year(year):
            cells |= {"vintage": year, "name": name}
        year = cells.get("vintage", "").removesuffix(".0")
        made = slug(cells.get("producer", ""), cells.get("name", ""))
        cells.setdefault("id", made and f"{made}-{year if year.isdecimal() else 'nv'}")
        if colour := _colour_of(cells):
            cells["colour"] = colour
        if currency := _currency(cells.get("price", "")):
            cells["currency"] = currency
        return {name: cls._cell(name, text) for name, text in cells.items()}

    @classmethod
    def _cell(cls, name: str, text: str) -> object:
        return _READERS[name](text) if name in _READERS and name != "vintage" else text

    def wine(self) -> Wine:
        """Make the wine of the row."""
        return Wine.model_validate(self.model_dump())


def _colour_of(cells: Mapping[str, str]) -> str:
    """The colour that is said, or that the style tells."""
    colour = _colour(cells.get("colour") or cells.get("style", ""))
    return colour if cells.get("colour") or colour in set(Colour) else ""
