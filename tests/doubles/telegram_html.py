"""Parse HTML as Telegram does, to plain text and entities, in UTF-16 units.

The parser is stricter than Telegram, to find mistakes of the bot: an unescaped `&`, a tag that the
bot never sends and a link without `href` are errors.
"""

import html
import re

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
    r'<(?P<close>/?)(?P<tag>[a-z]+)(?: href="(?P<href>[^"]+)"|(?P<expandable> expandable))?>'
    r"|(?P<entity>&(?:#x[0-9a-f]{1,6}|#\d{1,7}|lt|gt|amp|quot);)|(?P<unescaped>[<&])|(?P<text>[^<&]+)"
)


class EntitiesError(ValueError):
    """The text is not valid for its `parse_mode`; the message is Telegram's description."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"Bad Request: can't parse entities: {problem}")


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def parse_html(source: str) -> tuple[str, list[JsonObject]]:
    """Return the text that a user sees, without surrounding whitespace, and its first 100 entities.

    Raises:
        EntitiesError: a tag is unknown, unclosed or wrongly nested, or `&` or `<` is not escaped.
    """
    text = ""
    open_tags: list[tuple[str, JsonObject]] = []
    entities: list[tuple[int, int, JsonObject]] = []
    for token in TOKEN.finditer(source):
        tag = token["tag"]
        if (
            token["unescaped"]
            or (tag and tag not in TYPES)
            or (tag == "a" and not _is_link(token))
        ):
            raise EntitiesError(f'Unsupported "{token[0]}"')
        if not tag:
            text += html.unescape(token[0]) if token["entity"] else token[0]
        elif not token["close"]:
            open_tags.append((tag, _entity(token) | {"offset": utf16_length(text)}))
        elif not open_tags or open_tags[-1][0] != tag:
            raise EntitiesError(f'Unmatched end tag "{tag}"')
        else:
            entity = open_tags.pop()[1]
            length = utf16_length(text) - entity["offset"]
            entities.append((entity["offset"], -length, entity | {"length": length}))
    if open_tags:
        raise EntitiesError(
            f'Can\'t find end tag corresponding to start tag "{open_tags[-1][0]}"'
        )
    ordered = sorted(entities, key=lambda entry: entry[:2])
    return _trimmed(text, [entity for *_, entity in ordered])


def _is_link(token: re.Match[str]) -> bool:
    return bool(token["close"] or token["href"])


def _entity(token: re.Match[str]) -> JsonObject:
    kind = "expandable_blockquote" if token["expandable"] else TYPES[token["tag"]]
    return {"type": kind} | (
        {"url": html.unescape(token["href"])} if token["href"] else {}
    )


def _trimmed(text: str, entities: list[JsonObject]) -> tuple[str, list[JsonObject]]:
    shift = utf16_length(text) - utf16_length(text.lstrip())
    trimmed_text = text.strip()
    trimmed_entities = []
    for entity in entities:
        start = max(entity["offset"] - shift, 0)
        end = min(
            entity["offset"] - shift + entity["length"], utf16_length(trimmed_text)
        )
        if end > start:
            trimmed_entities.append(entity | {"offset": start, "length": end - start})
    return trimmed_text, trimmed_entities[:MAX_ENTITIES]
