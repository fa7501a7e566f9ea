"""Ratings of answers: 👍 and 👎, reasons, comments in the user's own words, and reactions.

A button names the new rating, not a change of it: one that shows the current rating takes it back.
So a press that comes twice, or late, does no harm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from telegram import ReactionType, Update
from telegram.ext import MessageReactionHandler, filters

from agent.i18n import translate
from agent.tracing.masking import Masking
from bot.telegram.buttons import acknowledge, as_id, claim, parts_of, rows_of, show_rows
from bot.telegram.conversation import AnyHandler, Conversation, answer_text, on_message, on_press
from bot.telegram.messages import (
    chat_and_user_ids,
    id_of_replied_answer,
    message_of,
    names_of,
    press_of,
)
from bot.telegram.sender import Button, ButtonRows, in_rows
from db.models import TurnRow
from db.repositories.turns import Verdict

PREFIX: Final = "v:"
"""The beginning of the data of these buttons, `v:TURN:ACTION`; they have a lane of their own, see
`lane_of`."""
UP, DOWN, NONE = "up", "down", "none"
REASONS: Final = ("wrong_wine", "not_what_i_asked", "wrong_facts", "tone")
VERDICTS: Final[Mapping[str, Verdict | None]] = {
    UP: "liked",
    NONE: None,
    **dict.fromkeys((DOWN, *REASONS), "disliked"),
}
"""The new verdict after each action."""
REACTIONS: Final[Mapping[str, Verdict]] = {
    **dict.fromkeys("👍 ❤ 🔥 🥰 👏 🎉 🤩 👌 😍 💯 🍾 🏆".split(), "liked"),
    **dict.fromkeys("👎 💩 🤮 😡".split(), "disliked"),
}
"""Reactions that are verdicts on an answer; of others nobody knows what they are about."""


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


def rating_handlers(masking: Masking) -> list[AnyHandler]:
    """Return the handlers of presses on `rating`, of reactions and of comments.

    A comment is masked before it is stored: later nobody knows the names of the people there.
    """
    replies = filters.UpdateType.MESSAGE & filters.REPLY & filters.TEXT & ~filters.COMMAND
    return [
        on_press(PREFIX, _press),
        MessageReactionHandler(_react),
        on_message(replies, partial(_comment, masking)),
    ]


async def _press(update: Update, conversation: Conversation) -> None:
    """Store a rating, confirm it and show it on the buttons."""
    query, turns = press_of(update), conversation.repositories.turns
    number, action = parts_of(query, 2)
    turn = await turns.get(as_id(number)) if action in VERDICTS else None
    message = await claim(query, turn and turn.user_id, None)
    if message is None or turn is None:
        return
    rated = await turns.rate(turn.turn_id, VERDICTS[action])
    if action in REASONS:
        rated = await turns.explain(turn.turn_id, "reason", action)
    words = "reason_noted" if action in REASONS else VERDICTS[action] or "taken_back"
    await acknowledge(query, translate(words))
    others = (row for row in rows_of(message) if not row[0].data.startswith(PREFIX))
    await show_rows(message, (*others, *rating(turn.turn_id, rated)))


async def _react(update: Update, conversation: Conversation) -> None:
    """Store a reaction as the rating of the user who asked; take it back with the reaction."""
    reaction, turns = update.message_reaction, conversation.repositories.turns
    if reaction is None or reaction.user is None:
        return
    before, now = verdict_in(reaction.old_reaction), verdict_in(reaction.new_reaction)
    turn = await turns.find_by_message(reaction.chat.id, reaction.message_id)
    if before == now or turn is None or turn.user_id != reaction.user.id:
        return
    if now is not None or turn.verdict == before:
        await turns.rate(turn.turn_id, now)


async def _comment(masking: Masking, update: Update, conversation: Conversation) -> None:
    """Store a reply to an answer that its user dislikes as a comment, and answer the reply."""
    message, (chat_id, user_id) = message_of(update), chat_and_user_ids(update)
    turns = conversation.repositories.turns
    if replied_id := id_of_replied_answer(message):
        turn = await turns.find_by_message(chat_id, replied_id)
        if turn and turn.user_id == user_id and turn.verdict == "disliked":
            masking = replace(masking, names=names_of(update))
            comment = masking.text(message.text or "")
            await turns.explain(turn.turn_id, "comment", comment)
    await answer_text(update, conversation)
