"""Messages of the bot with their buttons, where they go, and what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

MAX_DATA: Final = 64
"""Bytes of the data of a button in Telegram."""


class Button(NamedTuple):
    """A button under a message; a press returns `data`, at most `MAX_DATA` bytes of UTF-8."""

    label: str
    data: str


ButtonRows = tuple[tuple[Button, ...], ...]
"""Buttons side by side in rows."""


def in_rows(buttons: Sequence[Button], count: int) -> ButtonRows:
    """Return buttons in rows of so many."""
    return tuple(tuple(buttons[at : at + count]) for at in range(0, len(buttons), count))


DeliveryError = Literal["unreachable", "rejected", "ambiguous", "rate_limited", "network"]


@dataclass(frozen=True, slots=True)
class Destination:
    """The chat and topic of an answer, and the message it replies to, or ours that it replaces."""

    chat_id: int
    thread_id: int | None = None
    reply_to: int | None = None
    edits: int | None = None

    @property
    def is_group(self) -> bool:
        """Return whether the chat is a group."""
        return self.chat_id < 0

    @property
    def next(self) -> "Destination":
        """Return the destination of the messages that follow, which reply to nothing."""
        return replace(self, reply_to=None, edits=None)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of sending an answer: message ids in order, number of requests, last error.

    `unreachable`: the user blocked the bot, or the chat is gone. `rejected`: Telegram refused the
    message itself. `ambiguous`: a message may or may not have arrived. `rate_limited`: Telegram
    kept asking to wait. `network`: Telegram could not be reached. Sending took from `began_ns` to
    `ended_ns` (since the epoch).
    """

    message_ids: tuple[int, ...] = ()
    tries: int = 0
    error: DeliveryError | None = None
    began_ns: int = field(default=0, compare=False)
    ended_ns: int = field(default=0, compare=False)

    def __add__(self, later: "Delivery") -> "Delivery":
        return Delivery(
            self.message_ids + later.message_ids,
            self.tries + later.tries,
            later.error or self.error,
            self.began_ns or later.began_ns,
            later.ended_ns or self.ended_ns,
        )
