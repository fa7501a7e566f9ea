"""The turn of an update from Telegram: its user and chat, what it reads, the messages it sends."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from telegram import Message, Update

from agent.engine.parsing import CurrentDraft
from agent.sommelier.service import Answerer
from agent.tracing.records import trace_id_of
from agent.turn import Fact, Reply
from bot.resources import Repositories, Resources
from bot.runner import TurnRunner
from bot.telegram.messages import chat_and_user_ids, destination, names_of
from bot.telegram.progress import Progress, show_progress
from bot.telegram.sender import ButtonRows, build_message, build_messages
from bot.turn import Destination, Question, Transcribe, Turn, TurnKind
from db.commit import Press
from db.models import OutboxRow

ButtonsBelow = Callable[[Turn, Question, Reply], ButtonRows]
"""Returns the buttons under an answer."""
AUDIO_FILE: Final = "answer.ogg"


@dataclass(frozen=True, slots=True)
class MarkdownMessages:
    """Texts for a chat that were collected and are not yet rendered; buttons under the last."""

    to: Destination
    texts: Sequence[str]
    buttons: ButtonRows
    turn_id: int | None = None
    """The turn that they answer, if it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the turns of all chats have in common.

    `trace_hash(kind, id)` returns the hash that stands for a chat or user in traces;
    `buttons_below` returns the buttons under an answer.
    """

    resources: Resources
    runner: TurnRunner
    answerer: Answerer
    trace_hash: Callable[[str, int], str]
    progress: Progress
    buttons_below: ButtonsBelow


@dataclass(slots=True, kw_only=True, eq=False)
class ChatTurn(Turn):
    """The turn of an update; handlers get it with the update that the library has parsed."""

    services: Services
    bot_name: str = ""
    """The @name of the bot, without the @."""
    message_text: str = ""
    """The text that the user has written in this update."""
    messages: list[MarkdownMessages | OutboxRow] = field(default_factory=list)
    """What is to be sent, in order; `render` moves it to the commit."""

    @property
    def repositories(self) -> Repositories:
        """Return what can be read from the database."""
        return self.services.resources.repositories

    def meet(self, update: Update) -> None:
        """Set who asks where. The trace id depends only on the update, so all tries share it."""
        self.chat_id, self.user_id = chat_and_user_ids(update)
        self.bot_name = update.get_bot().username
        self.message_text = (update.message and update.message.text) or ""
        self.session = self.services.trace_hash("chat", self.chat_id)
        self.user = self.services.trace_hash("user", self.user_id)
        self.names = names_of(update)
        self.trace_id = trace_id_of(update.get_bot().id, self.chat_id, update.update_id)
        self.to = destination(update) if update.effective_message else None

    def ask(
        self, text: str, kind: TurnKind = "chat", transcribe: Transcribe | None = None
    ) -> Question:
        """Return a question of this turn. `text` leaves out the name of a command."""
        is_command = self.message_text.startswith("/")
        typed = self.message_text if is_command else text
        return Question(text=text, kind=kind, typed=typed, transcribe=transcribe)

    async def load_facts(self) -> Sequence[Fact]:
        """Return the stored facts about the user, as they were when the turn began."""
        if self.facts is None:
            memory = self.repositories.memory
            self.facts = await memory.list_facts(self.user_id) if self.has_memory else ()
        return self.facts

    def reply(self, markdown: str, buttons: ButtonRows = ()) -> None:
        """Collect a reply to the update, with buttons under its last message."""
        if self.to is not None:
            self.send(self.to, markdown, buttons)

    def send(self, to: Destination, markdown: str, buttons: ButtonRows = ()) -> None:
        """Collect a message to any chat."""
        self.messages.append(MarkdownMessages(to, [markdown], buttons))

    def send_file(self, name: str, content: bytes) -> None:
        """Collect a file with this name."""
        if self.to is not None:
            file = build_message(self.to, kind="document", file_name=name, file=content)
            self.messages.append(file)

    def replace_buttons(self, message: object, rows: ButtonRows) -> None:
        """Collect new buttons under a message, if the bot can access it."""
        if isinstance(message, Message):
            to = Destination(message.chat.id, edits=message.message_id)
            buttons = [[list(button) for button in row] for row in rows]
            edit = build_message(to, kind="buttons", buttons=buttons)
            self.messages.append(edit)

    def claim(self, message: Message, action: str) -> None:
        """Let the commit carry out this turn only if no other has claimed the same press."""
        self.commit.press = Press(message.chat.id, message.message_id, action)

    def show(self, question: Question, reply: Reply, *, has_buttons: bool) -> None:
        """Collect the messages of a reply; the first replaces the placeholder, if there is one."""
        if self.to is None:
            return
        to = replace(self.to, edits=self.placeholder_id)
        buttons = self.services.buttons_below(self, question, reply) if has_buttons else ()
        self.messages.append(MarkdownMessages(to, reply.messages, buttons, turn_id=self.id))
        if reply.audio:
            audio = build_message(to.next, kind="voice", file_name=AUDIO_FILE, file=reply.audio)
            audio.turn_id = self.id
            self.messages.append(audio)

    async def render(self) -> None:
        """Render the collected messages, and move them to the commit."""
        for collected in self.messages:
            if isinstance(collected, OutboxRow):
                self.commit.messages.append(collected)
                continue
            rendered = await build_messages(collected.to, collected.texts, collected.buttons)
            for message in rendered:
                message.turn_id = collected.turn_id
            self.commit.messages += rendered
        self.messages.clear()

    def restart(self) -> None:
        """Prepare another try; what was collected is discarded, messages too."""
        Turn.restart(self)  # a dataclass with slots has no `super()` without arguments
        self.messages.clear()

    @asynccontextmanager
    async def show_progress(self) -> AsyncIterator[CurrentDraft | None]:
        """Show a typing indicator or drafts until the block ends; yield a setter of drafts."""
        if self.to is None:
            yield None
            return
        async with show_progress(self.services.progress, self, self.to) as draft:
            yield draft
