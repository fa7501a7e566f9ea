"""Handle ratings of answers: 👍 and 👎, reasons for a 👎, comments and reactions.

The data of a button name the rating after the press, whatever it was before. So a repeated or late
press does no harm. A press on the button that shows the current rating takes it back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from telegram import Message, ReactionType, Update
from telegram.ext import MessageReactionHandler, filters

from agent.i18n import translate
from agent.tracing.masking import Masking
from bot.telegram.buttons import acknowledge, get_button_rows, parse_id, split_data
from bot.telegram.chat import AnyHandler, ChatTurn, answer_text, on_message, on_press
from bot.telegram.messages import id_of_replied_answer, message_of, press_of
from bot.telegram.sender import Button, ButtonRows, in_rows
from db.changes.ratings import ExplainRating, RateTurn
from db.models import Verdict

PREFIX: Final = "v:"
"""The prefix of the data of rating buttons, `v:TURN:ACTION`.

Their presses have a queue of their own, so that they need not wait for an answer (see `lane_of`).
"""
CHOSEN: Final = " ✓"
"""Follows the label of the button that shows the current rating."""
UP: Final = "up"
DOWN: Final = "down"
NONE: Final = "none"
"""The action that takes a rating back."""
REASONS: Final = ("wrong_wine", "not_what_i_asked", "wrong_facts", "tone")
"""The reasons for a 👎. Each of them is an action, too."""
VERDICTS: Final[Mapping[str, Verdict | None]] = {
    UP: "liked",
    NONE: None,
    DOWN: "disliked",
    **dict.fromkeys(REASONS, "disliked"),
}
"""The verdict that each action sets."""
# Only reactions that clearly rate an answer are stored. Others, such as 🤔, are ignored.
LIKING_EMOJIS: Final = frozenset("👍 ❤ 🔥 🥰 👏 🎉 🤩 👌 😍 💯 🍾 🏆".split())
DISLIKING_EMOJIS: Final = frozenset("👎 💩 🤮 😡".split())


def rating_buttons(
    turn_id: int, verdict: Verdict | None = None, chosen_reason: str | None = None
) -> ButtonRows:
    """Return the rating buttons of a turn. If it was rated, they show the rating."""
    prefix = f"{PREFIX}{turn_id}:"
    up = Button("👍", f"{prefix}{UP}")
    down = Button("👎", f"{prefix}{DOWN}")
    if verdict == "liked":
        up = Button(f"👍{CHOSEN}", f"{prefix}{NONE}")
    if verdict != "disliked":
        return ((up, down),)
    down = Button(f"👎{CHOSEN}", f"{prefix}{NONE}")
    reasons = []
    for reason in REASONS:
        label = translate(f"reason_{reason}")
        if reason == chosen_reason:
            label += CHOSEN
        reasons.append(Button(label, f"{prefix}{reason}"))
    return ((up, down), *in_rows(reasons, 2))


def rating_handlers(masking: Masking) -> list[AnyHandler]:
    """Return the handlers of rating buttons, of reactions and of comments.

    `masking` masks a comment before it is stored, because later the names to mask are not known.
    """
    replies = (
        filters.UpdateType.MESSAGE & filters.REPLY & filters.TEXT & ~filters.COMMAND
    )
    return [
        on_press(PREFIX, _store_rating),
        MessageReactionHandler(_store_reaction),
        on_message(replies, partial(_store_comment, masking)),
    ]


async def _store_rating(update: Update, turn: ChatTurn) -> None:
    """Store a rating, confirm it and show it on the buttons."""
    query = press_of(update)
    message = query.message
    turn_id, action = split_data(query, 2)
    rated = await turn.repositories.turns.get(parse_id(turn_id))
    if rated is None or action not in VERDICTS or not isinstance(message, Message):
        await acknowledge(query, translate("button_too_old"))
        return
    if rated.user_id != query.from_user.id:
        await acknowledge(query, translate("not_yours"))
        return
    verdict = VERDICTS[action]
    turn.change(RateTurn(rated.turn_id, verdict))
    reason: str | None = None
    if action in REASONS:
        reason = action
        turn.change(ExplainRating(rated.turn_id, "reason", reason))
    elif verdict == rated.verdict:
        # An earlier reason stays as long as the verdict does.
        reason = rated.reason
    await acknowledge(query, _confirm(action))
    rows = _rows_without_rating(message)
    rows += rating_buttons(rated.turn_id, verdict, reason)
    turn.replace_buttons(message, tuple(rows))


def _confirm(action: str) -> str:
    """Return the text that confirms an action."""
    if action in REASONS:
        return translate("reason_noted")
    verdict = VERDICTS[action]
    if verdict is None:
        return translate("taken_back")
    return translate(verdict)


def _rows_without_rating(message: Message) -> list[tuple[Button, ...]]:
    """Return the rows of buttons under a message, without the rating buttons."""
    rows = []
    for row in get_button_rows(message):
        # Rating buttons share no row with others.
        if not row[0].data.startswith(PREFIX):
            rows.append(row)
    return rows


async def _store_reaction(update: Update, turn: ChatTurn) -> None:
    """Store a reaction to an answer as a rating. If the reaction is removed, take it back.

    Only reactions of the user who asked count.
    """
    reaction = update.message_reaction
    if reaction is None or reaction.user is None:
        return
    old_verdict = _last_verdict(reaction.old_reaction)
    new_verdict = _last_verdict(reaction.new_reaction)
    if old_verdict == new_verdict:
        return
    turns = turn.repositories.turns
    rated = await turns.find_by_message(reaction.chat.id, reaction.message_id)
    if rated is None or rated.user_id != reaction.user.id:
        return
    was_rated_otherwise = rated.verdict != old_verdict
    if new_verdict is None and was_rated_otherwise:
        # A button has changed the rating since the reaction, so the rating stays.
        return
    turn.change(RateTurn(rated.turn_id, new_verdict))


def _last_verdict(reactions: Sequence[ReactionType]) -> Verdict | None:
    """Return the verdict of the last reaction that rates an answer, or None."""
    for reaction in reversed(reactions):
        # Reactions of other kinds, such as custom emojis, have no `emoji`.
        emoji = getattr(reaction, "emoji", "")
        if emoji in LIKING_EMOJIS:
            return "liked"
        if emoji in DISLIKING_EMOJIS:
            return "disliked"
    return None


async def _store_comment(masking: Masking, update: Update, turn: ChatTurn) -> None:
    """Answer a reply to an answer. If the user dislikes that answer, store the reply as a comment.

    Replies to other messages are only answered.
    """
    message = message_of(update)
    replied_id = id_of_replied_answer(message)
    if replied_id is not None:
        turns = turn.repositories.turns
        rated = await turns.find_by_message(turn.chat_id, replied_id)
        if rated and rated.user_id == turn.user_id and rated.verdict == "disliked":
            masking_names = replace(masking, names=turn.names)
            comment = masking_names.mask_text(message.text or "")
            turn.change(ExplainRating(rated.turn_id, "comment", comment))
    await answer_text(update, turn)
