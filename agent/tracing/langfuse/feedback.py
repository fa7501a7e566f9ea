"""What people think of answers, as scores on the traces of their turns."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from agent.repositories import Feedback, FeedbackReason
from agent.tracing.exporter import NotNow, Refused
from agent.tracing.langfuse.client import ONCE, LangfuseClient, LangfuseUnavailable
from agent.tracing.langfuse.traces import AGAIN, SCORES, score_body
from agent.tracing.masking import mask
from agent.tracing.records import ScoreRecord, score_id

log = logging.getLogger(__name__)

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
            NotNow: the server is away, slow or overloaded, or does not accept the keys.
            Refused: it does not take these scores, and never will.
        """
        if feedback.trace_id is None:
            return
        scores = scores_of(feedback, self._hide)
        if scores:
            about = feedback.trace_id, feedback.root_id
            body = [
                score_body(*about, score, self._environment, feedback.answered_at)
                for score in scores
            ]
            await _done(self._client.post(SCORES, json=body))
        # What was never changed has no score that would have to go.
        names = (VERDICT, REASON) if feedback.revision > 1 else ()
        for name in names[len(scores) :]:
            await self._delete(score_id(feedback.trace_id, name))

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def _delete(self, score: str) -> None:
        if not self._can_delete:
            return
        deleting = self._client.ask(lambda api: api.scores.delete(score, request_options=ONCE))
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
            raise NotNow(str(error)) from None
        raise Refused(str(error)) from None
    return 200


def scores_of(feedback: Feedback, hide: Callable[[str], str]) -> list[ScoreRecord]:
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
