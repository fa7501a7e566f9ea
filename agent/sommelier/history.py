"""Make the history of a conversation: what was said, with the wines that each answer showed."""

import json
from collections.abc import Sequence
from typing import Final

from agent.conversation import StoredMessage
from agent.engine.messages import Message
from agent.markdown import plain
from agent.sommelier.cards import FIRST_CARD
from agent.text import pattern

SHOWN_IDS: Final = pattern(r"\[wine ids: ([^\]\n]*)\]\s*\Z")


def with_ids_shown(text: str, wine_ids: Sequence[str]) -> str:
    """Return a message as it is remembered, with the ids of the wines that it shows."""
    return f"{text}\n\n[wine ids: {', '.join(wine_ids)}]" if wine_ids else text


def ids_shown_in(text: str) -> tuple[str, ...]:
    """Return the ids that `with_ids_shown` put at the end of a message."""
    found = SHOWN_IDS.search(text)
    return tuple(each.strip() for each in found[1].split(",") if each.strip()) if found else ()


def window(stored: Sequence[StoredMessage]) -> list[Message]:
    """Return stored messages as a history, each with the ids of the wines that it showed.

    Blank ones are left out: an empty content is a 400 with some servers.
    """
    return [
        {"role": message.role, "content": with_ids_shown(message.content, message.wine_ids)}
        for message in stored
        if message.content.strip()
    ]


def as_written(message: Message) -> Message:
    """Return a message of the history; an answer as the JSON that a model is to write.

    Of an answer that showed wines the words before the cards, and the ids, are kept.
    """
    if message["role"] != "assistant":
        return message
    content = str(message["content"])
    shown, text = ids_shown_in(content), SHOWN_IDS.sub("", content)
    intro = plain(f"\n\n{text}".partition(FIRST_CARD)[0] if shown else text).strip()
    answer: dict[str, object] = {"response_type": "informational", "intro": intro}
    if shown:
        wines = [{"wine_id": wine_id} for wine_id in shown]
        answer |= {"response_type": "recommendation", "wines": wines}
    return {**message, "content": json.dumps(answer, ensure_ascii=False)}
