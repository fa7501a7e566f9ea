"""/privacy, /export and /forget: what is kept of a person is told, sent, deleted; also in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from pydantic_core import to_json
from telegram import Message, Update
from telegram.constants import ChatType
from telegram.ext import CallbackQueryHandler, CommandHandler, MessageHandler, filters

from agent.i18n import say
from agent.memory.asking import Asked, asked_of_memory
from agent.person import Change
from bot.telegram.buttons import Button, acknowledge, show_rows
from bot.telegram.conversation import TYPED, AnyHandler, Context, Conversation
from bot.telegram.incoming import destination, is_private, message_of, people_of, press_of
from bot.turn import retry_briefly

# Without a kind before the colon a button waits for what was asked in its chat before.
YES, NO = ":forget", ":keep"
STANDS: Final = timedelta(minutes=10)
"""For how long a yes in words answers whether to delete; the button does so for ever."""
FILE_NAME: Final = "sommelier.json"
KEPT: Final = "messages facts bottles cares feedback turns traces".split()
"""What is counted before it is deleted, each told by a sentence."""


class Asks(filters.MessageFilter):
    """What asks in words for a command about what is kept; in private chats alone."""

    def __init__(self, what: Asked) -> None:
        super().__init__()
        self._what = what

    def filter(self, message: Message) -> bool:
        """Whether a message does."""
        is_private = message.chat.type == ChatType.PRIVATE
        return is_private and asked_of_memory(message.text or "") == self._what


@dataclass(frozen=True, slots=True)
class PrivacyCommands:
    """Tells, sends and deletes what is kept of who asks, in their private chat.

    `days` is how long what is kept, by names of the sentence `privacy`. Traces go `elsewhere`, if
    to Langfuse; `is_deleted_there` what is deleted here. `asked` is when it was asked last whether
    to delete, by chat.
    """

    talk: Conversation
    days: Mapping[str, float]
    elsewhere: str = ""
    is_deleted_there: bool = False
    asked: dict[int, datetime] = field(default_factory=dict)

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers."""
        commands = {"privacy": self.privacy, "export": self.export, "forget": self.forget}
        typed = TYPED & filters.TEXT & ~filters.COMMAND
        return [
            *(CommandHandler(name, each, filters=TYPED) for name, each in commands.items()),
            MessageHandler(typed & Asks("privacy"), self.privacy),
            MessageHandler(typed & Asks("export"), self.export),
            MessageHandler(typed & Asks("forget"), self.forget),
            MessageHandler(typed & Asks("agree"), self.agreed),
            CallbackQueryHandler(self.pressed, pattern=f"^(?:{YES}|{NO})$"),
        ]

    async def privacy(self, update: Update, context: Context) -> None:
        """/privacy: what is kept, for how long, and what can be done about it."""
        where = say("privacy_elsewhere", where=self.elsewhere) if self.elsewhere else ""
        await self.talk.say(update, say("privacy", **self.days, elsewhere=where))

    async def export(self, update: Update, context: Context) -> None:
        """/export: all that is kept of who asks, as one JSON document."""
        if await self._is_overheard(update):
            return
        read = partial(self.talk.repositories.personal.export, *self._who(update))
        found = to_json(await retry_briefly(read), indent=2)
        await self.talk.say(update, say("export_ready"))
        await self.talk.sender.send_file(destination(update), FILE_NAME, found)

    async def forget(self, update: Update, context: Context) -> None:
        """/forget: ask whether all that is kept of who asks is to be deleted."""
        if await self._is_overheard(update):
            return
        kept = await self._counted(update)
        buttons = ((Button(say("forget_yes_button"), YES), Button(say("forget_no_button"), NO)),)
        sure = say("forget_sure", kept=kept) if kept else say("forget_nothing")
        await self.talk.say(update, sure, buttons)
        self.asked[destination(update).chat_id] = message_of(update).date

    async def agreed(self, update: Update, context: Context) -> None:
        """A yes in words: to being forgotten, if that was asked just before; else it is talk."""
        asked = self.asked.pop(destination(update).chat_id, None)
        if asked is None or message_of(update).date - asked > STANDS:
            await self.talk.text(update, context)
        else:
            await self._delete(update)

    async def pressed(self, update: Update, context: Context) -> None:
        """Delete everything with the end of this turn, or nothing; how much is told before."""
        query = press_of(update)
        await acknowledge(query)
        if isinstance(query.message, Message):
            await show_rows(query.message, ())
        if query.data != YES:
            await self.talk.say(update, say("forget_kept"))
            return
        await self._delete(update)

    async def _delete(self, update: Update) -> None:
        user_id, user = self._who(update)
        await self.talk.turns.stop_everywhere(user_id=user_id, is_forgotten=True)
        kept = await self._counted(update)
        stays = "forget_elsewhere" if self.is_deleted_there else "forget_not_elsewhere"
        where = say(stays, where=self.elsewhere) if self.elsewhere else ""
        done = say("forget_done", kept=kept, elsewhere=where)
        await self.talk.say(update, done if kept else say("forget_nothing"))
        await self.talk.save([Change(user_id=user_id, forget=user)])

    def _who(self, update: Update) -> tuple[int, str]:
        """The id of who asks, and what stands for it in traces."""
        _, user_id = people_of(update)
        return user_id, self.talk.turns.hashed("user", user_id)

    async def _counted(self, update: Update) -> str:
        """How much is kept of who asks, in words; a step, so that a resumed turn says the same."""
        count = partial(self.talk.repositories.personal.count, *self._who(update))
        counts = await self.talk.step("kept", partial(retry_briefly, count))
        return ", ".join(
            say(f"kept_{each}", count=counts[each]) for each in KEPT if counts.get(each)
        )

    async def _is_overheard(self, update: Update) -> bool:
        """Whether others are in the chat; then it is said where to ask."""
        if is_private(update):
            return False
        await self.talk.say(update, say("only_in_private"))
        return True
