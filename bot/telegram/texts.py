"""The sentences that the bot itself says; `texts.GREETING` is `greeting` of texts.toml."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


def __getattr__(name: str) -> str:
    sentence = _texts().get(name.lower())
    if isinstance(sentence, str):
        return sentence
    raise AttributeError(f"texts.toml has no sentence {name.lower()}")


def commands(*, of_admins: bool = False) -> list[tuple[str, str]]:
    """What Telegram shows in its menu; to admins theirs below."""
    admin = _texts()["admin_commands"] if of_admins else {}
    return [*_texts()["commands"].items(), *admin.items()]


def reasons() -> Mapping[str, str]:
    """What may be wrong with an answer, and the label of its button."""
    labels: Mapping[str, str] = _texts()["reasons"]
    return labels


def kept() -> Mapping[str, str]:
    """What is kept of a person, by the names of tables."""
    names: Mapping[str, str] = _texts()["kept"]
    return names


@cache
def _texts() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
