"""What is remembered of a conversation, and the window of it that a model is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent.engine.messages import Message

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a conversation as it is remembered: text, and the wines it recommended.

    `turn_id` says of which turn, where that is kept.
    """

    role: Role
    content: str
    wine_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    turn_id: int | None = None


def window(stored: Sequence[StoredMessage]) -> list[Message]:
    """Stored messages as a model is shown them; ids let a follow-up look a shown wine up again.

    Blank ones are left out: an empty content is a 400 with some servers.
    """
    return [
        {"role": message.role, "content": _with_wine_ids(message)}
        for message in stored
        if message.content.strip()
    ]


def _with_wine_ids(message: StoredMessage) -> str:
    if not message.wine_ids:
        return message.content
    return f"{message.content}\n\n[wine ids: {', '.join(message.wine_ids)}]"
