"""The choices and the data of a user: /settings, /privacy, /export and /forget.

All of them are for private chats. A choice is stored with the user, and holds in every chat.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from pydantic_core import to_json
from telegram import Update

from agent.i18n import current_language, languages, set_language, translate, translate_into
from agent.turn import get_chosen_settings
from bot.telegram.buttons import acknowledge, parts_of, show_rows
from bot.telegram.conversation import (
    AS_WRITTEN,
    CHOSEN,
    AnyHandler,
    Conversation,
    language_in,
    on_command,
    on_press,
)
from bot.telegram.messages import chat_and_user_ids, destination, press_of
from bot.telegram.sender import Button, ButtonRows, in_rows

PREFIX: Final = "s:"
"""The beginning of the data of the buttons of /settings, `s:SETTING:VALUE`; they have a lane of
their own, see `lane_of`."""
ALOUD, OFF, ON = "aloud", "off", "on"
"""Whether answers to voice messages are read aloud; offered only where a model can."""
TRACES: Final = "traces"
"""Whether traces hold the user's words, or numbers only."""

YES, NO = ":forget", ":keep"
"""The data of the buttons of /forget. Without a prefix before the colon a press waits in the lane
of its chat."""
EXPORT_FILE: Final = "sommelier.json"


@dataclass(frozen=True, slots=True)
class Privacy:
    """What users are told of their data.

    `days` fills the text `privacy`. Traces go `elsewhere`, if to a server; `is_deleted_there` tells
    whether they are deleted there, too.
    """

    days: Mapping[str, float]
    elsewhere: str = ""
    is_deleted_there: bool = False


def settings_handlers(privacy: Privacy) -> list[AnyHandler]:
    """Return the handlers of these commands and their buttons."""
    return [
        on_command("settings", _settings),
        on_press(PREFIX, _choose),
        on_command("privacy", partial(_privacy, privacy)),
        on_command("export", _export),
        on_command("forget", _ask_to_forget),
        on_press(f"(?:{YES}|{NO})$", partial(_forget, privacy)),
    ]


async def _settings(update: Update, conversation: Conversation) -> None:
    """Answer /settings with a button for every choice."""
    rows = _buttons(conversation, get_chosen_settings(await conversation.facts(update)))
    said = f"{translate('settings')}\n\n{translate('setting_traces_ask')}"
    await conversation.reply(update, said, rows)


async def _choose(update: Update, conversation: Conversation) -> None:
    """Store a choice, confirm it and show it on the buttons."""
    query = press_of(update)
    name, value = parts_of(query, 2)
    if value not in _values().get(name, ()):
        await acknowledge(query, translate("button_too_old"))
        return
    chosen = get_chosen_settings(await conversation.facts(update))
    await conversation.store_setting(update, chosen, name, value)
    chosen[name], confirmation = value, "setting_kept"
    if name == CHOSEN:
        set_language(language_in(chosen) or current_language())
        confirmation = "language_follows" if value == AS_WRITTEN else "language_chosen"
    await acknowledge(query, translate(confirmation))
    await show_rows(query.message, _buttons(conversation, chosen))


def _values() -> Mapping[str, tuple[str, ...]]:
    """Return the values of every setting; the first is the default."""
    return {CHOSEN: (AS_WRITTEN, *languages()), TRACES: ("words", "numbers"), ALOUD: (OFF, ON)}


def _buttons(conversation: Conversation, chosen: Mapping[str, str]) -> ButtonRows:
    """Return a button for every value of the settings that have an effect here."""
    rows: ButtonRows = ()
    for name, values in _values().items():
        current = chosen.get(name, values[0])
        labels = {value: _label(name, value) for value in values}
        labels[current] += " ✓"
        buttons = [Button(label, f"{PREFIX}{name}:{value}") for value, label in labels.items()]
        if name != ALOUD or conversation.resources.speaker is not None:
            rows += in_rows(buttons, 2)
    return rows


def _label(name: str, value: str) -> str:
    if name == CHOSEN:
        is_language = value != AS_WRITTEN
        return translate_into(value, "language_name") if is_language else translate("language_auto")
    return f"{translate(f'setting_{name}')}: {translate(f'{name}_{value}')}"


async def _privacy(privacy: Privacy, update: Update, conversation: Conversation) -> None:
    """Answer /privacy: say what is stored, for how long, and how to delete it."""
    where = translate("privacy_elsewhere", where=privacy.elsewhere) if privacy.elsewhere else ""
    days = {name: f"{days:g}" for name, days in privacy.days.items()}
    await conversation.reply(update, translate("privacy", **days, elsewhere=where))


async def _export(update: Update, conversation: Conversation) -> None:
    """Answer /export with all that is stored of a user, as one JSON document."""
    _, user_id = chat_and_user_ids(update)
    user = conversation.trace_name("user", user_id)
    found = to_json(await conversation.repositories.memory.export(user_id, user), indent=2)
    await conversation.reply(update, translate("export_ready"))
    await conversation.sender.send_file(destination(update), EXPORT_FILE, found)


async def _ask_to_forget(update: Update, conversation: Conversation) -> None:
    """Answer /forget: ask whether to delete all that is stored of a user."""
    buttons = (
        Button(translate("forget_yes_button"), YES),
        Button(translate("forget_no_button"), NO),
    )
    await conversation.reply(update, translate("forget_sure"), (buttons,))


async def _forget(privacy: Privacy, update: Update, conversation: Conversation) -> None:
    """Delete everything with the end of this turn, or nothing."""
    query, (_, user_id) = press_of(update), chat_and_user_ids(update)
    await acknowledge(query)
    await show_rows(query.message, ())
    if query.data != YES:
        await conversation.reply(update, translate("forget_kept"))
        return
    await conversation.turns.running.stop_everywhere(user_id=user_id, is_forgotten=True)
    stays = "forget_elsewhere" if privacy.is_deleted_there else "forget_not_elsewhere"
    where = translate(stays, where=privacy.elsewhere) if privacy.elsewhere else ""
    await conversation.reply(update, translate("forget_done", elsewhere=where))
    user_hash = conversation.trace_name("user", user_id)
    await conversation.change_memory(update, forget_user_hash=user_hash)
