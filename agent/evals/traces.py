"""The traces of a run on their way to wherever it is recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from agent.tracing.records import ScoreRecord, TraceRecord

USER: Final = "eval"
SCORE_PREFIX: Final = "eval_"
"""Before a metric's name in the scores of a trace, whose other scores a turn gives itself."""


@dataclass(slots=True)
class Kept:
    """A sink that keeps the traces of one item, in order."""

    traces: list[TraceRecord] = field(default_factory=list)
    dropped_spans: int = 0

    def write(self, trace: TraceRecord) -> None:
        """Keep a turn's trace."""
        self.traces.append(trace)

    def close(self, deadline: float) -> None:
        """Nothing is left to deliver."""


def session(run: str) -> str:
    """The session of all turns of a run."""
    return f"eval:{run}"


def model_error(trace: TraceRecord) -> str:
    """The type of the last error that kept a model from answering in this turn; empty if none."""
    failed = (each for each in reversed(trace.spans) if each.kind == "generation")
    return next((str(kind) for each in failed if (kind := each.metadata.get("error_type"))), "")


def give_score(trace: TraceRecord, metric: str, score: float, reason: str = "") -> None:
    """Score a trace by a metric; the id of the score is fixed by both."""
    given = ScoreRecord(f"{SCORE_PREFIX}{metric}", score, "NUMERIC", reason)
    trace.scores[given.name] = given


def give_scores(trace: TraceRecord, scores: Mapping[str, float]) -> None:
    """Score a trace by several metrics."""
    for metric, score in scores.items():
        give_score(trace, metric, score)
