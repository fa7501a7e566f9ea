"""Buttons about concerns: take back a misunderstanding, confirm what a model noticed."""

from dataclasses import dataclass
from typing import Final

from telegram import Message, Update
from telegram.ext import CallbackQueryHandler

from agent.care.concerns import CONCERNS, gravest
from agent.i18n import say
from agent.turn import Reply
from bot.outgoing import Button, Rows
from bot.question import Question
from bot.telegram.buttons import acknowledge, rows_of, show_rows
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import people_of, press_of

KIND: Final = "c:"
"""The beginning of the data of these buttons: `c:PERSON:CONCERN`."""
MISUNDERSTOOD: Final = "off"


def care_buttons(question: Question, reply: Reply) -> Rows:
    """Return the button below an answer in which a concern was noticed."""
    concern = gravest(reply.concerns)
    if concern == "crisis":
        label, value = say("care_misunderstood_button"), MISUNDERSTOOD
    elif concern and reply.outcome != "care":
        label, value = say("care_keep_button"), concern
    else:
        return ()
    return ((Button(label, f"{KIND}{question.user_id}:{value}"),),)


@dataclass(frozen=True, slots=True)
class CareButtons:
    """Handle the presses on `care_buttons`."""

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers, to stand before handlers that take any button."""
        return [CallbackQueryHandler(self.press, pattern=f"^{KIND}")]

    async def press(self, update: Update, context: Context) -> None:
        """Take a concern back or remember it; a press of somebody else changes nothing."""
        query, (chat_id, user_id) = press_of(update), people_of(update)
        owner, value = [*(query.data or "").split(":")[1:], "", ""][:2]
        if owner != str(user_id):
            await acknowledge(query, say("not_yours"))
            return
        carer = self.talk.turns.carer
        if value == MISUNDERSTOOD:
            await carer.retract(chat_id, user_id)
            await acknowledge(query)
            await self.talk.say(update, say("care_misunderstood"))
        elif value in CONCERNS:
            await carer.keep(chat_id, user_id, [value])
            await acknowledge(query, say("care_kept"))
        if isinstance(query.message, Message):
            rows = rows_of(query.message)
            await show_rows(query.message, tuple(row for row in rows if not _is_of_care(row)))


def _is_of_care(row: tuple[Button, ...]) -> bool:
    return any(button.data.startswith(KIND) for button in row)
