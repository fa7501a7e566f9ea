"""Normalization, search terms and synonyms."""

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sommelier import wine
from agent.sommelier.vocabulary import NameKind, find_canonical_name, normalize
from db.wines.ranking import MAX_WORDS, extract_words


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("Côte-Rôtie", "cote rotie"),
        ("Großes Gewächs", "grosses gewachs"),
        ("Châteauneuf–du‑Pape's", "chateauneuf du pape s"),
        ("___ '\"*():;", ""),
    ],
)
def test_normalization_removes_case_accents_and_punctuation(
    text: str, one: str
) -> None:
    assert normalize(text) == one


@given(st.text(max_size=400))
def test_terms_have_no_query_syntax(text: str) -> None:
    found = extract_words(text)
    assert len(found) <= MAX_WORDS
    assert not [term for term in found if re.search(r"[\s_!-/:-@\[-`{-~\x00]", term)]


def test_names_of_a_grape_share_a_canonical_name() -> None:
    assert find_canonical_name("grapes", "Spätburgunder") == find_canonical_name(
        "grapes", "PINOT NOIR"
    )


@pytest.mark.parametrize("kind", get_args(NameKind))
def test_a_name_has_one_meaning(kind: NameKind) -> None:
    file = Path(wine.__file__).with_name("synonyms.toml")
    groups = tomllib.loads(file.read_text("utf-8"))[kind]
    spelled = [name for group in groups for name in group]
    assert len(set(spelled)) == len(spelled)
    assert [normalize(name) for name in spelled] == spelled
