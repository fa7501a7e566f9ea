"""Finished traces to Langfuse: spans in OpenTelemetry's protocol, scores in one list.

Requests are made on the exporter's thread; a turn never waits for them. Whether a trace is taken,
may be taken later or never will be is told by the status, so nothing is dropped in silence.
"""

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import httpx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from agent.engine.errors import AgentError
from agent.engine.trace_records import ScoreRecord, TraceRecord, score_id
from agent.tracing.exporter import Exporter, NotNow, RateLimitedLogger, Refused, TakenInPart
from agent.tracing.langfuse.bounded import BoundedClient
from agent.tracing.langfuse.spans import Origin, encoded, headers, text

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
        self._http = BoundedClient(
            REQUEST_SECONDS,
            base_url.rstrip("/"),
            {"Authorization": f"Basic {keys}", **headers(origin.public_key)},
        )
        self._spans_taken: set[tuple[str, int | None]] = set()
        self._spans_refused = 0  # of a batch that is not done yet

    def send(self, traces: Sequence[TraceRecord]) -> None:
        """Deliver spans, then scores; spans that were taken are not sent again for the scores.

        Raises:
            NotNow: the server is away, slow or overloaded.
            TakenInPart: it took the batch, but for some spans or scores.
            Refused: it does not accept the keys, or what was sent.
        """
        try:
            self._send([self._prepare(each) for each in traces])
        except NotNow:
            raise  # the batch comes again
        except Exception:
            self._done()
            raise
        self._done()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _done(self) -> None:
        self._spans_taken.clear()
        self._spans_refused = 0

    def _send(self, traces: Sequence[TraceRecord]) -> None:
        new = [each for each in traces if _run_of(each) not in self._spans_taken]
        if new:
            self._send_spans(new)
        self._spans_taken.update(map(_run_of, new))
        environment = self._origin.environment
        scores = [
            _score(each, score, environment) for each in traces for score in each.scores.values()
        ]
        some_scores = bool(scores) and self._post(SCORES, json=scores).status_code == 207
        if some_scores or self._spans_refused:
            raise TakenInPart(self._spans_refused)

    def _send_spans(self, traces: Sequence[TraceRecord]) -> None:
        body = encoded(traces, self._origin)
        half = len(traces) // 2
        if len(body) <= LARGEST_BODY or not half:
            content_type = {"Content-Type": "application/x-protobuf"}
            self._spans_refused += refused_spans(
                self._post(TRACES, content=body, headers=content_type)
            )
            return
        self._send_spans(traces[:half])
        self._send_spans(traces[half:])

    def _post(self, path: str, **request: object) -> httpx.Response:
        try:
            response = self._http.post(path, **request)
        except httpx.HTTPError as error:
            raise NotNow(type(error).__name__) from None
        if response.status_code >= 500 or response.status_code in AGAIN:
            raise NotNow(f"status {response.status_code}", retry_after=retry_after(response))
        if response.status_code in UNREADABLE:
            raise Unreadable(f"status {response.status_code}")
        if response.status_code >= 300:
            raise Refused(f"status {response.status_code}{advice(response.status_code)}")
        if media_type(response) == "text/html":
            raise Refused(f"a web page{advice(300)}")
        return response


def retry_after(response: httpx.Response) -> float:
    """The seconds a server asks to be left alone, 0 if it does not say so in seconds."""
    said = response.headers.get("retry-after", "")
    return float(said) if said.isdecimal() and said.isascii() else 0.0


def advice(status: int) -> str:
    """What an admin does about a server that takes nothing."""
    if status in {401, 403}:
        return "; check LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and LANGFUSE_BASE_URL"
    return "; check LANGFUSE_BASE_URL" if status < 400 or status == 404 else ""


def media_type(response: httpx.Response) -> str:
    """What a response says it is, without parameters."""
    said: str = response.headers.get("content-type", "")
    return said.partition(";")[0].strip().lower()


def refused_spans(response: httpx.Response) -> int:
    """How many spans of an accepted request were not taken, by what the answer says; else 0."""
    try:
        if media_type(response) == "application/x-protobuf":
            answer = ExportTraceServiceResponse.FromString(response.content)
            return int(answer.partial_success.rejected_spans)
        return int(response.json()["partialSuccess"]["rejectedSpans"])
    except (DecodeError, KeyError, TypeError, ValueError):
        return 0


def langfuse_sink(
    public_key: str,
    secret_key: str,
    base_url: str,
    *,
    environment: str | None = None,
    release: str | None = None,
    version: str | None = None,
    limited_log: RateLimitedLogger | None = None,
    prepare: Callable[[TraceRecord], TraceRecord] = lambda trace: trace,
) -> Exporter:
    """Where a `Recorder` writes to have its turns in Langfuse.

    `version` is this product's, `limited_log` says what is out of order there.

    Raises:
        ValueError: a key is empty.
    """
    if not (public_key and secret_key):
        raise ValueError("Langfuse has no keys: set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY")
    origin = Origin(public_key, environment, release, version)
    sender = LangfuseSender(origin, secret_key, base_url, prepare)
    return Exporter(sender.send, where="Langfuse", released=sender.close, limited_log=limited_log)


def _run_of(trace: TraceRecord) -> tuple[str, int | None]:
    """What tells a trace from that of the same turn run again, which has the same id."""
    return trace.trace_id, trace.root.ended_ns


def _score(trace: TraceRecord, score: ScoreRecord, environment: str | None) -> dict[str, object]:
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
        "environment": environment,
        "timestamp": datetime.fromtimestamp((trace.root.ended_ns or 0) / 1e9, UTC).isoformat(),
    }
    return {name: each for name, each in named.items() if each is not None}
