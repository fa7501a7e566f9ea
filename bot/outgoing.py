"""What a person gets: Markdown, and the buttons under it."""

from collections.abc import Sequence
from dataclasses import dataclass

from telegram import InlineKeyboardButton, InlineKeyboardMarkup


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a message; `data` comes back when it is pressed, at most 64 bytes of UTF-8."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An answer in Markdown, and the buttons under it."""

    markdown: str
    buttons: tuple[Button, ...] = ()


def keyboard(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    """The buttons as Telegram takes them, one under the other; None without any."""
    rows = [[InlineKeyboardButton(each.label, callback_data=each.data)] for each in buttons]
    return InlineKeyboardMarkup(rows) if rows else None
