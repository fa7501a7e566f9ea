"""The Markdown of replies, and how untrusted text is embedded in it.

Text from models, users, documents and the web is untrusted. `escape` makes such a text appear
literally. Only `format_link` makes links. Only the bot itself writes headings, bold type and notes.
"""

import unicodedata
from typing import Final
from urllib.parse import quote, quote_plus, unquote_plus, urlsplit

from agent.auto_links import find_auto_links
from agent.text import CharacterMap, Match, pattern

_JOINERS: Final = "\u200c\u200d"
_FIRST_JOINER_SCRIPT: Final = "\u0590"
"""The first code point of the scripts and emoji in which joiners have a meaning."""
_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_VARIATION_SELECTORS: Final = (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0))
"""The code points of the selectors, except `_PRESENTATION_SELECTORS`."""
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
"""The part of a query that is shown as the text of its link."""

NOTE_SYMBOL: Final = "ⓘ"
"""The symbol before the bot's own notes, which untrusted text must not contain."""

_INLINE_MARKUP: Final = "\\`*_<"
_INLINE_ESCAPES: Final = str.maketrans({char: f"\\{char}" for char in _INLINE_MARKUP})
_LINE_START_MARKUP: Final = frozenset("#>~+-")
"""Characters that are markup only at the beginning of a line."""
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
        visible_part = _keep_visible(before, char, after)
        visible.append(visible_part)
        before = char
    return "".join(visible)


def _keep_visible(
    before: str,
    char: str,
    after: str,
) -> str:
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
    previous_end = 0
    for link in find_auto_links(text):
        if link.kind != "tag":
            continue
        text_before = text[previous_end : link.start]
        tag = text[link.start : link.end]
        parts += [_escape_markup(text_before), f"`{tag}`"]
        previous_end = link.end
    parts.append(_escape_markup(text[previous_end:]))
    return "".join(parts)


def _escape_markup(text: str) -> str:
    escaped = text.translate(_INLINE_ESCAPES)
    if _LINE_START_MARKUP.isdisjoint(escaped):
        return escaped
    lines = escaped.split("\n")
    return "\n".join(map(_escape_line_start, lines))


def _escape_line_start(line: str) -> str:
    """Return a line with a backslash before the markup with which it begins, if it does."""
    content = line.lstrip(" \t")
    if content[:1] not in _LINE_START_MARKUP:
        return line
    indent = line.removesuffix(content)
    return f"{indent}\\{content}"


def unescape(markdown: str) -> str:
    """Undo the escaping. Characters that `escape` removed stay removed."""
    return _ESCAPED.sub(_unescape_match, markdown)


def _unescape_match(match: Match) -> str:
    char, tag = match.groups()
    return char or tag


def build_search_address(query: str) -> str:
    """Return the address of a web search for a query."""
    return _WEB_SEARCH + quote_plus(query)


def get_link_text(url: str) -> str:
    """Return the visible text of a link: the query of a web search, or else the domain.

    A query that looks like an address is not shown: it would hide where the link leads.
    """
    if url.startswith(_WEB_SEARCH):
        query = unquote_plus(url.removeprefix(_WEB_SEARCH))
        query = strip_invisible(query)[:MAX_LINK_CHARS]
        if query.strip() and not find_auto_links(query):
            return " ".join(query.split())
    return get_domain(url)


def format_link(url: str) -> str:
    """Return a link, or "" if `url` is no web address. The renderer shows its `get_link_text`."""
    visible = strip_invisible(url).strip()
    quoted = _NON_URL_CHAR.sub(_quote_match, visible)
    if not get_domain(quoted):
        return ""
    return f"<{quoted}>"


def _quote_match(match: Match) -> str:
    return quote(match[0])


def get_domain(url: str) -> str:
    """Return the domain without `www.`, or "" if `url` is not a web address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"}:
        return ""
    return host.removeprefix("www.")
