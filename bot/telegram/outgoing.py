"""What a person gets: Markdown, and the buttons under it."""

from collections.abc import Sequence
from dataclasses import dataclass

from telegram import InlineKeyboardButton, InlineKeyboardMarkup


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a message; `data` comes back when it is pressed, at most 64 bytes of UTF-8."""

    label: str
    data: str


Rows = tuple[tuple[Button, ...], ...]
"""Buttons side by side in rows."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An answer in Markdown, and the buttons under it."""

    markdown: str
    buttons: Rows = ()


def keyboard(rows: Sequence[Sequence[Button]]) -> InlineKeyboardMarkup | None:
    """The buttons as Telegram takes them; None without any."""
    shown = [
        [InlineKeyboardButton(each.label, callback_data=each.data) for each in row] for row in rows
    ]
    return InlineKeyboardMarkup(shown) if shown else None
