"""The arguments and messages of /ask, /quotes and /find."""

import pytest
from telegram import Location, Venue

from agent.documents.answer import Answer, footnotes
from agent.documents.passages import Chunk
from agent.documents.quotes import Quote, Quotes
from agent.documents.refine import Refinement
from agent.i18n import say
from agent.places.find import FoundPlace, Places
from agent.places.queries import queries_by_rules
from bot.telegram import look_ups as text
from bot.telegram.render import to_telegram_html, visible_text
from tests.doubles.telegram_html import parse_html
from tests.library import OYSTERS, SUR_LIE

NASTY = "**5** [x](https://evil.example) <b> `c` _i_ # > - 1. \\ ~"


def seen(markdown: str) -> str:
    return visible_text(to_telegram_html(markdown))


def marks(markdown: str) -> list[str]:
    return [entity["type"] for entity in parse_html(to_telegram_html(markdown))[1]]


def answered(said: str, *chunks: Chunk, refined: str | None = None) -> Answer:
    footnoted, cited = footnotes(said, chunks)
    reason = None if refined else "disabled"
    refinement = Refinement("q", refined or "q", fallback_reason=reason)  # type: ignore[arg-type]
    return Answer("q", said, footnoted, cited, refinement, chunks=chunks, outcome="answered")


def places(*results: FoundPlace, note: str = "", failed: int = 0) -> Places:
    queries = queries_by_rules("WINE_BAR", "Lyon")
    return Places(queries, results, note, failed)


class TestArguments:
    @pytest.mark.parametrize(
        ("words", "question", "refine"),
        [
            ("what is tannin?", "what is tannin?", False),
            ("--refine what is tannin?", "what is tannin?", True),
            ("—refine what is tannin?", "what is tannin?", True),
            ("how do people refine-wine --refined", "how do people refine-wine --refined", False),
            ("--refine", "", True),
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
            ("wine-bar, Lyon, France", "WINE_BAR", "Lyon, France"),
            ("wineries near Beaune", "WINERY", "Beaune"),
            ("bar à vins à Lyon", "WINE_BAR", "Lyon"),
            ("restaurants Turin", "RESTAURANT", "Turin"),
            ("wine course 48.8566, 2.3522", "SOMMELIER_COURSE", "48.8566, 2.3522"),
            ("wine shop", "WINE_SHOP", ""),
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


class TestAnswers:
    def test_footnotes_have_title_section_and_the_folded_passage(self) -> None:
        found = answered(f"Yeast [{SUR_LIE.path}]. Lean [{OYSTERS.path}].", SUR_LIE, OYSTERS)
        assert text.answer_text(found) == "Yeast [1]. Lean [2]."
        assert seen(text.sources_text(found)).splitlines() == [
            "Sources",
            "[1] Sur lie · What the lees are",
            "Sur lie means that a wine rests on its fine lees.",
            "Lees are mostly dead   yeast cells.",
            "[2] Wine with oysters · Section 1 of 1",
            OYSTERS.text,
        ]
        assert marks(text.sources_text(found)) == ["bold", *["expandable_blockquote"] * 2]

    def test_the_refined_question_is_shown(self) -> None:
        found = answered("I don't have enough information.", refined="lees *contact* in wine")
        first = seen(text.answer_text(found)).splitlines()[0]
        assert first == "I also searched for: lees *contact* in wine"


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


class TestPlaces:
    def test_results_are_links_with_domain_snippet_and_the_queries_that_hit(self) -> None:
        bar = FoundPlace("Bar *A*", "https://www.a.example/x", "Open\n<late>.", ("one", "two"))
        shown = text.places_text(places(bar))
        assert seen(shown) == (
            "Wine bar · Lyon\n\n1. Bar *A* · a.example\nOpen <late>.\nfound by 2 of 10 searches"
        )
        assert marks(shown) == ["bold", "text_link"]

    def test_without_a_provider_there_are_ten_links_and_the_reason(self) -> None:
        shown = text.searches_text(places(note=say("no_place_search")))
        assert seen(shown).startswith(
            f"Wine bar · Lyon\n\n{say('no_place_search')}\n\n1. bar à vin Lyon · duckduckgo"
        )
        assert marks(shown).count("text_link") == 10

    def test_searches_that_failed_are_told(self) -> None:
        bar = FoundPlace("Bar", "https://a.example", "", ("one",))
        assert text.searches_text(places(bar, failed=3)).startswith("3 of these searches gave no")
