"""The first taps of a new person under the greeting: language, age, taste; whoever writes skips it.

Nothing waits for it: a question that is asked instead is answered at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from telegram import Message, Update
from telegram.ext import CallbackQueryHandler

from agent.i18n import say
from agent.person import UNDER_AGE, Fact, settings_of
from agent.sommelier.taste import written
from bot.telegram.buttons import Button, Rows, acknowledge, keyboard, show_rows
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.incoming import is_private, people_of, press_of
from bot.telegram.settings import CHOSEN, open_setting

KIND: Final = "ob:"
TASTES: Final[Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]] = {
    "style": {
        "red": {"styles": ("red",)},
        "white": {"styles": ("white",)},
        "rose": {"styles": ("rose",)},
        "sparkling": {"styles": ("sparkling",)},
    },
    "build": {
        "light": {"bodies": ("light", "medium_light")},
        "full": {"bodies": ("medium_full", "full")},
        "dry": {"sweetness": ("bone_dry", "dry")},
        "fruity": {"sweetness": ("off_dry", "medium")},
    },
}
"""The two questions of taste, and what each answer likes."""


async def greet(talk: Conversation, update: Update) -> None:
    """Say who this is and what to ask, and what is not known yet of who is greeted."""
    await talk.say(update, say("greeting"), await welcome(talk, update))


async def welcome(talk: Conversation, update: Update) -> Rows:
    """The buttons under a greeting: none where others are, or all is known."""
    age = talk.resources.help.full_age
    if not is_private(update):
        return ()
    if settings_of(await talk.facts(update)).get("age", "") == str(age):
        return ()
    _, user_id = people_of(update)
    language = Button(f"🌐 {say('language_name')}", open_setting(user_id, CHOSEN))
    older = Button(say("start_older", age=age), f"{KIND}age:yes")
    younger = Button(say("start_younger", age=age), f"{KIND}age:no")
    return ((language,), (older, younger))


@dataclass(frozen=True, slots=True)
class Onboarding:
    """Asks what is not known of who is greeted."""

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers."""
        return [CallbackQueryHandler(self.pressed, pattern=f"^{KIND}")]

    async def pressed(self, update: Update, context: Context) -> None:
        """An answer: kept, and the next question put in its place."""
        query = press_of(update)
        _, asked, answer = [*(query.data or "").split(":"), "", ""][:3]
        learned, gone = self._told(asked, answer)
        if learned:
            await self.talk.change(update, learned=learned, unlearned=gone)
        await acknowledge(query)
        following = following_question(asked, answer)
        if isinstance(query.message, Message):
            rows = keyboard(following)
            await show_rows(query.message, rows.inline_keyboard if rows else ())
        if not following:
            await self.talk.say(update, say("start_without" if answer == "no" else "start_done"))

    def _told(self, asked: str, answer: str) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
        """What is learned from an answer, and what does not hold any more."""
        if asked == "age":
            grown = Fact("setting", f"age={self.talk.resources.help.full_age}")
            young = Fact("setting", UNDER_AGE)
            learned, gone = (grown, young) if answer == "yes" else (young, grown)
            return (learned,), (gone,)
        wanted = TASTES.get(asked, {}).get(answer)
        if wanted is None:
            return (), ()
        named = (
            each for each in say(f"start_{answer}_button").split() if any(map(str.isalpha, each))
        )
        return (Fact("like", written(wanted), " ".join(named)),), ()


def following_question(asked: str, answer: str) -> Rows:
    """The question after this one; none after the last, or for who is too young."""
    if answer == "no":
        return ()
    names = list(TASTES)
    following = names[0] if asked == "age" else "".join(names[names.index(asked) + 1 :][:1])
    if not following:
        return ()
    labels = [
        Button(say(f"start_{each}_button"), f"{KIND}{following}:{each}")
        for each in TASTES[following]
    ]
    skip = Button(say("start_skip_button"), f"{KIND}{following}:skip")
    return (tuple(labels[:2]), tuple(labels[2:]), (skip,))
