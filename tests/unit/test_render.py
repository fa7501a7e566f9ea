"""Markdown as Telegram's HTML, and as messages within its limits."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.markdown import NOTE_SIGN, escape, live, plain, visible
from bot.telegram.render import (
    CODE,
    INERT,
    Piece,
    from_html,
    split_messages,
    to_html,
    to_telegram_html,
    utf16_units,
    visible_text,
)
from tests.doubles.telegram_html import parse_html

MARKDOWN_PIECES = [
    "**",
    "*",
    "_",
    "__",
    "`",
    "```",
    "~~~",
    "#",
    ">",
    "- ",
    "[",
    "](",
    "https://x.org/a_b",
    "<https://x.org/a_b>",
    "/help",
    "@name",
    ")",
    "\\",
    "<b>",
    "&amp;",
    '"',
    "\n",
    "\n\n",
    " ",
    "wine",
    "Rosé",
    "🍷",
    "\ud800",
    "\x00",
]
markdownish = st.lists(st.sampled_from(MARKDOWN_PIECES), max_size=40).map("".join) | st.text()


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**Barolo** 2019", "<b>Barolo</b> 2019"),
        ("__Barolo__", "<b>Barolo</b>"),
        ("*dry* and _crisp_", "<i>dry</i> and <i>crisp</i>"),
        ("**bold *and italic* text**", "<b>bold <i>and italic</i> text</b>"),
        ("`a < b`", "<code>a &lt; b</code>"),
        ("**bold `code` bold**", "<b>bold </b><code>code</code><b> bold</b>"),
        ("- one\n* two\n+ three", "• one\n• two\n• three"),
        ("- one\n  - nested", "• one\n  • nested"),
        ("1. first\n2. second", "1. first\n2. second"),
        ("> quoted\n> again\nafter", "<blockquote>quoted\nagain</blockquote>\nafter"),
        ("```\nx **y** a.org\n\n```\nend", "<pre>x **y** a.org\n</pre>\nend"),
        ("````\n```\n````", "<pre>```</pre>"),
        ("**> all of it\n**> folded", "<blockquote expandable>all of it\nfolded</blockquote>"),
        ("<https://www.x.org/?a=1&b=2>", '<a href="https://www.x.org/?a=1&amp;b=2">x.org</a>'),
        ("**<https://x.org/a(b)>**", '<b><a href="https://x.org/a(b)">x.org</a></b>'),
        (
            "<https://bank.example@evil.example/a>",
            '<a href="https://bank.example@evil.example/a">evil.example</a>',
        ),
        ("/help says more", "/help says more"),
        ("\\*not italic\\*", "*not italic*"),
    ],
)
def test_markdown_becomes_telegram_html(markdown: str, html: str) -> None:
    assert to_telegram_html(markdown) == html


@pytest.mark.parametrize(
    "text",
    [
        "snake_case_name",
        "2 * 3 * 4",
        "**",
        "a ** b ** c",
        "-5 degrees",
        "the *unclosed",
    ],
)
def test_what_is_no_markdown_stays_as_it_was_written(text: str) -> None:
    assert to_telegram_html(text) == text


def test_html_of_the_model_is_shown_and_not_obeyed() -> None:
    assert (
        to_telegram_html('<a href="x">R&D</a> &lt;')
        == '&lt;a href="x"&gt;R&amp;D&lt;/a&gt; &amp;lt;'
    )


def test_a_quotation_mark_cannot_leave_the_address_of_a_link() -> None:
    html = to_telegram_html('<https://x.org/"onclick="y>')
    assert html == '<a href="https://x.org/%22onclick=%22y">x.org</a>'


LIVE_TEXTS = [
    "[here](https://()@evil.example/a)",
    "https:**/**/evil.example",
    "evil**.**example",
    "evil.example/a",
    "t.me/evil",
    "t\u200b.me/evil",
    "@evil_bot",
    "tg://resolve?domain=evil",
    "tg:resolve",
    "mail@evil.example",
    "+49 171 1234567",
    "(212) 555-0123",
    "/forget",
    "#evil",
    "$EVIL",
    "10.0.0.1/a",
    "xn--e1afmkfd.xn--p1ai",
    "пример.рф",
    "ftp://evil",
    "evil.example\u202e",
]


@pytest.mark.parametrize("text", LIVE_TEXTS)
def test_nothing_becomes_a_link_by_itself(text: str) -> None:
    shown = escape(text)
    for markdown in (shown, f"**{shown}**", f"Look ({shown}), or", f"> {shown}"):
        pieces = from_html(to_telegram_html(markdown))
        plain = "".join(
            " " if INERT & {mark.tag for mark in each.marks} else each.text for each in pieces
        )
        assert not list(live(plain))
        assert not any(mark.tag == "a" for each in pieces for mark in each.marks)


@settings(max_examples=200, deadline=None)
@given(markdownish)
def test_no_markdown_makes_an_address_live_but_one(text: str) -> None:
    pieces = from_html(to_telegram_html(text))
    plain = "".join(
        " " if INERT & {mark.tag for mark in each.marks} else each.text
        for each in pieces
        if not _link(each)
    )
    assert all(found.kind == "tag" for found in live(plain))
    assert {_link(each) for each in pieces} <= {None, "https://x.org/a_b"}


def _link(piece: Piece) -> str | None:
    return next((mark.value for mark in piece.marks if mark.tag == "a"), None)


def test_what_is_no_character_is_not_shown() -> None:
    assert visible("a\uffff\ufffeb\ufdd0\U0010ffffc") == "abc"


@settings(max_examples=200, deadline=None)
@given(markdownish)
def test_text_that_is_not_ours_is_shown_as_it_is(text: str) -> None:
    pieces = from_html(to_telegram_html(escape(text)))
    assert "".join(each.text for each in pieces) == visible(text)
    assert {mark for each in pieces for mark in each.marks} <= {CODE}


@pytest.mark.parametrize(
    "text",
    [
        "95/100 points, and/or more",
        "1.5 l at 12.5 % e.g. from the U.S.",
        "2015-2019 for $25 or €1,250.00",
        "#1 of 3: drink 2024-2030",
        "Meet at 7 p.m. for the 3rd.",
    ],
)
def test_ordinary_text_holds_nothing_that_could_be_tapped(text: str) -> None:
    assert not list(live(text))


@pytest.mark.parametrize("text", ["📩.ws", "➡.ws/a", "a_.com", "❤️.ws"])
def test_an_address_may_begin_with_a_sign(text: str) -> None:
    assert [each.kind for each in live(f"Look at {text} now")] == ["address"]


@settings(max_examples=200, deadline=None)
@given(markdownish)
def test_what_was_made_markdown_can_be_read_as_it_was(text: str) -> None:
    assert plain(escape(text)) == visible(text).replace(NOTE_SIGN, "")


@settings(max_examples=200, deadline=None)
@given(markdownish)
def test_no_word_of_any_text_is_lost(text: str) -> None:
    runs = from_html(to_telegram_html(text))
    targets = [mark.value for run in runs for mark in run.marks]
    shown = words(" ".join([visible_text(to_telegram_html(text)), *targets]))
    joined = "".join(shown)
    for word in words(visible(text)):
        assert word in joined


@settings(max_examples=200, deadline=None)
@given(markdownish)
def test_any_text_becomes_html_that_telegram_accepts(text: str) -> None:
    html = to_telegram_html(text)
    parse_html(html)
    assert to_html(from_html(html)) == html


@pytest.mark.parametrize("opener", ["*", "*a ", "_a **b ", "[a", "`a ", "[a](http://", "# ", "> "])
def test_a_text_full_of_openers_is_rendered_quickly(opener: str) -> None:
    text = opener * 4000
    assert words("".join(words(visible_text(to_telegram_html(text))))) == words(
        "".join(words(text))
    )


def seen(markdown: str, limit: int = 4096) -> list[str]:
    return [visible_text(html) for html in split_messages(markdown, limit)]


@pytest.mark.parametrize(
    ("text", "limit", "messages"),
    [
        ("x" * 4096, 4096, ["x" * 4096]),
        ("", 4096, []),
        (" \n\n ", 4096, []),
        ("\u200b\u200b", 4096, []),
        ("a. a.\n\nb. b.\n\nc. c.", 15, ["a. a.\n\nb. b.", "c. c."]),
        ("one. two\nthree four five", 16, ["one. two", "three four five"]),
        (
            "One is dry. Two is sweet. Three",
            28,
            ["One is dry. Two is sweet.", "Three"],
        ),
        ("one two three four", 10, ["one two", "three four"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("👩‍🍳" * 3, 11, ["👩‍🍳" * 2, "👩‍🍳"]),
        ("🍷" * 3000, 4096, ["🍷" * 2048, "🍷" * 952]),
    ],
)
def test_a_long_text_is_cut_at_the_best_place_that_fits(
    text: str, limit: int, messages: list[str]
) -> None:
    assert seen(text, limit) == messages


def test_marks_go_on_in_the_next_message() -> None:
    assert split_messages("**one two three**", 8) == ["<b>one two</b>", "<b>three</b>"]


def test_no_message_has_more_than_100_marks() -> None:
    parts = split_messages(" ".join(f"**w{number}**" for number in range(250)))
    assert [part.count("<b>") for part in parts] == [100, 100, 50]


@settings(max_examples=200, deadline=None)
@given(markdownish, st.integers(2, 40))
def test_every_message_is_within_the_limits_and_nothing_is_lost(text: str, limit: int) -> None:
    parts = split_messages(text, limit)
    for part in parts:
        shown, entities = parse_html(part)
        assert 0 < utf16_units(shown) <= limit
        assert len(entities) <= 100
    (whole,) = split_messages(text, 100_000) or [""]
    assert printed("".join(visible_text(part) for part in parts)) == printed(visible_text(whole))


def printed(text: str) -> str:
    return "".join(one for one in text if unicodedata.category(one)[0] not in "CZ")
