"""The connections to Telegram, and the application that uses them."""

from typing import Any, Final

import httpx2
from telegram.error import NetworkError, TimedOut
from telegram.ext import Application
from telegram.request import BaseRequest, RequestData

AnyApplication = Application[Any, Any, Any, Any, Any, Any]

LIMITS: Final = httpx2.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=3)
"""Of connections to Telegram. A kept one that the server closes just as it is used again loses a
message that may have arrived, so they are kept for a shorter time than servers keep them."""


class TelegramRequests(BaseRequest):
    """Requests to Telegram over httpx2, whose pool loses no connection when a request is cut off.

    A request waits `connect_seconds` for a connection and `read_seconds` for the answer.
    """

    def __init__(
        self,
        limits: httpx2.Limits = LIMITS,
        *,
        connect_seconds: float = 10,
        read_seconds: float = 20,
    ) -> None:
        self._client = httpx2.AsyncClient(
            limits=limits,
            timeout=httpx2.Timeout(connect_seconds, read=read_seconds, write=read_seconds),
            headers={"User-Agent": self.USER_AGENT},
        )

    @property
    def read_timeout(self) -> float | None:
        """See `BaseRequest.read_timeout`."""
        return self._client.timeout.read

    async def initialize(self) -> None:
        """Nothing is needed."""

    async def shutdown(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *_: Any, **__: Any
    ) -> tuple[int, bytes]:
        """See `BaseRequest.do_request`; the limits of time are those of all requests."""
        given = request_data or RequestData()
        files = given.multipart_data or None
        try:
            response = await self._client.request(
                method, url, data=given.json_parameters, files=files
            )
        except httpx2.TimeoutException as error:
            raise TimedOut from error
        except httpx2.HTTPError as error:
            raise NetworkError(f"{type(error).__name__}: {error}") from error
        return response.status_code, response.content


def telegram_application(
    token: str, base_url: str, requests: BaseRequest | None = None
) -> AnyApplication:
    """Make the application without handlers, on the network unless `requests` are given."""
    requests = requests or TelegramRequests()
    builder = Application.builder().token(token).job_queue(None).updater(None)
    builder = builder.base_url(f"{base_url}/bot").base_file_url(f"{base_url}/file/bot")
    return builder.request(requests).get_updates_request(requests).build()


async def close_application(application: AnyApplication) -> None:
    """Close the connections to Telegram."""
    await application.shutdown()
    # An application that never became initialized leaves its bot's connections open.
    await application.bot.shutdown()
