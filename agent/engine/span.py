"""The protocols of a trace: what the code of a turn says to it; and the tracer that keeps none."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, Unpack

from pydantic import SecretStr

from agent.engine.trace_records import Known, ScoreType, SpanKind


class Span(Protocol):
    """One node of a trace, open until its context ends.

    Leaving the context by an exception (cancellation included) sets level ERROR and the metadata
    `error_type` to the exception's type name; its text and stack never leave the process.
    """

    @property
    def trace_id(self) -> str | None:
        """The id of the trace (32 hex digits), None when nothing is traced."""
        ...

    @property
    def span_id(self) -> str | None:
        """The id of this span (16 hex digits), None when nothing is traced."""
        ...

    @property
    def recording(self) -> bool:
        """Whether anything is kept: what is costly to build is built only if so."""
        ...

    def child(
        self,
        name: str,
        kind: SpanKind,
        *,
        input: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager["Span"]:
        """A span below this one."""
        ...

    def update(self, **known: Unpack[Known]) -> None:
        """Add to what is known of this span; metadata is merged, the rest replaced."""
        ...

    def score(self, name: str, value: float | str, kind: ScoreType, comment: str = "") -> None:
        """Score the trace. The score's id is fixed by trace and name: scoring twice replaces."""
        ...


class Tracer(Protocol):
    """Where turns are traced."""

    @property
    def dropped_spans(self) -> int:
        """How many spans never got there."""
        ...

    def turn(
        self,
        *,
        input: str,
        session: str,
        user: str,
        trace_id: str | None = None,
        names: Sequence[str] = (),
        resumable: bool = False,
        goes_on: bool = False,
    ) -> AbstractContextManager[Span]:
        """The root span of one turn; session and user go onto every span below it.

        With a `trace_id` of 32 hex digits the turn has the same ids each time it is run. One that
        is `resumable` leaves no trace when it is cancelled: it is traced when it is run again. What
        it leaves when it fails is kept until then; a turn that `goes_on` adds to that.
        `names` are masked wherever they stand.
        """
        ...

    async def close(self) -> None:
        """Send what is left, for at most 5 s, and stop. Never raises."""
        ...


class NoSpan:
    """A span that keeps nothing; one object stands for all of them."""

    __slots__ = ()

    trace_id: Final = None
    span_id: Final = None
    recording: Final = False

    def __enter__(self) -> "NoSpan":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def child(
        self,
        name: str,
        kind: SpanKind,
        *,
        input: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "NoSpan":
        """This very span."""
        return self

    def update(self, **known: Unpack[Known]) -> None:
        """Nothing is kept."""

    def score(self, name: str, value: float | str, kind: ScoreType, comment: str = "") -> None:
        """Nothing is kept."""


class NoTracer:
    """The tracer of an installation without Langfuse keys."""

    __slots__ = ()

    dropped_spans: Final = 0

    def turn(
        self,
        *,
        input: str,
        session: str,
        user: str,
        trace_id: str | None = None,
        names: Sequence[str] = (),
        resumable: bool = False,
        goes_on: bool = False,
    ) -> NoSpan:
        """A span that keeps nothing."""
        return NO_SPAN

    async def close(self) -> None:
        """Nothing is left to send."""


NO_SPAN: Final = NoSpan()
NO_TRACE: Final = NoTracer()


def keyed_hash(kind: str, value: int | str, key: SecretStr | str) -> str:
    """A user or a chat for a trace: 16 hex digits that only the holder of `key` can tie to the id.

    `kind` keeps a user and the private chat with the same number apart.
    """
    secret = key.get_secret_value() if isinstance(key, SecretStr) else key
    return hmac.new(secret.encode(), f"{kind}:{value}".encode(), hashlib.sha256).hexdigest()[:16]


def trace_id_of(*parts: int | str) -> str:
    """The trace id of a turn, from what tells it from every other: 32 hex digits."""
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()[:32]
