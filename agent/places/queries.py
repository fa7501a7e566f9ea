"""Exactly 10 distinct search queries for a kind of place in a place, or a clear failure.

The contract is a JSON array; lines are read as a safety net. A server cannot be asked for an array
by `response_format`, which knows objects only, so the prompt alone asks for it, whatever the
response mode; an object that holds nothing but one list counts as that list. Nothing is ever
padded.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import Field, RootModel, model_validator

from agent.engine.contract import OutputContract
from agent.engine.errors import AgentError
from agent.engine.feedback import FAILED, fence
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.markdown import visible
from agent.places.categories import categories, category_named, phrases
from agent.places.distinct import duplicates, mentions
from agent.prompts import instructed, prompt_for
from agent.text import pattern
from agent.turn_trace import Outcome, error_types, record_outcome

QUERY_COUNT: Final = 10
REPAIRS: Final = 1
UNREACHED: Final = frozenset({"model_error", "deadline"})
LONGEST_QUERY: Final = 160
LONGEST_PLACE: Final = 120
SHOWN_PAIRS: Final = 4

PROMPT: Final = "Category: {name}. Place: {place}."
WISH: Final = " Wish: {wish}."
CORRECTION: Final = FAILED + (
    "Correct it. Return ONLY a JSON array of exactly 10 distinct, non-empty strings that name the "
    "place. No numbering, no commentary, no Markdown fence, nothing before [ or after ]."
)

BULLET: Final = pattern(r"([-+*–—]\s+|[‣·•●◦▪]\s*)")
NUMBER: Final = pattern(
    r"(?i)((?:query\s*|q)?"
    r"(?:\d{1,2}\s+[-–—:]\s+|[#(\[]\d{1,2}[)\]]?[.:]?\s+|\d{1,2}[.):\]、．]\s*))(?:\D|\Z)"
)
"""The number before an item of a list."""
EMPHASIS: Final = pattern(r"\*\*(.*?)\*\*|__(.*?)__|`(.*?)`")
COMMENTARY: Final = pattern(r"\A(?:```|#{1,6}\s|.*[:!]\Z)")
"""A line that is no item: a fence, a heading, "Here they are:", "Enjoy!"."""
NO_QUERY: Final = pattern(r"://|[{}<>|]")
QUOTES: Final = "\"'`“”„«»"


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
        """Return the queries as a text file, one a line."""
        return "".join(f"{query}\n" for query in self.queries)


async def generate_queries(category: str, place: str, *, run: Run, wish: str = "") -> Queries:
    """Write 10 distinct queries for a category (see `categories()`) in `place`.

    A `wish` is what else the place is to be: "natural wine", "open on Sundays". Without a model,
    or when none can be reached, the queries are made of phrases.

    Raises:
        ValueError: there is no such category, or the place is blank.
        QueryGenerationFailed: the model's answer was invalid, and so was its repair.
    """
    name, where = category_named(category), place_named(place)
    found = queries_by_rules(name, where, wish)
    if not run.models:
        return found
    known, contract = categories()[name], queries_contract(where)
    prompt = prompt_for(run, "place-queries")
    asked = instructed(
        run, prompt, category=name, label=known.label, hint=known.hint, schema=contract.output.text
    )
    limits = replace(run.limits, structured_output_max_retries=REPAIRS)
    response = await generate_agentic_response(
        PROMPT.format(name=name, place=json.dumps(where, ensure_ascii=False))
        + (WISH.format(wish=json.dumps(wish, ensure_ascii=False)) if wish else ""),
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


def queries_by_rules(category: str, place: str, wish: str = "") -> Queries:
    """Return the category's phrases in the place's language as queries, each with the place."""
    where = f"{wish} {place}".strip()
    found = tuple(f"{phrase} {where}" for phrase in phrases(category, place))
    return Queries(category, place, found, by_rules=True)


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


def queries_contract(place: str) -> OutputContract[SearchQueries]:
    """Return the contract of 10 queries for `place`."""
    return OutputContract(
        SearchQueries,
        semantic=lambda answer: invalid(answer.root, place),
        read_text=queries_of_lines,
        correction=CORRECTION,
    )


def invalid(queries: Sequence[str], place: str) -> str | None:
    """Return what is wrong with ten queries, or None."""
    for position, query in enumerate(queries, 1):
        if not any(map(str.isalnum, query)):
            return f"query {position} is empty"
        if len(query) > LONGEST_QUERY or NO_QUERY.search(query):
            return f"query {position} is no search query: {fence(query)}"
    elsewhere = [
        f"query {position}: {fence(query, 60)}"
        for position, query in enumerate(queries, 1)
        if not mentions(query, place)
    ]
    if elsewhere:
        return (
            f"these do not name {fence(place)}, or name its country only; put the town or district "
            f"into each: {'; '.join(elsewhere)}"
        )
    if pairs := duplicates(queries, place):
        listed = (f"{fence(one, 60)} = {fence(two, 60)}" for one, two in pairs[:SHOWN_PAIRS])
        return f"{len(pairs)} pairs of queries are duplicates: {'; '.join(listed)}"
    return None


def unmarked(items: Sequence[str]) -> list[str]:
    """Return the items of a list, tidy and without the numbers before them if all have one.

    A single one may have a number: "7. kerület" is a district.
    """
    tidied = [tidy(item) for item in items]
    numbers = [NUMBER.match(item) for item in tidied]
    return [
        tidy(item[number.end(1) :]) if number and all(numbers) else item
        for number, item in zip(numbers, tidied, strict=True)
    ]


def tidy(query: str) -> str:
    """Return a query on one line, without the quotation marks around it and without Markdown."""
    line = _without_emphasis(on_one_line(query))
    if len(line) > 1 and line[0] in QUOTES and line[-1] in QUOTES:
        line = line[1:-1].strip()
    return line


def _without_emphasis(line: str) -> str:
    return EMPHASIS.sub(lambda found: found[1] or found[2] or found[3] or "", line)


def queries_of_lines(text: str) -> list[str] | None:
    """Read a list that is not JSON: numbered, bulleted, quoted, fenced lines; None if it is none.

    When some lines are marked as items, only those count: the others are commentary.
    """
    lines = [_without_emphasis(line.strip()) for line in text.splitlines()]
    items = [
        line[mark.end(1) :] for line in lines if (mark := BULLET.match(line) or NUMBER.match(line))
    ]
    if not items:
        items = [line for line in lines if not COMMENTARY.match(line)]
    queries = [tidy(item.strip("[] ").rstrip(",").strip()) for item in items]
    queries = [query for query in queries if any(map(str.isalnum, query))]
    return queries if len(queries) > 1 else None
