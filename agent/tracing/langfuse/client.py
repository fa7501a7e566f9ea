"""Langfuse's HTTP API, and people's verdicts on their way there."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final

import httpx
from pydantic import BaseModel

from agent.engine.span import ScoreRecord
from agent.repositories import Feedback, FeedbackReason
from agent.tracing.exporter import Unreadable
from agent.tracing.http import HttpClient, Unavailable
from agent.tracing.masking import mask
from agent.tracing.otlp import text
from agent.tracing.recorder import score_id

log = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 5.0
UNKNOWN_KEYS: Final = (
    "Langfuse does not know the keys (HTTP 401): check LANGFUSE_PUBLIC_KEY and "
    "LANGFUSE_SECRET_KEY, and that LANGFUSE_BASE_URL is their region"
)
SCORES: Final = "/api/public/scores"
TRACES: Final = "/api/public/traces"
TRACES_AT_ONCE: Final = 100
VERDICT: Final = "user_feedback"
REASON: Final = "user_feedback_reason"
LABELS: Final[Mapping[FeedbackReason, str]] = {
    "wrong_wine": "Wrong wine",
    "not_what_i_asked": "Not what I asked",
    "wrong_facts": "Wrong facts",
    "tone": "Tone",
}
METHOD_UNKNOWN: Final = frozenset({405, 501})


class LangfuseClient(HttpClient):
    """The API of one project; a request takes `seconds` at most and is made once."""

    def __init__(
        self,
        public_key: str,
        secret_key: str,
        base_url: str,
        *,
        seconds: float = REQUEST_SECONDS,
        waits_longer: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(
            base_url,
            name="Langfuse",
            check="LANGFUSE_BASE_URL",
            seconds=seconds,
            auth=(public_key, secret_key),
            unknown_keys=UNKNOWN_KEYS,
            waits_longer=waits_longer,
            transport=transport,
        )
        self.public_key = public_key


class _TraceIds(BaseModel):
    """A page of a list of traces, as far as it is read here."""

    class Named(BaseModel):
        id: str

    data: list[Named]


async def delete_traces(client: LangfuseClient, user: str) -> int:
    """Delete every trace of a user (the hash that traces carry); how many were asked to go.

    Langfuse deletes later, observations and scores too; what is asked for again is no error.

    Raises:
        Unavailable: it did not do it; what was deleted before stays deleted.
    """
    page, found = 1, list[str]()
    while True:
        query = {"userId": user, "limit": TRACES_AT_ONCE, "page": page}
        read = await client.ask(_TraceIds, "GET", TRACES, params=query)
        found += [each.id for each in read.data]
        if len(read.data) < TRACES_AT_ONCE:
            break
        page += 1
    for start in range(0, len(found), TRACES_AT_ONCE):
        ids = found[start : start + TRACES_AT_ONCE]
        await client.request("DELETE", TRACES, json={"traceIds": ids})
    return len(found)


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
            AgentError: see `agent.tracing.exporter.Send`.
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
    except Unavailable as error:
        if error.status in expected:
            return error.status or 0
        if error.status == 404:  # one verdict is nobody's; the address is right, traces arrive
            raise Unreadable(str(error)) from None
        raise error.delivery_error from None
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
