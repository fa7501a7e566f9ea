"""Handle the commands of admins: numbers, traces, access, and messages to everyone.

For everybody else they do not exist.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from telegram import Message, Update
from telegram.ext import filters

from agent.i18n import translate, use_language
from agent.markdown import find_auto_links, format_link
from agent.text import pattern
from bot.question import Destination
from bot.telegram.buttons import acknowledge, parts_of, show_rows
from bot.telegram.conversation import AnyHandler, Conversation, on_command, on_press
from bot.telegram.messages import (
    behind_command,
    chat_and_user_ids,
    is_private,
    message_of,
    press_of,
)
from bot.telegram.sender import Button, messages_of
from bot.updates.bursts import is_forwarded
from db.models import OutboxRow
from db.repositories.people import Access

DAYS: Final = 7
USER_ID: Final = pattern(r"\d{1,18}")
ACCESS: Final[Mapping[str, Access]] = {"allow": "allowed", "block": "blocked"}
MESSAGES_AT_ONCE: Final = 20
"""Messages of broadcasts that are read from the database at once."""


def admin_handlers(
    admin_ids: Collection[int],
    trace_link: Callable[[str], str] | None = None,
    *,
    only_allowed: bool = False,
) -> list[AnyHandler]:
    """Return the handlers of /stats, /trace, /allow, /block, /clearcare and /broadcast.

    `trace_link` makes the address of a trace; without it the trace is shown as a tree. A broadcast
    goes to every private chat of users who are not blocked, with `only_allowed` of those who are
    let in.
    """
    admins = filters.User(admin_ids)
    about_users = ("allow", "block", "clearcare")
    return [
        on_command("stats", _stats, admins),
        on_command("trace", partial(_trace, trace_link), admins),
        on_command("broadcast", partial(_draft, only_allowed), admins),
        *(on_command(name, partial(_about_user, admin_ids, name), admins) for name in about_users),
        on_press(r"[ab]:\d{1,18}:(?:allow|block|send)$", partial(_press, admin_ids, only_allowed)),
    ]


async def _stats(update: Update, conversation: Conversation) -> None:
    """/stats: show today and the last 7 days as a table; in private only."""
    from bot.http.admin_page import statistics_table  # noqa: PLC0415 - only for admins

    shown = translate("stats_in_private")
    if is_private(update):
        turns = conversation.repositories.turns
        days = await turns.by_day(turns.now() - timedelta(days=DAYS - 1))
        shown = as_block(await asyncio.to_thread(statistics_table, days))
    await conversation.reply(update, shown)


async def _trace(
    link: Callable[[str], str] | None, update: Update, conversation: Conversation
) -> None:
    """/trace: show the turn that is replied to, else the last one of this chat."""
    message, turns = message_of(update), conversation.repositories.turns
    if replied := replied_to(message):
        turn = await turns.find_by_message(message.chat.id, replied.message_id)
    else:
        turn = await turns.last(message.chat.id)
    if turn is None:
        shown = translate("nothing_to_trace")
    elif turn.trace_id and link:
        shown = link(turn.trace_id)
    else:
        shown = await _tree(conversation, turn.trace_id or "")
    await conversation.reply(update, shown)


async def _tree(conversation: Conversation, trace_id: str) -> str:
    from bot.commands.traces import trace_text  # noqa: PLC0415 - only for admins

    try:
        return as_block(trace_text(await conversation.repositories.traces.get(trace_id)))
    except LookupError:
        return translate("not_traced")


async def _about_user(
    admin_ids: Collection[int], command: str, update: Update, conversation: Conversation
) -> None:
    """/allow, /block or /clearcare with an id, or as a reply to somebody's message."""
    user_id = named_user(message_of(update))
    if user_id is None:
        text = translate("whom", command=command)
    elif command == "clearcare":
        cleared = await conversation.repositories.memory.clear_concerns(user_id)
        listed = ", ".join(concern.replace("_", " ") for concern in cleared)
        text = translate("care_cleared" if cleared else "no_care_held", id=user_id, told=listed)
    elif command == "block" and user_id in admin_ids:
        text = translate("admin_stays", id=user_id)
    else:
        text = await _decide(conversation, user_id, command)
    await conversation.reply(update, text)


async def _press(
    admin_ids: Collection[int], only_allowed: bool, update: Update, conversation: Conversation
) -> None:
    """Decide by a button below "asks to be let in", or send a broadcast, once."""
    query = press_of(update)
    pressed_id, word = parts_of(query, 2)
    if query.from_user.id not in admin_ids:
        await acknowledge(query, translate("button_too_old"))
    elif word == "send":
        is_sent = await _send(conversation, int(pressed_id), only_allowed=only_allowed)
        await acknowledge(query, "" if is_sent else translate("broadcast_over"))
        await show_rows(query.message, ())
    else:
        await acknowledge(query)
        await conversation.reply(update, await _decide(conversation, int(pressed_id), word))


async def _decide(conversation: Conversation, user_id: int, decision: str) -> str:
    """Let a user in, who is told the first time, or keep them out; return what admins are told."""
    chats, access = conversation.repositories.chats, ACCESS[decision]
    before = await chats.access(user_id)
    await chats.decide(user_id, access)
    if access == "allowed" != before:
        with use_language(await conversation.language_of(user_id)):
            await conversation.sender.send(Destination(user_id), translate("let_in"))
    return translate(access, id=user_id)


async def _draft(only_allowed: bool, update: Update, conversation: Conversation) -> None:
    """/broadcast TEXT: show the message, and the number of chats."""
    text = behind_command(message_of(update))
    chats = await conversation.repositories.chats.private(only_allowed=only_allowed)
    if not text or not chats:
        problem = "broadcast_to_nobody" if text else "broadcast_usage"
        await conversation.reply(update, translate(problem))
        return
    text, (_, admin_id) = with_links(text), chat_and_user_ids(update)
    drafted = await conversation.repositories.broadcasts.draft(text, admin_id)
    await conversation.reply(update, text)
    send = Button(translate("send_button"), f"b:{drafted}:send")
    preview = translate("broadcast_preview", count=len(chats))
    await conversation.reply(update, preview, ((send,),))


async def _send(conversation: Conversation, broadcast_id: int, *, only_allowed: bool) -> bool:
    """Have a draft sent to everyone, once; the process that leads sends it."""
    broadcasts, chats = conversation.repositories.broadcasts, conversation.repositories.chats
    if (draft := await broadcasts.get(broadcast_id)) is None:
        return False
    parts = messages_of(Destination(0), [draft.text])
    messages = [
        OutboxRow(chat_id=chat_id, html=part.html, follows=part.follows)
        for chat_id in await chats.private(only_allowed=only_allowed)
        for part in parts
    ]
    return await broadcasts.begin(broadcast_id, messages)


def named_user(message: Message) -> int | None:
    """Return the user whom a command names by their id, or whose message it replies to.

    Words that are no id name nobody: they may mean another user than the message that is replied
    to. The author of a forwarded message is not the one who sent it.
    """
    if words := behind_command(message):
        return int(words) if USER_ID.fullmatch(words) else None
    replied = replied_to(message)
    if replied is None or replied.sender_chat or is_forwarded(replied.to_dict(recursive=False)):
        return None
    author = replied.from_user
    return author.id if author is not None and not author.is_bot else None


def replied_to(message: Message) -> Message | None:
    """Return the message that is replied to; in a topic all messages reply to the first one."""
    replied = message.reply_to_message
    return None if replied is None or replied.forum_topic_created else replied


def as_block(text: str) -> str:
    """Return a text as a Markdown block, whose fence no character of the text ends."""
    shown = text.replace("`", "'")
    return f"```\n{shown}\n```"


def with_links(text: str) -> str:
    """Return a text whose addresses of the web are links: an admin's own may be tapped."""
    for found in reversed([*find_auto_links(text)]):
        address = text[found.start : found.end]
        text = text[: found.start] + (format_link(address) or address) + text[found.end :]
    return text


async def send_broadcasts(conversation: Conversation) -> None:
    """Send what waits of broadcasts; tell admins of those that are over."""
    broadcasts = conversation.repositories.broadcasts
    while messages := await broadcasts.unsent(MESSAGES_AT_ONCE):
        await conversation.sender.deliver(messages)
    for broadcast, count, failed in await broadcasts.delivered():
        admin = broadcast.created_by
        with use_language(await conversation.language_of(admin)):
            text = translate("broadcast_done", count=count, failed=failed)
            report = messages_of(Destination(admin), [text])
        await broadcasts.finish(broadcast.id, report)
