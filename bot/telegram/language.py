"""Find the language of a user, and store the one in which they write."""

from collections.abc import Mapping
from typing import Final

from telegram import Update

from agent.i18n import current_language, set_app_language, set_language
from agent.languages import ENGLISH
from agent.turn import Fact, get_chosen_settings
from bot.telegram.chat import ChatTurn
from bot.telegram.messages import is_overheard, language_written
from db.repositories.people import MemoryRepository

CHOSEN_LANGUAGE_KEY: Final = "language"
"""The setting with the language that a user chose, or `AS_WRITTEN`."""
WRITTEN_LANGUAGE_KEY: Final = "written"
"""The setting with the language a user wrote last; at first, the language of their Telegram app."""
AS_WRITTEN: Final = "auto"
"""The choice to be answered in the language of the last message."""


async def set_language_of_turn(update: Update, turn: ChatTurn) -> None:
    """Set the language of the replies, and collect the written language if it has changed."""
    user = update.effective_user
    set_language(user.language_code if user else None)
    set_app_language(user.language_code if user else None)
    if user is None or is_overheard(update):
        return
    settings = get_chosen_settings(await turn.load_facts())
    stored = settings.get(WRITTEN_LANGUAGE_KEY)
    known = language_written(update) or stored
    written = known or current_language()
    if settings.get(CHOSEN_LANGUAGE_KEY, AS_WRITTEN) != AS_WRITTEN:
        set_language(settings[CHOSEN_LANGUAGE_KEY], is_chosen=True)
    elif known:  # otherwise that of the app stays, which may have no catalogue
        set_language(known)
    if written != (stored or ENGLISH):  # without a setting, the default is English anyway
        store_setting(turn, settings, WRITTEN_LANGUAGE_KEY, written)


def store_setting(turn: ChatTurn, settings: Mapping[str, str], name: str, value: str) -> None:
    """Collect a setting of the user; `settings` are the current values."""
    if not turn.has_memory or value == settings.get(name):
        return
    old = (Fact("setting", f"{name}={settings[name]}"),) if name in settings else ()
    new = (Fact("setting", f"{name}={value}"),)
    turn.change_memory(added_facts=new, removed_facts=old)


async def load_language(memory: MemoryRepository, user_id: int) -> str | None:
    """Return the stored language of a user; None if it is unknown."""
    return language_from_settings(get_chosen_settings(await memory.list_facts(user_id)))


def language_from_settings(settings: Mapping[str, str]) -> str | None:
    """Return the language for a user with these settings; None if it is unknown."""
    chosen = settings.get(CHOSEN_LANGUAGE_KEY, AS_WRITTEN)
    return chosen if chosen != AS_WRITTEN else settings.get(WRITTEN_LANGUAGE_KEY)
