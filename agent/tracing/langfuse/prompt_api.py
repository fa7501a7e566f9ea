"""Prompts in Langfuse's prompt management, one request at a time: no retries, no cache."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import httpx

from agent.engine.errors import AgentError
from agent.engine.feedback import fence

if TYPE_CHECKING:
    from langfuse.api.core import ApiError
    from langfuse.api.core.request_options import RequestOptions
    from langfuse.api.prompts import Prompt as LangfusePrompt

R = TypeVar("R")

ONCE: "Final[RequestOptions]" = {"max_retries": 0}
UNKNOWN_KEYS: Final = (
    "Langfuse does not know the keys (HTTP 401): check LANGFUSE_PUBLIC_KEY and "
    "LANGFUSE_SECRET_KEY, and that LANGFUSE_BASE_URL is their region"
)
FOREIGN: Final = "the answer is not Langfuse's: check LANGFUSE_BASE_URL"


class PromptsUnavailable(AgentError):
    """Langfuse did not do what was asked of its prompts."""


@dataclass(frozen=True, slots=True)
class StoredPrompt:
    """A version of a prompt in Langfuse; `text` is None for a chat prompt."""

    version: int
    text: str | None


class PromptApi:
    """Reads and writes prompts; a request takes about `timeout_seconds` at most.

    Its methods wait for the network: call them in a thread of their own.
    """

    def __init__(
        self, public_key: str, secret_key: str, base_url: str, *, timeout_seconds: float
    ) -> None:
        from langfuse.api import LangfuseAPI  # noqa: PLC0415 - heavy

        self._http = httpx.Client(timeout=timeout_seconds)
        self._api = LangfuseAPI(
            base_url=base_url.rstrip("/"),
            username=public_key,
            password=secret_key,
            x_langfuse_public_key=public_key,
            timeout=timeout_seconds,
            httpx_client=self._http,
        )

    def current(self, name: str, label: str) -> StoredPrompt | None:
        """The version of a prompt that has `label`, None if none has.

        Raises:
            PromptsUnavailable: Langfuse gave no answer, or another one.
        """
        return self._found(name, label=label)

    def version(self, name: str, number: int) -> StoredPrompt | None:
        """The version of a prompt with this number, None if there is none.

        Raises:
            PromptsUnavailable: Langfuse gave no answer, or another one.
        """
        return self._found(name, version=number)

    def _found(
        self, name: str, *, version: int | None = None, label: str | None = None
    ) -> StoredPrompt | None:
        from langfuse.api import NotFoundError  # noqa: PLC0415

        try:
            found = _asked(
                lambda: self._api.prompts.get(
                    name, version=version, label=label, request_options=ONCE
                )
            )
        except PromptsUnavailable as error:
            if isinstance(error.__cause__, NotFoundError):
                return None
            raise
        return _stored(found)

    def create(self, name: str, text: str, label: str) -> StoredPrompt:
        """A new version of a prompt, which takes `label` from the version that had it.

        Raises:
            PromptsUnavailable: Langfuse did not take it.
        """
        from langfuse.api.prompts import (  # noqa: PLC0415
            CreateTextPromptRequest,
            CreateTextPromptType,
        )

        request = CreateTextPromptRequest(
            name=name, prompt=text, labels=[label], type=CreateTextPromptType.TEXT
        )
        return _stored(
            _asked(lambda: self._api.prompts.create(request=request, request_options=ONCE))
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _stored(prompt: "LangfusePrompt") -> StoredPrompt:
    return StoredPrompt(prompt.version, prompt.prompt if prompt.type == "text" else None)


def _asked(ask: Callable[[], R]) -> R:
    """What Langfuse answers; whatever its client raises is told in one line."""
    from langfuse.api.core import ApiError  # noqa: PLC0415

    try:
        return ask()
    except ApiError as error:
        raise PromptsUnavailable(_said(error)) from error
    except httpx.TransportError as error:
        kind = type(error).__name__
        raise PromptsUnavailable(
            f"Langfuse cannot be reached ({kind}): check LANGFUSE_BASE_URL and the network"
        ) from error
    except ValueError as error:  # pydantic's errors are of this kind
        raise PromptsUnavailable(FOREIGN) from error


def _said(error: "ApiError") -> str:
    if error.status_code == 401:
        return UNKNOWN_KEYS
    if error.status_code == 200:
        return FOREIGN
    message = error.body.get("message") if isinstance(error.body, dict) else None
    said = f": {fence(message, 200)}" if isinstance(message, str) else ""
    return f"Langfuse answered HTTP {error.status_code}{said}"
