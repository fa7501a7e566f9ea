"""How many spans were dropped instead of sent: OpenTelemetry drops them without telling anyone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult


class Tally:
    """Counts the spans that a full queue pushes out and those of batches that fail.

    It stands between the provider's batch processor and its exporter.
    """

    def __init__(self, provider: "TracerProvider") -> None:
        self.dropped = 0
        processors = provider._active_span_processor._span_processors
        self._batches: Any = processors[0]._batch_processor  # type: ignore[attr-defined]
        self._exporter: SpanExporter = self._batches._exporter
        self._batches._exporter = self

    def one_ends(self) -> None:
        """A span is about to be queued; with the queue full the oldest makes room for it."""
        if len(self._batches._queue) >= self._batches._max_queue_size:
            self.dropped += 1

    def export(self, spans: "Sequence[ReadableSpan]") -> "SpanExportResult":
        """Send a batch."""
        from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415

        result: SpanExportResult = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if result is not SpanExportResult.SUCCESS:
                self.dropped += len(spans)
        return result

    def shutdown(self) -> None:
        """Close the exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back here."""
        return self._exporter.force_flush(timeout_millis)
