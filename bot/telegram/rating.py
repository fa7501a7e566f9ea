"""Ratings of answers: 👍 and 👎, reasons, comments in the user's own words, and reactions.

A button names the new rating, not a change of it: one that shows the current rating takes it back.
So a press that comes twice, or late, does no harm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, get_args

from telegram import ReactionType, Update
from telegram.ext import CallbackQueryHandler, MessageHandler, MessageReactionHandler, filters

from agent.i18n import translate
from agent.tracing.masking import Masking
from bot.outgoing import Button, ButtonRows, in_rows
from bot.telegram.buttons import acknowledge, claim, parts_of, rows_of, show_rows
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import (
    chat_and_user_ids,
    id_of_replied_answer,
    message_of,
    names_of,
    press_of,
)
from db.models import TurnRow
from db.repositories.turns import FeedbackReason, Verdict

PREFIX: Final = "v:"
"""The beginning of the data of these buttons, `v:TURN:ACTION`; they have a lane of their own, see
`lane_of`."""
UP, DOWN, NONE = "up", "down", "none"
REASONS: Final[tuple[FeedbackReason, ...]] = get_args(FeedbackReason)
VERDICTS: Final[Mapping[str, Verdict | None]] = {
    UP: "liked",
    NONE: None,
    **dict.fromkeys((DOWN, *REASONS), "disliked"),
}
"""The new verdict after each action."""
REACTIONS: Final[Mapping[str, Verdict]] = {
    **dict.fromkeys("👍 ❤ 🔥 🥰 👏 🎉 🤩 🙏 👌 😍 💯 🍾 🏆 😘 🤗 ❤‍🔥 💘".split(), "liked"),
    **dict.fromkeys("👎 💩 🤮 🤬 😡 🖕".split(), "disliked"),
}
"""Reactions that are verdicts on an answer; of others nobody knows what they are about."""
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
    return (thumbs, *in_rows(choices, 2))


def verdict_in(reactions: Sequence[ReactionType]) -> Verdict | None:
    """Return the verdict of the last reaction that has one."""
    verdicts = (REACTIONS.get(getattr(one, "emoji", "")) for one in reversed(reactions))
    return next(filter(None, verdicts), None)


@dataclass(frozen=True, slots=True)
class RatingButtons:
    """Stores presses on `rating`, reactions and comments.

    A comment is masked before it is stored: later nobody knows the names of the people there.
    """

    conversation: Conversation
    masking: Masking = field(default_factory=Masking)

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers."""
        replies = filters.UpdateType.MESSAGE & filters.REPLY & filters.TEXT & ~filters.COMMAND
        return [
            CallbackQueryHandler(self.press, pattern=f"^{PREFIX}"),
            MessageReactionHandler(self.react),
            MessageHandler(replies, self.comment),
        ]

    async def press(self, update: Update, context: Context) -> None:
        """Store a rating, confirm it and show it on the buttons."""
        query, repository = press_of(update), self.conversation.repositories.turns
        number, action = parts_of(query, 2)
        turn = await self._turn(number) if action in VERDICTS else None
        message = await claim(query, turn and turn.user_id)
        if message is None or turn is None:
            return
        rated = await repository.rate(turn.turn_id, VERDICTS[action])
        if action in REASONS:
            rated = await repository.reason(turn.turn_id, action)
        words = "reason_noted" if action in REASONS else VERDICTS[action] or "taken_back"
        await acknowledge(query, translate(words))
        shown = rows_of(message)
        others = (row for row in shown if not any(key.data.startswith(PREFIX) for key in row))
        rows = (*others, *rating(turn.turn_id, rated))
        if rows != shown:
            await show_rows(message, rows)

    async def react(self, update: Update, context: Context) -> None:
        """Store a reaction as the rating of the user who asked; take it back with the reaction."""
        reaction, repositories = update.message_reaction, self.conversation.repositories
        if reaction is None or reaction.user is None:
            return
        before, now = verdict_in(reaction.old_reaction), verdict_in(reaction.new_reaction)
        turn = await repositories.turns.find_by_message(reaction.chat.id, reaction.message_id)
        if before == now or turn is None or turn.user_id != reaction.user.id:
            return
        if now is None and turn.verdict != before:
            return
        await repositories.turns.rate(turn.turn_id, now)

    async def comment(self, update: Update, context: Context) -> None:
        """Store a reply to an answer that its user dislikes as a comment, and answer the reply."""
        message, (chat_id, user_id) = message_of(update), chat_and_user_ids(update)
        if replied_id := id_of_replied_answer(message):
            turn = await self.conversation.repositories.turns.find_by_message(chat_id, replied_id)
            if turn and turn.user_id == user_id and turn.verdict == "disliked":
                masking = replace(self.masking, names=names_of(update))
                words = masking.text(message.text or "")
                await self.conversation.repositories.turns.comment(turn.turn_id, words)
        await self.conversation.answer_text(update)

    async def _turn(self, number: str) -> TurnRow | None:
        """Return the turn that a button names."""
        is_id = number.isdecimal() and len(number) <= MAX_DIGITS
        return await self.conversation.repositories.turns.get(int(number)) if is_id else None
