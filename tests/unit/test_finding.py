"""The terms by which texts are found, in any language, and rankings made one."""

import pytest

from db.word_index import extract_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Malolactic FERMENTATIONS of Côte-Rôtie", "malolac ferment cote roti"),
        ("葡萄酒 1988年", "葡萄 萄酒 1988 年"),
        ("Виноградный виноградом", "виног виног"),
        ("fer\u00admenta\u00adtion \ufeffpH3.55", "ferment ph3 55"),
        ("🍷 — …", ""),
    ],
)
def test_terms_are_normalised_stemmed_and_truncated(text: str, expected: str) -> None:
    assert extract_terms(text) == expected.split()
