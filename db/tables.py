"""Decode text files of unknown encoding, and read the cells of workbooks."""

import codecs
import io
import zipfile
from typing import Final

from agent.files import Unreadable

BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode(data: bytes) -> tuple[str, str]:
    r"""Return the text of a file with `\n` line endings, and the name of its encoding.

    The encoding is UTF-8, or UTF-16 with a byte order mark, or else assumed to be Windows-1252.

    Raises:
        Unreadable: the file is binary.
    """
    encoding = "utf-16" if data.startswith(BYTE_ORDER_MARKS) else "utf-8-sig"
    if b"\0" in data and encoding != "utf-16":
        raise Unreadable("is binary, not text")
    text = data.decode(encoding, "replace")
    non_ascii_count = sum(not character.isascii() for character in text)
    if 2 * text.count("\ufffd") > non_ascii_count:  # too many replacements for damaged UTF-8
        encoding = "cp1252"
        text = data.decode(encoding, "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding.removesuffix("-sig")


def read_sheets(data: bytes) -> dict[str, list[list[str]]]:
    """Return the rows of each visible sheet of a workbook, by sheet name.

    Raises:
        Unreadable: the file is damaged, or not a workbook.
    """
    from openpyxl import load_workbook  # noqa: PLC0415 - slow

    try:
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        return {
            sheet.title: [
                ["" if cell is None else str(cell) for cell in row]
                for row in sheet.iter_rows(values_only=True)
            ]
            for sheet in book.worksheets
            if sheet.sheet_state == "visible"
        }
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        reason = f"is damaged, or no workbook ({type(error).__name__})"
        raise Unreadable(reason) from None
