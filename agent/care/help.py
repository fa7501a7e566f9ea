"""Say why no alcohol is offered, and where help is to be had. Pure.

Sentences and help lines are in `help.toml`; an admin's own file replaces any of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import Field, StringConstraints, TypeAdapter, model_validator

from agent.care.concerns import DRINKING_AGE, Care
from agent.i18n import current_language
from agent.tables import StrictModel, read_toml

MAX_CHARS: Final = 2_000
"""The longest sentence or help line of an admin; a longer one fills a message of Telegram."""
Sentence = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_CHARS)
]


class HelpTexts(StrictModel):
    """The sentences of one language, and its help lines by country (ISO 3166) or `any`."""

    crisis: Sentence
    after_crisis: Sentence
    dependence: Sentence
    under_age: Sentence
    pregnancy: Sentence
    medication: Sentence
    driving: Sentence
    lines: Annotated[Mapping[str, Sentence], Field(min_length=1)]

    @model_validator(mode="after")
    def _crisis_names_help(self) -> Self:
        if "{lines}" not in self.crisis:
            raise ValueError("crisis must hold {lines}: where help is to be had")
        return self


@cache
def help_texts(file: Path | None = None) -> Mapping[str, HelpTexts]:
    """Return the sentences of every language; those in `file` replace ours.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no TOML, or not of the form of `help.toml`.
    """
    texts = read_toml(dict[str, dict[str, Any]], Path(__file__).with_suffix(".toml"))
    for language, own in (read_toml(dict[str, Any], file) if file else {}).items():
        if language not in texts or not isinstance(own, dict):
            raise ValueError(f"{language} is none of the languages {', '.join(texts)}")
        texts[language] |= own
    return TypeAdapter(dict[str, HelpTexts]).validate_python(texts)


@dataclass(frozen=True, slots=True)
class Help:
    """The texts of care, and the legal age."""

    drinking_age: int = DRINKING_AGE
    texts: Mapping[str, HelpTexts] = field(default_factory=help_texts)

    def in_crisis(self, care: Care) -> str:
        """Return where help is to be had, as Markdown."""
        texts = self._texts_for(care)
        lines = "\n".join(f"- {line}" for line in texts.lines.values())
        return texts.crisis.replace("{lines}", lines)

    def instead(self, care: Care) -> str:
        """Return the text that takes the place of a look-up; empty if it may be shown."""
        if care.is_crisis:
            return self.in_crisis(care)
        return self.notice_for(care) if care.forbids_look_ups else ""

    def beside(self, care: Care) -> str:
        """Return the text to show beside a look-up when a concern is new; may be empty."""
        return self.notice_for(care) if care.new_concern and not care.forbids_look_ups else ""

    def notice_for(self, care: Care) -> str:
        """Return the notice why no alcohol is offered, or comes last; empty without a concern."""
        concern = care.new_concern or care.gravest
        if concern is None:
            return ""
        # A crisis that was told before is not spoken of again.
        name = "after_crisis" if concern == "crisis" else concern
        text: str = getattr(self._texts_for(care), name)
        return text.replace("{age}", str(self.drinking_age))

    def _texts_for(self, care: Care) -> HelpTexts:
        return self.texts.get(care.language or current_language(), self.texts["en"])
