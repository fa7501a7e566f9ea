"""Handle buttons under messages: check and acknowledge presses, change and remove buttons.

Telegram shows the bot the buttons of a message only when one of them is pressed. So the bot knows
them as they were at the time of the press.
"""

import logging
from collections.abc import Sequence
from typing import Final

from telegram import CallbackQuery, InlineQuery, InlineQueryResult, Message
from telegram.error import TelegramError

from agent.i18n import translate
from bot.telegram.chat import ChatTurn
from bot.telegram.sender import Button, ButtonRows
from db.models import TurnRow

log = logging.getLogger(__name__)

MAX_TOAST_CHARS: Final = 200
"""Telegram's limit for a toast."""
MAX_ID_DIGITS: Final = 18
"""A number of more digits may be too large for the database, so it is no id."""


async def acknowledge(query: CallbackQuery, toast: str = "") -> None:
    """Stop the progress indicator of a pressed button and show a toast, if there is one.

    Telegram refuses the acknowledgement of an old press, which is harmless.
    """
    try:
        await query.answer(toast[:MAX_TOAST_CHARS] or None)
    except TelegramError as error:
        log.debug("A pressed button was not acknowledged: %s", error)


async def answer_inline_query(
    query: InlineQuery,
    results: Sequence[InlineQueryResult] = (),
    cache_seconds: int = 0,
) -> None:
    """Answer an inline query. Telegram caches the answer only for the user who typed the query."""
    try:
        await query.answer(results, cache_time=cache_seconds, is_personal=True)
    except TelegramError as error:
        log.debug("An inline query was not answered: %s", error)


def split_data(query: CallbackQuery, count: int) -> list[str]:
    """Return the parts after the prefix of a button's data, `PREFIX:PART:PART`.

    There are always `count` parts. Those that are missing are empty.
    """
    data = query.data or ""
    _, *parts = data.split(":", count)
    while len(parts) < count:
        parts.append("")
    return parts


def parse_id(part: str) -> int:
    """Return the id in a part of a button's data, or 0 if the part is not an id."""
    if part.isdecimal() and len(part) <= MAX_ID_DIGITS:
        return int(part)
    return 0


async def claim_press(
    query: CallbackQuery, turn: ChatTurn, action: str = ""
) -> Message | None:
    """Claim a press for this turn, and return the message of the button.

    A button works only for the user whose question the message answers, and only once. For other
    presses, show the reason and return None. The user is taken from the stored turn, because a
    client can forge the data of a button. Each `action` can be claimed once below a message. By
    default it is the data of the button. Buttons that share an action exclude each other.
    """
    answered = await find_answered_turn(query, turn)
    if answered is None or not isinstance(query.message, Message):
        await acknowledge(query, translate("button_too_old"))
        return None
    if answered.user_id != query.from_user.id:
        await acknowledge(query, translate("not_yours"))
        return None
    if not await claim_once(query, turn, action or str(query.data)):
        return None
    return query.message


async def claim_once(query: CallbackQuery, turn: ChatTurn, action: str) -> bool:
    """Claim an action below a message for this turn. Return whether this turn is the first one.

    If it is not, tell the user.
    """
    message = query.message
    if not isinstance(message, Message):
        await acknowledge(query, translate("button_too_old"))
        return False
    presses = turn.repositories.presses
    if await presses.is_claimed(message.chat.id, message.message_id, action):
        await acknowledge(query, translate("one_moment"))
        return False
    # Two presses may both come this far, but the commit of one turn only finds the claim free.
    turn.claim(message, action)
    return True


async def find_answered_turn(query: CallbackQuery, turn: ChatTurn) -> TurnRow | None:
    """Return the stored turn whose answer has the pressed button, or None if it was deleted."""
    message = query.message
    if not isinstance(message, Message):
        return None
    turns = turn.repositories.turns
    return await turns.find_by_message(message.chat.id, message.message_id)


def get_button_rows(message: Message) -> ButtonRows:
    """Return the buttons under a message."""
    if message.reply_markup is None:
        return ()
    rows: list[tuple[Button, ...]] = []
    for telegram_row in message.reply_markup.inline_keyboard:
        row = []
        for telegram_button in telegram_row:
            data = str(telegram_button.callback_data or telegram_button.url or "")
            row.append(Button(telegram_button.text, data))
        rows.append(tuple(row))
    return tuple(rows)


def remove_buttons(query: CallbackQuery, turn: ChatTurn, prefix: str = "") -> None:
    """Remove the pressed button. With a `prefix`, also remove the buttons whose data begin with it.

    The turn collects the removal, and its commit carries it out.
    """
    if not isinstance(query.message, Message):
        return
    rows: list[tuple[Button, ...]] = []
    for row in get_button_rows(query.message):
        kept = []
        for button in row:
            is_pressed = button.data == query.data
            has_prefix = prefix != "" and button.data.startswith(prefix)
            if not is_pressed and not has_prefix:
                kept.append(button)
        if kept:
            rows.append(tuple(kept))
    turn.replace_buttons(query.message, tuple(rows))
