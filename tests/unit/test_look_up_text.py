"""The arguments and messages of /ask, /quotes and /find."""

import pytest
from telegram import Location, Venue

from agent.documents.quotes import Quote, Quotes
from bot.telegram import look_ups as text
from bot.telegram.render import to_telegram_html, visible_text
from tests.doubles.telegram_html import parse_html

NASTY = "**5** [x](https://evil.example) <b> `c` _i_ # > - 1. \\ ~"


def seen(markdown: str) -> str:
    return visible_text(to_telegram_html(markdown))


def marks(markdown: str) -> list[str]:
    return [entity["type"] for entity in parse_html(to_telegram_html(markdown))[1]]


class TestArguments:
    @pytest.mark.parametrize(
        ("words", "question", "refine"),
        [
            ("what is tannin?", "what is tannin?", False),
            ("--refine what is tannin?", "what is tannin?", True),
            ("how do people refine-wine --refined", "how do people refine-wine --refined", False),
        ],
    )
    def test_the_question_and_the_wish_to_refine_it(
        self, words: str, question: str, refine: bool
    ) -> None:
        assert text.read_question(words) == (question, refine)

    @pytest.mark.parametrize(
        ("words", "category", "place"),
        [
            ("WINE_BAR Lyon", "WINE_BAR", "Lyon"),
            ("Wine bars in San Sebastián", "WINE_BAR", "San Sebastián"),
            ("bar à vins à Lyon", "WINE_BAR", "Lyon"),
            ("wine course 48.8566, 2.3522", "SOMMELIER_COURSE", "48.8566, 2.3522"),
            ("Weinhandlungen in Köln", "WINE_SHOP", "Köln"),
            ("wine bar A Coruña", "WINE_BAR", "A Coruña"),
            ("butcher Lyon", None, "butcher Lyon"),
            ("", None, ""),
        ],
    )
    def test_category_and_place(self, words: str, category: str | None, place: str) -> None:
        assert text.read_find(words) == (category, place)

    def test_a_location_is_a_place_of_its_coordinates_or_of_its_venue(self) -> None:
        here = Location(longitude=2.352222, latitude=48.856613)
        assert text.place_of(here, None) == "48.8566, 2.3522"
        assert text.place_of(here, Venue(here, "Ardo\n", "Calle 1")) == "Ardo, Calle 1"


class TestQuotes:
    def test_each_quote_is_a_message_and_then_the_summary(self) -> None:
        quote = Quote(NASTY, "doc", "T*tle", "A > B", "says\nwhy", "a.md", "c1")
        found = Quotes(
            "q", (quote, quote), "All [in](https://evil.example) all.", False, outcome="answered"
        )
        first, second, summary = text.quote_texts(found)
        assert seen(first) == f"1. T*tle · A > B\n{NASTY}\nThe model's words: says why"
        assert marks(first)[:2] == ["bold", "blockquote"]
        assert seen(second).startswith("2. ")
        assert seen(summary) == "The model's words: All [in](https://evil.example) all."
        assert "text_link" not in marks(summary)
