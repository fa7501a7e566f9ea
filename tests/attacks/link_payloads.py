"""Random texts that try to become links: pieces of addresses and tags, put together and mutated.

`python -m tests.attacks.link_payloads 200000` tries so many, and prints those that are live.
"""

import random
import sys
from collections.abc import Iterator

from agent.markdown import escape
from bot.telegram.render import split_messages
from tests.doubles.telegram_links import TOP_LEVEL_DOMAINS, live_links

TOPS = sorted(TOP_LEVEL_DOMAINS)
PIECES = (
    *(
        "http://",
        "HTTPS://",
        "ftp://",
        "tonsite://",
        "tg://",
        "ton://",
        "mailto:",
        "://",
        "xhttp://",
    ),
    *(
        "evil",
        "EVIL",
        "evil_bot",
        "pay",
        "t.me",
        "www.",
        "localhost",
        "xn--p1ai",
        "teiegram.org",
    ),
    *(
        "ワイン",
        "・",
        "भारत",
        "क\u094d",
        "é",
        "e\u0301",
        "🍷",
        "ß",
        "İ",
        "ไทย",
        "\u0d82",
        "\u0660",
    ),
    *(
        "@",
        "@evil_bot",
        "user@",
        "a.b+c@",
        "#",
        "#evil",
        "$",
        "$USD",
        "$1INCH",
        "/",
        "/start",
        "/5",
    ),
    *(
        "2015",
        "2016",
        "2017 ",
        "0664 1234567",
        "+43 1 234567",
        "4111 1111 1111 1111",
        "10.0.0.1",
    ),
    *(
        ".",
        "..",
        ":",
        ":80",
        ":99999",
        "-",
        "_",
        "~",
        "+",
        "*",
        "**",
        "`",
        "```",
        "\\",
        "|",
        "=",
        "&",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "«",
        "»",
        '"',
        "'",
        "’",
        "“",
        "…",
        "‐",
        "—",
        "·",
        "。",
    ),
    *(
        " ",
        "\n",
        "\t",
        "\u00a0",
        "\u200b",
        "\u200c",
        "\u200d",
        "\u2060",
        "\u3000",
        "\ufe0f",
        "\x85",
    ),
    *(",", ";", "!", "?", "/a(b)", "/a)b", "?q=1", "#x", "> ", "- ", "**> "),
)


def make_text(chance: random.Random) -> str:
    """Return a text of up to 14 pieces, sometimes with characters swapped, doubled or left out."""
    pieces = [
        chance.choice(TOPS) if chance.random() < 0.15 else chance.choice(PIECES)
        for _ in range(chance.randint(1, 14))
    ]
    if chance.random() < 0.5:
        pieces.insert(chance.randint(0, len(pieces)), f"evil.{chance.choice(TOPS)}")
    chars = list("".join(pieces))
    for _ in range(chance.choice((0, 0, 1, 3))):
        position = chance.randrange(len(chars))
        chars[position] = chance.choice(
            (
                chars[position] * 2,
                "",
                chance.choice(chars),
                chr(chance.randrange(0x20, 0x3000)),
            )
        )
    return "".join(chars)


def find_live(texts: Iterator[str]) -> list[tuple[str, list[str]]]:
    """Return the texts that are live when they are shown as untrusted text, and their links."""
    found = []
    for text in texts:
        live = [
            link for html in split_messages(escape(text)) for link in live_links(html)
        ]
        if live:
            found.append((text, live))
    return found


def random_texts(count: int, seed: int) -> Iterator[str]:
    """Yield `count` texts, the same for the same seed."""
    chance = random.Random(seed)
    return (make_text(chance) for _ in range(count))


if __name__ == "__main__":
    count = int(sys.argv[1])
    live = find_live(
        random_texts(count, seed=int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    )
    for text, links in live[:40]:
        print(ascii(text), ascii(links))
    print(f"{count} texts, {len(live)} live")
