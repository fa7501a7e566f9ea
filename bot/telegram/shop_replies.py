"""Pass on what users and the staff of the shop write to each other, until one of them ends it.

A message is passed on if it replies to a message of a referral: the stored id of that message says
whose it is, never a text. Everything else is answered as usual.
"""

from telegram import Message, Update
from telegram.ext import filters

from agent.auto_links import find_auto_links
from agent.i18n import translate, use_language
from agent.markdown import escape, format_link
from bot.telegram.ask_shop import (
    END,
    as_quote,
    belonging_to,
    find_referral,
    find_staff_chat,
    is_from_staff,
    load_staff_language,
    number_of,
    write_to_staff,
    write_to_user,
)
from bot.telegram.buttons import acknowledge, parse_id, split_data
from bot.telegram.chat import (
    NOT_MINE,
    AnyHandler,
    ChatTurn,
    load_language,
    on_message,
    on_press,
)
from bot.telegram.messages import id_of_replied_answer, message_of, press_of
from bot.telegram.sender import build_messages
from bot.turn import Destination
from db.changes.referrals import EndReferral, PassOn
from db.models import OutboxRow, ReferralRow, ReferralState
from db.repositories.people import MemoryRepository
from db.repositories.referrals import ReferralUpkeep


def shop_reply_handlers() -> list[AnyHandler]:
    """Return the handlers of replies and of the button that ends a conversation."""
    replies = filters.UpdateType.MESSAGE & filters.REPLY & ~filters.COMMAND
    return [on_press(END, _end), on_message(replies, _pass_on)]


async def _pass_on(update: Update, turn: ChatTurn) -> object:
    """Pass a reply on to the other side of its referral; leave all others to other handlers."""
    message = message_of(update)
    replied_id = id_of_replied_answer(message)
    if replied_id is None:
        return NOT_MINE
    referrals = turn.repositories.referrals
    referral = await referrals.find_by_message(turn.chat_id, replied_id)
    is_staff = await is_from_staff(turn)
    if referral is None:
        if is_staff:
            return await _reject_unknown(turn, replied_id)
        return NOT_MINE
    if not is_staff and turn.chat_id != referral.user_id:
        # This chat was the staff's before.
        turn.reply(translate("staff_unknown"))
    elif not message.text:
        turn.reply(translate("shop_only_text"))
    elif is_staff:
        await _pass_to_user(turn, referral, message)
    else:
        await turn.services.runner.offer_help(turn, turn.ask(message.text))
        await _pass_to_staff(turn, referral, message)
    return None


async def _reject_unknown(turn: ChatTurn, replied_id: int) -> object:
    """Say that a reply of the staff goes to nobody, unless it replies to an answer to them."""
    turns = turn.repositories.turns
    answered = await turns.find_by_message(turn.chat_id, replied_id)
    if answered is not None:
        return NOT_MINE
    turn.reply(translate("staff_unknown"))
    return None


async def _pass_to_user(
    turn: ChatTurn, referral: ReferralRow, message: Message
) -> None:
    number = number_of(referral)
    sent = translate("staff_sent", number=number)
    over = translate("staff_over", number=number)
    done = await _confirm(turn, referral, message, sent)
    refusal = await _confirm(turn, referral, message, over)
    body = _with_links(message.text or "")
    with use_language(await load_language(turn.repositories.memory, referral.user_id)):
        shop = turn.services.resources.shop_name or translate("the_shop")
        heading = translate("shop_writes", shop=escape(shop))
        hint = translate("shop_hint")
        text = f"{heading}\n\n{body}\n\n_{hint}_"
        to_user = await write_to_user(turn, referral, text)
    turn.change(PassOn(referral.id, (*to_user, *done), refusal))


async def _pass_to_staff(
    turn: ChatTurn, referral: ReferralRow, message: Message
) -> None:
    done = await _confirm(turn, referral, message, translate("shop_passed_on"))
    refusal = await _confirm(turn, referral, message, translate("shop_over"))
    with use_language(await load_staff_language(turn)):
        heading = translate("staff_more", number=number_of(referral))
        text = f"{heading}\n\n{as_quote(message.text or '')}"
        to_staff = await write_to_staff(turn, referral, text)
    turn.change(PassOn(referral.id, (*to_staff, *done), refusal))


async def _confirm(
    turn: ChatTurn, referral: ReferralRow, message: Message, text: str
) -> list[OutboxRow]:
    """Return a message to the writer of a message; a reply to it is passed on as well."""
    to = Destination(
        message.chat.id, turn.thread_id or None, reply_to=message.message_id
    )
    return belonging_to(referral, await build_messages(to, [text]))


async def _end(update: Update, turn: ChatTurn) -> None:
    """End a referral by its button, and tell both sides."""
    query = press_of(update)
    (id_text,) = split_data(query, 1)
    referral = await find_referral(turn, parse_id(id_text))
    await acknowledge(query)
    turn.replace_buttons(query.message, ())
    if referral is None or referral.state != ReferralState.OPEN:
        return
    to_user = belonging_to(referral, await _build_end_for_user(turn, referral))
    to_staff = belonging_to(referral, await _build_end_for_staff(turn, referral))
    turn.change(EndReferral(referral.id, (*to_user, *to_staff)))


async def end_before_forgetting(turn: ChatTurn) -> None:
    """Collect that the staff are told of the end of the user's referrals, which will be deleted."""
    for referral in await turn.repositories.referrals.list_open(turn.user_id):
        # These messages belong to no referral: it is gone when they are stored.
        messages = await _build_end_for_staff(turn, referral)
        turn.change(EndReferral(referral.id, messages))


async def _build_end_for_user(turn: ChatTurn, referral: ReferralRow) -> list[OutboxRow]:
    to = Destination(referral.user_id)
    with use_language(await load_language(turn.repositories.memory, referral.user_id)):
        return await build_messages(to, [translate("shop_ended")])


async def _build_end_for_staff(
    turn: ChatTurn, referral: ReferralRow
) -> list[OutboxRow]:
    to = Destination(await find_staff_chat(turn))
    with use_language(await load_staff_language(turn)):
        text = translate("staff_ended", number=number_of(referral))
        return await build_messages(to, [text])


def _with_links(text: str) -> str:
    """Return a text literally, but with web addresses as links, which users can tap."""
    parts = []
    end = 0
    for link in find_auto_links(text):
        address = text[link.start : link.end]
        parts.append(escape(text[end : link.start]))
        parts.append(format_link(address) or escape(address))
        end = link.end
    parts.append(escape(text[end:]))
    return "".join(parts)


async def report_undelivered(
    upkeep: ReferralUpkeep, memory: MemoryRepository, staff_chat_id: int
) -> None:
    """Tell the writer of a message of a referral that it may not have arrived."""
    for message, referral in await upkeep.list_undelivered():
        writer_id = referral.user_id
        if message.chat_id == referral.user_id:
            writer_id = staff_chat_id
        with use_language(await load_language(memory, writer_id)):
            if writer_id == staff_chat_id:
                text = translate("staff_undelivered", number=number_of(referral))
            else:
                text = translate("shop_undelivered")
            notice = await build_messages(Destination(writer_id), [text])
        await upkeep.report(message, notice)
