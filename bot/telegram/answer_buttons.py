"""The buttons under an answer: what may be wanted next, 👍 and 👎, and reactions.

Follow-ups are told from the wines that an answer shows. A press is a turn in which the person says
the words of the button. It is known by what is kept: it is who asked that may press, and only what
that answer's wines offer. What does not count any more (an answer that was forgotten, a second
press, a foreign one) ends in a short sentence.

A press that rates says what is to be the case, not what is to change: a button that shows a verdict
takes it back. So a press that comes twice, or late, does no harm.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic import Field
from telegram import CallbackQuery, Message, MessageReactionUpdated, ReactionType, Update
from telegram.constants import ChatType
from telegram.ext import CallbackQueryHandler, MessageHandler, MessageReactionHandler, filters

from agent.fallback import query_for
from agent.i18n import in_every_language, say
from agent.repositories import Feedback, FeedbackReason, StoredMessage, TurnRecord, Verdict
from agent.sommelier.cards import country_name
from agent.sommelier.wine import Wine, WineQuery
from agent.tables import Strict, read_toml
from agent.text import pattern
from agent.tracing.masking import mask
from agent.turn import Reply
from bot.retries import retry_briefly, retry_forever
from bot.telegram.buttons import acknowledge, is_first_press, pressed_message, rows_of, show_rows
from bot.telegram.conversation import (
    AnyHandler,
    Context,
    Conversation,
    destination,
    message_of,
    names_of,
    people_of,
    press_of,
    question_of,
)
from bot.telegram.sender import Button, Rows, in_rows
from bot.turn import Question
from bot.updates.bursts import FOLLOW_UP

KINDS: Final = frozenset({"chat", "label"})
MOST: Final = 5
IN_A_ROW: Final = 3
NEXT: Final = f"{FOLLOW_UP}:"
"""What the data of these buttons begins with."""
STAYS: Final = f"{NEXT}why"
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
    return read_toml(dict[str, FollowUp], Path(__file__).with_name("follow_ups.toml"))


def offered(wines: Sequence[Wine], asked: WineQuery | None = None) -> list[str]:
    """Name the follow-ups that make sense for wines that were shown to who `asked` so."""
    given = asked.model_dump(exclude_defaults=True) if asked else {}
    fixed = frozenset(given.keys() - given.get("soft", ()))
    named = follow_ups().items()
    return [name for name, each in named if wines and each.makes_sense(wines, fixed)][:MOST]


def follow_up_buttons(question: Question, reply: Reply) -> Rows:
    """The buttons under an answer; none where it shows wines of somebody else's list."""
    wines = [each for each in reply.wines if isinstance(each, Wine)]
    if question.kind not in KINDS or len(wines) < len(reply.wines):
        return ()
    names = _offered(wines, question.text)
    return in_rows([Button(say(f"next_{each}"), f"{NEXT}{each}") for each in names], IN_A_ROW)


def _offered(wines: Sequence[Wine], asked: str) -> list[str]:
    is_read = wines and 0 < len(asked) <= LONGEST_READ
    return offered(wines, query_for(asked) if is_read else None)


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Makes turns of the presses on follow-ups."""

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers, before handlers that take any button."""
        return [CallbackQueryHandler(self.press, pattern=f"^{NEXT}")]

    async def press(self, update: Update, context: Context) -> None:
        """A follow-up: the person says the words of the button, once, about that answer."""
        query, talk = press_of(update), self.talk
        if (message := await pressed_message(query, say("button_too_old"))) is None:
            return
        words, refusal = await self._wish(query, message)
        goes = partial(_goes_with, query.data)
        if refusal:
            await acknowledge(query, refusal)
        elif await is_first_press(message, goes):
            await acknowledge(query)
            asked = question_of(update, context.bot, words)
            await talk.respond(asked, message.message_id)
        else:
            await acknowledge(query, say("one_moment"))

    async def _wish(self, query: CallbackQuery, message: Message) -> tuple[str, str]:
        """What a press says, or why it does not count."""
        kept = self.talk.repositories
        turn = await retry_briefly(partial(kept.turns.of_message, message.chat.id, message.id))
        said = await self._said(turn, message) if turn else {}
        if turn is None or "assistant" not in said:
            return "", say("button_too_old")
        if turn.user_id != query.from_user.id:
            return "", say("not_yours")
        wine_ids = said["assistant"].wine_ids
        wines = await kept.wines.get(wine_ids)
        name, are_ours = (query.data or "").removeprefix(NEXT), len(wines) == len(wine_ids)
        asked = said["user"].content if "user" in said else ""
        if not are_ours or name not in _offered(wines, asked):
            return "", say("button_too_old")
        country = country_name(wines[0].country)
        return say(f"wish_{name}", country=country), ""

    async def _said(self, turn: TurnRecord, message: Message) -> Mapping[str, StoredMessage]:
        """What was said in a turn, by role, as far as it is remembered."""
        thread = message.message_thread_id if message.is_topic_message else None
        recent = self.talk.repositories.messages.recent
        look = partial(recent, message.chat.id, self.talk.history_messages, thread_id=thread or 0)
        said = await retry_briefly(look)
        return {each.role: each for each in said if each.turn_id == turn.turn_id}


def _goes_with(pressed: object, data: str) -> bool:
    """Whether a button is taken away with one that is pressed."""
    return data == pressed if pressed == STAYS else data.startswith(NEXT)


ANSWER_SECONDS: Final = 0.5
"""How long a press may take to be kept before it is acknowledged without."""

FRESH: Final = timedelta(minutes=1)
SOON_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
"""An answer can be pressed a moment before its turn is kept: the waits before it is looked for
again."""

RATES: Final = "v:"
"""What the data of these buttons begins with; a kind has a lane of its own, see `lane_of`."""

UP, DOWN, NONE, WORDS = "up", "down", "none", "words"
PRESS: Final = pattern(rf"{RATES}([0-9]{{1,18}}):([0-9A-Za-z_]{{1,20}})")
REASONS: Final[tuple[FeedbackReason, ...]] = get_args(FeedbackReason)
VERDICTS: Final[Mapping[str, Verdict | None]] = {
    UP: "liked",
    NONE: None,
    **dict.fromkeys((DOWN, WORDS, *REASONS), "disliked"),
}


@dataclass(frozen=True, slots=True)
class Press:
    """What the person who presses wants kept of a turn; `in_words`: they want to write, too."""

    turn_id: int
    verdict: Verdict | None
    reason: FeedbackReason | None = None
    in_words: bool = False


def read_press(data: str) -> Press | None:
    """What a button means; None if it is none of ours."""
    found = PRESS.fullmatch(data)
    if found is None or found[2] not in VERDICTS:
        return None
    reason = next((each for each in REASONS if each == found[2]), None)
    return Press(int(found[1]), VERDICTS[found[2]], reason, found[2] == WORDS)


def toast(press: Press) -> str:
    """What is said to a press that was kept."""
    if press.in_words:
        return ""
    if press.reason is not None:
        return say("reason_noted")
    return say(press.verdict or "taken_back")


def rating(turn_id: int, feedback: Feedback | None = None) -> Rows:
    """The buttons under the answer of a turn, with what is thought of it so far."""

    def button(label: str, action: str, *, chosen: bool = False) -> Button:
        return Button(f"{label} ✓" if chosen else label, f"{RATES}{turn_id}:{action}")

    verdict = feedback.verdict if feedback else None
    thumbs = (
        button("👍", NONE if verdict == "liked" else UP, chosen=verdict == "liked"),
        button("👎", NONE if verdict == "disliked" else DOWN, chosen=verdict == "disliked"),
    )
    if feedback is None or verdict != "disliked":
        return (thumbs,)
    choices = [
        button(say(f"reason_{reason}"), reason, chosen=feedback.reason == reason)
        for reason in REASONS
    ]
    return (thumbs, *in_rows(choices, 2), (button(say("in_my_words"), WORDS),))


def verdict_in(reactions: Sequence[ReactionType]) -> Verdict | None:
    """What a person's reactions to an answer say of it; the last that says anything counts."""
    said = (_verdicts().get(getattr(each, "emoji", "")) for each in reversed(reactions))
    return next(filter(None, said), None)


@cache
def _verdicts() -> Mapping[str, Verdict]:
    read = read_toml(dict[Verdict, str], Path(__file__).with_name("rating.toml"))
    return {emoji: verdict for verdict, emojis in read.items() for emoji in emojis.split()}


class _Prompted(filters.MessageFilter):
    """A reply to a message that asked what was wrong, as far as the message itself shows."""

    def filter(self, message: Message) -> bool:
        asked = message.reply_to_message
        by_bot = asked is not None and asked.from_user is not None and asked.from_user.is_bot
        said = asked.text or "" if asked is not None and by_bot else ""
        return bool(said) and any(each in said for each in in_every_language("tell_me").values())


@dataclass(frozen=True, slots=True)
class RatingButtons:
    """The presses on `rating`, and replies to the message that asks for more.

    `changed` is called when there is something new to deliver. `hide` makes of what somebody wrote,
    and the names of who is there, what may be kept: later nobody knows the names any more.
    """

    talk: Conversation
    changed: Callable[[], None] = lambda: None
    hide: Callable[[str, Collection[str]], str] = mask

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers, before handlers that take any button."""
        said = filters.UpdateType.MESSAGE | filters.UpdateType.EDITED_MESSAGE
        replies = said & filters.REPLY
        return [
            CallbackQueryHandler(self.press, pattern=f"^{RATES}"),
            MessageReactionHandler(self.react),
            MessageHandler(replies & filters.TEXT & ~filters.COMMAND & _Prompted(), self.comment),
        ]

    async def press(self, update: Update, context: Context) -> None:
        """A button that says what somebody thinks: kept, acknowledged, shown."""
        query = press_of(update)
        message = await pressed_message(query, say("answer_too_old"))
        if message is None:
            return
        if (press := read_press(query.data or "")) is None:
            await acknowledge(query, say("answer_too_old"))
            return
        kept = await self._kept(press, query, message.date)
        if isinstance(kept, str):
            return
        self.changed()
        shown = rows_of(message)
        others = tuple(row for row in shown if not any(each.data.startswith(RATES) for each in row))
        rows = others + rating(kept.turn_id, kept)
        if rows != shown:
            await show_rows(message, rows)
        if press.in_words:
            await self._ask(update, press.turn_id)

    async def react(self, update: Update, context: Context) -> None:
        """A reaction of who asked is their verdict, taken back with it; who hides has none."""
        reaction = update.message_reaction
        if reaction is None or reaction.user is None:
            return
        before, now = verdict_in(reaction.old_reaction), verdict_in(reaction.new_reaction)
        if before == now:
            return
        keep = partial(self._keep_reaction, reaction, reaction.user.id, before, now)
        if await retry_forever(keep):
            self.changed()

    async def comment(self, update: Update, context: Context) -> None:
        """What a person wrote about an answer; anything else is an ordinary message."""
        message = message_of(update)
        _, user_id = people_of(update)
        talk = self.talk
        turn = await retry_briefly(partial(self._asked_about, message))
        if turn is not None and turn.user_id != user_id:
            await (talk.edited if update.edited_message else talk.text)(update, context)
        elif turn is not None and await self._noted(
            turn.turn_id, self.hide(message.text or "", names_of(update))
        ):
            await talk.say(update, say("comment_noted"))
        else:
            await talk.say(update, say("comment_unknown"))

    async def _noted(self, turn_id: int, words: str) -> bool:
        note = partial(self.talk.repositories.feedback.comment, turn_id, words)
        noted = await retry_briefly(note)
        self.changed()
        return noted is not None

    async def _kept(self, press: Press, query: CallbackQuery, answered: datetime) -> Feedback | str:
        """What is thought of the turn now, or why the press was not kept; acknowledged in time."""
        keep = partial(self._keep, press, query.from_user.id, answered)
        keeping = asyncio.ensure_future(retry_forever(keep))
        try:
            await asyncio.wait([keeping], timeout=ANSWER_SECONDS)
            words = say("one_moment")
            if keeping.done():
                words = told if isinstance(told := keeping.result(), str) else toast(press)
            await acknowledge(query, words)
            return await keeping
        finally:
            keeping.cancel()

    async def _keep(self, press: Press, user_id: int, answered: datetime) -> Feedback | str:
        turns, feedback = self.talk.repositories.turns, self.talk.repositories.feedback
        is_fresh = datetime.now(UTC) - answered < FRESH
        turn = await self._turn(partial(turns.get, press.turn_id), is_fresh=is_fresh)
        if turn is None:
            return say("answer_too_old")
        if turn.user_id != user_id:
            return say("not_yours")
        kept = await feedback.rate(press.turn_id, press.verdict)
        if press.reason is not None:
            kept = await feedback.reason(press.turn_id, press.reason)
        return kept or say("answer_too_old")

    async def _keep_reaction(
        self,
        reaction: MessageReactionUpdated,
        user_id: int,
        before: Verdict | None,
        now: Verdict | None,
    ) -> Feedback | None:
        chat_id, under_way = reaction.chat.id, self.talk.turns.under_way.values()
        turns, feedback = self.talk.repositories.turns, self.talk.repositories.feedback
        find = partial(turns.of_message, chat_id, reaction.message_id)
        turn = await self._turn(find, is_fresh=any(each.chat_id == chat_id for each in under_way))
        if turn is None or turn.user_id != user_id:
            return None
        known = await feedback.get(turn.turn_id) if now is None else None
        if now is None and (known is None or known.verdict != before):
            return None
        return await feedback.rate(turn.turn_id, now)

    async def _turn(
        self, find: Callable[[], Awaitable[TurnRecord | None]], *, is_fresh: bool
    ) -> TurnRecord | None:
        turn = await find()
        for seconds in SOON_SECONDS if is_fresh else ():
            if turn is not None:
                break
            await asyncio.sleep(seconds)
            turn = await find()
        return turn

    async def _ask(self, update: Update, turn_id: int) -> None:
        """Ask what was wrong; the reply is known by the message it replies to."""
        answer, words, person = message_of(update), say("tell_me"), update.effective_user
        if answer.chat.type != ChatType.PRIVATE and person is not None:
            words = f"{person.mention_html()}: {words}"
        to = replace(destination(update), reply_to=answer.message_id)
        await self.talk.sender.ask(to, words, say("tell_me_placeholder"), asks_about=turn_id)

    async def _asked_about(self, message: Message) -> TurnRecord | None:
        """The turn whose answer a reply is about."""
        asked = message.reply_to_message
        assert asked is not None  # noqa: S101 - the filter lets nothing else through
        kept = self.talk.repositories
        turn_id = await kept.feedback.asked_about(message.chat.id, asked.message_id)
        return None if turn_id is None else await kept.turns.get(turn_id)
