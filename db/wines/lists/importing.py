"""Read a file as a list of wines for the catalogue."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from agent.files import Unreadable, parse_in_process, read_regular_file
from agent.query_reading.phrases import detect_language
from agent.sommelier.vocabulary import Currency, normalize
from agent.sommelier.wine import Wine
from db.wines.lists.cells import find_currency, read_cell
from db.wines.lists.derive import complete
from db.wines.lists.listed import NO_LIST, Cells, LeftOut, NamedColumn, Reading
from db.wines.lists.problems import CUT_OFF, CatalogueFileError, Problem
from db.wines.lists.profiles.pages import READ_BY_MODEL
from db.wines.lists.profiles.plain import read_plain
from db.wines.lists.profiles.shopify import read_shopify
from db.wines.lists.profiles.shops import is_export_of, load_shop_profiles
from db.wines.lists.profiles.woocommerce import read_woocommerce
from db.wines.lists.rows import check_listed, find_problems
from db.wines.lists.suggest import suggest_fields
from db.wines.lists.tables import Table, read_tables

MAX_LIST_BYTES: Final = 50_000_000
READ_SECONDS: Final = 120
"""How much processor time a list may take. A list of 20,000 wines needs about 40 s."""
DEFAULT_ALLERGENS: Final = "sulphites"
"""What wines contain if their table has no column for allergens."""
DEFAULT_LANGUAGE: Final = "en"
MAX_DETECTED_CHARS: Final = 20_000
"""How many characters of all notes of a list are read to detect their language."""
LINE_ENDS: Final = (b"\n", b"\r", b"\n\x00", b"\r\x00")
"""How most texts end that were written to their end. The last two are in UTF-16."""
SHOP_READERS: Final = {"shopify": read_shopify, "woocommerce": read_woocommerce}
FieldsById = dict[str, tuple[str, ...]]
"""Names of fields by the ids of wines."""


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """The wines of a file, what was left out of it, and the problems of its other rows.

    `profile` is the program that made the file, `read_as` the encoding or "a workbook". `derived`
    has, by the id of a wine, the fields that were guessed because the file does not state them.
    `filled_in` has those that a model filled in. `suggestions` has the fields that unused columns
    look like. `source` is a name that all versions of the list share.
    """

    wines: tuple[Wine, ...]
    problems: tuple[Problem, ...] = ()
    columns: tuple[NamedColumn, ...] = ()
    read_as: str = ""
    source: str = ""
    profile: str = ""
    left_out: tuple[LeftOut, ...] = ()
    headings: tuple[str, ...] = ()
    derived: FieldsById = field(default_factory=dict)
    filled_in: FieldsById = field(default_factory=dict)
    suggestions: dict[str, str] = field(default_factory=dict)
    has_currency: bool = True

    @property
    def is_by_model(self) -> bool:
        """Return whether a model has read the file, or has filled in facts of its wines."""
        return self.profile == READ_BY_MODEL or bool(self.filled_in)

    @property
    def has_allergens(self) -> bool:
        """Return whether a column of the file states allergens."""
        fields = [field for _, field in self.columns]
        return "allergens" in fields

    def with_cells_of_model(self, cells_by_id: Mapping[str, Cells]) -> "CatalogueFile":
        """Return the file with the facts that a model has filled in.

        `cells_by_id` has them as the cells of a list, by the ids of the wines.
        """
        wines: list[Wine] = []
        for wine in self.wines:
            values = wine.model_dump()
            cells = cells_by_id.get(wine.id, {})
            for name, cell in cells.items():
                values[name] = read_cell(name, cell)
            wines.append(Wine.model_validate(values))
        filled_in: FieldsById = {}
        for wine_id, cells in cells_by_id.items():
            filled_in[wine_id] = tuple(cells)
        return replace(self, wines=tuple(wines), filled_in=filled_in)


def read_catalogue(path: Path) -> CatalogueFile:
    """Return the wines of a CSV file or workbook, and the problems of its other rows.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    return parse_catalogue(read_list_bytes(path), source_of(path))


async def read_catalogue_safely(
    path: Path, currency: Currency | None = None
) -> CatalogueFile:
    """Return the wines of a file from outside. The file is parsed in a process with limits.

    `currency` is the currency of prices that name none.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    data = await asyncio.to_thread(read_list_bytes, path)
    try:
        read = await parse_in_process(
            parse_or_list_problems,
            data,
            source_of(path),
            currency or "",
            seconds=READ_SECONDS,
        )
    except Unreadable as error:
        raise CatalogueFileError(Problem(str(error))) from None
    if isinstance(read, CatalogueFile):
        return read
    raise CatalogueFileError(*read)


def parse_or_list_problems(
    data: bytes,
    source: str,
    currency: str,
) -> CatalogueFile | list[Problem]:
    """Return the wines of a file, or why it is not a wine list."""
    default_currency = Currency(currency) if currency else None
    try:
        return parse_catalogue(data, source, default_currency)
    except CatalogueFileError as error:
        return list(error.problems)


def read_list_bytes(path: Path) -> bytes:
    """Return the content of a list.

    Raises:
        CatalogueFileError: it is not a regular file, is too large, or cannot be read.
    """
    try:
        return read_regular_file(path, MAX_LIST_BYTES)
    except Unreadable as error:
        raise CatalogueFileError(Problem(str(error))) from None


def source_of(path: Path) -> str:
    """Return the name that all versions of a list share: "list" for "List 2026-10.csv"."""
    words: list[str] = []
    for word in normalize(path.stem).split():
        has_digit = any(map(str.isdigit, word))
        if not has_digit:
            words.append(word)
    if not words:
        return path.stem
    return " ".join(words)


def parse_catalogue(
    data: bytes,
    source: str = "",
    currency: Currency | None = None,
) -> CatalogueFile:
    """Return the wines of a file, and the problems of its other rows.

    Raises:
        CatalogueFileError: the file cannot be read, or is not a wine list.
    """
    read = read_tables(data)
    if not data.endswith(LINE_ENDS) and _ends_within_row(read.tables):
        raise CatalogueFileError(Problem(CUT_OFF))
    reading = _read_profile(read.tables)
    file = check_reading(reading, source, currency)
    other_sheets = [LeftOut(0, name, NO_LIST) for name in read.other_sheets]
    return replace(
        file,
        read_as=read.read_as,
        suggestions=suggest_fields(read.tables, reading.columns),
        left_out=(*file.left_out, *other_sheets),
    )


def _ends_within_row(tables: Sequence[Table]) -> bool:
    """Return whether the last row of a text, and no other, has fewer cells than the header."""
    if len(tables) != 1:
        return False
    (table,) = tables
    is_sheet = bool(table.name)
    if is_sheet or len(table.rows) < 2:
        return False
    width = len(table.titles)
    *rows, last = table.rows
    others_are_whole = all(len(row.cells) >= width for row in rows)
    # A row with a single cell may be a remark below the list.
    return others_are_whole and 1 < len(last.cells) < width


def check_reading(
    reading: Reading,
    source: str,
    currency: Currency | None,
) -> CatalogueFile:
    """Return the wines that a profile has read, completed and checked."""
    checked = _check_wines(reading, currency)
    wines = list(checked.wines.values())
    return CatalogueFile(
        wines=_set_notes_language(wines),
        problems=(*reading.problems, *checked.problems),
        columns=reading.columns,
        source=source,
        profile=reading.profile,
        left_out=reading.left_out,
        headings=reading.headings,
        derived=checked.derived,
        has_currency=currency is not None or _tells_currency(reading),
    )


@dataclass(frozen=True, slots=True)
class _Checked:
    """The valid wines of a list, by id, with the fields that were derived, and the problems."""

    wines: dict[str, Wine] = field(default_factory=dict)
    derived: FieldsById = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def _check_wines(reading: Reading, currency: Currency | None) -> _Checked:
    """Complete and check each listed wine."""
    checked = _Checked()
    for listed in reading.listed:
        completed = complete(listed.cells, listed.clues)
        cells = dict(completed.cells)
        if not listed.tells_allergens:
            cells.setdefault("allergens", DEFAULT_ALLERGENS)
        try:
            wine = check_listed(listed, cells, currency)
        except ValidationError as error:
            checked.problems.extend(find_problems(listed.line, error))
            continue
        if wine.id in checked.wines:
            problem = Problem("is in the file twice", listed.line, "id", wine.id)
            checked.problems.append(problem)
        else:
            checked.wines[wine.id] = wine
            checked.derived[wine.id] = (*listed.derived, *completed.derived)
    return checked


def _set_notes_language(wines: Collection[Wine]) -> tuple[Wine, ...]:
    """Return the wines, each with the language in which the notes of the list are written."""
    all_notes = " ".join([wine.notes for wine in wines])
    sample = all_notes[:MAX_DETECTED_CHARS]
    language = detect_language(sample) or DEFAULT_LANGUAGE
    changes = {"notes_language": language}
    return tuple([wine.model_copy(update=changes) for wine in wines])


def _tells_currency(reading: Reading) -> bool:
    """Return whether a price names its currency, or whether there are no prices."""
    has_prices = False
    for listed in reading.listed:
        for offer in listed.offers:
            if not offer.price:
                continue
            if offer.currency or find_currency(offer.price):
                return True
            has_prices = True
    return not has_prices


def _read_profile(tables: Sequence[Table]) -> Reading:
    """Return what the profile of the program that made the file finds in it."""
    for program, read in SHOP_READERS.items():
        profile = load_shop_profiles()[program]
        for table in tables:
            if is_export_of(table, profile):
                return read(table)
    return read_plain(tables)
