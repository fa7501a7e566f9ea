"""Follow-up buttons under an answer, such as "cheaper" or "more like the first".

A press is a turn in which the user says the words of the button. Only the user who asked may press,
once, while the conversation remembers the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from telegram import Message, Update

from agent.i18n import translate
from agent.sommelier.wine import Body, Sweetness, Wine
from agent.turn import Reply
from bot.outgoing import Button, ButtonRows, in_rows
from bot.question import Question
from bot.telegram.buttons import acknowledge, claim, parts_of
from bot.telegram.conversation import AnyHandler, Conversation, on_press
from bot.telegram.messages import press_of
from bot.updates.bursts import FOLLOW_UP

KINDS: Final = frozenset({"chat", "label"})
IN_A_ROW: Final = 3
PREFIX: Final = f"{FOLLOW_UP}:"
"""The beginning of the data of these buttons: `n:USER:FOLLOW_UP`."""
WHY: Final = "why"
"""After this follow-up the others make as much sense as before."""
LEAST_EUROS: Final = 9
"""The price from which there may be a cheaper wine."""
LIGHT: Final = frozenset({Body.LIGHT, Body.MEDIUM_LIGHT})
SWEETISH: Final = frozenset({Sweetness.OFF_DRY, Sweetness.MEDIUM})

FOLLOW_UPS: Final[Mapping[str, Callable[[Sequence[Wine]], bool]]] = {
    "cheaper": lambda wines: _lowest_price(wines) >= LEAST_EUROS,
    "lighter": lambda wines: any(wine.body and wine.body not in LIGHT for wine in wines),
    "fuller": lambda wines: all(wine.body in LIGHT for wine in wines),
    "drier": lambda wines: any(wine.sweetness in SWEETISH for wine in wines),
    "like": lambda wines: True,
    WHY: lambda wines: True,
}
"""The wines for which a follow-up makes sense."""


def _lowest_price(wines: Sequence[Wine]) -> float:
    prices = [wine.price_in_euros for wine in wines if wine.price_in_euros is not None]
    return min(prices, default=0)


def follow_up_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the buttons under an answer; none where it shows wines of another list."""
    wines = [wine for wine in reply.wines if isinstance(wine, Wine)]
    if question.kind not in KINDS or not wines or len(wines) < len(reply.wines):
        return ()
    buttons = [
        Button(translate(f"next_{name}"), f"{PREFIX}{question.user_id}:{name}")
        for name, makes_sense in FOLLOW_UPS.items()
        if makes_sense(wines)
    ]
    return in_rows(buttons, IN_A_ROW)


def follow_up_handlers(conversation: Conversation) -> list[AnyHandler]:
    """Return the handler of presses on follow-ups."""
    return [on_press(conversation, PREFIX, _answer)]


async def _answer(conversation: Conversation, update: Update) -> None:
    """Answer the words of a button, once, about its message."""
    query = press_of(update)
    owner, name = parts_of(query, 2)

    def goes(data: str) -> bool:
        return data == query.data if name == WHY else data.startswith(PREFIX)

    is_known = name in FOLLOW_UPS and await _is_remembered(conversation, query.message)
    if message := await claim(query, owner if is_known else None, goes):
        await acknowledge(query)
        question = conversation.build_question(update, translate(f"wish_{name}"))
        await conversation.run_turn(question, message.message_id)


async def _is_remembered(conversation: Conversation, message: object) -> bool:
    """Return whether the conversation remembers the turn of a message."""
    if not isinstance(message, Message):
        return False
    chat_id, repositories = message.chat.id, conversation.repositories
    thread_id = (message.message_thread_id if message.is_topic_message else None) or 0
    turn = await repositories.turns.find_by_message(chat_id, message.id)
    if turn is None:
        return False
    last = await repositories.messages.recent(
        chat_id, 1, thread_id=thread_id, last_turn_id=turn.turn_id
    )
    return any(stored.turn_id == turn.turn_id for stored in last)
