"""Buttons about what a turn noticed of the user: undo it, confirm it, remember it.

A button carries all that it needs: its user, and the concern, the fact or the id of the change. So
it works after a restart; an old press, one of somebody else and a second one change nothing.
"""

from typing import Final

from telegram import Update

from agent.care import CONCERNS, gravest
from agent.i18n import translate
from agent.memory.taste import added_note, fact_of, in_words
from agent.turn import Fact, Reply
from bot.outgoing import MAX_DATA, Button, ButtonRows
from bot.question import Question
from bot.telegram.buttons import acknowledge, claim, parts_of, remove_buttons
from bot.telegram.conversation import AnyHandler, Conversation, on_press
from bot.telegram.messages import chat_and_user_ids, press_of

UNDO, REMEMBER, CARE = "u:", "r:", "c:"
"""The beginnings of the data: `u:CHANGE`, `r:USER:KIND:VALUE`, `c:USER:CONCERN`."""
MISUNDERSTOOD: Final = "off"
MAX_LABEL: Final = 40
MAX_SUGGESTED: Final = 2


def care_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the button that takes back or confirms a concern that the turn noticed."""
    concern = gravest(reply.concerns)
    if concern == "crisis":
        label, value = translate("care_misunderstood_button"), MISUNDERSTOOD
    elif concern and reply.outcome != "care":
        label, value = translate("care_keep_button"), concern
    else:
        return ()
    return ((Button(label, f"{CARE}{question.user_id}:{value}"),),)


def memory_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the buttons that undo the changes of a turn, or remember a fact it suggests."""
    undo_id = next((change.undo_id for change in reply.changes if change.undo_id), 0)
    suggested = [
        Button(translate("remember_fact", fact=in_words(fact))[:MAX_LABEL], data)
        for fact in reply.suggested_facts
        if len((data := _data(question.user_id, fact)).encode()) <= MAX_DATA
    ]
    return undo_button(undo_id) + tuple((button,) for button in suggested[:MAX_SUGGESTED])


def undo_button(undo_id: int) -> ButtonRows:
    """Return the button that undoes a change; none if it cannot be undone."""
    return ((Button(translate("undo_button"), f"{UNDO}{undo_id}"),),) if undo_id else ()


def _data(user_id: int, fact: Fact) -> str:
    return f"{REMEMBER}{user_id}:{fact.kind}:{fact.value}"


def noticed_handlers(conversation: Conversation) -> list[AnyHandler]:
    """Return the handlers of presses on these buttons."""
    presses = {UNDO: _undo, REMEMBER: _remember, CARE: _confirm_or_retract}
    return [on_press(conversation, prefix, handle) for prefix, handle in presses.items()]


async def _undo(conversation: Conversation, update: Update) -> None:
    """Take a change back, if it is the presser's and was not taken back yet."""
    query, (_, user_id) = press_of(update), chat_and_user_ids(update)
    (number,) = parts_of(query, 1)
    undo_id = int(number) if number.lstrip("-").isdecimal() and len(number) < 20 else 0
    if await conversation.repositories.memory.undoable(user_id, undo_id) is None:
        await acknowledge(query, translate("nothing_to_undo"))
        return
    await conversation.change_memory(update, undoes=undo_id)
    await acknowledge(query, translate("undone"))
    await remove_buttons(query.message, lambda data: data == query.data)


async def _remember(conversation: Conversation, update: Update) -> None:
    """Remember a suggested fact."""
    query = press_of(update)
    owner, kind, value = parts_of(query, 3)
    fact = fact_of(kind, value)
    is_own = await claim(query, owner if fact else None, lambda data: data == query.data)
    if fact and is_own:
        await conversation.change_memory(update, added_facts=(fact,))
        await acknowledge(query, added_note([fact]))


async def _confirm_or_retract(conversation: Conversation, update: Update) -> None:
    """Remember a concern, or take it back."""
    query, (chat_id, user_id) = press_of(update), chat_and_user_ids(update)
    safety, (owner, concern) = conversation.turns.safety, parts_of(query, 2)
    if not await claim(query, owner, lambda data: data.startswith(CARE)):
        return
    if concern == MISUNDERSTOOD:
        await safety.retract(chat_id, user_id)
        await acknowledge(query)
        await conversation.reply(update, translate("care_misunderstood"))
    elif concern in CONCERNS:
        await safety.remember(chat_id, user_id, [concern])
        await acknowledge(query, translate("care_kept"))
