"""Handle buttons under messages: check and acknowledge presses, change and remove buttons.

Telegram sends the buttons of a message only with a press, so they are known as they were then.
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

MAX_TOAST_CHARS: Final = 200
MAX_ID_DIGITS: Final = 18


async def acknowledge(query: CallbackQuery, toast: str = "") -> None:
    """Stop the progress indicator of a pressed button and show a toast, if there is one.

    Telegram refuses old queries, which is harmless.
    """
    try:
        await query.answer(toast[:MAX_TOAST_CHARS] or None)
    except TelegramError as error:
        log.debug("A pressed button was not acknowledged: %s", error)


async def answer_inline_query(
    query: InlineQuery, results: Sequence[InlineQueryResult] = (), cache_seconds: int = 0
) -> None:
    """Answer an inline query; the answer is only cached for the user who typed it."""
    try:
        await query.answer(results, cache_time=cache_seconds, is_personal=True)
    except TelegramError as error:
        log.debug("An inline query was not answered: %s", error)


def split_data(query: CallbackQuery, count: int) -> list[str]:
    """Return the parts after the prefix of a button's data, `PREFIX:PART:PART`.

    There are always `count` parts; missing ones are empty.
    """
    return [*(query.data or "").split(":", count)[1:], *[""] * count][:count]


def parse_id(part: str) -> int:
    """Return the id in a part of a button's data; 0 if the part is not an id."""
    return int(part) if part.isdecimal() and len(part) <= MAX_ID_DIGITS else 0


async def claim_press(
    query: CallbackQuery, owner_id: int | str | None, prefix: str | None = ""
) -> Message | None:
    """Return the message of a button if its owner pressed it, and nobody used it before.

    The button is removed, and others with this non-empty `prefix`; with None all buttons stay.
    If the press is not valid, or `owner_id` is empty, show the reason and return None.
    """
    message = query.message
    if not (owner_id and isinstance(message, Message)):
        problem = "button_too_old"
    elif str(owner_id) != str(query.from_user.id):
        problem = "not_yours"
    elif prefix is not None and not await remove_buttons(query, prefix):
        problem = "one_moment"
    else:
        return message
    await acknowledge(query, translate(problem))
    return None


def get_button_rows(message: Message) -> ButtonRows:
    """Return the buttons under a message."""
    rows = message.reply_markup.inline_keyboard if message.reply_markup else ()
    return tuple(
        tuple(Button(button.text, str(button.callback_data or "")) for button in row)
        for row in rows
    )


async def replace_buttons(message: object, rows: ButtonRows) -> bool:
    """Replace the buttons under a message, if the bot can access it.

    Return False if the message has exactly these buttons already.
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
    """Remove the pressed button, and all whose data begin with a non-empty `prefix`.

    Return False if a press removed them before.
    """

    def remains(button: Button) -> bool:
        return button.data != query.data and not (prefix and button.data.startswith(prefix))

    rows = get_button_rows(query.message) if isinstance(query.message, Message) else ()
    remaining = (tuple(filter(remains, row)) for row in rows)
    is_changed = await replace_buttons(query.message, tuple(row for row in remaining if row))
    return is_changed or is_retry()  # an interrupted try of this turn may have removed them
