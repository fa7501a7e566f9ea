"""The sentences of the interface: complete, well formed and used, in every language."""

import ast
import re
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path

import pytest

from agent.i18n import (
    CATALOGUE_FILE,
    TEMPLATE_FILE,
    languages,
    read_translations,
    set_app_language,
    set_language,
    translate,
    translate_into,
)
from agent.languages import LANGUAGES_FOLDER
from agent.sommelier.wine import wine_fields
from tests.texts import find_faults, forms, placeholders_of, read_catalogue

ROOT = LANGUAGES_FOLDER.parent
NAME_ARGUMENT = {"translate": 0, "translate_into": 1}
"""The index of the argument with the name of the sentence, by function."""
COMPOSED_NAME_PREFIXES = (
    *(
        "allergy_",
        "fallback_limit_",
        "fallback_tannin_",
        "fallback_acidity_",
        "fallback_cheapest",
    ),
    *(
        "fallback_dearest",
        "pairing_",
        "command_",
        "reason_",
        "memory_",
        "cellar_",
        "vegan_",
    ),
    *(
        "colour_",
        "next_",
        "wish_",
        "read_",
        "setting_",
        "traces_",
        "aloud_",
        "news_",
        "offer_",
    ),
    *("style_", "import_", "foreign_"),
)
"""Prefixes of names that the code composes at run time."""


TEMPLATE = read_catalogue(TEMPLATE_FILE)
NAMES = {message.context: message for message in TEMPLATE if message.context}
SOURCES = [
    path for folder in ("agent", "bot") for path in (ROOT / folder).rglob("*.py")
]


def test_the_files_of_the_languages_have_no_faults() -> None:
    assert find_faults(LANGUAGES_FOLDER) == []


GERMAN = r"""
msgid ""
msgstr ""
"Language: de\n"
"Content-Type: text/plain; charset=utf-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

msgctxt "bottles"
msgid "{count} bottle"
msgid_plural "{count} bottles"
msgstr[0] "{count} Flasche"
msgstr[1] "Flaschen"

msgctxt "yes"
msgid "Yes"
msgstr ""
"""
FUZZY = """
#, fuzzy
msgctxt "no"
msgid "No"
msgstr "Nein"
"""
GERMAN_TEMPLATE = f"""
{GERMAN}
msgctxt "maybe"
msgid "Perhaps"
msgstr ""

msgctxt "no"
msgid "No"
msgstr ""
"""


def test_each_fault_of_a_file_is_said_with_its_key(tmp_path: Path) -> None:
    folder = tmp_path / "de"
    folder.mkdir()
    words = folder / "words.toml"
    template = tmp_path / TEMPLATE_FILE.name
    catalogue = folder / CATALOGUE_FILE
    (folder / "language.toml").write_text("")
    template.write_text(GERMAN_TEMPLATE, "utf-8")
    words.write_text('[colours]\nred = """\nrot"""\nred = """\nroter"""\n')
    catalogue.write_text(f"{GERMAN}\n{FUZZY}\n{FUZZY}", "utf-8")

    doubled = find_faults(tmp_path)
    assert doubled[0].startswith(f"{words}:4: red =")
    assert doubled[1:] == [f"{catalogue}: no is there twice"]

    words.write_text("")
    catalogue.write_text(f"{GERMAN}\n{FUZZY}", "utf-8")
    assert find_faults(tmp_path) == [
        f"{catalogue}: yes is not translated",
        f"{catalogue}: maybe is missing: run `make texts`",
        f"{catalogue}: bottles must have count: Flaschen",
        f"{catalogue}: no is marked as fuzzy: read and translate it",
    ]


def test_a_country_has_its_words_and_otherwise_those_of_its_language() -> None:
    def in_brazil(language: str, name: str, **values: float) -> str:
        set_app_language("pt-br")
        return translate_into(language, name, **values)

    def say(language: str, name: str, **values: float) -> str:
        return copy_context().run(in_brazil, language, name, **values)

    assert say("pt", "terminal_thinking") == "pensando …"
    assert say("pt", "cellar_all", count=1) == "Na sua adega: 1 garrafa."
    assert say("pt", "liked") == translate_into("pt", "liked") == "Obrigado!"
    assert say("es", "greeting") == translate_into("es", "greeting")


def test_french_breaks_no_line_before_its_punctuation() -> None:
    for message in read_catalogue(LANGUAGES_FOLDER / "fr" / CATALOGUE_FILE):
        for form in forms(message.string):
            assert not re.search(r" [:;!?»]|« ", form) or not message.context, form


@pytest.mark.parametrize(
    "file", [TEMPLATE_FILE, *LANGUAGES_FOLDER.glob("*/*.po")], ids=str
)
def test_a_number_with_a_noun_has_a_singular(file: Path) -> None:
    for message in read_catalogue(file):
        texts = forms(message.id) if file == TEMPLATE_FILE else forms(message.string)
        has_noun = any(re.search(r"[{]count[}]\s[^\W\d_]", text) for text in texts)
        assert message.pluralizable or not has_noun, message.context


@pytest.mark.parametrize("language", languages())
def test_menus_and_buttons_fit(language: str) -> None:
    for name in NAMES:
        if name.startswith("command_"):
            assert 1 <= len(translate_into(language, name)) <= 256
        if name.endswith("_button"):
            assert len(translate_into(language, name)) <= 40


def find_translations() -> Iterator[tuple[str, str, set[str]]]:
    """Yield the location, sentence name and values of each call without `**` arguments."""
    for path in SOURCES:
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
            if not isinstance(call, ast.Call) or name not in NAME_ARGUMENT:
                continue
            values = {keyword.arg for keyword in call.keywords}
            for node in ast.walk(call.args[NAME_ARGUMENT[name]]):
                if (
                    isinstance(node, ast.Constant)
                    and node.value in NAMES
                    and None not in values
                ):
                    yield (
                        f"{path.name}:{call.lineno}",
                        node.value,
                        {*filter(None, values)},
                    )


def test_every_placeholder_gets_a_value() -> None:
    translations = [*find_translations()]
    for location, name, values in translations:
        missing = placeholders_of(NAMES[name]) - values
        assert not missing, f"{location}: {name} lacks {missing}"
    assert len(translations) > 50


def test_every_sentence_is_used() -> None:
    source = "".join(path.read_text("utf-8") for path in SOURCES)
    used = [name for name in NAMES if f'"{name}"' in source or f"'{name}'" in source]
    used += [
        f"wine_{name}" for name, field in wine_fields().items() if field.is_on_card
    ]
    rest = [name for name in NAMES if name not in used]
    assert [name for name in rest if not name.startswith(COMPOSED_NAME_PREFIXES)] == []


def test_every_progress_name_of_a_tool_is_a_sentence() -> None:
    nodes = [
        node
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    ]
    keywords = [node for node in nodes if isinstance(node, ast.keyword)]
    values = [keyword.value for keyword in keywords if keyword.arg == "progress_name"]
    names = [value.value for value in values if isinstance(value, ast.Constant)]
    assert len(names) == len(values) > 0
    assert NAMES.keys() >= {*names}


def test_values_are_inserted_literally() -> None:
    hostile = "{id.__class__} {0} %(id)s {{x}}"
    for language in languages():
        assert hostile in translate_into(
            language, "asks_to_be_let_in", id="1", name=hostile
        )


POLISH = r"""
msgid ""
msgstr ""
"Language: pl\n"
"Content-Type: text/plain; charset=utf-8\n"
"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4"
" && (n%100<12 || n%100>14) ? 1 : 2);\n"

msgctxt "bottles"
msgid "{count} bottle"
msgid_plural "{count} bottles"
msgstr[0] "{count} butelka"
msgstr[1] "{count} butelki"
msgstr[2] "{count} butelek"

msgctxt "glasses"
msgid "{count} glass"
msgid_plural "{count} glasses"
msgstr[0] "{count} kieliszek"
msgstr[1] ""
msgstr[2] ""

msgctxt "yes"
msgid "Yes"
msgstr ""
"""


def test_a_sentence_that_a_catalogue_lacks_is_english_and_plurals_are_chosen(
    tmp_path: Path,
) -> None:
    file = tmp_path / CATALOGUE_FILE
    file.write_text(POLISH, "utf-8")
    polish = read_translations(file)

    def count(name: str, singular: str, number: int) -> str:
        return polish.npgettext(
            name, f"{{count}} {singular}", f"{{count}} {singular}s", number
        )

    bottles = [
        count("bottles", "bottle", number).split()[1] for number in (1, 2, 5, 22, 112)
    ]
    assert bottles == ["butelka", "butelki", "butelek", "butelki", "butelek"]
    # A plural that lacks a form is English in all of them.
    glasses = [
        polish.npgettext("glasses", "glass", "glasses", number) for number in (1, 2, 5)
    ]
    assert glasses == ["glass", "glasses", "glasses"]
    assert polish.pgettext("yes", "Yes") == "Yes"


def test_numbers_in_sentences_are_written_as_in_the_language_and_country() -> None:
    assert "1.234" in translate_into("de", "broadcast_done", count=1234, failed=0)
    assert "1234" in translate_into("de", "admin_stays", id="1234")
    assert "1\u202f234" in translate_into("fr", "broadcast_done", count=1234, failed=0)

    def in_switzerland() -> str:
        set_app_language("de-CH")
        set_language("de")
        return translate("broadcast_done", count=1234, failed=0)

    assert "1’234" in copy_context().run(in_switzerland)
