"""Our Markdown, and how the text of others becomes a part of it. Pure.

Models, people, documents and the web give text: `escape` shows it as it is. Only `link` makes an
address that can be tapped. Headings, bold type and notes are ours alone.
"""

import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from agent.text import pattern

_JOINERS: Final = "\u200c\u200d"
_NEEDS_JOINERS: Final = "\u0590"
"""From here on there are scripts, and pictures, that are written with joiners."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_BLANK: Final = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0))
}
"""Nothing to see, though Unicode does not say so."""
_PLAIN_VARIANTS: Final = "\ufe0e\ufe0f"
"""A sign as text, and as a picture: of use behind signs that are no letters."""

NOTE_SYMBOL: Final = "ⓘ"
"""The sign before a note of the bot's own."""

LEAST_DIGITS: Final = 7
LEAST_BARE_DIGITS: Final = 9
"""Digits of a number that can be called, with and without a plus before it."""
_RUN: Final = pattern(r"\S+")
_ADDRESS: Final = pattern(
    r"(?i)://|@[\p{L}\p{N}]|[^\s\p{Po}\p{Ps}\p{Pe}\p{Pi}\p{Pf}]\.(?:\p{L}{2}|xn--)|[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"
    r"|(?:\A|\W)(?:tg|ton|mailto|tel|sms|geo|javascript|data):[\p{L}\p{N}/]?"
)
_TAG: Final = pattern(r"(?:\A|[^\w/<>])/[A-Za-z_]|#[0-9_]*\p{L}|\$[A-Z]")
_SIGNS: Final = frozenset(".:@/#$")
"""Every address and every tag holds one of these."""
_NOT_OF_HOST: Final = pattern(r"[^\w.%+:/-]")
_CLOSING: Final = "([{<.,;:!?)]}>\"'»›”’“„…*`"
_TO_CALL: Final = pattern(
    r"\+\(?[0-9][0-9 ()./\u00a0\u2010-\u2014-]{5,28}[0-9]"
    r"|\(?0[0-9]{1,4}\)?(?:[ ./\u00a0\u2010-\u2014-]{1,2}[0-9]{2,8}){1,5}"
    r"|\(?[0-9]{3,19}\)?(?:[ ./\u00a0\u2010-\u2014-]{1,2}[0-9]{3,9}){0,4}"
)
_MARK: Final = pattern(r"[\\`*_<]")
_LINE_MARK: Final = pattern(r"(?m)^[ \t]*[#>~+-]")
_SHOWN_AS_IT_IS: Final = pattern(r"\\([\\`*_<#>~+-])|`([^`]+)`")
_NOT_OF_URL: Final = pattern(r"[\s<>\"\\^`{|}]")


def strip_invisible(text: str) -> str:
    """Return `text` without the invisible: controls, direction marks, zero widths, half letters.

    Joiners stay where a script or a picture needs them; every end of a line is a line feed.
    """
    if text.isascii() and text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    around = zip(f" {lines}", lines, f"{lines[1:]} ", strict=False)
    return "".join(_seen(before, sign, after) for before, sign, after in around)


def _seen(before: str, sign: str, after: str) -> str:
    """Return a character as it is shown between two others: itself, a space or nothing."""
    if sign in _JOINERS:
        return sign if min(before, after) >= _NEEDS_JOINERS else ""
    if sign in _PLAIN_VARIANTS:
        return "" if before.isalpha() else sign
    is_unseen = unicodedata.category(sign) in _UNSEEN or sign in _BLANK
    if sign in "\n\t" or not is_unseen:
        return sign
    return " " if sign in "\v\f\x85\u2028\u2029" else ""


class AutoLink(NamedTuple):
    """A stretch of text that a client may make a link of by itself; `kind` is `address` or `tag`.

    A tag is a command, a hashtag or a cashtag.
    """

    start: int
    end: int
    kind: str


def find_auto_links(text: str) -> Iterator[AutoLink]:
    """Yield the stretches of which a client may make links, in order; rather too many than too few.

    Clients differ in the domains they know, so that none is asked for: a full stop between a letter
    or digit and two letters is enough.
    """
    end = 0
    for found in sorted([*_live_runs(text), *_numbers_to_call(text)]):
        if found.start >= end:
            yield found
            end = found.end


def _live_runs(text: str) -> Iterator[AutoLink]:
    for run in _RUN.finditer(text):
        said = run[0]
        if _SIGNS.isdisjoint(said):
            continue
        address, tag = _ADDRESS.search(said), _TAG.search(said)
        if found := [match for match in (address, tag) if match]:
            before = said[: min(match.start() for match in found)]
            start = len(before) - len(_NOT_OF_HOST.split(before)[-1])
            end = max([len(said.rstrip(_CLOSING)), *(match.end() for match in found)])
            kind = "address" if address else "tag"
            yield AutoLink(run.start() + start, run.start() + end, kind)


def _numbers_to_call(text: str) -> Iterator[AutoLink]:
    for found in _TO_CALL.finditer(text):
        digits = sum(map(str.isdigit, found[0]))
        if digits >= (LEAST_DIGITS if found[0].startswith("+") else LEAST_BARE_DIGITS):
            yield AutoLink(found.start(), found.end(), "address")


def escape(text: str) -> str:
    """Return Markdown that shows `text` as it is, with nothing in it to tap, and as no note.

    Addresses are seen to when Markdown is rendered, commands and tags here: our own text has such.
    """
    shown, parts, end = strip_invisible(text).replace(NOTE_SYMBOL, ""), [], 0
    for found in find_auto_links(shown):
        tag = shown[found.start : found.end]
        if found.kind == "tag" and "`" not in tag:
            parts += [_escaped(shown[end : found.start]), f"`{tag}`"]
            end = found.end
    return "".join([*parts, _escaped(shown[end:])])


def _escaped(text: str) -> str:
    marked = _MARK.sub(lambda found: f"\\{found[0]}", text)
    return _LINE_MARK.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", marked)


def unescape(markdown: str) -> str:
    """Return the text that `escape` made Markdown of, as far as it can be seen."""
    return _SHOWN_AS_IT_IS.sub(lambda found: found[1] or found[2], markdown)


def format_link(url: str) -> str:
    """Return Markdown for an address of the web, shown as its domain; nothing if it is none."""
    target = _NOT_OF_URL.sub(lambda found: quote(found[0]), strip_invisible(url).strip())
    return f"<{target}>" if get_domain(target) else ""


def get_domain(url: str) -> str:
    """Return the domain of a web address, without `www.`; empty if it is none."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    return host.removeprefix("www.") if parts.scheme in {"http", "https"} else ""
