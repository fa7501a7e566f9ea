"""Reminders of one's own bottles: once a month at most, in the day of their owner.

A reminder is a message without a turn, stored with the fact that it was given: so it is sent once,
whoever else runs and whatever is killed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

from telegram import Update

from agent.i18n import translate, use_language
from agent.memory.cellar import cellar, due_fact, due_in
from agent.turn import Fact
from bot.outgoing import Button, Destination
from bot.telegram.buttons import acknowledge
from bot.telegram.conversation import AnyHandler, Conversation, on_press
from bot.telegram.messages import press_of
from bot.telegram.sender import messages_of
from bot.telegram.settings import spoken_by

HOURS: Final = range(10, 20)
"""The hours of the day in which somebody may be reminded."""
OFF: Final = "reminders=off"
OFF_BUTTON: Final = "rm:off"


def reminder_handlers(conversation: Conversation) -> list[AnyHandler]:
    """Return the handler of the button that ends reminders."""
    return [on_press(conversation, OFF_BUTTON, _end_reminders)]


async def _end_reminders(conversation: Conversation, update: Update) -> None:
    """Send no reminder any more."""
    await acknowledge(press_of(update))
    await conversation.reply(update, translate("cellar_remind_off"))
    await conversation.change_memory(update, added_facts=(Fact("setting", OFF),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminding:
    """Remind people of their own wines once a month; `zone` is where they live."""

    conversation: Conversation
    zone: tzinfo = UTC
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def round(self) -> None:
        """Store a reminder for every user with bottles that are due now."""
        now, memory = self.now().astimezone(self.zone), self.conversation.repositories.memory
        if now.hour not in HOURS:
            return
        month = f"reminded={now:%Y-%m}"
        for user_id in await memory.owners(without=(OFF, month)):
            due = due_in(await memory.bottles(user_id), await memory.facts(user_id), now.year)
            if not due:
                continue
            with use_language(await spoken_by(self.conversation, user_id)):
                text = cellar(due, now.year, translate("cellar_due"))
                no_more = Button(translate("cellar_remind_no_button"), OFF_BUTTON)
            messages = messages_of(Destination(user_id), text, ((no_more,),))
            facts = tuple(due_fact(bottles, now.year) for bottles in due)
            await memory.remind(user_id, Fact("setting", month), facts, messages)
