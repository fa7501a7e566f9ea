"""The terms of a text, in any language."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.documents.chunking import index_terms, postings, query_terms, term_number, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Malolactic FERMENTATIONS of Côte-Rôtie", ["malolac", "ferment", "cote", "roti"]),
        ("What is it that they do?", []),
        ("Süßreserve, Œil-de-Perdrix", ["sussres", "oeil", "de", "perdrix"]),
        ("27 CFR 9.238 (T26S/R12E)", ["27", "cfr", "9", "238", "t26", "r12e"]),
        ("葡萄酒 1988年", ["葡萄", "萄酒", "1988", "年"]),
        ("ワイン", ["ワイ", "イン"]),
        ("와인을", ["와인", "인을"]),
        ("Виноградный йод", ["виног", "иод"]),
        ("शराब की", ["शराब", "की"]),
        ("fer\u00admenta\u00adtion \ufeffpH3.55", ["ferment", "ph3", "55"]),
        ("4006381333931 Ab12345678", ["4006381333931", "ab12345678"]),
        ("ไวน์แดง", ["ไวน", "วน์", "น์แ", "์แด", "แดง"]),
        ("والنبيذ الأحمر", ["نبيذ", "احمر"]),
        ("🍷 — …", []),
    ],
)
def test_terms_are_folded_stemmed_and_cut(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    "words",
    [
        "Empfehlung Empfehlungen empfehlenswert",
        "üzümlerden üzümlerin üzümlerle",
        "винограда виноградом виноградники",
        "recomendación recomendaciones",
        "οινοποιείο οινοποιία",
        "नारंगियों नारंगियाँ",
    ],
)
def test_endings_of_no_language_matter(words: str) -> None:
    assert len(query_terms(words)) == 1


def test_one_character_is_found_inside_of_words() -> None:
    assert index_terms("赤葡萄酒 ワイン") == [
        *("赤葡", "葡萄", "萄酒", "赤", "葡", "萄", "酒"),
        *("ワイ", "イン", "ワ", "イ", "ン"),
    ]
    assert query_terms("酒") == ("酒",)


@given(st.text())
def test_what_is_looked_for_is_indexed(text: str) -> None:
    assert set(query_terms(text)) <= set(index_terms(text))


def test_a_chunk_is_found_by_all_its_terms_and_those_of_its_headings_count_twice() -> None:
    stored = postings("Sur lie", "On the lees, the fine lees " + "oak " * 300)
    length, *numbers = struct.unpack("<6I", stored[:24])
    terms_ = [term_number(term) for term in ("sur", "lie", "lee", "fine", "oak")]
    assert length == 2 + 3 + 300
    assert dict(zip(numbers, stored[24:], strict=True)) == dict(
        zip(terms_, (2, 2, 2, 1, 255), strict=True)
    )


def test_a_question_is_cut_to_its_first_terms() -> None:
    words = [f"word{number}" for number in range(100)]
    assert query_terms(" ".join(words + words)) == tuple(words[:64])
