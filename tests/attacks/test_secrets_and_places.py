"""Passwords in addresses, models that are named like a key, and places that are commands."""

import base64
from urllib.parse import unquote_plus

import pytest

from agent.engine.run import Run
from agent.places.find import find_places
from agent.tracing.records import SpanRecord, TraceRecord
from bot.tracing import masking_of
from config import hide_user_info, load_settings
from tests.commands import sommelier_here

PASSWORD, WRITTEN = "s3cret/pass word", "s3cret%2Fpass%20word"
KEY = "sk-0123456789abcdef"
SETTINGS = {
    "OPENAI_BASE_URL": f"http://ada:{WRITTEN}@127.0.0.1:9/v1",
    "SEARXNG_URL": f"http://grace:{WRITTEN}2@127.0.0.1:9",
    "OPENAI_API_KEY": KEY,
}
FORMS = (
    PASSWORD,
    WRITTEN,
    f"ada:{WRITTEN}",
    base64.b64encode(f"ada:{PASSWORD}".encode()).decode(),
    base64.b64encode(f"grace:{PASSWORD}2".encode()).decode(),
)


def test_no_form_of_a_password_in_an_address_is_kept_in_traces() -> None:
    masking = masking_of(load_settings(None, SETTINGS))
    text = masking.mask_text(" ".join(FORMS))
    assert [form for form in FORMS if form in text] == []


def test_a_short_password_is_hidden_where_it_is_no_word() -> None:
    address = "http://ada:pw@127.0.0.1:9/v1"
    masking = masking_of(load_settings(None, {"OPENAI_BASE_URL": address}))
    shown = f"GET {address} failed; ada:pw@127.0.0.1; authorization: Basic YWRhOnB3; pw is a word"
    expected = (
        "GET http[secret]:9/v1 failed; [secret]; authorization: [secret]; pw is a word"
    )
    assert masking.mask_text(shown) == expected


def test_the_name_of_a_model_holds_no_secret() -> None:
    masking = masking_of(load_settings(None, SETTINGS))
    span = SpanRecord(
        "1", None, "llm.plan", "generation", 1, model=f"gpt-2024-08-06 {KEY}"
    )
    (masked,) = masking.mask_trace(TraceRecord("1", "chat", "user", spans=[span])).spans
    assert masked.model == "gpt-2024-08-06 [secret]"


def test_the_doctor_prints_no_password(environment: dict[str, str]) -> None:
    for command in ("doctor --settings", "doctor"):
        done = sommelier_here(*command.split(), environment=environment, **SETTINGS)
        printed = "".join((done.stdout + done.stderr).split())
        assert WRITTEN not in printed
        assert "s3cret" not in printed
    assert hide_user_info("http://a:b@c/d@e") == "http://***@c/d@e"


@pytest.mark.parametrize(
    ("place", "searched"),
    [
        ("!ducky site:evil.example", "ducky site evil example"),
        ("\\evil -wine intitle:x", "evil wine intitle x"),
        ("!g\u200b (Wien) 'OR' \"a\"", "g Wien OR' a"),
    ],
)
async def test_a_place_is_words_and_no_command_of_a_search_engine(
    place: str, searched: str
) -> None:
    places = await find_places("WINE_BAR", place, run=Run(()), wish="!w natural")
    for link in places.links:
        query = unquote_plus(link.url.partition("?q=")[2])
        assert query.endswith(f" w natural {searched}")
        assert not set('!:\\"()') & set(query)
