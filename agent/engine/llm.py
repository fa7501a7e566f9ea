"""Ask one model of one OpenAI-compatible server. One call is one request, without retries.

Retries, further models and the deadline belong to `ModelChain`, which counts every request.
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
"""The names of an error for a request or answer that a content filter has stopped."""
NOT_A_CALL: Final = "does not match the expected"
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

    A `client` of your own (for Azure, a proxy, special headers) replaces `api_key` and `base_url`.
    You have to close it yourself. `extra_body` is sent with every request. A complete answer may
    take `timeout_seconds`. The first `dialect` follows from the server's address by default.
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
        self._open_client: AsyncOpenAI | None = None
        self._has_own_client = client is None
        if client is not None:
            self.base_url = str(client.base_url)
            self._api_key = client.api_key
            self._open_client = client.with_options(
                max_retries=0, timeout=timeout_seconds
            )
        self._extra_body = dict(extra_body)
        self._timeout_seconds = timeout_seconds
        self._dialect = dialect or Dialect.of_server(self.base_url)
        self._reported_statuses: set[int] = set()

    async def generate_with_tools(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> LLMResponse:
        """Send one request to the model, and return its response.

        The response is streamed if the request has a `written` and the server can stream.

        Raises:
            ParameterDeclined: the server did not understand a parameter, which later requests omit.
            ModelUnavailable: there is no usable answer. Another try may help.
            ModelRejected: the same request will fail again.
        """
        dialect = self._dialect
        parameters = dialect.build_parameters(messages, request)
        streamed = StreamedCompletion(self.model, request.written)
        response = await self._complete(parameters, streamed)
        if isinstance(response, ServerError):
            has_tools = "tools" in parameters
            response = self._interpret_error(response, dialect, beside_tools=has_tools)
        if streamed.first_token_ns and not streamed.has_usage:
            # The tokens of this stream cannot be counted, so the next response is not streamed.
            self._learn(dialect, replace(dialect, streams=False))
        mode = ""
        if "response_format" in parameters:
            mode = dialect.mode
        elif request.output:
            mode = "prompt"
        return replace(
            response,
            mode=mode,
            base_url=self.base_url,
            first_token_ns=streamed.first_token_ns,
        )

    async def close(self) -> None:
        """Close the connections to the server, unless the client was given."""
        client = self._open_client
        if client is not None and self._has_own_client:
            self._open_client = None
            await client.close()

    @property
    def _client(self) -> "AsyncOpenAI":
        """Return the client, opened for the first request."""
        if self._open_client is None:
            # The import is slow, and only needed by the first request.
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # noqa: PLC0415

            hooks = {"response": [limit_body(MODEL_RESPONSE_BYTES)]}
            self._open_client = AsyncOpenAI(
                # Local servers need no key, but the client does.
                api_key=self._api_key or "none",
                base_url=self.base_url,
                max_retries=0,
                timeout=self._timeout_seconds,
                http_client=DefaultAsyncHttpxClient(event_hooks=hooks),
            )
        return self._open_client

    async def _complete(
        self, parameters: dict[str, Any], streamed: StreamedCompletion
    ) -> LLMResponse | ServerError:
        """Send a request, and return the server's response or error within the time limit."""
        import httpx2  # noqa: PLC0415 - heavy, needed by the first request
        import openai  # noqa: PLC0415

        # The first is an error of the address, the second one of the key.
        unsendable = (httpx2.InvalidURL, UnicodeEncodeError)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                data = await self._post(parameters, streamed)
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
            problem = f"{self.model} answered with no chat completion"
            raise ModelUnavailable(problem) from None

    async def _post(
        self, parameters: dict[str, Any], streamed: StreamedCompletion
    ) -> Mapping[str, Any]:
        """Send a request, and return the completion, or error, that the server answers with.

        Not by `chat.completions.create`: it makes models of each part of the request and of each
        chunk, which are plain data here before and after.
        """
        import openai  # noqa: PLC0415

        is_streamed = "stream" in parameters
        answer: Any = await self._client.post(
            "/chat/completions",
            body={"model": self.model, **parameters, **self._extra_body},
            cast_to=object,
            stream=is_streamed,
            stream_cls=openai.AsyncStream[object],
        )
        if is_streamed:
            return await _read_stream(answer, streamed)
        return _plain_data(answer)

    def _interpret_error(
        self,
        error: ServerError,
        dialect: Dialect,
        *,
        beside_tools: bool,
    ) -> LLMResponse:
        """Return the response that the server's error stands for, or raise the right ModelError.

        If the server did not understand a parameter, later requests use a simpler dialect.
        `beside_tools` says whether the request had tools.
        """
        if error.kinds & FILTERED:
            return LLMResponse(finish_reason="content_filter", model=self.model)
        status = error.status
        lower_text = error.text.lower()
        if beside_tools and status >= 500 and NOT_A_CALL in lower_text:
            self._learn(dialect, replace(dialect, answers_beside_tools=False))
            return LLMResponse(finish_reason="unparsed", model=self.model)
        text = self._without_key(error.text)
        problem = f"{self.model} answered {status}: {text}"
        if TOO_LONG.search(lower_text):
            raise ContextTooLong(problem, status=status, server_text=text)
        simpler = dialect.simplify(lower_text)
        if simpler is not None and _declines_parameter(status, lower_text):
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
        error_type = type(error).__name__
        if error_type in UNSENT:
            advice = "check OPENAI_BASE_URL, OPENAI_API_KEY"
            problem = f"{self.model} cannot be asked ({error_type}); {advice}"
            self._report(NO_STATUS, problem)
            return ModelRejected(problem)
        url = urlsplit(str(self._client.base_url))
        host = url.netloc.rpartition("@")[2]  # without a user name and password
        server = f"{url.scheme}://{host}{url.path}"
        return ModelUnavailable(
            f"{self.model} could not be reached ({error_type}); is the server at {server} running?"
        )

    def _report(self, status: int, problem: str) -> None:
        """Log why a request will fail again, once per status."""
        if status not in self._reported_statuses:
            self._reported_statuses.add(status)
            log.error("%s", problem)

    def _learn(self, dialect: Dialect, simpler: Dialect) -> None:
        """Use a simpler dialect from now on, unless a concurrent request has changed it.

        `dialect` is the one in which the request was sent.
        """
        if self._dialect == dialect and simpler != dialect:
            self._dialect = simpler
            log.info(
                "%s: the server declined a parameter, going on with %s",
                self.model,
                simpler,
            )


def _declines_parameter(status: int, lower_text: str) -> bool:
    """Return whether an error may be about a parameter.

    Some servers answer 500 to a response format that they do not know.
    """
    if status >= 500:
        return "grammar" in lower_text or "response_format" in lower_text
    return status in {400, 422}


def _is_final(error: ServerError) -> bool:
    """Return whether the same request would fail again."""
    if "insufficient_quota" in error.kinds:  # a 429 for which waiting does not help
        return True
    return not is_transient_status(error.status)


async def _read_stream(answer: Any, streamed: StreamedCompletion) -> Mapping[str, Any]:
    """Read a stream to its end, and return the completion as plain data."""
    async with answer as stream:
        content_type = stream.response.headers.get("content-type", "")
        if "event-stream" not in content_type:  # the server does not stream
            await stream.response.aread()
            return _plain_data(stream.response.json())
        async for chunk in stream:
            streamed.add(_plain_data(chunk))
    return streamed.build_completion()


def _plain_data(answer: object) -> Mapping[str, Any]:
    """Return a server's answer as plain data.

    Raises:
        ValueError: the answer is no JSON object.
    """
    if isinstance(answer, BaseModel):
        answer = answer.model_dump(exclude_unset=True, warnings=False)
    if isinstance(answer, Mapping):
        return answer
    raise ValueError(answer)
