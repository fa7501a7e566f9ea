"""One model of one OpenAI-compatible server, asked without patience: one call is one request.

Retries, fallback models and the deadline belong to the loop, which counts every request.
"""

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

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
from agent.messages import LLMResponse, Message, OutputSchema, ToolCall, ToolSchema, Usage

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

ResponseMode = Literal["prompt", "json_object", "json_schema"]

log = logging.getLogger(__name__)

RETRYABLE_STATUS: Final = frozenset({408, 409, 425, 429})
LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
LOCAL_KEY: Final = "none"
"""Sent as the key where none is set: local servers need none, the client insists on one."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server understands; learned from its refusals and remembered."""

    mode: ResponseMode
    token_parameter: str = "max_completion_tokens"  # noqa: S105 - a parameter's name
    format_beside_tools: bool = True
    temperature: bool = True

    def without(self, complaint: str) -> "Dialect | None":
        """The next simpler dialect that avoids what a 400 complains of, None if none does."""
        text = complaint.lower()
        if "max_completion_tokens" in text and self.token_parameter in text:
            return replace(self, token_parameter="max_tokens")  # noqa: S106
        if "temperature" in text and self.temperature:
            return replace(self, temperature=False)
        if not any(word in text for word in ("response_format", "json_", "grammar", "schema")):
            return None
        if self.format_beside_tools and "tool" in text:
            return replace(self, format_beside_tools=False)
        simpler: dict[ResponseMode, ResponseMode] = {
            "json_schema": "json_object",
            "json_object": "prompt",
        }
        return replace(self, mode=simpler[self.mode]) if self.mode in simpler else None


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
        return read_response(await self._post(body), self.model)

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


def request_body(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema] = (),
    *,
    output: OutputSchema | None,
    max_tokens: int | None,
    dialect: Dialect,
) -> dict[str, Any]:
    """The JSON of one chat completions request."""
    body: dict[str, Any] = {"model": model, "messages": list(messages)}
    if tools:
        body["tools"] = [tool.wire for tool in tools]
    if max_tokens is not None:
        body[dialect.token_parameter] = max_tokens
    if output is not None and (dialect.format_beside_tools or not tools):
        body |= response_format(output, dialect.mode)
    return body


def response_format(output: OutputSchema, mode: ResponseMode) -> dict[str, Any]:
    """The `response_format` of modes A (prompt: none), B (json_object) and C (json_schema)."""
    if mode == "prompt":
        return {}
    if mode == "json_object":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": output.name, "strict": True, "schema": output.strict_schema}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def read_response(body: bytes, model: str) -> LLMResponse:
    """What a chat completion says, tolerant of what other servers leave out.

    Raises:
        ModelResponseInvalid: the body is not JSON, or holds neither `choices` nor usage.
    """
    try:
        data = json.loads(body)
    except ValueError:
        raise ModelResponseInvalid(f"{model} answered with something that is not JSON") from None
    if not isinstance(data, dict):
        raise ModelResponseInvalid(f"{model} answered with JSON that is not an object")
    choice = _first(data.get("choices"))
    message = _mapping(choice.get("message"))
    return LLMResponse(
        content=_text(message.get("content")),
        tool_calls=tuple(_tool_calls(message)),
        finish_reason=str(choice.get("finish_reason") or ("stop" if choice else "no_choices")),
        refusal=message.get("refusal") or None,
        usage=_usage(data.get("usage")),
        model=str(data.get("model") or model),
        has_reasoning=bool(message.get("reasoning_content") or message.get("reasoning")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(value: object) -> Mapping[str, Any]:
    return _mapping(value[0]) if isinstance(value, list) and value else {}


def _text(content: object) -> str:
    """Content as one string; some servers send a list of parts."""
    if isinstance(content, list):
        content = "".join(str(_mapping(part).get("text") or "") for part in content)
    return sendable(content) if isinstance(content, str) else ""


def sendable(text: str) -> str:
    """`text` without halves of characters, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode() if LONE_SURROGATE.search(text) else text


def _tool_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    calls = message.get("tool_calls")
    return [_tool_call(_mapping(call)) for call in calls] if isinstance(calls, list) else []


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = _mapping(call.get("function"))
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments)
    return ToolCall(str(call.get("id") or ""), _text(function.get("name")), sendable(arguments))


def _usage(usage: object) -> Usage:
    counted = _mapping(usage)
    details = _mapping(counted.get("prompt_tokens_details"))
    return Usage(
        _count(counted.get("prompt_tokens")),
        _count(counted.get("completion_tokens")),
        _count(details.get("cached_tokens")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
