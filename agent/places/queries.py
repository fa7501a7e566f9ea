"""Write exactly 10 distinct search queries for a kind of place in a town or region.

The model answers with a JSON array. If the answer is no JSON, its lines are read. Only the prompt
asks for the array, because a `response_format` supports objects only. An object with a single list
counts as that list. If there are not 10 valid queries, an error is raised.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final

from babel.languages import get_official_languages
from pydantic import Field, RootModel, model_validator

from agent import text
from agent.engine.contract import FEEDBACK_INTRO, OutputContract
from agent.engine.errors import AgentError, clip_quote
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.run import Prompt, PromptRef, Run
from agent.formatting import country_names, format_language
from agent.i18n import country_of_language, current_language
from agent.language import all_common_words
from agent.languages import ENGLISH, load_languages
from agent.markdown import strip_invisible
from agent.prompts import get_prompt, with_instructions
from agent.query_reading.request import read_request
from agent.tables import StrictModel, read_toml
from agent.turn import TurnOutcome, list_error_types

CATEGORIES_FILE: Final = Path(__file__).with_name("categories.toml")
QUERY_COUNT: Final = 10
MAX_RETRIES: Final = 1
"""One more attempt, with feedback, if the answer of a model is invalid."""
UNREACHED_OUTCOMES: Final = frozenset({"model_error", "deadline", "limit"})
"""The outcomes of the agent loop after which no model has answered at all."""
MAX_QUERY_CHARS: Final = 160
MAX_PLACE_CHARS: Final = 120
"""The maximum length of the name of a place."""
MAX_NAME_CHARS: Final = 40
"""The length to which an unknown name is cut in an error message."""
PAIRS_SHOWN: Final = 4
"""Maximum number of pairs of duplicates that the feedback lists."""
PAIR_QUERY_CHARS: Final = 60
"""The length to which the feedback cuts a query of such a pair."""
MIN_STEM_CHARS: Final = 3
"""The fewest letters that are left when an ending is removed."""
PROMPT: Final = "Category: {name}. Place: {place}."
WISH: Final = " Wish: {wish}."
FEEDBACK: Final = FEEDBACK_INTRO + (
    "Correct it. Return ONLY a JSON array of exactly 10 distinct, non-empty strings. No numbering, "
    "no commentary, no Markdown fence, nothing before [ or after ]."
)

TRANSLITERATED_VOWEL: Final = text.pattern("aa|oo|[aou]e")
"""A vowel as it is typed on a keyboard without ä, ö, ü, å and ø: `oe` for `ö`."""
PLURAL_ENDING: Final = text.pattern(
    r"(?:ies|oes|ao|os|as|hi|he|en|es|er|[yisxeoaыиаь])\Z"
)
"""Singular and plural endings of some languages."""
NOT_IN_WORDS: Final = text.pattern(r"[^\p{L}\p{M}\p{N}'’,.\s-]+")
"""Characters that no name of a place has, such as the "!" and ":" of search operators."""
COORDINATE: Final = text.pattern(r"\A-?\d{1,3}[.]\d+,?\z")
"""A latitude or longitude: "48.2082,", "-16.37"."""
LIST_MARKER: Final = text.pattern(r"\A(?:[-+*–—•·]\s+|\d{1,2}[.):]\s+)")
"""The bullet or number before a list item."""
COMMENTARY: Final = text.pattern(r"\A(?:```|#{1,6}\s|.*[:!]\Z)")
"""A line that is not a list item: a fence, a heading, "Here they are:", "Enjoy!"."""
NON_QUERY_CHARS: Final = text.pattern(r"://|[{}<>|]")
"""The signs of a text that is not a query: of an address, a tag or JSON."""
SURROUNDING_CHARS: Final = " ,*_\"'`“”„«»"
"""Quotation marks, commas and Markdown that a model may put around a query."""


class Category(StrictModel):
    """A kind of place, with its English name, words that mean it, and ten phrases.

    A phrase followed by the place is a rule-based query.
    """

    label: str
    description: str
    synonyms: tuple[str, ...]
    phrases: Annotated[tuple[str, ...], Field(min_length=10, max_length=10)]

    @property
    def hint(self) -> str:
        """Return a description for a model: "where bottles are sold: wine shop, wine merchant"."""
        return f"{self.description}: {', '.join(self.synonyms)}"


@cache
def load_categories() -> Mapping[str, Category]:
    """Return every category by its key."""
    return read_toml(dict[str, Category], CATEGORIES_FILE)


def get_category_name(language: str, category: str) -> str:
    """Return the name of a category in a language and the user's country, or else in English."""
    entry = load_languages().get(language)
    if entry is not None:
        country = country_of_language(language)
        names_in_country = entry.country_places.get(country, {})
        if category in names_in_country:
            return names_in_country[category]
    names = _list_names_in(language, category)
    if names:
        return names[0]
    return load_categories()[category].label


def _list_names_in(language: str, category: str) -> list[str]:
    """Return the names of a category in a language, which may be none. The usual one is first."""
    entry = load_languages().get(language)
    if entry is None or category not in entry.places:
        return []
    return entry.places[category].split(",")


def find_category(name: str) -> str:
    """Return the key of the category with a name: "wine bars", "WINE_BAR", "Weinbar".

    A category may be named by its key, its label, its phrases, its synonyms, and its names in other
    languages. If two categories share a name, return the first.

    Raises:
        ValueError: there is no such category. The message lists the categories.
    """
    stemmed_name = stem_words(name)
    for key in load_categories():
        if stemmed_name in _list_stemmed_names(key):
            return key
    shown_name = name.strip()[:MAX_NAME_CHARS]
    known = ", ".join(load_categories())
    raise ValueError(f"there is no category {shown_name!r}; use {known}")


@cache
def _list_stemmed_names(key: str) -> tuple[list[str], ...]:
    """Return the stemmed words of each name of a category."""
    category = load_categories()[key]
    names = [key, category.label]
    names += category.phrases
    names += category.synonyms
    for language in load_languages():
        names += _list_names_in(language, key)
    return tuple(stem_words(name) for name in names)


class QueryGenerationFailed(AgentError):
    """The model did not give exactly 10 distinct search queries, even after feedback."""

    def __init__(
        self,
        message: str,
        *,
        retry_count: int,
        error_types: tuple[str, ...],
    ) -> None:
        super().__init__(message)
        self.retry_count = retry_count
        self.error_types = error_types


class SearchQueries(RootModel[list[str]]):
    """A JSON array of exactly 10 distinct search queries."""

    root: Annotated[list[str], Field(min_length=QUERY_COUNT, max_length=QUERY_COUNT)]

    @model_validator(mode="before")
    @classmethod
    def _clean_list(cls, value: object) -> object:
        """Return the list without list markers. An object with one value counts as that value."""
        if isinstance(value, dict) and len(value) == 1:
            [value] = value.values()
        if not isinstance(value, list):
            return value
        if not all(isinstance(item, str) for item in value):
            return value
        return strip_list_markers(value)


@dataclass(frozen=True, slots=True)
class PlaceQueries:
    """Exactly 10 distinct queries. The outcome is "fallback" if no model could be reached."""

    category: str
    place: str
    texts: tuple[str, ...]
    outcome: TurnOutcome = "answered"
    retry_count: int = 0
    error_types: tuple[str, ...] = ()
    prompt: PromptRef | None = None


async def generate_queries(
    category: str,
    place: str,
    *,
    run: Run,
    wish: str = "",
) -> PlaceQueries:
    """Write 10 distinct queries for a category (see `load_categories()`) in `place`.

    A `wish` narrows the search further: "natural wine", "open on Sundays". Without a model, or if
    none can be reached, build the queries from the category's phrases.

    Raises:
        ValueError: there is no such category, or the place is not a name.
        QueryGenerationFailed: the model's answer was invalid, also after feedback.
    """
    key = find_category(category)
    place = clean_place_name(place)
    wish = to_plain_words(wish)
    result = build_rule_based_queries(key, place, wish)
    if not run.models:
        return result
    prompt = get_prompt(run, "place-queries")
    response = await _ask_model(key, place, wish, run, prompt)
    retry_count = response.retry_count
    error_types = list_error_types(response)
    result = replace(result, retry_count=retry_count, error_types=error_types)
    if response.answer is not None and response.outcome == "answered":
        queries = [name_place(query, place) for query in response.answer.root]
        return replace(result, texts=tuple(queries), prompt=prompt.ref)
    if response.outcome in UNREACHED_OUTCOMES:
        return replace(result, outcome="fallback")
    raise QueryGenerationFailed(
        f"no 10 distinct search queries for {key} in {place!r}: {response.error}; "
        "ask again, or name the place more precisely",
        retry_count=retry_count,
        error_types=error_types,
    )


async def _ask_model(
    key: str,
    place: str,
    wish: str,
    run: Run,
    prompt: Prompt,
) -> AgenticResponse[SearchQueries]:
    """Ask for the queries for the category with this key."""
    contract = OutputContract(
        SearchQueries,
        semantic=lambda answer: find_problem(answer.root, place),
        read_text=parse_lines,
        feedback_wording=FEEDBACK,
    )
    category = load_categories()[key]
    run = with_instructions(
        run,
        prompt,
        category=key,
        label=category.label,
        hint=category.hint,
        language=format_language(current_language()),
        schema=contract.output.schema_text,
    )
    limits = replace(run.limits, structured_output_max_retries=MAX_RETRIES)
    run = replace(run, limits=limits)
    message = PROMPT.format(name=key, place=_put_in_quotation_marks(place))
    if wish:
        message += WISH.format(wish=_put_in_quotation_marks(wish))
    return await generate_agentic_response(message, run=run, contract=contract)


def _put_in_quotation_marks(words: str) -> str:
    """Return the words of a user as JSON, so that a model sees where they end."""
    return json.dumps(words, ensure_ascii=False)


def build_rule_based_queries(category: str, place: str, wish: str = "") -> PlaceQueries:
    """Return ten phrases with the place, in the user's language if it has such phrases.

    If the place is in a country of another language, half of them are in that language.
    """
    own_language = current_language()
    queries = _list_queries_in(own_language, category, wish, place)
    local_language = _find_local_language(place, own_language)
    if local_language != own_language:
        # "Lyon, Frankreich" is German. In French, the town alone is searched for.
        town, _, _ = place.partition(",")
        local_queries = _list_queries_in(local_language, category, wish, town)
        queries = _mix_queries(queries, local_queries, place)
    return PlaceQueries(category, place, tuple(queries))


def _list_queries_in(language: str, category: str, wish: str, place: str) -> list[str]:
    """Return ten queries for a category, in a language if it has phrases for them."""
    suffix = f"{wish} {place}".strip()
    phrases = _list_phrases_in(language, category)
    return [f"{phrase} {suffix}" for phrase in phrases]


def _find_local_language(place: str, own_language: str) -> str:
    """Return the language in which people search in the country that a name of a place mentions.

    Return the user's own language if it is spoken there, or if no country is mentioned. Return
    English if there are no phrases in the languages of the country.
    """
    countries = read_request(place, own_language).values("countries")
    if len(countries) != 1:
        return own_language
    [country] = countries
    code = _load_country_codes().get(country, "")
    spoken_languages = get_official_languages(code, de_facto=True)
    if not spoken_languages or own_language in spoken_languages:
        return own_language
    for language in spoken_languages:
        entry = load_languages().get(language)
        if entry is not None and entry.place_searches:
            return language
    return ENGLISH


@cache
def _load_country_codes() -> Mapping[str, str]:
    """Return the codes of countries (ISO 3166) by their English names."""
    codes = {name: code for code, name in country_names(ENGLISH).items()}
    codes["England"] = "GB"
    return codes


def _mix_queries(own: Sequence[str], local: Sequence[str], place: str) -> list[str]:
    """Return half of the user's own queries, and then local ones that are no duplicates.

    If there are too few of these, the other own queries follow.
    """
    half = QUERY_COUNT // 2
    mixed = list(own[:half])
    candidates = [*local, *own[half:]]
    for query in candidates:
        if len(mixed) == QUERY_COUNT:
            break
        has_duplicates = bool(find_duplicates([*mixed, query], place))
        if not has_duplicates:
            mixed.append(query)
    return mixed


def _list_phrases_in(language: str, category: str) -> Sequence[str]:
    """Return ten phrases for a category in a language, or else its name and the English phrases."""
    entry = load_languages().get(language)
    if entry and category in entry.place_searches:
        country = country_of_language(language)
        country_searches = entry.country_place_searches.get(country, {})
        searches = country_searches.get(category, entry.place_searches[category])
        return [" ".join(phrase.split()) for phrase in searches.split(",")]
    english = load_categories()[category]
    phrases = english.phrases
    name = get_category_name(language, category)
    if name == english.label:
        return phrases
    stemmed_name = stem_words(name)
    others = [phrase for phrase in phrases if stem_words(phrase) != stemmed_name]
    return [name, *others[: QUERY_COUNT - 1]]


def clean_place_name(place: str) -> str:
    """Return the words of the name of a place.

    Raises:
        ValueError: it has no letters or digits, or more than 120 characters.
    """
    name = to_plain_words(place)
    if not _has_words(name) or len(name) > MAX_PLACE_CHARS:
        raise ValueError(
            f"name a town, a district or a region in {MAX_PLACE_CHARS} characters"
        )
    return name


def to_plain_words(raw: str) -> str:
    """Return the words of a text without what a search engine would read as a command.

    `!x site:evil.example "Wien"` becomes `x site evil example Wien`.
    """
    words: list[str] = []
    raw_words = NOT_IN_WORDS.sub(" ", strip_invisible(raw)).split()
    for word in raw_words:
        if COORDINATE.match(word):
            words.append(word)
            continue
        bare = word.lstrip("-'’.,")
        # A dot within a word may make it a domain. A dot at its end is kept, as in "St. Gallen".
        has_dot_within = "." in bare.rstrip(".,")
        if has_dot_within:
            words += bare.replace(".", " ").split()
        elif bare:
            words.append(bare)
    return " ".join(words)


def to_visible_line(raw: str) -> str:
    """Return a text on one line, without invisible characters."""
    return " ".join(strip_invisible(raw).split())


def normalise_words(phrase: str) -> list[str]:
    """Return the words of a text without case and accents, with `o` for `ö`, `oe` and `ø`."""

    def keep_first(vowels: text.Match) -> str:
        return vowels[0][0]

    joined = " ".join(text.split_words(phrase))
    return TRANSLITERATED_VOWEL.sub(keep_first, joined).split()


def stem_word(word: str) -> str:
    """Return a word without its plural ending, unless that leaves fewer than three letters."""
    stripped = PLURAL_ENDING.sub("", word)
    if len(stripped) < MIN_STEM_CHARS:
        return word
    return stripped


def stem_words(phrase: str) -> list[str]:
    """Return the normalised words of a text without their plural endings."""
    return [stem_word(word) for word in normalise_words(phrase)]


def find_problem(queries: Sequence[str], place: str) -> str | None:
    """Return feedback on ten queries, or None if they are valid."""
    for position, query in enumerate(queries, 1):
        if not _has_words(query):
            return f"query {position} is empty"
        if len(query) > MAX_QUERY_CHARS or NON_QUERY_CHARS.search(query):
            return f"query {position} is no search query: {clip_quote(query)}"
    pairs = find_duplicates(queries, place)
    if not pairs:
        return None
    shown_pairs = []
    for first, second in pairs[:PAIRS_SHOWN]:
        shown_first = clip_quote(first, PAIR_QUERY_CHARS)
        shown_second = clip_quote(second, PAIR_QUERY_CHARS)
        shown_pairs.append(f"{shown_first} = {shown_second}")
    return f"{len(pairs)} pairs of queries are duplicates: {'; '.join(shown_pairs)}"


def find_duplicates(queries: Sequence[str], place: str) -> list[tuple[str, str]]:
    """Return the pairs of equivalent queries, in order.

    Case, accents, plurals, word order, fillers ("best", "in") and the place are ignored.
    """
    ignored = {*stem_words(place), *_list_filler_words()}
    words = {}
    letters = {}
    for query in queries:
        words[query] = set(stem_words(query)) - ignored
        # A compound may have spaces or not: "wine-bar", "winebar".
        letters[query] = "".join(normalise_words(query))
    pairs = []
    for first, second in combinations(queries, 2):
        has_same_words = words[first] == words[second]
        if has_same_words or letters[first] == letters[second]:
            pairs.append((first, second))
    return pairs


@cache
def _list_filler_words() -> frozenset[str]:
    """Return the stems of the words that add nothing to a query, in any language."""
    words = list(all_common_words())
    for language in load_languages().values():
        words += language.search_fillers
    return frozenset(stem_words(" ".join(words)))


def is_filler(word: str) -> bool:
    """Return whether a word adds nothing to a query: "a", "best"."""
    stems = stem_words(word)
    return _list_filler_words().issuperset(stems)


def name_place(query: str, place: str) -> str:
    """Return the words of a query. If they do not mention the place, it is added at their end."""
    words = to_plain_words(query)
    if mentions_place(words, place):
        return words
    town, _, _ = place.partition(",")
    return f"{words} {town}"


def mentions_place(query: str, place: str) -> bool:
    """Return whether a query names a place with any ending. The name of "Lyon, France" is Lyon."""
    town, _, _ = place.partition(",")
    names = [word for word in normalise_words(town) if len(word) > 1]
    if not names:  # a name of single letters, such as "Å", cannot be recognised
        return True
    for word in normalise_words(query):
        for name in names:
            if _is_part_of_name(word, name):
                return True
    return False


def _is_part_of_name(word: str, name: str) -> bool:
    """Return whether a word is a name with any ending.

    In scripts without spaces, the name may have the first two characters of the word anywhere:
    渋谷 is enough for 東京都渋谷区.
    """
    if word.startswith(stem_word(name)):
        return True
    return not name.isascii() and word[:2] in name


def strip_list_markers(items: Sequence[str]) -> list[str]:
    """Return list items without surrounding characters, and without list markers if all have one.

    If only some items start with a number, the number is part of the text, as in "7. kerület".
    """
    lines = []
    for item in items:
        line = to_visible_line(item)
        lines.append(line.strip(SURROUNDING_CHARS))
    if not all(map(LIST_MARKER.match, lines)):
        return lines
    unmarked = []
    for line in lines:
        line_without_marker = LIST_MARKER.sub("", line)
        unmarked.append(line_without_marker.strip(SURROUNDING_CHARS))
    return unmarked


def parse_lines(answer: str) -> list[str] | None:
    """Return the items of a plain-text list, or None if there are fewer than two.

    Lines may be numbered, bulleted, quoted or fenced. If any line has a list marker, lines without
    one are commentary.
    """
    lines = [line.strip() for line in answer.splitlines()]
    items = [line for line in lines if LIST_MARKER.match(line)]
    if not items:
        items = [line for line in lines if not COMMENTARY.match(line)]
    queries = list(filter(_has_words, strip_list_markers(items)))
    if len(queries) < 2:
        return None
    return queries


def _has_words(phrase: str) -> bool:
    return any(map(str.isalnum, phrase))
