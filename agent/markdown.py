"""The Markdown of replies, and how untrusted text is embedded in it.

Text from models, users, documents and the web is untrusted. `escape` makes such a text appear
literally. Only `format_link` makes links. Only the bot itself writes headings, bold type and notes.
"""

import unicodedata
from typing import Final
from urllib.parse import quote, quote_plus, unquote_plus, urlsplit

from agent.auto_links import find_auto_links
from agent.text import CharacterMap, pattern

_JOINERS: Final = "\u200c\u200d"
_FIRST_JOINER_SCRIPT: Final = "\u0590"
"""The first code point of the scripts and emoji in which joiners have a meaning."""
_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_VARIATION_SELECTORS: Final = (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0))
_BLANK_CHARS: Final = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0").union(
    map(chr, _VARIATION_SELECTORS)
)
"""Characters that are invisible, though their Unicode category is a visible one."""
_LINE_SEPARATORS: Final = "\v\f\x85\u2028\u2029"
_PRESENTATION_SELECTORS: Final = "\ufe0e\ufe0f"
"""Characters that select the text or emoji form of the symbol before them. After a letter they do
nothing."""

_WEB_SEARCH: Final = "https://duckduckgo.com/?q="
"""The address of a web search, without its query."""
MAX_LINK_CHARS: Final = 160

NOTE_SYMBOL: Final = "ⓘ"
"""The symbol before the bot's own notes, which untrusted text must not contain."""

_INLINE_ESCAPES: Final = {ord(char): f"\\{char}" for char in "\\`*_<"}
_LINE_START_MARKUP: Final = frozenset("#>~+-")
_ESCAPED: Final = pattern(r"\\([\\`*_<#>~+-])|`([^`]+)`")
"""A character behind its backslash, or a tag as code: "\\*", "`#wine`"."""
_NON_URL_CHAR: Final = pattern(r"[\s<>\"\\^`{|}]")
"""A character that an address has only percent-encoded."""


def _mark_invisible(char: str) -> str:
    """Return a character, or the placeholder if the character may be invisible."""
    if char in "\n\t":
        return char
    if unicodedata.category(char) in _INVISIBLE_CATEGORIES:
        return _PLACEHOLDER
    if char in _BLANK_CHARS or char in _PRESENTATION_SELECTORS:
        return _PLACEHOLDER
    return char


_PLACEHOLDER: Final = "\x00"
_WITHOUT_INVISIBLE: Final = CharacterMap(_mark_invisible)


def strip_invisible(text: str) -> str:
    """Return `text` without control, direction or zero-width characters, or lone surrogates.

    Joiners are kept in the scripts and emoji that need them. All line endings become line feeds.
    """
    # Nearly every text has no such character, so this is tested first.
    if _PLACEHOLDER not in text.translate(_WITHOUT_INVISIBLE):
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    visible = []
    before = " "
    for index, char in enumerate(lines):
        after = lines[index + 1 : index + 2] or " "
        visible.append(_visible_part(before, char, after))
        before = char
    return "".join(visible)


def _visible_part(before: str, char: str, after: str) -> str:
    """Return a character that is visible between its neighbours, or else a space or nothing."""
    if char in _JOINERS:
        is_visible = min(before, after) >= _FIRST_JOINER_SCRIPT
    elif char in _PRESENTATION_SELECTORS:
        is_visible = not before.isalpha()
    else:
        is_visible = _WITHOUT_INVISIBLE[ord(char)] != _PLACEHOLDER
    if is_visible:
        return char
    if char in _LINE_SEPARATORS:
        return " "
    return ""


def escape(text: str) -> str:
    """Return Markdown that shows `text` literally, without markup, notes or links.

    Tags become code here. The renderer defuses addresses but not tags, since bot commands are tags.
    """
    text = strip_invisible(text).replace(NOTE_SYMBOL, "")
    parts = []
    end = 0
    for link in find_auto_links(text):
        if link.kind == "tag":
            parts.append(_escape_markup(text[end : link.start]))
            parts.append(f"`{text[link.start : link.end]}`")
            end = link.end
    parts.append(_escape_markup(text[end:]))
    return "".join(parts)


def _escape_markup(text: str) -> str:
    escaped = text.translate(_INLINE_ESCAPES)
    if _LINE_START_MARKUP.isdisjoint(escaped):
        return escaped
    return "\n".join(map(_escape_line_start, escaped.split("\n")))


def _escape_line_start(line: str) -> str:
    begin = len(line) - len(line.lstrip(" \t"))
    if line[begin : begin + 1] not in _LINE_START_MARKUP:
        return line
    return f"{line[:begin]}\\{line[begin:]}"


def unescape(markdown: str) -> str:
    """Undo the escaping only; characters that `escape` removed stay removed."""
    return _ESCAPED.sub(lambda match: match[1] or match[2], markdown)


def build_search_address(query: str) -> str:
    """Return the address of a web search for a query."""
    return _WEB_SEARCH + quote_plus(query)


def get_link_text(url: str) -> str:
    """Return what is shown of a link: the query of a web search, else the domain.

    A query that looks like an address is not shown: it would hide where the link leads.
    """
    if url.startswith(_WEB_SEARCH):
        query = unquote_plus(url.removeprefix(_WEB_SEARCH))
        query = strip_invisible(query)[:MAX_LINK_CHARS]
        if query.strip() and not find_auto_links(query):
            return " ".join(query.split())
    return get_domain(url)


def format_link(url: str) -> str:
    """Return a link, of which the renderer shows `get_link_text`; "" if `url` is no web address."""
    visible = strip_invisible(url).strip()
    quoted = _NON_URL_CHAR.sub(lambda match: quote(match[0]), visible)
    if not get_domain(quoted):
        return ""
    return f"<{quoted}>"


def get_domain(url: str) -> str:
    """Return the domain without `www.`, or an empty string if `url` is not a web address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"}:
        return ""
    return host.removeprefix("www.")
