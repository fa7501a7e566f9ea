"""The languages that the project knows: each is a folder of `languages/`, named by its code.

A code is that of ISO 639-1, such as "de". Every file in a folder may be missing: what a language
lacks is said in English, or is not understood in it. `CONTRIBUTING.md` lists the files.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from agent.tables import StrictModel, read_toml

LANGUAGES_FOLDER: Final = Path(__file__).parents[1] / "languages"
ENGLISH: Final = "en"
"""The language of the project, in which everything can be said."""
LANGUAGE_FILE: Final = "language.toml"


class Language(StrictModel):
    """What is known of a language: the content of its `language.toml`.

    `locale` is the locale of CLDR in which its numbers are written for users whose app names no
    country; by default the code of the language.
    """

    locale: str = ""


@cache
def language_codes() -> tuple[str, ...]:
    """Return the codes of all languages, English first."""
    folders = sorted(folder.name for folder in LANGUAGES_FOLDER.iterdir() if folder.is_dir())
    return ENGLISH, *(code for code in folders if code != ENGLISH)


@cache
def load_languages() -> Mapping[str, Language]:
    """Return all languages by their codes, English first.

    Raises:
        ValueError: a `language.toml` is not valid.
    """
    languages: dict[str, Language] = {}
    for code in language_codes():
        file = LANGUAGES_FOLDER / code / LANGUAGE_FILE
        languages[code] = read_toml(Language, file) if file.exists() else Language()
    return languages
