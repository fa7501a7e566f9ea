"""Ratings of answers: 👍 and 👎, reasons, comments in the user's own words, and reactions.

A button names the new rating, not a change of it: one that shows the current rating takes it back.
So a press that comes twice, or late, does no harm.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final, get_args

from telegram import CallbackQuery, Message, MessageReactionUpdated, ReactionType, Update
from telegram.constants import ChatType
from telegram.ext import CallbackQueryHandler, MessageHandler, MessageReactionHandler, filters

from agent.i18n import in_every_language, say
from agent.tables import read_toml
from agent.text import pattern
from agent.tracing.masking import mask
from bot.outgoing import Button, Rows, in_rows
from bot.retries import retry_briefly, retry_forever
from bot.telegram.buttons import acknowledge, pressed_message, rows_of, show_rows
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import destination, message_of, names_of, people_of, press_of
from db.models import TurnRow
from db.records import FeedbackReason, Verdict

ANSWER_SECONDS: Final = 0.5
"""A press that takes longer to store is acknowledged before it is stored."""
FRESH: Final = timedelta(minutes=1)
SOON_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Waits for the turn of an answer that was rated a moment before its turn was stored."""

PREFIX: Final = "v:"
"""The beginning of the data of these buttons; they have a lane of their own, see `lane_of`."""
UP, DOWN, NONE, WORDS = "up", "down", "none", "words"
PRESS: Final = pattern(rf"{PREFIX}([0-9]{{1,18}}):([0-9A-Za-z_]{{1,20}})")
REASONS: Final[tuple[FeedbackReason, ...]] = get_args(FeedbackReason)
VERDICTS: Final[Mapping[str, Verdict | None]] = {
    UP: "liked",
    NONE: None,
    **dict.fromkeys((DOWN, WORDS, *REASONS), "disliked"),
}


@dataclass(frozen=True, slots=True)
class Press:
    """The new rating of a turn; `in_words`: the user wants to write, too."""

    turn_id: int
    verdict: Verdict | None
    reason: FeedbackReason | None = None
    in_words: bool = False

    @property
    def confirmation(self) -> str:
        """Return the text that confirms a stored press."""
        if self.in_words:
            return ""
        if self.reason is not None:
            return say("reason_noted")
        return say(self.verdict or "taken_back")


def read_press(data: str) -> Press | None:
    """Return the rating of a button's data; None if it is not one."""
    found = PRESS.fullmatch(data)
    if found is None or found[2] not in VERDICTS:
        return None
    reason = next((reason for reason in REASONS if reason == found[2]), None)
    return Press(int(found[1]), VERDICTS[found[2]], reason, found[2] == WORDS)


def rating(turn_id: int, turn: TurnRow | None = None) -> Rows:
    """Return the buttons under the answer of a turn, with its current rating."""

    def button(label: str, action: str, *, chosen: bool = False) -> Button:
        return Button(f"{label} ✓" if chosen else label, f"{PREFIX}{turn_id}:{action}")

    verdict = turn.verdict if turn else None
    thumbs = (
        button("👍", NONE if verdict == "liked" else UP, chosen=verdict == "liked"),
        button("👎", NONE if verdict == "disliked" else DOWN, chosen=verdict == "disliked"),
    )
    if turn is None or verdict != "disliked":
        return (thumbs,)
    choices = [
        button(say(f"reason_{reason}"), reason, chosen=turn.reason == reason) for reason in REASONS
    ]
    return (thumbs, *in_rows(choices, 2), (button(say("in_my_words"), WORDS),))


def verdict_in(reactions: Sequence[ReactionType]) -> Verdict | None:
    """Return the verdict of the last reaction that has one."""
    verdicts = (_verdicts().get(getattr(one, "emoji", "")) for one in reversed(reactions))
    return next(filter(None, verdicts), None)


@cache
def _verdicts() -> Mapping[str, Verdict]:
    table = read_toml(dict[Verdict, str], Path(__file__).with_name("rating.toml"))
    return {emoji: verdict for verdict, emojis in table.items() for emoji in emojis.split()}


class _CommentReply(filters.MessageFilter):
    """A reply to a message of a bot that asks for a comment."""

    def filter(self, message: Message) -> bool:
        asked = message.reply_to_message
        if asked is None or asked.from_user is None or not asked.from_user.is_bot:
            return False
        return any(text in (asked.text or "") for text in in_every_language("tell_me").values())


@dataclass(frozen=True, slots=True)
class RatingButtons:
    """Stores presses on `rating`, reactions and comments.

    `changed` is called when there is feedback to deliver. `hide` masks a comment, with the names of
    the people there, before it is stored: later nobody knows the names.
    """

    talk: Conversation
    changed: Callable[[], None] = lambda: None
    hide: Callable[[str, Collection[str]], str] = mask

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers."""
        messages = filters.UpdateType.MESSAGE | filters.UpdateType.EDITED_MESSAGE
        comments = messages & filters.REPLY & filters.TEXT & ~filters.COMMAND & _CommentReply()
        return [
            CallbackQueryHandler(self.press, pattern=f"^{PREFIX}"),
            MessageReactionHandler(self.react),
            MessageHandler(comments, self.comment),
        ]

    async def press(self, update: Update, context: Context) -> None:
        """Store a rating, confirm it and show it on the buttons."""
        query = press_of(update)
        message = await pressed_message(query, say("answer_too_old"))
        if message is None:
            return
        if (press := read_press(query.data or "")) is None:
            await acknowledge(query, say("answer_too_old"))
            return
        feedback = await self._store_in_time(press, query, message.date)
        if feedback is None:
            return
        self.changed()
        shown = rows_of(message)
        others = (row for row in shown if not any(key.data.startswith(PREFIX) for key in row))
        rows = (*others, *rating(feedback.turn_id, feedback))
        if rows != shown:
            await show_rows(message, rows)
        if press.in_words:
            await self._ask_for_comment(update, press.turn_id)

    async def react(self, update: Update, context: Context) -> None:
        """Store a reaction of who asked as their rating; take it back with the reaction."""
        reaction = update.message_reaction
        if reaction is None or reaction.user is None:
            return
        user_id = reaction.user.id
        if verdict_in(reaction.old_reaction) == verdict_in(reaction.new_reaction):
            return
        if await retry_forever(lambda: self._store_reaction(reaction, user_id)):
            self.changed()

    async def comment(self, update: Update, context: Context) -> None:
        """Store a comment of who asked; anybody else's reply is an ordinary message."""
        message, (_, user_id), talk = message_of(update), people_of(update), self.talk
        turn = await retry_briefly(lambda: self._commented_turn(message))
        if turn is not None and turn.user_id != user_id:
            await (talk.edited if update.edited_message else talk.text)(update, context)
            return
        feedback = None
        if turn is not None:
            turn_id, words = turn.turn_id, self.hide(message.text or "", names_of(update))
            repository = talk.repositories.feedback
            feedback = await retry_briefly(lambda: repository.comment(turn_id, words))
            self.changed()
        await talk.say(update, say("comment_noted" if feedback else "comment_unknown"))

    async def _store_in_time(
        self, press: Press, query: CallbackQuery, answered_at: datetime
    ) -> TurnRow | None:
        """Store a press, however long that takes, but acknowledge it soon."""
        user_id = query.from_user.id
        storing = asyncio.ensure_future(
            retry_forever(lambda: self._store(press, user_id, answered_at))
        )
        try:
            await asyncio.wait([storing], timeout=ANSWER_SECONDS)
            text = say("one_moment")
            if storing.done():
                stored = storing.result()
                text = stored if isinstance(stored, str) else press.confirmation
            await acknowledge(query, text)
            stored = await storing
            return None if isinstance(stored, str) else stored
        finally:
            storing.cancel()

    async def _store(self, press: Press, user_id: int, answered_at: datetime) -> TurnRow | str:
        """Return the stored rating, or why the press does not count."""
        turns, repository = self.talk.repositories.turns, self.talk.repositories.feedback
        is_fresh = datetime.now(UTC) - answered_at < FRESH
        turn = await _find(lambda: turns.get(press.turn_id), is_fresh=is_fresh)
        if turn is None:
            return say("answer_too_old")
        if turn.user_id != user_id:
            return say("not_yours")
        feedback = await repository.rate(press.turn_id, press.verdict)
        if press.reason is not None:
            feedback = await repository.reason(press.turn_id, press.reason)
        return feedback or say("answer_too_old")

    async def _store_reaction(
        self, reaction: MessageReactionUpdated, user_id: int
    ) -> TurnRow | None:
        chat_id, running = reaction.chat.id, self.talk.turns.running.questions.values()
        before, now = verdict_in(reaction.old_reaction), verdict_in(reaction.new_reaction)
        turns, repository = self.talk.repositories.turns, self.talk.repositories.feedback
        turn = await _find(
            lambda: turns.of_message(chat_id, reaction.message_id),
            is_fresh=any(question.chat_id == chat_id for question in running),
        )
        if turn is None or turn.user_id != user_id:
            return None
        if now is None and turn.verdict != before:
            return None
        return await repository.rate(turn.turn_id, now)

    async def _ask_for_comment(self, update: Update, turn_id: int) -> None:
        """Ask what was wrong; a comment is known by the message it replies to."""
        answer, words, user = message_of(update), say("tell_me"), update.effective_user
        if answer.chat.type != ChatType.PRIVATE and user is not None:
            words = f"{user.mention_html()}: {words}"
        to = replace(destination(update), reply_to=answer.message_id)
        await self.talk.sender.ask(to, words, say("tell_me_placeholder"), asks_about=turn_id)

    async def _commented_turn(self, message: Message) -> TurnRow | None:
        """Return the turn whose answer a comment is about."""
        asked, repositories = message.reply_to_message, self.talk.repositories
        assert asked is not None  # noqa: S101 - the filter lets nothing else through
        turn_id = await repositories.feedback.asked_about(message.chat.id, asked.message_id)
        return None if turn_id is None else await repositories.turns.get(turn_id)


async def _find(read: Callable[[], Awaitable[TurnRow | None]], *, is_fresh: bool) -> TurnRow | None:
    """Return a turn; wait a little for one that is fresh and may be stored in a moment."""
    turn = await read()
    for seconds in SOON_SECONDS if is_fresh else ():
        if turn is not None:
            break
        await asyncio.sleep(seconds)
        turn = await read()
    return turn
