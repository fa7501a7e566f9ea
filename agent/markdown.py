"""The Markdown of replies, and safe embedding of untrusted text in it. No I/O.

Text from models, users, documents and the web is untrusted: `escape` makes it appear literally.
Only `format_link` makes links, and only the bot itself writes headings, bold type and notes.
"""

import unicodedata
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple
from urllib.parse import quote, urlsplit

from agent.text import pattern

_JOINERS: Final = "\u200c\u200d"
_FIRST_JOINER_SCRIPT: Final = "\u0590"
"""The first code point of the scripts and emoji that use joiners."""
_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_BLANK_CHARS: Final = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0))
}
"""Characters that are invisible, though their Unicode category is a visible one."""
_PRESENTATION_SELECTORS: Final = "\ufe0e\ufe0f"
"""These select the text or emoji form of the preceding symbol, and do nothing after a letter."""

NOTE_SYMBOL: Final = "ⓘ"
"""The symbol before the bot's own notes, which untrusted text must not contain."""

MIN_PHONE_DIGITS: Final = 7
MIN_PHONE_DIGITS_WITHOUT_PLUS: Final = 9
_NON_SPACES: Final = pattern(r"\S+")
_ADDRESS: Final = pattern(
    r"(?i)://|@[\p{L}\p{N}]"  # "https://x", "@name"
    r"|[^\s\p{Po}\p{Ps}\p{Pe}\p{Pi}\p{Pf}]\.(?:\p{L}{2}|xn--)"  # "wine.com"
    r"|[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"  # "10.0.0.1"
    r"|(?:\A|\W)(?:tg|ton|mailto|tel|sms|geo|javascript|data):[\p{L}\p{N}/]?"  # "mailto:x"
)
# "/help", "#wine", "$USD"
_TAG: Final = pattern(r"(?:\A|[^\w/<>])/[A-Za-z_]|#[0-9_]*\p{L}|\$[A-Z]")
_LINK_CHARS: Final = frozenset(".:@/#$")
"""Every match of `_ADDRESS` or `_TAG` contains one of these."""
_NON_HOST_CHAR: Final = pattern(r"[^\w.%+:/-]")
_TRIMMED_AT_END: Final = "([{<.,;:!?)]}>\"'»›”’“„…*`"
_PHONE_NUMBER: Final = pattern(
    r"\+\(?[0-9][0-9 ()./\u00a0\u2010-\u2014-]{5,28}[0-9]"  # "+43 1 234567"
    r"|\(?0[0-9]{1,4}\)?(?:[ ./\u00a0\u2010-\u2014-]{1,2}[0-9]{2,8}){1,5}"  # "0664 123 45 67"
    r"|\(?[0-9]{3,19}\)?(?:[ ./\u00a0\u2010-\u2014-]{1,2}[0-9]{3,9}){0,4}"  # "(555) 123-4567"
)
_INLINE_MARKUP: Final = pattern(r"[\\`*_<]")
_LINE_START_MARKUP: Final = pattern(r"(?m)^[ \t]*[#>~+-]")
_ESCAPED: Final = pattern(r"\\([\\`*_<#>~+-])|`([^`]+)`")
_NON_URL_CHAR: Final = pattern(r"[\s<>\"\\^`{|}]")


def strip_invisible(text: str) -> str:
    """Return `text` without control, direction or zero-width characters, or lone surrogates.

    Joiners are kept in the scripts and emoji that need them. All line endings become line feeds.
    """
    if text.isascii() and text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    triples = zip(f" {lines}", lines, f"{lines[1:]} ", strict=False)
    return "".join(_visible_part(before, char, after) for before, char, after in triples)


def _visible_part(before: str, char: str, after: str) -> str:
    """Return `char` if it is visible between its neighbours, else a space or an empty string."""
    if char in _JOINERS:
        return char if min(before, after) >= _FIRST_JOINER_SCRIPT else ""
    if char in _PRESENTATION_SELECTORS:
        return "" if before.isalpha() else char
    is_invisible = unicodedata.category(char) in _INVISIBLE_CATEGORIES or char in _BLANK_CHARS
    if char in "\n\t" or not is_invisible:
        return char
    return " " if char in "\v\f\x85\u2028\u2029" else ""


class AutoLink(NamedTuple):
    """The span `text[start:end]`, which a Telegram client may turn into a link automatically.

    An address is a URL, a domain, an e-mail address, a user name or a phone number; a tag is a
    command, a hashtag or a cashtag.
    """

    start: int
    end: int
    kind: Literal["address", "tag"]


def find_auto_links(text: str) -> Iterator[AutoLink]:
    """Yield the parts of a text that clients may turn into links, in order; drop overlaps.

    It errs on the side of too many: clients know different top-level domains, so a full stop
    between a letter or digit and two letters is enough.
    """
    end = 0
    for link in sorted([*_find_addresses_and_tags(text), *_find_phone_numbers(text)]):
        if link.start >= end:
            yield link
            end = link.end


def _find_addresses_and_tags(text: str) -> Iterator[AutoLink]:
    for run in _NON_SPACES.finditer(text):
        if _LINK_CHARS.isdisjoint(run[0]):
            continue
        address, tag = _ADDRESS.search(run[0]), _TAG.search(run[0])
        if matches := [match for match in (address, tag) if match]:
            # A match may begin within a host name: "e.co" in "(wine.com". Go back to its start.
            before = run[0][: min(match.start() for match in matches)]
            start = max((char.end() for char in _NON_HOST_CHAR.finditer(before)), default=0)
            trimmed = run[0].rstrip(_TRIMMED_AT_END)
            end = max([len(trimmed), *(match.end() for match in matches)])
            kind: Literal["address", "tag"] = "address" if address else "tag"
            yield AutoLink(run.start() + start, run.start() + end, kind)


def _find_phone_numbers(text: str) -> Iterator[AutoLink]:
    for match in _PHONE_NUMBER.finditer(text):
        has_plus = match[0].startswith("+")
        min_digits = MIN_PHONE_DIGITS if has_plus else MIN_PHONE_DIGITS_WITHOUT_PLUS
        if sum(map(str.isdigit, match[0])) >= min_digits:
            yield AutoLink(match.start(), match.end(), "address")


def escape(text: str) -> str:
    """Return Markdown that shows `text` literally, without markup, notes or links.

    Tags become code here. The renderer defuses addresses but not tags, since bot commands are tags.
    """
    text = strip_invisible(text).replace(NOTE_SYMBOL, "")
    parts: list[str] = []
    end = 0
    for link in find_auto_links(text):
        link_text = text[link.start : link.end]
        if link.kind == "tag" and "`" not in link_text:
            parts += [_escape_markup(text[end : link.start]), f"`{link_text}`"]
            end = link.end
    return "".join([*parts, _escape_markup(text[end:])])


def _escape_markup(text: str) -> str:
    text = _INLINE_MARKUP.sub(lambda match: f"\\{match[0]}", text)
    return _LINE_START_MARKUP.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", text)


def unescape(markdown: str) -> str:
    """Undo the escaping only; characters that `escape` removed stay removed."""
    return _ESCAPED.sub(lambda match: match[1] or match[2], markdown)


def format_link(url: str) -> str:
    """Return a link, of which the renderer shows the domain; "" if `url` is not a web address."""
    url = _NON_URL_CHAR.sub(lambda match: quote(match[0]), strip_invisible(url).strip())
    return f"<{url}>" if get_domain(url) else ""


def get_domain(url: str) -> str:
    """Return the domain without `www.`, or an empty string if `url` is not a web address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    return host.removeprefix("www.") if parts.scheme in {"http", "https"} else ""
