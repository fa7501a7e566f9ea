"""Handle a user's settings and data: /settings, /privacy, /export and /forget.

Users call these commands in private chats. Their settings apply in all chats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pydantic_core import to_json
from telegram import Update

from agent.i18n import (
    current_language,
    languages,
    set_language,
    translate,
    translate_into,
)
from agent.markdown import escape
from agent.turn import get_chosen_settings
from bot.telegram.buttons import acknowledge, split_data
from bot.telegram.chat import (
    AS_WRITTEN,
    CHOSEN_LANGUAGE_KEY,
    AnyHandler,
    ChatTurn,
    language_from_settings,
    on_command,
    on_press,
    store_setting,
)
from bot.telegram.messages import press_of
from bot.telegram.sender import Button, ButtonRows, in_rows
from bot.telegram.shop_replies import end_before_forgetting
from bot.turn import TurnFilter
from db.repositories.people import NEWS

PREFIX: Final = "s:"
"""The prefix of the callback data of the buttons of /settings, `s:SETTING:VALUE`.

Their presses have a queue of their own, so that they are handled while a model still answers.
"""
ALOUD: Final = "aloud"
"""The setting that has answers to voice messages read aloud."""
ON: Final = "on"
OFF: Final = "off"
TRACES: Final = "traces"
"""The setting of what traces hold: the "words" that a user writes, or only "numbers"."""

STOP_NEWS: Final = "nw:off"
"""The callback data of the button below a broadcast."""
FORGET: Final = ":forget"
"""The callback data of the button of /forget that deletes all that is stored of the user."""
KEEP: Final = ":keep"
"""The callback data of the button of /forget that deletes nothing."""
OWN_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of the machine that runs the bot."""
EXPORT_FILE_NAME: Final = "sommelier.json"


@dataclass(frozen=True, slots=True)
class Privacy:
    """The facts about stored data that /privacy and /forget show."""

    days: Mapping[str, float]
    """The retention times, by their placeholders in the text `privacy`."""
    model_hosts: Sequence[str] = ()
    """The hosts of the models that read what users send, if there are any."""
    trace_server: str = ""
    """The name of the server that traces are sent to, if there is one."""
    is_deleted_there: bool = False
    """True if /forget also deletes the traces on that server."""
    has_staff: bool = False
    """True if users can ask the staff of the shop."""


def settings_handlers(privacy: Privacy) -> list[AnyHandler]:
    """Return the handlers of the commands and their buttons."""
    return [
        on_command("settings", _show_settings),
        on_press(PREFIX, _store_setting),
        on_press(STOP_NEWS, _stop_news),
        on_command("privacy", partial(_show_privacy, privacy)),
        on_command("export", _export),
        on_command("forget", _ask_to_forget),
        on_press(f"(?:{FORGET}|{KEEP})$", partial(_forget_or_keep, privacy)),
    ]


async def _show_settings(update: Update, turn: ChatTurn) -> None:
    """Answer /settings with a button for each value of each setting."""
    parts = (
        translate("settings"),
        translate("setting_language_ask"),
        translate("setting_traces_ask"),
        translate("setting_news_ask"),
    )
    chosen = get_chosen_settings(await turn.load_facts())
    turn.reply("\n\n".join(parts), _buttons(turn, chosen))


async def _store_setting(update: Update, turn: ChatTurn) -> None:
    """Store a setting, confirm it and show it on the buttons."""
    query = press_of(update)
    name, value = split_data(query, 2)
    if value not in _values().get(name, ()):
        await acknowledge(query, translate("button_too_old"))
        return
    chosen = get_chosen_settings(await turn.load_facts())
    store_setting(turn, chosen, name, value)
    chosen[name] = value
    confirmation = "setting_kept"
    if name == CHOSEN_LANGUAGE_KEY:
        set_language(language_from_settings(chosen) or current_language())
        confirmation = "language_chosen"
        if value == AS_WRITTEN:
            confirmation = "language_follows"
    await acknowledge(query, translate(confirmation))
    turn.replace_buttons(query.message, _buttons(turn, chosen))


async def _stop_news(update: Update, turn: ChatTurn) -> None:
    """Send the user no more broadcasts."""
    await acknowledge(press_of(update))
    turn.reply(translate("news_stopped"))
    chosen = get_chosen_settings(await turn.load_facts())
    store_setting(turn, chosen, NEWS, OFF)


def _values() -> Mapping[str, tuple[str, ...]]:
    """Return the possible values of each setting, the default first."""
    return {
        CHOSEN_LANGUAGE_KEY: (AS_WRITTEN, *languages()),
        TRACES: ("words", "numbers"),
        ALOUD: (OFF, ON),
        NEWS: (ON, OFF),
    }


def _buttons(turn: ChatTurn, chosen: Mapping[str, str]) -> ButtonRows:
    """Return a button for each value of each setting.

    The buttons for reading aloud are left out if there is no model that speaks.
    """
    rows: ButtonRows = ()
    for name, values in _values().items():
        if name == ALOUD and turn.services.resources.speaker is None:
            continue
        current = chosen.get(name, values[0])
        buttons = []
        for value in values:
            label = _label(name, value)
            if value == current:
                label += " ✓"
            buttons.append(Button(label, f"{PREFIX}{name}:{value}"))
        rows += in_rows(buttons, 2)
    return rows


def _label(name: str, value: str) -> str:
    """Return the label of the button that sets a setting to a value."""
    if name == CHOSEN_LANGUAGE_KEY and value == AS_WRITTEN:
        return translate("language_auto")
    if name == CHOSEN_LANGUAGE_KEY:
        return translate_into(value, "language_name")
    shown_name = translate(f"setting_{name}")
    shown_value = translate(f"{name}_{value}")
    return translate("setting_value", name=shown_name, value=shown_value)


async def _show_privacy(privacy: Privacy, update: Update, turn: ChatTurn) -> None:
    """Answer /privacy: say what is stored, for how long, and how to delete it."""
    elsewhere = ""
    if privacy.trace_server:
        elsewhere = translate("privacy_elsewhere", where=privacy.trace_server)
    parts = [
        translate("privacy", **privacy.days, elsewhere=elsewhere),
        _describe_models(privacy),
    ]
    if privacy.has_staff:
        parts.append(translate("privacy_shop", **privacy.days))
    parts.append(translate("privacy_commands"))
    turn.reply("\n\n".join(parts))


def _describe_models(privacy: Privacy) -> str:
    """Return whether a model reads what users send, where it runs, and what is kept of it."""
    if not privacy.model_hosts:
        return translate("privacy_no_model")
    places = []
    for host in privacy.model_hosts:
        place = escape(host)
        if host in OWN_HOSTS:
            place = translate("privacy_own_machine")
        places.append(place)
    distinct_places = dict.fromkeys(places)
    where = ", ".join(distinct_places)
    return translate("privacy_model", **privacy.days, where=where)


async def _export(update: Update, turn: ChatTurn) -> None:
    """Answer /export with a JSON file of all data stored about the user."""
    tables = await turn.repositories.memory.export(turn.user_id, turn.trace_user)
    turn.reply(translate("export_ready"))
    turn.send_file(EXPORT_FILE_NAME, to_json(tables, indent=2))


async def _ask_to_forget(update: Update, turn: ChatTurn) -> None:
    """Answer /forget: ask the user to confirm that all their data be deleted."""
    buttons = (
        Button(translate("forget_yes_button"), FORGET),
        Button(translate("forget_no_button"), KEEP),
    )
    turn.reply(translate("forget_sure"), (buttons,))


async def _forget_or_keep(privacy: Privacy, update: Update, turn: ChatTurn) -> None:
    """Delete all data of the user when this turn is committed, or do nothing."""
    query = press_of(update)
    await acknowledge(query)
    turn.replace_buttons(query.message, ())
    if query.data != FORGET:
        turn.reply(translate("forget_kept"))
        return
    # The other turns of the user would store nothing any more, and only cost money.
    own_turns = TurnFilter(user_id=turn.user_id)
    await turn.services.runner.running.stop_everywhere(own_turns)
    await end_before_forgetting(turn)
    turn.forget_user()
    turn.reply(_confirm_deletion(privacy))


def _confirm_deletion(privacy: Privacy) -> str:
    """Return the text that confirms the deletion of all data.

    If traces are sent to another server, it says whether they are deleted there, too.
    """
    server = privacy.trace_server
    if not server:
        elsewhere = ""
    elif privacy.is_deleted_there:
        elsewhere = translate("forget_elsewhere", where=server)
    else:
        elsewhere = translate("forget_not_elsewhere", where=server)
    return translate("forget_done", elsewhere=elsewhere)
