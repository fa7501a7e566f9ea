"""Prompts in Langfuse's prompt management, and those in use, fetched in the background."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote

from pydantic import BaseModel, JsonValue

from agent.engine.feedback import fence
from agent.engine.run import Prompt
from agent.engine.span import PromptRef
from agent.prompts import refusal, repository_prompts
from agent.tracing.exporter import RateLimitedLogger, Unavailable
from agent.tracing.langfuse.traces import LangfuseClient

log = logging.getLogger(__name__)

DEFAULT_LABEL: Final = "production"
EVERY_SECONDS: Final = 60.0
REQUEST_SECONDS: Final = 1.5
START_SECONDS: Final = 2.0
PROMPTS: Final = "/api/public/v2/prompts"


@dataclass(frozen=True, slots=True)
class StoredPrompt:
    """A version of a prompt in Langfuse; `text` is None for a chat prompt."""

    version: int
    text: str | None


class _Prompt(BaseModel):
    version: int
    type: Literal["text", "chat"] = "text"
    prompt: JsonValue

    @property
    def stored(self) -> StoredPrompt:
        return StoredPrompt(self.version, self.prompt if isinstance(self.prompt, str) else None)


class PromptStore:
    """Reads and writes the versions of prompts in Langfuse, each by one request."""

    def __init__(self, client: LangfuseClient) -> None:
        self._client = client

    async def get(
        self, name: str, *, label: str | None = None, version: int | None = None
    ) -> StoredPrompt | None:
        """Return the version of a prompt that has this label or number, None if none has.

        Raises:
            Unavailable: Langfuse gave no answer, or another one.
        """
        asked = {"label": label} if version is None else {"version": version}
        try:
            path = f"{PROMPTS}/{quote(name, safe='')}"
            return (await self._client.ask(_Prompt, "GET", path, params=asked)).stored
        except Unavailable as error:
            if error.status == 404:
                return None
            raise

    async def create(self, name: str, text: str, label: str) -> StoredPrompt:
        """Add a version of a prompt, which takes `label` from the version that had it.

        Raises:
            Unavailable: Langfuse did not take it.
        """
        made = {"name": name, "type": "text", "prompt": text, "labels": [label]}
        return (await self._client.ask(_Prompt, "POST", PROMPTS, json=made)).stored

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class LangfusePrompts:
    """The versions that have `label` in Langfuse; see `agent.prompts.Prompts`. No turn waits.

    What Langfuse does not have under that label is the repository's. What it cannot give, or gives
    in a form that the contracts cannot use, leaves the last good version in use.
    """

    def __init__(
        self,
        store: PromptStore,
        *,
        label: str = DEFAULT_LABEL,
        every_seconds: float = EVERY_SECONDS,
        limited_log: RateLimitedLogger | None = None,
    ) -> None:
        self._store = store
        self._label = label
        self._every_seconds = every_seconds
        self._limited_log = limited_log or RateLimitedLogger()
        self._current = dict(repository_prompts())
        self._refused: dict[str, StoredPrompt] = {}
        self._fetched = asyncio.Event()
        self._fetching: asyncio.Task[None] | None = None

    def get(self, name: str) -> Prompt:
        """Return the last good version; the repository's until there is one."""
        return self._current[name]

    async def start(self, seconds: float = START_SECONDS) -> None:
        """Begin to fetch; returns when every prompt was asked for once, after `seconds` at most.

        So the first turns, those resumed after a crash among them, get the prompts they should.
        """
        self._fetching = asyncio.create_task(self._fetch())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._fetched.wait()

    async def close(self) -> None:
        """Stop fetching, at once. Never raises."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
        await self._store.close()

    async def _fetch(self) -> None:
        while True:
            for name in self._current:
                await self._fetch_one(name)
            self._fetched.set()
            await asyncio.sleep(self._every_seconds)

    async def _fetch_one(self, name: str) -> None:
        try:
            self._take(name, await self._store.get(name, label=self._label))
        except Unavailable as error:
            self._warn(str(error))
        except Exception as error:  # a task that ended would keep the prompts as they are forever
            self._warn(type(error).__name__)

    def _take(self, name: str, stored: StoredPrompt | None) -> None:
        if stored is not None and (reason := refusal(name, stored.text)):
            self._refuse(name, stored, reason)
            return
        prompt = repository_prompts()[name]
        if stored is not None:
            ref = PromptRef(name, stored.version, self._label, is_fallback=False)
            prompt = Prompt(stored.text or "", ref)
        if prompt != self._current[name]:
            self._current[name] = prompt
            log.info("prompt %s: %s is in use", name, described(prompt.ref))

    def _refuse(self, name: str, stored: StoredPrompt, reason: str) -> None:
        if self._refused.get(name) == stored:
            return
        self._refused[name] = stored
        log.warning(
            "prompt %s: version %d of Langfuse is refused: %s; %s stays in use",
            name,
            stored.version,
            fence(reason, 300),
            described(self._current[name].ref),
        )

    def _warn(self, reason: str) -> None:
        said = f"prompts cannot be fetched, the last good ones stay: {reason}"
        self._limited_log.warning(log, "prompts", said)


def described(ref: PromptRef) -> str:
    """Name a version as a person does."""
    if ref.is_fallback:
        return f"the repository's version {ref.version}"
    return f"version {ref.version} ({ref.label})"
