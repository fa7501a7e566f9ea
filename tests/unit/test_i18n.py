"""The sentences of the interface: complete, well formed and used, in every language."""

import ast
import gc
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po

from agent.i18n import (
    LOCALES,
    current_language,
    in_every_language,
    languages,
    translate_into,
    use_language,
)

ROOT = LOCALES.parents[1]
NAME_ARGUMENT = {"translate": 0, "translate_into": 1, "in_every_language": 0}
"""The position of the sentence's name in the calls that take one."""
BUILT = (
    "fallback_tannin_", "fallback_acidity_", "fallback_cheapest", "fallback_dearest", "read_",
    "pairing_", "command_", "start_", "reason_", "kept_", "memory_", "cellar_", "vegan_",
    "next_", "wish_", "sent_", "setting_", "traces_", "aloud_",
)  # fmt: skip
"""What the names of sentences begin with that are put together."""


def catalogue(file: Path) -> Catalog:
    with file.open("rb") as opened:
        return read_po(opened, abort_invalid=True)


TEMPLATE = catalogue(LOCALES / "messages.pot")
NAMES = {each.context: each for each in TEMPLATE if each.context}
TRANSLATED = [each for each in languages() if each != "en"]


def forms(message: Message) -> tuple[str, ...]:
    return (message.string,) if isinstance(message.string, str) else tuple(message.string or ())


def originals(message: Message) -> tuple[str, ...]:
    return (message.id,) if isinstance(message.id, str) else tuple(message.id)


def placeholders(text: str) -> set[str]:
    """The names in braces; what a format could reach beyond them would be a name, too."""
    parsed = list(Formatter().parse(text))
    assert not any(spec or conversion for _, _, spec, conversion in parsed)
    return {name for _, name, _, _ in parsed if name is not None}


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_catalogue_is_complete(language: str) -> None:
    translated = catalogue(LOCALES / language / "LC_MESSAGES" / "messages.po")
    by_name = {each.context: each for each in translated if each.context}
    assert by_name.keys() == NAMES.keys(), "run `make texts`"
    for name, message in by_name.items():
        assert message.id == NAMES[name].id, f"the English of {name} changed: run `make texts`"
        assert not message.fuzzy, f"{name} is to be looked at again"
        assert all(each.strip() for each in forms(message)), f"{name} is not translated"
        wanted = set().union(*map(placeholders, originals(message)))
        for form in forms(message):
            assert placeholders(form) == wanted, f"{name}: {form}"
        assert len(forms(message)) == (translated.num_plurals if message.pluralizable else 1)


@pytest.mark.parametrize("language", languages())
def test_menus_and_buttons_fit(language: str) -> None:
    for name in NAMES:
        if name.startswith("command_"):
            assert 1 <= len(translate_into(language, name)) <= 256
        if name.endswith("_button"):
            assert len(translate_into(language, name)) <= 40


def parsed(source: str) -> ast.AST:
    """The source as a tree; finalizers may break the parser's count of its depth (Python 3.11)."""
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.enable()


def said() -> Iterator[tuple[str, str, set[str] | None]]:
    """Where a sentence is said, its name, and the values that are given; None: others may be."""
    for path in (each for room in ("agent", "bot") for each in (ROOT / room).rglob("*.py")):
        source = path.read_text("utf-8")
        if "agent.i18n" not in source:
            continue
        for call in (each for each in ast.walk(parsed(source)) if isinstance(each, ast.Call)):
            position = NAME_ARGUMENT.get(getattr(call.func, "id", ""))
            if position is None:
                continue
            given = {each.arg for each in call.keywords}
            values = None if None in given else {each for each in given if each}
            for each in ast.walk(call.args[position]):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield f"{path.name}:{call.lineno}", each.value, values


def test_what_is_said_exists_and_gets_its_values() -> None:
    known = 0
    for where, name, values in said():
        if name in NAMES and values is not None:
            wanted = set().union(*map(placeholders, originals(NAMES[name])))
            assert wanted <= values, f"{where}: {name} wants {wanted}"
            known += 1
    assert known > 50


def test_no_sentence_is_left_unsaid() -> None:
    source = "".join(
        each.read_text("utf-8") for room in ("agent", "bot") for each in (ROOT / room).rglob("*.py")
    )
    quoted = [f"{quote}{each}{quote}" for each in NAMES if each for quote in "'\""]
    found = {each.strip("'\"") for each in quoted if each in source}
    left = [each for each in NAMES if each not in found and not each.startswith(BUILT)]
    assert left == []


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("de-AT", "de"),
        ("fr_CA.UTF-8", "fr"),
        ("fr, en;q=0.7", "fr"),
        ("pl", "en"),
        ("../../etc", "en"),
    ],
)
def test_a_code_is_the_language_that_there_is_a_catalogue_of(code: str, language: str) -> None:
    with use_language(code):
        assert current_language() == language
    assert current_language() == "en"


def test_a_number_chooses_the_form_and_a_foreign_value_stands_as_it_is() -> None:
    one, two = (translate_into("de", "broadcast_preview", count=count) for count in (1, 2))
    assert (one.endswith("An 1 Chat senden?"), two.endswith("An 2 Chats senden?")) == (True, True)
    hostile = "{id.__class__} {0} %(id)s {{x}}"
    for sentence in in_every_language("asks_to_be_let_in", id=1, name=hostile).values():
        assert hostile in sentence
