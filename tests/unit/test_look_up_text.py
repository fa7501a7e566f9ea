"""Parse the arguments of /ask and /find, and render texts from documents and models."""

from agent.documents.quotes import Quote, Quotes
from bot.look_ups import parse_ask, parse_find, render_quotes
from bot.telegram.render import parse

MARKUP = "**5** [x](https://evil.example) <b> `c` _i_ # > - 1. \\ ~"


def test_ask_takes_a_question_and_a_flag() -> None:
    assert parse_ask("what is tannin?") == ("what is tannin?", None)
    assert parse_ask("--refine what is tannin?") == ("what is tannin?", True)


def test_find_takes_a_category_and_a_place() -> None:
    assert parse_find("WINE_BAR Lyon") == ("WINE_BAR", "Lyon")
    assert parse_find("bar à vins à Lyon") == ("WINE_BAR", "Lyon")
    assert parse_find("garrafeira em Lyon") == ("WINE_SHOP", "Lyon")
    assert parse_find("eine gute Weinbar in Lyon") == ("WINE_BAR", "Lyon")
    assert parse_find("butcher Lyon") == (None, "butcher Lyon")


def test_untrusted_texts_appear_literally() -> None:
    quote = Quote(
        content=MARKUP,
        source_id="doc",
        source_title="T*tle",
        source_location="A > B",
        relevance="says\nwhy",
        path="a.md",
        chunk_id="c1",
    )
    quotes = Quotes(
        query="q", quotes=(quote,), summary=MARKUP, outcome="answered", by_model=True
    )
    quote_text, summary = (parse(text).text for text in render_quotes(quotes))
    assert quote_text == f"1. T*tle · A > B\n{MARKUP}\nThe model's words: says why"
    assert summary == f"The model's words: {MARKUP}"
