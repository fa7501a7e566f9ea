"""Write notices and help texts with the numbers to call. The only I/O is reading the texts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    TypeAdapter,
)

from agent.formatting import country_names
from agent.i18n import app_country, app_language, current_language
from agent.languages import ENGLISH, read_language_files
from agent.safety.concerns import DRINKING_AGE
from agent.safety.state import SERIOUS_CONCERNS, SafetyState, most_serious_concern
from agent.tables import StrictModel, read_toml
from agent.text import Match, pattern

TEXTS_FILE: Final = "help.toml"
LINES_FILE: Final = Path(__file__).with_name("help_lines.toml")
INTERNATIONAL: Final = "international"
"""The only entry of a language without texts: one sentence, with an international page."""
EXPLAINED_ONCE: Final = frozenset({"dependence", "pregnancy"})
"""The concerns with a long text, which is shown only when a user states them."""
COUNTRIES: Final = "countries"
"""The table of help lines in the file of an admin."""
INTERNATIONAL_URL: Final = "https://findahelpline.com"
HOURS: Final = pattern(r"(\d{1,2}:\d\d)-(\d{1,2}:\d\d)")
"""Matches the hours of a help line: "8:00-24:00"."""
MAX_HELP_CHARS: Final = 2_000
"""The maximum length of a help text or help line, so that all fit into one Telegram message."""


def _require_lines_placeholder(text: str) -> str:
    if "{lines}" not in text:
        raise ValueError(
            "crisis and numbers must contain {lines}, the place of the help lines"
        )
    return text


RawTexts = dict[str, Any]
"""The content of a `help.toml`, before it is validated."""
HelpText = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True,
        min_length=1,
        max_length=MAX_HELP_CHARS,
    ),
]
TextWithLines = Annotated[HelpText, AfterValidator(_require_lines_placeholder)]


class HelpLine(StrictModel):
    """A number to call, with the date and the source of its last check. See `help_lines.toml`."""

    line: HelpText
    source: HelpText
    checked: date
    compared_with: Literal["service", "others", "review"] = "service"
    note: str = ""
    language: str = ""
    """The only language in which it answers, if others of the country answer in another."""


class Country(StrictModel):
    """The numbers of a country: in an emergency, in a crisis, and for people who drink too much."""

    emergency: HelpText
    emergency_source: str = ""
    crisis: Annotated[Sequence[HelpLine], Field(min_length=1)]
    alcohol: Sequence[HelpLine] = ()


class HelpTexts(StrictModel):
    """The texts of one language: the content of its `help.toml`.

    `{lines}` stands for the help lines of `help_lines.toml`, `{age}` for the legal age. A table
    named by a country, such as `[BR]`, has the texts that differ there; a text that a language
    lacks is the English one.
    """

    countries: Annotated[Sequence[str], BeforeValidator(str.split)]
    """The countries with lines that are shown in this language."""
    emergency: HelpText
    day_and_night: HelpText
    """The words that replace "0-24" in a help line."""
    hours: HelpText
    """The words that replace hours such as "8:00-24:00", with `{start}` and `{end}`."""
    text_message: HelpText
    """The words that replace ", SMS" before the number to text, such as " or text"."""
    call_or_text: HelpText
    """The words before a number that may be called and texted."""
    country_line: str = "{country}: {numbers}"
    numbers_joint: str = "; "
    """The text between the numbers of a country. In French it has no-break spaces."""
    elsewhere: HelpText
    crisis: TextWithLines
    """The text in a crisis."""
    numbers: TextWithLines
    """The text for a user who asks for the numbers, or goes on writing after a crisis."""
    after_crisis: HelpText
    """The text above wines within a day of a crisis."""
    glad: HelpText
    """The text below wines within a day of a crisis."""
    in_group: HelpText
    """The text in a group, where others read along."""
    dependence: HelpText
    dependence_question: HelpText
    """The question to a user with a dependence, before anything is listed."""
    no_drinks: HelpText
    """The reply to a user with a dependence who does not want to talk about drinks."""
    alcohol_free_only: HelpText
    """The text above later answers to a user with a dependence or in pregnancy."""
    under_age: HelpText
    """The reply to a user who is too young for wine."""
    pregnancy: HelpText
    medication: HelpText
    driving: HelpText
    likely: HelpText
    """The text if a crisis or a dependence is only likely."""
    likely_alcohol_free: HelpText
    """The text if another concern is only likely."""


@dataclass(frozen=True, slots=True)
class HelpCatalogue:
    """All texts by language, and all numbers by country."""

    texts: Mapping[str, HelpTexts]
    countries: Mapping[str, Country]
    international: Mapping[str, str]


@cache
def read_help_texts(file: Path | None = None) -> HelpCatalogue:
    """Return the texts and numbers. Those in the file of an admin replace the built-in ones.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not valid TOML, or does not have the form of the built-in files.
    """
    texts, international = _read_languages()
    countries = read_toml(dict[str, Any], LINES_FILE)
    of_admin: dict[str, Any] = {}
    if file is not None:
        of_admin = read_toml(dict[str, Any], file)
    countries |= of_admin.pop(COUNTRIES, {})
    for language, replacements in of_admin.items():
        if language not in texts or not isinstance(replacements, dict):
            expected = ", ".join([COUNTRIES, *texts])
            raise ValueError(f"{language} is not one of {expected}")
        texts[language] |= replacements
    return HelpCatalogue(
        texts=TypeAdapter(dict[str, HelpTexts]).validate_python(texts),
        countries=TypeAdapter(dict[str, Country]).validate_python(countries),
        international=TypeAdapter(dict[str, str]).validate_python(international),
    )


def _read_languages() -> tuple[dict[str, RawTexts], dict[str, str]]:
    """Return the texts by language ("pt", "pt-BR"), and the only sentence of other languages."""
    texts: dict[str, RawTexts] = {}
    international: dict[str, str] = {}
    files = read_language_files(RawTexts, TEXTS_FILE)
    for language, content in files.items():
        if INTERNATIONAL in content:
            international[language] = content[INTERNATIONAL]
            continue
        countries = [name for name in content if name.isupper()]
        differing_texts: dict[str, RawTexts] = {}
        for country in countries:
            differing_texts[country] = content.pop(country)
        # English is read first, so its texts are there already.
        english_texts = texts.get(ENGLISH, {})
        texts[language] = english_texts | content
        for country, differing in differing_texts.items():
            locale = f"{language}-{country}"
            texts[locale] = texts[language] | differing
    return texts, international


@dataclass(frozen=True, slots=True)
class Help:
    """Writes notices and help texts. The numbers of `country` come first.

    `drinking_age` is the legal age in years, `country` an ISO 3166 code or empty.
    """

    drinking_age: int = DRINKING_AGE
    catalogue: HelpCatalogue = field(default_factory=read_help_texts)
    country: str = ""

    def write_crisis_help(self, safety: SafetyState) -> str:
        """Return the text for somebody who is in a crisis, as Markdown."""
        sentence = self.catalogue.international.get(safety.language)
        if sentence is not None:
            return sentence
        texts = self._get_texts(safety)
        lines = self._list_lines(safety)
        return texts.crisis.replace("{lines}", lines)

    def write_numbers(self, safety: SafetyState) -> str:
        """Return the text with the numbers, for somebody who asks or writes on after a crisis."""
        texts = self._get_texts(safety)
        lines = self._list_lines(safety)
        return texts.numbers.replace("{lines}", lines)

    def write_notice(self, safety: SafetyState) -> str:
        """Return the reason why no wine is offered, or alcohol-free wine first, or else ""."""
        concern = safety.new_concern or most_serious_concern(safety.concerns)
        if concern is None:
            return ""
        # The reply in the turn of a crisis is `write_crisis_help`. Later notices do not mention it.
        field_name: str = concern
        if safety.is_under_age:
            field_name = "under_age"
        elif concern == "crisis":
            field_name = "after_crisis"
        elif concern in EXPLAINED_ONCE and concern != safety.new_concern:
            field_name = "alcohol_free_only"
        texts = self._get_texts(safety)
        text: str = getattr(texts, field_name)
        return text.replace("{age}", str(self.drinking_age))

    def write_dependence_question(self, safety: SafetyState) -> str:
        """Return the text about a dependence, with numbers to call and a question at its end."""
        texts = self._get_texts(safety)
        help_text = self.write_dependence_help(safety)
        return f"{help_text}\n\n{texts.dependence_question}"

    def write_dependence_help(self, safety: SafetyState) -> str:
        """Return the text about a dependence, with numbers to call."""
        texts = self._get_texts(safety)
        parts = [texts.dependence]
        lines = list(self._list_alcohol_lines(safety))
        if lines:
            lines.append(texts.elsewhere)
            parts.append(_format_list(lines))
        return "\n\n".join(parts)

    def get_promise(self, safety: SafetyState) -> str:
        """Return the promise not to talk about drinks."""
        return self._get_texts(safety).no_drinks

    def get_likely_line(self, safety: SafetyState) -> str:
        """Return the line below an answer to a message that may state a concern."""
        texts = self._get_texts(safety)
        if safety.likely_concerns & SERIOUS_CONCERNS:
            return texts.likely
        return texts.likely_alcohol_free

    def get_glad_line(self, safety: SafetyState) -> str:
        """Return the line below wines that are shown within a day of a crisis."""
        return self._get_texts(safety).glad

    def get_group_text(self, safety: SafetyState) -> str:
        """Return the short text for a group, where others read."""
        return self._get_texts(safety).in_group

    def write_first_numbers(self) -> str:
        """Return the numbers of the country that comes first, for /help."""
        state = SafetyState()
        texts = self._get_texts(state)
        first_country, *_ = self._list_country_codes(state)
        return self._format_country(first_country, texts)

    def _get_texts(self, safety: SafetyState) -> HelpTexts:
        """Return the texts in the language of the phrase that was noticed, or else the user's."""
        texts = self.catalogue.texts
        language = safety.language
        if language not in texts:
            language = current_language()
        for name in (f"{language}-{app_country()}", language):
            if name in texts:
                return texts[name]
        return texts[ENGLISH]

    def _list_country_codes(self, safety: SafetyState) -> list[str]:
        """Return the countries to show: the admin's, the user's, and those of the languages."""
        texts = self._get_texts(safety)
        state_of_app = SafetyState(language=app_language())
        texts_of_app = self._get_texts(state_of_app)
        codes = [self.country, app_country()]
        codes += texts.countries
        codes += texts_of_app.countries
        distinct = dict.fromkeys(codes)
        return [code for code in distinct if code in self.catalogue.countries]

    def _list_lines(self, safety: SafetyState) -> str:
        """Return the numbers of all countries to show as a list in Markdown."""
        texts = self._get_texts(safety)
        lines: list[str] = []
        for code in self._list_country_codes(safety):
            numbers = self._format_country(code, texts)
            lines.append(numbers)
        lines.append(texts.elsewhere)
        return _format_list(lines)

    def _format_country(self, code: str, texts: HelpTexts) -> str:
        """Format the numbers of a country, the emergency number first."""
        country = self.catalogue.countries[code]
        language = self._find_language(texts)
        numbers = [f"{texts.emergency} {country.emergency}"]
        for line in _select_lines(language, country.crisis):
            number = _spell_out(line.line, texts)
            numbers.append(number)
        name = _find_country_name(code, language)
        listed = texts.numbers_joint.join(numbers)
        return texts.country_line.format(country=name, numbers=listed)

    def _list_alcohol_lines(self, safety: SafetyState) -> Iterable[str]:
        """Yield the numbers for people who drink too much, with their countries."""
        texts = self._get_texts(safety)
        language = self._find_language(texts)
        for code in self._list_country_codes(safety):
            name = _find_country_name(code, language)
            country = self.catalogue.countries[code]
            for line in _select_lines(language, country.alcohol):
                numbers = _spell_out(line.line, texts)
                yield texts.country_line.format(country=name, numbers=numbers)

    def _find_language(self, texts: HelpTexts) -> str:
        """Return the language of texts of the catalogue, such as "pt-BR"."""
        for language, own_texts in self.catalogue.texts.items():
            if own_texts is texts:
                return language
        raise LookupError("These help texts are not of the catalogue.")


def _format_list(lines: Iterable[str]) -> str:
    """Return the lines as a list in Markdown."""
    items = [f"- {line}" for line in lines]
    return "\n".join(items)


def _select_lines(language: str, lines: Sequence[HelpLine]) -> Sequence[HelpLine]:
    """Return the lines that answer in a language such as "pt-BR", or all lines if none does."""
    spoken, _, _ = language.partition("-")
    languages = {line.language for line in lines}
    if spoken not in languages:
        return lines
    return [line for line in lines if line.language in {spoken, ""}]


def _spell_out(line: str, texts: HelpTexts) -> str:
    """Return a help line with the abbreviations of all lines in the words of the language."""

    def spell_out_hours(match: Match) -> str:
        return texts.hours.format(start=match[1], end=match[2])

    spelled_out = HOURS.sub(spell_out_hours, line)
    spelled_out = spelled_out.replace("0-24", texts.day_and_night)
    called_number, _, texted = spelled_out.partition(", SMS ")
    if texted.startswith(called_number):
        return f"{texts.call_or_text} {texted}"
    return spelled_out.replace(", SMS ", f" {texts.text_message} ")


def _find_country_name(code: str, language: str) -> str:
    """Return the name of a country in a language such as "pt-BR", or its code."""
    locale = language.replace("-", "_")
    return country_names(locale).get(code, code)
