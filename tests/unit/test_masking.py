"""What is hidden in a trace before it is stored and before it leaves, and what is not."""

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.engine.messages import TokenUsage
from agent.tracing.masking import Masking
from agent.tracing.records import TraceRecord

NAMES = ("José", "Müller", "anna_k", "Al", "田中", "Anna Maria 🍷")
SECRETS = ('s3cr3t/with"quote', "secret", "12:telegram")
MASKING = Masking("masked", SECRETS, NAMES)

HIDDEN = [
    ("write to anna@example.com.", "write to [email]."),
    (
        "https://x.example/?email=ada%40example.com&x=1",
        "https://x.example/?email=[email]&x=1",
    ),
    ("ruf mich an: +49 (0) 30 1234567, ja?", "ruf mich an: [phone], ja?"),
    ("0033 6 12 34 56 78", "[phone]"),
    ("+1 (415) 555-0134", "[phone]"),
    ("030 1234567", "[phone]"),
    ("call (415) 555-0134 now", "call [phone] now"),
    ("4111 1111 1111 1111", "[card]"),
    ("my card is 5555555555554444", "my card is [card]"),
    ("4111 1111\n1111 1111", "[card]"),
    ("DE89 3704 0044 0532 0130 00", "[iban]"),
    ("FR14 2004 1010 0505 0001 3M02 606 merci", "[iban] merci"),
    ("I am at 48.8566, 2.3522 now", "I am at [location] now"),
    ("Hello José! _José_ and **José**", "Hello [name]! _[name]_ and **[name]**"),
    ("https://t.me/anna_k or @anna_k", "https://t.me/[name] or [name]"),
    ("田中さん and Joséさん", "[name]さん and [name]さん"),
    ('xs3cr3t/with"quotex bot12:telegram/', "x[secret]x bot[secret]/"),
    (
        r'{"intro": "Hi\nJosé, \n+49 151 23456789", "w',
        r'{"intro": "Hi\n[name], \n[phone]", "w',
    ),
]
SHOWN = [
    "under 25 euros, at most 1.250,00 €, USD 2,499,000.00, 3@12.50 each",
    "2015 2016 2017 2018 2019, 2005/2006/2007, 1982, 1985, 1990, 1996",
    "2024-05-01T08:00:00Z, 01.02.2023, 01/02/2023 - 05/02/2023, 0930-1730",
    "750 ml, 300 400 2015, 3760123456780, 1712345678901",
    "baudry-chinon-2020, domaine-415-555-2015, jose-cuvee-de-reserve-2019",
    "docs/0612345678.pdf, call_abc123DEF456ghi789, call_4111111111111111",
    "550e8400-e29b-41d4-a716-446655440000 9f86d081884c7d659a2feaa0c55ad015",
    "prompt_tokens: 123456, key: value, the secret is patience and 12 months",
    "[link](https://example.com/a?b=c#d) @ 20, user@localhost",
    "羊肉に合う赤ワイン、3000円以下、2015年",
    '{"wine_id": "baudry-chinon-2020", "price": 24.5, "vintages": [2015, 2016, 2017]}',
    "",
]


@pytest.mark.parametrize(("text", "masked"), HIDDEN)
def test_personal_data_and_secrets_are_masked(text: str, masked: str) -> None:
    assert MASKING.mask_text(text) == masked


@pytest.mark.parametrize("text", SHOWN)
def test_numbers_and_ids_that_are_not_personal_stay(text: str) -> None:
    assert MASKING.mask_text(text) == text


def test_a_guest_called_name_does_not_mask_the_mask() -> None:
    assert Masking(names=("name Ada",)).mask_text("name: Ada") == "name: [name]"


def test_a_guest_called_rose_does_not_hide_every_rose() -> None:
    masked = Masking(names=("Rose",)).mask_text(
        "Rose likes rosé, rose and wine rose-2020"
    )
    assert masked == "[name] likes rosé, rose and wine rose-2020"


def trace() -> TraceRecord:
    made = TraceRecord("ab" * 16, "chat", "user", ("José",))
    with made.open_root("I am José, +49 151 23456789, key 12:telegram") as root:
        root.child("tool.find_José", "tool")
        known = {"outcome": "answered", "reason": "José, 12:telegram", "calls": 2}
        root.update(output={"José": ["Hello José", 4111]}, metadata=known)
        root.update(usage=TokenUsage(100, 20, 10), level="WARNING")
        root.score("user_feedback", 0.0, "BOOLEAN", "ask José")
    made.tags = ("retried", "tool_error:find_José")
    return made


def test_a_masked_trace_keeps_its_shape_and_loses_what_is_personal() -> None:
    masked = replace(MASKING, names=()).mask_trace(trace())
    assert masked.root.input == "I am [name], [phone], key [secret]"
    assert masked.root.output == {"[name]": ["Hello [name]", 4111]}
    assert masked.root.metadata["reason"] == "[name], [secret]"
    assert (masked.spans[1].name, masked.tags[1]) == (
        "tool.find_[name]",
        "tool_error:find_[name]",
    )
    assert (masked.names, masked.scores["user_feedback"].comment) == ((), "ask [name]")
    assert (masked.root.usage, masked.root.level) == (
        TokenUsage(100, 20, 10),
        "WARNING",
    )
    full = Masking("full", SECRETS).mask_trace(trace())
    assert full.root.input == "I am José, +49 151 23456789, key [secret]"


def test_a_trace_without_content_keeps_what_is_measured() -> None:
    bare, hidden = Masking("none").mask_trace(trace()), trace()
    hidden.is_hidden = True
    assert (bare.root.input, bare.root.output) == (None, None)
    assert bare.root.metadata == {"outcome": "answered", "calls": 2, "fallback": False}
    assert bare.scores["user_feedback"].comment == ""
    assert Masking().mask_trace(hidden).root.input is None


PLANTED = st.sampled_from(["anna@example.com", "4111 1111 1111 1111", *SECRETS[::2]])
PIECES = st.sampled_from(
    [*'0123456789 +-()./@:,[]"\\\n', "José", "Al", "key=", "06 12", "4111 "]
)
TEXTS = st.text() | st.lists(PIECES, max_size=30).map("".join)


@given(TEXTS)
@example("\ud800 06 12 34 56 78 \udfff")
@example("1" * 5000)
def test_masking_twice_changes_nothing_more(text: str) -> None:
    masked = MASKING.mask_text(text)
    assert MASKING.mask_text(masked) == masked


@given(st.text(), PLANTED, st.text(), st.booleans())
def test_planted_secrets_never_survive(
    before: str, planted: str, after: str, as_json: bool
) -> None:
    text = f"{before} {planted}, {after}"
    assert planted not in MASKING.mask_text(
        json.dumps({"text": [text]}) if as_json else text
    )
