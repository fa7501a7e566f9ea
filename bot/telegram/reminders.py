"""Reminders of one's own bottles: once a month at most, in the day of their owner.

A reminder is a message without a turn, stored with the fact that it was given: so it is sent once,
whoever else runs and whatever is killed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

from telegram import Update
from telegram.ext import filters

from agent.i18n import translate, use_language
from agent.memory.cellar import due_fact, due_in
from agent.memory.wording import cellar
from agent.turn import Bottles, Fact
from bot.outgoing import Button, ButtonRows, Destination
from bot.telegram.buttons import acknowledge
from bot.telegram.conversation import AnyHandler, Conversation, on_command, on_press
from bot.telegram.messages import message_of, press_of
from bot.telegram.sender import messages_of
from bot.telegram.settings import spoken_by

HOURS: Final = range(10, 20)
"""The hours of the day in which somebody may be reminded."""
REMINDED: Final = "reminded={}"
OFF: Final = "reminders=off"
OFF_BUTTON: Final = "rm:off"


def reminder_handlers(talk: Conversation) -> list[AnyHandler]:
    """Return the handlers of /remind and of the button that ends reminders."""
    return [
        on_command(talk, "remind", _remind, filters.ChatType.PRIVATE),
        on_press(talk, OFF_BUTTON, _end_reminders),
    ]


async def _remind(talk: Conversation, update: Update) -> None:
    """Answer /remind with the bottles that are due, and remember that the user was told."""
    now = message_of(update).date
    due = due_in(await talk.bottles(update), await talk.facts(update), now.year)
    if not due:
        await talk.say(update, translate("cellar_not_due"))
        return
    await talk.say(update, *reminder(due, now.year))
    reminded = Fact("setting", reminded_in(now))
    facts = (due_fact(bottles, now.year) for bottles in due)
    await talk.change_memory(update, learned=(reminded, *facts))


async def _end_reminders(talk: Conversation, update: Update) -> None:
    """Send no reminder any more."""
    await acknowledge(press_of(update))
    await talk.say(update, translate("cellar_remind_off"))
    await talk.change_memory(update, learned=(Fact("setting", OFF),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminding:
    """Remind people of their own wines once a month; `zone` is where they live."""

    talk: Conversation
    zone: tzinfo = UTC
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def round(self) -> None:
        """Store a reminder for every user with bottles that are due now."""
        now, memory = self.now().astimezone(self.zone), self.talk.repositories.memory
        if now.hour not in HOURS:
            return
        for user_id in await memory.owners(without=(OFF, reminded_in(now))):
            due = due_in(await memory.bottles(user_id), await memory.facts(user_id), now.year)
            if due:
                with use_language(await spoken_by(self.talk, user_id)):
                    text, buttons = reminder(due, now.year)
                reminded = tuple(due_fact(bottles, now.year) for bottles in due)
                messages = await messages_of(Destination(user_id), text, buttons)
                await memory.remind(user_id, Fact("setting", reminded_in(now)), reminded, messages)


def reminded_in(now: datetime) -> str:
    """Return the setting of a person who was reminded this month."""
    return REMINDED.format(f"{now:%Y-%m}")


def reminder(due: Sequence[Bottles], year: int) -> tuple[str, ButtonRows]:
    """Return the text of a reminder, and the button that ends reminders."""
    buttons = ((Button(translate("cellar_remind_no_button"), OFF_BUTTON),),)
    return cellar(due, year, translate("cellar_due")), buttons
