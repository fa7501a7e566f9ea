"""Follow-up buttons under an answer, as "cheaper" or "another country".

They follow from the wines that the answer shows. A press is a turn in which the user says the words
of the button. Only who asked may press, once, and only what the stored answer offers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from pydantic import Field
from telegram import CallbackQuery, Message, Update
from telegram.ext import CallbackQueryHandler

from agent.conversation import StoredMessage
from agent.fallback import query_for
from agent.i18n import say
from agent.sommelier.cards import country_name
from agent.sommelier.wine import Wine, WineQuery
from agent.tables import Strict, read_toml
from agent.turn import Reply
from bot.outgoing import Button, Rows, in_rows
from bot.question import Question
from bot.retries import retry_briefly
from bot.telegram.buttons import acknowledge, is_first_press, pressed_message
from bot.telegram.conversation import AnyHandler, Context, Conversation, question_of
from bot.telegram.messages import press_of
from bot.updates.bursts import FOLLOW_UP
from db.models import TurnRow

KINDS: Final = frozenset({"chat", "label"})
MAX_BUTTONS: Final = 5
IN_A_ROW: Final = 3
PREFIX: Final = f"{FOLLOW_UP}:"
WHY: Final = f"{PREFIX}why"
"""After this follow-up the others make as much sense as before."""
MAX_READ_CHARS: Final = 500
"""A longer question is not read for the filters that the user set."""

Values = Mapping[Literal["body", "sweetness"], tuple[str, ...]]


class FollowUp(Strict):
    """The wines for which a follow-up makes sense; see `follow_ups.toml`."""

    costs: float = 0
    has: Values = Field(default_factory=dict)
    all_have: Values = Field(default_factory=dict)
    same: Literal["", "country"] = ""
    unless: tuple[str, ...] = ()

    def makes_sense(self, wines: Sequence[Wine], fixed: frozenset[str]) -> bool:
        """Return whether to offer this for wines, where the user set the filters `fixed`."""
        prices = [wine.price_in_euros for wine in wines if wine.price_in_euros is not None]
        return (
            not fixed.intersection(self.unless)
            and (not self.costs or min(prices, default=0) >= self.costs)
            and all(
                any(getattr(wine, name) in values for wine in wines)
                for name, values in self.has.items()
            )
            and all(
                all(getattr(wine, name) in values for wine in wines)
                for name, values in self.all_have.items()
            )
            and (not self.same or len({getattr(wine, self.same) for wine in wines}) == 1)
        )


@cache
def follow_ups() -> Mapping[str, FollowUp]:
    """Read the table of follow-ups, once.

    Raises:
        ValidationError: the file is malformed.
    """
    return read_toml(dict[str, FollowUp], Path(__file__).with_name("follow_ups.toml"))


def offered(wines: Sequence[Wine], query: WineQuery | None = None) -> list[str]:
    """Return the names of the follow-ups that make sense for wines found by `query`."""
    given = query.model_dump(exclude_defaults=True) if query else {}
    fixed = frozenset(given.keys() - given.get("soft", ()))
    named = follow_ups().items()
    return [name for name, one in named if wines and one.makes_sense(wines, fixed)][:MAX_BUTTONS]


def follow_up_buttons(question: Question, reply: Reply) -> Rows:
    """Return the buttons under an answer; none where it shows wines of another list."""
    wines = [wine for wine in reply.wines if isinstance(wine, Wine)]
    if question.kind not in KINDS or len(wines) < len(reply.wines):
        return ()
    names = _offered_after(question.text, wines)
    return in_rows([Button(say(f"next_{name}"), f"{PREFIX}{name}") for name in names], IN_A_ROW)


def _offered_after(text: str, wines: Sequence[Wine]) -> list[str]:
    is_read = wines and 0 < len(text) <= MAX_READ_CHARS
    return offered(wines, query_for(text) if is_read else None)


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Turns the presses on follow-ups into turns."""

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers."""
        return [CallbackQueryHandler(self.press, pattern=f"^{PREFIX}")]

    async def press(self, update: Update, context: Context) -> None:
        """Answer the words of a button, once, about its message."""
        query = press_of(update)
        if (message := await pressed_message(query, say("button_too_old"))) is None:
            return
        words, refusal = await self._words(query, message)
        if refusal:
            await acknowledge(query, refusal)
        elif await is_first_press(message, lambda data: _goes_with(query.data, data)):
            await acknowledge(query)
            question = question_of(update, context.bot, words)
            await self.talk.respond(question, message.message_id)
        else:
            await acknowledge(query, say("one_moment"))

    async def _words(self, query: CallbackQuery, message: Message) -> tuple[str, str]:
        """Return the words of a pressed button, or why the press does not count."""
        repositories = self.talk.repositories
        turn = await retry_briefly(
            lambda: repositories.turns.of_message(message.chat.id, message.id)
        )
        messages = await self._messages(turn, message) if turn else {}
        if turn is None or "assistant" not in messages:
            return "", say("button_too_old")
        if turn.user_id != query.from_user.id:
            return "", say("not_yours")
        wine_ids = messages["assistant"].wine_ids
        wines = await repositories.wines.get(wine_ids)
        text = messages["user"].content if "user" in messages else ""
        name = (query.data or "").removeprefix(PREFIX)
        if len(wines) < len(wine_ids) or name not in _offered_after(text, wines):
            return "", say("button_too_old")
        return say(f"wish_{name}", country=country_name(wines[0].country)), ""

    async def _messages(self, turn: TurnRow, pressed: Message) -> Mapping[str, StoredMessage]:
        """Return the messages of a turn by role, as far as they are stored."""
        talk, chat_id = self.talk, pressed.chat.id
        thread_id = (pressed.message_thread_id if pressed.is_topic_message else None) or 0
        recent = await retry_briefly(
            lambda: talk.repositories.messages.recent(
                chat_id, talk.history_messages, thread_id=thread_id
            )
        )
        return {message.role: message for message in recent if message.turn_id == turn.turn_id}


def _goes_with(pressed: object, data: str) -> bool:
    """Return whether a button is taken away with the pressed one."""
    return data == pressed if pressed == WHY else data.startswith(PREFIX)
