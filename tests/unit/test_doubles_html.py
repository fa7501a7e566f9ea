"""Telegram's HTML as the double reads it."""

import pytest

from tests.doubles.telegram_html import EntitiesError, parse_html


def test_every_tag_of_telegram_becomes_its_entity() -> None:
    source = (
        "<b>1</b><strong>2</strong><i>3</i><em>4</em><u>5</u><ins>6</ins><s>7</s><strike>8</strike>"
        '<del>9</del><a href="https://wine.example/?a=1&amp;b=2">A</a><code>B</code><pre>C</pre>'
        "<blockquote>D</blockquote><blockquote expandable>E</blockquote>"
        '<tg-spoiler>F</tg-spoiler><span class="tg-spoiler">G</span>'
        '<tg-emoji emoji-id="5">H</tg-emoji>&lt;&gt;&amp;&quot;&#39;&#x27;'
    )
    text, entities = parse_html(source)
    assert text == "123456789ABCDEFGH<>&\"''"
    assert [entity["type"] for entity in entities] == (
        ["bold"] * 2 + ["italic"] * 2 + ["underline"] * 2 + ["strikethrough"] * 3
    ) + (
        ["text_link", "code", "pre", "blockquote", "expandable_blockquote"]
        + ["spoiler"] * 2
        + ["custom_emoji"]
    )
    assert entities[9] == {
        "type": "text_link",
        "offset": 9,
        "length": 1,
        "url": "https://wine.example/?a=1&b=2",
    }


def test_offsets_count_utf16_units_of_the_trimmed_text() -> None:
    text, entities = parse_html("\n 🍷 <b>red <i>🍇</i> </b>\n")
    assert text == "🍷 red 🍇"
    assert entities == [
        {"type": "bold", "offset": 3, "length": 6},
        {"type": "italic", "offset": 7, "length": 2},
    ]


def test_only_the_first_100_entities_count() -> None:
    text, entities = parse_html("<b>x</b> " * 101)
    assert len(text) == 201
    assert len(entities) == 100
    assert entities[-1]["offset"] == 198


def test_a_tag_may_not_hide_in_an_attribute() -> None:
    with pytest.raises(EntitiesError, match="Unsupported"):
        parse_html('<a href="x"onclick="y">z</a>')
