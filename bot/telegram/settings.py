"""Handle a user's settings and data: /settings, /privacy, /export and /forget.

Users call these commands in private chats; their settings apply in all chats.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from pydantic_core import to_json
from telegram import Update

from agent.i18n import current_language, languages, set_language, translate, translate_into
from agent.turn import get_chosen_settings
from bot.telegram.buttons import acknowledge, replace_buttons, split_data
from bot.telegram.conversation import (
    AS_WRITTEN,
    CHOSEN_LANGUAGE_KEY,
    AnyHandler,
    Conversation,
    language_from_settings,
    on_command,
    on_press,
)
from bot.telegram.messages import chat_and_user_ids, destination, press_of
from bot.telegram.sender import Button, ButtonRows, in_rows

PREFIX: Final = "s:"
"""The prefix of the data of the buttons of /settings, `s:SETTING:VALUE`. `lane_of` gives their
presses a queue of their own."""
ALOUD, OFF, ON = "aloud", "off", "on"
"""A setting and its values: whether answers to voice messages are read aloud."""
TRACES: Final = "traces"
"""The setting for the content of traces: "words" of the user, or "numbers" only."""

DELETE_DATA, KEEP_DATA = ":forget", ":keep"
"""The data of the buttons of /forget. Without a prefix, a press waits in the queue of its chat."""
EXPORT_FILE_NAME: Final = "sommelier.json"


@dataclass(frozen=True, slots=True)
class Privacy:
    """The facts about stored data that /privacy and /forget show."""

    days: Mapping[str, float]
    """The retention times, by their placeholders in the text `privacy`."""
    trace_server: str = ""
    """The name of the server that traces are sent to, if there is one."""
    is_deleted_there: bool = False
    """Whether /forget also deletes the traces on that server."""


def settings_handlers(privacy: Privacy) -> list[AnyHandler]:
    """Return the handlers of the commands and their buttons."""
    return [
        on_command("settings", _show_settings),
        on_press(PREFIX, _store_setting),
        on_command("privacy", partial(_show_privacy, privacy)),
        on_command("export", _export),
        on_command("forget", _ask_to_forget),
        on_press(f"(?:{DELETE_DATA}|{KEEP_DATA})$", partial(_forget_or_keep, privacy)),
    ]


async def _show_settings(update: Update, conversation: Conversation) -> None:
    """Answer /settings with a button for each value of each setting."""
    rows = _buttons(conversation, get_chosen_settings(await conversation.load_facts(update)))
    text = f"{translate('settings')}\n\n{translate('setting_traces_ask')}"
    await conversation.reply(update, text, rows)


async def _store_setting(update: Update, conversation: Conversation) -> None:
    """Store a setting, confirm it and show it on the buttons."""
    query = press_of(update)
    name, value = split_data(query, 2)
    if value not in _values().get(name, ()):
        await acknowledge(query, translate("button_too_old"))
        return
    chosen = get_chosen_settings(await conversation.load_facts(update))
    await conversation.store_setting(update, chosen, name, value)
    chosen[name] = value
    confirmation = "setting_kept"
    if name == CHOSEN_LANGUAGE_KEY:
        set_language(language_from_settings(chosen) or current_language())
        confirmation = "language_follows" if value == AS_WRITTEN else "language_chosen"
    await acknowledge(query, translate(confirmation))
    await replace_buttons(query.message, _buttons(conversation, chosen))


def _values() -> Mapping[str, tuple[str, ...]]:
    """Return the values of each setting, the default first."""
    return {
        CHOSEN_LANGUAGE_KEY: (AS_WRITTEN, *languages()),
        TRACES: ("words", "numbers"),
        ALOUD: (OFF, ON),
    }


def _buttons(conversation: Conversation, chosen: Mapping[str, str]) -> ButtonRows:
    """Return a button for each value of each setting; read aloud only if there is a speaker."""
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
    if name == CHOSEN_LANGUAGE_KEY and value == AS_WRITTEN:
        return translate("language_auto")
    if name == CHOSEN_LANGUAGE_KEY:
        return translate_into(value, "language_name")
    return f"{translate(f'setting_{name}')}: {translate(f'{name}_{value}')}"


async def _show_privacy(privacy: Privacy, update: Update, conversation: Conversation) -> None:
    """Answer /privacy: say what is stored, for how long, and how to delete it."""
    server = privacy.trace_server
    elsewhere = translate("privacy_elsewhere", where=server) if server else ""
    days = {name: f"{count:g}" for name, count in privacy.days.items()}
    await conversation.reply(update, translate("privacy", **days, elsewhere=elsewhere))


async def _export(update: Update, conversation: Conversation) -> None:
    """Answer /export with a JSON file of all data stored about the user."""
    _, user_id = chat_and_user_ids(update)
    user_hash = conversation.trace_hash("user", user_id)
    tables = await conversation.repositories.memory.export(user_id, user_hash)
    content = to_json(tables, indent=2)
    await conversation.reply(update, translate("export_ready"))
    await conversation.sender.send_file(destination(update), EXPORT_FILE_NAME, content)


async def _ask_to_forget(update: Update, conversation: Conversation) -> None:
    """Answer /forget: ask the user to confirm that all their data be deleted."""
    buttons = (
        Button(translate("forget_yes_button"), DELETE_DATA),
        Button(translate("forget_no_button"), KEEP_DATA),
    )
    await conversation.reply(update, translate("forget_sure"), (buttons,))


async def _forget_or_keep(privacy: Privacy, update: Update, conversation: Conversation) -> None:
    """Delete all data of the user when this turn is committed, or do nothing."""
    query, (_, user_id) = press_of(update), chat_and_user_ids(update)
    await acknowledge(query)
    await replace_buttons(query.message, ())
    if query.data != DELETE_DATA:
        await conversation.reply(update, translate("forget_kept"))
        return
    # A turn that is running would store data after the deletion.
    await conversation.turns.running.stop_everywhere(user_id=user_id, is_forgotten=True)
    server = privacy.trace_server
    text_id = "forget_elsewhere" if privacy.is_deleted_there else "forget_not_elsewhere"
    elsewhere = translate(text_id, where=server) if server else ""
    await conversation.reply(update, translate("forget_done", elsewhere=elsewhere))
    user_hash = conversation.trace_hash("user", user_id)
    await conversation.change_memory(update, forget_user_hash=user_hash)
