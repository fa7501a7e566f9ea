"""What /ask, /quotes and /find read and show."""

import pytest

from agent.documents.answer import Answer, footnotes
from agent.documents.passages import Chunk
from agent.documents.quotes import Quote, Quotes
from agent.documents.refine import Refinement
from agent.i18n import say
from agent.markdown import escape, link
from agent.places.categories import categories
from agent.places.find import FoundPlace, Places, SearchLink
from agent.places.queries import queries_by_rules
from bot.telegram import look_ups as text
from bot.telegram.conversation import behind_command
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
    links = tuple(SearchLink(each, f"https://search.example/?q={each}") for each in queries.queries)
    return Places(queries, results, links, note, failed)


class TestArguments:
    @pytest.mark.parametrize(
        ("said", "words"),
        [
            ("/ask what is tannin?", "what is tannin?"),
            ("/ask@sommelier_bot what\nis it?", "what\nis it?"),
            ("/ask", ""),
            ("  /ask   ", ""),
            ("what /is it", "what /is it"),
        ],
    )
    def test_the_words_behind_a_command(self, said: str, words: str) -> None:
        assert behind_command(said) == words

    @pytest.mark.parametrize(
        ("words", "question", "refine"),
        [
            ("what is tannin?", "what is tannin?", False),
            ("--refine what is tannin?", "what is tannin?", True),
            ("—refine what is tannin?", "what is tannin?", True),
            ("what is tannin? --Refine", "what is tannin?", True),
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
            ("wine bar Lyon", "WINE_BAR", "Lyon"),
            ("Wine bars in San Sebastián", "WINE_BAR", "San Sebastián"),
            ("wine-bar, Lyon, France", "WINE_BAR", "Lyon, France"),
            ("wineries near Beaune", "WINERY", "Beaune"),
            ("bar à vins à Lyon", "WINE_BAR", "Lyon"),
            ("restaurant for wine Turin", "RESTAURANT", "Turin"),
            ("restaurants Turin", "RESTAURANT", "Turin"),
            ("tasting Porto", "TASTING", "Porto"),
            ("wine tasting Porto", "TASTING", "Porto"),
            ("wine course 48.8566, 2.3522", "SOMMELIER_COURSE", "48.8566, 2.3522"),
            ("wine shop", "WINE_SHOP", ""),
            ("wine bar ???", "WINE_BAR", ""),
            ("Weinbar Köln", "WINE_BAR", "Köln"),
            ("Weinhandlungen in Köln", "WINE_SHOP", "Köln"),
            ("wine bar A Coruña", "WINE_BAR", "A Coruña"),
            ("butcher Lyon", None, "butcher Lyon"),
            ("Lyon", None, "Lyon"),
            ("", None, ""),
        ],
    )
    def test_category_and_place(self, words: str, category: str | None, place: str) -> None:
        assert text.read_find(words) == (category, place)

    @pytest.mark.parametrize("key", categories())
    def test_every_category_is_known_by_its_key_and_its_label(self, key: str) -> None:
        assert text.read_find(f"{key} Lyon") == (key, "Lyon")
        assert text.read_find(f"{categories()[key].label} Lyon") == (key, "Lyon")

    def test_a_location_is_a_place(self) -> None:
        assert text.coordinates(48.856613, 2.352222) == "48.8566, 2.3522"
        assert text.coordinates(-0.00001, -70) == "-0.0000, -70.0000"


class TestMarkdown:
    def test_escaped_text_is_seen_as_it_is(self) -> None:
        assert seen(escape(NASTY)) == NASTY
        assert marks(escape(NASTY)) == ["code"]

    def test_only_addresses_of_the_web_become_links_shown_as_their_domain(self) -> None:
        shown = link("https://www.bar.example/a(b> c)")
        (entity,) = parse_html(to_telegram_html(shown))[1]
        assert entity["url"] == "https://www.bar.example/a(b%3E%20c)"
        assert seen(shown) == "bar.example"
        for address in ("javascript:alert(1)", "tg://user?id=1", "ftp://x", "https://", ""):
            assert link(address) == ""

    def test_a_folded_quote(self) -> None:
        assert to_telegram_html("Lees\n**> one\n**> two\nmore") == (
            "Lees\n<blockquote expandable>one\ntwo</blockquote>\nmore"
        )

    def test_bold_text_that_begins_with_a_sign_is_no_quote(self) -> None:
        assert to_telegram_html("**>5** euros") == "<b>&gt;5</b> euros"


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

    def test_a_path_written_as_a_link_is_none(self) -> None:
        found = answered(f"Yeast [{SUR_LIE.path}](https://evil.example).", SUR_LIE)
        assert "text_link" not in marks(text.answer_text(found))

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
        assert seen(first) == f"1. T*tle · A > B\n{NASTY}\nsays why"
        assert marks(first) == ["bold", "blockquote", "code"]
        assert seen(second).startswith("2. ")
        assert (seen(summary), marks(summary)) == ("All [in](https://evil.example) all.", ["code"])


class TestPlaces:
    def test_results_are_links_with_domain_snippet_and_the_queries_that_hit(self) -> None:
        bar = FoundPlace("Bar *A*", "https://www.a.example/x", "Open\n<late>.", ("one", "two"))
        shown = text.places_text(places(bar))
        assert seen(shown) == (
            "Wine bar · Lyon\n\n1. Bar *A* · a.example\nOpen <late>.\nfound by 2 of 10 searches"
        )
        assert marks(shown) == ["bold", "text_link"]

    def test_ten_results_at_most_are_shown(self) -> None:
        many = [FoundPlace(f"Bar {n}", f"https://{n}.example", "", ("q",)) for n in range(20)]
        assert marks(text.places_text(places(*many))).count("text_link") == 10

    def test_without_a_provider_there_are_ten_links_and_the_reason(self) -> None:
        shown = text.searches_text(places(note=say("no_place_search")))
        assert seen(shown).startswith(
            f"Wine bar · Lyon\n\n{say('no_place_search')}\n\n1. bar à vin Lyon · search"
        )
        assert marks(shown).count("text_link") == 10

    def test_searches_that_failed_are_told(self) -> None:
        bar = FoundPlace("Bar", "https://a.example", "", ("one",))
        assert text.searches_text(places(bar, failed=3)).startswith("3 of these searches gave no")

    def test_queries_as_a_file_are_one_a_line(self) -> None:
        assert text.queries_file(["bar à vin", "two"]) == "bar à vin\ntwo\n".encode()
