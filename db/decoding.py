"""The text of files in whatever encoding they have."""

import codecs
from typing import Final

BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
ASCII: Final = bytes(range(128))
LATIN_SHARE: Final = 0.25
"""Text in Latin letters has a smaller share of bytes beyond ASCII."""
ENCODINGS: Final = (
    *("cp1251", "koi8_r", "cp932", "euc_jis_2004", "gb18030", "big5", "cp949", "cp1253"),
    *("cp1255", "cp1256"),
)
"""Common encodings of other scripts."""
MIN_GUESSED: Final = 32
"""Bytes; of shorter text nothing can be told."""


class Undecodable(ValueError):
    """A file that holds no text; the message is the reason."""


def decode(data: bytes) -> tuple[str, str]:
    r"""Return the text of a file with `\n` line ends, and the name of its encoding.

    That is UTF-8, UTF-16 with a byte order mark, or a guess: Windows-1252 for Latin letters.

    Raises:
        Undecodable: the file is binary.
    """
    text, encoding = _decode(data)
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def _decode(data: bytes) -> tuple[str, str]:
    if data.startswith(BYTE_ORDER_MARKS):
        return data.decode("utf-16", "replace"), "utf-16"
    if b"\0" in data:
        raise Undecodable("is binary, not text")
    text = data.decode("utf-8-sig", "replace")
    beyond_ascii = sum(not sign.isascii() for sign in text)
    if 2 * text.count("\ufffd") <= beyond_ascii:
        return text, "utf-8"  # whole, or with a few damaged bytes
    if len(data.translate(None, ASCII)) > LATIN_SHARE * len(data) and len(data) >= MIN_GUESSED:
        from trafilatura.utils import detect_encoding  # noqa: PLC0415 - heavy, and seldom needed

        if guesses := [name for name in detect_encoding(data) if name in ENCODINGS]:
            return data.decode(guesses[0], "replace"), guesses[0]
    return data.decode("cp1252", "replace"), "cp1252"
