"""The sentences of the bot: every one that the code says exists, and every one is said."""

import re
from pathlib import Path

import pytest

from agent.repositories import FeedbackReason
from bot.telegram import texts

BOT = Path(texts.__file__).parents[1]
SAID = {
    name
    for path in BOT.rglob("*.py")
    for name in re.findall(r"\btexts\.([A-Z_]+)\b", path.read_text("utf-8"))
}


@pytest.mark.parametrize("name", sorted(SAID))
def test_every_sentence_that_is_said_exists(name: str) -> None:
    assert getattr(texts, name).strip()


def test_every_sentence_is_said() -> None:
    sentences = {key.upper() for key, value in texts._texts().items() if isinstance(value, str)}
    assert sentences == SAID


def test_a_sentence_that_does_not_exist_is_named() -> None:
    with pytest.raises(AttributeError, match=r"texts\.toml has no sentence nothing_such"):
        _ = texts.NOTHING_SUCH


def test_every_reason_has_its_button() -> None:
    assert list(texts.reasons()) == list(FeedbackReason.__args__)  # type: ignore[attr-defined]
