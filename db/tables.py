"""Decode text files of unknown encoding, and read the cells of workbooks."""

import codecs
import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from agent.files import Unreadable

Row = TypeVar("Row", bound=Sequence[Any])

BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
DEFAULT_ENCODING: Final = "cp1252"
ENCODINGS: Final = (
    DEFAULT_ENCODING,
    "cp1250",
    "cp1251",
    "cp1253",
    "cp1254",
    "cp850",
    "koi8_r",
    "mac_roman",
)
"""The encodings besides Unicode that spreadsheets and older programs write."""
MAX_DETECTED_BYTES: Final = 50_000
"""How much of a file is looked at to detect its encoding."""
DELIMITERS_AS_SPACES: Final = bytes.maketrans(b',;|"', b"    ")
"""Replaces what separates the cells of a table."""
MAX_ROWS: Final = 100_000
MAX_COLUMNS: Final = 1_000
MAX_CELLS: Final = 3_000_000
MAX_UNPACKED_BYTES: Final = 200_000_000
"""How large a workbook may be when its files are unpacked."""


def decode(data: bytes) -> tuple[str, str]:
    r"""Return the text of a file with `\n` line endings, and the name of its encoding.

    The encoding is UTF-8, or UTF-16 with a byte order mark, or else the likeliest of `ENCODINGS`.

    Raises:
        Unreadable: the file is binary.
    """
    encoding = "utf-8-sig"
    if data.startswith(BYTE_ORDER_MARKS):
        encoding = "utf-16"
    elif b"\0" in data:
        raise Unreadable("is binary, not text")
    text = data.decode(encoding, "replace")
    non_ascii_count = sum(not character.isascii() for character in text)
    replacement_count = text.count("\ufffd")
    # Damaged UTF-8 has a few replacements; with more, it is another encoding.
    if 2 * replacement_count > non_ascii_count:
        encoding = _detect_encoding(data)
        text = data.decode(encoding, "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, encoding.removesuffix("-sig")


def _detect_encoding(data: bytes) -> str:
    """Return the likeliest encoding of a text that is not UTF-8.

    A text in a Western language can often be read in several encodings. Then it is Windows-1252.
    """
    from charset_normalizer import from_bytes  # noqa: PLC0415 - slow

    words = data.translate(DELIMITERS_AS_SPACES).split()
    # Each word counts once: a table may have the same word in each row, which would then decide.
    unique_words = dict.fromkeys(words)
    telling = [word for word in unique_words if not word.isascii()]
    sample = b" ".join(telling)[:MAX_DETECTED_BYTES]
    matches = list(from_bytes(sample, cp_isolation=[*ENCODINGS]))
    if not matches:
        return DEFAULT_ENCODING
    best = matches[0]
    for match in matches:
        # A likely reading has little chaos (marks in odd places) and much coherence (words).
        is_as_likely = match.chaos <= best.chaos and match.coherence >= best.coherence
        if is_as_likely and DEFAULT_ENCODING in match.could_be_from_charset:
            return DEFAULT_ENCODING
    return best.encoding


def read_sheets(data: bytes) -> dict[str, list[list[str]]]:
    """Return the rows of each visible sheet of a workbook, by sheet name.

    Raises:
        Unreadable: the file is damaged, or not a workbook.
    """
    from openpyxl import load_workbook  # noqa: PLC0415 - slow

    sheets: dict[str, list[list[str]]] = {}
    try:
        _check_unpacked_size(data)
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        for sheet in book.worksheets:
            if sheet.sheet_state == "visible":
                rows = limit_rows(sheet.iter_rows(values_only=True))
                sheets[sheet.title] = [_to_texts(row) for row in rows]
    except Unreadable:
        # It is a ValueError, too, but already says what is wrong.
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        reason = f"is damaged, or no workbook ({type(error).__name__})"
        raise Unreadable(reason) from None
    return sheets


def _to_texts(cells: Iterable[Any]) -> list[str]:
    """Return the cells of a row as texts. An empty cell is ""."""
    texts: list[str] = []
    for cell in cells:
        if cell is None:
            texts.append("")
        else:
            texts.append(str(cell))
    return texts


def limit_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of a table.

    Raises:
        Unreadable: the table has too many rows, columns or cells.
    """
    cell_count = 0
    for number, row in enumerate(rows, start=1):
        column_count = len(row)
        cell_count += column_count
        if column_count > MAX_COLUMNS:
            raise Unreadable(f"has over {MAX_COLUMNS:,} columns in row {number:,}")
        if number > MAX_ROWS or cell_count > MAX_CELLS:
            raise Unreadable(
                f"has over {MAX_ROWS:,} rows or {MAX_CELLS:,} cells; split it"
            )
        yield row


def _check_unpacked_size(data: bytes) -> None:
    """Raise Unreadable if a workbook would be too large when it is unpacked."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > MAX_UNPACKED_BYTES:
        raise Unreadable(f"has over {MAX_UNPACKED_BYTES:,} bytes when unpacked")
