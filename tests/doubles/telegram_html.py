"""The formatting that Telegram accepts: HTML to plain text and entities, in UTF-16 units.

Stricter than Telegram where its leniency would hide a mistake of ours: a bare `&`, a tag that the
bot never sends and a link without `href` are errors here.
"""

import html
import re
from itertools import count

from tests.doubles.server import JsonObject

MAX_ENTITIES = 100
TYPES = {
    "b": "bold",
    "i": "italic",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
TOKEN = re.compile(
    r'<(?P<close>/?)(?P<tag>[a-z]+)(?: href="(?P<href>[^"]+)"|(?P<folded> expandable))?>'
    r"|(?P<entity>&(?:#x[0-9a-f]{1,6}|#\d{1,7}|lt|gt|amp|quot);)|(?P<wrong>[<&])|(?P<text>[^<&]+)"
)


class EntitiesError(ValueError):
    """The text is not what `parse_mode` promises; the message is Telegram's description."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Bad Request: can't parse entities: {what}")


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def parse_html(source: str) -> tuple[str, list[JsonObject]]:
    """The text that a person sees, trimmed, and its first 100 entities.

    Raises:
        EntitiesError: a tag is unknown, unclosed or wrongly nested, or `&` or `<` is not escaped.
    """
    text, numbers = "", count()
    opened: list[tuple[str, JsonObject]] = []
    entities: list[tuple[int, int, JsonObject]] = []
    for token in TOKEN.finditer(source):
        tag = token["tag"]
        if token["wrong"] or (tag and tag not in TYPES) or (tag == "a" and not _is_link(token)):
            raise EntitiesError(f'Unsupported "{token[0]}"')
        if not tag:
            text += html.unescape(token[0]) if token["entity"] else token[0]
        elif not token["close"]:
            opened.append((tag, _entity(token) | {"offset": utf16_length(text)}))
        elif not opened or opened[-1][0] != tag:
            raise EntitiesError(f'Unmatched end tag "{tag}"')
        else:
            entity = opened.pop()[1]
            length = utf16_length(text) - entity["offset"]
            entities.append((entity["offset"], -length, entity | {"length": length}))
    if opened:
        raise EntitiesError(f'Can\'t find end tag corresponding to start tag "{opened[-1][0]}"')
    ordered = sorted(entities, key=lambda found: (*found[:2], next(numbers)))
    return _trimmed(text, [entity for *_, entity in ordered])


def _is_link(token: re.Match[str]) -> bool:
    return bool(token["close"] or token["href"])


def _entity(token: re.Match[str]) -> JsonObject:
    kind = "expandable_blockquote" if token["folded"] else TYPES[token["tag"]]
    return {"type": kind} | ({"url": html.unescape(token["href"])} if token["href"] else {})


def _trimmed(text: str, entities: list[JsonObject]) -> tuple[str, list[JsonObject]]:
    shift = utf16_length(text) - utf16_length(text.lstrip())
    visible = text.strip()
    kept = []
    for entity in entities:
        first = max(entity["offset"] - shift, 0)
        last = min(entity["offset"] - shift + entity["length"], utf16_length(visible))
        if last > first:
            kept.append(entity | {"offset": first, "length": last - first})
    return visible, kept[:MAX_ENTITIES]
