"""Exactly 10 distinct search queries for a kind of place in a place, or a clear failure.

They are in the language of the place: told by the last name of a town or country that
`languages.toml` knows, else by the script. The contract is a JSON array. A server cannot be asked
for one by `response_format`, which knows objects only, so the prompt alone asks for it, whatever
the response mode; an object that holds nothing but one list counts as that list. Nothing is ever
padded.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import (
    BeforeValidator,
    Field,
    RootModel,
    model_validator,
)

from agent.engine.contract import OutputContract
from agent.engine.errors import AgentError
from agent.engine.feedback import FAILED, fence
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.markdown import visible
from agent.places.distinct import (
    countries,
    duplicates,
    is_chinese,
    mentions,
    names_in,
    of_search,
    same_word,
    words,
)
from agent.prompts import prompt_for
from agent.tables import Strict, read_toml
from agent.text import LANGUAGES, pattern
from agent.turn_trace import Outcome, error_types, record_outcome
from agent.vocabulary import Token, is_word, tokens

ENGLISH: Final = "en"
LONGEST_NAME: Final = 4
"""Words of a place's name."""
SCRIPTS: Final = {
    "el": pattern(r"[\u0370-\u03ff\u1f00-\u1fff]"),
    "uk": pattern("[іїєґІЇЄҐ]"),
    "ru": pattern(r"[\u0400-\u04ff]"),
    "ka": pattern(r"[\u10a0-\u10ff]"),
    "he": pattern(r"[\u0590-\u05ff]"),
    "ja": pattern(r"[\u3040-\u30ff]"),
    "ko": pattern(r"[\uac00-\ud7af]"),
    "zh": pattern(r"[\u3400-\u9fff]"),
}
"""In the order in which they tell a language: some letters are of one alone."""

Name = tuple[str, ...]


def _listed(said: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in said.split(","))


class Language(Strict):
    """Where it is spoken, what kinds of places are called, and what is looked for beside."""

    names: Annotated[tuple[Name, ...], BeforeValidator(names_in)]
    also: Annotated[tuple[str, ...], Field(min_length=9, max_length=9)]
    kinds: dict[str, Annotated[tuple[str, ...], BeforeValidator(_listed)]]


class _Data(Strict):
    """What `languages.toml` holds."""

    neutral: Annotated[tuple[Name, ...], BeforeValidator(names_in)]
    languages: dict[str, Language]


@cache
def _data() -> _Data:
    return read_toml(_Data, Path(__file__).with_name("languages.toml"))


def languages() -> Mapping[str, Language]:
    """Return every language but English by its code (ISO 639-1)."""
    return _data().languages


@cache
def _spoken() -> Mapping[Name, str]:
    """The language of each name; none where a country has several."""
    found = dict.fromkeys(countries(), ENGLISH) | dict.fromkeys(_data().neutral, "")
    return found | {name: code for code, language in languages().items() for name in language.names}


def language_of_place(place: str) -> str:
    """Return the code of the language that is spoken in a place; empty where it is not known."""
    told = [code for code in _told(words(place)) if code]
    if told:
        return told[-1]
    return next((code for code, script in SCRIPTS.items() if script.search(place)), "")


def _told(said: list[str]) -> Iterator[str]:
    at = 0
    while at < len(said):
        sizes = (
            size for size in range(LONGEST_NAME, 0, -1) if tuple(said[at : at + size]) in _spoken()
        )
        size = next(sizes, 0)
        if size:
            yield _spoken()[tuple(said[at : at + size])]
        elif is_chinese(said[at]):
            yield from _inside(said[at])
        at += size or 1


def _inside(written: str) -> Iterator[str]:
    """The language of a name within what is written without spaces: 渋谷 in 東京都渋谷区."""
    for name, code in _spoken().items():
        if len(name) == 1 and is_chinese(name[0]) and name[0] in written:
            yield code


def phrases(language: str, category: str) -> tuple[str, ...]:
    """Return ten phrases that look for a category; none for a language that has none here."""
    known = languages().get(language)
    if known is None:
        return ()
    names = known.kinds[category]
    short = min(names, key=lambda name: (len(name.split()), len(name)))
    return names[0], *(f"{short} {also}" for also in known.also)


@cache
def names_of(category: str) -> tuple[str, ...]:
    """Return what a category is called in every language."""
    return tuple(name for each in languages().values() for name in each.kinds[category])


QUERY_COUNT: Final = 10
REPAIRS: Final = 1
UNREACHED: Final = frozenset({"model_error", "deadline"})
LONGEST_QUERY: Final = 160
PLAIN_WORDS: Final = 2
"""Words of a query that are neither of its place nor of a search for places."""
SAME_NAME: Final = 3
"""Queries that may have one word that nobody knows."""
LONGEST_PLACE: Final = 120


class Category(Strict):
    """A kind of place: what people call it, the hint for the model, and ten phrases of its own.

    The phrases, each followed by the place, are the queries of a house without a model. Behind the
    colon of the hint stand words that mean this kind of place, with commas between them.
    """

    label: str
    hint: str
    phrases: Annotated[tuple[str, ...], Field(min_length=10, max_length=10)]


@cache
def categories() -> Mapping[str, Category]:
    """Return every category by its key."""
    found = read_toml(dict[str, Category], Path(__file__).with_name("categories.toml"))
    return MappingProxyType(found)


def category_named(name: str) -> str:
    """Return the key of a category as a person may write it: "wine bars", "WINE_BAR", "Weinbar".

    Known are its key, its label, its phrases, the words of its hint, and what it is called in other
    languages; where two categories have the same, the first is meant.

    Raises:
        ValueError: there is none; the message lists what there is.
    """
    said = words(name)
    for key, category in categories().items():
        if any(_same(said, known) for known in (words(key), *_names(key, category))):
            return key
    raise ValueError(f"there is no category {name.strip()[:40]!r}; use {', '.join(categories())}")


@cache
def _names(key: str, category: Category) -> tuple[list[str], ...]:
    hinted = category.hint.rpartition(":")[2].split(",")
    return tuple(map(words, (category.label, *category.phrases, *hinted, *names_of(key))))


def _same(said: Sequence[str], known: Sequence[str]) -> bool:
    return len(said) == len(known) and all(map(same_word, said, known))


class QueryGenerationFailed(AgentError):
    """The model did not give exactly 10 distinct search queries, not even when corrected."""

    def __init__(self, message: str, *, retry_count: int, error_types: tuple[str, ...]) -> None:
        super().__init__(message)
        self.retry_count = retry_count
        self.error_types = error_types


class SearchQueries(RootModel[list[str]]):
    """A JSON array of exactly 10 distinct search queries."""

    root: Annotated[list[str], Field(min_length=QUERY_COUNT, max_length=QUERY_COUNT)]

    @model_validator(mode="before")
    @classmethod
    def _plain_list(cls, value: object) -> object:
        """The list, also of an object that holds nothing else; its items without any marking."""
        if isinstance(value, dict) and len(value) == 1:
            (value,) = value.values()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return unmarked(value)
        return value


@dataclass(frozen=True, slots=True)
class Queries:
    """Exactly 10 distinct queries; `by_rules` when no model made them.

    The outcome is a fallback when a model was asked and did not.
    """

    category: str
    place: str
    queries: tuple[str, ...]
    by_rules: bool = False
    outcome: Outcome = "answered"
    retry_count: int = 0
    error_types: tuple[str, ...] = ()

    @property
    def as_text(self) -> str:
        """The queries as a text file: one a line."""
        return "".join(f"{query}\n" for query in self.queries)


PROMPT: Final = "Category: {name}. Place: {place}."

CORRECTION: Final = FAILED + (
    "Correct it. Return ONLY a JSON array of exactly 10 distinct, non-empty strings that name the "
    "place. No numbering, no commentary, no Markdown fence, nothing before [ or after ]."
)

BULLET: Final = pattern(r"([-+*–—]\s+|[‣·•●◦▪]\s*)")
NUMBER: Final = pattern(
    r"(?i)((?:query\s*|q)?"
    r"(?:\d{1,2}\s+[-–—:]\s+|[#(\[]\d{1,2}[)\]]?[.:]?\s+|\d{1,2}[.):\]、．]\s*))(?:\D|\Z)"
)
"""What stands before an item of a list."""
EMPHASIS: Final = pattern(r"\*\*(.*?)\*\*|__(.*?)__|`(.*?)`")
COMMENTARY: Final = pattern(r"\A(?:```|#{1,6}\s|.*[:!]\Z)")
"""A line that is no item: a fence, a heading, "Here they are:", "Enjoy!"."""
NO_QUERY: Final = pattern(r"://|[{}<>|]")
QUOTES: Final = "\"'`“”„«»"


async def generate_queries(category: str, place: str, *, run: Run) -> Queries:
    """Write 10 distinct queries for a category (see `categories()`) in `place`.

    Without a model, or when none can be reached, they are made by rules.

    Raises:
        ValueError: there is no such category, or the place is blank.
        QueryGenerationFailed: the model's answer was invalid, and so was its repair.
    """
    name, where = category_named(category), place_named(place)
    known, contract, found = (
        categories()[name],
        queries_contract(where),
        queries_by_rules(name, where),
    )
    if not run.models:
        return found
    prompt = prompt_for(run, "place-queries")
    asked = run.instructed(
        prompt, category=name, label=known.label, hint=known.hint, schema=contract.output.text
    )
    limits = replace(run.limits, structured_output_max_retries=REPAIRS)
    response = await generate_agentic_response(
        PROMPT.format(name=name, place=json.dumps(where, ensure_ascii=False)),
        run=replace(asked, limits=limits),
        contract=contract,
    )
    outcome: Outcome = "fallback" if response.outcome in UNREACHED else "failed"
    if response.answer is not None and response.outcome == "answered":
        outcome, found = "answered", Queries(name, where, tuple(response.answer.root))
    retries, errors = response.retry_count, error_types(response)
    record_outcome(run.span, outcome, retries=retries, error_types=errors, prompt=prompt.ref)
    if outcome == "failed":
        raise QueryGenerationFailed(
            f"no 10 distinct search queries for {name} in {where!r}: {response.error}; "
            "ask again, or name the place more precisely",
            retry_count=retries,
            error_types=errors,
        )
    return replace(found, outcome=outcome, retry_count=retries, error_types=errors)


def place_named(place: str) -> str:
    """Return a place on one line, without characters that cannot be seen.

    Raises:
        ValueError: nothing is left that could be a name, or more than 120 characters.
    """
    named = on_one_line(place)
    if not any(map(str.isalnum, named)):
        raise ValueError("the place is empty; name a town, a district or a region")
    if len(named) > LONGEST_PLACE:
        raise ValueError(
            f"the place has more than {LONGEST_PLACE} characters; name a town, a district or a "
            "region"
        )
    return named


def on_one_line(text: str) -> str:
    """Return a text on one line, without characters that cannot be seen."""
    return " ".join(visible(text).split())


def queries_by_rules(name: str, place: str) -> Queries:
    """Make queries of the category's phrases in the place's language, each with the place."""
    said = phrases(language_of_place(place), name) or categories()[name].phrases
    return Queries(name, place, tuple(f"{phrase} {place}" for phrase in said), by_rules=True)


def queries_contract(place: str) -> OutputContract[SearchQueries]:
    """Make the contract of 10 queries for `place`."""
    return OutputContract(
        SearchQueries,
        semantic=lambda answer: invalid(answer.root, place),
        read_text=queries_of_lines,
        correction=CORRECTION,
    )


def invalid(queries: Sequence[str], place: str) -> str | None:
    """Say what is wrong with ten queries, None if nothing is."""
    for position, query in enumerate(queries):
        if not any(map(str.isalnum, query)):
            return f"query {position + 1} is empty"
        if len(query) > LONGEST_QUERY or NO_QUERY.search(query):
            return f"query {position + 1} is no search query: {fence(query)}"
    strangers = [
        f"query {position + 1}: {fence(query, 60)}"
        for position, query in enumerate(queries)
        if not mentions(query, place)
    ]
    if strangers:
        return (
            f"these do not name {fence(place)}, or name its country only; put the town or district "
            f"into each: {'; '.join(strangers)}"
        )
    if strange := strange_words(queries, place):
        return (
            f"these words are not of the request: {fence(strange)}; use the place as it is given "
            "and words for this kind of place, no figures and nothing else"
        )
    pairs = duplicates(queries, place)
    if pairs:
        listed = "; ".join(f"{fence(one, 60)} = {fence(two, 60)}" for one, two in pairs[:4])
        return f"{len(pairs)} pairs of queries are duplicates: {listed}"
    return None


def strange_words(queries: Sequence[str], place: str) -> str:
    """Return what the first query says that is no search for a place; empty if all are.

    Beyond the place and words of such searches it may have two plain words. Nobody needs to know
    one of them, if few of the others have it: a district, a word of the language spoken there.
    """
    beyond = [
        [each for each in tokens(query) if not of_search(each.text, place, _of_categories())]
        for query in queries
    ]
    said = Counter(word for found in beyond for word in {each.folded for each in found})
    return next(
        (" ".join(each.text for each in found) for found in beyond if not _is_plain(found, said)),
        "",
    )


def _is_plain(found: Sequence[Token], said: Mapping[str, int]) -> bool:
    if len(found) > PLAIN_WORDS or any(each.is_number for each in found):
        return False
    names = [each for each in found if not any(is_word(each.folded, one) for one in LANGUAGES)]
    return len(names) < PLAIN_WORDS and all(said[each.folded] <= SAME_NAME for each in names)


@cache
def _of_categories() -> frozenset[str]:
    named = [text for each in categories().values() for text in (each.hint, *each.phrases)]
    for language in languages().values():
        named += [*language.also, *(name for names in language.kinds.values() for name in names)]
    return frozenset(word for text in named for word in words(text))


def unmarked(items: Sequence[str]) -> list[str]:
    """Return the items of a list, tidy and without the numbers before them if all have one.

    One that stands alone may be: "7. kerület" is a district.
    """
    tidied = [tidy(item) for item in items]
    numbers = [NUMBER.match(item) for item in tidied]
    return [
        tidy(item[number.end(1) :]) if number and all(numbers) else item
        for number, item in zip(numbers, tidied, strict=True)
    ]


def tidy(query: str) -> str:
    """Return a query on one line, without the quotation marks around it and without Markdown."""
    line = _plain(on_one_line(query))
    if len(line) > 1 and line[0] in QUOTES and line[-1] in QUOTES:
        line = line[1:-1].strip()
    return line


def _plain(line: str) -> str:
    """A line without marks of emphasis."""
    return EMPHASIS.sub(lambda found: found[1] or found[2] or found[3] or "", line)


def queries_of_lines(text: str) -> list[str] | None:
    """Read a list that is not JSON: numbered, bulleted, quoted, fenced lines; None if it is none.

    When some lines are marked as items, only those count: the others are commentary.
    """
    lines = [_plain(line.strip()) for line in text.splitlines()]
    items = [
        line[mark.end(1) :] for line in lines if (mark := BULLET.match(line) or NUMBER.match(line))
    ]
    if not items:
        items = [line for line in lines if not COMMENTARY.match(line)]
    queries = [tidy(item.strip("[] ").rstrip(",").strip()) for item in items]
    queries = [query for query in queries if any(map(str.isalnum, query))]
    return queries if len(queries) > 1 else None
