"""Handle ratings of answers: 👍 and 👎, reasons for a 👎, comments and reactions.

The data of a button name the new rating, not a change to it, so a repeated or late press does no
harm. The button that shows the current rating removes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from telegram import ReactionType, Update
from telegram.ext import MessageReactionHandler, filters

from agent.i18n import translate
from agent.tracing.masking import Masking
from bot.telegram.buttons import (
    acknowledge,
    claim_press,
    get_button_rows,
    parse_id,
    replace_buttons,
    split_data,
)
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
"""The prefix of the data of rating buttons, `v:TURN:ACTION`. `lane_of` gives their presses a queue
of their own."""
UP, DOWN, NONE = "up", "down", "none"
REASONS: Final = ("wrong_wine", "not_what_i_asked", "wrong_facts", "tone")
VERDICTS: Final[Mapping[str, Verdict | None]] = {
    UP: "liked",
    NONE: None,
    **dict.fromkeys((DOWN, *REASONS), "disliked"),
}
"""The verdict that each action sets."""
REACTIONS: Final[Mapping[str, Verdict]] = {
    **dict.fromkeys("👍 ❤ 🔥 🥰 👏 🎉 🤩 👌 😍 💯 🍾 🏆".split(), "liked"),
    **dict.fromkeys("👎 💩 🤮 😡".split(), "disliked"),
}
"""Reactions that clearly rate an answer; others are ignored."""


def rating_buttons(turn_id: int, turn: TurnRow | None = None) -> ButtonRows:
    """Return the rating buttons of a turn, which show its rating if it has one."""

    def button(label: str, action: str, *, is_chosen: bool = False) -> Button:
        return Button(f"{label} ✓" if is_chosen else label, f"{PREFIX}{turn_id}:{action}")

    verdict = turn.verdict if turn else None
    thumbs = (
        button("👍", NONE if verdict == "liked" else UP, is_chosen=verdict == "liked"),
        button("👎", NONE if verdict == "disliked" else DOWN, is_chosen=verdict == "disliked"),
    )
    if turn is None or verdict != "disliked":
        return (thumbs,)
    reasons = [
        button(translate(f"reason_{reason}"), reason, is_chosen=turn.reason == reason)
        for reason in REASONS
    ]
    return (thumbs, *in_rows(reasons, 2))


def _last_verdict(reactions: Sequence[ReactionType]) -> Verdict | None:
    """Return the verdict of the last reaction that has one; None if none has."""
    emojis = (getattr(reaction, "emoji", "") for reaction in reversed(reactions))
    return next((REACTIONS[emoji] for emoji in emojis if emoji in REACTIONS), None)


def rating_handlers(masking: Masking) -> list[AnyHandler]:
    """Return the handlers of rating buttons, of reactions and of comments.

    `masking` masks a comment before it is stored: only then are the names in the chat known.
    """
    replies = filters.UpdateType.MESSAGE & filters.REPLY & filters.TEXT & ~filters.COMMAND
    return [
        on_press(PREFIX, _store_rating),
        MessageReactionHandler(_store_reaction),
        on_message(replies, partial(_store_comment, masking)),
    ]


async def _store_rating(update: Update, conversation: Conversation) -> None:
    """Store a rating, confirm it and show it on the buttons."""
    query, turns = press_of(update), conversation.repositories.turns
    turn_id, action = split_data(query, 2)
    turn = await turns.get(parse_id(turn_id)) if action in VERDICTS else None
    message = await claim_press(query, turn.user_id if turn else None, None)
    if message is None or turn is None:
        return
    rated_turn = await turns.rate(turn.turn_id, VERDICTS[action])
    if action in REASONS:
        rated_turn = await turns.explain(turn.turn_id, "reason", action)
    confirmation = "reason_noted" if action in REASONS else VERDICTS[action] or "taken_back"
    await acknowledge(query, translate(confirmation))
    others = (row for row in get_button_rows(message) if not row[0].data.startswith(PREFIX))
    await replace_buttons(message, (*others, *rating_buttons(turn.turn_id, rated_turn)))


async def _store_reaction(update: Update, conversation: Conversation) -> None:
    """Store the reaction of the user who asked as a rating, or remove it with the reaction."""
    reaction, turns = update.message_reaction, conversation.repositories.turns
    if reaction is None or reaction.user is None:
        return
    old, new = _last_verdict(reaction.old_reaction), _last_verdict(reaction.new_reaction)
    turn = await turns.find_by_message(reaction.chat.id, reaction.message_id)
    if old == new or turn is None or turn.user_id != reaction.user.id:
        return
    # Removing a reaction leaves a rating that a button changed since.
    if new is not None or turn.verdict == old:
        await turns.rate(turn.turn_id, new)


async def _store_comment(masking: Masking, update: Update, conversation: Conversation) -> None:
    """Store a user's reply to an answer they dislike as a comment, then answer the reply."""
    message, (chat_id, user_id) = message_of(update), chat_and_user_ids(update)
    turns = conversation.repositories.turns
    if replied_id := id_of_replied_answer(message):
        turn = await turns.find_by_message(chat_id, replied_id)
        if turn and turn.user_id == user_id and turn.verdict == "disliked":
            masking = replace(masking, names=names_of(update))
            comment = masking.text(message.text or "")
            await turns.explain(turn.turn_id, "comment", comment)
    await answer_text(update, conversation)
