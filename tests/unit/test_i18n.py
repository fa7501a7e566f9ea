"""The sentences of the interface: complete, well formed and used, in every language."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po

from agent.i18n import (
    LOCALES,
    languages,
    translate_into,
)

ROOT = LOCALES.parents[1]
NAME_ARGUMENT = {"translate": 0, "translate_into": 1}
"""The position of the sentence's name in the calls that take one."""
BUILT = (
    *("fallback_limit_", "fallback_tannin_", "fallback_acidity_", "fallback_cheapest"),
    *("fallback_dearest", "pairing_", "command_", "reason_", "memory_", "cellar_", "vegan_"),
    *("next_", "wish_", "read_", "setting_", "traces_", "aloud_"),
)
"""The beginnings of names that are put together."""


def catalogue(file: Path) -> Catalog:
    with file.open("rb") as opened:
        return read_po(opened, abort_invalid=True)


TEMPLATE = catalogue(LOCALES / "messages.pot")
NAMES = {message.context: message for message in TEMPLATE if message.context}
SOURCES = [path for room in ("agent", "bot") for path in (ROOT / room).rglob("*.py")]


def forms(strings: str | Sequence[str] | None) -> tuple[str, ...]:
    return (strings,) if isinstance(strings, str) else tuple(strings or ())


def placeholders(text: str) -> set[str]:
    """The names in braces; what a format could reach beyond them would be a name, too."""
    parsed = list(Formatter().parse(text))
    assert not any(spec or conversion for _, _, spec, conversion in parsed)
    return {name for _, name, _, _ in parsed if name is not None}


def wanted_by(message: Message) -> set[str]:
    return set().union(*map(placeholders, forms(message.id)))


@pytest.mark.parametrize("language", languages()[1:])
def test_a_catalogue_is_complete(language: str) -> None:
    translated = catalogue(LOCALES / language / "LC_MESSAGES" / "messages.po")
    by_name = {message.context: message for message in translated if message.context}
    assert by_name.keys() == NAMES.keys(), "run `make texts`"
    for name, message in by_name.items():
        assert message.id == NAMES[name].id, f"the English of {name} changed: run `make texts`"
        assert not message.fuzzy, f"{name} is to be looked at again"
        assert all(form.strip() for form in forms(message.string)), f"{name} is not translated"
        for form in forms(message.string):
            assert placeholders(form) == wanted_by(message), f"{name}: {form}"
        count = translated.num_plurals if message.pluralizable else 1
        assert len(forms(message.string)) == count


@pytest.mark.parametrize("language", languages())
def test_menus_and_buttons_fit(language: str) -> None:
    for name in NAMES:
        if name.startswith("command_"):
            assert 1 <= len(translate_into(language, name)) <= 256
        if name.endswith("_button"):
            assert len(translate_into(language, name)) <= 40


def said() -> Iterator[tuple[str, str, set[str]]]:
    """Where a sentence is said, its name, and the values that are given, if all are known."""
    for path in SOURCES:
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
            if not isinstance(call, ast.Call) or name not in NAME_ARGUMENT:
                continue
            given = {keyword.arg for keyword in call.keywords}
            for node in ast.walk(call.args[NAME_ARGUMENT[name]]):
                if isinstance(node, ast.Constant) and node.value in NAMES and None not in given:
                    yield f"{path.name}:{call.lineno}", node.value, {*filter(None, given)}


def test_what_is_said_gets_its_values() -> None:
    found = [*said()]
    for where, name, values in found:
        assert wanted_by(NAMES[name]) <= values, f"{where}: {name} wants {wanted_by(NAMES[name])}"
    assert len(found) > 50


def test_no_sentence_is_left_unsaid() -> None:
    source = "".join(path.read_text("utf-8") for path in SOURCES)
    found = [name for name in NAMES if f'"{name}"' in source or f"'{name}'" in source]
    left = [name for name in NAMES if name not in found and not name.startswith(BUILT)]
    assert left == []


def test_a_foreign_value_stands_as_it_is() -> None:
    hostile = "{id.__class__} {0} %(id)s {{x}}"
    for language in languages():
        assert hostile in translate_into(language, "asks_to_be_let_in", id=1, name=hostile)
