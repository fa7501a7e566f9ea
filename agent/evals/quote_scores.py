"""Questions with known answers, and one response to one of them held against what was retrieved."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from agent.documents.passages import verbatim
from agent.documents.quotes import MAX_SNIPPETS, QuotesAnswer, Snippet, source_chunk
from agent.documents.store import Chunk
from agent.engine.messages import LLMResponse, Usage
from agent.engine.prices import KNOWN_PRICES, Prices

Kind = Literal["keyword", "paraphrase", "multi", "negative"]

GROUND_TRUTH: Final = Path(__file__).with_name("ground_truth.json")


class Question(BaseModel):
    """A question with a known answer: the documents that hold it, by the end of their path."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    kind: Kind
    query: str
    sources: tuple[str, ...]


def ground_truth(file: Path = GROUND_TRUTH) -> list[Question]:
    """The 24 questions over the starter documents: 6 of each kind."""
    return TypeAdapter(list[Question]).validate_json(file.read_bytes())


@dataclass(frozen=True, slots=True)
class Score:
    """What one response came to. Shares are from 0 to 1, None where the question has none.

    `retrieved`: the share of the known sources among the chunks; not the model's doing.
    """

    question: Question
    asked: bool = False
    parsed: bool = False
    compliant: bool = False
    snippets: int = 0
    verbatim: float | None = None
    attribution: float | None = None
    negative: bool | None = None
    retrieved: float | None = None
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    problem: str = ""

    @property
    def shares(self) -> dict[str, float]:
        """The metrics that the question counts for, each from 0 to 1."""
        found = {
            "json_parse": float(self.parsed),
            "schema": float(self.compliant),
            "verbatim": self.verbatim,
            "attribution": self.attribution,
            "negative": None if self.negative is None else float(self.negative),
        }
        return {name: share for name, share in found.items() if share is not None}


def scored(
    question: Question,
    response: LLMResponse | None,
    chunks: Sequence[Chunk],
    prices: Prices = KNOWN_PRICES,
) -> Score:
    """A raw response held against what was retrieved."""
    score = replace(_worst(question), retrieved=_retrieved(question, chunks))
    if not chunks:
        return _nothing_to_ask(score)
    if response is None:
        return replace(score, problem="no response")
    cost = prices.cost(response)
    score = replace(score, usage=response.usage, cost_usd=cost)
    answer, problem = _read(response.content)
    score = replace(score, parsed=problem != "no JSON", problem=problem)
    return score if answer is None else _judged(replace(score, compliant=True), answer, chunks)


def _nothing_to_ask(score: Score) -> Score:
    """Where nothing was retrieved nobody is asked, which is right where there is no answer."""
    if score.question.kind == "negative":
        return replace(score, negative=True)
    return replace(score, problem="nothing was retrieved")


def _worst(question: Question) -> Score:
    """The score of no usable response: every metric that the question counts for is 0."""
    if question.kind == "negative":
        return Score(question, negative=False)
    return Score(question, verbatim=0.0, attribution=0.0)


def _retrieved(question: Question, chunks: Sequence[Chunk]) -> float | None:
    if not question.sources:
        return None
    return mean(
        [any(chunk.path.endswith(source) for chunk in chunks) for source in question.sources]
    )


def _read(content: str) -> tuple[QuotesAnswer | None, str]:
    """The answer that the raw text is, or None and what is wrong; nothing is repaired."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None, "no JSON"
    if not isinstance(value, dict):
        return None, "no JSON"
    try:
        answer = QuotesAnswer.model_validate(value, strict=True, by_name=False)
    except ValidationError as error:
        return None, f"schema: {'.'.join(map(str, error.errors()[0]['loc']))}"
    if len(answer.snippets) > MAX_SNIPPETS:
        return None, f"schema: more than {MAX_SNIPPETS} snippets"
    return answer, ""


def _judged(score: Score, answer: QuotesAnswer, chunks: Sequence[Chunk]) -> Score:
    score = replace(score, snippets=len(answer.snippets))
    if score.question.kind == "negative":
        handled = answer.no_results and not answer.snippets
        return replace(score, negative=handled, problem="" if handled else "quoted for a negative")
    verbatims = [_stands(snippet, chunks) for snippet in answer.snippets]
    attributed = [_attributed(snippet, chunks) for snippet in answer.snippets]
    problems = {
        "no snippet": not answer.snippets,
        "not verbatim": not all(verbatims),
        "wrong source": not all(attributed),
    }
    return replace(
        score,
        verbatim=mean(verbatims),
        attribution=mean(attributed),
        problem=", ".join(name for name, found in problems.items() if found),
    )


def _stands(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    return any(verbatim(snippet.content, chunk.text) for chunk in chunks)


def _attributed(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    """Whether id and title are those of a retrieved source, and of the one it stands in."""
    named = (snippet.source_id, snippet.source_title)
    if named not in {(chunk.document_id, chunk.title) for chunk in chunks}:
        return False
    return source_chunk(snippet, chunks) is not None or not _stands(snippet, chunks)


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all values do not exceed, 0 of nothing."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
