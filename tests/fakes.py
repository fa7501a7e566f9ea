"""Fakes behind the ports: a cellar in memory, and a tracer whose spans can be read."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agent.engine.run import Run
from agent.fallback.answering import Fallback
from agent.sommelier.queries import WineQuery, WineSearchResult
from agent.sommelier.service import Answerer, Sommelier
from agent.sommelier.vocabulary import Food, Style
from agent.sommelier.wine import Wine
from agent.text import split_words
from agent.tracing.records import OpenSpan, SpanRecord, TraceRecord
from agent.turn import Reply, StoredMessage, answer_turn

CHINON = Wine(
    id="baudry-chinon-2020",
    producer="Bernard Baudry",
    name="Chinon Les Granges",
    vintage=2020,
    country="France",
    region="Loire Valley",
    appellation="Chinon",
    grapes=("Cabernet Franc",),
    style=Style.RED,
    price=16.5,
    foods=(Food.LAMB, Food.CHARCUTERIE),
    notes="Raspberry, graphite, fine tannin.",
)
RIOJA = Wine(
    id="muga-reserva-2019",
    producer="Muga",
    name="Rioja Reserva",
    vintage=2019,
    country="Spain",
    region="Rioja",
    grapes=("Tempranillo",),
    style=Style.RED,
    price=22,
    foods=(Food.LAMB, Food.BEEF),
)
SANCERRE = Wine(
    id="vacheron-sancerre-2022",
    producer="Vacheron",
    name="Sancerre",
    vintage=2022,
    country="France",
    region="Loire Valley",
    appellation="Sancerre",
    grapes=("Sauvignon Blanc",),
    style=Style.WHITE,
    price=29,
    foods=(Food.GOAT_CHEESE, Food.OYSTERS),
)
FREE = Wine(
    id="null-riesling",
    producer="Kolonne Null",
    name="Riesling",
    country="Germany",
    grapes=("Riesling",),
    style=Style.ALCOHOL_FREE,
    abv=0,
    price=9,
    foods=(Food.LAMB,),
)


@dataclass
class FakeCatalogue:
    """A few wines, searched by style, food and price only; `searched` keeps every query."""

    wines: Sequence[Wine] = (CHINON, RIOJA, SANCERRE)
    searched: list[WineQuery] = field(default_factory=list)

    async def search(self, query: WineQuery) -> WineSearchResult:
        self.searched.append(query)
        found = [wine for wine in self.wines if self._matches(wine, query)]
        return WineSearchResult(wines=tuple(found[: query.limit]), total=len(found))

    async def load_names(self) -> "FakeCatalogue":
        return self

    def has_wine_with(self, words: Collection[str]) -> bool:
        labels = [split_words(wine.source_text) for wine in self.wines]
        return any(set(words) <= set(label) for label in labels)

    def _matches(self, wine: Wine, query: WineQuery) -> bool:
        return (
            wine.id != query.like
            and (not query.styles or query.alcohol_free or wine.style in query.styles)
            and (not query.alcohol_free or wine.style == Style.ALCOHOL_FREE)
            and (not query.foods or bool(set(wine.foods) & set(query.foods)))
            and (query.max_price is None or (wine.price or 0) <= query.max_price)
            and (query.below is None or (wine.price or 0) < query.below)
        )

    async def get(self, wine_ids: Sequence[str]) -> list[Wine]:
        return [wine for wanted in wine_ids for wine in self.wines if wine.id == wanted]


def fake_sommelier(**parts: Any) -> Sommelier:
    """Return a sommelier with the wines of `FakeCatalogue`; `parts` are its further arguments."""
    catalogue = FakeCatalogue()
    return Sommelier(
        catalogue=catalogue, fallback=Fallback(catalogue=catalogue), **parts
    )


def root_span() -> OpenSpan:
    """The root of a trace."""
    return TraceRecord("0" * 32, "chat", "user").open_root("a question")


def children(trace: TraceRecord, parent: SpanRecord | None = None) -> list[SpanRecord]:
    """The spans of a trace below one of them, by default the root."""
    parent = parent or trace.root
    return [child for child in trace.spans if child.parent_id == parent.span_id]


def names(trace: TraceRecord, parent: SpanRecord | None = None) -> list[str]:
    return [child.name for child in children(trace, parent)]


async def asked(
    answerer: Answerer, message: str, run: Run, history: Sequence[StoredMessage] = ()
) -> Reply:
    """What a turn with this message comes to, as everyone who asks lives it."""
    return await answer_turn(run, partial(answerer.answer, message, history=history))
