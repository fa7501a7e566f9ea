"""What Telegram itself links in a text: the rules of `td/telegram/MessageEntity.cpp` of TDLib.

They are written anew, by the letter, with the reference's own list of top-level domains, and judge
what the bot sends: `live_links` finds what can be tapped and was not sent as a link.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from tests.doubles.telegram_html import parse_html, utf16_length

Span = tuple[int, int]
TOP_LEVEL_DOMAINS = frozenset(
    Path(__file__).with_name("top_level_domains.txt").read_text().split()
)
SHORT_NAMES = frozenset({"gif", "nft", "pic", "ufc", "vid"})
BAD_PATH_ENDS = ".:;,('?!`"
ASCII_WORD = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
)
NO_LINK_ENTITIES = frozenset({"text_link", "code", "pre"})


def live_links(html: str) -> list[str]:
    """Return what Telegram would link in a message, beside the links that were sent."""
    text, entities = parse_html(html)
    units = [0, *accumulate(map(utf16_length, text))]
    protected = [
        (entity["offset"], entity["offset"] + entity["length"])
        for entity in entities
        if entity["type"] in NO_LINK_ENTITIES
    ]
    return [
        text[start:end]
        for start, end in find_links(text)
        if not any(
            units[start] < last and first < units[end] for first, last in protected
        )
    ]


def find_links(text: str) -> list[Span]:
    """Return every span that Telegram links in a text without formatting; some may overlap."""
    text = "".join(" " if char < " " and char != "\n" else char for char in text)
    finders: tuple[Callable[[str], Iterator[Span]], ...] = (
        find_mentions,
        find_commands,
        find_hashtags,
        find_cashtags,
        find_cards,
        find_app_urls,
        find_urls,
    )
    return sorted(span for find in finders for span in find(text))


def is_letter(char: str) -> bool:
    return unicodedata.category(char)[0] == "L"


def is_word(char: str) -> bool:
    return char == "_" or unicodedata.category(char)[0] in "LN"


def is_separator(char: str) -> bool:
    return unicodedata.category(char)[0] == "Z"


def is_digit(char: str) -> bool:
    return "0" <= char <= "9"


def is_hashtag_letter(char: str) -> bool:
    special = char in "_\u200c\xb7" or "\u0d80" <= char <= "\u0dff"
    return special or is_letter(char) or unicodedata.category(char) == "Nd"


def is_url_symbol(char: str) -> bool:
    if "\u2000" <= char <= "\u206f":
        return char in "\u200c\u200d" or "\u2010" <= char <= "\u2015"
    return not is_separator(char)


def is_path_symbol(char: str) -> bool:
    return char not in '\n<>"«»' and is_url_symbol(char)


def is_user_symbol(char: str) -> bool:
    return char not in "\n/[]{}()'`<>\"@«»" and is_url_symbol(char)


def is_domain_symbol(char: str) -> bool:
    if char < "\xc0":
        return char in ASCII_WORD or char in ".-~"
    return is_url_symbol(char)


def is_protocol_symbol(char: str) -> bool:
    if char < "\x80":
        return char.isalnum() or char in "+-"
    return not is_separator(char)


def skip(
    text: str, start: int, is_part: Callable[[str], bool], limit: int | None = None
) -> int:
    end = len(text) if limit is None else min(len(text), start + limit)
    while start < end and is_part(text[start]):
        start += 1
    return start


def skip_back(
    text: str, end: int, is_part: Callable[[str], bool], begin: int = 0
) -> int:
    while end > begin and is_part(text[end - 1]):
        end -= 1
    return end


def is_ascii_word(char: str) -> bool:
    return char in ASCII_WORD


def positions(text: str, char: str) -> Iterator[int]:
    position = text.find(char)
    while position >= 0:
        yield position
        position = text.find(char, position + 1)


def find_mentions(text: str) -> Iterator[Span]:
    for at in positions(text, "@"):
        if at and is_word(text[at - 1]):
            continue
        end = skip(text, at + 1, is_ascii_word)
        name = text[at + 1 : end].lower()
        if not 2 <= len(name) <= 32 or (end < len(text) and is_word(text[end])):
            continue
        if len(name) >= 4 or name in SHORT_NAMES:
            yield at, end


def find_commands(text: str) -> Iterator[Span]:
    for slash in positions(text, "/"):
        if slash and (is_word(text[slash - 1]) or text[slash - 1] in "/<>"):
            continue
        end = skip(text, slash + 1, is_ascii_word)
        if not 1 <= end - slash - 1 <= 64:
            continue
        if text[end : end + 1] == "@":
            name_end = skip(text, end + 1, is_ascii_word)
            if not 3 <= name_end - end - 1 <= 32:
                continue
            end = name_end
        if end < len(text) and (is_word(text[end]) or text[end] in "/<>"):
            continue
        yield slash, end


def find_hashtags(text: str) -> Iterator[Span]:
    for sign in positions(text, "#"):
        if sign and is_hashtag_letter(text[sign - 1]):
            continue
        run_end = skip(text, sign + 1, is_hashtag_letter)
        end = min(run_end, sign + 1 + 256)
        if not any(map(is_letter, text[sign + 1 : end])):
            continue
        following = run_end
        if end == run_end and text[end : end + 1] == "@":
            name_end = skip(text, end + 1, is_ascii_word, 32)
            if name_end - end - 1 >= 3:
                end = following = name_end
        if text[following : following + 1] != "#":
            yield sign, end


def find_cashtags(text: str) -> Iterator[Span]:
    for sign in positions(text, "$"):
        if sign and (is_hashtag_letter(text[sign - 1]) or text[sign - 1] == "$"):
            continue
        end = sign + 6 if text.startswith("1INCH", sign + 1) else sign + 1
        if end == sign + 1:
            end = skip(text, end, lambda char: "A" <= char <= "Z")
        if not 1 <= end - sign - 1 <= 8:
            continue
        if text[end : end + 1] == "@":
            name_end = skip(text, end + 1, is_ascii_word)
            if 3 <= name_end - end - 1 <= 32:
                end = name_end
        if end < len(text) and (is_hashtag_letter(text[end]) or text[end] == "$"):
            continue
        yield sign, end


def find_cards(text: str) -> Iterator[Span]:
    start = 0
    while (start := skip(text, start, lambda char: not is_digit(char))) < len(text):
        end = skip(text, start, lambda char: is_digit(char) or char in " -")
        if start and (text[start - 1] in ".,+-_" or is_letter(text[start - 1])):
            start = end
            continue
        run = text[start:end]
        first = run.split(" ")[0]
        if (
            16 <= len(first) <= 19 and first.isdecimal()
        ):  # digits without spaces, then others
            end = start + len(first)
        card_end = skip_back(text, end, lambda char: not is_digit(char))
        digits = [int(char) for char in text[start:card_end] if is_digit(char)]
        after = text[card_end : card_end + 1]
        is_whole = not after or not (after in "-_" or is_letter(after))
        is_dense = card_end - start <= 2 * len(digits) - 1
        if 13 <= len(digits) <= 19 and is_dense and is_whole and has_luhn_sum(digits):
            yield start, card_end
        start = max(end, start + 1)


def has_luhn_sum(digits: Sequence[int]) -> bool:
    doubled = [2 * digit - 9 * (digit >= 5) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def find_app_urls(text: str) -> Iterator[Span]:
    for colon in positions(text, ":"):
        before = text[:colon].lower()
        if not text.startswith("://", colon):
            continue
        scheme = next(
            (name for name in ("tonsite", "ton", "tg") if before.endswith(name)), None
        )
        if scheme is None:
            continue
        end = skip(text, colon + 3, lambda char: char in ASCII_WORD or char == "-", 253)
        if end > colon + 3:
            yield colon - len(scheme), end_of_path(text, end)


def end_of_path(text: str, end: int) -> int:
    """Return the end of a URL whose host ends at `end`, with its path if it has one."""
    if text[end : end + 1] not in ("/", "?", "#"):
        return end
    path_end = skip(text, end + 1, is_path_symbol)
    path_end = skip_back(text, path_end, lambda char: char in BAD_PATH_ENDS, end + 1)
    return path_end if text[end] == "/" or path_end > end + 1 else end


def find_urls(text: str) -> Iterator[Span]:
    """Yield the web and mail addresses; `begin` is where the search goes on after each dot."""
    begin = 0
    while True:
        dot = text.find(".", begin)
        if dot < 0 or dot + 1 == len(text):
            return
        if text[dot + 1] == " ":
            begin = dot + 2
            continue
        start, end, is_bad = match_url(text, begin, dot)
        if is_bad:
            while text[end - 1] != ".":
                end -= 1
        else:
            if end > dot + 1:
                yield from accepted(text, start, end)
            end = skip(text, end, lambda char: char == ".")
        begin = end if end > dot else dot + 1


def match_url(text: str, begin: int, dot: int) -> tuple[int, int, bool]:
    """Return the span of a possible URL around a dot, and whether it is none after all."""
    domain = skip_back(text, dot, is_domain_symbol, begin)
    domain_end = skip(text, dot, lambda char: char == "@" or is_domain_symbol(char))
    has_at = "@" in text[dot:domain_end]
    if has_at:
        domain = skip_back(text, domain, is_user_symbol, begin)
    end = domain_end
    if text[end : end + 1] == ":":
        port_end = skip(text, end + 1, is_digit)
        port = text[end + 1 : port_end].lstrip("0")
        if port and len(port) <= 5 and int(port) <= 65535:
            end = port_end
    end = end_of_path(text, end)
    end = skip_back(text, end, lambda char: char == ".", dot + 1)
    start, is_bad = domain, False
    if start > begin and text[start - 1] == "@":
        user = skip_back(text, start - 1, is_user_symbol, begin)
        is_bad = has_at or user == start - 1
        start = user
    if start > begin:
        prefix = text[begin:start]
        if len(prefix.encode()) >= 6 and prefix.endswith("://"):
            protocol_start = skip_back(text, start - 3, is_protocol_symbol, begin)
            protocol = text[protocol_start : start - 3].lower()
            length = accepted_protocol(protocol)
            is_bad = is_bad or not length
            start -= length
        elif is_word(prefix[-1]) or prefix[-1] in "/#@":
            is_bad = True
    return start, end, is_bad


def accepted_protocol(protocol: str) -> int:
    """Return how many characters of a URL are its protocol, 0 if Telegram does not link it."""
    if protocol.endswith("http") and protocol != "shttp":
        return len("http://")
    if protocol.endswith("https"):
        return len("https://")
    if protocol.endswith("ftp") and protocol not in ("tftp", "sftp"):
        return len("ftp://")
    return len("tonsite://") if protocol.endswith("tonsite") else 0


def accepted(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the span of a matched URL if it is a mail address, or has a valid host."""
    url = text[start:end]
    if is_mail_address(url):
        yield start, end
    elif url.startswith("mailto:") and is_mail_address(url[7:]):
        yield start + 7, end
    elif length := valid_length(url):
        yield start, start + length


def is_mail_address(text: str) -> bool:
    user, at, domain = text.partition("@")
    parts = user.replace("+", ".").split(".")
    *names, top = domain.split(".")
    if not at or not domain or len(parts) > 11 or not 1 <= len(names) <= 6:
        return False
    if any(char not in ASCII_WORD and char != "-" for char in "".join(parts)):
        return False
    if not 1 <= len(parts[-1]) <= 35 or any(len(part) > 26 for part in parts[:-1]):
        return False
    if not (2 <= len(top) <= 8 and top.isascii() and top.isalpha()):
        return False
    return all(
        1 <= len(name) <= 30
        and all(char in ASCII_WORD or char == "-" for char in name)
        and name[0] in ASCII_WORD - {"_"}
        and name[-1] in ASCII_WORD - {"_"}
        for name in names
    )


def valid_length(url: str) -> int:
    """Return how much of a matched URL is linked, 0 if its host is not valid."""
    rest = url
    lower = url[:10].lower()
    has_protocol = lower.startswith(("http://", "https://", "ftp://", "tonsite://"))
    if has_protocol:
        rest = url[url.index(":") + 3 :]
    domain_end = min(
        (rest.find(char) for char in "/?#" if char in rest), default=len(rest)
    )
    domain, path = rest[:domain_end], rest[domain_end:]
    domain = domain.partition("@")[2] if "@" in domain else domain
    domain = domain.rpartition(":")[0] if ":" in domain else domain
    if domain.lower() == "teiegram.org" or not is_valid_host(
        domain, has_protocol=has_protocol
    ):
        return 0
    return len(url) - len(path) + balanced_length(path)


def balanced_length(path: str) -> int:
    """Return the length of a path up to its first closing bracket without an opening one."""
    balance = {")": 0, "]": 0, "}": 0}
    openers = {"(": ")", "[": "]", "{": "}"}
    length = 0
    for char in path:
        if char in openers:
            balance[openers[char]] += 1
        elif char in balance:
            balance[char] -= 1
            if balance[char] < 0:
                break
        length += 1
    return skip_back(path, length, lambda char: char in BAD_PATH_ENDS)


def is_valid_host(domain: str, *, has_protocol: bool) -> bool:
    labels = domain.split(".")
    if len(labels) == 1 or any(is_bad_label(label) for label in labels):
        return False
    if len(labels) == 4 and all(map(is_ipv4_part, labels)):
        return True
    if not any(not is_digit(char) for char in "".join(labels)):
        return False
    top = labels[-1]
    if len(top) <= 1:
        return False
    if top.startswith("xn--"):
        rest = top[4:]
        if len(rest) < 2 or not (rest.isascii() and rest.isalnum()):
            return False
    elif "_" in top or "-" in top or not (has_protocol or is_top_level_domain(top)):
        return False
    return "_" not in labels[-2]


def is_bad_label(label: str) -> bool:
    return not 1 <= len(label.encode("utf-8", "surrogatepass")) < 64 or label[-1] == "-"


def is_ipv4_part(label: str) -> bool:
    is_number = all(map(is_digit, label)) and len(label) <= 3 and int(label) <= 255
    return is_number and (label == "0" or label[0] != "0")


def is_top_level_domain(top: str) -> bool:
    lower = top.lower()
    if lower != top and lower[1:] == top[1:]:  # the first word of the next sentence
        return False
    return lower in TOP_LEVEL_DOMAINS
