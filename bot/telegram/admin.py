"""Handle the commands of admins: statistics, traces, access, and broadcasts.

When other users type them, the bot answers as if the commands were unknown.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
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
from bot.telegram.sender import Button, Sender, build_messages, to_lists
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
ACCESS_BY_ACTION: Final[Mapping[str, Access]] = {
    "allow": "allowed",
    "block": "blocked",
}
BUTTON_DATA: Final = r"[ab]:\d{1,18}:(?:allow|block|send)$"
"""The data of buttons for a user (`a:ID:allow`, `a:ID:block`) or a broadcast (`b:ID:send`)."""
BATCH_SIZE: Final = 20
"""The number of unsent messages of broadcasts that are read from the database at once."""


def admin_handlers(
    admin_ids: Collection[int],
    masking: Masking,
    trace_link: Callable[[str], str] | None = None,
    *,
    only_allowed: bool = False,
) -> list[AnyHandler]:
    """Return the handlers of /stats, /trace, /allow, /block, /clearconcerns and /broadcast.

    `trace_link` returns the address of a trace. If it is None, traces are shown as trees. With
    `only_allowed`, broadcasts go only to users with access, otherwise to all who are not blocked.
    """
    commands = _AdminCommands(admin_ids, masking, trace_link, only_allowed)
    is_admin = filters.User(admin_ids)
    return [
        on_command("stats", commands.show_stats, is_admin),
        on_command("trace", commands.show_trace, is_admin),
        on_command("broadcast", commands.draft_broadcast, is_admin),
        on_command("allow", commands.allow_user, is_admin),
        on_command("block", commands.block_user, is_admin),
        on_command("clearconcerns", _clear_concerns, is_admin),
        on_press(BUTTON_DATA, commands.handle_press),
    ]


class _AdminCommands:
    """Answers the commands of admins, and presses of the buttons that follow them."""

    def __init__(
        self,
        admin_ids: Collection[int],
        masking: Masking,
        trace_link: Callable[[str], str] | None,
        only_allowed: bool,
    ) -> None:
        self._admin_ids = admin_ids
        self._masking = masking
        self._trace_link = trace_link
        self._only_allowed = only_allowed
        self._painter = WeekPainter()

    async def show_stats(self, update: Update, turn: ChatTurn) -> None:
        """/stats: show the last seven days as a picture and in numbers, in a private chat only."""
        if not is_private(update):
            turn.reply(translate("stats_in_private"))
            return
        repository = turn.repositories.statistics
        week = Week(repository.now().date())
        statistics = await repository.summarize_week(week)
        try:
            picture = await self._painter.paint(statistics, "png")
            turn.send_picture(STATS_PICTURE, picture)
        except Exception as error:
            # The reply goes on without a picture: its text has the numbers.
            log_failure("The figures of a week could not be drawn", error)
        tables = statistics_table(statistics)
        clicks = await _format_clicks(turn)
        if clicks:
            tables = f"{tables}\n\n{clicks}"
        unmet_wishes = await self._describe_unmet_wishes(turn, week)
        turn.reply(to_code_block(tables) + unmet_wishes)

    async def _describe_unmet_wishes(self, turn: ChatTurn, week: Week) -> str:
        """Return the most frequent unmet wishes of a week as a table, or "" if there were none."""
        wishes = await turn.repositories.unmet.list_between(
            week.start, week.end, self._masking.mask_words
        )
        if not wishes:
            return ""
        groups = await asyncio.to_thread(group_wishes, wishes)
        heading = translate("stats_wanted")
        listing = to_code_block(format_groups(groups))
        return f"\n{heading}\n{listing}"

    async def show_trace(self, update: Update, turn: ChatTurn) -> None:
        """/trace: show the turn of the message replied to, or the last turn of this chat."""
        message = message_of(update)
        chat_id = message.chat.id
        turns = turn.repositories.turns
        replied = get_replied_message(message)
        if replied is not None:
            shown = await turns.find_by_message(chat_id, replied.message_id)
        else:
            shown = await turns.find_last(chat_id)
        if shown is None:
            turn.reply(translate("nothing_to_trace"))
        elif not shown.trace_id:
            turn.reply(translate("not_traced"))
        elif self._trace_link is not None:
            turn.reply(self._trace_link(shown.trace_id))
        else:
            turn.reply(await _render_trace(turn, shown.trace_id))

    async def allow_user(self, update: Update, turn: ChatTurn) -> None:
        """/allow: give the named user access."""
        user_id = _find_user_or_ask(update, turn, "allow")
        if user_id is not None:
            await _set_access(turn, user_id, "allowed")

    async def block_user(self, update: Update, turn: ChatTurn) -> None:
        """/block: take access from the named user, unless it is an admin."""
        user_id = _find_user_or_ask(update, turn, "block")
        if user_id in self._admin_ids:
            turn.reply(translate("admin_stays", id=str(user_id)))
        elif user_id is not None:
            await _set_access(turn, user_id, "blocked")

    async def handle_press(self, update: Update, turn: ChatTurn) -> None:
        """Do what the pressed button says: allow or block a user, or send a broadcast."""
        query = press_of(update)
        id_part, action = split_data(query, 2)
        if query.from_user.id not in self._admin_ids:
            # The button was sent to somebody who was an admin then.
            await acknowledge(query, translate("button_too_old"))
        elif action == "send":
            toast = ""
            if not await self._send_broadcast(turn, int(id_part)):
                toast = translate("broadcast_over")
            await acknowledge(query, toast)
            turn.replace_buttons(query.message, ())
        else:
            await acknowledge(query)
            await _set_access(turn, int(id_part), ACCESS_BY_ACTION[action])

    async def draft_broadcast(self, update: Update, turn: ChatTurn) -> None:
        """/broadcast TEXT: show the message and the number of chats, with a button to send it."""
        text = text_after_command(message_of(update))
        if not text:
            turn.reply(translate("broadcast_usage"))
            return
        chat_ids = await self._list_recipients(turn)
        if not chat_ids:
            turn.reply(translate("broadcast_to_nobody"))
            return
        text = link_addresses(text)
        # The id of the turn becomes the id of the broadcast.
        turn.change(DraftBroadcast(turn.id, text, turn.user_id))
        turn.reply(text)
        preview = translate("broadcast_preview", count=len(chat_ids))
        button = Button(translate("send_button"), f"b:{turn.id}:send")
        turn.reply(preview, ((button,),))

    async def _send_broadcast(self, turn: ChatTurn, broadcast_id: int) -> bool:
        """Collect the messages of a broadcast. Return False if it was sent before."""
        draft = await turn.repositories.broadcasts.get(broadcast_id)
        if draft is None or draft.state != BroadcastState.DRAFT:
            return False
        # The text is rendered once, for a chat that does not exist.
        parts = await build_messages(Destination(0), [draft.text])
        language_keys = (CHOSEN_LANGUAGE_KEY, WRITTEN_LANGUAGE_KEY)
        settings = await turn.repositories.memory.list_settings(language_keys)
        messages = []
        for chat_id in await self._list_recipients(turn):
            # Only private chats get broadcasts. They have the ids of their users.
            language = language_from_settings(settings.get(chat_id, {}))
            messages += _address_broadcast(parts, chat_id, language)
        turn.change(SendBroadcast(broadcast_id, messages))
        return True

    async def _list_recipients(self, turn: ChatTurn) -> Sequence[int]:
        """Return the ids of the chats that a broadcast goes to."""
        chats = turn.repositories.chats
        return await chats.list_recipients(only_allowed=self._only_allowed)


def _address_broadcast(
    parts: Sequence[OutboxRow], chat_id: int, language: str | None
) -> list[OutboxRow]:
    """Return the messages of a broadcast for a chat, with a button that ends broadcasts."""
    messages = []
    for part in parts:
        message = OutboxRow(
            chat_id=chat_id, html=part.html, follows=part.follows, buttons=[]
        )
        messages.append(message)
    # To users, broadcasts are called news.
    with use_language(language):
        stop_button = Button(translate("news_no_button"), STOP_NEWS)
    messages[-1].buttons = to_lists(((stop_button,),))
    return messages


async def _format_clicks(turn: ChatTurn) -> str:
    """Return how often buttons opened the pages of wines, or "" if they never did."""
    clicks = await turn.repositories.clicks.list_most_pressed(CLICK_WEEKS)
    wine_ids = [click.wine_id for click in clicks]
    wines = await turn.repositories.wines.get(wine_ids)
    return clicks_table(clicks, wines)


async def _render_trace(turn: ChatTurn, trace_id: str) -> str:
    """Return a trace as a tree, or a sentence if it was not stored."""
    try:
        trace = await turn.repositories.traces.get(trace_id)
    except LookupError:
        return translate("not_traced")
    return to_code_block(trace_text(trace))


async def _clear_concerns(update: Update, turn: ChatTurn) -> None:
    """/clearconcerns: forget all concerns of the named user, such as a pregnancy or an allergy."""
    user_id = _find_user_or_ask(update, turn, "clearconcerns")
    if user_id is None:
        return
    # Without a chat, these are the concerns in all chats.
    cleared = await turn.repositories.memory.list_concerns(
        chat_id=None, user_id=user_id
    )
    turn.change(ForgetConcerns(user_id))
    if not cleared:
        turn.reply(translate("no_concerns_stored", id=str(user_id)))
        return
    names = ", ".join(sorted(cleared)).replace("_", " ")
    turn.reply(translate("concerns_cleared", id=str(user_id), told=names))


def _find_user_or_ask(update: Update, turn: ChatTurn, command: str) -> int | None:
    """Return the id of the user that a command names. If it names none, ask for the user."""
    user_id = find_named_user(message_of(update))
    if user_id is None:
        turn.reply(translate("whom", command=command))
    return user_id


async def _set_access(turn: ChatTurn, user_id: int, access: Access) -> None:
    """Allow or block a user, confirm that to the admin, and tell the user of new access."""
    previous_access = await turn.repositories.chats.find_access(user_id)
    turn.change(SetAccess(user_id, access))
    if access == "allowed" and previous_access != "allowed":
        with use_language(await load_language(turn.repositories.memory, user_id)):
            turn.send(Destination(user_id), translate("let_in"))
    # The confirmations are named like the access: "allowed" and "blocked".
    turn.reply(translate(access, id=str(user_id)))


def find_named_user(message: Message) -> int | None:
    """Return the id of the user that a command is about, or None if it names none.

    The command has the id (`/block 42`), or has no text and replies to a message of the user. If it
    has any other text, it names nobody, because the text may refer to another user.
    """
    text = text_after_command(message)
    if USER_ID.fullmatch(text):
        return int(text)
    if text:
        return None
    replied_message = get_replied_message(message)
    if replied_message is None:
        return None
    if replied_message.sender_chat:
        # The message is from a chat, and its user is only a stand-in.
        return None
    if is_forwarded(replied_message.to_dict(recursive=False)):
        # The user who forwarded the message is not its author.
        return None
    author = replied_message.from_user
    if author is None or author.is_bot:
        return None
    return author.id


def get_replied_message(message: Message) -> Message | None:
    """Return the message that a message replies to, or None.

    In a forum topic, Telegram marks messages that reply to nothing as replies to the topic's first
    message. Such messages have no replied message here.
    """
    replied_message = message.reply_to_message
    if replied_message is None or replied_message.forum_topic_created:
        return None
    return replied_message


def to_code_block(text: str) -> str:
    """Return a text as a Markdown code block. Backticks are replaced, since they would close it."""
    literal = text.replace("`", "'")
    return f"```\n{literal}\n```"


def link_addresses(text: str) -> str:
    """Return a Markdown text in which web addresses are links, which users can tap."""
    # The last link comes first, because a replacement moves the text after it.
    for link in reversed(find_auto_links(text)):
        before = text[: link.start]
        address = text[link.start : link.end]
        after = text[link.end :]
        text_of_link = format_link(address) or address
        text = f"{before}{text_of_link}{after}"
    return text


async def send_broadcasts(
    broadcasts: Broadcasts, memory: MemoryRepository, sender: Sender
) -> None:
    """Send the queued messages of broadcasts, then report finished broadcasts to their admins."""
    while messages := await broadcasts.list_unsent(BATCH_SIZE):
        await sender.deliver(messages)
    for broadcast, count, failed in await broadcasts.list_delivered():
        admin_id = broadcast.created_by
        with use_language(await load_language(memory, admin_id)):
            text = translate("broadcast_done", count=count, failed=failed)
            report = await build_messages(Destination(admin_id), [text])
        await broadcasts.finish(broadcast.id, report)
