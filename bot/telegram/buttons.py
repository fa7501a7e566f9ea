"""Handle buttons under messages: check and acknowledge presses, change and remove buttons.

Telegram sends the buttons of a message only with a press, so they are known as they were when one
was pressed.
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
    query: InlineQuery,
    results: Sequence[InlineQueryResult] = (),
    cache_seconds: int = 0,
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
    data = query.data or ""
    parts = data.split(":", count)[1:]
    while len(parts) < count:
        parts.append("")
    return parts


def parse_id(part: str) -> int:
    """Return the id in a part of a button's data; 0 if the part is not an id."""
    if part.isdecimal() and len(part) <= MAX_ID_DIGITS:
        return int(part)
    return 0


async def claim_press(
    query: CallbackQuery, turn: ChatTurn, action: str = ""
) -> Message | None:
    """Return the message of a button if the press may be carried out, and collect the claim.

    It may if the user whose turn the message answers pressed it, and if no turn has carried out the
    same `action`, by default this button. Otherwise show the reason and return None. What a client
    sends as the data of a button is not trusted to tell whose it is.
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
    """Collect the claim of an action; return False, and say so, if a turn has carried it out."""
    message = query.message
    if not isinstance(message, Message):
        await acknowledge(query, translate("button_too_old"))
        return False
    presses = turn.repositories.presses
    if await presses.is_claimed(message.chat.id, message.message_id, action):
        await acknowledge(query, translate("one_moment"))
        return False
    turn.claim(message, action)
    return True


async def find_answered_turn(query: CallbackQuery, turn: ChatTurn) -> TurnRow | None:
    """Return the stored turn whose answer has the pressed button; None if it was deleted."""
    message = query.message
    if not isinstance(message, Message):
        return None
    return await turn.repositories.turns.find_by_message(
        message.chat.id, message.message_id
    )


def get_button_rows(message: Message) -> ButtonRows:
    """Return the buttons under a message."""
    if message.reply_markup is None:
        return ()
    rows: list[tuple[Button, ...]] = []
    for keys in message.reply_markup.inline_keyboard:
        row = []
        for key in keys:
            data = str(key.callback_data or key.url or "")
            row.append(Button(key.text, data))
        rows.append(tuple(row))
    return tuple(rows)


def remove_buttons(query: CallbackQuery, turn: ChatTurn, prefix: str = "") -> None:
    """Collect the removal of the pressed button, and of all whose data begin with a `prefix`."""
    if not isinstance(query.message, Message):
        return
    rows: list[tuple[Button, ...]] = []
    for row in get_button_rows(query.message):
        kept = []
        for button in row:
            is_among_removed = prefix and button.data.startswith(prefix)
            if button.data != query.data and not is_among_removed:
                kept.append(button)
        if kept:
            rows.append(tuple(kept))
    turn.replace_buttons(query.message, tuple(rows))
