"""Make the history of a conversation: its messages, with the wines that each answer showed."""

import json
from collections.abc import Sequence
from typing import Final

from agent.engine.messages import Message
from agent.markdown import plain
from agent.sommelier.cards import TITLE
from agent.text import pattern
from agent.turn import StoredMessage

SHOWN_IDS: Final = pattern(r"\[wine ids: ([^\]\n]*)\]\s*\Z")


def with_ids_shown(text: str, wine_ids: Sequence[str]) -> str:
    """Return a message as it is remembered, with the ids of the wines that it shows."""
    return f"{text}\n\n[wine ids: {', '.join(wine_ids)}]" if wine_ids else text


def ids_shown_in(text: str) -> tuple[str, ...]:
    """Return the ids that `with_ids_shown` put at the end of a message."""
    found = SHOWN_IDS.search(text)
    return tuple(filter(None, map(str.strip, found[1].split(",")))) if found else ()


def messages_for_model(stored: Sequence[StoredMessage]) -> list[Message]:
    """Return stored messages as the model reads them, with the ids of the wines that they showed.

    Blank messages are left out: an empty content is a 400 with some servers.
    """
    return [
        {"role": message.role, "content": with_ids_shown(message.content, message.wine_ids)}
        for message in stored
        if message.content.strip()
    ]


def to_model_message(message: Message) -> Message:
    """Return a message of the history; an answer as the JSON that a model is to write.

    Of a card only the id of its wine is kept, or the name of a wine that was read.
    """
    if message["role"] != "assistant":
        return message
    content = str(message["content"])
    shown, parts = ids_shown_in(content), SHOWN_IDS.sub("", content).split("\n\n")
    titles = {place: found[1] for place, part in enumerate(parts) if (found := TITLE.search(part))}
    first, behind = min(titles, default=len(parts)), max(titles, default=len(parts)) + 1
    names = () if shown else titles.values()
    intro = plain("\n\n".join((*parts[:first], *names))).strip()
    answer: dict[str, object] = {"response_type": "informational", "intro": intro}
    if shown:
        wines = [{"wine_id": wine_id} for wine_id in shown]
        answer |= {"response_type": "recommendation", "wines": wines}
    if closing := plain("\n\n".join(parts[behind:])).strip():
        answer["closing"] = closing
    return {**message, "content": json.dumps(answer, ensure_ascii=False)}
