"""The prompts as they are in Langfuse, fetched in the background; a turn never waits for one."""

import asyncio
import logging
import threading
from contextlib import closing
from functools import partial
from typing import Final

from agent.engine.feedback import fence
from agent.engine.prompts import Prompt
from agent.engine.trace_records import PromptRef
from agent.prompts import refusal, repository_prompts
from agent.tracing.exporter import RateLimitedLogger
from agent.tracing.langfuse.prompt_api import PromptApi, PromptsUnavailable, StoredPrompt

log = logging.getLogger(__name__)

DEFAULT_LABEL: Final = "production"
EVERY_SECONDS: Final = 60.0
REQUEST_SECONDS: Final = 1.5
START_SECONDS: Final = 2.0
CLOSE_SECONDS: Final = 0.9


class LangfusePrompts:
    """The versions that have `label` in Langfuse; see `agent.prompts.Prompts`.

    What Langfuse does not have under that label is the repository's. What it cannot give, or gives
    in a form that the contracts cannot use, leaves the last good version in use.
    """

    def __init__(
        self,
        public_key: str,
        secret_key: str,
        base_url: str,
        *,
        label: str = DEFAULT_LABEL,
        every_seconds: float = EVERY_SECONDS,
        request_seconds: float = REQUEST_SECONDS,
        limited_log: RateLimitedLogger | None = None,
    ) -> None:
        self._open = partial(
            PromptApi, public_key, secret_key, base_url, timeout_seconds=request_seconds
        )
        self._label = label
        self._every_seconds = every_seconds
        self._limited_log = limited_log or RateLimitedLogger()
        self._current = dict(repository_prompts())
        self._refused: dict[str, StoredPrompt] = {}
        self._fetched = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._fetch, name="prompts", daemon=True)

    def get(self, name: str) -> Prompt:
        """The last good version; the repository's until there is one."""
        return self._current[name]

    async def start(self, seconds: float = START_SECONDS) -> None:
        """Begin to fetch; returns when every prompt was asked for once, after `seconds` at most.

        So the first turns, those resumed after a crash among them, get the prompts they should.
        """
        self._thread.start()
        await asyncio.to_thread(self._fetched.wait, seconds)

    async def close(self) -> None:
        """Stop fetching, within 1 s. Never raises."""
        self._closing.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)

    def _fetch(self) -> None:
        with closing(self._open()) as api:
            while not self._closing.is_set():
                for name in repository_prompts():
                    self._fetch_one(api, name)
                self._fetched.set()
                self._closing.wait(self._every_seconds)

    def _fetch_one(self, api: PromptApi, name: str) -> None:
        if self._closing.is_set():
            return
        try:
            self._take(name, api.current(name, self._label))
        except PromptsUnavailable as error:
            self._say(str(error))
        except Exception as error:  # a thread that ended would keep the prompts as they are forever
            self._say(type(error).__name__)

    def _take(self, name: str, stored: StoredPrompt | None) -> None:
        if stored is not None and (reason := refusal(name, stored.text)):
            self._refuse(name, stored, reason)
            return
        prompt = repository_prompts()[name] if stored is None else self._prompt(name, stored)
        if prompt != self._current[name]:
            self._current[name] = prompt
            log.info("prompt %s: %s is in use", name, described(prompt.ref))

    def _prompt(self, name: str, stored: StoredPrompt) -> Prompt:
        ref = PromptRef(name, stored.version, self._label, is_fallback=False)
        return Prompt(stored.text or "", ref)

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

    def _say(self, reason: str) -> None:
        self._limited_log.warning(
            log, f"prompts cannot be fetched, the last good ones stay: {reason}"
        )


def described(ref: PromptRef) -> str:
    """A version as a person names it."""
    if ref.is_fallback:
        return f"the repository's version {ref.version}"
    return f"version {ref.version} ({ref.label})"
