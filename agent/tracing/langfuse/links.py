"""Where a trace is shown in Langfuse."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import httpx

log = logging.getLogger(__name__)

PROJECTS: Final = "/api/public/projects"
PATIENCE_SECONDS: Final = 2.0


def trace_url(base_url: str, trace_id: str, project_id: str | None = None) -> str:
    """The page of a trace; without the project Langfuse finds it by the trace, once logged in."""
    base = base_url.rstrip("/")
    if project_id is None:
        return f"{base}/trace/{trace_id}"
    return f"{base}/project/{project_id}/traces/{trace_id}"


class TraceLinks:
    """Links to traces in the project of a pair of keys.

    Langfuse is asked for the project once, in the background; until it has answered, links do
    without.
    """

    def __init__(
        self, base_url: str, public_key: str, secret_key: str, http: httpx.AsyncClient
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._keys = httpx.BasicAuth(public_key, secret_key)
        self._http = http
        self._project_id: str | None = None
        self._asking: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Ask for the project, unless it is known or being asked for."""
        if self._project_id is None and (self._asking is None or self._asking.done()):
            self._asking = asyncio.create_task(_calmly(self._ask))

    async def url(self, trace_id: str) -> str:
        """The page of a trace. Never raises, and takes 2 s at most."""
        self.begin()
        if self._asking is not None and self._project_id is None:
            await asyncio.wait([self._asking], timeout=PATIENCE_SECONDS)
        return trace_url(self._base_url, trace_id, self._project_id)

    async def close(self) -> None:
        """Ask no longer."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    async def _ask(self) -> None:
        response = await self._http.get(
            self._base_url + PROJECTS, auth=self._keys, timeout=PATIENCE_SECONDS
        )
        response.raise_for_status()
        self._project_id = str(response.json()["data"][0]["id"])


async def _calmly(ask: Callable[[], Awaitable[None]]) -> None:
    try:
        await ask()
    except Exception as error:
        log.debug("Langfuse did not say which project this is: %s", type(error).__name__)
