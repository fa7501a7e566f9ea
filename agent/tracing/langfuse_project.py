"""A project of Langfuse: its settings, the errors of its server, and its prompts.

All calls of Langfuse's client block while they wait for the network. Therefore they are made in a
thread or by a command. The calls raise errors of HTTP and of the client.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.engine.errors import AgentError, clip_quote
from agent.engine.run import Prompt, PromptRef
from agent.prompts import built_in_prompts, find_prompt_error

if TYPE_CHECKING:
    from langfuse import Langfuse

log = logging.getLogger(__name__)

KEYS: Final = "LANGFUSE_BASE_URL, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
"""The settings to check if Langfuse does not answer as expected."""
REFUSALS: Final = frozenset({400, 413, 422})
"""The HTTP statuses after which the same request would fail again."""
FETCH_SECONDS: Final = 5
"""The time limit for fetching a prompt."""
REFRESH_SECONDS: Final = 60.0
"""The time between two fetches of all prompts."""
NOT_FETCHED: Final = "Prompts cannot be fetched, the last good ones stay"


@dataclass(frozen=True, slots=True)
class Project:
    """A project of Langfuse, and the names that distinguish this program's traces from others."""

    keys: tuple[str, str]
    """The public key and the secret key."""
    base_url: str
    version: str = ""
    environment: str = "default"
    """The name of this installation among those that share the project, such as `staging`."""
    release: str = ""


class Unavailable(AgentError):
    """A request to a server failed, and may succeed later. The text is one line for an admin."""


class Refused(Unavailable):
    """A server will never accept a request. The text has the reason that the server gave."""


def to_unavailable(
    error: Exception,
    name: str = "Langfuse",
    check: str = KEYS,
) -> Unavailable:
    """Return an `Unavailable` for an error of Langfuse's client or of HTTP.

    Return `Refused` if the same request would fail again. `check` names the settings that may be
    wrong.
    """
    if isinstance(error, Unavailable):
        return error
    status = getattr(error, "status_code", None)
    if status is None:
        failure = f"{name} gave no usable answer ({type(error).__name__})"
        return Unavailable(f"{failure}; check {check}")
    failure = f"{name} answered HTTP {status}"
    body = getattr(error, "body", None)
    if isinstance(body, dict) and "message" in body:
        words = str(body["message"])
        # The list says which parts of the request are invalid.
        if isinstance(body.get("error"), list):
            words = f"{words} {body['error']}"
        failure = f"{failure}: {clip_quote(words, 200)}"
    if status in REFUSALS:
        return Refused(failure)
    return Unavailable(f"{failure}; check {check}")


def fetch_prompt(
    client: "Langfuse",
    name: str,
    *,
    label: str | None = None,
    version: int | None = None,
) -> Prompt | None:
    """Return the version of a prompt that has a label or a number, or None if there is none.

    A chat prompt, which this program cannot use, is returned with an empty text.
    """
    from langfuse.api import NotFoundError  # noqa: PLC0415 - loaded with the client

    try:
        # Do not call `get_prompt`: it tries three times, and waits as long as a server asks for.
        version_found = client.api.prompts.get(
            name,
            label=label,
            version=version,
            request_options={"max_retries": 0, "timeout_in_seconds": FETCH_SECONDS},
        )
    except NotFoundError:
        return None
    ref = PromptRef(name, version_found.version, label or "", is_fallback=False)
    text = version_found.prompt
    if not isinstance(text, str):  # a list of messages
        text = ""
    return Prompt(text, ref)


class ManagedPrompts:
    """The prompts that have a label in Langfuse. `current` has the last good version of each.

    If Langfuse has no version of a prompt with the label, the built-in prompt is used. If Langfuse
    fails, or its version is invalid, the last good version stays in use.
    """

    def __init__(self, client: "Callable[[], Langfuse]", label: str) -> None:
        self._client = client
        self._label = label
        self.current = dict(built_in_prompts())
        self._problems: list[str] = []

    async def refresh(self) -> None:
        """Fetch all prompts in a thread, now and again and again, until cancelled."""
        while True:
            await asyncio.to_thread(self.fetch)
            await asyncio.sleep(REFRESH_SECONDS)

    def fetch(self) -> None:
        """Fetch every prompt once, and log each new problem. This raises no error."""
        problems: list[str] = []
        try:
            client = self._client()
            for name in self.current:
                problem = self._fetch_prompt(client, name)
                problems.append(problem)
        except Exception as error:
            problems.append(f"{NOT_FETCHED}: {to_unavailable(error)}")
        for problem in problems:
            if problem and problem not in self._problems:
                log.warning("%s", problem)
        self._problems = problems

    def _fetch_prompt(self, client: "Langfuse", name: str) -> str:
        """Fetch a prompt, and use it if it is valid. Return the problem with it, or ""."""
        prompt = fetch_prompt(client, name, label=self._label)
        if prompt is None:
            prompt = built_in_prompts()[name]
        reason = find_prompt_error(name, prompt.text)
        if reason is None:
            self.current[name] = prompt
            return ""
        kept = self.current[name].ref.origin
        return (
            f"prompt {name}: {prompt.ref.origin} is refused: {clip_quote(reason, 300)}; "
            f"{kept} stays in use"
        )
