"""The log masks secrets, and nothing else."""

import logging

from bot.commands.output import RedactingFormatter

BOT_TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"


def format_record(text: str, *secrets: str) -> str:
    record = logging.LogRecord("wine", logging.WARNING, __file__, 1, text, None, None)
    return RedactingFormatter(secrets).format(record).partition("wine: ")[2]


def test_credentials_are_masked_but_words_are_not() -> None:
    assert (
        format_record(f"GET /bot{BOT_TOKEN}/getMe", BOT_TOKEN)
        == "GET /bot[secret]/getMe"
    )
    text = "extra: no key of sommelier is none, ollama takes test1"
    assert (
        format_record(text, "", "x", "key", "test1", "ollama", "sommelier", "none")
        == text
    )


def test_secrets_in_a_traceback_are_masked() -> None:
    error = ValueError("the token fn9-4c1f0d is wrong")
    exception_info = type(error), error, None
    record = logging.LogRecord(
        "wine", logging.ERROR, __file__, 1, "failed", None, exception_info
    )
    text = RedactingFormatter(["fn9-4c1f0d"]).format(record)
    assert "ValueError: the token [secret] is wrong" in text
