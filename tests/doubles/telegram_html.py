"""The formatting that Telegram accepts: HTML to plain text and entities, in UTF-16 units.

A little stricter than Telegram where its leniency would hide a mistake of ours: a bare `&`, an
unknown named entity and a link without `href` are errors here, and plain text there.
"""

import html
import re
from dataclasses import dataclass, field, replace

from tests.doubles.server import JsonObject

MAX_ENTITIES = 100

TYPES = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "tg-emoji": "custom_emoji",
}

TOKEN = re.compile(
    r"""
      <(?P<close>/?)(?P<tag>[a-z][a-z0-9-]*)
        (?P<attributes>(?:\s+[\w-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>=]+))?)*)\s*>
    | (?P<entity>&(?:\#x[0-9a-f]{1,6}|\#\d{1,7}|lt|gt|amp|quot);)
    | (?P<wrong>[<&])
    | (?P<text>[^<&]+)
    """,
    re.IGNORECASE | re.VERBOSE,
)
ATTRIBUTE = re.compile(r"""([\w-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>=]+)))?""")


class EntitiesError(ValueError):
    """The text is not what `parse_mode` promises; the message is Telegram's description."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Bad Request: can't parse entities: {what}")


@dataclass(frozen=True)
class Entity:
    """One formatted stretch of a text; `offset` and `length` in UTF-16 units."""

    type: str
    offset: int
    length: int = 0
    extra: JsonObject = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """As a MessageEntity of the Bot API."""
        return {"type": self.type, "offset": self.offset, "length": self.length} | self.extra


def utf16_length(text: str) -> int:
    """The length of `text` as Telegram counts it."""
    return len(text.encode("utf-16-le")) // 2


def parse_html(source: str) -> tuple[str, list[JsonObject]]:
    """The text that a person sees, trimmed, and its first 100 entities.

    Raises:
        EntitiesError: a tag is unknown, unclosed or wrongly nested, or `&` or `<` is not escaped.
    """
    text, units = "", 0
    open_tags: list[tuple[str, Entity]] = []
    entities: list[Entity] = []
    for token in TOKEN.finditer(source):
        at = len(source[: token.start()].encode())
        if token["wrong"]:
            raise EntitiesError(f'Unsupported "{token["wrong"]}" at byte offset {at}')
        if not token["tag"]:
            piece = html.unescape(token.group()) if token["entity"] else token.group()
            text += piece
            units += utf16_length(piece)
        elif token["close"]:
            started = _matching(token["tag"].lower(), open_tags, at)
            entities.append(replace(started, length=units - started.offset))
        else:
            tag = token["tag"].lower()
            open_tags.append((tag, _opened(tag, token["attributes"], at, units)))
    if open_tags:
        tag = open_tags[-1][0]
        raise EntitiesError(f'Can\'t find end tag corresponding to start tag "{tag}"')
    return _trimmed(text, entities)


def _opened(tag: str, source: str, at: int, units: int) -> Entity:
    if tag not in TYPES:
        raise EntitiesError(f'Unsupported start tag "{tag}" at byte offset {at}')
    attributes = {
        name.lower(): html.unescape(double or single or bare)
        for name, double, single, bare in ATTRIBUTE.findall(source)
    }
    required = {"a": "href", "tg-emoji": "emoji-id"}.get(tag)
    if required and not attributes.get(required):
        raise EntitiesError(f'Tag "{tag}" must have attribute "{required}" at byte offset {at}')
    if tag == "span" and attributes.get("class") != "tg-spoiler":
        raise EntitiesError(f'Tag "span" must have class "tg-spoiler" at byte offset {at}')
    if tag == "blockquote" and "expandable" in attributes:
        return Entity("expandable_blockquote", units)
    extra = {"a": {"url": attributes.get("href")}}
    extra["tg-emoji"] = {"custom_emoji_id": attributes.get("emoji-id")}
    return Entity(TYPES[tag], units, extra=extra.get(tag, {}))


def _matching(tag: str, open_tags: list[tuple[str, Entity]], at: int) -> Entity:
    if not open_tags:
        raise EntitiesError(f"Unexpected end tag at byte offset {at}")
    expected, entity = open_tags.pop()
    if tag != expected:
        raise EntitiesError(
            f'Unmatched end tag at byte offset {at}, expected "</{expected}>", found "</{tag}>"'
        )
    return entity


def _trimmed(text: str, entities: list[Entity]) -> tuple[str, list[JsonObject]]:
    shift = utf16_length(text) - utf16_length(text.lstrip())
    visible = text.strip()
    end = utf16_length(visible)
    kept = []
    for entity in sorted(entities, key=lambda one: (one.offset, -one.length)):
        first = max(entity.offset - shift, 0)
        last = min(entity.offset - shift + entity.length, end)
        if last > first:
            kept.append(replace(entity, offset=first, length=last - first).to_json())
    return visible, kept[:MAX_ENTITIES]
