"""One model of one OpenAI-compatible server, asked without patience: one call is one request.

Retries, fallback models and the deadline belong to the loop, which counts every request.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr

from agent.errors import (
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelResponseInvalid,
    ModelTimeout,
    ModelUnavailable,
    ParameterDeclined,
)
from agent.messages import LLMResponse, Message, OutputSchema, ToolSchema
from agent.wire import Dialect, ResponseMode, read_response, request_body

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

log = logging.getLogger(__name__)

RETRYABLE_STATUS: Final = frozenset({408, 409, 425, 429})
LOCAL_KEY: Final = "none"
"""Sent as the key where none is set: local servers need none, the client insists on one."""


class LLMService:
    """A model behind an OpenAI-compatible chat completions endpoint."""

    def __init__(
        self,
        *,
        model: str,
        api_key: SecretStr | str | None = None,
        base_url: str | None = None,
        mode: ResponseMode = "json_object",
        timeout_seconds: float = 60,
    ) -> None:
        self.model = model
        self._api_key = api_key
        self._base_url = base_url
        self._timeout_seconds = timeout_seconds
        self._dialect = Dialect(mode)
        self._opened: AsyncOpenAI | None = None
        self._reported: set[int] = set()

    async def generate_with_tools(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        *,
        output: OutputSchema | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> LLMResponse:
        """One request to the model.

        Raises what `agent.messages.LLM` says. A 400 that names a parameter the server does not
        know raises ParameterDeclined, and the next request does without it.
        """
        body = request_body(
            self.model, messages, tools, output=output, max_tokens=max_tokens, dialect=self._dialect
        )
        if temperature is not None and self._dialect.temperature:
            body["temperature"] = temperature
        asked_in = self._dialect.mode if output is not None else ""
        return replace(read_response(await self._post(body), self.model), mode=asked_in)

    async def close(self) -> None:
        """Close the connections to the server."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    def __repr__(self) -> str:
        return f"LLMService({self.model})"

    @property
    def _client(self) -> "AsyncOpenAI":
        if self._opened is None:
            from openai import AsyncOpenAI  # noqa: PLC0415 - heavy, needed by the first request

            self._opened = AsyncOpenAI(
                api_key=_plain(self._api_key) or os.environ.get("OPENAI_API_KEY") or LOCAL_KEY,
                base_url=self._base_url,
                max_retries=0,
                timeout=self._timeout_seconds,
            )
        return self._opened

    async def _post(self, body: dict[str, Any]) -> bytes:
        """The raw body of the answer.

        Posted as it is: turning a request into the client's own types and the answer back out of
        them takes as long as all the rest of a turn, and drops what other servers add.
        """
        from openai import (  # noqa: PLC0415 - see _client
            APIConnectionError,
            APIStatusError,
            APITimeoutError,
            HttpxBinaryResponseContent,
            OpenAIError,
        )

        try:
            raw = await self._client.post(
                "/chat/completions", body=body, cast_to=HttpxBinaryResponseContent
            )
        except APITimeoutError:
            raise ModelTimeout(f"{self.model} did not answer in time") from None
        except APIConnectionError as error:
            cause = type(error.__cause__ or error).__name__
            raise ModelUnavailable(f"{self.model} could not be reached ({cause})") from None
        except APIStatusError as error:
            raise self._status_error(error) from None
        except OpenAIError as error:
            raise ModelResponseInvalid(f"{self.model}: {type(error).__name__}") from None
        return raw.content

    def _status_error(self, error: "APIStatusError") -> ModelError:
        status = error.status_code
        reason = error_text(error.body)
        if status == 429 and error.code != "insufficient_quota":
            return ModelRateLimited(
                f"{self.model} is rate limited", retry_after=retry_after(error.response.headers)
            )
        if status >= 500 or status in RETRYABLE_STATUS - {429}:
            return ModelUnavailable(f"{self.model} answered {status}", status=status)
        simpler = self._dialect.without(reason) if status == 400 else None
        if simpler is not None:
            log.info("%s: the server declined a parameter, going on with %s", self, simpler)
            self._dialect = simpler
            return ParameterDeclined(f"{self.model} declined a parameter: {reason}", status=400)
        if status not in self._reported:
            self._reported.add(status)
            log.error("%s: %s", self, advice(status))
        return ModelRejected(f"{self.model} answered {status}: {reason}", status=status)


def _plain(key: SecretStr | str | None) -> str | None:
    return key.get_secret_value() if isinstance(key, SecretStr) else key


def advice(status: int) -> str:
    """What an operator does about a server that rejects us with `status`."""
    return {
        401: "the server rejects the key (401); check OPENAI_API_KEY",
        403: "the key may not use this model (403); check its permissions and LLM_MODEL",
        404: "the server does not know this model or path (404); check LLM_MODEL, OPENAI_BASE_URL",
        429: "the account has no quota left (429); check its billing",
    }.get(status, f"the server rejects our requests ({status}); check OPENAI_BASE_URL")


def error_text(body: object) -> str:
    """The server's own words on a refusal, at most 300 characters."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        body = inner.get("message", inner) if isinstance(inner, Mapping) else inner
    return str(body or "")[:300]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asks us to wait, None when it does not say so in seconds."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    return None
