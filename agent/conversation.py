"""The messages of a conversation, as they are remembered."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a conversation as it is remembered: text, and the wines it recommended.

    `turn_id` says of which turn, `user_id` whose turn that was, where that is kept; `thread_id` is
    the topic of the chat, 0 without topics. `attachment` is what was read from its pictures, as
    JSON.
    """

    role: Role
    content: str
    wine_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    turn_id: int | None = None
    thread_id: int = 0
    user_id: int | None = None
    attachment: str = ""
