"""Cutting stored history at a boundary, and the window a model is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.history import StoredMessage, truncate_at_boundary, window

FILLER = "x" * 60


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("Short.", 100, "Short."),
        ("One. Two. Three", 12, "One. Two."),
        ("One. Two. Three", 9, "One. Two."),
        ("One. Two. Three", 8, "One."),
        ("A first paragraph\n\nA second one without an end", 30, "A first paragraph"),
        ("Para one.\n\nPara two. And more", 24, "Para one.\n\nPara two."),
        ("Try Dr. Loosen today " + FILLER, 30, "Try Dr. Loosen today"),
        ("It costs 9.50 euros a bottle " + FILLER, 30, "It costs 9.50 euros a bottle"),
        ("Serve cool. Use e.g. a bucket of ice " + FILLER, 36, "Serve cool."),
        ("Really?! Yes, and more to say here", 20, "Really?!"),
        ("“Fine.” He left, slowly, by the door", 20, "“Fine.”"),
        ("很好。再来一杯吧", 5, "很好。"),
        ("no boundary at all here", 12, "no boundary"),
        ("x" * 50, 10, "x" * 10),
        ("Choose.\n1. Chinon from the Loire and more", 12, "Choose."),
    ],
)
def test_cut(text: str, limit: int, kept: str) -> None:
    assert truncate_at_boundary(text, limit) == kept


@given(st.text(), st.integers(1, 200))
def test_a_cut_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    kept = truncate_at_boundary(text, limit)
    assert text.startswith(kept)
    assert len(kept) <= limit
    assert kept == text or len(text) > limit


@given(st.lists(st.sampled_from(["One is here.", "Is it?", "So!"]), min_size=1, max_size=40))
def test_a_cut_loses_less_than_the_next_sentence(sentences: list[str]) -> None:
    text = " ".join(sentences)
    kept = truncate_at_boundary(text, 100)
    assert kept == text or (kept[-1] in ".?!" and len(kept) > 100 - len(" One is here."))


def test_the_window_tells_the_ids_of_wines_shown_and_leaves_blanks_out() -> None:
    stored = [
        StoredMessage("user", "A red?"),
        StoredMessage("assistant", "Two:", ("a-2020", "b-2019")),
        StoredMessage("assistant", "  "),
    ]
    assert window(stored) == [
        {"role": "user", "content": "A red?"},
        {"role": "assistant", "content": "Two:\n\n[wine ids: a-2020, b-2019]"},
    ]
