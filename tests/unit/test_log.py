"""What the log hides: secrets where they are secrets, and nothing else."""

import logging

import pytest

from bot.commands.output import RedactingFormatter

BOT_TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"


def logged(text: str, *secrets: str) -> str:
    record = logging.LogRecord("wine", logging.WARNING, __file__, 1, text, None, None)
    return RedactingFormatter(secrets).format(record).partition("wine: ")[2]


@pytest.mark.parametrize(
    ("text", "secrets", "shown"),
    [
        (f"GET /bot{BOT_TOKEN}/getMe", (BOT_TOKEN,), "GET /bot[secret]/getMe"),
        ("asked with fn9-4c1f0d, again", ("fn9-4c1f0d",), "asked with [secret], again"),
    ],
)
def test_credentials_are_hidden(text: str, secrets: tuple[str, ...], shown: str) -> None:
    assert logged(text, *secrets) == shown


@pytest.mark.parametrize("key", ["", "x", "key", "test1", "ollama", "sommelier", "none"])
def test_a_key_that_is_a_word_hides_no_words(key: str) -> None:
    text = "extra: no key of sommelier is none, ollama takes test1"
    assert logged(text, key) == text


def test_a_traceback_is_read_too() -> None:
    error = ValueError("the token fn9-4c1f0d is wrong")
    about = type(error), error, None
    record = logging.LogRecord("wine", logging.ERROR, __file__, 1, "failed", None, about)
    text = RedactingFormatter(["fn9-4c1f0d"]).format(record)
    assert "ValueError: the token [secret] is wrong" in text
