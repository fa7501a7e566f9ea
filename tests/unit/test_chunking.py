"""Documents are cut by heading, paragraph and sentence; nothing is lost and nothing is reworded."""

from hypothesis import given
from hypothesis import strategies as st

from db.documents.chunking import MAX_REST_CHARS, Section, cut_sections
from db.documents.reading import read_document

sentences = st.sampled_from(
    [
        "Sur lie means on the lees.",
        "Serve at 1.5 l.",
        "酒很好。",
        "a\nb",
        "- item",
        "x" * 90,
        "Dr. No",
    ]
)
paragraphs = st.lists(sentences, min_size=1, max_size=40).map(" ".join)
texts = st.lists(paragraphs | st.text(max_size=200), max_size=8).map("\n\n".join)
headings = st.lists(st.sampled_from(["Grapes", "Places", "Notes"]), max_size=3).map(
    tuple
)
documents = st.lists(st.builds(Section, headings, texts), max_size=5)


def solid(text: str) -> str:
    return "".join(text.split())


@given(documents, st.integers(min_value=20, max_value=400))
def test_chunks_are_verbatim_and_together_contain_all_text(
    sections: list[Section], limit: int
) -> None:
    whole = solid("".join(section.text for section in sections))
    assert (
        solid("".join(piece.text for piece in cut_sections(sections, limit))) == whole
    )
    for piece in cut_sections(sections, limit):
        assert any(
            piece.text in section.text and piece.headings == section.headings
            for section in sections
        )
        assert piece.text == piece.text.strip() != ""
        assert len(piece.text) <= limit + min(MAX_REST_CHARS, limit // 4)


def test_a_long_paragraph_is_cut_after_sentences() -> None:
    sentence = "The lees give texture, Dr. Dubourdieu wrote in ca. 1986. "
    pieces = cut_sections([Section((), sentence * 60)])
    assert [len(piece.text) for piece in pieces] == [1481, 1481, 455]
    assert {piece.text[-9:] for piece in pieces} == {"ca. 1986."}


def test_markdown_reads_as_people_see_it() -> None:
    source = (
        "---\ntitle: 'On Lees'\n---\n"
        "# Sur *lie*\n\n"
        "Aged **on the [lees](https://example.org)**,\nnot off them &amp; `stirred`.\n\n"
        "## How\n\n1. Press\n2. Rest\n   - cool\n   - dark\n\n"
        "| Grape | Months |\n|---|---|\n| Melon | 6 |\n\n```\nx = 1\n```\n\n"
        "> quoted\n\n<div>raw <script>no()</script>html</div>\n\nlast<br>line ![alt](x.png)\n"
    )
    found = read_document(source.encode(), "a.md")
    assert found.title == "On Lees"
    assert found.sections == (
        Section(("Sur lie",), "Aged on the lees, not off them & stirred."),
        Section(
            ("Sur lie", "How"),
            "1. Press\n2. Rest\n   - cool\n   - dark\n\nGrape | Months\nMelon | 6\n\nx = 1\n\n"
            "quoted\n\nraw html\n\nlast\nline alt",
        ),
    )


def test_the_sources_in_the_header_of_an_article_are_not_part_of_its_text() -> None:
    found = read_document(
        b"---\nsources: The Oxford Companion\n---\n\n# Rose\n\nDry.\n", "rose.md"
    )
    assert found.title == "Rose"
    assert [section.text for section in found.sections] == ["Dry."]
