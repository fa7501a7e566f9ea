"""Exactly 10 distinct search queries for a kind of place in a place, or a clear failure.

The contract is a JSON array; lines are read as a safety net. A server cannot be asked for an array
by `response_format`, which knows objects only, so the prompt alone asks for it, whatever the
response mode; an object that holds nothing but one list counts as that list. Nothing is padded.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, RootModel, model_validator

from agent import text
from agent.engine.contract import CORRECTION_INTRO, OutputContract
from agent.engine.errors import AgentError, quoted
from agent.engine.loop import generate_agentic_response
from agent.engine.run import PromptRef, Run
from agent.i18n import current_language
from agent.language import DETECTED_LANGUAGES, common_words
from agent.markdown import strip_invisible
from agent.prompts import get_prompt, with_instructions
from agent.tables import StrictModel, read_toml
from agent.turn import Outcome, list_error_types

QUERY_COUNT: Final = 10
REPAIRS: Final = 1
UNREACHED: Final = frozenset({"model_error", "deadline", "limit"})
MAX_QUERY_CHARS: Final = 160
MAX_PLACE_CHARS: Final = 120
MAX_SHOWN_PAIRS: Final = 4
MIN_STEM_CHARS: Final = 3
SAME: Final = 0.7
"""The share of their words by which two queries are one. At 0.6, without the place, "wine shop" and
"natural wine shop" were one."""
FILLER: Final = """
best top good great near nearby around local find list guide a bei beste bester besten bestes nella
mejor mejores meilleur meilleure meilleurs meilleures migliore migliori melhor melhores w の で に
"""
"""Words that narrow no search, beside the commonest words of our languages."""

PROMPT: Final = "Category: {name}. Place: {place}."
WISH: Final = " Wish: {wish}."
CORRECTION: Final = CORRECTION_INTRO + (
    "Correct it. Return ONLY a JSON array of exactly 10 distinct, non-empty strings that name the "
    "place. No numbering, no commentary, no Markdown fence, nothing before [ or after ]."
)

TRANSLITERATED: Final = text.pattern("aa|oo|[aou]e")
"""An umlaut, å or ø as it is written on a keyboard without them."""
PLURAL: Final = text.pattern(r"(?:ies|oes|ao|os|as|hi|he|en|es|er|[yisxeoaыиаь])\Z")
"""The endings that tell the singular of a word from its plural, in some languages."""
MARK: Final = text.pattern(r"\A(?:[-+*–—•·]\s+|\d{1,2}[.):]\s+)")
"""The bullet or the number before an item of a list."""
COMMENTARY: Final = text.pattern(r"\A(?:```|#{1,6}\s|.*[:!]\Z)")
"""A line that is no item: a fence, a heading, "Here they are:", "Enjoy!"."""
NO_QUERY: Final = text.pattern(r"://|[{}<>|]")
AROUND: Final = " ,*_\"'`“”„«»"
"""Quotation marks and Markdown that a model may put around a query."""


class Category(StrictModel):
    """A kind of place: its usual name, the hint for the model, and ten phrases of its own.

    Each phrase followed by the place is a query without a model. Behind the colon of the hint are
    words for this kind of place, with commas between them.
    """

    label: str
    hint: str
    phrases: Annotated[tuple[str, ...], Field(min_length=10, max_length=10)]


@cache
def categories() -> Mapping[str, Category]:
    """Return every category by its key."""
    return read_toml(dict[str, Category], Path(__file__).with_name("categories.toml"))


@cache
def _names_abroad() -> Mapping[str, Mapping[str, str]]:
    """Return the names of every category in every language but English, with commas between."""
    return read_toml(dict[str, dict[str, str]], Path(__file__).with_name("languages.toml"))


def name_in(language: str, category: str) -> str:
    """Return the name of a category in a language, in English if that is not known."""
    listed = _names_abroad().get(language, {}).get(category)
    return listed.partition(",")[0] if listed else categories()[category].label


def category_named(name: str) -> str:
    """Return the key of a category as a person may write it: "wine bars", "WINE_BAR", "Weinbar".

    Known are its key, its label, its phrases, the words of its hint, and its names in other
    languages; where two categories share one, the first is meant.

    Raises:
        ValueError: there is none; the message lists the categories.
    """
    wanted = stems(name)
    for key in categories():
        if wanted in _names(key):
            return key
    raise ValueError(f"there is no category {name.strip()[:40]!r}; use {', '.join(categories())}")


@cache
def _names(key: str) -> tuple[list[str], ...]:
    category = categories()[key]
    hinted = category.hint.rpartition(":")[2].split(",")
    abroad = (name for kinds in _names_abroad().values() for name in kinds[key].split(","))
    return tuple(map(stems, (key, category.label, *category.phrases, *hinted, *abroad)))


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
        """Return the list, also of an object that holds nothing else, its items unmarked."""
        if isinstance(value, dict) and len(value) == 1:
            (value,) = value.values()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return unmarked(value)
        return value


@dataclass(frozen=True, slots=True)
class Queries:
    """Exactly 10 distinct queries; a fallback if a model was asked and could not be reached."""

    category: str
    place: str
    queries: tuple[str, ...]
    outcome: Outcome = "answered"
    retry_count: int = 0
    error_types: tuple[str, ...] = ()
    prompt: PromptRef | None = None


async def generate_queries(category: str, place: str, *, run: Run, wish: str = "") -> Queries:
    """Write 10 distinct queries for a category (see `categories()`) in `place`.

    A `wish` narrows the search further: "natural wine", "open on Sundays". Without a model,
    or when none can be reached, the queries are made of phrases.

    Raises:
        ValueError: there is no such category, or the place is blank.
        QueryGenerationFailed: the model's answer was invalid, and so was its repair.
    """
    name, where = category_named(category), place_named(place)
    found = queries_by_rules(name, where, wish)
    if not run.models:
        return found
    kind, prompt = categories()[name], get_prompt(run, "place-queries")
    contract = OutputContract(
        SearchQueries,
        semantic=lambda answer: invalid(answer.root, where),
        read_text=queries_of_lines,
        correction=CORRECTION,
    )
    schema = contract.output.schema_text
    query_run = with_instructions(
        run, prompt, category=name, label=kind.label, hint=kind.hint, schema=schema
    )
    limits = replace(run.limits, structured_output_max_retries=REPAIRS)
    message = PROMPT.format(name=name, place=json.dumps(where, ensure_ascii=False))
    if wish:
        message += WISH.format(wish=json.dumps(wish, ensure_ascii=False))
    response = await generate_agentic_response(
        message, run=replace(query_run, limits=limits), contract=contract
    )
    retries, errors = response.retry_count, list_error_types(response)
    if response.answer is not None and response.outcome == "answered":
        queries = tuple(response.answer.root)
        return Queries(name, where, queries, "answered", retries, errors, prompt.ref)
    if response.outcome in UNREACHED:
        return replace(found, outcome="fallback", retry_count=retries, error_types=errors)
    raise QueryGenerationFailed(
        f"no 10 distinct search queries for {name} in {where!r}: {response.error}; "
        "ask again, or name the place more precisely",
        retry_count=retries,
        error_types=errors,
    )


def queries_by_rules(category: str, place: str, wish: str = "") -> Queries:
    """Return ten phrases with the place, the category's name in the user's language first."""
    phrases = list(categories()[category].phrases)
    if current_language() in _names_abroad():
        name = name_in(current_language(), category)
        phrases = [name, *[phrase for phrase in phrases if stems(phrase) != stems(name)][:9]]
    where = f"{wish} {place}".strip()
    return Queries(category, place, tuple(f"{phrase} {where}" for phrase in phrases))


def place_named(place: str) -> str:
    """Return a place on one line, without characters that cannot be seen.

    Raises:
        ValueError: nothing is left that could be a name, or more than 120 characters.
    """
    named = on_one_line(place)
    if not any(map(str.isalnum, named)) or len(named) > MAX_PLACE_CHARS:
        raise ValueError(f"name a town, a district or a region in {MAX_PLACE_CHARS} characters")
    return named


def on_one_line(written: str) -> str:
    """Return a text on one line, without characters that cannot be seen."""
    return " ".join(strip_invisible(written).split())


def words(phrase: str) -> list[str]:
    """Return the words of a text in one spelling: no case, no accents, `o` for `ö`, `oe`, `ø`."""
    return [
        TRANSLITERATED.sub(lambda found: found[0][0], word) for word in text.split_words(phrase)
    ]


def stem(word: str) -> str:
    """Return a word without its plural ending, if enough of it is left."""
    stripped = PLURAL.sub("", word)
    return stripped if len(stripped) >= MIN_STEM_CHARS else word


def stems(phrase: str) -> list[str]:
    """Return the words of a text without their plural endings."""
    return [stem(word) for word in words(phrase)]


def invalid(queries: Sequence[str], place: str) -> str | None:
    """Return feedback on ten queries, or None if they are valid."""
    for position, query in enumerate(queries, 1):
        if not any(map(str.isalnum, query)):
            return f"query {position} is empty"
        if len(query) > MAX_QUERY_CHARS or NO_QUERY.search(query):
            return f"query {position} is no search query: {quoted(query)}"
    if elsewhere := [quoted(query, 60) for query in queries if not mentions(query, place)]:
        named = "; ".join(elsewhere)
        return f"these do not name {quoted(place)}; put the town or district into each: {named}"
    if pairs := duplicates(queries, place):
        listed = [f"{quoted(one, 60)} = {quoted(two, 60)}" for one, two in pairs]
        return (
            f"{len(pairs)} pairs of queries are duplicates: {'; '.join(listed[:MAX_SHOWN_PAIRS])}"
        )
    return None


def duplicates(queries: Sequence[str], place: str) -> list[tuple[str, str]]:
    """Return the pairs of queries that search for one thing, in order.

    Case, accents, plurals, word order, words that narrow nothing ("best", "in") and the place tell
    no two queries apart.
    """
    common = {*stems(place), *_fillers()}
    distinctive = {query: set(stems(query)) - common for query in queries}

    def are_same(one: str, two: str) -> bool:
        shared, all_words = distinctive[one] & distinctive[two], distinctive[one] | distinctive[two]
        # Some languages do without spaces: "wine-bar", "winebar".
        return len(shared) >= SAME * len(all_words) or "".join(words(one)) == "".join(words(two))

    return [(one, two) for one, two in combinations(queries, 2) if are_same(one, two)]


@cache
def _fillers() -> frozenset[str]:
    common = (word for language in DETECTED_LANGUAGES for word in common_words(language))
    return frozenset(stems(" ".join([FILLER, *common])))


def mentions(query: str, place: str) -> bool:
    """Return whether a query names the place, with any ending; of "Lyon, France" that is Lyon."""
    names = [word for word in words(place.partition(",")[0]) if len(word) > 1]
    return not names or any(
        # Without spaces, a part of the name is enough: 渋谷 for 東京都渋谷区.
        word.startswith(stem(name)) or (not name.isascii() and word[:2] in name)
        for name in names
        for word in words(query)
    )


def unmarked(items: Sequence[str]) -> list[str]:
    """Return the items of a list, tidy and without the marks before them if all have one.

    A single one may have a number: "7. kerület" is a district.
    """
    lines = [on_one_line(item).strip(AROUND) for item in items]
    if all(map(MARK.match, lines)):
        return [MARK.sub("", line).strip(AROUND) for line in lines]
    return lines


def queries_of_lines(written: str) -> list[str] | None:
    """Read a list that is not JSON: numbered, bulleted, quoted, fenced lines; None if it is none.

    When some lines are marked as items, only those count: the others are commentary.
    """
    lines = [line.strip() for line in written.splitlines()]
    items = [line for line in lines if MARK.match(line)]
    items = items or [line for line in lines if not COMMENTARY.match(line)]
    queries = [item for item in unmarked(items) if any(map(str.isalnum, item))]
    return queries if len(queries) > 1 else None
