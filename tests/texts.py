"""Bring what is new in `languages/messages.pot` into every catalogue: `make texts`.

The catalogue of a country gets no new sentences: it has those that differ from its language.
"""

from io import BytesIO
from pathlib import Path

from babel.messages.pofile import read_po, write_po

from agent.i18n import CATALOGUE_FILE, TEMPLATE_FILE
from agent.languages import LANGUAGES_FOLDER

LINE_CHARS = 100


def catalogue_files() -> list[Path]:
    return sorted(LANGUAGES_FOLDER.glob("*/messages*.po"))


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


if __name__ == "__main__":
    for file in catalogue_files():
        file.write_text(updated(file), "utf-8")
