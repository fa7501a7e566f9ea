"""What is done with a pressed button: it is acknowledged, and what stands under a message changed.

Telegram tells the buttons of a message with each press and at no other time; so they are known as
they were when it was pressed.
"""

import logging
from typing import Final

from telegram import CallbackQuery, InlineKeyboardButton, InlineKeyboardMarkup, Message
from telegram.error import BadRequest, TelegramError

log = logging.getLogger(__name__)

LONGEST_TOAST: Final = 200  # characters

ShownRows = tuple[tuple[InlineKeyboardButton, ...], ...]
"""Buttons as they stand under a message."""


async def acknowledge(query: CallbackQuery, words: str = "") -> None:
    """End the waiting sign on a button; Telegram refuses that after a while, which is no matter."""
    try:
        await query.answer(words[:LONGEST_TOAST] or None)
    except TelegramError as error:
        log.debug("A pressed button was not acknowledged: %s", error)


def shown_rows(message: Message) -> ShownRows:
    """The buttons under a message."""
    return message.reply_markup.inline_keyboard if message.reply_markup else ()


def without(rows: ShownRows, data: str | None) -> ShownRows:
    """The buttons but for those with this data; rows that are left empty go."""
    kept = (tuple(each for each in row if each.callback_data != data) for row in rows)
    return tuple(row for row in kept if row)


async def show_rows(message: Message, rows: ShownRows) -> bool:
    """Let these buttons stand under a message; False if they already do."""
    try:
        await message.edit_reply_markup(InlineKeyboardMarkup(rows) if rows else None)
    except BadRequest as error:
        if "not modified" in str(error).lower():
            return False
        log.info("The buttons of a message could not be changed: %s", error)
    except TelegramError as error:
        log.warning("The buttons of a message could not be changed: %s", error)
    return True
