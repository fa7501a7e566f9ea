"""Ask one model of one OpenAI-compatible server. One call is one request, without retries.

Retries, fallback models and the deadline belong to the loop, which counts every request.
"""

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from agent.engine.errors import (
    ContextTooLong,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
    ParameterDeclined,
)
from agent.engine.messages import LLMRequest, LLMResponse, Message
from agent.engine.wire import Dialect, ServerError, StreamedCompletion, read_completion
from agent.servers import is_transient_status, limit_body
from agent.size_limits import MODEL_RESPONSE_BYTES
from agent.text import pattern

if TYPE_CHECKING:
    from openai import AsyncOpenAI

log = logging.getLogger(__name__)

UNSENT: Final = {
    "UnsupportedProtocol",
    "LocalProtocolError",
    "InvalidURL",
    "UnicodeEncodeError",
}
"""The errors of the client for a request that it could not send."""
FILTERED: Final = frozenset({"content_filter", "content_policy_violation"})
NO_CALL: Final = "does not match the expected"
"""The error of llama.cpp for JSON that is not a call of a tool."""
TOO_LONG: Final = pattern(
    "context[ _](?:length|size|window)|prompt is too long|too many tokens"
)
"""The words with which servers say that a request is too long."""
NO_STATUS: Final = 0
"""The status of a request that could not be sent."""
MIN_KEY_CHARS: Final = 8
"""A shorter key is a word for a local server, and no secret."""


async def load_client() -> None:
    """Import the client in a thread, so that the first turn need not wait for it."""
    await asyncio.to_thread(import_module, "openai")


class LLMService:
    """A model behind an OpenAI-compatible chat completions endpoint.

    A `client` of your own (for Azure, a proxy, special headers) replaces `api_key` and `base_url`;
    you have to close it. `extra_body` is sent with every request. A complete answer may take
    `timeout_seconds`. The `dialect` to begin with is read from the server's address by default.
    """

    def __init__(
        self,
        *,
        model: str,
        api_key: SecretStr | str | None = None,
        base_url: str | None = None,
        client: "AsyncOpenAI | None" = None,
        extra_body: Mapping[str, Any] = MappingProxyType({}),
        dialect: Dialect | None = None,
        timeout_seconds: float = 60,
    ) -> None:
        if isinstance(api_key, SecretStr):
            api_key = api_key.get_secret_value()
        self.model = model
        self.base_url = base_url
        self._api_key = api_key or os.environ.get("OPENAI_API_KEY")
        self._opened: AsyncOpenAI | None = None
        self._is_given = client is not None
        if client is not None:
            self.base_url = str(client.base_url)
            self._api_key = client.api_key
            self._opened = client.with_options(max_retries=0, timeout=timeout_seconds)
        self._extra_body = dict(extra_body)
        self._timeout_seconds = timeout_seconds
        self._dialect = dialect or Dialect.of_server(self.base_url)
        self._reported_statuses: set[int] = set()

    async def generate_with_tools(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> LLMResponse:
        """Send one request to the model, and return its response.

        The response is streamed if the request has a `written` and the server can stream.

        Raises the errors of `LLM`. It raises ParameterDeclined if later requests will leave out
        what the server did not understand.
        """
        dialect = self._dialect
        parameters = dialect.build_parameters(messages, request)
        streamed = StreamedCompletion(self.model, request.written)
        response = await self._complete(parameters, streamed)
        if isinstance(response, ServerError):
            has_tools = "tools" in parameters
            response = self._interpret_error(response, dialect, beside_tools=has_tools)
        if streamed.first_token_ns and "usage" not in streamed.known:
            # The stream had no usage, so its tokens could not be counted: do not stream again.
            self._learn(dialect, replace(dialect, streams=False))
        mode = ""
        if request.output:
            mode = "prompt"
            if "response_format" in parameters:
                mode = dialect.mode
        return replace(
            response,
            mode=mode,
            base_url=self.base_url,
            first_token_ns=streamed.first_token_ns,
        )

    async def close(self) -> None:
        """Close the connections to the server, unless the client was given."""
        opened = self._opened
        if opened is not None and not self._is_given:
            self._opened = None
            await opened.close()

    @property
    def _client(self) -> "AsyncOpenAI":
        """Return the client, opened for the first request."""
        if self._opened is None:
            # The import is slow, and only needed by the first request.
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # noqa: PLC0415

            hooks = {"response": [limit_body(MODEL_RESPONSE_BYTES)]}
            self._opened = AsyncOpenAI(
                # Local servers need no key, but the client does.
                api_key=self._api_key or "none",
                base_url=self.base_url,
                max_retries=0,
                timeout=self._timeout_seconds,
                http_client=DefaultAsyncHttpxClient(event_hooks=hooks),
            )
        return self._opened

    async def _complete(
        self, parameters: dict[str, Any], streamed: StreamedCompletion
    ) -> LLMResponse | ServerError:
        """Send a request, and return the server's response or error within the time limit."""
        import httpx2  # noqa: PLC0415 - heavy, needed by the first request
        import openai  # noqa: PLC0415

        # The first is an error of the address, the second one of the key.
        unsendable = (httpx2.InvalidURL, UnicodeEncodeError)
        is_streamed = "stream" in parameters
        try:
            async with asyncio.timeout(self._timeout_seconds):
                # Not `chat.completions.create`: it makes models of each part of the request and of
                # each chunk, which are plain data here before and after.
                answer: Any = await self._client.post(
                    "/chat/completions",
                    body={"model": self.model, **parameters, **self._extra_body},
                    cast_to=object,
                    stream=is_streamed,
                    stream_cls=openai.AsyncStream[object],
                )
                if is_streamed:
                    data = await _read(answer, streamed)
                else:
                    data = _plain_data(answer)
            is_answered = data.get("choices") or data.get("usage")
            if data.get("error") and not is_answered:
                # Some servers send their errors with the status 200.
                return ServerError(502, data["error"])
            return read_completion(data, self.model)
        except (openai.APITimeoutError, TimeoutError):
            raise ModelTimeout(f"{self.model} did not answer in time") from None
        except (openai.APIConnectionError, httpx2.TransportError, *unsendable) as error:
            raise self._make_connection_error(error.__cause__ or error) from None
        except openai.APIStatusError as error:
            return ServerError(error.status_code, error.body, error.response.headers)
        except openai.APIError as error:  # an error within a stream
            return ServerError(502, error.body)
        except (ValueError, RecursionError):
            raise ModelUnavailable(
                f"{self.model} answered with no chat completion"
            ) from None

    def _interpret_error(
        self, error: ServerError, dialect: Dialect, *, beside_tools: bool
    ) -> LLMResponse:
        """Return the response that the server's error stands for, or raise the right ModelError.

        If the server did not understand a parameter, later requests use a simpler dialect.
        """
        status = error.status
        words = error.text.lower()
        text = self._without_key(error.text)
        problem = f"{self.model} answered {status}: {text}"
        if error.kinds & FILTERED:
            return LLMResponse(finish_reason="content_filter", model=self.model)
        if status >= 500 and NO_CALL in words and beside_tools:
            self._learn(dialect, replace(dialect, answers_beside_tools=False))
            return LLMResponse(finish_reason="unparsed", model=self.model)
        if TOO_LONG.search(words):
            raise ContextTooLong(problem, status=status, server_text=text)
        simpler = dialect.simplify(words)
        if simpler is not None and _declines_parameter(status, words):
            self._learn(dialect, simpler)
            raise ParameterDeclined(problem, status=status, server_text=text)
        if _is_final(error):
            problem += "; `sommelier doctor` says what to do"
            self._report(status, problem)
            raise ModelRejected(problem, status=status, server_text=text)
        raise ModelUnavailable(
            problem, status=status, server_text=text, retry_after=error.retry_after
        )

    def _without_key(self, text: str) -> str:
        """Return a text of the server with the API key masked."""
        key = self._api_key or ""
        if len(key) < MIN_KEY_CHARS:
            return text
        return text.replace(key, "***")

    def _make_connection_error(self, error: BaseException) -> ModelError:
        """Return the error for a server that is down, or for settings that are invalid."""
        kind = type(error).__name__
        if kind in UNSENT:
            advice = "check OPENAI_BASE_URL, OPENAI_API_KEY"
            problem = f"{self.model} cannot be asked ({kind}); {advice}"
            self._report(NO_STATUS, problem)
            return ModelRejected(problem)
        url = urlsplit(str(self._client.base_url))
        server = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
        return ModelUnavailable(
            f"{self.model} could not be reached ({kind}); is the server at {server} running?"
        )

    def _report(self, status: int, problem: str) -> None:
        """Log why a request will fail again, once per status."""
        if status not in self._reported_statuses:
            self._reported_statuses.add(status)
            log.error("%s", problem)

    def _learn(self, dialect: Dialect, simpler: Dialect) -> None:
        """Use a simpler dialect from now on, unless a concurrent request has changed it."""
        if self._dialect == dialect and simpler != dialect:
            self._dialect = simpler
            log.info(
                "%s: the server declined a parameter, going on with %s",
                self.model,
                simpler,
            )


def _declines_parameter(status: int, words: str) -> bool:
    """Return whether an error may be about a parameter. Some servers answer 500 to a format."""
    if status >= 500:
        return "grammar" in words or "response_format" in words
    return status in {400, 422}


def _is_final(error: ServerError) -> bool:
    """Return whether the same request would fail again."""
    if "insufficient_quota" in error.kinds:  # a 429 for which waiting does not help
        return True
    return not is_transient_status(error.status)


async def _read(answer: Any, streamed: StreamedCompletion) -> Mapping[str, Any]:
    """Read a stream to its end, and return the completion as plain data."""
    async with answer as stream:
        if "event-stream" not in stream.response.headers.get("content-type", ""):
            await stream.response.aread()  # the server does not stream
            return _plain_data(stream.response.json())
        async for chunk in stream:
            streamed.add(_plain_data(chunk))
    return streamed.build_completion()


def _plain_data(answer: object) -> Mapping[str, Any]:
    """Return a server's answer as plain data. Raises ValueError if it is no answer."""
    if isinstance(answer, BaseModel):
        answer = answer.model_dump(exclude_unset=True, warnings=False)
    if isinstance(answer, Mapping):
        return answer
    raise ValueError(answer)
