"""The buttons that ask what somebody thinks of an answer, and what a press on each means. Pure.

A press says what is to be the case, not what is to change: a button that shows a verdict takes it
back. So a press that comes twice, or late, does no harm.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent.repositories import Feedback, FeedbackReason, Verdict
from bot.telegram.buttons import ShownRows
from bot.telegram.outgoing import Button, Rows, keyboard

KIND: Final = "v:"
"""What the data of these buttons begins with; a kind has a lane of its own, see `turns.lane_of`."""

UP, DOWN, NONE, WORDS = "up", "down", "none", "words"
PRESS: Final = re.compile(rf"{KIND}(\d{{1,18}}):(\w{{1,20}})", re.ASCII)

REASONS: Final[Mapping[FeedbackReason, str]] = {
    "wrong_wine": "Wrong wine",
    "not_what_i_asked": "Not what I asked",
    "wrong_facts": "Wrong facts",
    "tone": "Tone",
}
VERDICTS: Final[Mapping[str, Verdict | None]] = {
    UP: "liked",
    NONE: None,
    **dict.fromkeys((DOWN, WORDS, *REASONS), "disliked"),
}
IN_MY_WORDS: Final = "✍️ In my own words"

LIKED: Final = "Thank you!"
DISLIKED: Final = "I am sorry. What was wrong?"
TAKEN_BACK: Final = "Taken back."
NOTED: Final = "Thank you, that is noted."
ONE_MOMENT: Final = "One moment …"
TOO_OLD: Final = "That answer is too old to be rated."
NOT_YOURS: Final = "Only the person who asked can rate this answer."
TELL_ME: Final = "What was wrong? Please tell me in a reply to this message."
PLACEHOLDER: Final = "What was wrong?"
THANKS: Final = "Thank you, I have noted what you wrote."
CLOSED: Final = (
    "I cannot tell any more which answer that is about. Please press 👎 under the answer once more."
)


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
        return NOTED
    return {"liked": LIKED, "disliked": DISLIKED, None: TAKEN_BACK}[press.verdict]


def rating(turn_id: int, feedback: Feedback | None = None) -> Rows:
    """The buttons under the answer of a turn, with what is thought of it so far."""

    def button(label: str, action: str, *, chosen: bool = False) -> Button:
        return Button(f"{label} ✓" if chosen else label, f"{KIND}{turn_id}:{action}")

    verdict = feedback.verdict if feedback else None
    thumbs = (
        button("👍", NONE if verdict == "liked" else UP, chosen=verdict == "liked"),
        button("👎", NONE if verdict == "disliked" else DOWN, chosen=verdict == "disliked"),
    )
    if feedback is None or verdict != "disliked":
        return (thumbs,)
    choices = tuple(
        button(label, reason, chosen=feedback.reason == reason) for reason, label in REASONS.items()
    )
    return (thumbs, choices[:2], choices[2:], (button(IN_MY_WORDS, WORDS),))


def rated(rows: ShownRows, feedback: Feedback) -> ShownRows:
    """The buttons of a message where those that rate it show what is thought now."""
    others = tuple(row for row in rows if not any(_rates(each.callback_data) for each in row))
    shown = keyboard(rating(feedback.turn_id, feedback))
    return others + (shown.inline_keyboard if shown else ())


def _rates(data: object) -> bool:
    return isinstance(data, str) and data.startswith(KIND)
