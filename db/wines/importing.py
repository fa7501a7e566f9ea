"""Importing wines from CSV files: all of a file or nothing of it.

A file is UTF-8 with a header line and commas. Two headers are known: the project's own, whose
columns `docs/wines.md` describes for people, and that of the X-Wines data set, as published.
An id that exists already is replaced, so importing a file twice changes nothing.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from sqlalchemy import exists, select

from agent.sommelier.synonyms import folded
from agent.sommelier.wine import Colour, Wine
from db.engine import Sessions
from db.models import WineRow
from db.wines.csv_files import CatalogueFileError, FileRow, Problem, read_rows
from db.wines.rows import chunks, load_wines, save_wines
from db.wines.xwines import HEADER, XWinesRow

Progress = Callable[[int, int], None]
"""Called with wines done and wines in all."""

STARTER: Final = Path(__file__).parents[1] / "starter" / "wines.csv"
REQUIRED: Final = {"producer", "name", "country", "style"}
VOCABULARY: Final = ("style", "colour", "sweetness", "body", "acidity", "tannin")
LISTS: Final = ("grapes", "foods", "allergens")
MAX_ID: Final = 100
OLDEST_VINTAGE: Final = 1780
_ID_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-._")


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. `problems` are details left out of wines that were imported."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """The wines of a file, each id once, and what was left out of them."""

    wines: tuple[Wine, ...]
    left_out: tuple[Problem, ...] = ()


async def import_catalogue(
    sessions: Sessions, path: Path, progress: Progress | None = None
) -> ImportReport:
    """Import the wines of a CSV file, in one transaction.

    Raises:
        CatalogueFileError: the file cannot be read or has bad rows; nothing was imported.
    """
    file = await asyncio.to_thread(read_catalogue, path)
    return await import_wines(sessions, file, progress)


async def load_starter(sessions: Sessions, path: Path = STARTER) -> ImportReport | None:
    """Import the starter catalogue into an empty database; None if it holds wines already."""
    async with sessions() as session:
        if await session.scalar(select(exists(select(WineRow.number)))):
            return None
    return await import_catalogue(sessions, path)


async def import_wines(
    sessions: Sessions, file: CatalogueFile, progress: Progress | None = None
) -> ImportReport:
    """Add or replace these wines, in one transaction; those that are stored already are left."""
    fates: Counter[str] = Counter()
    async with sessions.begin() as session:
        for wines in chunks(file.wines):
            stored = await load_wines(session, [wine.id for wine in wines])
            fates.update(_fate(wine, stored) for wine in wines)
            if changed := [wine for wine in wines if stored.get(wine.id) != wine]:
                await save_wines(session, changed)
            session.expunge_all()
            if progress:
                progress(fates.total(), len(file.wines))
    return ImportReport(**fates, problems=file.left_out)


def _fate(wine: Wine, stored: Mapping[str, Wine]) -> str:
    if wine.id not in stored:
        return "added"
    return "unchanged" if stored[wine.id] == wine else "updated"


def read_catalogue(path: Path) -> CatalogueFile:
    """Return the wines of a CSV file.

    Raises:
        CatalogueFileError: names the file, or every bad row with column and reason.
    """
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = f"{path} cannot be read: {error.strerror or error}"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    except UnicodeDecodeError as error:
        reason = f"{path} is not UTF-8 (byte {error.start}); save it as 'CSV UTF-8'"
        raise CatalogueFileError([Problem(0, "", reason)]) from None
    return parse_catalogue(content)


def parse_catalogue(content: str) -> CatalogueFile:
    """Return the wines of a CSV text.

    Raises:
        CatalogueFileError: every bad row with line, column and reason.
    """
    wines: dict[str, Wine] = {}
    problems: list[Problem] = []
    left_out: list[Problem] = []
    for row in read_rows(content, kind_of):
        problems += row.problems
        left_out += row.left_out
        if row.wine and row.wine.id in wines:
            problems.append(Problem(row.line, "id", f"'{row.wine.id}' is in the file twice"))
        elif row.wine:
            wines[row.wine.id] = row.wine
    if problems:
        raise CatalogueFileError(problems)
    return CatalogueFile(tuple(wines.values()), tuple(left_out))


def kind_of(names: list[str]) -> type[FileRow]:
    """Return the kind of rows below a header, ours whatever its case and order.

    Raises:
        CatalogueFileError: neither of the two known headers.
    """
    if set(names) >= set(HEADER):
        return XWinesRow
    names = [name.lower() for name in names]
    own = OwnRow.columns()
    unknown = sorted(set(names) - set(own))
    missing = sorted(REQUIRED - set(names))
    reasons = [f"unknown columns: {', '.join(map(repr, unknown))}"] if unknown else []
    reasons += [f"missing columns: {', '.join(missing)}"] if missing else []
    reasons += ["a column is there twice"] if len(names) != len(set(names)) else []
    if reasons:
        expected = f"Expected, separated by commas: {','.join(own)}"
        raise CatalogueFileError([Problem(1, "", f"{'; '.join(reasons)}. {expected}")])
    return OwnRow


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
    if text.upper().replace(".", "") == "NV":
        return None
    newest = datetime.now(UTC).year
    if not text.isascii() or not text.isdigit() or not OLDEST_VINTAGE <= int(text) <= newest:
        raise ValueError(f"'{text}' is not a year from {OLDEST_VINTAGE} to {newest}, empty or NV")
    return int(text)


class OwnRow(FileRow, Wine):
    """A row of the project's own CSV; what is empty is as `Wine` has it by default."""

    id: Annotated[str, AfterValidator(_id)]
    vintage: Annotated[int | None, BeforeValidator(_vintage)] = None
    abv: float | None = Field(None, ge=0, le=75)
    price: float | None = Field(None, ge=0.01, le=1_000_000)

    @model_validator(mode="before")
    @classmethod
    def _derived(cls, cells: dict[str, str]) -> dict[str, str]:
        """With the id that its names make, and the colour that its style says."""
        style, year = cells.get("style", "").lower(), cells.get("vintage", "")
        colour = {"colour": style} if style in set(Colour) else {}
        named = slug(cells.get("producer", ""), cells.get("name", ""))
        made = named and f"{named}-{year if year.isdigit() else 'nv'}"
        return {"id": made, **colour, **cells}

    @field_validator(*VOCABULARY, mode="before")
    @classmethod
    def _folded(cls, text: str) -> str:
        return text.lower()

    @field_validator("currency", mode="before")
    @classmethod
    def _code(cls, text: str) -> str:
        return text.upper()

    @field_validator(*LISTS, mode="before")
    @classmethod
    def _listed(cls, text: str, info: ValidationInfo) -> list[str]:
        """The parts of a list with `;` between them, each once."""
        parts = dict.fromkeys(part.strip() for part in text.split(";"))
        return [part if info.field_name == "grapes" else part.lower() for part in parts if part]

    def wine(self) -> Wine:
        """Make the wine of the row."""
        return Wine.model_validate(self.model_dump())
