"""What people think of answers, as scores on the traces of their turns."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

import httpx

from agent.engine.trace_records import score_id
from agent.repositories import Feedback, FeedbackReason
from agent.tracing.exporter import NotNow, Refused
from agent.tracing.langfuse.sink import AGAIN, REQUEST_SECONDS, SCORES, advice, media_type
from agent.tracing.langfuse.spans import text
from agent.tracing.masking import mask

log = logging.getLogger(__name__)

VERDICT: Final = "user_feedback"
REASON: Final = "user_feedback_reason"
LABELS: Final[Mapping[FeedbackReason, str]] = {
    "wrong_wine": "Wrong wine",
    "not_what_i_asked": "Not what I asked",
    "wrong_facts": "Wrong facts",
    "tone": "Tone",
}
KEYS_REFUSED: Final = frozenset({401, 403})
METHOD_UNKNOWN: Final = frozenset({405, 501})


class LangfuseFeedback:
    """Delivers verdicts, into `environment` like the traces they are about.

    `hide` makes of what a person wrote what may be shown of it.
    """

    def __init__(
        self,
        public_key: str,
        secret_key: str,
        base_url: str,
        *,
        environment: str | None = None,
        hide: Callable[[str], str] = mask,
    ) -> None:
        self._environment = environment
        self._hide = hide
        self._http = httpx.AsyncClient(
            base_url=base_url.rstrip("/"),
            auth=(public_key, secret_key),
            timeout=REQUEST_SECONDS,
        )
        self._can_delete = True

    async def deliver(self, feedback: Feedback) -> None:
        """Make the scores of a trace say what is thought of it now; the same again is no change.

        Raises:
            NotNow: the server is away, slow or overloaded, or does not accept the keys.
            Refused: it does not take these scores, and never will.
        """
        if feedback.trace_id is None:
            return
        scores = scores_of(feedback, self._hide, self._environment)
        if scores:
            await self._request("POST", SCORES, json=scores)
        # What was never changed has no score that would have to go.
        names = (VERDICT, REASON) if feedback.revision > 1 else ()
        for name in names[len(scores) :]:
            await self._delete(score_id(feedback.trace_id, name))

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def _delete(self, score: str) -> None:
        if not self._can_delete:
            return
        status = await self._request("DELETE", f"{SCORES}/{score}", expected=METHOD_UNKNOWN | {404})
        if status in METHOD_UNKNOWN:
            self._can_delete = False
            log.warning("This Langfuse cannot delete scores: verdicts taken back stay there")

    async def _request(
        self, method: str, path: str, *, json: object = None, expected: frozenset[int] = frozenset()
    ) -> int:
        """The status of a request that was done, or that is one of `expected`."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):  # httpx limits each byte's time only
                response = await self._http.request(method, path, json=json)
        except (httpx.HTTPError, TimeoutError) as error:
            raise NotNow(type(error).__name__) from None
        status = response.status_code
        if media_type(response) == "text/html" and status < 300:
            raise NotNow(f"a web page{advice(300)}")
        if status < 300 or status in expected:
            return status
        if status >= 500 or status in AGAIN | KEYS_REFUSED:
            raise NotNow(f"status {status}")
        raise Refused(f"status {status}")


def scores_of(
    feedback: Feedback, hide: Callable[[str], str], environment: str | None = None
) -> list[dict[str, object]]:
    """The scores that a verdict is, as the API takes them; none if it was taken back."""
    if feedback.verdict is None:
        return []
    liked = feedback.verdict == "liked"
    label = LABELS[feedback.reason] if feedback.reason else ""
    comment = ": ".join(filter(None, [label, hide(feedback.comment)]))
    about = {
        "traceId": feedback.trace_id or "",
        "observationId": feedback.root_id,
        "environment": environment,
        # Langfuse replaces a score only if it has the same id and the same timestamp.
        "timestamp": feedback.answered_at.isoformat() if feedback.answered_at else None,
    }
    scores = [_score(VERDICT, "BOOLEAN", 1 if liked else 0, about, comment)]
    if feedback.reason and not liked:
        scores.append(_score(REASON, "CATEGORICAL", feedback.reason, about))
    return scores


def _score(
    name: str, kind: str, value: int | str, about: Mapping[str, str | None], comment: str = ""
) -> dict[str, object]:
    """A score of the trace that `about` names, as the API takes it."""
    named = {
        "id": score_id(about["traceId"] or "", name),
        "name": name,
        "value": value,
        "dataType": kind,
        "comment": text(comment) or None,
        **about,
    }
    return {key: each for key, each in named.items() if each is not None}
