"""Find the parts of a text that Telegram would turn into links by itself.

The reference is `td/telegram/MessageEntity.cpp` of Telegram's own library, TDLib. The rules of
TDLib are followed, except where clients differ or the rules change with time: any ending of two
letters is read as a top-level domain, any scheme as one that opens an application, and spaced
digits as a telephone number. So this module finds everything that Telegram links, and some more.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, Literal, NamedTuple

from agent.text import Pattern, pattern

LinkKind = Literal["address", "tag"]
"""An address is a URL, a domain, an e-mail address, a user name or a number to call or to pay with;
a tag is a command, a hashtag or a cashtag."""


class AutoLink(NamedTuple):
    """The span `text[start:end]`, which a Telegram client may turn into a link."""

    start: int
    end: int
    kind: LinkKind


MIN_PHONE_DIGITS: Final = 7
"""The fewest digits of a telephone number that begins with "+"."""
MIN_PHONE_DIGITS_WITHOUT_PLUS: Final = 9
"""The fewest digits of other telephone numbers, because prices and years have digits too."""
MIN_CARD_DIGITS: Final = 13
"""The fewest digits of the number of a bank card."""

# The names of the character classes are those of the reference.
_DASHES: Final = r"[\x{200c}\x{200d}\x{2010}-\x{2015}]"
"""The characters of the block General Punctuation that a domain or a path may contain."""
_LETTER: Final = rf"(?:[A-Za-z]|{_DASHES}|[^\x00-\x{{bf}}\x{{2000}}-\x{{206f}}])"
_LABEL_END: Final = rf"(?:[0-9_~]|{_LETTER})"
_DOMAIN_SYMBOL: Final = rf"(?:[.-]|{_LABEL_END})"
_NOT_IN_USERS: Final = frozenset("/[]{}()'`<>\"@«»")
"""The characters at which the user in "user@wine.com" begins, read from the right."""
_PATH_SYMBOL: Final = (
    rf"(?:[^\x00-\x20\x{{a0}}<>\"\x{{ab}}\x{{bb}}\x{{2000}}-\x{{206f}}]|{_DASHES})"
)
_PORT_AND_PATH: Final = rf"(?::[0-9]+)?(?:[/?#]{_PATH_SYMBOL}*)?"
_ADDRESSES: Final[tuple[tuple[str, Pattern], ...]] = (
    # "https://x", "tg://x", "mailto:x"
    (
        ":",
        pattern(
            rf"(?i)[a-z0-9+-]*://{_PATH_SYMBOL}*"
            rf"|(?:tg|ton|mailto|tel|sms|geo|javascript|data):[\p{{L}}\p{{N}}/+]{_PATH_SYMBOL}*"
        ),
    ),
    # "wine.com", "user@wine.com:80/a"
    (
        ".",
        pattern(
            rf"(?i)@?{_DOMAIN_SYMBOL}*{_LABEL_END}[.](?:{_LETTER}{{2}}|xn--)"
            rf"{_DOMAIN_SYMBOL}*{_PORT_AND_PATH}"
        ),
    ),
    # "10.0.0.1"
    (".", pattern(rf"@?[0-9]{{1,3}}(?:[.][0-9]{{1,3}}){{3}}{_PORT_AND_PATH}")),
)
"""The patterns of addresses without spaces, each with a character that all of its matches have."""
_ASCII_WORD: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
)
_CASHTAG_LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_CASHTAG_WITH_DIGIT: Final = "1INCH"
_PHONE_NUMBER: Final = pattern(
    r"\+\(?[0-9][0-9 ()./\u00a0\u2010-\u2014-]{5,28}[0-9]"  # "+43 1 234567"
    r"|\(?0[0-9]{1,4}\)?(?:[ ./\u00a0\u2010-\u2014-]{1,2}[0-9]{2,8}){1,5}"  # "0664 123 45 67"
    r"|\(?[0-9]{3,19}\)?(?:[ ./\u00a0\u2010-\u2014-]{1,2}[0-9]{3,9}){0,4}"  # "(555) 123-4567"
)
_CARD_NUMBER: Final = pattern(r"[0-9][0-9 -]{11,}[0-9]")
"""The number of a bank card: "4242 4242 4242 4242"."""
_END_SYMBOLS: Final = ".:;,('?!`"
"""The characters that do not belong to an address at its end."""
_CLOSERS: Final = {")": "(", "]": "[", "}": "{"}
"""The brackets that do not belong to an address at its end if they were not opened in it."""


def find_auto_links(text: str, limit: int | None = None) -> list[AutoLink]:
    """Return the parts of a text that Telegram may turn into links, in order.

    Overlapping and touching parts are one link, because clients differ in which of them they
    prefer. A text with more than `limit` links is one link as a whole.
    """
    links = []
    for link in chain(_find_without_spaces(text), _find_numbers(text)):
        links.append(link)
        if limit is not None and len(links) > limit:
            return [AutoLink(0, len(text), "address")]
    links.sort()
    merged: list[AutoLink] = []
    for link in links:
        if merged and link.start <= merged[-1].end:
            previous = merged.pop()
            merged.append(_merge(previous, link))
        else:
            merged.append(link)
    return merged


def _merge(first: AutoLink, second: AutoLink) -> AutoLink:
    """Return two links as one, which is a tag only if both are tags."""
    kind: LinkKind = "address"
    if first.kind == second.kind:
        kind = first.kind
    end = max(first.end, second.end)
    return AutoLink(first.start, end, kind)


def _find_without_spaces(text: str) -> Iterator[AutoLink]:
    """Yield the addresses and tags. None of them contains a space."""
    word_end = 0
    for word in text.split():
        word_start = text.index(word, word_end)
        word_end = word_start + len(word)
        if _LINK_SYMBOLS.isdisjoint(word):
            continue
        for link in chain(_find_addresses(word), _find_marked(word)):
            start = word_start + link.start
            end = word_start + link.end
            yield AutoLink(start, end, link.kind)


def _find_addresses(word: str) -> Iterator[AutoLink]:
    for symbol, form in _ADDRESSES:
        if symbol not in word[:-1]:  # an address goes on after its symbol
            continue
        for match in form.finditer(word):
            match_start, match_end = match.span()
            start = _find_start(word, match_start)
            end = _find_end(word, match_start, match_end)
            yield AutoLink(start, end, "address")


def _find_marked(word: str) -> Iterator[AutoLink]:
    """Yield user names, commands, hashtags and cashtags, each by the symbol before it.

    This is code instead of a pattern, because a text may have thousands of them.
    """
    for symbol, find_end in _MARKED.items():
        kind: LinkKind = "address" if symbol == "@" else "tag"
        start = word.find(symbol)
        while start >= 0:
            end = find_end(word, start)
            if end > start:
                yield AutoLink(start, end, kind)
            start = word.find(symbol, max(end, start + 1))


# Each of the following functions returns `start` if no name or tag begins there.


def _end_of_name(word: str, start: int) -> int:
    """Return the end of the user name that begins with the @ at `start`."""
    end = _skip(word, start + 1, _is_word_char)
    if end == start + 1:
        return start
    return end


def _end_of_command(word: str, start: int) -> int:
    """Return the end of the command that begins with the slash at `start`."""
    char_before = word[max(0, start - 1) : start]
    if char_before and (_is_word_char(char_before) or char_before in "/<>"):
        return start
    end = _skip(word, start + 1, _ASCII_WORD.__contains__)
    return _end_of_tag(word, start, end)


def _end_of_hashtag(word: str, start: int) -> int:
    """Return the end of the hashtag that begins with the # at `start`."""
    end = _skip(word, start + 1, _is_hashtag_char)
    name = word[start + 1 : end]
    has_letter = any(map(str.isalpha, name))
    if not has_letter:
        return start
    return _end_of_tag(word, start, end)


def _end_of_cashtag(word: str, start: int) -> int:
    """Return the end of the cashtag that begins with the $ at `start`."""
    end = _skip(word, start + 1, _CASHTAG_LETTERS.__contains__)
    if word.startswith(_CASHTAG_WITH_DIGIT, start + 1):
        end = start + 1 + len(_CASHTAG_WITH_DIGIT)
    return _end_of_tag(word, start, end)


def _end_of_tag(
    word: str,
    start: int,
    end: int,
) -> int:
    """Return the end of a tag with the name of a bot, if one follows: `/start@name`.

    Return `start` if nothing follows the symbol of the tag.
    """
    if end == start + 1:
        return start
    if word.startswith("@", end):
        return _end_of_name(word, end)
    return end


def _skip(
    word: str,
    index: int,
    is_part: Callable[[str], bool],
) -> int:
    """Return the index of the first character, from `index` on, that is no part of the tag."""
    while index < len(word) and is_part(word[index]):
        index += 1
    return index


def _is_word_char(char: str) -> bool:
    return char == "_" or char.isalnum()


def _is_hashtag_char(char: str) -> bool:
    is_sinhala = "\u0d80" <= char <= "\u0dff"  # its vowel signs are not letters
    is_special = is_sinhala or char in "_\u200c\u00b7"
    return is_special or char.isalpha() or char.isdecimal()


_MARKED: Final = {
    "@": _end_of_name,
    "/": _end_of_command,
    "#": _end_of_hashtag,
    "$": _end_of_cashtag,
}
_ADDRESS_SYMBOLS: Final = frozenset(symbol for symbol, _ in _ADDRESSES)
_LINK_SYMBOLS: Final = _ADDRESS_SYMBOLS.union(_MARKED)
"""Every address and every tag has at least one of these characters."""


def _find_start(word: str, start: int) -> int:
    """Return the beginning of the address that matched from `start` on.

    If it matched from an @ on, the user before the @ belongs to it.
    """
    if word[start] != "@":
        return start
    while start and word[start - 1] not in _NOT_IN_USERS:
        start -= 1
    return start


def _find_end(
    word: str,
    start: int,
    end: int,
) -> int:
    """Return where the address in `word[start:end]` ends, without the punctuation around it."""
    # The number of closing brackets that were not opened.
    surplus: dict[str, int] = {}
    for closer, opener in _CLOSERS.items():
        closed = word.count(closer, start, end)
        opened = word.count(opener, start, end)
        surplus[closer] = closed - opened
    while end > start:
        last = word[end - 1]
        if surplus.get(last, 0) > 0:
            surplus[last] -= 1
        elif last not in _END_SYMBOLS:
            break
        end -= 1
    return end


def _find_numbers(text: str) -> Iterator[AutoLink]:
    """Yield the numbers to call or to pay with."""
    text = text.replace("\t", " ")  # the reference does this too
    for match in _PHONE_NUMBER.finditer(text):
        number = match[0]
        min_digits = MIN_PHONE_DIGITS_WITHOUT_PLUS
        if number.startswith("+"):
            min_digits = MIN_PHONE_DIGITS
        if _count_digits(number) >= min_digits:
            yield AutoLink(match.start(), match.end(), "address")
    for match in _CARD_NUMBER.finditer(text):
        if _count_digits(match[0]) >= MIN_CARD_DIGITS:
            yield AutoLink(match.start(), match.end(), "address")


def _count_digits(text: str) -> int:
    return sum(map(str.isdigit, text))
