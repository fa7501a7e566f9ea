"""Follow-up buttons under an answer, as "cheaper" or "another country".

They follow from the wines that the answer shows. A press is a turn in which the user says the words
of the button. Only the user who asked may press, once, while the conversation remembers the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from pydantic import Field
from telegram import Message, Update
from telegram.ext import CallbackQueryHandler

from agent.fallback import parse_query
from agent.i18n import translate
from agent.sommelier.cards import country_name
from agent.sommelier.wine import Wine, WineQuery
from agent.tables import StrictModel, read_toml
from agent.turn import Reply
from bot.outgoing import MAX_DATA, Button, ButtonRows, in_rows
from bot.question import Question
from bot.telegram.buttons import acknowledge, parts_of, pressed_message, remove_buttons
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import press_of
from bot.updates.bursts import FOLLOW_UP

KINDS: Final = frozenset({"chat", "label"})
MAX_BUTTONS: Final = 5
IN_A_ROW: Final = 3
PREFIX: Final = f"{FOLLOW_UP}:"
"""The beginning of the data of these buttons: `n:USER:FOLLOW_UP:COUNTRY`."""
WHY: Final = "why"
"""After this follow-up the others make as much sense as before."""
MAX_READ_CHARS: Final = 500
"""A longer question is not read for the filters that the user set."""

Values = Mapping[Literal["body", "sweetness"], tuple[str, ...]]


class FollowUp(StrictModel):
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


def follow_up_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the buttons under an answer; none where it shows wines of another list."""
    wines = [wine for wine in reply.wines if isinstance(wine, Wine)]
    if question.kind not in KINDS or not wines or len(wines) < len(reply.wines):
        return ()
    is_read = 0 < len(question.text) <= MAX_READ_CHARS
    names = offered(wines, parse_query(question.text) if is_read else None)
    buttons = (
        Button(translate(f"next_{name}"), _data(question.user_id, name, wines[0].country))
        for name in names
    )
    return in_rows([*buttons], IN_A_ROW)


def _data(user_id: int, name: str, country: str) -> str:
    """Return the data of a button, cut at what Telegram takes."""
    data = f"{PREFIX}{user_id}:{name}:{country}"
    return data.encode()[:MAX_DATA].decode(errors="ignore")


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
        owner, name, country = parts_of(query, 3)
        if (message := await pressed_message(query, translate("button_too_old"))) is None:
            return

        def goes(data: str) -> bool:
            return data == query.data if name == WHY else data.startswith(PREFIX)

        if name in follow_ups() and owner != str(query.from_user.id):
            await acknowledge(query, translate("not_yours"))
        elif name not in follow_ups() or not await self._is_remembered(message):
            await acknowledge(query, translate("button_too_old"))
        elif await remove_buttons(message, goes):
            await acknowledge(query)
            words = translate(f"wish_{name}", country=country_name(country))
            await self.talk.respond(self.talk.build_question(update, words), message.message_id)
        else:
            await acknowledge(query, translate("one_moment"))

    async def _is_remembered(self, message: Message) -> bool:
        """Return whether the conversation remembers the turn of a message."""
        chat_id, talk, repositories = message.chat.id, self.talk, self.talk.repositories
        thread_id = (message.message_thread_id if message.is_topic_message else None) or 0
        turn = await repositories.turns.find_by_message(chat_id, message.id)
        recent = await repositories.messages.recent(
            chat_id, talk.history_messages, thread_id=thread_id
        )
        return turn is not None and any(said.turn_id == turn.turn_id for said in recent)
