"""What the HTTP API takes and gives, and what `--json` prints: one shape for both."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from agent.documents.answer import Answer, Citation
from agent.documents.quotes import Quote, Quotes
from agent.documents.refine import FallbackReason, Refinement
from agent.engine.guard import clean
from agent.engine.outcome import Outcome
from agent.places.find import FoundPlace, Places, SearchLink
from agent.places.queries import visible
from bot.telegram.research_text import LONGEST_QUESTION


def _with_words(text: str) -> str:
    """The text without invisible characters; refused if nothing is left."""
    cleaned = clean(text)
    if not visible(cleaned):
        raise PydanticCustomError("blank", "must hold some words")
    return cleaned


Question = Annotated[
    str, Field(min_length=1, max_length=LONGEST_QUESTION), AfterValidator(_with_words)
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class RewriteRequest(_Request):
    """A question to be rewritten for the search."""

    question: Question


class AskRequest(_Request):
    """A question to be answered from the documents."""

    question: Question
    refine_prompt: bool | None = Field(
        default=None,
        description="Whether to search for a rewritten question too; null: as the server is set.",
    )


class QueryRequest(_Request):
    """What to find passages on."""

    query: Question


class _Response(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)


class RewriteResponse(_Response):
    """A question rewritten for the search; as it was where `fallback_reason` says why."""

    original: str
    refined: str
    used: bool
    variants: list[str]
    keywords: list[str]
    entities: list[str]
    constraints: list[str]
    ambiguities: list[str]
    security_flags: list[str]
    fallback_reason: FallbackReason | None

    @classmethod
    def of(cls, refinement: Refinement) -> "RewriteResponse":
        """What a refinement came to."""
        return cls.model_validate(refinement)


class CitationResponse(_Response):
    """What `[path]` in an answer, or `[number]` in its footnoted form, points at."""

    number: int
    path: str
    title: str
    location: str
    passage: str

    @classmethod
    def of(cls, citation: Citation) -> "CitationResponse":
        """One citation."""
        return cls.model_validate(citation)


class AskResponse(_Response):
    """An answer. `answer` cites as `[path]`, `footnoted` as `[number]` of `citations`."""

    question: str
    answer: str
    footnoted: str
    citations: list[CitationResponse]
    enough_information: bool
    by_model: bool
    outcome: Outcome
    refined_question: str | None
    fallback_reason: FallbackReason | None = Field(
        description="Why the question was not refined; null if it was."
    )

    @classmethod
    def of(cls, answer: Answer) -> "AskResponse":
        """An answer of the desk."""
        return cls(
            question=answer.question,
            answer=answer.text,
            footnoted=answer.footnoted,
            citations=[CitationResponse.of(citation) for citation in answer.citations],
            enough_information=answer.enough_information,
            by_model=answer.by_model,
            outcome=answer.outcome,
            refined_question=answer.refined_question,
            fallback_reason=answer.refinement.fallback_reason,
        )


class _CamelCase(_Response):
    """Named as the events of the research on structured snippets are."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ResultEvent(_CamelCase):
    """One passage, word for word as it stands in its source."""

    content: str
    source_id: str
    source_title: str
    source_location: str
    relevance: str

    @classmethod
    def of(cls, quote: Quote) -> "ResultEvent":
        """One quote."""
        return cls.model_validate(quote)


class DoneEvent(_CamelCase):
    """What comes after the last passage."""

    result_count: int
    summary: str
    processing_time_ms: int

    @classmethod
    def of(cls, quotes: Quotes, seconds: float) -> "DoneEvent":
        """What quotes that took `seconds` come to."""
        return cls(
            result_count=len(quotes.quotes),
            summary=quotes.summary,
            processing_time_ms=round(seconds * 1000),
        )


class QuotesDocument(_CamelCase):
    """All passages of a query at once, as a model was asked for them."""

    query: str
    snippets: list[ResultEvent]
    summary: str
    no_results: bool
    by_model: bool
    outcome: Outcome

    @classmethod
    def of(cls, quotes: Quotes) -> "QuotesDocument":
        """The quotes of the desk."""
        return cls(
            query=quotes.query,
            snippets=[ResultEvent.of(quote) for quote in quotes.quotes],
            summary=quotes.summary,
            no_results=quotes.no_results,
            by_model=quotes.by_model,
            outcome=quotes.outcome,
        )


class PlacesDocument(_Response):
    """Ten queries, what was found for them, and links to search with."""

    category: str
    place: str
    queries: list[str]
    by_rules: bool
    results: list[FoundPlace]
    links: list[SearchLink]
    note: str

    @classmethod
    def of(cls, places: Places) -> "PlacesDocument":
        """The places of the desk."""
        return cls(
            category=places.queries.category,
            place=places.queries.place,
            queries=list(places.queries.queries),
            by_rules=places.queries.by_rules,
            results=list(places.results),
            links=list(places.links),
            note=places.note,
        )


class FieldProblem(_Response):
    """What is wrong with one field; `body` is the body as a whole."""

    field: str
    message: str


class Problem(_Response):
    """Why there is no answer."""

    error: str
    fields: list[FieldProblem] = []
