"""Buttons that take back what a turn remembered, and that remember what it suggests.

A button carries all that it needs: the id of the kept change, or the fact itself. So it works after
a restart; an old press, one of somebody else and a second one change nothing.
"""

from dataclasses import dataclass
from typing import Final

from telegram import Message, Update
from telegram.ext import CallbackQueryHandler

from agent.i18n import say
from agent.memory.taste import fact_of
from agent.memory.wording import in_words, learned
from agent.turn import Change, Fact, Reply
from bot.outgoing import Button, Rows
from bot.question import Question
from bot.telegram.buttons import acknowledge, rows_of, show_rows
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import people_of, press_of

UNDO, REMEMBER = "u:", "r:"
"""The beginnings of the data: `u:CHANGE` and `r:PERSON:KIND:VALUE`."""
MAX_DATA: Final = 64
"""Bytes of the data of a button in Telegram."""
MAX_LABEL: Final = 40
MAX_SUGGESTED: Final = 2


def memory_buttons(question: Question, reply: Reply) -> Rows:
    """Return the buttons that undo the changes of a turn, and that remember what it suggests."""
    undo = undo_button(*(change.undo_id for change in reply.changes))
    suggested = (
        Button(say("remember_fact", fact=in_words(fact))[:MAX_LABEL], data)
        for fact in reply.suggested_facts
        if len((data := _data(question.user_id, fact)).encode()) <= MAX_DATA
    )
    return undo + tuple((button,) for button in [*suggested][:MAX_SUGGESTED])


def undo_button(*undo_ids: int) -> Rows:
    """Return the button that undoes a change under the first of these ids that is one."""
    undo_id = next(filter(None, undo_ids), 0)
    return ((Button(say("undo_button"), f"{UNDO}{undo_id}"),),) if undo_id else ()


def _data(user_id: int, fact: Fact) -> str:
    return f"{REMEMBER}{user_id}:{fact.kind}:{fact.value}"


@dataclass(frozen=True, slots=True)
class MemoryButtons:
    """Handle the presses on `memory_buttons`."""

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers, to stand before handlers that take any button."""
        return [
            CallbackQueryHandler(self.undo, pattern=f"^{UNDO}"),
            CallbackQueryHandler(self.remember, pattern=f"^{REMEMBER}"),
        ]

    async def undo(self, update: Update, context: Context) -> None:
        """Take a change back, if it is the presser's and was not taken back yet."""
        query, (_, user_id) = press_of(update), people_of(update)
        number = (query.data or "").removeprefix(UNDO)
        undo_id = int(number) if number.lstrip("-").isdecimal() and len(number) < 20 else 0
        change = await self.talk.repositories.memory.undoable(user_id, undo_id)
        if change is None:
            await acknowledge(query, say("nothing_to_undo"))
            return
        await self.talk.save([Change(user_id=user_id, undoes=undo_id)])
        await acknowledge(query, say("undone"))
        await _without(query.message, query.data or "")

    async def remember(self, update: Update, context: Context) -> None:
        """Remember a suggested fact of the person whom the button is for."""
        query, (_, user_id) = press_of(update), people_of(update)
        owner, kind, value = [*(query.data or "").split(":", 3)[1:], "", "", ""][:3]
        if owner != str(user_id):
            await acknowledge(query, say("not_yours"))
            return
        if (fact := fact_of(kind, value)) is not None:
            await self.talk.change(update, learned=(fact,))
            await acknowledge(query, learned([fact]))
        await _without(query.message, query.data or "")


async def _without(message: object, data: str) -> None:
    """Take the button with this data from a message."""
    if isinstance(message, Message):
        rows = (tuple(button for button in row if button.data != data) for row in rows_of(message))
        await show_rows(message, tuple(row for row in rows if row))
