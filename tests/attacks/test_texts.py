"""Texts that cost more than they are long: marks, numbers, digits, line breaks."""

import pytest

from tests.attacks.limits import run_with_limits

MARKS = '"a" + "\\u0301\\u0316" * 64_500'


@pytest.mark.parametrize(
    "work",
    [
        "from agent.turn import find_security_flags; find_security_flags(text)",
        "from agent.numerals import find_numbers; find_numbers(text)",
        "from agent.sommelier.answer import _find_address_problem; from agent import Evidence;"
        "_find_address_problem(text, Evidence(assistant_texts=[text]))",
        "from db.documents.reading import read_document; read_document(text.encode(), 'a.txt')",
    ],
)
def test_a_text_of_combining_marks_is_normalized_in_linear_time(work: str) -> None:
    run_with_limits(f"text = {MARKS}; {work}")
