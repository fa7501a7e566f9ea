"""Messages that were sent in one go, as the one message they are. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]


def one_message(messages: Sequence[Message]) -> dict[str, Any]:
    """The last of these messages, with the words of all.

    Whom they address is kept: who is mentioned, and the message that the first reply was to.
    """
    words, entities = _words(messages)
    message = dict(messages[-1]) | {"text": words, "entities": entities}
    if not words:
        del message["text"], message["entities"]
    replied = [each["reply_to_message"] for each in messages if "reply_to_message" in each]
    return message | ({"reply_to_message": replied[0]} if replied else {})


def _words(messages: Sequence[Message]) -> tuple[str, list[dict[str, Any]]]:
    """The words of messages, a line each, and the entities in them."""
    words, entities = "", list[dict[str, Any]]()
    for each in messages:
        said = each.get("text") or each.get("caption")
        if not said:
            continue
        words += "\n" if words else ""
        marks = each.get("entities" if each.get("text") else "caption_entities", ())
        start = _units(words)
        entities += [{**mark, "offset": mark["offset"] + start} for mark in marks]
        words += said
    return words, entities


def _units(text: str) -> int:
    """How long a text is for Telegram: UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
