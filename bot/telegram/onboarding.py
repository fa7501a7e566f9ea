"""Answer /start: greet a user, or show the wine of a link that opened the bot.

Taps under the greeting tell the language, age and taste of a new user. Nothing waits for them: a
question that is asked instead is answered at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from telegram import Update
from telegram.ext import CallbackQueryHandler, CommandHandler

from agent.engine.run import Run
from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.cards import wine_text
from agent.sommelier.safety import care_in, get_wines, person_in
from agent.sommelier.taste import written
from agent.text import pattern
from agent.turn import UNDER_AGE, Fact, Reply, settings_of
from bot.outgoing import Button, ButtonRows, Outgoing, in_rows
from bot.telegram.buttons import acknowledge, parts_of, show_rows
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import (
    TYPED,
    behind_command,
    is_private,
    message_of,
    people_of,
    press_of,
)
from bot.telegram.settings import CHOSEN, button_data

PAYLOAD: Final = pattern(r"[A-Za-z0-9_-]{1,64}")
"""The payload of /start that Telegram lets a link carry."""
PREFIX: Final = "ob:"
"""The beginning of the data of these buttons: `ob:QUESTION:ANSWER`."""
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
"""The two questions about taste, and the likes that follow from an answer."""


@dataclass(frozen=True, slots=True)
class Onboarding:
    """Answers /start, and the taps of a new user."""

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers."""
        return [
            CommandHandler("start", self.start, filters=TYPED),
            CallbackQueryHandler(self.tap, pattern=f"^{PREFIX}"),
        ]

    async def start(self, update: Update, context: Context) -> None:
        """Answer /start with a wine, or a greeting and questions to a new user."""
        payload = behind_command(message_of(update).text or "")
        if PAYLOAD.fullmatch(payload):
            await self._show_wine(update, payload)
        else:
            await self.talk.say(update, translate("greeting"), await self._questions(update))

    async def _show_wine(self, update: Update, payload: str) -> None:
        """Show the wine of a link, or greet if there is none; the trace has the payload."""
        talk, catalogue = self.talk, self.talk.repositories.wines
        wines = await catalogue.get([payload])
        words = wines[0].label if wines else f"/start {payload}"

        async def work(run: Run) -> Reply:
            run.span.update(metadata={"start": payload})
            if allowed := await get_wines(catalogue, [payload], person_in(run)):
                (wine,) = allowed
                text = wine_text(wine, escape(wine.notes))
                return Reply(text=text, wine_ids=(wine.id,), wines=(wine,))
            if wines and (notice := talk.turns.safety.help.notice_for(care_in(run))):
                return Reply(text=notice, outcome="care")
            return Reply(text=translate("greeting"), answer=await self._questions(update))

        def greeting(questions: ButtonRows) -> Sequence[Outgoing]:
            return [Outgoing(translate("greeting"), questions)]

        question = talk.build_question(update, words, in_history=bool(wines))
        await talk.turns.run_turn(question, work, greeting)

    async def _questions(self, update: Update) -> ButtonRows:
        """Return the buttons under a greeting: none in a group, or where all is known."""
        age = self.talk.resources.help.full_age
        if not is_private(update):
            return ()
        if settings_of(await self.talk.facts(update)).get("age", "") == str(age):
            return ()
        _, user_id = people_of(update)
        language = Button(f"🌐 {translate('language_name')}", button_data(user_id, CHOSEN))
        older = Button(translate("start_older", age=age), f"{PREFIX}age:yes")
        younger = Button(translate("start_younger", age=age), f"{PREFIX}age:no")
        return ((language,), (older, younger))

    async def tap(self, update: Update, context: Context) -> None:
        """Store an answer, and ask the next question in its place."""
        query = press_of(update)
        question, answer = parts_of(query, 2)
        if question == "age":
            adult = Fact("setting", f"age={self.talk.resources.help.full_age}")
            minor = Fact("setting", UNDER_AGE)
            new, old = (adult, minor) if answer == "yes" else (minor, adult)
            await self.talk.change_memory(update, learned=(new,), unlearned=(old,))
        elif (wanted := TASTES.get(question, {}).get(answer)) is not None:
            label = translate(f"start_{answer}_button").split()
            words = " ".join(word for word in label if any(map(str.isalpha, word)))
            await self.talk.change_memory(update, learned=(Fact("like", written(wanted), words),))
        await acknowledge(query)
        following = following_question(question, answer)
        await show_rows(query.message, following)
        if not following:
            await self.talk.say(
                update, translate("start_without" if answer == "no" else "start_done")
            )


def following_question(question: str, answer: str) -> ButtonRows:
    """Return the buttons of the next question; none after the last, or for a minor."""
    questions = ["age", *TASTES]
    following = [*questions[1:], ""][questions.index(question)] if question in questions else ""
    if answer == "no" or not following:
        return ()
    labels = [
        Button(translate(f"start_{name}_button"), f"{PREFIX}{following}:{name}")
        for name in TASTES[following]
    ]
    skip = Button(translate("start_skip_button"), f"{PREFIX}{following}:skip")
    return (*in_rows(labels, 2), (skip,))
