"""Follow-ups under an answer: what a thumb may want next, told from the wines that it shows.

A press is a turn in which the person says the words of the button. It is known by what is kept: it
is who asked that may press, and only what that answer's wines offer. What does not count any more
(an answer that was forgotten, a second press, a foreign one) ends in a short sentence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final, Literal, cast

from pydantic import Field
from telegram import CallbackQuery, Message, Update
from telegram.ext import CallbackQueryHandler

from agent.house_sommelier import query_for
from agent.house_sommelier.wording import country_in_words
from agent.i18n import say, spoken
from agent.repositories import StoredMessage, TurnRecord
from agent.sommelier.wine import Wine, WineQuery
from agent.tables import Strict, read_toml
from agent.text import Language
from agent.turn import Reply
from bot.telegram.buttons import Button, Rows, acknowledge, is_first_press, pressed_message
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.incoming import press_of, question_of
from bot.turn import Question, retry_briefly
from bot.updates.bursts import FOLLOW_UP

KINDS: Final = frozenset({"chat", "label"})
MOST: Final = 5
IN_A_ROW: Final = 3
KIND: Final = f"{FOLLOW_UP}:"
"""What the data of these buttons begins with."""
STAYS: Final = f"{KIND}why"
"""After it the other follow-ups make as much sense as before."""
LONGEST_READ: Final = 500
"""Up to how many characters a question is read for what it asks itself."""

Values = Mapping[Literal["body", "sweetness"], tuple[str, ...]]


class FollowUp(Strict):
    """When something may be wanted next; see `follow_ups.toml`."""

    costs: float = 0
    has: Values = Field(default_factory=dict)
    all_have: Values = Field(default_factory=dict)
    same: Literal["", "country"] = ""
    unless: tuple[str, ...] = ()

    def makes_sense(self, wines: Sequence[Wine], fixed: frozenset[str]) -> bool:
        """Whether it does for these wines, where the person fixed these filters themselves."""
        prices = [wine.price_in_euros for wine in wines if wine.price_in_euros is not None]
        return (
            not fixed.intersection(self.unless)
            and (not self.costs or min(prices, default=0) >= self.costs)
            and all(any(_is_of(each, wine) for wine in wines) for each in self.has.items())
            and all(_is_of(each, wine) for each in self.all_have.items() for wine in wines)
            and (not self.same or len({getattr(wine, self.same) for wine in wines}) == 1)
        )


def _is_of(wanted: tuple[str, tuple[str, ...]], wine: Wine) -> bool:
    name, values = wanted
    return getattr(wine, name) in values


@cache
def follow_ups() -> Mapping[str, FollowUp]:
    """Read what may be offered, once.

    Raises:
        ValidationError: the file is not as it must be.
    """
    return read_toml(dict[str, FollowUp], Path(__file__).with_suffix(".toml"))


def offered(wines: Sequence[Wine], asked: WineQuery | None = None) -> list[str]:
    """Name the follow-ups that make sense for wines that were shown to who `asked` so."""
    given = asked.model_dump(exclude_defaults=True) if asked else {}
    fixed = frozenset(given.keys() - given.get("soft", ()))
    named = follow_ups().items()
    return [name for name, each in named if wines and each.makes_sense(wines, fixed)][:MOST]


def buttons(names: Sequence[str]) -> Rows:
    """The buttons of follow-ups, in rows."""
    made = [Button(say(f"next_{name}"), f"{KIND}{name}") for name in names]
    return tuple(tuple(made[at : at + IN_A_ROW]) for at in range(0, len(made), IN_A_ROW))


def follow_up_buttons(question: Question, reply: Reply) -> Rows:
    """The buttons under an answer; none where it shows wines of somebody else's list."""
    wines = [each for each in reply.wines if isinstance(each, Wine)]
    if question.kind not in KINDS or len(wines) < len(reply.wines):
        return ()
    return buttons(_offered(wines, question.text))


def _offered(wines: Sequence[Wine], asked: str) -> list[str]:
    is_read = wines and 0 < len(asked) <= LONGEST_READ
    return offered(wines, query_for(asked) if is_read else None)


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Makes turns of the presses on follow-ups."""

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers, before handlers that take any button."""
        return [CallbackQueryHandler(self.press, pattern=f"^{KIND}")]

    async def press(self, update: Update, context: Context) -> None:
        """A follow-up: the person says the words of the button, once, about that answer."""
        query, talk = press_of(update), self.talk
        if (message := await pressed_message(query, say("button_too_old"))) is None:
            return
        wish = await talk.step("wish", partial(self._wish, query, message))
        goes = partial(_goes_with, query.data)
        if wish.refusal:
            await acknowledge(query, wish.refusal)
        elif await is_first_press(talk.sender.journal, message, goes):
            await acknowledge(query)
            asked = question_of(update, context.bot, wish.words)
            await talk.respond(asked, message.message_id)
        else:
            await acknowledge(query, say("one_moment"))

    async def _wish(self, query: CallbackQuery, message: Message) -> "Wish":
        kept = self.talk.repositories
        turn = await retry_briefly(partial(kept.turns.of_message, message.chat.id, message.id))
        said = await self._said(turn, message) if turn else {}
        if turn is None or "assistant" not in said:
            return Wish(refusal=say("button_too_old"))
        if turn.user_id != query.from_user.id:
            return Wish(refusal=say("not_yours"))
        wine_ids = said["assistant"].wine_ids
        wines = await kept.wines.get(wine_ids)
        name, are_ours = (query.data or "").removeprefix(KIND), len(wines) == len(wine_ids)
        asked = said["user"].content if "user" in said else ""
        if not are_ours or name not in _offered(wines, asked):
            return Wish(refusal=say("button_too_old"))
        country = country_in_words(wines[0].country, cast("Language", spoken()))
        return Wish(words=say(f"wish_{name}", country=country))

    async def _said(self, turn: TurnRecord, message: Message) -> Mapping[str, StoredMessage]:
        """What was said in a turn, by role, as far as it is remembered."""
        thread = message.message_thread_id if message.is_topic_message else None
        recent = self.talk.repositories.messages.recent
        look = partial(recent, message.chat.id, self.talk.history_messages, thread_id=thread or 0)
        said = await retry_briefly(look)
        return {each.role: each for each in said if each.turn_id == turn.turn_id}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a press says, or why it does not count."""

    words: str = ""
    refusal: str = ""


def _goes_with(pressed: object, data: object) -> bool:
    """Whether a button is taken away with one that is pressed."""
    is_follow_up = isinstance(data, str) and data.startswith(KIND)
    return data == pressed if pressed == STAYS else is_follow_up
