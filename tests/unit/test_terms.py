"""The terms of a text: the same for both databases, in any language."""

import re
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent
from db.documents.stemming import stem
from db.documents.terms import query_terms, terms


def test_stems_are_those_of_sqlites_porter_tokenizer() -> None:
    sources = sorted(Path(agent.__file__).parent.rglob("*.py"))
    prose = " ".join(source.read_text(encoding="utf-8") for source in sources)
    words = sorted(set(re.findall(r"[a-z]{4,40}", prose.lower())))
    assert len(words) > 2000
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE VIRTUAL TABLE texts USING fts5(word, tokenize='porter ascii')")
        database.execute("CREATE VIRTUAL TABLE found USING fts5vocab(texts, 'instance')")
        database.executemany("INSERT INTO texts(rowid, word) VALUES (?, ?)", enumerate(words))
        stems = dict(database.execute("SELECT doc, term FROM found"))
    database.close()
    assert {word: stem(word) for word in words} == {
        word: stems[number] for number, word in enumerate(words)
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Malolactic FERMENTATIONS of Côte-Rôtie", ["malolact", "ferment", "cote", "roti"]),
        ("What is it that they do?", []),
        ("Süßreserve, Œil-de-Perdrix", ["sussreserv", "oeil", "de", "perdrix"]),
        ("27 CFR 9.238 (T26S/R12E)", ["27", "cfr", "9", "238", "t26", "r12e"]),
        ("葡萄酒 1988年", ["葡萄", "萄酒", "1988", "年"]),
        ("ワイン", ["ワイ", "イン"]),
        ("와인을", ["와인", "인을"]),
        ("Виноградный йод", ["виноградныи", "иод"]),
        ("शराब की", ["शराब", "की"]),
        ("🍷 — …", []),
    ],
)
def test_terms_are_folded_stemmed_and_cut(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@given(st.text())
def test_no_text_makes_a_term_that_could_break_a_query(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= 64
        assert not re.search(r"[\s\"'*^:()\x00-\x2f]", term)


def test_a_question_is_cut_to_its_first_terms() -> None:
    words = [f"word{number}" for number in range(100)]
    assert query_terms(" ".join(words + words)) == tuple(words[:64])
