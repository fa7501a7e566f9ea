"""The first taps of a new person under the greeting: language, age, taste; whoever writes skips it.

Nothing waits for it: a question that is asked instead is answered at once.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from telegram import Message, Update
from telegram.ext import CallbackQueryHandler

from agent.i18n import say
from agent.person import UNDER_AGE, Change, Fact, settings_of
from agent.repositories import MemoryRepository
from agent.sommelier.taste import written
from bot.telegram.handlers import AnyHandler, Context
from bot.telegram.incoming import destination, people_of
from bot.telegram.privacy import is_private
from bot.telegram.sender import Button, Rows, Sender, acknowledge, keyboard, show_rows
from bot.telegram.settings import CHOSEN, open_setting
from bot.turn import retry_briefly

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Onboarding:
    """Asks what is not known of who is greeted; `legal_age` is the age from which wine is offered.

    `change` keeps a change with the end of the turn.
    """

    sender: Sender
    memory: MemoryRepository
    change: Callable[[Sequence[Change]], Awaitable[None]]
    legal_age: int

    def handlers(self) -> list[AnyHandler]:
        """What to pass to `Conversation.register`."""
        return [CallbackQueryHandler(self.pressed, pattern=f"^{KIND}")]

    async def welcome(self, update: Update) -> Rows:
        """The buttons under a greeting: none where others are, or all is known."""
        if not is_private(update):
            return ()
        _, user_id = people_of(update)
        facts = await retry_briefly(partial(self.memory.facts, user_id))
        if settings_of(facts).get("age", "") == str(self.legal_age):
            return ()
        language = Button(f"🌐 {say('language_name')}", open_setting(user_id, CHOSEN))
        return ((language,), *self._ages())

    def _ages(self) -> Rows:
        older = Button(say("start_older", age=self.legal_age), f"{KIND}age:yes")
        return ((older, Button(say("start_younger", age=self.legal_age), f"{KIND}age:no")),)

    async def pressed(self, update: Update, context: Context) -> None:
        """An answer: kept, and the next question put in its place."""
        query = update.callback_query
        assert query is not None  # noqa: S101 - the handler lets nothing else through
        _, asked, answer = [*(query.data or "").split(":"), "", ""][:3]
        _, user_id = people_of(update)
        if (change := self._change(user_id, asked, answer)) is not None:
            await self.change([change])
        await acknowledge(query)
        following = self._next(asked, answer)
        if isinstance(query.message, Message):
            rows = keyboard(following)
            await show_rows(query.message, rows.inline_keyboard if rows else ())
        if not following:
            said = "start_without" if answer == "no" else "start_done"
            await self.sender.send(destination(update), say(said))

    def _change(self, user_id: int, asked: str, answer: str) -> Change | None:
        if asked == "age":
            grown, young = Fact("setting", f"age={self.legal_age}"), Fact("setting", UNDER_AGE)
            learned, gone = (grown, young) if answer == "yes" else (young, grown)
            return Change(user_id=user_id, learned=(learned,), unlearned=(gone,))
        wanted = TASTES.get(asked, {}).get(answer)
        if wanted is None:
            return None
        named = (
            each for each in say(f"start_{answer}_button").split() if any(map(str.isalpha, each))
        )
        liked = Fact("like", written(wanted), " ".join(named))
        return Change(user_id=user_id, learned=(liked,))

    def _next(self, asked: str, answer: str) -> Rows:
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
