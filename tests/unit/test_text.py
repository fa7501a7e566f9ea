"""Text: folding, truncation, sentences and language detection."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.language import split_sentences, truncate_at_boundary
from agent.query_reading.phrases import detect_language
from agent.text import fold

FILLER = "x" * 60


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("One. Two. Three", 9, "One. Two."),
        ("Serve cool. Use e.g. a bucket of ice " + FILLER, 36, "Serve cool."),
        ("很好。再来一杯吧", 5, "很好。"),
        ("x" * 50, 10, "x" * 10),
    ],
)
def test_truncation_keeps_whole_sentences(text: str, limit: int, kept: str) -> None:
    assert truncate_at_boundary(text, limit) == kept


@given(st.text(), st.integers(1, 200))
def test_truncation_returns_a_prefix_and_folding_is_idempotent(
    text: str, limit: int
) -> None:
    kept = truncate_at_boundary(text, limit)
    assert text.startswith(kept)
    assert len(kept) <= limit
    assert kept == text or len(text) > limit
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Châteauneuf-du-Pape, GRÜN", "chateauneuf-du-pape, grun"),
        ("Œil, Ærø, Łódź, straße, İstanbul", "oeil, aero, lodz, strasse, istanbul"),
        ("शराब की", "शराब की"),
        ("fer\u00admen\u200dta\ufefftion", "fermentation"),
    ],
)
def test_folding_removes_case_and_accents_only(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_sentences_do_not_end_after_abbreviations_and_numbers() -> None:
    text = (
        "Try 1.5 l of Dr. Loosen, e.g. a Kabinett. It keeps!) Ja, z.B. kühl. 好。再来"
    )
    assert split_sentences(text) == [
        "Try 1.5 l of Dr. Loosen, e.g. a Kabinett.",
        "It keeps!)",
        "Ja, z.B. kühl.",
        "好。",
        "再来",
    ]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "For your lamb I would open this one: fresh, and not too heavy."),
        ("de", "Zum Lamm passt dieser Rotwein, der nicht zu schwer ist."),
        ("fr", "Pour votre gigot, voici deux rouges qui ne coûtent pas trop cher."),
        (
            "es",
            "Para el cordero le recomiendo estos dos tintos, que no pesan demasiado.",
        ),
        ("it", "Per l'agnello ecco due rossi che non costano troppo."),
        ("nl", "Bij het lamsvlees past deze rode wijn, die niet te zwaar is."),
        (
            "pt",
            "Para o seu cordeiro, um tinto com taninos firmes, que não passa dos 20 euros.",
        ),
        ("", "ラム肉には、この赤ワインがよく合います。"),
        ("", ""),
    ],
)
def test_one_sentence_is_enough_to_detect_the_language(
    language: str | None, text: str
) -> None:
    assert detect_language(text) == language
