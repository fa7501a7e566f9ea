"""/language and /settings: what a person chose, by buttons, and the language they are spoken to in.

A setting is a row of `SETTINGS` and a handful of sentences. It is kept with the person, whatever
chat it was chosen in. The first are asked for in taps under the greeting (language, age, taste);
nothing waits for them: a question that is asked instead is answered at once.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from telegram import CallbackQuery, Message, Update
from telegram.constants import ParseMode
from telegram.error import TelegramError
from telegram.ext import CallbackQueryHandler, CommandHandler

from agent.engine.errors import or_else
from agent.i18n import ENGLISH, FAHRENHEIT, in_every_language, languages, say, say_in, speak, spoken
from agent.memory.wording import price_range
from agent.sommelier.taste import written
from agent.text import fold, spoken_in
from agent.turn import PRICES, UNDER_AGE, Change, Fact, facts_of, settings_of
from bot.pending import pending_turn
from bot.retries import retry_briefly
from bot.telegram.buttons import acknowledge, show_rows
from bot.telegram.conversation import (
    TYPED,
    AnyHandler,
    Context,
    Conversation,
    behind_command,
    is_addressed,
    is_own,
    is_private,
    people_of,
    press_of,
)
from bot.telegram.render import to_telegram_html
from bot.telegram.sender import Button, Rows, in_rows, keyboard

log = logging.getLogger(__name__)

KIND: Final = "s:"
"""What the data of these buttons begins with; a kind has a lane of its own, see `lane_of`."""
READ: Final = 1_000
"""Characters of a message that tell its language."""

AS_WRITTEN: Final = "auto"
ALOUD, OFF, ON = "aloud", "off", "on"
"""Whether answers to voice messages are read aloud; to be chosen only where something can."""
CHOSEN, WRITTEN, PHONE = "language", "written", "phone"
"""The languages of a person: what they chose, what they wrote in last, what their Telegram is in;
the first that there is holds."""


TAPS: Final = "ob:"
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

ANY: Final = "any"
RANGES: Final = ("15 EUR", "15-30 EUR", "30-60 EUR", "60- EUR")
"""What a bottle may cost."""
DEGREES: Final = {"celsius": "°C", FAHRENHEIT: "°F"}


@dataclass(frozen=True, slots=True)
class Setting:
    """Something to choose: the name of its sentence, its values, and what each is called.

    The first value is what holds until somebody chooses another.
    """

    name: str
    values: Callable[[], Collection[str]]
    label: Callable[[str], str]

    def value(self, chosen: Mapping[str, str]) -> str:
        """What holds of what was chosen."""
        return chosen.get(self.name) or next(iter(self.values()))


def language_label(value: str) -> str:
    """What a language calls itself."""
    return say("language_auto") if value == AS_WRITTEN else say_in(value, "language_name")


def price_label(value: str) -> str:
    """What a range of prices is called."""
    return price_range(value) if value != ANY else say("prices_any")


SETTINGS: Final[Mapping[str, Setting]] = {
    each.name: each
    for each in (
        Setting(CHOSEN, lambda: (AS_WRITTEN, *languages()), language_label),
        Setting(PRICES, lambda: (ANY, *RANGES), price_label),
        Setting("temperature", lambda: DEGREES, DEGREES.__getitem__),
        Setting("traces", lambda: ("words", "numbers"), lambda value: say(f"traces_{value}")),
        Setting(ALOUD, lambda: (OFF, ON), lambda value: say("on" if value == ON else "off")),
    )
}


def language_of_person(settings: Mapping[str, str], phone: str | None = None) -> str | None:
    """The language that somebody is spoken to in; None if they said nothing of it."""
    chosen = SETTINGS[CHOSEN].value(settings)
    if chosen != AS_WRITTEN:
        return chosen
    return settings.get(WRITTEN) or phone or settings.get(PHONE)


async def speak_with(talk: Conversation, update: Update) -> None:
    """Speak the language of who an update is from, which they change by writing another."""
    user = update.effective_user
    speak(user.language_code if user else None)
    if user is None or is_overheard(update) or (facts := await told_by(talk, user.id)) is None:
        return
    if (turn := pending_turn()) is not None:
        turn.course.facts = facts
    known = settings_of(facts)
    phone = spoken()
    new = {} if phone == known.get(PHONE, ENGLISH) else {PHONE: phone}
    if (written := written_in(update)) not in (None, language_of_person(known, phone)):
        new[WRITTEN] = str(written)
    is_chosen = SETTINGS[CHOSEN].value(known) != AS_WRITTEN
    speak(language_of_person(known | new, phone), is_chosen=is_chosen)
    await _keep(talk, user.id, known, new)


async def spoken_by(talk: Conversation, user_id: int) -> str | None:
    """The language that somebody is spoken to in who does not write now; None: not known."""
    return language_of_person(await chosen_by(talk, user_id))


async def chosen_by(talk: Conversation, user_id: int) -> dict[str, str]:
    """What a person chose; nothing if the database does not say."""
    return settings_of(await told_by(talk, user_id) or ())


async def told_by(talk: Conversation, user_id: int) -> Sequence[Fact] | None:
    """What a person told; None if the database does not say."""
    read = partial(retry_briefly, partial(talk.repositories.memory.facts, user_id))
    return await or_else(read, None, "What a person chose could not be read")


async def _keep(
    talk: Conversation, user_id: int, known: Mapping[str, str], new: Mapping[str, str]
) -> None:
    fresh = {name: value for name, value in new.items() if known.get(name) != value}
    old = {name: known[name] for name in fresh if name in known}
    if fresh:
        kept = {name: "" if value == ANY else value for name, value in fresh.items()}
        change = Change(user_id=user_id, learned=facts_of(kept), unlearned=facts_of(old))
        await talk.save([change])


@dataclass(frozen=True, slots=True)
class SettingsCommands:
    """Shows what a person can choose, asks a new one for the first of it, keeps what they chose."""

    talk: Conversation

    @property
    def hidden(self) -> frozenset[str]:
        """What has no effect here."""
        return frozenset() if self.talk.resources.speaker else frozenset({ALOUD})

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers, before handlers that take any button."""
        return [
            CommandHandler("settings", self.settings, filters=TYPED),
            CommandHandler("language", self.language, filters=TYPED),
            CallbackQueryHandler(self.pressed, pattern=f"^{KIND}"),
            CallbackQueryHandler(self.tapped, pattern=f"^{TAPS}"),
        ]

    async def settings(self, update: Update, context: Context) -> None:
        """/settings: what can be chosen, and what is; between the two of us."""
        if not is_private(update):
            await self.talk.say(update, say("only_in_private"))
            return
        _, user_id = people_of(update)
        rows = menu(user_id, await chosen_by(self.talk, user_id), self.hidden)
        await self.talk.say(update, say("settings"), rows)

    async def language(self, update: Update, context: Context) -> None:
        """/language: the languages to choose from; with one of them, that is spoken."""
        message, (_, user_id) = update.effective_message, people_of(update)
        named = language_named(behind_command((message and message.text) or ""))
        if named is not None:
            await self._choose(user_id, CHOSEN, named)
            await self.talk.say(update, told(CHOSEN, named))
            return
        chosen = await chosen_by(self.talk, user_id)
        rows = choices(SETTINGS[CHOSEN], user_id, chosen, goes_back=is_private(update))
        await self.talk.say(update, say("setting_language_ask"), rows)

    async def pressed(self, update: Update, context: Context) -> None:
        """A button of these: the choices of a setting, one of them, or back to all."""
        query = press_of(update)
        owner, name, value = (*(query.data or "").split(":")[1:], "", "", "")[:3]
        setting, user_id = SETTINGS.get(name), query.from_user.id
        if owner != str(user_id):
            await acknowledge(query, say("not_your_settings"))
            return
        chosen = await chosen_by(self.talk, user_id)
        if setting is None or value not in setting.values():
            await acknowledge(query)
            ask = say(f"setting_{name}_ask") if setting else say("settings")
            rows = choices(setting, user_id, chosen) if setting else None
        else:
            await self._choose(user_id, name, value)
            await acknowledge(query, told(name, value))
            chosen, rows = chosen | {name: value}, None
            ask = say("settings") if is_private(update) else told(name, value)
        if rows is None:
            rows = menu(user_id, chosen, self.hidden) if is_private(update) else ()
        await _show(query, ask, rows)

    async def _choose(self, user_id: int, name: str, value: str) -> None:
        known = await chosen_by(self.talk, user_id)
        await _keep(self.talk, user_id, known, {name: value})
        if name == CHOSEN:
            speak(language_of_person({**known, name: value}, spoken()))

    async def tapped(self, update: Update, context: Context) -> None:
        """An answer of a new person: kept, and the next question put in its place."""
        query = press_of(update)
        _, asked, answer = [*(query.data or "").split(":"), "", ""][:3]
        learned, gone = self._told(asked, answer)
        if learned:
            await self.talk.change(update, learned=learned, unlearned=gone)
        await acknowledge(query)
        following = following_question(asked, answer)
        if isinstance(query.message, Message):
            await show_rows(query.message, following)
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


def is_overheard(update: Update) -> bool:
    """Whether an update is a message that is said to others."""
    message = update.message or update.edited_message
    if message is None or (message.text or "").startswith("/"):
        return False
    return not is_addressed(message, message.get_bot())


def written_in(update: Update) -> str | None:
    """The language that somebody writes in themselves; None if that is not clear."""
    message = update.message or update.edited_message
    if message is None or not is_own(message):
        return None
    return spoken_in(behind_command((message.text or message.caption or "")[:READ]))


def language_named(words: str) -> str | None:
    """The language that is meant by its code or its own name; None if none is."""
    named = {fold(name): code for code, name in in_every_language("language_name").items()}
    asked = fold(words.strip())
    return asked if asked in (AS_WRITTEN, *languages()) else named.get(asked)


def menu(user_id: int, chosen: Mapping[str, str], hidden: Collection[str] = ()) -> Rows:
    """Every setting that is not `hidden` with what holds of it, one a row."""
    return tuple(
        (
            Button(
                f"{say(f'setting_{name}')}: {each.label(each.value(chosen))}", _data(user_id, name)
            ),
        )
        for name, each in SETTINGS.items()
        if name not in hidden
    )


def choices(
    setting: Setting, user_id: int, chosen: Mapping[str, str], *, goes_back: bool = True
) -> Rows:
    """What can be chosen of a setting, two a row, and the way back."""
    holds = setting.value(chosen)
    buttons = [
        Button(
            f"{setting.label(each)} ✓" if each == holds else setting.label(each),
            _data(user_id, setting.name, each),
        )
        for each in setting.values()
    ]
    back = ((Button(say("back_button"), _data(user_id)),),) if goes_back else ()
    return in_rows(buttons, 2) + back


def told(name: str, value: str) -> str:
    """What is said to a choice, in the language that holds now."""
    if name == CHOSEN:
        return say("language_follows" if value == AS_WRITTEN else "language_chosen")
    return say("setting_kept")


def _data(user_id: int, *parts: str) -> str:
    return KIND + ":".join((str(user_id), *parts))


async def _show(query: CallbackQuery, title: str, rows: Rows) -> None:
    """Let a message be this one; that it is already, or is gone, is no matter."""
    if not isinstance(query.message, Message):
        return
    try:
        await query.message.edit_text(
            to_telegram_html(title), ParseMode.HTML, reply_markup=keyboard(rows)
        )
    except TelegramError as error:
        log.debug("The settings could not be shown: %s", error)


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
    language = Button(f"🌐 {say('language_name')}", _data(user_id, CHOSEN))
    older = Button(say("start_older", age=age), f"{TAPS}age:yes")
    younger = Button(say("start_younger", age=age), f"{TAPS}age:no")
    return ((language,), (older, younger))


def following_question(asked: str, answer: str) -> Rows:
    """The question after this one; none after the last, or for who is too young."""
    if answer == "no":
        return ()
    names = list(TASTES)
    following = names[0] if asked == "age" else "".join(names[names.index(asked) + 1 :][:1])
    if not following:
        return ()
    labels = [
        Button(say(f"start_{each}_button"), f"{TAPS}{following}:{each}")
        for each in TASTES[following]
    ]
    skip = Button(say("start_skip_button"), f"{TAPS}{following}:skip")
    return (*in_rows(labels, 2), (skip,))
