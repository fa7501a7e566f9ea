"""The terms by which texts are found, in any language, and rankings made one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.documents.finding import WordIndex, fuse, spread, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Malolactic FERMENTATIONS of Côte-Rôtie", "malolac ferment cote roti"),
        ("What is it that they do?", ""),
        ("27 CFR 9.238 (T26S/R12E)", "27 cfr 9 238 t26 r12e"),
        ("葡萄酒 1988年", "葡萄 萄酒 1988 年"),
        ("와인을", "와인 인을"),
        ("Виноградный йод", "виног иод"),
        ("fer\u00admenta\u00adtion \ufeffpH3.55", "ferment ph3 55"),
        ("ไวน์", "ไว วน น์"),
        ("🍷 — …", ""),
    ],
)
def test_terms_are_folded_stemmed_and_cut(text: str, expected: str) -> None:
    assert terms(text) == expected.split()


@pytest.mark.parametrize(
    "words",
    ["Empfehlung Empfehlungen empfehlenswert", "винограда виноградом", "οινοποιείο οινοποιία"],
)
def test_endings_do_not_matter(words: str) -> None:
    assert len(set(terms(words))) == 1


@given(st.text())
def test_any_text_finds_itself_or_holds_no_term(text: str) -> None:
    index = WordIndex()
    index.add([(7, "", [], text), (8, "Title", [], "other"), (9, "", [], "")])
    index.build()
    assert list(index.search(text, 1)) == ([7] if terms(text) else []) or terms(text) == ["other"]


def test_what_several_rankings_agree_on_comes_first() -> None:
    found = fuse([{1: 1.0, 2: 0.5, 3: 0.2}, {3: 0.9, 4: 0.8}])
    assert list(found.items()) == [(3, 0.9), (1, 1.0), (2, 0.5), (4, 0.8)]
    assert fuse([]) == {}


def test_a_document_has_its_share_unless_nothing_else_matches() -> None:
    ranked = [10, 11, 12, 13, 14, 20]
    documents = {number: str(number // 10) for number in ranked}
    assert spread(ranked, 4, documents.__getitem__) == [10, 11, 12, 20]
    assert spread(ranked, 5, documents.__getitem__) == [10, 11, 12, 13, 20]
