"""/settings: the choices of a user, and the language they are spoken to in.

A choice is stored with the user, and holds in every chat.
"""

from collections.abc import Mapping
from typing import Final

from telegram import Update

from agent.i18n import (
    ENGLISH,
    current_language,
    languages,
    set_language,
    translate,
    translate_into,
)
from agent.language import language_of
from agent.turn import Change, Fact, settings_of
from bot.outgoing import Button, ButtonRows, in_rows
from bot.question import current_turn
from bot.telegram.buttons import acknowledge, parts_of, show_rows
from bot.telegram.conversation import AnyHandler, Conversation, on_command, on_press
from bot.telegram.messages import behind_command, chat_and_user_ids, is_addressed, is_own, press_of

PREFIX: Final = "s:"
"""The beginning of the data of these buttons, `s:SETTING:VALUE`; they have a lane of their own,
see `lane_of`. They are shown in private chats only."""
MAX_READ_CHARS: Final = 1_000
"""Characters of a message in which its language is looked for."""

AS_WRITTEN: Final = "auto"
ALOUD, OFF, ON = "aloud", "off", "on"
"""Whether answers to voice messages are read aloud; offered only where a model can."""
CHOSEN, WRITTEN = "language", "written"
"""The language that a user chose, and the last one they wrote, or else have their Telegram in."""
TRACES: Final = "traces"
"""Whether traces hold the user's words; see `hides_words`."""


def language_of_person(settings: Mapping[str, str]) -> str | None:
    """Return the language in which to speak to a user; None if it is unknown."""
    chosen = settings.get(CHOSEN, AS_WRITTEN)
    return chosen if chosen != AS_WRITTEN else settings.get(WRITTEN)


async def speak_with(conversation: Conversation, update: Update) -> None:
    """Speak the language of the user of an update; it follows the language they write in."""
    user = update.effective_user
    set_language(user.language_code if user else None)
    if user is None or is_overheard(update):
        return
    facts = await conversation.repositories.memory.facts(user.id)
    if (turn := current_turn()) is not None:
        turn.facts = facts
    known = settings_of(facts)
    written = language_written(update) or known.get(WRITTEN) or current_language()
    is_chosen = known.get(CHOSEN, AS_WRITTEN) != AS_WRITTEN
    set_language(language_of_person({**known, WRITTEN: written}), is_chosen=is_chosen)
    if written != known.get(WRITTEN, ENGLISH):
        await _store(conversation, user.id, known, WRITTEN, written)


async def spoken_by(conversation: Conversation, user_id: int) -> str | None:
    """Return the language of a user who does not write now; None if it is unknown."""
    return language_of_person(settings_of(await conversation.repositories.memory.facts(user_id)))


async def _store(
    conversation: Conversation, user_id: int, known: Mapping[str, str], name: str, value: str
) -> None:
    """Store a setting in place of the known one."""
    if value != known.get(name):
        old = (Fact("setting", f"{name}={known[name]}"),) if name in known else ()
        new = (Fact("setting", f"{name}={value}"),)
        await conversation.store_change(Change(user_id=user_id, added_facts=new, removed_facts=old))


def settings_handlers(conversation: Conversation) -> list[AnyHandler]:
    """Return the handlers of /settings and its buttons."""
    return [on_command(conversation, "settings", _answer), on_press(conversation, PREFIX, _choose)]


async def _answer(conversation: Conversation, update: Update) -> None:
    """Answer /settings with a button for every choice."""
    rows = _buttons(conversation, settings_of(await conversation.facts(update)))
    await conversation.reply(
        update, f"{translate('settings')}\n\n{translate('setting_traces_ask')}", rows
    )


async def _choose(conversation: Conversation, update: Update) -> None:
    """Store a choice, confirm it and show it on the buttons."""
    query, (_, user_id) = press_of(update), chat_and_user_ids(update)
    name, value = parts_of(query, 2)
    if value not in _values().get(name, ()):
        await acknowledge(query, translate("button_too_old"))
        return
    chosen = settings_of(await conversation.facts(update))
    await _store(conversation, user_id, chosen, name, value)
    chosen[name] = value
    if name == CHOSEN:
        set_language(language_of_person(chosen) or current_language())
    await acknowledge(query, _confirmation(name, value))
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


def _confirmation(name: str, value: str) -> str:
    """Return the text that confirms a choice."""
    if name == CHOSEN:
        return translate("language_follows" if value == AS_WRITTEN else "language_chosen")
    return translate("setting_kept")


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
