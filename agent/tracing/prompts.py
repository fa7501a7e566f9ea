"""Fetch the prompts that are managed in Langfuse, in a thread, so that no turn waits for them."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agent.engine.errors import quoted
from agent.engine.run import Prompt, PromptRef
from agent.prompts import refusal, repository_prompts
from agent.tracing.errors import unavailable

if TYPE_CHECKING:
    from langfuse import Langfuse

log = logging.getLogger(__name__)

FETCH_SECONDS: Final = 5
EVERY_SECONDS: Final = 60.0
AWAY: Final = "Prompts cannot be fetched, the last good ones stay"


def fetched(
    client: "Langfuse", name: str, *, label: str | None = None, version: int | None = None
) -> Prompt | None:
    """Return the version of a prompt in Langfuse with this label or number, None if none has.

    The text of a chat prompt is empty. This waits for the network, and raises what went wrong.
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
    """The versions that have a label in Langfuse; `current` holds the last good one of each.

    A prompt that Langfuse does not have under the label is the repository's. If Langfuse cannot
    give one, or gives one that the contracts cannot use, the last good version stays in use.
    """

    def __init__(self, client: "Callable[[], Langfuse]", label: str) -> None:
        self._client = client
        self._label = label
        self.current = dict(repository_prompts())
        self._told: dict[str, str] = {}

    async def refresh(self) -> None:
        """Fetch every prompt in a thread, now and every so often, until cancelled."""
        while True:
            await asyncio.to_thread(self.fetch)
            await asyncio.sleep(EVERY_SECONDS)

    def fetch(self) -> None:
        """Fetch every prompt once. Never raises."""
        try:
            client = self._client()
            for name, current in self.current.items():
                prompt = fetched(client, name, label=self._label) or repository_prompts()[name]
                if reason := refusal(name, prompt.text):
                    refused = f"{prompt.ref.origin} is refused: {quoted(reason, 300)}"
                    self._tell(f"prompt {name}", f"{refused}; {current.ref.origin} stays in use")
                else:
                    self.current[name] = prompt
            self._tell(AWAY)
        except Exception as error:
            self._tell(AWAY, str(unavailable(error)))

    def _tell(self, about: str, problem: str = "") -> None:
        """Log a problem, unless it is the one that was logged last."""
        if problem and self._told.get(about) != problem:
            log.warning("%s: %s", about, problem)
        self._told[about] = problem
