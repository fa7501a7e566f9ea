"""Finished traces to Langfuse: spans in OpenTelemetry's protocol, scores in one list.

Requests are made on the outbox's thread; a turn never waits for them. Whether a trace is taken,
may be taken later or never will be is told by the status, so nothing is dropped in silence.
"""

import base64
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import httpx

from agent.errors import AgentError
from agent.langfuse.spans import Origin, encoded, text
from agent.tracing.outbox import NotNow, Outbox, Refused
from agent.tracing.records import ScoreRecord, TraceRecord, score_id

log = logging.getLogger(__name__)

TRACES: Final = "/api/public/otel/v1/traces"
SCORES: Final = "/api/public/scores"
REQUEST_SECONDS: Final = 5.0
LARGEST_BODY: Final = 3_000_000  # bytes; a larger one is sent in halves
AGAIN: Final = frozenset({408, 425, 429})
UNREADABLE: Final = frozenset({400, 413, 422})


class Unreadable(AgentError):
    """Langfuse could not read what was sent."""


class LangfuseSender:
    """Sends batches of traces over one connection; `prepare` makes of each what may be shown."""

    def __init__(
        self,
        origin: Origin,
        secret_key: str,
        base_url: str,
        prepare: Callable[[TraceRecord], TraceRecord],
    ) -> None:
        self._origin = origin
        self._prepare = prepare
        keys = base64.b64encode(f"{origin.public_key}:{secret_key}".encode()).decode()
        headers = {
            "Authorization": f"Basic {keys}",
            "x-langfuse-public-key": origin.public_key,
            "x-langfuse-ingestion-version": "4",
        }
        self._http = httpx.Client(
            base_url=base_url.rstrip("/"), headers=headers, timeout=REQUEST_SECONDS
        )
        self._spans_taken: set[tuple[str, int | None]] = set()

    def send(self, traces: Sequence[TraceRecord]) -> None:
        """Deliver spans, then scores; spans that were taken are not sent again for the scores.

        Raises:
            NotNow: the server is away, slow or overloaded.
            Refused: it does not accept the keys, or what was sent.
        """
        try:
            self._send([self._prepare(each) for each in traces])
        except NotNow:
            raise  # the batch comes again
        except Exception:
            self._spans_taken.clear()
            raise
        self._spans_taken.clear()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _send(self, traces: Sequence[TraceRecord]) -> None:
        new = [each for each in traces if _run_of(each) not in self._spans_taken]
        if new:
            self._send_spans(new)
        self._spans_taken.update(map(_run_of, new))
        scores = [_score(each, score) for each in traces for score in each.scores.values()]
        if scores:
            self._post(SCORES, json=scores)

    def _send_spans(self, traces: Sequence[TraceRecord]) -> None:
        body = encoded(traces, self._origin)
        half = len(traces) // 2
        if len(body) <= LARGEST_BODY or not half:
            self._post(TRACES, content=body, headers={"Content-Type": "application/x-protobuf"})
            return
        self._send_spans(traces[:half])
        self._send_spans(traces[half:])

    def _post(self, path: str, **request: object) -> None:
        try:
            response = self._http.post(path, **request)  # type: ignore[arg-type]
        except httpx.HTTPError as error:
            raise NotNow(type(error).__name__) from None
        if response.status_code >= 500 or response.status_code in AGAIN:
            raise NotNow(f"status {response.status_code}")
        if response.status_code in UNREADABLE:
            raise Unreadable(f"status {response.status_code}")
        if response.status_code >= 300:
            raise Refused(f"status {response.status_code}")
        if response.status_code == 207:
            log.warning("Langfuse did not take every score of a batch")


def langfuse_sink(
    public_key: str,
    secret_key: str,
    base_url: str,
    *,
    environment: str | None = None,
    release: str | None = None,
    prepare: Callable[[TraceRecord], TraceRecord] = lambda trace: trace,
) -> Outbox:
    """Where a `Recorder` writes to have its turns in Langfuse.

    Raises:
        ValueError: a key is empty.
    """
    if not (public_key and secret_key):
        raise ValueError("Langfuse has no keys: set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY")
    origin = Origin(public_key, environment, release)
    sender = LangfuseSender(origin, secret_key, base_url, prepare)
    return Outbox(sender.send, where="Langfuse", released=sender.close)


def _run_of(trace: TraceRecord) -> tuple[str, int | None]:
    """What tells a trace from that of the same turn run again, which has the same id."""
    return trace.trace_id, trace.root.ended_ns


def _score(trace: TraceRecord, score: ScoreRecord) -> dict[str, object]:
    """A score of a trace as the API takes it, on the root span, where the list shows it."""
    value = text(score.value) if isinstance(score.value, str) else float(score.value)
    named = {
        "id": score_id(trace.trace_id, score.name),
        "traceId": trace.trace_id,
        "observationId": trace.root.span_id,
        "name": score.name,
        "value": value,
        "dataType": score.kind,
        "comment": text(score.comment) or None,
        "timestamp": datetime.fromtimestamp((trace.root.ended_ns or 0) / 1e9, UTC).isoformat(),
    }
    return {name: each for name, each in named.items() if each is not None}
