"""What is said to somebody who should not drink or needs help, and where help is to be had. Pure.

Sentences and help lines are in `care_help.toml`; an admin's own file replaces any of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import StringConstraints, TypeAdapter, model_validator

from agent.care import CONCERNS, FULL_AGE, Care, Concern
from agent.tables import Strict, read_toml

EVERYWHERE: Final = "any"
"""Stands among help lines for those of all other countries."""
LONGEST_SAID: Final = 2_000
"""A sentence of an admin's own, or a help line; what is longer fills a message of Telegram's."""
Said = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_SAID)
]


class HelpTexts(Strict):
    """The sentences of one language, and its help lines by country (ISO 3166).

    `perhaps` are those for what may be meant.
    """

    crisis: Said
    dependence: Said
    under_age: Said
    pregnancy: Said
    medication: Said
    health: Said
    driving: Said
    lines: Mapping[str, Said]
    perhaps: Mapping[Concern, Said]

    @model_validator(mode="after")
    def _crisis_names_help(self) -> Self:
        for crisis in (self.crisis, self.perhaps.get("crisis", "")):
            if "{lines}" not in crisis:
                raise ValueError("crisis must hold {lines}: where help is to be had")
        if missing := set(CONCERNS) - set(self.perhaps):
            raise ValueError(f"perhaps must hold {', '.join(sorted(missing))} too")
        if EVERYWHERE not in self.lines:
            raise ValueError(f"lines must hold {EVERYWHERE}: where help is to be had elsewhere")
        return self


@cache
def help_texts(file: Path | None = None) -> Mapping[str, HelpTexts]:
    """Read the sentences of every language; what `file` holds stands in their place.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no TOML, or not of the form of `care_help.toml`.
    """
    texts = read_toml(dict[str, dict[str, Any]], Path(__file__).with_suffix(".toml"))
    for language, own in (read_toml(dict[str, Any], file) if file else {}).items():
        if language not in texts or not isinstance(own, dict):
            raise ValueError(f"{language} is none of the languages {', '.join(texts)}")
        texts[language] |= own
    return TypeAdapter(dict[str, HelpTexts]).validate_python(texts)


@dataclass(frozen=True, slots=True)
class Help:
    """What is said in which country, whose code is `region`, and from which age wine is offered."""

    full_age: int = FULL_AGE
    region: str = ""
    texts: Mapping[str, HelpTexts] = field(default_factory=help_texts)

    def in_crisis(self, care: Care) -> str:
        """Say where help is to be had, in the language of who writes, as Markdown."""
        texts = self.texts.get(care.language, self.texts["en"])
        return self._filled(texts.crisis, "\n".join(f"- {line}" for line in self._lines(texts)))

    def instead(self, care: Care) -> str:
        """Say what stands in place of what was to be looked up; empty if that may be shown."""
        if care.is_crisis:
            return self.in_crisis(care)
        return self.why(care) if care.forbids_alcohol else ""

    def beside(self, care: Care) -> str:
        """Say what stands beside what was looked up when a concern is first told; may be empty."""
        return self.why(care) if care.is_cautious and care.news else ""

    def perhaps(self, care: Care) -> str:
        """Ask about what may be meant, beside an answer; empty where nothing is in doubt."""
        if care.doubt is None:
            return ""
        texts = self.texts.get(care.language, self.texts["en"])
        return self._filled(texts.perhaps[care.doubt], " · ".join(self._lines(texts)))

    def why(self, care: Care) -> str:
        """Say why no alcohol is offered, or why what is without comes first; empty without care."""
        concern = care.news or care.gravest
        if concern is None:
            return ""
        # A crisis that was told before is not spoken of again.
        key: Concern = "health" if concern == "crisis" else concern
        sentence: str = getattr(self.texts.get(care.language, self.texts["en"]), key)
        return self._filled(sentence)

    def _filled(self, said: str, lines: str = "") -> str:
        """A sentence with its gaps filled; any other bracket in it is a character like others."""
        return said.replace("{age}", str(self.full_age)).replace("{lines}", lines)

    def _lines(self, texts: HelpTexts) -> list[str]:
        """The help lines of the region, if there is one, else of every country of the language."""
        others = (each.lines for each in self.texts.values())
        here = (lines[self.region] for lines in (texts.lines, *others) if self.region in lines)
        line = next(here, "")
        return [line, texts.lines[EVERYWHERE]] if line else list(texts.lines.values())
