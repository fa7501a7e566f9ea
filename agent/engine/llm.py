"""One model of one OpenAI-compatible server, asked without patience: one call is one request.

Retries, fallback models and the deadline belong to the loop, which counts every request.
"""

import asyncio
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pydantic import BaseModel, SecretStr

from agent import lengths
from agent.engine.completions import StreamedCompletion, read_completion, reported_error
from agent.engine.dialect import Dialect
from agent.engine.errors import (
    ContextTooLong,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelResponseInvalid,
    ModelTimeout,
    ModelUnavailable,
    ParameterDeclined,
)
from agent.engine.messages import (
    Heard,
    LLMResponse,
    Message,
    OutputSchema,
    ResponseMode,
    ToolSchema,
)

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import AsyncOpenAI

log = logging.getLogger(__name__)

OPENAI_HOSTS: Final = ("api.openai.com", ".openai.azure.com")
RETRYABLE_STATUS: Final = frozenset({408, 409, 425, 429})
UNASKABLE: Final = frozenset({"UnsupportedProtocol", "LocalProtocolError", "InvalidURL"})
"""Errors of the client for a request that it does not even send."""
FILTERED: Final = {"choices": [{"finish_reason": "content_filter"}]}
"""A question that a filter stopped before the model, as other servers say it."""
UNPARSED: Final = {"choices": [{"finish_reason": "unparsed"}]}
"""An answer that the server could not read, because it calls none of the tools offered."""
NO_CALL: Final = "does not match the expected"
"""Words of llama.cpp about an answer in JSON that is no call of a tool."""
TOO_LONG: Final = (
    "context length", "context_length", "context size", "context_size", "context window",
    "prompt is too long", "input is too long", "too many tokens", "maximum number of tokens",
    "exceeds the available context", "longer than the maximum",
)  # fmt: skip
"""Words of a refusal because of a request's length, as servers write them."""
SECRET_CHARS: Final = 8
"""A shorter key is a word that a local server is given, and may be a word of its answer."""
LOCAL_KEY: Final = "none"
"""Sent as the key where none is set: local servers need none, the client insists on one."""

ADVICE: Final[Mapping[int, str]] = {
    401: "the server rejects the key (401); check OPENAI_API_KEY",
    402: "the account has no credit left (402); check its billing",
    403: "the key may not use this model (403); check its permissions and LLM_MODEL",
    404: "the server does not know this model or path (404); check LLM_MODEL, OPENAI_BASE_URL",
    429: "the account has no quota left (429); check its billing",
}


async def load_client() -> None:
    """Import the client ahead of the first request, in a thread: it holds a turn up otherwise."""
    await asyncio.to_thread(import_module, "openai")


class LLMService:
    """A model behind an OpenAI-compatible chat completions endpoint.

    A ready `client` (for Azure, a proxy, headers of your own) stands for `api_key` and `base_url`,
    and is yours to close; without one there is a client for each event loop. `extra_body` goes
    along with every request. A whole answer takes `timeout_seconds` and has 4 MB at most; the
    answer of a given client's server is limited by time alone. `is_openai` says that the server
    behaves as OpenAI's own; by default its address tells.
    """

    def __init__(
        self,
        *,
        model: str,
        api_key: SecretStr | str | None = None,
        base_url: str | None = None,
        client: "AsyncOpenAI | None" = None,
        extra_body: Mapping[str, Any] = MappingProxyType({}),
        mode: ResponseMode = "json_object",
        timeout_seconds: float = 60,
        context_tokens: int | None = None,
        is_openai: bool | None = None,
    ) -> None:
        self.model = model
        self.context_tokens = context_tokens
        self._api_key = client.api_key if client else api_key
        self.base_url = str(client.base_url) if client else base_url
        self._given = client
        self._extra_body = extra_body
        self._timeout_seconds = timeout_seconds
        is_openai = is_of_openai(self.base_url) if is_openai is None else is_openai
        self._dialect = Dialect.of_openai(mode) if is_openai else Dialect(mode)
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI]
        self._clients = WeakKeyDictionary()
        self._reported: set[int] = set()

    async def generate_with_tools(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        *,
        output: OutputSchema | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        heard: Heard | None = None,
    ) -> LLMResponse:
        """Send one request to the model, streamed to `heard` if its server can.

        Raises what `LLM` says. A 400 that names a parameter the server does not know raises
        ParameterDeclined, and the next request does without it.
        """
        dialect = self._dialect
        asked = dialect.parameters(
            messages,
            tools,
            output,
            max_tokens=max_tokens,
            temperature=temperature,
            streamed=heard is not None,
        )
        streamed = StreamedCompletion(self.model, heard or (lambda text: None))
        response = read_completion(await self._complete(asked, dialect, streamed), self.model)
        if streamed.first_token_ns and not streamed.has_usage:
            # Tokens that the server does not tell cannot be counted.
            self._learn(dialect, replace(dialect, streams="no"))
        if response.finish_reason == "unparsed":
            self._learn(dialect, replace(dialect, answers_beside_tools=False))
        return replace(
            response,
            mode="" if output is None else dialect.mode if "response_format" in asked else "prompt",
            base_url=self.base_url,
            first_token_ns=streamed.first_token_ns or None,
        )

    async def close(self) -> None:
        """Close the connections of this event loop to the server, unless the client was given."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None and self._given is None:
            await client.close()

    def __repr__(self) -> str:
        return f"LLMService({self.model})"

    @property
    def _client(self) -> "AsyncOpenAI":
        """Return the client of the running event loop: connections cannot go into another."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = self._open()
        return self._clients[loop]

    def _open(self) -> "AsyncOpenAI":
        if self._given is not None:
            return self._given.with_options(max_retries=0, timeout=self._timeout_seconds)
        key = _plain(self._api_key) or os.environ.get("OPENAI_API_KEY")
        return open_client(key, self.base_url, self._timeout_seconds, _limited)

    async def _complete(
        self, asked: dict[str, Any], dialect: Dialect, streamed: StreamedCompletion
    ) -> Mapping[str, Any]:
        """Return the completion that a server answers with, or raise what it says instead.

        The time limit is for all of it: a server that trickles must not use up the time of the
        next model.
        """
        from httpx2 import TransportError  # noqa: PLC0415 - heavy, needed by the first request
        from openai import (  # noqa: PLC0415 - heavy, needed by the first request
            APIConnectionError,
            APIError,
            APIStatusError,
            APITimeoutError,
        )

        headers: Mapping[str, str] | None = None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                data = await self._create(asked, streamed)
            if (refused := reported_error(data)) is None:
                return data
            status = status_within(refused)
        except (APITimeoutError, TimeoutError):
            raise ModelTimeout(f"{self.model} did not answer in time") from None
        except (APIConnectionError, TransportError) as error:
            raise self._unreachable(error) from None
        except APIStatusError as error:
            refused, status, headers = error.body, error.status_code, error.response.headers
        except APIError as error:  # within a stream
            refused, status = error.body, status_within(error.body)
        except ModelError:
            raise
        except UnicodeEncodeError as error:  # of the key
            raise self._unaskable(error) from None
        except (ValueError, RecursionError):
            raise ModelResponseInvalid(f"{self.model} answered with no chat completion") from None
        except Exception as error:
            raise self._unaskable(error) from None
        return self._understood(refused, status, headers, dialect, beside_tools="tools" in asked)

    async def _create(
        self, asked: dict[str, Any], streamed: StreamedCompletion
    ) -> Mapping[str, Any]:
        """Send a request, and return the completion as plain data."""
        create = self._client.chat.completions.create
        extra = dict(self._extra_body)
        if not asked.get("stream"):
            completion: object = await create(model=self.model, extra_body=extra, **asked)
            return self._plain_data(completion)
        stream = await create(model=self.model, extra_body=extra, **asked)
        async with stream:
            if "event-stream" not in stream.response.headers.get("content-type", ""):
                await stream.response.aread()  # of a server that answers whole all the same
                return self._plain_data(stream.response.json())
            async for chunk in stream:
                streamed.add(self._plain_data(chunk))
        return streamed.completion()

    def _plain_data(self, answer: object) -> Mapping[str, Any]:
        """Return what a server answered as plain data: the client has not validated its types."""
        if isinstance(answer, BaseModel):
            answer = answer.model_dump(exclude_unset=True, warnings=False)
        if isinstance(answer, Mapping):
            return answer
        raise ModelResponseInvalid(f"{self.model} answered with no chat completion")

    def _understood(
        self,
        refused: object,
        status: int,
        headers: Mapping[str, str] | None,
        dialect: Dialect,
        *,
        beside_tools: bool,
    ) -> Mapping[str, Any]:
        """Return the completion that a refusal stands for, or raise what it means."""
        said = error_text(refused)
        if is_filtered(refused):
            return FILTERED
        if beside_tools and status >= 500 and NO_CALL in said:
            return UNPARSED
        raise self._refusal(status, refused, said, headers, dialect)

    @property
    def _server(self) -> str:
        """The address that is asked, without a name and password in it."""
        url = urlsplit(str(self._client.base_url))
        return f"the server at {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"

    def _unreachable(self, error: Exception) -> ModelError:
        cause = error.__cause__ or error
        if type(cause).__name__ in UNASKABLE:
            return self._unaskable(cause)
        problem = f"{self.model} could not be reached ({type(cause).__name__})"
        return ModelUnavailable(f"{problem}; is {self._server} running?")

    def _unaskable(self, error: BaseException) -> ModelError:
        """Return the error of a configuration that no request can be made of."""
        kind = type(error).__name__
        self._report(0, f"no request can be made ({kind}); check OPENAI_BASE_URL, OPENAI_API_KEY")
        return ModelRejected(f"{self.model} cannot be asked ({kind})")

    def _refusal(
        self,
        status: int,
        body: object,
        said: str,
        headers: Mapping[str, str] | None,
        dialect: Dialect,
    ) -> ModelError:
        """Return what a refusal means; it may be that the dialect of the request was wrong."""
        reason = self._without_key(said)
        problem = f"{self.model} answered {status}: {reason}".removesuffix(": ")
        if is_too_long(status, body, said):
            return ContextTooLong(problem, status=status)
        simpler = dialect.without(said) if names_parameter(status, said) else None
        if simpler is not None:
            self._learn(dialect, simpler)
            return ParameterDeclined(f"{self.model} declined a parameter: {reason}", status=status)
        if status == 429 and not is_out_of_quota(body):
            return ModelRateLimited(problem, status=status, retry_after=retry_after(headers))
        if status >= 500 or status in RETRYABLE_STATUS - {429}:
            return ModelUnavailable(problem, status=status, retry_after=retry_after(headers))
        self._report(status, advice(status) if status in ADVICE else f"{advice(status)}: {reason}")
        return ModelRejected(problem, status=status)

    def _learn(self, dialect: Dialect, simpler: Dialect) -> None:
        """Speak another dialect from now on, unless a request has learned one meanwhile."""
        if self._dialect == dialect and simpler != dialect:
            self._dialect = simpler
            log.info("%s: the server declined a parameter, going on with %s", self, simpler)

    def _report(self, status: int, problem: str) -> None:
        """Tell the operator, once for each status."""
        if status not in self._reported:
            self._reported.add(status)
            log.error("%s: %s", self, problem)

    def _without_key(self, text: str) -> str:
        key = _plain(self._api_key) or os.environ.get("OPENAI_API_KEY")
        return text.replace(key, "***") if key and len(key) >= SECRET_CHARS else text


def is_of_openai(base_url: str | None) -> bool:
    """Return True for an address of OpenAI's own, and for none, which is theirs."""
    url = base_url or os.environ.get("OPENAI_BASE_URL")
    try:
        host = urlsplit(url).hostname or "" if url else "api.openai.com"
    except ValueError:  # no address at all, as the first request will say
        return False
    return host.endswith(OPENAI_HOSTS)


def open_client(
    key: str | None,
    base_url: str | None,
    timeout_seconds: float,
    limit: "Callable[[Response], Awaitable[None]]",
) -> "AsyncOpenAI":
    """Open a client that tries once, and whose answers are held to `limit`."""
    # Heavy, needed by the first request.
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # noqa: PLC0415

    return AsyncOpenAI(
        http_client=DefaultAsyncHttpxClient(event_hooks={"response": [limit]}),
        api_key=key or LOCAL_KEY,
        base_url=base_url,
        max_retries=0,
        timeout=timeout_seconds,
    )


async def _limited(response: "Response") -> None:
    """End a body that is too long; each token of a stream brings some 250 bytes around it."""
    is_stream = "event-stream" in response.headers.get("content-type", "")
    most = 8 * lengths.ANSWER_BYTES if is_stream else lengths.ANSWER_BYTES
    await lengths.ends_at(lengths.ERROR_BYTES if response.is_error else most)(response)


def _plain(key: SecretStr | str | None) -> str | None:
    return key.get_secret_value() if isinstance(key, SecretStr) else key


def advice(status: int) -> str:
    """Say what an operator does about a server that rejects us with `status`."""
    rejected = f"the server rejects our requests ({status}); check OPENAI_BASE_URL and LLM_MODEL"
    return ADVICE.get(status, rejected)


def error_text(body: object) -> str:
    """Find the server's own words on a refusal: at most 300 characters, not what was sent to it."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        body = inner.get("message", inner) if isinstance(inner, Mapping) else inner
    return " ".join(str(_without_input(body) or "").split())[:300]


def _without_input(node: object) -> object:
    """The errors of a server that validates, without the input they repeat."""
    if isinstance(node, list):
        return [_without_input(item) for item in node]
    if isinstance(node, Mapping):
        return {key: _without_input(value) for key, value in node.items() if key != "input"}
    return node


def status_within(error: object) -> int:
    """Find the status that an error names itself; 502 if it names none."""
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def names_parameter(status: int, reason: str) -> bool:
    """Tell whether a refusal may be one of a parameter, which some call their own failure."""
    own_failure = status in {500, 501} and ("grammar" in reason or "response_format" in reason)
    return status in {400, 422} or own_failure


def is_too_long(status: int, body: object, said: str) -> bool:
    """Tell whether a refusal is about a request that is longer than the model takes in."""
    named = body.get("code") or body.get("type") if isinstance(body, Mapping) else None
    about = any(words in f"{named} {said}".lower() for words in TOO_LONG)
    return about and (status in {400, 413, 422} or status >= 500)


def is_filtered(body: object) -> bool:
    """Tell whether a refusal is one of a content filter that did not let the question pass."""
    code = body.get("code") if isinstance(body, Mapping) else None
    return code in {"content_filter", "content_policy_violation"}


def is_out_of_quota(body: object) -> bool:
    """Tell whether a 429 is about money, which waiting does not bring."""
    return isinstance(body, Mapping) and "insufficient_quota" in (
        body.get("code"),
        body.get("type"),
    )


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Read how many seconds a server asks us to wait, None when it does not say so."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = (headers or {}).get(name, "")
        seconds = _number(said) if _number(said) is not None else _seconds_until(said)
        if seconds is not None:
            return max(0.0, seconds / unit)
    return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _seconds_until(date: str) -> float | None:
    """Seconds until an HTTP date, None if it is none."""
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, TypeError):
        return None
