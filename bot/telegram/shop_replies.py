"""Pass on what users and the staff of the shop write to each other, until one of them ends it.

Such a conversation is called a referral. A message is passed on if it replies to a message of a
referral. The stored id of that message says to which referral it belongs. No text is trusted for
that. All other messages are answered as usual.
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
    """Pass a reply on to the other side of its referral.

    Return `NOT_MINE` for all other messages, which other handlers then answer.
    """
    message = message_of(update)
    replied_id = id_of_replied_answer(message)
    if replied_id is None:
        return NOT_MINE
    referrals = turn.repositories.referrals
    referral = await referrals.find_by_message(turn.chat_id, replied_id)
    is_staff = await is_from_staff(turn)
    if referral is None and is_staff:
        return await _reject_unknown(turn, replied_id)
    if referral is None:
        return NOT_MINE
    is_former_staff_chat = not is_staff and turn.chat_id != referral.user_id
    if is_former_staff_chat:
        turn.reply(translate("staff_unknown"))
    elif not message.text:
        turn.reply(translate("shop_only_text"))
    elif is_staff:
        await _pass_to_user(turn, referral, message)
    else:
        # The staff are no crisis line: a user who writes to them of a crisis is shown help as well.
        question = turn.make_question(message.text)
        await turn.services.runner.offer_help(turn, question)
        await _pass_to_staff(turn, referral, message)
    return None


async def _reject_unknown(turn: ChatTurn, replied_id: int) -> object:
    """Tell the staff that their reply goes to nobody.

    Return `NOT_MINE` if the bot answered the staff themselves, and they reply to that answer.
    """
    answered = await turn.repositories.turns.find_by_message(turn.chat_id, replied_id)
    if answered is not None:
        return NOT_MINE
    turn.reply(translate("staff_unknown"))
    return None


async def _pass_to_user(
    turn: ChatTurn, referral: ReferralRow, message: Message
) -> None:
    """Pass an answer of the staff on to the user, if the referral is still open at the commit."""
    number = number_of(referral)
    sent_text = translate("staff_sent", number=number)
    ended_text = translate("staff_over", number=number)
    confirmation = await _build_notice(turn, referral, message, sent_text)
    refusal = await _build_notice(turn, referral, message, ended_text)
    language = await load_language(turn.repositories.memory, referral.user_id)
    with use_language(language):
        shop = turn.services.resources.shop_name or translate("the_shop")
        heading = translate("shop_writes", shop=escape(shop))
        body = _with_links(message.text or "")
        hint = translate("shop_hint")
        text = f"{heading}\n\n{body}\n\n_{hint}_"
        to_user = await write_to_user(turn, referral, text)
    messages = (*to_user, *confirmation)
    turn.change(PassOn(referral.id, messages, refusal))


async def _pass_to_staff(
    turn: ChatTurn, referral: ReferralRow, message: Message
) -> None:
    """Pass a further message of the user on, if the referral is still open at the commit."""
    passed_on_text = translate("shop_passed_on")
    ended_text = translate("shop_over")
    confirmation = await _build_notice(turn, referral, message, passed_on_text)
    refusal = await _build_notice(turn, referral, message, ended_text)
    with use_language(await load_staff_language(turn)):
        heading = translate("staff_more", number=number_of(referral))
        body = as_quote(message.text or "")
        text = f"{heading}\n\n{body}"
        to_staff = await write_to_staff(turn, referral, text)
    messages = (*to_staff, *confirmation)
    turn.change(PassOn(referral.id, messages, refusal))


async def _build_notice(
    turn: ChatTurn,
    referral: ReferralRow,
    message: Message,
    text: str,
) -> list[OutboxRow]:
    """Return a notice that replies to a message and says whether it was passed on.

    The notice belongs to the referral, so that a reply to it is passed on as well.
    """
    thread_id = turn.thread_id or None
    to = Destination(message.chat.id, thread_id, reply_to=message.message_id)
    notice = await build_messages(to, [text])
    return belonging_to(referral, notice)


async def _end(update: Update, turn: ChatTurn) -> None:
    """End a referral by its button, and tell both sides."""
    query = press_of(update)
    (id_part,) = split_data(query, 1)
    referral = await find_referral(turn, parse_id(id_part))
    await acknowledge(query)
    turn.replace_buttons(query.message, ())
    if referral is None or referral.state != ReferralState.OPEN:
        return
    to_user = belonging_to(referral, await _build_end_for_user(turn, referral))
    to_staff = belonging_to(referral, await _build_end_for_staff(turn, referral))
    turn.change(EndReferral(referral.id, (*to_user, *to_staff)))


async def end_before_forgetting(turn: ChatTurn) -> None:
    """End the open referrals of a user whose data will be deleted, and tell the staff."""
    for referral in await turn.repositories.referrals.list_open(turn.user_id):
        # The messages are not linked to the referral, which is gone when they are stored.
        messages = await _build_end_for_staff(turn, referral)
        turn.change(EndReferral(referral.id, messages))


async def _build_end_for_user(turn: ChatTurn, referral: ReferralRow) -> list[OutboxRow]:
    """Return the message that tells the user that a referral has ended."""
    language = await load_language(turn.repositories.memory, referral.user_id)
    to = Destination(referral.user_id)
    with use_language(language):
        return await build_messages(to, [translate("shop_ended")])


async def _build_end_for_staff(
    turn: ChatTurn, referral: ReferralRow
) -> list[OutboxRow]:
    """Return the message that tells the staff that a referral has ended."""
    to = Destination(await find_staff_chat(turn))
    with use_language(await load_staff_language(turn)):
        text = translate("staff_ended", number=number_of(referral))
        return await build_messages(to, [text])


def _with_links(text: str) -> str:
    """Return a text as Markdown that shows it literally, with web addresses as links."""
    parts = []
    end_of_last = 0
    for link in find_auto_links(text):
        before = text[end_of_last : link.start]
        address = text[link.start : link.end]
        parts.append(escape(before))
        parts.append(format_link(address) or escape(address))
        end_of_last = link.end
    parts.append(escape(text[end_of_last:]))
    return "".join(parts)


async def report_undelivered(
    upkeep: ReferralUpkeep, memory: MemoryRepository, staff_chat_id: int
) -> None:
    """Tell the writers of undelivered messages that these may not have arrived."""
    for message, referral in await upkeep.list_undelivered():
        is_from_staff_chat = message.chat_id == referral.user_id
        writer_id = referral.user_id
        if is_from_staff_chat:
            writer_id = staff_chat_id
        with use_language(await load_language(memory, writer_id)):
            text = translate("shop_undelivered")
            if is_from_staff_chat:
                text = translate("staff_undelivered", number=number_of(referral))
            notice = await build_messages(Destination(writer_id), [text])
        await upkeep.report(message, notice)
