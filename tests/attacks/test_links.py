"""Nothing untrusted becomes a link, by the rules of Telegram's own library."""

import random

import pytest

from agent.engine.contract import Evidence
from agent.markdown import escape
from agent.sommelier.answer import grounding_problem
from agent.sommelier.sommelier_prompts import SommelierResponse
from bot.telegram.render import MAX_MESSAGE_UNITS, MAX_REPLY_CHARS, split_messages
from tests.attacks.link_payloads import PIECES, TOPS, find_live, random_texts
from tests.doubles.telegram_links import find_links, live_links

TRIALS = 2_000
"""Each run of the suite tries as many; `link_payloads.py` tries any number."""

LIVE_IN_PLAIN_TEXT = [
    *(
        "evil.भारत/pay",
        "evil.भारतम्",
        "ワイン・.com",
        "🍷.com",
        "a_.evil.com",
        "x\u0301.evil.de",
    ),
    *(
        "2015 2016 2017+evil.com/pay",
        "0664 1234567:evil.com",
        "+@evil_bot",
        "(@_evil_bot)",
    ),
    *(
        "100 €/5",
        "2019·/start",
        "#1evil",
        "#·evil",
        "$1INCH",
        "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
    ),
    "4111 1111 1\t111 1111",
    *("tonsite://evil.example", "a,b@evil.com", "1.2.3.4:80/pay", "xn--e1a4c.xn--p1ai"),
]


@pytest.mark.parametrize("text", LIVE_IN_PLAIN_TEXT)
@pytest.mark.parametrize(
    "around", ["{}", "Barolo {}, 2016", "2015 2016 {}", "**{}**", "ワイン{}。"]
)
def test_untrusted_text_is_never_live(text: str, around: str) -> None:
    markdown = around.format(escape(text))
    assert [
        link for html in split_messages(markdown) for link in live_links(html)
    ] == []


def test_each_of_these_texts_would_be_live_without_protection() -> None:
    assert [text for text in LIVE_IN_PLAIN_TEXT if not find_links(text)] == []


def test_a_domain_under_any_top_level_domain_is_protected() -> None:
    forms = (
        "evil.{}",
        "evil.{}/pay",
        "x・.{}",
        "user@evil.{}",
        "2015 2016 2017+evil.{}:80/?q#f",
    )
    assert find_live(form.format(top) for top in TOPS for form in forms) == []


def test_random_texts_are_protected() -> None:
    assert find_live(random_texts(TRIALS, seed=45)) == []


def test_no_split_makes_a_link_of_what_is_none() -> None:
    chance = random.Random(45)
    texts = []
    for _ in range(300):
        word = "".join("".join(chance.choices(PIECES, k=4)).split())
        begin = MAX_MESSAGE_UNITS - chance.randint(0, len(word))
        texts.append("a" * begin + word + "b" * 200)
    assert find_live(iter(texts)) == []


@pytest.mark.parametrize(
    "text", ["/start", "@evil_bot", "#evil", "$USD", "evil.com", "t.me/evil"]
)
@pytest.mark.parametrize("limit", [MAX_MESSAGE_UNITS, MAX_REPLY_CHARS])
def test_no_split_before_or_within_a_tag_or_an_address_makes_it_live(
    text: str, limit: int
) -> None:
    padded = [f"{'a' * (limit - cut)}{text}b{text}" for cut in range(-3, len(text) + 4)]
    assert find_live(iter(padded)) == []


@pytest.mark.parametrize(
    "address",
    ["evil.भारत/pay", "ワイン・.com", "+@evil_bot", "a.B.evil.com", "evil.Com/pay"],
)
def test_an_address_without_evidence_is_a_problem_in_an_answer(address: str) -> None:
    response = SommelierResponse.model_validate(
        {"response_type": "informational", "intro": f"Pay at {address} today."}
    )
    assert "which no tool found" in (grounding_problem(response, Evidence()) or "")
