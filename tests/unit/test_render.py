"""Markdown as Telegram HTML, and as messages within the limits of Telegram."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.auto_links import find_auto_links
from agent.markdown import NOTE_SYMBOL, escape, strip_invisible, unescape
from bot.telegram.render import (
    CODE,
    NO_LINK_TAGS,
    parse,
    split_messages,
)
from tests.doubles.telegram_html import parse_html, utf16_length

LINK = "https://x.org/a_b"
MARKDOWN_PIECES = [
    *(
        "**",
        "*",
        "_",
        "__",
        "`",
        "```",
        "#",
        ">",
        "- ",
        "[",
        "](",
        LINK,
        f"<{LINK}>",
        "/help",
    ),
    *("@name", ")", "\\", "<b>", "&amp;", '"', "\n", "\n\n", " ", "wine", "Rosé", "🍷"),
    *("\ud800", "\x00"),
]
markdownish = (
    st.lists(st.sampled_from(MARKDOWN_PIECES), max_size=40).map("".join) | st.text()
)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**Barolo** 2019", "<b>Barolo</b> 2019"),
        ("*dry* and _crisp_", "<i>dry</i> and <i>crisp</i>"),
        ("**bold `a < b` bold**", "<b>bold </b><code>a &lt; b</code><b> bold</b>"),
        ("- one\n  * nested\n1. first", "• one\n  • nested\n1. first"),
        ("> quoted\n> again\nafter", "<blockquote>quoted\nagain</blockquote>\nafter"),
        ("```\nx **y** a.org\n\n```\nend", "<pre>x **y** a.org\n</pre>\nend"),
        ("**> a long\n**> quote", "<blockquote expandable>a long\nquote</blockquote>"),
        (
            "<https://www.x.org/?a=1&b=2>",
            '<a href="https://www.x.org/?a=1&amp;b=2">x.org</a>',
        ),
        (
            '<https://x.org/"onclick="y>',
            '<a href="https://x.org/%22onclick=%22y">x.org</a>',
        ),
        ('<a href="x">R&D</a> &lt;', '&lt;a href="x"&gt;R&amp;D&lt;/a&gt; &amp;lt;'),
        *(
            (text, text)
            for text in ("snake_case_name", "2 * 3 * 4", "-5 degrees", "the *unclosed")
        ),
    ],
)
def test_markdown_becomes_telegram_html_and_other_text_is_unchanged(
    markdown: str, html: str
) -> None:
    assert split_messages(markdown) == [html]


def linkable_text(markdown: str) -> str:
    """Return the text of a message in which Telegram would detect links."""
    chars = zip(*parse(markdown), strict=True)
    return "".join(
        " " if NO_LINK_TAGS & {mark.tag for mark in marks} else char
        for char, marks in chars
    )


def visible_text(html: str) -> str:
    return parse_html(html)[0]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "[here](https://()@evil.example/a)",
            "https:**/**/evil.example",
            "evil**.**example",
        ),
        *(
            "t.me/evil",
            "t\u200b.me/evil",
            "@evil_bot",
            "mail@evil.example",
            "пример.рф",
        ),
        *(
            "tg://resolve?domain=evil",
            "+49 171 1234567",
            "/forget",
            "#evil",
            "evil.example\u202e",
        ),
    ],
)
def test_escaped_text_never_becomes_a_link(text: str) -> None:
    escaped = escape(text)
    for markdown in (
        escaped,
        f"**{escaped}**",
        f"Look ({escaped}), or",
        f"> {escaped}",
    ):
        assert not find_auto_links(linkable_text(markdown))
        assert "<a" not in "".join(split_messages(markdown))


@settings(max_examples=200, deadline=None)
@given(markdownish)
def test_any_text_becomes_valid_telegram_html_with_all_its_words(text: str) -> None:
    for html in split_messages(text):
        parse_html(html)
    styled = parse(text)
    assert all(link.kind == "tag" for link in find_auto_links(linkable_text(text)))
    links = {
        mark.attribute for marks in styled.marks for mark in marks if mark.tag == "a"
    }
    assert links <= {LINK}
    shown = re.sub(r"[\W_]", "", styled.text + LINK)
    assert all(word in shown for word in re.findall(r"[^\W_]+", strip_invisible(text)))


@settings(max_examples=200, deadline=None)
@given(markdownish)
def test_escaped_text_is_shown_literally(text: str) -> None:
    styled = parse(escape(text))
    assert styled.text == strip_invisible(text).replace(NOTE_SYMBOL, "")
    assert {mark for marks in styled.marks for mark in marks} <= {CODE}
    assert unescape(escape(text)) == strip_invisible(text).replace(NOTE_SYMBOL, "")


@pytest.mark.parametrize(
    ("text", "limit", "messages"),
    [
        ("a. a.\n\nb. b.\n\nc. c.", 15, ["a. a.\n\nb. b.", "c. c."]),
        ("one. two\nthree four five", 16, ["one. two", "three four five"]),
        ("One is dry. Two is sweet. Three", 28, ["One is dry. Two is sweet.", "Three"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("🍷" * 3000, 4096, ["🍷" * 2048, "🍷" * 952]),
    ],
)
def test_a_long_text_is_split_at_the_best_boundary(
    text: str, limit: int, messages: list[str]
) -> None:
    assert [visible_text(html) for html in split_messages(text, limit)] == messages


def test_formatting_continues_in_the_next_message_with_100_entities_at_most() -> None:
    assert split_messages("**one two three**", 8) == ["<b>one two</b>", "<b>three</b>"]
    parts = split_messages(" ".join(f"**w{number}**" for number in range(250)))
    assert [part.count("<b>") for part in parts] == [98, 98, 54]


@settings(max_examples=200, deadline=None)
@given(markdownish, st.integers(2, 40))
def test_split_messages_respect_the_limits_and_lose_nothing(
    text: str, limit: int
) -> None:
    parts = split_messages(text, limit)
    for part in parts:
        shown, entities = parse_html(part)
        assert 0 < utf16_length(shown) <= limit
        assert len(entities) <= 100
    assert printed("".join(visible_text(part) for part in parts)) == printed(
        parse(text).text
    )


def printed(text: str) -> str:
    return "".join(one for one in text if unicodedata.category(one)[0] not in "CZ")
