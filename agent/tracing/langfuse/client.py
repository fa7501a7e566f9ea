"""Langfuse's HTTP API: one client for prompts, datasets, scores and links, each request bounded.

Traces take another way, `agent.tracing.langfuse.traces`: they are sent by a thread.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx

from agent.engine.errors import AgentError
from agent.engine.feedback import fence

if TYPE_CHECKING:
    from langfuse.api import AsyncLangfuseAPI
    from langfuse.api.core.request_options import RequestOptions

R = TypeVar("R")

log = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 5.0
LINK_SECONDS: Final = 2.0
ONCE: "Final[RequestOptions]" = {"max_retries": 0}
UNKNOWN_KEYS: Final = (
    "Langfuse does not know the keys (HTTP 401): check LANGFUSE_PUBLIC_KEY and "
    "LANGFUSE_SECRET_KEY, and that LANGFUSE_BASE_URL is their region"
)
FOREIGN: Final = "the answer is not Langfuse's: check LANGFUSE_BASE_URL"


class LangfuseUnavailable(AgentError):
    """Langfuse did not do what it was asked; `status` is that of its answer, None without one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class LangfuseClient:
    """The API of one project; a request takes `seconds` at most and is made once.

    The library that speaks it takes a third of a second to import: that is done in a thread, when
    the first request is made.
    """

    def __init__(
        self, public_key: str, secret_key: str, base_url: str, *, seconds: float = REQUEST_SECONDS
    ) -> None:
        self.public_key = public_key
        self.base_url = base_url.rstrip("/")
        self._secret_key = secret_key
        self._seconds = seconds
        self._http = httpx.AsyncClient(
            auth=(public_key, secret_key), base_url=self.base_url, timeout=seconds
        )
        self._api: AsyncLangfuseAPI | None = None

    async def ask(self, request: "Callable[[AsyncLangfuseAPI], Awaitable[R]]") -> R:
        """Return what the API answers to `request`.

        Raises:
            LangfuseUnavailable: it gave no answer in time, or another one.
        """
        if self._api is None:
            self._api = await asyncio.to_thread(self._open)
        api = self._api
        return await self._bounded(lambda: request(api))

    async def post(self, path: str, **request: Any) -> httpx.Response:
        """Post what the library has no method for.

        Raises:
            LangfuseUnavailable: the server did not take it.
        """

        async def send() -> httpx.Response:
            response = await self._http.post(path, **request)
            if media_type(response) == "text/html":
                raise ValueError(FOREIGN)
            return response.raise_for_status()

        return await self._bounded(send)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _open(self) -> "AsyncLangfuseAPI":
        from langfuse.api import AsyncLangfuseAPI  # noqa: PLC0415 - heavy

        return AsyncLangfuseAPI(
            base_url=self.base_url,
            username=self.public_key,
            password=self._secret_key,
            x_langfuse_public_key=self.public_key,
            httpx_client=self._http,
        )

    async def _bounded(self, request: Callable[[], Awaitable[R]]) -> R:
        """What Langfuse answers in time; whatever its client raises is told in one line."""
        from langfuse.api.core.api_error import ApiError  # noqa: PLC0415

        try:
            async with asyncio.timeout(self._seconds):
                return await request()
        except ApiError as error:
            raise _answered(error.status_code or 0, error.body) from None
        except httpx.HTTPStatusError as error:
            raise _answered(error.response.status_code, None) from None
        except (httpx.TimeoutException, TimeoutError):
            raise LangfuseUnavailable(
                f"Langfuse did not answer within {self._seconds:g} s: check LANGFUSE_BASE_URL and "
                "the network"
            ) from None
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise LangfuseUnavailable(
                f"Langfuse cannot be reached ({kind}): check LANGFUSE_BASE_URL and the network"
            ) from None
        except ValueError:  # pydantic's errors are of this kind
            raise LangfuseUnavailable(FOREIGN, 200) from None


class TraceLinks:
    """Links to traces in the project of a pair of keys.

    Langfuse is asked for the project once, in the background; until it has answered, links do
    without: it finds the project by the trace, once logged in.
    """

    def __init__(self, client: LangfuseClient) -> None:
        self._client = client
        self._project_id: str | None = None
        self._asking: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Ask for the project, unless it is known or being asked for."""
        if self._project_id is None and (self._asking is None or self._asking.done()):
            self._asking = asyncio.create_task(self._ask())

    async def url(self, trace_id: str) -> str:
        """Return the page of a trace. Never raises, and takes 2 s at most."""
        self.begin()
        if self._asking is not None and self._project_id is None:
            await asyncio.wait([self._asking], timeout=LINK_SECONDS)
        if self._project_id is None:
            return f"{self._client.base_url}/trace/{trace_id}"
        return f"{self._client.base_url}/project/{self._project_id}/traces/{trace_id}"

    async def close(self) -> None:
        """Ask no longer."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        await self._client.close()

    async def _ask(self) -> None:
        try:
            found = await self._client.ask(lambda api: api.projects.get(request_options=ONCE))
            self._project_id = found.data[0].id
        except (LangfuseUnavailable, IndexError) as error:
            log.debug("Langfuse did not say which project this is: %s", error)


def media_type(response: httpx.Response) -> str:
    """Return what a response says it is, without parameters."""
    said: str = response.headers.get("content-type", "")
    return said.partition(";")[0].strip().lower()


def _answered(status: int, body: object) -> LangfuseUnavailable:
    if status == 401:
        return LangfuseUnavailable(UNKNOWN_KEYS, status)
    if status == 200:
        return LangfuseUnavailable(FOREIGN, status)
    message = body.get("message") if isinstance(body, dict) else None
    said = f": {fence(message, 200)}" if isinstance(message, str) else ""
    return LangfuseUnavailable(f"Langfuse answered HTTP {status}{said}", status)
