"""Turns as traces in Langfuse: the only module that knows its client, which it loads late.

The client is OpenTelemetry underneath. Everything process-wide that it does by itself (a global
tracer provider, exit hooks without a time limit, a registry of clients, endless log lines about a
dead server) is undone here.
"""

import asyncio
import atexit
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent.log_limits import OneLineAMinute, quietened
from agent.messages import Usage
from agent.span_tally import Tally
from agent.tracing import Level, ScoreType, SpanKind

if TYPE_CHECKING:
    from langfuse import Langfuse
    from langfuse._client.resource_manager import LangfuseResourceManager
    from langfuse._client.span import LangfuseObservationWrapper
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider

CLOSE_SECONDS: Final = 4.0  # leaves room within the 5 s that stopping may take
REQUEST_SECONDS: Final = 5
FLUSH_AT: Final = 512  # by default scores go out 15 at a time, a request each
FLUSH_SECONDS: Final = 5
LONGEST_ATTRIBUTE: Final = 100_000  # characters; with the client's queue of spans it bounds memory
LONGEST_ID: Final = 200  # characters; the client drops longer ones


class LangfuseTracer:
    """Turns as traces in Langfuse; see `agent.tracing.Tracer`.

    Spans and scores wait in bounded queues that the client's threads empty: a turn never waits
    for the network, and what a dead server does not take is dropped. Nothing is sent before the
    first span has ended.
    """

    def __init__(
        self,
        public_key: str,
        secret_key: str,
        base_url: str,
        *,
        environment: str | None = None,
        release: str | None = None,
    ) -> None:
        from langfuse import Langfuse  # noqa: PLC0415 - heavy, and only needed with keys

        self._provider = _tracer_provider()
        self._client = Langfuse(
            public_key=public_key,
            secret_key=secret_key,
            base_url=base_url.rstrip("/"),
            timeout=REQUEST_SECONDS,
            flush_at=FLUSH_AT,
            flush_interval=FLUSH_SECONDS,
            otel_compression="none",  # a third of what tracing costs; a turn is some 10 KB
            environment=environment,
            release=release,
            tracer_provider=self._provider,
        )
        self._resources = _detached(self._client)
        self._tally = Tally(self._provider)
        self._quiet = OneLineAMinute()
        self._closing = threading.Event()
        # Started now: from Python 3.12 on, no thread can start while the interpreter exits.
        self._drain = threading.Thread(target=self._send_rest, name="langfuse-drain", daemon=True)
        self._drain.start()
        atexit.register(self._stop)

    def turn(self, *, input: str, session: str, user: str) -> "LangfuseSpan":
        """The root span of one turn; `session` and `user` are cut at 200 characters."""
        from langfuse import propagate_attributes  # noqa: PLC0415
        from opentelemetry.context import Context, get_current  # noqa: PLC0415

        with (
            _attached(Context()),
            propagate_attributes(session_id=session[:LONGEST_ID], user_id=user[:LONGEST_ID]),
        ):
            root = self._client.start_observation(name="turn", as_type="agent", input=_text(input))
            return LangfuseSpan(self._client, root, root, get_current(), self._tally)

    @property
    def dropped_spans(self) -> int:
        """How many spans never reached Langfuse: the queue was full, or a batch failed."""
        return self._tally.dropped

    async def close(self) -> None:
        """Send what is left, for at most 5 s, and stop. Never raises."""
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        atexit.unregister(self._stop)
        self._closing.set()
        self._drain.join(CLOSE_SECONDS)

    def _send_rest(self) -> None:
        with quietened(self._quiet):
            self._closing.wait()
            with suppress(Exception):
                self._resources.shutdown()
                self._provider.shutdown()
                self._resources.prompt_cache._task_manager.shutdown()
                self._resources.httpx_client.close()


class LangfuseSpan:
    """One node of a trace in Langfuse; see `agent.tracing.Span`. It starts when it is made.

    The context that carries session and user is kept here rather than attached to the task, so
    that a span made in any task or thread gets both, and no other user of OpenTelemetry does.
    """

    __slots__ = ("_client", "_context", "_observation", "_root", "_tally")

    recording: Final = True

    def __init__(
        self,
        client: "Langfuse",
        observation: "LangfuseObservationWrapper",
        root: "LangfuseObservationWrapper",
        context: "Context",
        tally: Tally,
    ) -> None:
        self._tally = tally
        self._client = client
        self._observation = observation
        self._root = root
        self._context = context

    def __enter__(self) -> "LangfuseSpan":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            self.update(level="ERROR", metadata={"error_type": error.__name__})
        self._tally.one_ends()
        self._observation.end()

    @property
    def trace_id(self) -> str:
        """The id of the trace, 32 hex digits."""
        return self._root.trace_id

    def child(
        self,
        name: str,
        kind: SpanKind,
        *,
        input: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "LangfuseSpan":
        """A span below this one."""
        with _attached(self._context):
            observation = self._observation.start_observation(
                name=_text(name),
                as_type=kind,
                input=_value(input),
                metadata=_values(metadata),
            )
        return LangfuseSpan(self._client, observation, self._root, self._context, self._tally)

    def update(
        self,
        *,
        name: str | None = None,
        output: object = None,
        metadata: Mapping[str, Any] | None = None,
        level: Level | None = None,
        model: str | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """Add to what is known; `model`, `usage` and `cost_usd` show on generations only."""
        self._observation.update(
            name=name and _text(name),
            output=_value(output),
            metadata=_values(metadata),
            level=level,
            model=model and _text(model),
            usage_details=None if usage is None else usage_buckets(usage),
            cost_details=None if cost_usd is None else {"total": cost_usd},
        )

    def score(self, name: str, value: float | str, kind: ScoreType, comment: str = "") -> None:
        """Score the trace on its root span, where the list of traces shows and filters it."""
        create = partial(
            self._client.create_score,
            name=name,
            trace_id=self.trace_id,
            observation_id=self._root.id,
            score_id=f"{self.trace_id}-{name}",
            comment=_text(comment) or None,
        )
        if kind == "CATEGORICAL":
            create(value=_text(str(value)), data_type=kind)
        else:
            create(value=float(value), data_type=kind)


def usage_buckets(usage: Usage) -> dict[str, int]:
    """Tokens as Langfuse prices them. It adds the buckets up, so none may contain another."""
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    return {
        "input": usage.prompt_tokens - cached,
        "input_cached_tokens": cached,
        "output": usage.completion_tokens,
    }


def _tracer_provider() -> "TracerProvider":
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON  # noqa: PLC0415

    return TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource({"service.name": "sommelier"}),
        span_limits=SpanLimits(max_span_attribute_length=LONGEST_ATTRIBUTE),
        shutdown_on_exit=False,
    )


def _detached(client: "Langfuse") -> "LangfuseResourceManager":
    """What `client` runs on, taken out of exit hooks and of the registry of clients by key.

    The hooks wait for a dead server without a limit; the registry would hand out a closed client.

    Raises:
        ValueError: a key is empty.
    """
    resources = client._resources
    if resources is None:
        raise ValueError("Langfuse has no keys: set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY")
    atexit.unregister(resources.shutdown)
    atexit.unregister(resources.prompt_cache._task_manager.shutdown)
    type(resources)._instances.pop(resources.public_key, None)
    return resources


@contextmanager
def _attached(context: "Context") -> Iterator[None]:
    from opentelemetry.context import attach, detach  # noqa: PLC0415

    token = attach(context)
    try:
        yield
    finally:
        detach(token)


def _text(text: str) -> str:
    """`text` without lone surrogates: one of them would cost the whole batch it is sent with."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _value(value: object) -> object:
    """Text as it is, all else as JSON, which the client's own encoder takes far longer to make."""
    if value is None or isinstance(value, str):
        return value and _text(value)
    try:
        return _text(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):
        return value


def _values(metadata: Mapping[str, object] | None) -> dict[str, object] | None:
    if metadata is None:
        return None
    return {key: _text(v) if isinstance(v, str) else v for key, v in metadata.items()}
