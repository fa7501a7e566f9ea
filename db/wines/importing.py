"""Importing wines from CSV files, and keeping what a file of the same name held before in step.

Lists of shops and cellar programs are understood (`db/wines/lists.py`), and the X-Wines data set
(R. X. de Azambuja et al., 2023) as published, mapped to our vocabulary by `xwines.toml`. That knows
type, body, acidity, grapes and pairings. Colour and sweetness are read from the name where that is
safe and left unknown where it is not; tannin is known to be none in whites and roses only; there
are no prices, and sulphites are assumed in all. An id that exists already is replaced, so importing
a file twice changes nothing. Cellars of people are read and written as CellarTracker has them.
"""

import ast
import asyncio
import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from sqlalchemy import Connection, exists, func, select, update

from agent.memory.cellar import YEARS, bottles_of, guessed, window_of, wine_of
from agent.sommelier.wine import Allergen, Body, Colour, Food, Level, Style, Sweetness, Wine, folded
from agent.tables import Strict, read_toml
from agent.turn import Bottles
from db.engine import Sessions
from db.models import WineRow
from db.wines.catalogue import chunks, load_wines, save_wines, sources_of
from db.wines.lists import (
    CatalogueFileError,
    FileRow,
    OwnRow,
    Problem,
    Table,
    columns_of,
    currency_of,
    decoded,
    known_columns,
    read_rows,
    read_table,
)

HEADER: Final = tuple(
    "WineID,WineName,Type,Elaborate,Grapes,Harmonize,ABV,Body,Acidity,Code,Country,RegionID,"
    "RegionName,WineryID,WineryName,Website,Vintages".split(",")
)
NEWEST_VINTAGE: Final = 2022
"""The set was published then."""
OLDEST_VINTAGE: Final = 1900
STRONGEST_WINE: Final = 23.0
"""% vol; what is stronger is a spirit, of which the set has a few."""
FORTIFIED_FROM: Final = 15.0
DRY_FROM: Final = 11.5
"""A still wine weaker than this may well be off-dry, so nothing is claimed."""


class _Mapping(Strict):
    """What `xwines.toml` holds; the first word of sweetness that is in a name counts."""

    types: dict[str, Style]
    bodies: dict[str, Body]
    acidities: dict[str, Level]
    foods: dict[str, Food]
    white_grapes: frozenset[str]
    colour_words: dict[Colour, tuple[str, ...]]
    sweetness_words: dict[str, Sweetness]


@cache
def _mapping() -> _Mapping:
    file = Path(__file__).with_name("xwines.toml")
    return read_toml(_Mapping, file)


def _one_of(name: str) -> BeforeValidator:
    """Read a word of the set as ours."""

    def read(text: str) -> object:
        known: dict[str, object] = getattr(_mapping(), name)
        if text not in known:
            raise ValueError(f"'{text}' is not one of: {', '.join(known)}")
        return known[text]

    return BeforeValidator(read)


def _list(text: str) -> list[str]:
    """A Python list literal, as the set writes them."""
    try:
        return _LIST.validate_python(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("is not a list like ['Merlot']") from None


_LIST: Final = TypeAdapter(list[str], config=ConfigDict(coerce_numbers_to_str=True))
_Listed = Annotated[tuple[str, ...], BeforeValidator(_list)]


class XWinesRow(FileRow):
    """A row of the set's files, as published."""

    number: str = Field(alias="WineID")
    name: str = Field(alias="WineName")
    kind: Annotated[Style, _one_of("types")] = Field(alias="Type")
    blend: _Listed = Field((), alias="Grapes")
    dishes: _Listed = Field((), alias="Harmonize")
    abv: float | None = Field(None, alias="ABV", ge=0, le=75)
    body: Annotated[Body, _one_of("bodies")] = Field(alias="Body")
    acidity: Annotated[Level, _one_of("acidities")] = Field(alias="Acidity")
    country: str = Field(alias="Country")
    region: str = Field("", alias="RegionName")
    producer: str = Field(alias="WineryName")
    years: _Listed = Field((), alias="Vintages")

    def wine(self) -> Wine:
        """Make the wine of the row."""
        name, abv, known = self.name, self.abv, _mapping().foods
        grapes = tuple(dict.fromkeys(grape.split("/")[0] for grape in self.blend))
        style = _style(self.kind, name, abv)
        colour = _colour(style, name, grapes)
        dishes = () if self._is_spirit else self.dishes
        return Wine(
            id=f"xw-{self.number}",
            producer=self.producer,
            name=name,
            vintage=_vintage(self.years),
            country=self.country,
            region=self.region,
            grapes=grapes,
            style=style,
            colour=colour,
            sweetness=_sweetness(style, name, abv),
            body=self.body,
            acidity=self.acidity,
            tannin=Level.NONE if colour in (Colour.WHITE, Colour.ROSE) else None,
            abv=abv,
            foods=tuple(dict.fromkeys(known[dish] for dish in dishes if dish in known)),
            allergens=(Allergen.SULPHITES,),
            notes="A spirit, not a wine." if self._is_spirit else "",
        )

    def left_out(self) -> Iterator[tuple[str, str]]:
        """Name the dishes that have no food of ours."""
        if self._is_spirit:
            yield "Harmonize", "a spirit is not paired with dishes"
            return
        for dish in self.dishes:
            if dish not in _mapping().foods:
                yield "Harmonize", f"'{dish}' has no canonical food"

    @property
    def _is_spirit(self) -> bool:
        return (self.abv or 0) > STRONGEST_WINE


def _vintage(years: Sequence[str]) -> int | None:
    """The newest plausible year; None where the set says that the wine has none."""
    if "N.V." in years:
        return None
    plausible = (int(year) for year in years if year.isascii() and year.isdigit())
    return max((y for y in plausible if OLDEST_VINTAGE <= y <= NEWEST_VINTAGE), default=None)


def _style(kind: Style, name: str, abv: float | None) -> Style:
    if kind is Style.SWEET and (abv or 0) >= FORTIFIED_FROM and not _has(name, "vin santo"):
        return Style.FORTIFIED
    return kind


def _colour(style: Style, name: str, grapes: tuple[str, ...]) -> Colour | None:
    if style in (Style.RED, Style.WHITE, Style.ROSE):
        return Colour(style.value)
    for colour, words in _mapping().colour_words.items():
        if any(_has(name, word) for word in words):
            return colour
    white = bool(grapes) and all(folded(each) in _mapping().white_grapes for each in grapes)
    if white or style is Style.SPARKLING:
        return Colour.WHITE
    return Colour.RED if _has(name, "port") or _has(name, "porto") else None


def _sweetness(style: Style, name: str, abv: float | None) -> Sweetness | None:
    for words, level in _mapping().sweetness_words.items():
        if _has(name, words):
            return level
    if style is Style.SWEET:
        return Sweetness.SWEET
    still = style in (Style.RED, Style.WHITE, Style.ROSE)
    return Sweetness.DRY if still and (abv or 0) >= DRY_FROM else None


def _has(name: str, words: str) -> bool:
    return f" {words} " in f" {folded(name)} "


Progress = Callable[[int, int], None]
"""Called with wines done and wines in all."""

STARTER: Final = Path(__file__).parents[1] / "starter" / "wines.csv"
SAMPLES: Final = "starter"
"""Where the wines of a fresh installation come from."""
REQUIRED: Final = {"name", "style"}
ASSUMED: Final = {"producer": "", "country": "", "allergens": "sulphites"}
"""What is taken to be so in every row of a file without such a column."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or would do, in wines; `gone` are out of stock now."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    gone: int = 0


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """The wines of a file, each id once, what is wrong with the rest, and how it was understood.

    `left_out` are details that wines are imported without, `columns` pairs of a column's name in
    the file and its field, "" for a column that is not used; `assumed` what no column tells.
    """

    wines: tuple[Wine, ...]
    problems: tuple[Problem, ...] = ()
    left_out: tuple[Problem, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    assumed: frozenset[str] = frozenset()
    encoding: str = "utf-8"
    source: str = ""


async def import_catalogue(
    sessions: Sessions, path: Path, progress: Progress | None = None, source: str | None = None
) -> ImportReport:
    """Import the wines of a CSV file, all or none, in one transaction.

    Raises:
        CatalogueFileError: the file cannot be read or has bad rows; nothing was imported.
    """
    file = await asyncio.to_thread(read_catalogue, path)
    if file.problems:
        raise CatalogueFileError(file.problems)
    return await import_wines(sessions, replace(file, source=source or file.source), progress)


async def load_starter(sessions: Sessions, path: Path = STARTER) -> ImportReport | None:
    """Import the starter catalogue into an empty database; None if it holds wines already."""
    if await sessions.read(lambda on: on.scalar(select(exists(select(WineRow.number))))):
        return None
    return await import_catalogue(sessions, path, source=SAMPLES)


async def import_wines(
    sessions: Sessions,
    file: CatalogueFile,
    progress: Progress | None = None,
    *,
    without_samples: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Add or replace the wines of a file, in one transaction; those stored already are left.

    What an earlier file of this name held and this one does not is out of stock from now on, and
    so is every wine of the starter catalogue `without_samples`.
    """

    def write(on: Connection) -> ImportReport:
        fates: Counter[str] = Counter()
        for wines in chunks(file.wines):
            stored = load_wines(on, [wine.id for wine in wines])
            sources = sources_of(on, list(stored))
            changed = [wine for wine in wines if stored.get(wine.id) != wine]
            moved = [w for w in wines if stored.get(w.id) == w and sources[w.id] != file.source]
            fates["added"] += sum(wine.id not in stored for wine in wines)
            fates["updated"] += sum(wine.id in stored for wine in changed)
            fates["unchanged"] += len(wines) - len(changed)
            if (to_save := changed + moved) and not dry_run:
                save_wines(on, to_save, file.source)
            if progress:
                progress(fates.total(), len(file.wines))
        gone = _gone(on, file, without_samples=without_samples)
        if not dry_run:
            for ids in chunks(gone):
                away = update(WineRow).where(WineRow.id.in_(ids)).values(in_stock=False)
                on.execute(away)
        return ImportReport(**fates, gone=len(gone))

    return await sessions.write(write)


def _gone(on: Connection, file: CatalogueFile, *, without_samples: bool) -> list[str]:
    """The ids of wines in stock that came from a file of this name, and are not in it."""
    sources = {file.source, *([SAMPLES] if without_samples else [])} - {""}
    of_source = WineRow.source.in_(sources) & WineRow.in_stock
    here = {wine.id for wine in file.wines}
    found = on.scalars(select(WineRow.id).where(of_source))
    return [wine_id for wine_id in found if wine_id not in here]


async def count_samples(sessions: Sessions) -> int:
    """Count the wines of the starter catalogue that are in stock."""
    samples = (WineRow.source == SAMPLES) & WineRow.in_stock
    return await sessions.read(lambda on: on.scalar(select(func.count()).where(samples)) or 0)


def read_catalogue(path: Path, encoding: str | None = None) -> CatalogueFile:
    """Return the wines of a CSV file, and what is wrong with the rest of it.

    Raises:
        CatalogueFileError: it cannot be read, or is no list of wines.
    """
    try:
        content, read_as = decoded(path.read_bytes(), encoding)
    except OSError as error:
        reason = f"{path} cannot be read: {error.strerror or error}"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    except (UnicodeDecodeError, LookupError):
        reason = f"{path} is not in {encoding or 'a known encoding'}; save it as 'CSV UTF-8'"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    return replace(parse_catalogue(content), encoding=read_as, source=_source(path))


def _source(path: Path) -> str:
    """The name by which a list is known again, without numbers: `L 2026-10.csv` is `l`."""
    words = folded(path.stem).split()
    return " ".join(word for word in words if not any(map(str.isdigit, word))) or path.stem


def parse_catalogue(content: str) -> CatalogueFile:
    """Return the wines of a CSV text, and what is wrong with the rest of it.

    Raises:
        CatalogueFileError: it is not CSV, or no list of wines.
    """
    table = read_table(content, known_columns)
    columns, kind, everywhere = _understood(table)
    wines: dict[str, Wine] = {}
    problems: list[Problem] = []
    left_out: list[Problem] = []
    for row in read_rows(table, columns, kind, everywhere):
        problems += row.problems
        left_out += row.left_out
        if row.wine and row.wine.id in wines:
            problems.append(Problem(row.line, "id", f"'{row.wine.id}' is in the file twice"))
        elif row.wine:
            wines[row.wine.id] = row.wine
    return CatalogueFile(
        tuple(wines.values()),
        tuple(problems),
        tuple(left_out),
        tuple(zip(table.names, columns, strict=True)),
        assumed=frozenset(everywhere),
    )


def _understood(table: Table) -> tuple[list[str], type[FileRow], dict[str, str]]:
    """The field of each column, the kind of row, and what is so in every row."""
    if set(table.names) >= set(HEADER):
        return [name if name in HEADER else "" for name in table.names], XWinesRow, {}
    columns = columns_of(table)
    if missing := sorted(REQUIRED - set(columns)):
        known = ",".join(OwnRow.columns())
        reason = f"no column for: {', '.join(missing)}. Columns may be called: {known}"
        raise CatalogueFileError([Problem(1, "", reason)])
    everywhere = {name: value for name, value in ASSUMED.items() if name not in columns}
    if "price" in columns and (currency := currency_of(table.names[columns.index("price")])):
        everywhere["currency"] = currency
    return columns, OwnRow, everywhere


CELLAR_COLUMNS: Final = (
    "Wine,Producer,Vintage,Country,Region,Appellation,Varietal,Type,Quantity,Price,Currency,"
    "BeginConsume,EndConsume,Note"
).split(",")
"""What is written, by CellarTracker's names."""
COUNTED: Final = frozenset(
    "quantity qty bottles count inventory anzahl menge flaschen bestand quantite bouteilles "
    "cantidad botellas quantita bottiglie aantal flessen quantidade garrafas".split()
) | {"on hand"}
BEGINS: Final = frozenset({"beginconsume", "begin consume", "drink from", "trinken ab"})
ENDS: Final = frozenset(
    {"endconsume", "end consume", "drink until", "drink by", "trinken bis", "bis"}
)
MOST_WINES: Final = 5000
NO_LIST: Final = "no column of the file holds names of wines"


def read_bottles(content: bytes) -> tuple[list[Bottles], int]:
    """Return the bottles that a CSV file lists, and how many rows could not be read.

    Raises:
        ValueError: it is no list of wines.
    """
    try:
        table = read_table(decoded(content)[0], known_columns)
    except (CatalogueFileError, LookupError, UnicodeDecodeError):
        raise ValueError(NO_LIST) from None
    columns = columns_of(table)
    if "name" not in columns:
        raise ValueError(NO_LIST)
    found, left = dict[str, Bottles](), 0
    for _, cells in table.rows[:MOST_WINES]:
        named = dict(zip(map(folded, table.names), cells, strict=False))
        row = {name: cell for name, cell in zip(columns, cells, strict=False) if name and cell}
        wine = _bottled(row)
        if wine is None:
            left += 1
            continue
        count = _whole(named, COUNTED)
        read = bottles_of(
            wine,
            1 if count is None else count,
            drink_from=_drunk_in(named, BEGINS),
            drink_until=_drunk_in(named, ENDS),
            note=row.get("notes", "")[:200],
        )
        if read.count > 0:
            before = found.get(read.key)
            found[read.key] = bottles_of(
                wine,
                read.count + (before.count if before else 0),
                drink_from=read.drink_from,
                drink_until=read.drink_until,
                note=read.note,
            )
    return list(found.values()), left + max(0, len(table.rows) - MOST_WINES)


def _bottled(row: Mapping[str, str]) -> Wine | None:
    """The wine of a row; what it does not tell is what its name does."""
    name = row.get("name", "")
    if not name:
        return None
    by_name = guessed(f"{name} {row.get('region', '')} {row.get('grapes', '')}")
    cells = {key: cell for key, cell in row.items() if key not in ("id", "in_stock", "notes")}
    bare = {key: cell for key, cell in cells.items() if key in ("name", "producer", "vintage")}
    for kept in (cells, bare):
        try:
            style = kept.get("style") or by_name.style
            given = {"producer": name, "country": "-", **kept, "style": style}
            wine = OwnRow.model_validate(given).wine()
        except ValidationError:
            continue
        blank = {"producer": row.get("producer", ""), "country": row.get("country", "")}
        more = {
            "grapes": wine.grapes or by_name.grapes,
            "body": wine.body or by_name.body,
            "tannin": wine.tannin or by_name.tannin,
            "acidity": wine.acidity or by_name.acidity,
        }
        return wine.model_copy(update=blank | more)
    return None


def _drunk_in(named: Mapping[str, str], names: frozenset[str]) -> int | None:
    """The year in such a column; CellarTracker writes 9999 for one that nobody gave."""
    year = _whole(named, names)
    return year if year in YEARS else None


def _whole(named: Mapping[str, str], names: frozenset[str]) -> int | None:
    """The whole number in the first column of one of these names; None where there is none."""
    cell = next((cell for name, cell in named.items() if name in names), "")
    bare = cell.strip().split(".")[0]
    return int(bare) if bare.isascii() and bare.isdecimal() and len(bare) < len("10000") else None


def write_bottles(bottles: Sequence[Bottles]) -> bytes:
    """Write the bottles that somebody owns as a CSV file, which `read_bottles` and others read."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(CELLAR_COLUMNS)
    rows.writerows(_cells_of(each) for each in bottles if each.count)
    return out.getvalue().encode("utf-8-sig")


def _cells_of(bottles: Bottles) -> Iterator[object]:
    wine, window = wine_of(bottles), window_of(bottles) or ("", "")
    yield from (wine.name, wine.producer, wine.vintage or "", wine.country, wine.region)
    yield from (wine.appellation, ";".join(wine.grapes), wine.style, bottles.count)
    currency = wine.currency if wine.price is not None else ""
    yield from ("" if wine.price is None else wine.price, currency, *window, bottles.note)
