"""The years of wines: which are possible, and which year two digits stand for."""

from datetime import UTC, datetime
from typing import Final

OLDEST_VINTAGE: Final = 1780
YEAR_DIGITS: Final = 4


def is_year(text: str, oldest: int = OLDEST_VINTAGE) -> bool:
    """Return whether a text is a year in which a wine for sale may have been made."""
    is_number = text.isascii() and text.isdigit()
    if not is_number or len(text) > YEAR_DIGITS:
        return False
    this_year = datetime.now(UTC).year
    return oldest <= int(text) <= this_year


def complete_year(last_digits: int) -> int:
    """Return the last year that ends with two digits: 2009 for 09, and 1998 for 98."""
    this_year = datetime.now(UTC).year
    century = this_year - this_year % 100
    year = century + last_digits
    if year > this_year:
        return year - 100
    return year
