"""The text of files in whatever encoding they have, and the cells of workbooks."""

import codecs
import io
import zipfile
from typing import Final

BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Unreadable(ValueError):
    """A file that cannot be read; the message is the reason."""


def decode(data: bytes) -> tuple[str, str]:
    r"""Return the text of a file with `\n` line ends, and the name of its encoding.

    That is UTF-8, UTF-16 with a byte order mark, or a guess: Windows-1252.

    Raises:
        Unreadable: the file is binary.
    """
    encoding = "utf-16" if data.startswith(BYTE_ORDER_MARKS) else "utf-8-sig"
    if b"\0" in data and encoding != "utf-16":
        raise Unreadable("is binary, not text")
    text = data.decode(encoding, "replace")
    beyond_ascii = sum(not sign.isascii() for sign in text)
    if 2 * text.count("\ufffd") > beyond_ascii:  # more than a few damaged bytes
        encoding = "cp1252"
        text = data.decode(encoding, "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding.removesuffix("-sig")


def read_sheets(data: bytes) -> dict[str, list[list[str]]]:
    """Return the rows of the visible sheets of a workbook, by the names of the sheets.

    Raises:
        Unreadable: it is damaged, or no workbook.
    """
    from openpyxl import load_workbook  # noqa: PLC0415 - heavy

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
