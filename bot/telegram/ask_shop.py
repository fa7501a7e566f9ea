"""Let a user ask the people of the shop: draft a question, show it, and send it to the staff chat.

Nothing is sent before the user has seen it and pressed a button. `bot.telegram.shop_replies` passes
on what both sides write afterwards.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from telegram import Update
from telegram.ext import filters

from agent.documents.shop import CONTACT
from agent.fallback.passages import find_shop_passage
from agent.i18n import translate, use_language
from agent.markdown import escape, strip_invisible
from agent.size_limits import NAME_CHARS
from agent.sommelier.cards import format_facts
from agent.turn import StoredMessage
from bot.telegram.buttons import (
    acknowledge,
    claim_once,
    find_answered_turn,
    parse_id,
    split_data,
)
from bot.telegram.chat import AnyHandler, ChatTurn, load_language, on_command, on_press
from bot.telegram.messages import message_of, press_of, text_after_command
from bot.telegram.sender import Button, ButtonRows, build_messages, in_rows
from bot.turn import Destination, Turn
from db.changes.referrals import MAX_OPEN, DraftReferral, DropReferral, OpenReferral
from db.models import OutboxRow, ReferralRow, ReferralState

SHOP: Final = "shop"
"""The command that asks the shop. In a link it is the parameter of /start that does the same."""
ASK: Final = "qa:"
"""The data of the button that asks the shop about an answer."""
SEND: Final = "qs:"
"""The prefix of the data of the button that sends a draft without the user's name: `qs:REFERRAL`.

A referral is the conversation of a user with the staff. The three below have the same form.
"""
SEND_NAME: Final = "qn:"
"""The prefix for the button that sends a draft with the user's name."""
DROP: Final = "qd:"
"""The prefix for the button that drops a draft."""
END: Final = "qe:"
"""The prefix for the button that ends a referral."""
MAX_WINES: Final = 8
NUMBER_DIGITS: Final = 4
"""The staff see the last digits of the id of a referral, because a whole id is hard to read."""


def ask_shop_handlers() -> list[AnyHandler]:
    """Return the handlers of /shop and of the buttons of a draft."""
    return [
        on_command(SHOP, _draft_by_command, filters.ChatType.PRIVATE),
        on_press(ASK, _draft_by_button),
        on_press(f"(?:{SEND}|{SEND_NAME}|{DROP})", _send_or_drop),
    ]


def ask_shop_button(turn: Turn) -> ButtonRows:
    """Return the button that asks the shop about an answer, or no button without a staff chat.

    In a group the button leads to the private chat, where others do not read the question.
    """
    if not isinstance(turn, ChatTurn):
        return ()
    if turn.services.staff_chat_id in (None, turn.chat_id):
        return ()
    data: str = ASK
    if turn.is_group:
        data = f"https://t.me/{turn.bot_name}?start={SHOP}"
    return ((Button(translate("ask_shop_button"), data),),)


async def show_how_to_ask(turn: ChatTurn) -> None:
    """Say how the user can ask the shop. Without a staff chat, say how else to reach the shop."""
    if turn.services.staff_chat_id is not None:
        turn.reply(translate("shop_usage"))
        return
    passage = await find_shop_passage(CONTACT, turn.services.resources.documents)
    if passage is None:
        turn.reply(translate("shop_unknown"))
    else:
        turn.reply(escape(passage.text))


async def _draft_by_command(update: Update, turn: ChatTurn) -> None:
    """Answer `/shop TEXT`: draft a question, or show help if the text is about a crisis."""
    text = text_after_command(message_of(update))
    if not text or turn.services.staff_chat_id is None:
        await show_how_to_ask(turn)
        return
    question = turn.make_question(text)
    if not await turn.services.runner.offer_help(turn, question):
        await _draft(turn, as_quote(text))


async def _draft_by_button(update: Update, turn: ChatTurn) -> None:
    """Draft the question of the answer above a button, with the wines that were shown last."""
    query = press_of(update)
    answered = await find_answered_turn(query, turn)
    if answered is None or turn.is_group:
        await acknowledge(query, translate("button_too_old"))
        return
    messages = turn.repositories.messages
    history = await messages.list_recent(turn.chat_id, last_turn_id=answered.turn_id)
    question = _find_question(history, answered.turn_id)
    if question is None:
        await acknowledge(query, translate("button_too_old"))
        return
    await acknowledge(query)
    quoted_question = as_quote(question)
    wines = await _list_wines(turn, history)
    await _draft(turn, f"{quoted_question}\n\n{wines}".strip())


def _find_question(history: Sequence[StoredMessage], turn_id: int) -> str | None:
    """Return what the user asked in a turn, or None if the history no longer contains it."""
    for message in history:
        if message.turn_id == turn_id and message.role == "user":
            return message.content
    return None


async def _list_wines(turn: ChatTurn, history: Sequence[StoredMessage]) -> str:
    """Return a line for each wine in the last message that has shown wines."""
    wine_ids: tuple[str, ...] = ()
    for message in history:
        if message.wine_ids:
            wine_ids = message.wine_ids
    wines = await turn.repositories.wines.get(wine_ids[:MAX_WINES])
    lines = []
    for wine in wines:
        label = escape(wine.label)
        facts = escape(format_facts(wine))
        lines.append(f"- {label} · {facts}")
    return "\n".join(lines)


async def _draft(turn: ChatTurn, text: str) -> None:
    """Store a draft, and show it to the user with the buttons that send or drop it."""
    if turn.services.staff_chat_id == turn.chat_id:
        turn.reply(translate("shop_is_here"))
        return
    # The id of the turn becomes the id of the referral.
    turn.change(DraftReferral(turn.id, turn.user_id, text))
    buttons = [Button(translate("shop_send_button"), f"{SEND}{turn.id}")]
    name = _first_name(turn.names)
    if name:
        label = translate("shop_send_name", name=name)
        buttons.append(Button(label, f"{SEND_NAME}{turn.id}"))
    buttons.append(Button(translate("shop_drop_button"), f"{DROP}{turn.id}"))
    heading = translate("shop_preview")
    turn.reply(f"{heading}\n\n{text}", in_rows(buttons, 1))


async def _send_or_drop(update: Update, turn: ChatTurn) -> None:
    """Send a draft of this user to the staff, or drop it."""
    query = press_of(update)
    data = str(query.data)
    (id_part,) = split_data(query, 1)
    referral = await find_referral(turn, parse_id(id_part))
    if referral is None or referral.state != ReferralState.DRAFT:
        await acknowledge(query, translate("button_too_old"))
        return
    # A draft is sent or dropped only once, so its three buttons are claimed by the same name.
    if not await claim_once(query, turn, SEND):
        return
    await acknowledge(query)
    turn.replace_buttons(query.message, rows=())
    if data.startswith(DROP):
        turn.change(DropReferral(referral.id))
        turn.reply(translate("shop_dropped"))
        return
    name = ""
    if data.startswith(SEND_NAME):
        name = _first_name(turn.names)
    # The commit sends this in place of the question if the user has too many open referrals.
    too_many = translate("shop_too_many", count=MAX_OPEN)
    refusal = await build_messages(Destination(turn.user_id), [too_many])
    messages = await _build_question(turn, referral, name)
    messages += await write_to_user(turn, referral, translate("shop_sent"))
    turn.change(OpenReferral(referral.id, turn.user_id, name, tuple(messages), refusal))


async def find_referral(turn: ChatTurn, referral_id: int) -> ReferralRow | None:
    """Return a referral, or None if the user may not see it. The staff may see all referrals."""
    referral = await turn.repositories.referrals.get(referral_id)
    if referral is None or await is_from_staff(turn):
        return referral
    # A private chat has the id of its user. Users see their referrals only there.
    is_in_private_chat = turn.chat_id == turn.user_id
    if is_in_private_chat and referral.user_id == turn.user_id:
        return referral
    return None


async def find_staff_chat(turn: ChatTurn) -> int:
    """Return the id of the staff chat, or of the supergroup that has replaced it.

    Return 0 if there is no staff chat.
    """
    staff_chat_id = turn.services.staff_chat_id
    if staff_chat_id is None:
        return 0
    return await turn.repositories.chats.find_current(staff_chat_id)


async def is_from_staff(turn: ChatTurn) -> bool:
    """Return whether a turn began in the staff chat."""
    if turn.services.staff_chat_id is None:
        return False
    return turn.chat_id == await find_staff_chat(turn)


async def _build_question(
    turn: ChatTurn, referral: ReferralRow, name: str
) -> list[OutboxRow]:
    """Return the first message to the staff, in their language."""
    with use_language(await load_staff_language(turn)):
        heading = translate("staff_question", number=number_of(referral))
        if name:
            sender = translate("staff_name", name=escape(name))
            heading = f"{heading}\n{sender}"
        hint = translate("staff_hint")
        text = f"{heading}\n\n{referral.text}\n\n_{hint}_"
        return await write_to_staff(turn, referral, text)


async def write_to_staff(
    turn: ChatTurn, referral: ReferralRow, text: str
) -> list[OutboxRow]:
    """Return a message of a referral for the staff, with the button that ends it."""
    to = Destination(await find_staff_chat(turn))
    return await _build_with_end_button(to, referral, text)


async def write_to_user(
    turn: ChatTurn, referral: ReferralRow, text: str
) -> list[OutboxRow]:
    """Return a message of a referral for its user, with the button that ends it."""
    to = Destination(referral.user_id)
    return await _build_with_end_button(to, referral, text)


async def _build_with_end_button(
    to: Destination, referral: ReferralRow, text: str
) -> list[OutboxRow]:
    """Return a message of a referral, with the button that ends the referral."""
    end = Button(translate("shop_end_button"), f"{END}{referral.id}")
    messages = await build_messages(to, [text], ((end,),))
    return belonging_to(referral, messages)


def belonging_to(
    referral: ReferralRow, messages: Iterable[OutboxRow]
) -> list[OutboxRow]:
    """Return the messages, linked to a referral, so that replies to them are passed on."""
    linked = list(messages)
    for message in linked:
        message.referral_id = referral.id
    return linked


async def load_staff_language(turn: ChatTurn) -> str | None:
    """Return the language of the staff.

    If the staff chat is a private one, this is the language of its user. Otherwise it is the
    language of the first admin.
    """
    memory = turn.repositories.memory
    staff_chat_id = turn.services.staff_chat_id
    # Groups have negative ids. A private chat has the id of its user.
    if staff_chat_id is not None and staff_chat_id > 0:
        return await load_language(memory, staff_chat_id)
    if not turn.services.admin_ids:
        return None
    return await load_language(memory, turn.services.admin_ids[0])


def number_of(referral: ReferralRow) -> str:
    """Return the number by which the staff distinguish referrals, such as "0042"."""
    digits = str(referral.id).zfill(NUMBER_DIGITS)
    return digits[-NUMBER_DIGITS:]


def as_quote(text: str) -> str:
    """Return a text of a user as a Markdown quote that shows it literally."""
    lines = text.strip().splitlines()
    return "\n".join(f"> {escape(line)}" for line in lines)


def _first_name(names: Sequence[str]) -> str:
    """Return the first of the names of a turn, which is the first name of the user, or "".

    The result has at most `NAME_CHARS` characters, all on one line.
    """
    if not names:
        return ""
    words = strip_invisible(names[0]).split()
    return " ".join(words)[:NAME_CHARS]
