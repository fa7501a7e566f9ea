"""Bring what is new in `languages/messages.pot` into every catalogue: `make texts`.

The catalogue of a country gets no new sentences: it has those that differ from its language.

`make lint` names each fault of the files in `languages/`. With such a fault the bot does not start,
or says a sentence in English or without its numbers.
"""

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from string import Formatter
from typing import Final

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import PoFileError, read_po, write_po

from agent.i18n import CATALOGUE_FILE, TEMPLATE_FILE
from agent.languages import LANGUAGE_FILE, LANGUAGES_FOLDER

LINE_CHARS = 100
NAME_LINE: Final = re.compile(r'^msgctxt "(.+)"$', re.MULTILINE)
ERROR_LINE: Final = re.compile(r"at line (\d+)")
KEY_LINE: Final = re.compile(r"\s*(?:[\w\"'.-]+\s*=|\[)")
"""The beginning of a line of TOML that has a key or names a table."""
RUN_TEXTS: Final = "run `make texts`"


def catalogue_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/messages*.po"))


def updated(file: Path) -> str:
    """Return a catalogue with the sentences of the template."""
    template = read_po(BytesIO(TEMPLATE_FILE.read_bytes()))
    catalogue = read_po(BytesIO(file.read_bytes()), locale=file.parent.name)
    known = {message.context for message in catalogue}
    catalogue.update(template, update_creation_date=False)
    for message in list(catalogue):
        if file.name != CATALOGUE_FILE and message.context not in known:
            catalogue.delete(message.id, message.context)
    written = BytesIO()
    write_po(
        written,
        catalogue,
        width=LINE_CHARS,
        ignore_obsolete=True,
        include_previous=True,
    )
    return written.getvalue().decode().rstrip() + "\n"


def find_faults(folder: Path) -> list[str]:
    """Return a line for each fault in a folder of languages, with the file and the key."""
    faults: list[str] = []
    for file in sorted(folder.glob("*/*.toml")):
        faults += _find_toml_faults(file)
    template_file = folder / TEMPLATE_FILE.name
    files = catalogue_files(folder)
    for file in [template_file, *files]:
        faults += _find_unreadable_parts(file)
    if faults:
        return faults  # only files that can be read are compared
    template = _read_messages(template_file)
    for file in files:
        if file.name == CATALOGUE_FILE:
            faults += _find_gaps(file, template)
        else:
            faults += _find_repetitions(file)
        faults += _find_bad_translations(file, template)
    return faults


def _find_toml_faults(file: Path) -> list[str]:
    """Return why a file is no valid TOML, such as a key that is there twice."""
    text = file.read_text("utf-8")
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        lines = text.splitlines()
        number = _find_key_line(lines, error)
        return [f"{file}:{number}: {lines[number - 1]}\n    {error}"]
    return []


def _find_key_line(lines: Sequence[str], error: tomllib.TOMLDecodeError) -> int:
    """Return the number of the line with the key of an error.

    The error has the line in which the value of the key ends.
    """
    number = len(lines)
    found = ERROR_LINE.search(str(error))
    if found:
        number = int(found.group(1))
    while number > 1 and not KEY_LINE.match(lines[number - 1]):
        number -= 1
    return number


def _find_unreadable_parts(file: Path) -> list[str]:
    """Return why a file is no catalogue, and the names that it has twice."""
    try:
        read_catalogue(file)
    except PoFileError as error:
        return [f"{file}: {error}"]
    counts = Counter(NAME_LINE.findall(file.read_text("utf-8")))
    doubled = [name for name, count in counts.items() if count > 1]
    return [f"{file}: {name} is there twice" for name in doubled]


def read_catalogue(file: Path) -> Catalog:
    """Return a catalogue or the template.

    Raises:
        PoFileError: the file is not a catalogue.
    """
    with file.open("rb") as opened:
        return read_po(opened, abort_invalid=True)


def _read_messages(file: Path) -> Mapping[str, Message]:
    """Return the sentences of a catalogue by their names."""
    messages = {}
    for message in read_catalogue(file):
        if message.context:  # the header has no name
            messages[message.context] = message
    return messages


def _find_gaps(file: Path, template: Mapping[str, Message]) -> list[str]:
    """Return the sentences that a catalogue lacks, unless it says that it is unfinished."""
    language_file = file.with_name(LANGUAGE_FILE)
    language = tomllib.loads(language_file.read_text("utf-8"))
    if language.get("has_partial_catalogue"):
        return []
    messages = _read_messages(file)
    faults = []
    for name in template:
        if name not in messages:
            faults.append(f"{file}: {name} is missing: {RUN_TEXTS}")
        elif not all(map(str.strip, forms(messages[name].string))):
            faults.append(f"{file}: {name} is not translated")
    return faults


def _find_repetitions(file: Path) -> list[str]:
    """Return the sentences of a country that are the same in its language."""
    of_language = _read_messages(file.with_name(CATALOGUE_FILE))
    faults = []
    for name, message in _read_messages(file).items():
        if not all(map(str.strip, forms(message.string))):
            faults.append(f"{file}: {name} is not translated")
        elif name in of_language and message.string == of_language[name].string:
            faults.append(f"{file}: {name} does not differ: leave it out")
    return faults


def _find_bad_translations(file: Path, template: Mapping[str, Message]) -> list[str]:
    """Return the sentences that are not, or not certainly, translations of the template."""
    catalogue = read_catalogue(file)
    faults = []
    for name, message in _read_messages(file).items():
        english = template.get(name)
        form_count = 1
        if message.pluralizable:
            form_count = catalogue.num_plurals
        if english is None:
            faults.append(f"{file}: {name} is not in the template: {RUN_TEXTS}")
        elif message.id != english.id:
            faults.append(f"{file}: the English of {name} changed: {RUN_TEXTS}")
        elif message.fuzzy:
            faults.append(f"{file}: {name} is marked as fuzzy: read and translate it")
        elif len(forms(message.string)) != form_count:
            faults.append(f"{file}: {name} needs {form_count} forms of the plural")
        else:
            faults += _find_bad_placeholders(file, message)
    return faults


def _find_bad_placeholders(file: Path, message: Message) -> list[str]:
    """Return the forms of a translation whose placeholders are not those of the English."""
    expected = placeholders_of(message)
    faults = []
    for form in filter(None, forms(message.string)):
        try:
            found = placeholders(form)
        except ValueError as error:
            faults.append(f"{file}: {message.context}: {error}: {form}")
            continue
        if found != expected:
            wanted = ", ".join(sorted(expected)) or "no placeholder"
            faults.append(f"{file}: {message.context} must have {wanted}: {form}")
    return faults


def forms(strings: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the sentence, or its forms for each number."""
    if isinstance(strings, str):
        return (strings,)
    return tuple(strings or ())


def placeholders(text: str) -> set[str]:
    """Return the words in braces.

    Raises:
        ValueError: the braces are not closed.
    """
    found = set()
    for _, name, spec, conversion in Formatter().parse(text):
        if name is not None:
            found.add(f"{name}{spec or ''}{conversion or ''}")
    return found


def placeholders_of(message: Message) -> set[str]:
    """Return the words in braces of the English sentence, in any of its forms."""
    found: set[str] = set()
    for form in forms(message.id):
        found |= placeholders(form)
    return found


def main() -> int:
    """Update the catalogues, or with "check" only name their faults."""
    if sys.argv[1:] == ["check"]:
        faults = find_faults(LANGUAGES_FOLDER)
        for fault in faults:
            print(fault, file=sys.stderr)
        return bool(faults)
    for file in catalogue_files(LANGUAGES_FOLDER):
        file.write_text(updated(file), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
