"""A project of Langfuse: its settings, the errors of its server, and its prompts.

All calls of the client block on the network, so they are made in a thread or by a command. They
raise errors of HTTP and of the client.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.engine.errors import AgentError, quoted
from agent.engine.run import Prompt, PromptRef
from agent.prompts import built_in_prompts, find_prompt_error

if TYPE_CHECKING:
    from langfuse import Langfuse

log = logging.getLogger(__name__)

KEYS: Final = "LANGFUSE_BASE_URL, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
REFUSALS: Final = frozenset({400, 413, 422})  # statuses of requests that will never be accepted
FETCH_SECONDS: Final = 5
EVERY_SECONDS: Final = 60.0
AWAY: Final = "Prompts cannot be fetched, the last good ones stay"


@dataclass(frozen=True, slots=True)
class Project:
    """A project of Langfuse, and what its traces say of this program.

    Installations that share a project have different environments (`staging`, `production`).
    """

    keys: tuple[str, str]  # public, secret
    base_url: str
    version: str = ""
    environment: str = "default"
    release: str = ""


class Unavailable(AgentError):
    """A request to a server failed. `status` is the HTTP status, None without a response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Refused(Unavailable):
    """A server will never accept what was sent. The text has the server's words."""


def to_unavailable(error: Exception, name: str = "Langfuse", check: str = KEYS) -> Unavailable:
    """Return an error of Langfuse's client, or of HTTP, as one line for an admin.

    It is `Refused` if the same request will fail again.
    """
    if isinstance(error, Unavailable):
        return error
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    body = body if isinstance(body, dict) else {}
    message, issues = body.get("message"), body.get("error")
    if isinstance(issues, list):  # what is invalid in the request
        message = f"{message} {issues}"
    detail = f": {quoted(message, 200)}" if isinstance(message, str) else ""
    no_answer = f"gave no usable answer ({type(error).__name__})"
    failure = f"answered HTTP {status}" if status else no_answer
    if status in REFUSALS:
        return Refused(f"{name} {failure}{detail}", status)
    return Unavailable(f"{name} {failure}{detail}; check {check}", status)


def fetch_prompt(
    client: "Langfuse", name: str, *, label: str | None = None, version: int | None = None
) -> Prompt | None:
    """Return the version of a prompt with this label or number, or None if it does not exist.

    The text of a chat prompt is empty.
    """
    from langfuse.api import NotFoundError  # noqa: PLC0415 - loaded with the client

    try:
        # Not `get_prompt`: it tries three times, and waits as long as a server asks it to.
        found = client.api.prompts.get(
            name,
            label=label,
            version=version,
            request_options={"max_retries": 0, "timeout_in_seconds": FETCH_SECONDS},
        )
    except NotFoundError:
        return None
    text = found.prompt if isinstance(found.prompt, str) else ""
    return Prompt(text, PromptRef(name, found.version, label or "", is_fallback=False))


class ManagedPrompts:
    """The prompts with a label in Langfuse. `current` has the last good version of each.

    Without a version in Langfuse, the built-in prompt is used. If Langfuse fails, or its version is
    invalid, the last good version stays in use.
    """

    def __init__(self, client: "Callable[[], Langfuse]", label: str) -> None:
        self._client = client
        self._label = label
        self.current = dict(built_in_prompts())
        self._logged: dict[str, str] = {}

    async def refresh(self) -> None:
        """Fetch every prompt in a thread, now and every minute, until cancelled."""
        while True:
            await asyncio.to_thread(self.fetch)
            await asyncio.sleep(EVERY_SECONDS)

    def fetch(self) -> None:
        """Fetch every prompt once. Never raises."""
        try:
            client = self._client()
            for name, current in self.current.items():
                prompt = fetch_prompt(client, name, label=self._label) or built_in_prompts()[name]
                if reason := find_prompt_error(name, prompt.text):
                    refused = f"{prompt.ref.origin} is refused: {quoted(reason, 300)}"
                    self._log_once(
                        f"prompt {name}", f"{refused}; {current.ref.origin} stays in use"
                    )
                else:
                    self.current[name] = prompt
            self._log_once(AWAY)
        except Exception as error:
            self._log_once(AWAY, str(to_unavailable(error)))

    def _log_once(self, about: str, problem: str = "") -> None:
        """Log a problem, unless it was the last one logged for this subject."""
        if problem and self._logged.get(about) != problem:
            log.warning("%s: %s", about, problem)
        self._logged[about] = problem
