"""Which statements a citation covers, and what is left of an answer without some of them."""

import pytest

from agent.documents.citations import (
    citations,
    keep_sentences,
    plain_brackets,
    statements,
    unretrieved_path,
    unsupported_number,
)
from agent.engine.contract import Evidence
from tests.library import SUR_LIE

PATHS = ("a.md", "b.md")


def uncited(text: str) -> list[str]:
    return [
        found.text for found in statements(text, PATHS) if found.needs_citation and not found.cites
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Lees are yeast. [a.md]",
        "Lees are yeast.[a.md] They settle.[b.md]",
        "According to [a.md], lees are yeast.",
        "Lees are yeast. They settle. [a.md]",
        "1. Gross lees are\n   heavy. They smell. [a.md]\n2. Fine lees [b.md]",
        "**Lees**\nThey are yeast [a.md].",
        "Lees are yeast [a.md]. Would you like to know more?",
        "Lees, e.g. Dead yeast approx. 2 % vol. of it, settle [a.md].",
        "Lees are yeast.\n\n[a.md]\n\nThey settle.\nSource: [a.md], [b.md]",
        "I don't have enough information on prices.",
        "澱は酵母です。沈みます [a.md]。",
    ],
)
def test_a_statement_is_covered_by_a_citation_in_or_behind_it(text: str) -> None:
    assert uncited(text) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Lees are yeast [a.md]. They settle.", ["They settle."]),
        ("Lees are yeast.\n\nThey settle [a.md].", ["Lees are yeast."]),
        ("- gross lees are heavy\n- fine lees are not [a.md]", ["gross lees are heavy"]),
        ("Lees are yeast […].", ["Lees are yeast […]."]),
    ],
)
def test_a_statement_without_one_is_named(text: str, missing: list[str]) -> None:
    assert uncited(text) == missing


def test_brackets_may_name_several_paths_and_unknown_ones() -> None:
    (cited,) = citations("Lees [a.md, `b.md`; c.md].", PATHS)
    assert (cited.paths, cited.unknown) == (("a.md", "b.md"), ("c.md",))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Lees [a.md](a.md).", "Lees [a.md]."),
        ("Lees [yeast](a.md).", "Lees yeast [a.md]."),
        ("Lees【a.md】.", "Lees[a.md]."),
        ("【Lees】 [here](https://a.example/b.md)", "【Lees】 [here](https://a.example/b.md)"),
    ],
)
def test_links_and_wide_brackets_that_cite_are_citations(written: str, read: str) -> None:
    assert plain_brackets(written) == read


def test_what_is_left_keeps_its_words_its_layout_and_its_citations() -> None:
    text = "# Lees\n\nThey are yeast. They glow. They settle [a.md].\n\n## More\n\n- They glow."
    left = keep_sentences(text, PATHS, lambda statement: "glow" not in statement.text)
    assert left == "# Lees\n\nThey are yeast. [a.md] They settle [a.md]."


def test_an_answer_of_which_nothing_is_rejected_stands_as_it_is() -> None:
    text = "Two:\n- gross lees [a.md]\n- fine lees [b.md]\n\nThey settle [a.md].\nAll [b.md]."
    assert keep_sentences(text, PATHS, lambda _: True) == text


def test_only_paths_that_a_tool_returned_may_be_cited_beside_other_brackets() -> None:
    evidence = Evidence({SUR_LIE.id: SUR_LIE})
    assert unretrieved_path(f"Lees [{SUR_LIE.path}] rest [sic].", evidence) is None
    assert "cites [made/up.md]" in str(unretrieved_path("Lees [made/up.md].", evidence))


@pytest.mark.parametrize(
    ("statement", "sources", "number"),
    [
        ("Serve at 8 °C.", "Serve at 10 °C.", "8"),
        ("Serve at 10 °C.", "Serve at 8–10 °C.", None),
        ("About 1000 l and 12,5 %.", "1,000 litres at 12.50 %.", None),
        ("Keep it 2 Jahre.", "Keep it for two years.", None),
        ("Bis 2040.", "From 2018, 10 to 30 years.", "2040"),
    ],
)
def test_a_number_stands_in_the_source_in_figures_or_words(
    statement: str, sources: str, number: str | None
) -> None:
    assert unsupported_number(statement, sources) == number
