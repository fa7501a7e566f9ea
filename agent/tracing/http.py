"""One client for the servers that traces, prompts and verdicts go to: every request is bounded."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import httpx
from pydantic import TypeAdapter

from agent.engine.errors import AgentError
from agent.engine.feedback import fence
from agent.tracing.exporter import Rejected, RetryLater, Unreadable

T = TypeVar("T")

AGAIN: Final = frozenset({408, 425, 429})
UNREADABLE: Final = frozenset({400, 413, 422})
LONGER: Final = 4
"""By how much a server that answers late is waited for longer."""


class Unavailable(AgentError):
    """A server did not do what it was asked; `status` is that of its answer, None without one."""

    def __init__(
        self, message: str, status: int | None = None, *, retry_after: float = 0.0
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after

    @property
    def delivery_error(self) -> AgentError:
        """What this means for something that is to be delivered."""
        status = self.status
        if status is None or status >= 500 or status in AGAIN:
            return RetryLater(str(self), retry_after=self.retry_after)
        return Unreadable(str(self)) if status in UNREADABLE else Rejected(str(self))


class HttpClient:
    """The HTTP API of one server; a request is made once, and takes `seconds` at most.

    `name` is what errors call it, `check` are the settings that they ask to be checked. One that
    `waits_longer` gives a server that did not answer in time up to four times as long from then on.
    """

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        check: str,
        seconds: float,
        auth: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        unknown_keys: str = "",
        waits_longer: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.seconds = seconds
        self._longest = seconds * LONGER if waits_longer else seconds
        self._name = name
        self._check = check
        self._unknown_keys = unknown_keys
        self._http = httpx.AsyncClient(
            auth=auth, headers=headers, base_url=self.base_url, transport=transport
        )

    async def ask(self, answer: type[T], method: str, path: str, **request: Any) -> T:
        """Return what the API answers, read as `answer`.

        Raises:
            Unavailable: it gave no answer in time, or another one.
        """
        response = await self.request(method, path, **request)
        try:
            return TypeAdapter(answer).validate_json(response.content)
        except ValueError:
            raise self._foreign() from None

    async def request(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Make a request of the API.

        Raises:
            Unavailable: it was not done; in one line, whatever the reason.
        """
        seconds = self.seconds
        try:
            async with asyncio.timeout(seconds):
                response = await self._http.request(method, path, timeout=seconds, **request)
        except (httpx.TimeoutException, TimeoutError):
            self.seconds = min(seconds * 2, self._longest)
            raise Unavailable(
                f"{self._name} did not answer within {seconds:g} s: check {self._check} and the "
                "network"
            ) from None
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise Unavailable(
                f"{self._name} cannot be reached ({kind}): check {self._check} and the network"
            ) from None
        if not response.is_success:
            raise self._answered(response)
        if media_type(response) == "text/html":
            raise self._foreign()
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _foreign(self) -> Unavailable:
        return Unavailable(f"the answer is not {self._name}'s: check {self._check}", 200)

    def _answered(self, response: httpx.Response) -> Unavailable:
        status = response.status_code
        if status == 401 and self._unknown_keys:
            return Unavailable(self._unknown_keys, status)
        try:
            body = response.json()
        except ValueError:
            body = None
        message = body.get("message") if isinstance(body, dict) else None
        said = f": {fence(message, 200)}" if isinstance(message, str) else ""
        elsewhere = f"; check {self._check}" if status < 400 or status == 404 else ""
        return Unavailable(
            f"{self._name} answered HTTP {status}{said}{elsewhere}",
            status,
            retry_after=retry_after(response),
        )


def media_type(response: httpx.Response) -> str:
    """Return what a response says it is, without parameters."""
    said: str = response.headers.get("content-type", "")
    return said.partition(";")[0].strip().lower()


def retry_after(response: httpx.Response) -> float:
    """Return the seconds a server asks to be left alone, 0 if it does not say so in seconds."""
    said = response.headers.get("retry-after", "")
    return float(said) if said.isdecimal() and said.isascii() else 0.0
