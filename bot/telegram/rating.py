"""Ratings of answers: 👍 and 👎, reasons, comments in the user's own words, and reactions.

A button names the new rating, not a change of it: one that shows the current rating takes it back.
So a press that comes twice, or late, does no harm.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, get_args

from telegram import Message, ReactionType, Update
from telegram.constants import ChatType
from telegram.ext import CallbackQueryHandler, MessageHandler, MessageReactionHandler, filters

from agent.i18n import in_every_language, translate
from agent.tables import read_toml
from agent.tracing.masking import mask
from bot.outgoing import Button, ButtonRows, in_rows
from bot.telegram.buttons import acknowledge, parts_of, pressed_message, rows_of, show_rows
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import destination, message_of, names_of, people_of, press_of
from db.models import TurnRow
from db.records import FeedbackReason, Verdict

PREFIX: Final = "v:"
"""The beginning of the data of these buttons, `v:TURN:ACTION`; they have a lane of their own, see
`lane_of`."""
UP, DOWN, NONE, WORDS = "up", "down", "none", "words"
REASONS: Final[tuple[FeedbackReason, ...]] = get_args(FeedbackReason)
VERDICTS: Final[Mapping[str, Verdict | None]] = {
    UP: "liked",
    NONE: None,
    **dict.fromkeys((DOWN, WORDS, *REASONS), "disliked"),
}
"""The new verdict after each action."""
MAX_DIGITS: Final = 18


def rating(turn_id: int, turn: TurnRow | None = None) -> ButtonRows:
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
        button(translate(f"reason_{reason}"), reason, chosen=turn.reason == reason)
        for reason in REASONS
    ]
    return (thumbs, *in_rows(choices, 2), (button(translate("in_my_words"), WORDS),))


def confirmation(action: str) -> str:
    """Return the text that confirms a stored press; empty if a question for words follows."""
    if action in REASONS:
        return translate("reason_noted")
    return "" if action == WORDS else translate(VERDICTS[action] or "taken_back")


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

    `changed` is called when there is feedback to deliver. If the bot `masks`, a comment is masked
    before it is stored: later nobody knows the names of the people there.
    """

    talk: Conversation
    changed: Callable[[], None] = lambda: None
    masks: bool = True

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
        if (message := await pressed_message(query, translate("answer_too_old"))) is None:
            return
        number, action = parts_of(query, 2)
        turn = await self._turn(number) if action in VERDICTS else None
        if turn is not None and turn.user_id != query.from_user.id:
            await acknowledge(query, translate("not_yours"))
            return
        rated = await self._store(turn.turn_id, action) if turn else None
        if rated is None:
            await acknowledge(query, translate("answer_too_old"))
            return
        await acknowledge(query, confirmation(action))
        self.changed()
        shown = rows_of(message)
        others = (row for row in shown if not any(key.data.startswith(PREFIX) for key in row))
        rows = (*others, *rating(rated.turn_id, rated))
        if rows != shown:
            await show_rows(message, rows)
        if action == WORDS:
            await self._ask_for_comment(update, rated.turn_id)

    async def react(self, update: Update, context: Context) -> None:
        """Store a reaction as the rating of the user who asked; take it back with the reaction."""
        reaction, repositories = update.message_reaction, self.talk.repositories
        if reaction is None or reaction.user is None:
            return
        before, now = verdict_in(reaction.old_reaction), verdict_in(reaction.new_reaction)
        turn = await repositories.turns.find_by_message(reaction.chat.id, reaction.message_id)
        if before == now or turn is None or turn.user_id != reaction.user.id:
            return
        if now is None and turn.verdict != before:
            return
        await repositories.feedback.rate(turn.turn_id, now)
        self.changed()

    async def comment(self, update: Update, context: Context) -> None:
        """Store a comment of the user who asked; any other reply is an ordinary message."""
        message, (_, user_id), talk = message_of(update), people_of(update), self.talk
        turn = await self._commented_turn(message)
        if turn is not None and turn.user_id != user_id:
            await (talk.answer_edit if update.edited_message else talk.answer_text)(update, context)
            return
        rated = None
        if turn is not None:
            words = message.text or ""
            words = mask(words, names_of(update)) if self.masks else words
            rated = await talk.repositories.feedback.comment(turn.turn_id, words)
            self.changed()
        await talk.say(update, translate("comment_noted" if rated else "comment_unknown"))

    async def _turn(self, number: str) -> TurnRow | None:
        """Return the turn that a button names."""
        is_id = number.isdecimal() and len(number) <= MAX_DIGITS
        return await self.talk.repositories.turns.get(int(number)) if is_id else None

    async def _store(self, turn_id: int, action: str) -> TurnRow | None:
        """Return the turn with its new rating; None if it is gone."""
        repository = self.talk.repositories.feedback
        rated = await repository.rate(turn_id, VERDICTS[action])
        reason = next((reason for reason in REASONS if reason == action), None)
        return await repository.reason(turn_id, reason) if reason else rated

    async def _ask_for_comment(self, update: Update, turn_id: int) -> None:
        """Ask for a comment; it is recognised by the message that it replies to."""
        answer, words, user = message_of(update), translate("tell_me"), update.effective_user
        if answer.chat.type != ChatType.PRIVATE and user is not None:
            words = f"{user.mention_html()}: {words}"
        to = replace(destination(update), reply_to=answer.message_id)
        await self.talk.sender.ask(to, words, translate("tell_me_placeholder"), asks_about=turn_id)

    async def _commented_turn(self, message: Message) -> TurnRow | None:
        """Return the turn whose answer a comment is about."""
        asked, repositories = message.reply_to_message, self.talk.repositories
        assert asked is not None  # noqa: S101 - the filter lets nothing else through
        turn_id = await repositories.feedback.asked_about(message.chat.id, asked.message_id)
        return None if turn_id is None else await repositories.turns.get(turn_id)
