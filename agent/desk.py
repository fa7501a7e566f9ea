"""The four ways to look things up, as chat, command line and HTTP share them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.documents.answer import Answer, answer_question
from agent.documents.quotes import QuoteCache, Quotes, find_quotes
from agent.documents.refine import Refinement, refine_question, refinement_wanted
from agent.documents.store import DocumentStore
from agent.engine.limits import Ledger, Limits
from agent.engine.messages import LLM
from agent.engine.prices import Prices
from agent.engine.prompts import Prompts
from agent.engine.run import Run
from agent.engine.span import NO_SPAN, Span
from agent.places.find import Places, PlaceSearch, find_places
from agent.prompts import REPOSITORY


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchDesk:
    """Answers from documents, quotes, refined questions and places.

    `refinement` is the server's switch: None lets each request decide, False is final. Without
    `models` the best passages are shown as they are; without `search` places are search links.
    """

    documents: DocumentStore
    models: Sequence[LLM] = ()
    search: PlaceSearch | None = None
    refinement: bool | None = None
    limits: Limits = field(default_factory=Limits)
    prompts: Prompts = REPOSITORY
    prices: Prices = field(default_factory=Prices)
    cache: QuoteCache = field(default_factory=QuoteCache)

    @property
    def can_refine(self) -> bool:
        """Whether a request for refinement is heeded."""
        return bool(self.models) and self.refinement is not False

    def run(self, ledger: Ledger | None = None, span: Span = NO_SPAN) -> Run:
        """The run of one look-up."""
        return Run(
            self.models,
            limits=self.limits,
            ledger=ledger or Ledger(prices=self.prices),
            span=span,
            prompts=self.prompts,
        )

    async def ask(
        self,
        question: str,
        *,
        refine: bool | None = None,
        ledger: Ledger | None = None,
        span: Span = NO_SPAN,
    ) -> Answer:
        """An answer from the documents, each statement cited."""
        return await answer_question(
            question,
            documents=self.documents,
            run=self.run(ledger, span),
            refine=refinement_wanted(self.refinement, refine),
        )

    async def quotes(
        self, query: str, *, ledger: Ledger | None = None, span: Span = NO_SPAN
    ) -> Quotes:
        """Passages of the documents, word for word."""
        return await find_quotes(
            query, documents=self.documents, run=self.run(ledger, span), cache=self.cache
        )

    async def refine(
        self, question: str, *, ledger: Ledger | None = None, span: Span = NO_SPAN
    ) -> Refinement:
        """A question in the words of the documents; as it was when refinement is off or fails."""
        return await refine_question(
            question, run=self.run(ledger, span), enabled=self.refinement is not False
        )

    async def find(
        self,
        category: str,
        place: str,
        *,
        ledger: Ledger | None = None,
        span: Span = NO_SPAN,
    ) -> Places:
        """Places of a category. Raises what `agent.places.queries.generate_queries` says."""
        return await find_places(category, place, run=self.run(ledger, span), search=self.search)
