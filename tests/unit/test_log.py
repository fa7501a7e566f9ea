"""What the log hides: secrets where they are secrets, and nothing else."""

import logging

from bot.commands.output import RedactingFormatter

BOT_TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"


def logged(text: str, *secrets: str) -> str:
    record = logging.LogRecord("wine", logging.WARNING, __file__, 1, text, None, None)
    return RedactingFormatter(secrets).format(record).partition("wine: ")[2]


def test_credentials_are_hidden_and_a_key_that_is_a_word_hides_no_words() -> None:
    assert logged(f"GET /bot{BOT_TOKEN}/getMe", BOT_TOKEN) == "GET /bot[secret]/getMe"
    text = "extra: no key of sommelier is none, ollama takes test1"
    assert logged(text, "", "x", "key", "test1", "ollama", "sommelier", "none") == text


def test_a_traceback_is_read_too() -> None:
    error = ValueError("the token fn9-4c1f0d is wrong")
    about = type(error), error, None
    record = logging.LogRecord("wine", logging.ERROR, __file__, 1, "failed", None, about)
    text = RedactingFormatter(["fn9-4c1f0d"]).format(record)
    assert "ValueError: the token [secret] is wrong" in text
