"""/broadcast: a message of an admin to everyone, after a look at it and a press."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from telegram import CallbackQuery, Message, Update
from telegram.ext import CallbackQueryHandler, CommandHandler, filters

from agent.i18n import say
from agent.markdown import link, live
from bot.admin.commands import admins_press
from bot.telegram.buttons import Button, Rows, acknowledge, is_resumed, show_rows
from bot.telegram.conversation import (
    TYPED,
    AnyHandler,
    Context,
    Conversation,
    behind_command,
    destination,
    message_of,
)
from bot.telegram.sender import Destination
from bot.turn import retry_forever

PRESSED: Final = r"^b:(\d{1,18}):(send|cancel)$"


@dataclass(frozen=True, slots=True)
class BroadcastCommand:
    """Shows a message as everyone will see it, and sends it when an admin confirms.

    It goes to every private chat of somebody who is not blocked, with `only_allowed` of those who
    are let in. Each send is a step of the journal: after a crash it goes on with the next chat.
    """

    talk: Conversation
    admin_ids: frozenset[int]
    only_allowed: bool = False

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers."""
        admins = TYPED & filters.User(self.admin_ids)
        return [
            CommandHandler("broadcast", self.draft, filters=admins),
            CallbackQueryHandler(self.pressed, pattern=PRESSED),
        ]

    async def draft(self, update: Update, context: Context) -> None:
        """/broadcast TEXT, or as a reply: the message as it will look, and who would get it."""
        words, to = words_of(update), destination(update)
        step = self.talk.step
        if not words:
            await self.talk.sender.send(to, say("broadcast_usage"))
            return
        chats = len(await step("chats", self._chats))
        if not chats:
            await self.talk.sender.send(to, say("broadcast_to_nobody"))
            return
        admin = update.effective_user
        draft = partial(self.talk.repositories.broadcasts.draft, words, admin.id if admin else 0)
        drafted = await step("draft", draft)
        await self.talk.sender.send(to, words)
        preview = say("broadcast_preview", count=chats)
        await self.talk.sender.send(to, preview, choice(drafted))

    async def pressed(self, update: Update, context: Context) -> None:
        """Send or cancel, on the first press; any other press only says that it is over."""
        if (pressed := await admins_press(update, self.admin_ids)) is None:
            return
        query, broadcast_id, word = pressed
        await (self._send if word == "send" else self._cancel)(broadcast_id, update, query)

    async def _cancel(self, broadcast_id: int, update: Update, query: CallbackQuery) -> None:
        step = self.talk.step
        cancelled = await step(
            "cancel", partial(self.talk.repositories.broadcasts.cancel, broadcast_id)
        )
        await self._heard(query, say("broadcast_over") if not cancelled else "")
        if cancelled:
            await self.talk.sender.send(destination(update), say("broadcast_cancelled"))

    async def _send(self, broadcast_id: int, update: Update, query: CallbackQuery) -> None:
        step = self.talk.step
        words = await self._begun(broadcast_id)
        await self._heard(query, say("broadcast_over") if words is None else "")
        if words is None:
            return
        chats = await step("chats", self._chats)
        failed = 0
        for chat_id in chats:
            delivery = await self.talk.sender.send(Destination(chat_id), words)
            failed += delivery.error is not None
        sent = len(chats) - failed
        keep = partial(self.talk.repositories.broadcasts.done, broadcast_id, sent, failed)
        await step("sent", partial(retry_forever, keep))
        done = say("broadcast_done", count=sent, failed=failed)
        await self.talk.sender.send(destination(update), done)

    async def _begun(self, broadcast_id: int) -> str | None:
        """The words of a broadcast that is to be sent now; None if it was sent or cancelled.

        A turn that goes on after a crash may find it begun by itself. Presses of one broadcast come
        from one chat, one after the other, so nobody else can be sending it.
        """
        resumed, step = await is_resumed(self.talk.sender.journal), self.talk.sender.journal.step
        return await step("begin", partial(self._begin, broadcast_id, resumed=resumed))

    async def _begin(self, broadcast_id: int, *, resumed: bool) -> str | None:
        # Begun last: if the database fails before, the next try finds a draft.
        found = await self.talk.repositories.broadcasts.get(broadcast_id)
        if found is None:
            return None
        if resumed and found.state == "sending":
            return found.text
        return found.text if await self.talk.repositories.broadcasts.begin(broadcast_id) else None

    async def _heard(self, query: CallbackQuery, words: str) -> None:
        """End the waiting sign, and take the buttons away."""
        await acknowledge(query, words)
        if isinstance(query.message, Message):
            await show_rows(query.message, ())

    async def _chats(self) -> list[int]:
        return await self.talk.repositories.people.private_chats(only_allowed=self.only_allowed)


def words_of(update: Update) -> str:
    """What is to be told: the words behind the command, else those of the message replied to."""
    message = message_of(update)
    replied = message.reply_to_message
    told = (replied.text or replied.caption or "") if replied else ""
    return linked(behind_command(message.text or "") or told.strip())


def linked(words: str) -> str:
    """An admin's own words, whose web addresses can be tapped."""
    parts, end = list[str](), 0
    for found in live(words):
        address = link(words[found.start : found.end])
        parts += [words[end : found.start], address or words[found.start : found.end]]
        end = found.end
    return "".join([*parts, words[end:]])


def choice(broadcast_id: int) -> Rows:
    """The buttons below a preview."""
    send, cancel = f"b:{broadcast_id}:send", f"b:{broadcast_id}:cancel"
    return ((Button(say("send_button"), send), Button(say("cancel_button"), cancel)),)
