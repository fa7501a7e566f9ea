"""Coverage of statements by citations, and removal of sentences from an answer."""

import pytest

from agent.documents.citations import (
    find_citations,
    find_unsupported_number,
    keep_sentences,
    split_statements,
)

PATHS = ("a.md", "b.md")


@pytest.mark.parametrize(
    ("text", "uncited"),
    [
        ("Lees are yeast. [a.md]", []),
        ("According to [a.md], lees are yeast.", []),
        ("Lees are yeast. They settle. [a.md]", []),
        ("1. Gross lees are\n   heavy. They smell. [a.md]\n2. Fine lees [b.md]", []),
        ("Lees, e.g. Dead yeast approx. 2 % vol. of it, settle [a.md].", []),
        ("Lees are yeast.\n\n[a.md]\n\nThey settle.\nSource: [a.md], [b.md]", []),
        ("I don't have enough information on prices.", []),
        ("澱は酵母です。沈みます [a.md]。", []),
        ("Lees are yeast [a.md]. They settle.", ["They settle."]),
        ("Lees are yeast.\n\nThey settle [a.md].", ["Lees are yeast."]),
        (
            "- gross lees are heavy\n- fine lees are not [a.md]",
            ["gross lees are heavy"],
        ),
    ],
)
def test_a_citation_in_or_behind_a_statement_covers_it(
    text: str, uncited: list[str]
) -> None:
    needing = [item for item in split_statements(text, PATHS) if item.needs_citation]
    assert [item.text for item in needing if not item.cited_paths] == uncited


def test_brackets_may_name_several_paths_and_unknown_ones() -> None:
    (brackets,) = find_citations("Lees [a.md, `b.md`; c.md].", PATHS)
    assert (brackets.paths, brackets.unknown_paths) == (("a.md", "b.md"), ("c.md",))


def test_remaining_sentences_keep_their_wording_layout_and_citations() -> None:
    text = "# Lees\n\nThey are yeast. They glow. They settle [a.md].\n\n## More\n\n- They glow."
    remaining = keep_sentences(
        text, PATHS, lambda statement: "glow" not in statement.text
    )
    assert remaining == "# Lees\n\nThey are yeast. [a.md] They settle [a.md]."


@pytest.mark.parametrize(
    ("statement", "sources", "number"),
    [
        ("Serve at 8 °C.", "Serve at 10 °C.", "8"),
        ("Keep it 2 Jahre.", "Keep it for two years.", None),
        ("Keep it 24 Jahre.", "Vierundzwanzig Jahre haltbar.", None),
        ("Keep it 5 bis 20 Jahre.", "Keep it between five and twenty years.", None),
        ("Keep it 25 Jahre.", "Keep it between five and twenty years.", "25"),
        ("12.500 Flaschen zu 0,75 l.", "12\u00a0500 bottles of 0.750 l.", None),
        ("Bis 2040.", "From 2018, 10 to 30 years.", "2040"),
    ],
)
def test_a_number_may_be_in_the_source_in_digits_or_words(
    statement: str, sources: str, number: str | None
) -> None:
    assert find_unsupported_number(statement, sources) == number
