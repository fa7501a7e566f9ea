"""Handle the commands of admins: statistics, traces, access, and broadcasts.

For other users, the commands are unknown.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

from telegram import Message, Update
from telegram.ext import filters

from agent.auto_links import find_auto_links
from agent.engine.errors import log_failure
from agent.i18n import translate, use_language
from agent.markdown import format_link
from agent.text import pattern
from agent.tracing.masking import Masking
from bot.charts import WeekPainter
from bot.reports import CLICK_WEEKS, clicks_table, statistics_table, trace_text
from bot.telegram.buttons import acknowledge, split_data
from bot.telegram.chat import (
    CHOSEN_LANGUAGE_KEY,
    WRITTEN_LANGUAGE_KEY,
    AnyHandler,
    ChatTurn,
    language_from_settings,
    load_language,
    on_command,
    on_press,
)
from bot.telegram.messages import is_private, message_of, press_of, text_after_command
from bot.telegram.sender import Button, Sender, build_messages
from bot.telegram.settings import STOP_NEWS
from bot.turn import Destination
from bot.updates.joining import is_forwarded
from bot.wanted import format_groups, group_wishes
from db.changes.broadcasts import DraftBroadcast, SendBroadcast
from db.changes.chats import SetAccess
from db.changes.memory import ForgetConcerns
from db.models import Access, BroadcastState, OutboxRow
from db.repositories.outbox import Broadcasts
from db.repositories.people import MemoryRepository
from db.repositories.statistics import Week

STATS_PICTURE: Final = "week.png"
USER_ID: Final = pattern(r"\d{1,18}")
ACCESS_BY_COMMAND: Final[Mapping[str, Access]] = {
    "allow": "allowed",
    "block": "blocked",
}
BUTTON_DATA: Final = r"[ab]:\d{1,18}:(?:allow|block|send)$"
"""The data of buttons: the id of a user (a:ID:allow, a:ID:block) or a broadcast (b:ID:send)."""
BATCH_SIZE: Final = 20
"""The number of messages of a broadcast that are read from the database at once."""


def admin_handlers(
    admin_ids: Collection[int],
    masking: Masking,
    trace_link: Callable[[str], str] | None = None,
    *,
    only_allowed: bool = False,
) -> list[AnyHandler]:
    """Return the handlers of /stats, /trace, /allow, /block, /clearconcerns and /broadcast.

    `trace_link` returns the address of a trace; if it is None, traces are shown as trees. With
    `only_allowed`, broadcasts go only to users with access; else to all who are not blocked.
    """
    is_admin = filters.User(admin_ids)
    commands = ("allow", "block", "clearconcerns")
    return [
        on_command("stats", partial(_show_stats, WeekPainter(), masking), is_admin),
        on_command("trace", partial(_show_trace, trace_link), is_admin),
        on_command("broadcast", partial(_draft_broadcast, only_allowed), is_admin),
        *(
            on_command(name, partial(_manage_user, admin_ids, name), is_admin)
            for name in commands
        ),
        on_press(BUTTON_DATA, partial(_handle_button, admin_ids, only_allowed)),
    ]


async def _show_stats(
    painter: WeekPainter, masking: Masking, update: Update, turn: ChatTurn
) -> None:
    """/stats: show the last seven days as a picture and in numbers, in a private chat only."""
    if not is_private(update):
        turn.reply(translate("stats_in_private"))
        return
    repository = turn.repositories.statistics
    week = Week(repository.now().date())
    statistics = await repository.summarize_week(week)
    try:
        turn.send_picture(STATS_PICTURE, await painter.paint(statistics, "png"))
    except Exception as error:  # the numbers are in the text
        log_failure("The figures of a week could not be drawn", error)
    clicks = await _format_clicks(turn)
    tables = filter(None, (statistics_table(statistics), clicks))
    text = to_code_block("\n\n".join(tables))
    turn.reply(text + await _describe_wanted(masking, turn, week))


async def _describe_wanted(masking: Masking, turn: ChatTurn, week: Week) -> str:
    """Return what most guests of a week wanted in vain; "" if there was nothing."""
    wishes = await turn.repositories.unmet.list_between(
        week.start, week.end, masking.mask_words
    )
    if not wishes:
        return ""
    groups = await asyncio.to_thread(group_wishes, wishes)
    return f"\n{translate('stats_wanted')}\n{to_code_block(format_groups(groups))}"


async def _format_clicks(turn: ChatTurn) -> str:
    """Return which pages of wines were opened by buttons, "" if none."""
    clicks = await turn.repositories.clicks.list_most_pressed(CLICK_WEEKS)
    wines = await turn.repositories.wines.get([click.wine_id for click in clicks])
    return clicks_table(clicks, wines)


async def _show_trace(
    link: Callable[[str], str] | None, update: Update, turn: ChatTurn
) -> None:
    """/trace: show the turn of the message that is replied to, or the last turn of this chat."""
    message, turns = message_of(update), turn.repositories.turns
    if replied_message := get_replied_message(message):
        shown = await turns.find_by_message(message.chat.id, replied_message.message_id)
    else:
        shown = await turns.find_last(message.chat.id)
    if shown is None:
        text = translate("nothing_to_trace")
    elif shown.trace_id and link:
        text = link(shown.trace_id)
    else:
        text = await _render_trace(turn, shown.trace_id or "")
    turn.reply(text)


async def _render_trace(turn: ChatTurn, trace_id: str) -> str:
    try:
        return to_code_block(trace_text(await turn.repositories.traces.get(trace_id)))
    except LookupError:
        return translate("not_traced")


async def _manage_user(
    admin_ids: Collection[int], command: str, update: Update, turn: ChatTurn
) -> None:
    """/allow, /block or /clearconcerns: handle the command for the user that it names."""
    user_id = find_named_user(message_of(update))
    if user_id is None:
        text = translate("whom", command=command)
    elif command == "clearconcerns":
        cleared = await turn.repositories.memory.list_concerns(None, user_id)
        turn.change(ForgetConcerns(user_id))
        names = ", ".join(concern.replace("_", " ") for concern in sorted(cleared))
        text = translate(
            "concerns_cleared" if cleared else "no_concerns_stored",
            id=str(user_id),
            told=names,
        )
    elif command == "block" and user_id in admin_ids:
        text = translate("admin_stays", id=str(user_id))
    else:
        text = await _set_access(turn, user_id, command)
    turn.reply(text)


async def _handle_button(
    admin_ids: Collection[int], only_allowed: bool, update: Update, turn: ChatTurn
) -> None:
    """Handle a button: allow or block a user who asks for access, or send a broadcast."""
    query = press_of(update)
    id_text, action = split_data(query, 2)
    if query.from_user.id not in admin_ids:
        await acknowledge(query, translate("button_too_old"))
    elif action == "send":
        is_first_press = await _send_broadcast(
            turn, int(id_text), only_allowed=only_allowed
        )
        await acknowledge(query, "" if is_first_press else translate("broadcast_over"))
        turn.replace_buttons(query.message, ())
    else:
        await acknowledge(query)
        turn.reply(await _set_access(turn, int(id_text), action))


async def _set_access(turn: ChatTurn, user_id: int, command: str) -> str:
    """Allow or block a user, and return a confirmation. Notify the user of new access."""
    access = ACCESS_BY_COMMAND[command]
    previous_access = await turn.repositories.chats.find_access(user_id)
    turn.change(SetAccess(user_id, access))
    if access == "allowed" and previous_access != "allowed":
        with use_language(await load_language(turn.repositories.memory, user_id)):
            turn.send(Destination(user_id), translate("let_in"))
    return translate(access, id=str(user_id))


async def _draft_broadcast(only_allowed: bool, update: Update, turn: ChatTurn) -> None:
    """/broadcast TEXT: show the message and the number of chats, with a button to send it."""
    text = text_after_command(message_of(update))
    chats = await turn.repositories.chats.list_recipients(only_allowed=only_allowed)
    if not text or not chats:
        turn.reply(translate("broadcast_to_nobody" if text else "broadcast_usage"))
        return
    text = link_addresses(text)
    # The draft has the turn's id.
    turn.change(DraftBroadcast(turn.id, text, turn.user_id))
    turn.reply(text)
    button = Button(translate("send_button"), f"b:{turn.id}:send")
    turn.reply(translate("broadcast_preview", count=len(chats)), ((button,),))


async def _send_broadcast(
    turn: ChatTurn, broadcast_id: int, *, only_allowed: bool
) -> bool:
    """Collect that a broadcast is sent. Return False if that was done before."""
    draft = await turn.repositories.broadcasts.get(broadcast_id)
    if draft is None or draft.state != BroadcastState.DRAFT:
        return False
    *first, last = await build_messages(Destination(0), [draft.text])
    languages = (CHOSEN_LANGUAGE_KEY, WRITTEN_LANGUAGE_KEY)
    settings = await turn.repositories.memory.list_settings(languages)
    messages: list[OutboxRow] = []
    for chat_id in await turn.repositories.chats.list_recipients(
        only_allowed=only_allowed
    ):
        for part in first:
            messages.append(_address(part, chat_id))
        with use_language(language_from_settings(settings.get(chat_id, {}))):
            stop_button = Button(translate("news_no_button"), STOP_NEWS)
        messages.append(_address(last, chat_id, [[[*stop_button]]]))
    turn.change(SendBroadcast(broadcast_id, messages))
    return True


def _address(
    part: OutboxRow, chat_id: int, buttons: list[list[list[str]]] | None = None
) -> OutboxRow:
    """Return a part of a broadcast as a message for a chat."""
    return OutboxRow(
        chat_id=chat_id, html=part.html, follows=part.follows, buttons=buttons or []
    )


def find_named_user(message: Message) -> int | None:
    """Return the id in a command, or of the author of the message that the command replies to.

    Return None if neither names a user. If the command has other text than an id, the reply is
    ignored, because the text may refer to another user.
    """
    if text := text_after_command(message):
        return int(text) if USER_ID.fullmatch(text) else None
    replied_message = get_replied_message(message)
    if replied_message is None or replied_message.sender_chat:
        return None
    if is_forwarded(replied_message.to_dict(recursive=False)):
        return None  # its sender is not its author
    author = replied_message.from_user
    return author.id if author is not None and not author.is_bot else None


def get_replied_message(message: Message) -> Message | None:
    """Return the message that a message replies to, if any.

    In a forum topic, Telegram marks messages without a reply as replies to the topic's first one.
    """
    replied_message = message.reply_to_message
    is_reply = replied_message is not None and not replied_message.forum_topic_created
    return replied_message if is_reply else None


def to_code_block(text: str) -> str:
    """Return a text as a Markdown code block, with backticks replaced so that none closes it."""
    literal = text.replace("`", "'")
    return f"```\n{literal}\n```"


def link_addresses(text: str) -> str:
    """Return a text in which web addresses are links, which users can tap."""
    for link in reversed(
        find_auto_links(text)
    ):  # backwards: a change moves the text after it
        address = text[link.start : link.end]
        text = text[: link.start] + (format_link(address) or address) + text[link.end :]
    return text


async def send_broadcasts(
    broadcasts: Broadcasts, memory: MemoryRepository, sender: Sender
) -> None:
    """Send the queued messages of broadcasts, then report finished broadcasts to their admins."""
    while messages := await broadcasts.list_unsent(BATCH_SIZE):
        await sender.deliver(messages)
    for broadcast, count, failed in await broadcasts.list_delivered():
        admin = broadcast.created_by
        with use_language(await load_language(memory, admin)):
            text = translate("broadcast_done", count=count, failed=failed)
            report = await build_messages(Destination(admin), [text])
        await broadcasts.finish(broadcast.id, report)
