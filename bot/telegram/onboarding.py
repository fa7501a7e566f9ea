"""Answer /start: greet a user and ask a new one for their age, or show the wine of a link."""

from typing import Final

from telegram import Update

from agent.engine.run import Run
from agent.i18n import translate
from agent.markdown import escape
from agent.sommelier.cards import wine_text
from agent.sommelier.safety import care_in, get_wines, person_in
from agent.text import pattern
from agent.turn import UNDER_AGE, Fact, Reply, settings_of
from bot.outgoing import Button, ButtonRows
from bot.telegram.buttons import acknowledge, parts_of, show_rows
from bot.telegram.conversation import AnyHandler, Conversation, on_command, on_press
from bot.telegram.messages import behind_command, is_private, message_of, press_of

WINE_ID: Final = pattern(r"[A-Za-z0-9_-]{1,64}")
"""The id of a wine, as far as Telegram lets a link carry it."""
PREFIX: Final = "ob:"
"""The beginning of the data of these buttons: `ob:yes` or `ob:no`, in private chats only."""


def onboarding_handlers(talk: Conversation) -> list[AnyHandler]:
    """Return the handlers of /start and the buttons under its greeting."""
    return [on_command(talk, "start", _start), on_press(talk, PREFIX, _store_age)]


async def _start(talk: Conversation, update: Update) -> None:
    """Answer /start with the wine of a link, or a greeting."""
    catalogue, wine_id = talk.repositories.wines, behind_command(message_of(update).text or "")
    wines = await catalogue.get([wine_id]) if WINE_ID.fullmatch(wine_id) else ()
    if not wines:
        await talk.say(update, translate("greeting"), await _age_buttons(talk, update))
        return

    async def work(run: Run) -> Reply:
        for wine in await get_wines(catalogue, [wine_id], person_in(run)):
            text = wine_text(wine, escape(wine.notes))
            return Reply(text=text, wine_ids=(wine.id,), wines=(wine,))
        notice = talk.turns.safety.help.notice_for(care_in(run))
        return Reply(text=notice or translate("greeting"), outcome="care" if notice else "answered")

    await talk.turns.run_turn(talk.build_question(update, wines[0].label), work)


async def _age_buttons(talk: Conversation, update: Update) -> ButtonRows:
    """Return the buttons under a greeting: none in a group, or where the age is known."""
    age = talk.resources.help.full_age
    if not is_private(update) or settings_of(await talk.facts(update)).get("age") == str(age):
        return ()
    older = Button(translate("start_older", age=age), f"{PREFIX}yes")
    return ((older, Button(translate("start_younger", age=age), f"{PREFIX}no")),)


async def _store_age(talk: Conversation, update: Update) -> None:
    """Store whether a user may drink."""
    query = press_of(update)
    (answer,) = parts_of(query, 1)
    adult = Fact("setting", f"age={talk.resources.help.full_age}")
    minor = Fact("setting", UNDER_AGE)
    new, old = (adult, minor) if answer == "yes" else (minor, adult)
    await talk.change_memory(update, learned=(new,), unlearned=(old,))
    await acknowledge(query)
    await show_rows(query.message, ())
    await talk.say(update, translate("start_done" if answer == "yes" else "start_without"))
