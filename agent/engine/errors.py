"""Everything the agent raises, and how an error is described to a model.

    AgentError
    ├── ModelError                a request to a language model failed
    │   ├── ModelUnavailable      the network, HTTP 429 or 5xx, or an unusable answer: another try
    │   │   │                     may succeed, after `retry_after` seconds
    │   │   ├── ParameterDeclined the server does not know a parameter: later requests omit it
    │   │   └── ModelTimeout      the answer was too late: only another model may be asked
    │   └── ModelRejected         HTTP 400, 401, 403, 404 …: the same request will fail again
    │       └── ContextTooLong    the request is too long for the model: a shorter one may succeed
    ├── ToolError                 a tool could not do what was asked; its text is for the model
    └── LimitReached              a limit of the turn (requests, tokens, cost) is used up
        ├── DeadlinePassed        the time of the turn is used up
        └── Stopped               the user has stopped the turn

The text of a `ModelError` is for the admin's log, and has neither a key nor a prompt.
"""

import logging
import traceback
from enum import StrEnum, auto
from typing import ClassVar, Final, Literal

from pydantic import ValidationError

from agent.text import clip

ResponseOutcome = Literal[
    "answered", "salvaged", "refusal", "content_filter", "exhausted",
    "limit", "deadline", "model_error", "stopped",
]  # fmt: skip
"""What came of the requests to a model for a response."""


class ResponseProblem(StrEnum):
    """A fault of a final response of a model. It is a value, not an exception."""

    REFUSAL = auto()
    CONTENT_FILTER = auto()
    NO_CHOICES = auto()
    EMPTY = auto()
    TRUNCATED = auto()
    INTERRUPTED = auto()
    TOO_LONG = auto()
    UNPARSED = auto()
    """The server could not read what the model wrote."""
    TOOL_CALL = auto()
    TOOL_CALL_AS_TEXT = auto()
    INVALID_JSON = auto()
    SCHEMA = auto()
    SEMANTIC = auto()
    GROUNDING = auto()


SHOWN_ERROR_CHARS: Final = 800
"""The longest description of an error that a model is shown."""
CAUSE_CHARS: Final = 200
"""The longest cause of a failed request that the trace shows."""
SHOWN_ISSUES: Final = 5
"""The number of errors of validation that a model is shown at once."""

log = logging.getLogger(__name__)


class AgentError(Exception):
    """Something in the agent failed."""


class ModelError(AgentError):
    """A request to a language model failed.

    If the server answered, `status` is the HTTP status and `server_text` the server's message.
    """

    outcome: ClassVar[ResponseOutcome] = "model_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        server_text: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.server_text = server_text

    @property
    def cause(self) -> str:
        """Return for the trace why the request failed, in the server's words if there are any."""
        return clip(self.server_text or str(self), CAUSE_CHARS)


class ModelUnavailable(ModelError):
    """The language model did not answer.

    `retry_after` is the wait in seconds that the server asks for, or None if it asks for none.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        server_text: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status=status, server_text=server_text)
        self.retry_after = retry_after


class ParameterDeclined(ModelUnavailable):
    """The language model's server does not know a parameter."""


class ModelTimeout(ModelUnavailable):
    """The language model did not answer in time."""


class ModelRejected(ModelError):
    """The language model refused the request itself."""


class ContextTooLong(ModelRejected):
    """The request is longer than the context of the model."""


class ToolError(AgentError):
    """The tool could not do what was asked. The text is for the model."""


class LimitReached(AgentError):
    """A limit of this turn is used up."""

    outcome: ClassVar[ResponseOutcome] = "limit"


class DeadlinePassed(LimitReached):
    """The time of this turn is used up."""

    outcome: ClassVar[ResponseOutcome] = "deadline"


class Stopped(LimitReached):
    """The user has stopped this turn."""

    outcome: ClassVar[ResponseOutcome] = "stopped"


def log_failure(what_failed: str, error: BaseException) -> None:
    """Log the type and the place of an error.

    The text of the error is not logged, because it may be secret.
    """
    error_type = type(error).__name__
    place = ""
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        innermost = frames[-1]
        place = f" at {innermost.filename}:{innermost.lineno}"
    log.error("%s: %s%s", what_failed, error_type, place)


def describe_validation_error(error: ValidationError) -> str:
    """Return the first issues for a model, without the input.

    Example: `wines.0.id: Field required; intro: Input should be a valid string`.
    """
    issues = error.errors(include_url=False)
    descriptions = []
    for issue in issues[:SHOWN_ISSUES]:
        keys = [clip_quote(str(key)) for key in issue["loc"]]
        # An issue without a place is about the answer as a whole.
        path = ".".join(keys) or "answer"
        message = issue["msg"].removeprefix("Value error, ")
        descriptions.append(f"{path}: {message}")
    return clip("; ".join(descriptions), SHOWN_ERROR_CHARS)


def clip_quote(text: str, limit: int = 80) -> str:
    """Return words of a model or a server, shortened for an error description.

    The words are on one line and without code fences.
    """
    without_fences = text.replace("`", "'")
    one_line = " ".join(without_fences.split())
    return clip(one_line, limit)
