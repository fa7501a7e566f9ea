"""/language and /settings: the choices of a user, and the language they are spoken to in.

A setting is a row of `SETTINGS` and a handful of texts. It is stored with the user, whatever chat
it was chosen in.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from telegram import CallbackQuery, Message, Update
from telegram.constants import ParseMode
from telegram.error import TelegramError
from telegram.ext import CallbackQueryHandler, CommandHandler

from agent.i18n import (
    ENGLISH,
    FAHRENHEIT,
    current_language,
    languages,
    set_language,
    translate,
    translate_into,
)
from agent.memory.wording import price_range
from agent.text import language_of
from agent.turn import PRICES, Change, facts_of, settings_of
from bot.outgoing import Button, ButtonRows, in_rows
from bot.pending import pending_turn
from bot.telegram.buttons import acknowledge, parts_of
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import (
    TYPED,
    behind_command,
    is_addressed,
    is_own,
    is_private,
    people_of,
    press_of,
)
from bot.telegram.render import to_telegram_html
from bot.telegram.sender import keyboard

log = logging.getLogger(__name__)

PREFIX: Final = "s:"
"""The beginning of the data of these buttons, `s:USER:SETTING:VALUE`; they have a lane of their
own, see `lane_of`."""
MAX_READ_CHARS: Final = 1_000
"""Characters of a message in which its language is looked for."""

AS_WRITTEN: Final = "auto"
ALOUD, OFF, ON = "aloud", "off", "on"
"""Whether answers to voice messages are read aloud; offered only where a model can."""
CHOSEN, WRITTEN = "language", "written"
"""The language that a user chose, and the last one they wrote, or else have their Telegram in."""
ANY: Final = "any"
RANGES: Final = ("15 EUR", "15-30 EUR", "30-60 EUR", "60- EUR")
DEGREES: Final = {"celsius": "°C", FAHRENHEIT: "°F"}


@dataclass(frozen=True, slots=True)
class Setting:
    """A choice: its values, of which the first is the default, and their labels."""

    name: str
    values: Callable[[], Collection[str]]
    label: Callable[[str], str]

    def value(self, chosen: Mapping[str, str]) -> str:
        """Return the current value."""
        return chosen.get(self.name) or next(iter(self.values()))


def language_label(value: str) -> str:
    """Return a language's own name."""
    return (
        translate("language_auto")
        if value == AS_WRITTEN
        else translate_into(value, "language_name")
    )


def price_label(value: str) -> str:
    """Return a range of prices in words."""
    return price_range(value) if value != ANY else translate("prices_any")


SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(CHOSEN, lambda: (AS_WRITTEN, *languages()), language_label),
        Setting(PRICES, lambda: (ANY, *RANGES), price_label),
        Setting("temperature", lambda: DEGREES, DEGREES.__getitem__),
        Setting("traces", lambda: ("words", "numbers"), lambda value: translate(f"traces_{value}")),
        Setting(ALOUD, lambda: (OFF, ON), lambda value: translate("on" if value == ON else "off")),
    )
}


def language_of_person(settings: Mapping[str, str]) -> str | None:
    """Return the language in which to speak to a user; None if it is unknown."""
    chosen = SETTINGS[CHOSEN].value(settings)
    return chosen if chosen != AS_WRITTEN else settings.get(WRITTEN)


async def speak_with(talk: Conversation, update: Update) -> None:
    """Speak the language of the user of an update; it follows the language they write in."""
    user = update.effective_user
    set_language(user.language_code if user else None)
    if user is None or is_overheard(update):
        return
    facts = await talk.repositories.memory.facts(user.id)
    if (turn := pending_turn()) is not None:
        turn.state.facts = facts
    known = settings_of(facts)
    written = language_written(update) or known.get(WRITTEN) or current_language()
    is_chosen = SETTINGS[CHOSEN].value(known) != AS_WRITTEN
    set_language(language_of_person({**known, WRITTEN: written}), is_chosen=is_chosen)
    if written != known.get(WRITTEN, ENGLISH):
        await _store(talk, user.id, known, WRITTEN, written)


async def spoken_by(talk: Conversation, user_id: int) -> str | None:
    """Return the language of a user who does not write now; None if it is unknown."""
    return language_of_person(settings_of(await talk.repositories.memory.facts(user_id)))


async def _store(
    talk: Conversation, user_id: int, known: Mapping[str, str], name: str, value: str
) -> None:
    """Store a setting in place of the known one; `ANY` is stored by having none."""
    old = {name: known[name]} if name in known else {}
    new = {name: value} if value != ANY else {}
    if old != new:
        change = Change(user_id=user_id, learned=facts_of(new), unlearned=facts_of(old))
        await talk.store_change(change)


@dataclass(frozen=True, slots=True)
class SettingsCommands:
    """Shows and stores the settings of users."""

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers."""
        return [
            CommandHandler("settings", self.settings, filters=TYPED),
            CommandHandler("language", self.language, filters=TYPED),
            CallbackQueryHandler(self.press, pattern=f"^{PREFIX}"),
        ]

    async def settings(self, update: Update, context: Context) -> None:
        """Answer /settings with every setting and its value."""
        _, user_id = people_of(update)
        rows = self._menu(user_id, settings_of(await self.talk.facts(update)))
        await self.talk.say(update, translate("settings"), rows)

    async def language(self, update: Update, context: Context) -> None:
        """Answer /language with a button for every language."""
        _, user_id = people_of(update)
        chosen = settings_of(await self.talk.facts(update))
        rows = choices(SETTINGS[CHOSEN], user_id, chosen, goes_back=is_private(update))
        await self.talk.say(update, translate("setting_language_ask"), rows)

    async def press(self, update: Update, context: Context) -> None:
        """Show the choices of a setting, store one, or go back to all settings."""
        query = press_of(update)
        owner, name, value = parts_of(query, 3)
        setting, user_id = SETTINGS.get(name), query.from_user.id
        if owner != str(user_id):
            await acknowledge(query, translate("not_your_settings"))
            return
        chosen, confirmed = settings_of(await self.talk.facts(update)), ""
        if setting is not None and value not in setting.values():
            await acknowledge(query)
            await _show(query, translate(f"setting_{name}_ask"), choices(setting, user_id, chosen))
            return
        if setting is not None:
            await self._choose(user_id, chosen, name, value)
            chosen[name], confirmed = value, confirmation(name, value)
        await acknowledge(query, confirmed)
        if is_private(update):
            await _show(query, translate("settings"), self._menu(user_id, chosen))
        else:
            await _show(query, confirmed, ())

    async def _choose(self, user_id: int, known: Mapping[str, str], name: str, value: str) -> None:
        """Store a choice; a language is spoken from now on."""
        await _store(self.talk, user_id, known, name, value)
        if name == CHOSEN:
            set_language(language_of_person({**known, name: value}) or current_language())

    def _menu(self, user_id: int, chosen: Mapping[str, str]) -> ButtonRows:
        """Return a button for every setting that has an effect here, with its value."""
        can_speak = self.talk.resources.speaker is not None
        return tuple(
            (
                Button(
                    f"{translate(f'setting_{name}')}: {setting.label(setting.value(chosen))}",
                    button_data(user_id, name),
                ),
            )
            for name, setting in SETTINGS.items()
            if can_speak or name != ALOUD
        )


def is_overheard(update: Update) -> bool:
    """Return whether an update is a message to others."""
    message = update.message or update.edited_message
    if message is None or (message.text or "").startswith("/"):
        return False
    return not is_addressed(message)


def language_written(update: Update) -> str | None:
    """Return the language of a user's own message; None if that is not clear."""
    message = update.message or update.edited_message
    if message is None or not is_own(message):
        return None
    return language_of(behind_command((message.text or message.caption or "")[:MAX_READ_CHARS]))


def choices(
    setting: Setting, user_id: int, chosen: Mapping[str, str], *, goes_back: bool = True
) -> ButtonRows:
    """Return the values of a setting as buttons, two in a row, and the way back."""
    current = setting.value(chosen)
    buttons = [
        Button(
            f"{setting.label(value)} ✓" if value == current else setting.label(value),
            button_data(user_id, setting.name, value),
        )
        for value in setting.values()
    ]
    back = ((Button(translate("back_button"), button_data(user_id)),),) if goes_back else ()
    return in_rows(buttons, 2) + back


def confirmation(name: str, value: str) -> str:
    """Return the text that confirms a choice."""
    if name == CHOSEN:
        return translate("language_follows" if value == AS_WRITTEN else "language_chosen")
    return translate("setting_kept")


def button_data(user_id: int, *parts: str) -> str:
    """Return the data of a button of these."""
    return PREFIX + ":".join((str(user_id), *parts))


async def _show(query: CallbackQuery, title: str, rows: ButtonRows) -> None:
    """Replace the pressed message; it may show just that already, or be gone."""
    if not isinstance(query.message, Message):
        return
    html, keys = to_telegram_html(title), keyboard(rows)
    try:
        await query.message.edit_text(html, ParseMode.HTML, reply_markup=keys)
    except TelegramError as error:
        log.debug("The settings could not be shown: %s", error)
