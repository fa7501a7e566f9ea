"""Langfuse's HTTP API: one client whose requests are bounded, people's feedback.

Traces take another way, `agent.tracing.langfuse.traces`: they are sent by a thread.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import httpx
from pydantic import TypeAdapter

from agent.engine.errors import AgentError
from agent.engine.feedback import fence
from agent.repositories import Feedback, FeedbackReason
from agent.tracing.exporter import Rejected, RetryLater
from agent.tracing.masking import mask
from agent.tracing.recorder import ScoreRecord, score_id

T = TypeVar("T")

log = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 5.0
UNKNOWN_KEYS: Final = (
    "Langfuse does not know the keys (HTTP 401): check LANGFUSE_PUBLIC_KEY and "
    "LANGFUSE_SECRET_KEY, and that LANGFUSE_BASE_URL is their region"
)
FOREIGN: Final = "the answer is not Langfuse's: check LANGFUSE_BASE_URL"


SCORES: Final = "/api/public/scores"
AGAIN: Final = frozenset({408, 425, 429})
VERDICT: Final = "user_feedback"
REASON: Final = "user_feedback_reason"
LABELS: Final[Mapping[FeedbackReason, str]] = {
    "wrong_wine": "Wrong wine",
    "not_what_i_asked": "Not what I asked",
    "wrong_facts": "Wrong facts",
    "tone": "Tone",
}
PASSING: Final = AGAIN | {200, 401, 403}  # a web page in the way, keys that may be right soon
METHOD_UNKNOWN: Final = frozenset({405, 501})


class LangfuseUnavailable(AgentError):
    """Langfuse did not do what it was asked; `status` is that of its answer, None without one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class LangfuseClient:
    """The API of one project; a request takes `seconds` at most and is made once."""

    def __init__(
        self, public_key: str, secret_key: str, base_url: str, *, seconds: float = REQUEST_SECONDS
    ) -> None:
        self.public_key = public_key
        self.base_url = base_url.rstrip("/")
        self._seconds = seconds
        self._http = httpx.AsyncClient(
            auth=(public_key, secret_key), base_url=self.base_url, timeout=seconds
        )

    async def ask(self, answer: type[T], method: str, path: str, **request: Any) -> T:
        """Return what the API answers, read as `answer`.

        Raises:
            LangfuseUnavailable: it gave no answer in time, or another one.
        """
        response = await self.request(method, path, **request)
        try:
            return TypeAdapter(answer).validate_json(response.content)
        except ValueError:
            raise LangfuseUnavailable(FOREIGN, 200) from None

    async def request(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Make a request of the API.

        Raises:
            LangfuseUnavailable: it was not done; in one line, whatever the reason.
        """
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._http.request(method, path, **request)
        except (httpx.TimeoutException, TimeoutError):
            raise LangfuseUnavailable(
                f"Langfuse did not answer within {self._seconds:g} s: check LANGFUSE_BASE_URL and "
                "the network"
            ) from None
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise LangfuseUnavailable(
                f"Langfuse cannot be reached ({kind}): check LANGFUSE_BASE_URL and the network"
            ) from None
        if not response.is_success:
            raise _answered(response)
        if media_type(response) == "text/html":
            raise LangfuseUnavailable(FOREIGN, 200)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def trace_url(base_url: str, trace_id: str) -> str:
    """Return the page of a trace; Langfuse finds its project by itself."""
    return f"{base_url.rstrip('/')}/trace/{trace_id}"


class LangfuseFeedback:
    """Delivers verdicts, into `environment` like the traces they are about.

    `hide` makes of what a person wrote what may be shown of it.
    """

    def __init__(
        self,
        client: LangfuseClient,
        *,
        environment: str | None = None,
        hide: Callable[[str], str] = mask,
    ) -> None:
        self._client = client
        self._environment = environment
        self._hide = hide
        self._can_delete = True

    async def deliver(self, feedback: Feedback) -> None:
        """Make the scores of a trace say what is thought of it now; the same again is no change.

        Raises:
            RetryLater: the server is away, slow or overloaded, or does not accept the keys.
            Rejected: it does not take these scores, and never will.
        """
        if feedback.trace_id is None:
            return
        scores = verdict_scores(feedback, self._hide)
        if scores:
            about = feedback.trace_id, feedback.root_id
            body = [
                score_body(*about, score, self._environment, feedback.answered_at)
                for score in scores
            ]
            await _done(self._client.request("POST", SCORES, json=body))
        # What was never changed has no score that would have to go.
        names = (VERDICT, REASON) if feedback.revision > 1 else ()
        for name in names[len(scores) :]:
            await self._delete(score_id(feedback.trace_id, name))

    async def _delete(self, score: str) -> None:
        if not self._can_delete:
            return
        deleting = self._client.request("DELETE", f"{SCORES}/{score}")
        if await _done(deleting, METHOD_UNKNOWN | {404}) in METHOD_UNKNOWN:
            self._can_delete = False
            log.warning("This Langfuse cannot delete scores: verdicts taken back stay there")


async def _done(request: Awaitable[object], expected: frozenset[int] = frozenset()) -> int:
    """The status of a request that was done (200), or that is one of `expected`."""
    try:
        await request
    except LangfuseUnavailable as error:
        if error.status in expected:
            return error.status or 0
        if error.status is None or error.status >= 500 or error.status in PASSING:
            raise RetryLater(str(error)) from None
        raise Rejected(str(error)) from None
    return 200


def verdict_scores(feedback: Feedback, hide: Callable[[str], str]) -> list[ScoreRecord]:
    """Return the scores that a verdict is; none if it was taken back."""
    if feedback.verdict is None:
        return []
    liked = feedback.verdict == "liked"
    label = LABELS[feedback.reason] if feedback.reason else ""
    comment = ": ".join(filter(None, [label, hide(feedback.comment)]))
    scores = [ScoreRecord(VERDICT, 1 if liked else 0, "BOOLEAN", comment)]
    if feedback.reason and not liked:
        scores.append(ScoreRecord(REASON, feedback.reason, "CATEGORICAL"))
    return scores


def score_body(
    trace_id: str,
    root_id: str | None,
    score: ScoreRecord,
    environment: str | None,
    timestamp: datetime | None,
) -> dict[str, object]:
    """Return a score as the API takes it: on the root span, where the list of traces shows it.

    Langfuse replaces a score only if it has the same id and the same timestamp.
    """
    named = {
        "id": score_id(trace_id, score.name),
        "traceId": trace_id,
        "observationId": root_id,
        "name": score.name,
        "value": text(score.value) if isinstance(score.value, str) else float(score.value),
        "dataType": score.kind,
        "comment": text(score.comment) or None,
        "environment": environment,
        "timestamp": timestamp.isoformat() if timestamp else None,
    }
    return {name: each for name, each in named.items() if each is not None}


def text(value: str) -> str:
    """Replace lone surrogates in `value`: one of them would cost the whole batch."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def media_type(response: httpx.Response) -> str:
    """Return what a response says it is, without parameters."""
    said: str = response.headers.get("content-type", "")
    return said.partition(";")[0].strip().lower()


def _answered(response: httpx.Response) -> LangfuseUnavailable:
    status = response.status_code
    if status == 401:
        return LangfuseUnavailable(UNKNOWN_KEYS, status)
    try:
        body = response.json()
    except ValueError:
        body = None
    message = body.get("message") if isinstance(body, dict) else None
    said = f": {fence(message, 200)}" if isinstance(message, str) else ""
    return LangfuseUnavailable(f"Langfuse answered HTTP {status}{said}", status)
