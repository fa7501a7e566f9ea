"""The arguments of /ask and /find, and how texts of others are shown."""

from agent.documents.quotes import Quote, Quotes
from bot.look_ups import quote_texts, read_find, read_question
from bot.telegram.render import parse

NASTY = "**5** [x](https://evil.example) <b> `c` _i_ # > - 1. \\ ~"


def test_a_question_and_the_wish_to_refine_it() -> None:
    assert read_question("what is tannin?") == ("what is tannin?", False)
    assert read_question("--refine what is tannin?") == ("what is tannin?", True)


def test_category_and_place() -> None:
    assert read_find("WINE_BAR Lyon") == ("WINE_BAR", "Lyon")
    assert read_find("bar à vins à Lyon") == ("WINE_BAR", "Lyon")
    assert read_find("butcher Lyon") == (None, "butcher Lyon")


def test_texts_of_others_are_shown_as_they_are_written() -> None:
    quote = Quote(
        content=NASTY,
        source_id="doc",
        source_title="T*tle",
        source_location="A > B",
        relevance="says\nwhy",
        path="a.md",
        chunk_id="c1",
    )
    found = Quotes(query="q", quotes=(quote,), summary=NASTY, outcome="answered", by_model=True)
    shown, summary = (parse(text).text for text in quote_texts(found))
    assert shown == f"1. T*tle · A > B\n{NASTY}\nThe model's words: says why"
    assert summary == f"The model's words: {NASTY}"
