"""A long text as several messages."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.telegram.render import split_messages, utf16_units, visible_text
from tests.doubles.telegram_html import parse_html
from tests.unit.test_render import markdownish


def seen(markdown: str, limit: int = 4096) -> list[str]:
    return [visible_text(html) for html in split_messages(markdown, limit)]


def printed(text: str) -> str:
    return "".join(one for one in text if unicodedata.category(one)[0] not in "CZ")


def test_a_text_that_fits_is_one_message() -> None:
    assert seen("x" * 4096) == ["x" * 4096]


@pytest.mark.parametrize("text", ["", " \n\n ", "# \n>\n```\n```", "\u200b\u200b"])
def test_a_text_with_nothing_to_see_is_no_message(text: str) -> None:
    assert seen(text) == []


def test_messages_end_at_the_last_paragraph_that_fits() -> None:
    first, second, third = "a. " * 10, "b. " * 10, "c. " * 10
    text = f"{first}\n\n{second}\n\n{third}"
    assert seen(text, 70) == [f"{first}\n\n{second}".strip(), third.strip()]


def test_a_long_paragraph_is_cut_at_a_line() -> None:
    assert seen("one. two\nthree four five", 16) == ["one. two", "three four five"]


def test_a_long_line_is_cut_at_a_sentence() -> None:
    assert seen("One is dry. Two is sweet. Three", 28) == ["One is dry. Two is sweet.", "Three"]


def test_a_long_sentence_is_cut_between_words() -> None:
    assert seen("one two three four", 10) == ["one two", "three four"]


def test_a_long_word_is_cut_between_characters() -> None:
    assert seen("abcdefgh", 3) == ["abc", "def", "gh"]


@pytest.mark.parametrize("character", ["🍷", "🇫🇷", "👩‍🍳", "👍🏽", "e\u0301", "1️⃣"])
def test_a_hard_cut_never_divides_what_is_drawn_as_one(character: str) -> None:
    limit = utf16_units(character) * 2 + 1
    assert seen(character * 5, limit) == [character * 2, character * 2, character]


def test_length_is_counted_in_utf16_units() -> None:
    parts = seen("🍷" * 3000)
    assert [utf16_units(part) for part in parts] == [4096, 1904]


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
        visible, entities = parse_html(part)
        assert 0 < utf16_units(visible) <= limit
        assert len(entities) <= 100
    (whole,) = split_messages(text, 100_000) or [""]
    assert printed("".join(visible_text(part) for part in parts)) == printed(visible_text(whole))
