"""Handle buttons under messages: check and acknowledge presses, change and remove buttons.

Telegram tells the buttons of a message with each press and at no other time; so they are known as
they were when it was pressed.
"""

import logging
from collections.abc import Sequence
from typing import Final

from telegram import CallbackQuery, InlineQuery, InlineQueryResult, Message
from telegram.error import TelegramError

from agent.i18n import translate
from bot.question import is_retry
from bot.telegram.sender import Button, ButtonRows, keyboard

log = logging.getLogger(__name__)

LONGEST_TOAST: Final = 200  # characters
MAX_DIGITS: Final = 18


async def acknowledge(query: CallbackQuery, words: str = "") -> None:
    """End the waiting sign on a button; after a while Telegram refuses that, which is harmless."""
    try:
        await query.answer(words[:LONGEST_TOAST] or None)
    except TelegramError as error:
        log.debug("A pressed button was not acknowledged: %s", error)


async def answer_inline(
    query: InlineQuery, results: Sequence[InlineQueryResult] = (), seconds: int = 0
) -> None:
    """Answer an inline query, for its user alone; Telegram refuses that after a while."""
    try:
        await query.answer(results, cache_time=seconds, is_personal=True)
    except TelegramError as error:
        log.debug("An inline query was not answered: %s", error)


def parts_of(query: CallbackQuery, count: int) -> list[str]:
    """Return so many parts behind the prefix of a button's data, `PREFIX:PART:PART`."""
    return [*(query.data or "").split(":", count)[1:], *[""] * count][:count]


def as_id(part: str) -> int:
    """Return the id in a part of a button's data; 0 if it is none."""
    return int(part) if part.isdecimal() and len(part) <= MAX_DIGITS else 0


async def claim(query: CallbackQuery, owner: object, prefix: str | None = "") -> Message | None:
    """Return the pressed message if its user, the `owner`, pressed the button first.

    The button is removed, and those whose data begin with `prefix`; with None it stays, and works
    more than once. Otherwise, and for a button without an owner, tell the user why nothing happens.
    """
    message = query.message
    if not (owner and isinstance(message, Message)):
        problem = "button_too_old"
    elif str(owner) != str(query.from_user.id):
        problem = "not_yours"
    elif prefix is not None and not await remove_buttons(query, prefix):
        problem = "one_moment"
    else:
        return message
    await acknowledge(query, translate(problem))
    return None


def rows_of(message: Message) -> ButtonRows:
    """Return the buttons under a message."""
    rows = message.reply_markup.inline_keyboard if message.reply_markup else ()
    return tuple(
        tuple(Button(key.text, str(key.callback_data or "")) for key in row) for row in rows
    )


async def show_rows(message: object, rows: ButtonRows) -> bool:
    """Show these buttons under a message, if it is accessible.

    Return False if they are shown already.
    """
    if not isinstance(message, Message):
        return True
    try:
        await message.edit_reply_markup(keyboard(rows))
    except TelegramError as error:
        if "not modified" in str(error).lower():
            return False
        log.info("The buttons of a message could not be changed: %s", error)
    return True


async def remove_buttons(query: CallbackQuery, prefix: str = "") -> bool:
    """Remove the pressed button, and those whose data begin with `prefix` if there is one.

    Return whether there were any. A turn that is run again may have removed them itself.
    """

    def stays(key: Button) -> bool:
        return key.data != query.data and not (prefix and key.data.startswith(prefix))

    rows = rows_of(query.message) if isinstance(query.message, Message) else ()
    kept = (tuple(filter(stays, row)) for row in rows)
    return await show_rows(query.message, tuple(row for row in kept if row)) or is_retry()
