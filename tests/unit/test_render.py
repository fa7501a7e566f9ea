"""Markdown as Telegram's HTML."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.telegram.render import from_html, to_html, to_telegram_html, visible_text
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
LINK_TARGET = re.compile(r"\]\((https?://[^\s]*)\)")


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**Barolo** 2019", "<b>Barolo</b> 2019"),
        ("__Barolo__", "<b>Barolo</b>"),
        ("*dry* and _crisp_", "<i>dry</i> and <i>crisp</i>"),
        ("***both***", "<b><i>both</i></b>"),
        ("**bold *and italic* text**", "<b>bold <i>and italic</i> text</b>"),
        ("`a < b`", "<code>a &lt; b</code>"),
        ("**bold `code` bold**", "<b>bold </b><code>code</code><b> bold</b>"),
        ("# Reds **today**", "<b>Reds today</b>"),
        ("### Closed ###", "<b>Closed</b>"),
        ("- one\n* two\n+ three", "• one\n• two\n• three"),
        ("- one\n  - nested", "• one\n  • nested"),
        ("1. first\n2. second", "1. first\n2. second"),
        ("> quoted\n> again\nafter", "<blockquote>quoted\nagain</blockquote>\nafter"),
        ("```\nx **y**\n```", "<pre>x **y**</pre>"),
        ("```py\na < b\n```\nend", '<pre><code class="language-py">a &lt; b</code></pre>\nend'),
        ("```\nnever closed", "<pre>never closed</pre>"),
        ("[Sancerre](https://x.org/?a=1&b=2)", '<a href="https://x.org/?a=1&amp;b=2">Sancerre</a>'),
        (
            "[**S** wine](http://x.org/a(b))",
            '<a href="http://x.org/a(b)"><b>S</b> wine</a>',
        ),
        ("\\*not italic\\*", "*not italic*"),
    ],
)
def test_markdown_becomes_telegram_html(markdown: str, html: str) -> None:
    assert to_telegram_html(markdown) == html


@pytest.mark.parametrize(
    "text",
    [
        "snake_case_name",
        "5*3*2 bottles",
        "2 * 3 * 4",
        "**",
        "a ** b ** c",
        "[text](javascript:alert(1))",
        "[text](ftp://x.org)",
        "#hashtag",
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
    html = to_telegram_html('[x](https://x.org/"onclick="y)')
    assert html == '<a href="https://x.org/&quot;onclick=&quot;y">x</a>'


@settings(max_examples=500, deadline=None)
@given(markdownish)
def test_any_text_becomes_html_that_telegram_accepts(text: str) -> None:
    parse_html(to_telegram_html(text))


@settings(max_examples=500, deadline=None)
@given(markdownish)
def test_no_word_of_any_text_is_lost(text: str) -> None:
    runs = from_html(to_telegram_html(text))
    targets = [mark.value for run in runs for mark in run.marks]
    shown = words(" ".join([visible_text(to_telegram_html(text)), *targets]))
    joined = "".join(shown)
    for word in words(text.encode("utf-8", "replace").decode()):
        assert word in joined


@settings(max_examples=300, deadline=None)
@given(markdownish)
def test_html_is_read_back_as_it_was_written(text: str) -> None:
    html = to_telegram_html(text)
    assert to_html(from_html(html)) == html


@pytest.mark.parametrize("opener", ["*", "*a ", "_a **b ", "[a", "`a ", "[a](http://", "# ", "> "])
def test_a_text_full_of_openers_is_rendered_quickly(opener: str) -> None:
    text = opener * 4000
    assert words("".join(words(visible_text(to_telegram_html(text))))) == words(
        "".join(words(text))
    )
