"""The turn of an update from Telegram, and the conversation that it belongs to.

A turn knows its user and chat, and collects the messages to send. A message is answered in the
context of its conversation, and in the language of its user.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError
from telegram import Message, Update
from telegram.ext import (
    BaseHandler,
    CallbackQueryHandler,
    CommandHandler,
    MessageHandler,
    filters,
)
from telegram.ext.filters import BaseFilter

from agent.engine.current_draft import CurrentDraft
from agent.engine.run import Run
from agent.i18n import (
    app_language,
    current_language,
    set_app_language,
    set_language,
    translate,
)
from agent.languages import ENGLISH
from agent.query_reading.turn_language import find_language, settle_language
from agent.sommelier.attachment import Attachment
from agent.sommelier.service import Answerer
from agent.sommelier.wine import Wine
from agent.tracing.records import derive_trace_id
from agent.turn import Change, Fact, Reply, StoredMessage, get_chosen_settings
from bot.clicks import CountedLinks
from bot.resources import Repositories, Resources
from bot.runner import TurnRunner
from bot.telegram.messages import (
    TYPED_BY_USER,
    chat_and_user_ids,
    destination,
    id_of_replied_answer,
    is_addressed,
    is_overheard,
    message_of,
    names_of,
    text_to_detect,
    text_without_mentions,
    with_quotations,
)
from bot.telegram.progress import Progress, show_typing_or_drafts
from bot.telegram.sender import ButtonRows, build_message, build_messages, to_lists
from bot.turn import Destination, Question, Transcribe, Turn, TurnKind
from db.commit import Press
from db.models import OutboxRow
from db.repositories.people import MemoryRepository

AnyHandler = BaseHandler[Any, Any, Any]
Handle = Callable[..., Coroutine[Any, Any, object]]
"""A function that handles an update: `handle(update, turn)`. It may return `NOT_MINE`."""

MAX_HISTORY_MESSAGES: Final = 20
"""The maximum number of earlier messages that the model sees."""
HIDDEN_MESSAGE: Final = "…"
"""The model sees this in place of the messages of other people in a group."""
CHOSEN_LANGUAGE_KEY: Final = "language"
"""The setting with the language that a user chose, or `AS_WRITTEN`."""
WRITTEN_LANGUAGE_KEY: Final = "written"
"""The setting with the language that a user wrote last, or at first that of their Telegram app."""
AS_WRITTEN: Final = "auto"
"""The value of `CHOSEN_LANGUAGE_KEY` that means the language of the last message."""
NOT_MINE: Final = object()
"""A handler returns this to leave an update to the next one that accepts it."""
ButtonsBelow = Callable[[Turn, Question, Reply, CountedLinks | None], ButtonRows]
"""A function that returns the buttons under an answer. See `answer_buttons.buttons_below`."""
AUDIO_FILE: Final = "answer.ogg"


@dataclass(frozen=True, slots=True)
class MarkdownMessages:
    """Texts for a chat that were collected, and are not rendered yet."""

    to: Destination
    texts: Sequence[str]
    buttons: ButtonRows
    """The buttons under the last message."""
    turn_id: int | None = None
    """The turn whose answer the texts are, if it is stored."""
    picture: str = ""
    """The address of a picture to show above the first text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Holds what the turns of all chats have in common."""

    resources: Resources
    runner: TurnRunner
    answerer: Answerer
    trace_hash: Callable[[str, int], str]
    """`trace_hash(kind, id)` returns the hash that stands for a "chat" or a "user" in traces."""
    progress: Progress
    buttons_below: ButtonsBelow
    admin_ids: Sequence[int] = ()
    staff_chat_id: int | None = None
    """The chat where the staff of the shop answer, if there is one."""
    counted_links: CountedLinks | None = None
    """Counts presses of the buttons that open pages, if the owner wants that."""


@dataclass(slots=True, kw_only=True, eq=False)
class ChatTurn(Turn):
    """The turn of an update from Telegram. Handlers get it together with the parsed update."""

    services: Services
    bot_name: str = ""
    """The @name of the bot, without the @."""
    message_text: str = ""
    """The text that the user has written in this update."""
    messages: list[MarkdownMessages | OutboxRow] = field(default_factory=list)
    """The messages to send, in order. `render` moves them to the commit."""

    @property
    def repositories(self) -> Repositories:
        """Return the objects that read from the database."""
        return self.services.resources.repositories

    def read_update(self, update: Update) -> None:
        """Take from the update the user, the chat, their ids in traces, and the text.

        The trace id depends only on the update, so all tries share it.
        """
        bot = update.get_bot()
        self.chat_id, self.user_id = chat_and_user_ids(update)
        self.bot_name = bot.username
        if update.message is not None:
            self.message_text = update.message.text or ""
        self.trace_session = self.services.trace_hash("chat", self.chat_id)
        self.trace_user = self.services.trace_hash("user", self.user_id)
        self.names = names_of(update)
        self.trace_id = derive_trace_id(bot.id, self.chat_id, update.update_id)
        if update.effective_message is not None:
            self.to = destination(update)

    def make_question(
        self,
        text: str,
        kind: TurnKind = "chat",
        transcribe: Transcribe | None = None,
    ) -> Question:
        """Return a question of this turn.

        If the user typed a command, `text` is only what follows the name of the command. The trace
        shows the whole command.
        """
        trace_input = text
        if self.message_text.startswith("/"):
            trace_input = self.message_text
        return Question(
            text=text,
            kind=kind,
            trace_input=trace_input,
            transcribe=transcribe,
        )

    async def load_facts(self) -> Sequence[Fact]:
        """Return the facts about the user that were stored when the turn began.

        If the turn has no memory, return no facts.
        """
        if self.facts is not None:
            return self.facts
        self.facts = ()
        if self.has_memory:
            self.facts = await self.repositories.memory.list_facts(self.user_id)
        return self.facts

    def reply(self, markdown: str, buttons: ButtonRows = ()) -> None:
        """Collect a reply to the update, with buttons under its last message.

        If the update has no chat to reply in, do nothing.
        """
        if self.to is not None:
            self.send(self.to, markdown, buttons)

    def send(self, to: Destination, markdown: str, buttons: ButtonRows = ()) -> None:
        """Collect a message to any chat."""
        self.messages.append(MarkdownMessages(to, [markdown], buttons))

    def send_file(self, name: str, content: bytes) -> None:
        """Collect a file to send to the chat under this name."""
        if self.to is not None:
            file = build_message(self.to, kind="document", file_name=name, file=content)
            self.messages.append(file)

    def send_picture(self, name: str, content: bytes) -> None:
        """Collect a picture to show in the chat."""
        if self.to is not None:
            # The text that follows is the reply, so the picture replies to nothing.
            to = self.to.for_further_messages
            picture = build_message(to, kind="photo", file_name=name, file=content)
            self.messages.append(picture)

    def replace_buttons(self, message: object, rows: ButtonRows) -> None:
        """Collect new buttons under a message, if the bot can access it."""
        if isinstance(message, Message):
            to = Destination(message.chat.id, replaced_id=message.message_id)
            edit = build_message(to, kind="buttons", buttons=to_lists(rows))
            self.messages.append(edit)

    def claim(self, message: Message, action: str) -> None:
        """Claim a button. The commit stores this turn only if no earlier press has claimed it."""
        self.commit.press = Press(message.chat.id, message.message_id, action)

    def show(self, question: Question, reply: Reply, *, has_buttons: bool) -> None:
        """Collect the messages of a reply. The first replaces the placeholder, if there is one."""
        if self.to is None:
            return
        to = replace(self.to, replaced_id=self.placeholder_id)
        buttons: ButtonRows = ()
        if has_buttons:
            links = self.services.counted_links
            buttons = self.services.buttons_below(self, question, reply, links)
        messages = MarkdownMessages(
            to, reply.messages, buttons, turn_id=self.id, picture=picture_of(reply)
        )
        self.messages.append(messages)
        if reply.audio:
            audio = build_message(
                to.for_further_messages,
                kind="voice",
                file_name=AUDIO_FILE,
                file=reply.audio,
            )
            audio.turn_id = self.id
            self.messages.append(audio)

    async def render(self) -> None:
        """Render the collected messages, and move them to the commit."""
        for collected in self.messages:
            if isinstance(collected, OutboxRow):
                self.commit.messages.append(collected)
                continue
            rendered = await build_messages(
                collected.to, collected.texts, collected.buttons
            )
            for message in rendered:
                message.turn_id = collected.turn_id
            if rendered:
                rendered[0].picture = collected.picture
            self.commit.messages += rendered
        self.messages.clear()

    def restart(self) -> None:
        """Prepare another try: discard what was collected, including the messages."""
        # `super()` without arguments does not work in a dataclass with slots.
        Turn.restart(self)
        self.messages.clear()

    @asynccontextmanager
    async def show_progress(self) -> AsyncIterator[CurrentDraft | None]:
        """Show a typing indicator or drafts until the block ends.

        Yield the draft that is shown, or None if the turn has no chat to show it in.
        """
        if self.to is None:
            yield None
            return
        progress = self.services.progress
        async with show_typing_or_drafts(progress, self, self.to) as draft:
            yield draft


def picture_of(reply: Reply) -> str:
    """Return the address of the picture for a reply about a single wine, or "" for others."""
    if len(reply.wines) != 1:
        return ""
    wine = reply.wines[0]
    # A wine that was read from a picture has no picture of its own.
    if not isinstance(wine, Wine):
        return ""
    return wine.image


async def answer_in_chat(
    turn: ChatTurn, question: Question, replied_answer_id: int | None = None
) -> None:
    """Answer a question. `replied_answer_id` is the bot's message that the user replied to."""
    history = await load_history(turn, replied_answer_id)

    async def make_reply(run: Run) -> Reply:
        return await ask_agent(turn, question.text, run, history)

    await turn.services.runner.run(turn, question, make_reply)


async def ask_agent(
    turn: ChatTurn,
    text: str,
    run: Run,
    history: Sequence[StoredMessage],
    new_attachment: Attachment | None = None,
) -> Reply:
    """Return the answer to a text, which may be about a picture.

    Without a new picture, the text may still be about earlier pictures of the conversation.
    """
    attachment = new_attachment or attachment_in(history)
    return await turn.services.answerer.answer(text, run, attachment, history=history)


async def load_history(
    turn: ChatTurn, replied_answer_id: int | None = None
) -> Sequence[StoredMessage]:
    """Return the messages before a question, at most `MAX_HISTORY_MESSAGES`.

    If the user replied to an answer of the bot, return the messages up to that answer. If this turn
    answers an edited message, the messages of the turn that it takes back are left out.
    """
    replied_turn_id = await _find_turn(turn, replied_answer_id)
    messages = await turn.repositories.messages.list_recent(
        turn.chat_id,
        MAX_HISTORY_MESSAGES,
        thread_id=turn.thread_id,
        last_turn_id=replied_turn_id,
    )
    # An interrupted try of this turn may have stored its messages.
    excluded_turn_ids = (turn.id, turn.taken_back_turn_id)
    history = []
    for message in messages:
        if message.turn_id in excluded_turn_ids:
            continue
        if turn.is_group:
            history.append(as_visible_to(turn.user_id, message, replied_turn_id))
        else:
            history.append(message)
    return history


async def _find_turn(turn: ChatTurn, answer_id: int | None) -> int | None:
    """Return the id of the turn with an answer, or None if there is no answer or no stored turn."""
    if answer_id is None:
        return None
    answered = await turn.repositories.turns.find_by_message(turn.chat_id, answer_id)
    if answered is None:
        return None
    return answered.turn_id


async def answer_text(update: Update, turn: ChatTurn) -> None:
    """Answer a text message, if it is addressed to the bot."""
    message = message_of(update)
    if not is_addressed(message):
        return
    text = with_quotations(text_without_mentions(message), message)
    if not text:
        turn.reply(translate("text_only"))
        return
    await answer_in_chat(turn, turn.make_question(text), id_of_replied_answer(message))


def on_command(
    names: str | Sequence[str], handle: Handle, only: BaseFilter = filters.ALL
) -> AnyHandler:
    """Return a handler of commands with these names that users typed, not forwarded."""
    return CommandHandler(names, handle, filters=TYPED_BY_USER & only)


def on_press(prefix: str, handle: Handle) -> AnyHandler:
    """Return a handler of presses on buttons whose data begins with `prefix`."""
    return CallbackQueryHandler(handle, pattern=f"^{prefix}")


def on_message(only: BaseFilter, handle: Handle) -> AnyHandler:
    """Return a handler of the messages that the filter `only` accepts."""
    return MessageHandler(only, handle)


def attachment_in(history: Sequence[StoredMessage]) -> Attachment | None:
    """Return what the last pictures of a conversation show, or None if there were none."""
    last_attachment = ""
    for message in history:
        if message.attachment:
            last_attachment = message.attachment
    if not last_attachment:
        return None
    try:
        attachment = Attachment.model_validate_json(last_attachment)
    except ValidationError:
        # An earlier release stored it in another form.
        return None
    return attachment.model_copy(update={"is_new": False})


def as_visible_to(
    user_id: int, message: StoredMessage, replied_turn_id: int | None
) -> StoredMessage:
    """Return a message of a group as the model may see it when this user asks.

    The messages and pictures of other users are hidden, except those of the turn replied to.
    """
    is_from_bot = message.role == "assistant"
    is_from_user = message.user_id == user_id
    is_replied_to = replied_turn_id is not None and message.turn_id == replied_turn_id
    if is_from_bot or is_from_user or is_replied_to:
        return message
    return replace(message, content=HIDDEN_MESSAGE, attachment="")


async def set_language_of_turn(update: Update, turn: ChatTurn) -> None:
    """Set the language of the turn.

    The language that the user has chosen counts. Without a choice, the language of the message
    counts if it is clear, or else the one that they wrote before, or that of their app. If they
    have certainly written in another language than before, collect this as a new value of the
    setting.
    """
    user = update.effective_user
    app_code: str | None = None
    if user is not None:
        app_code = user.language_code
    set_language(app_code)
    # The language below may be another one. That of the app stays known beside it.
    set_app_language(app_code)
    if user is None or is_overheard(update):
        return
    settings = get_chosen_settings(await turn.load_facts())
    stored_language = settings.get(WRITTEN_LANGUAGE_KEY)
    text = text_to_detect(update)
    # This is read before the language is set below, while it is still that of the app.
    new_value = find_language([text], "") or stored_language or current_language()
    chosen_language = settings.get(CHOSEN_LANGUAGE_KEY, AS_WRITTEN)
    if chosen_language != AS_WRITTEN:
        set_language(chosen_language, is_chosen=True)
    else:
        # The bot may have no texts in the language of the app.
        settle_language(text, stored_language or app_language() or ENGLISH)
    # English is the default, so it is only stored after another language.
    is_default = stored_language is None and new_value == ENGLISH
    if not is_default:
        store_setting(turn, settings, WRITTEN_LANGUAGE_KEY, new_value)


def store_setting(
    turn: ChatTurn,
    settings: Mapping[str, str],
    name: str,
    value: str,
) -> None:
    """Collect a new value of a setting of the user. `settings` are the current values.

    If the turn has no memory or the value is the current one, do nothing.
    """
    is_unchanged = value == settings.get(name)
    if is_unchanged or not turn.has_memory:
        return
    removed: tuple[Fact, ...] = ()
    if name in settings:
        removed = (Fact("setting", f"{name}={settings[name]}"),)
    added = (Fact("setting", f"{name}={value}"),)
    change = Change(user_id=turn.user_id, added_facts=added, removed_facts=removed)
    turn.change_memory(change)


async def load_language(memory: MemoryRepository, user_id: int) -> str | None:
    """Return the stored language of a user, or None if it is unknown."""
    facts = await memory.list_facts(user_id)
    return language_from_settings(get_chosen_settings(facts))


def language_from_settings(settings: Mapping[str, str]) -> str | None:
    """Return the language for a user with these settings, or None if it is unknown."""
    chosen = settings.get(CHOSEN_LANGUAGE_KEY, AS_WRITTEN)
    if chosen == AS_WRITTEN:
        return settings.get(WRITTEN_LANGUAGE_KEY)
    return chosen
