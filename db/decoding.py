"""The text of files in whatever encoding they have."""

import codecs
from typing import Final

BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Undecodable(ValueError):
    """A file that holds no text; the message is the reason."""


def decode(data: bytes) -> tuple[str, str]:
    r"""Return the text of a file with `\n` line ends, and the name of its encoding.

    That is UTF-8, UTF-16 with a byte order mark, or a guess: Windows-1252.

    Raises:
        Undecodable: the file is binary.
    """
    encoding = "utf-16" if data.startswith(BYTE_ORDER_MARKS) else "utf-8-sig"
    if b"\0" in data and encoding != "utf-16":
        raise Undecodable("is binary, not text")
    text = data.decode(encoding, "replace")
    beyond_ascii = sum(not sign.isascii() for sign in text)
    if 2 * text.count("\ufffd") > beyond_ascii:  # more than a few damaged bytes
        encoding = "cp1252"
        text = data.decode(encoding, "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding.removesuffix("-sig")
