"""Transcribe voice messages and read answers aloud, with servers of OpenAI's `/audio` API.

Every request is traced and counts in the turn's usage. The texts of server errors are not logged,
because they may repeat the user's words.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import httpx2
from pydantic import SecretStr

from agent import size_limits
from agent.engine.errors import ModelError, ModelRejected, ModelUnavailable, log_failure
from agent.engine.models import is_local, is_worth_a_retry
from agent.engine.run import Run, Span
from agent.markdown import strip_invisible
from agent.senses.sent_files import UnusableFile
from agent.servers import (
    OPENAI_URL,
    build_bearer_headers,
    is_transient_status,
    read_body,
    retry,
)

R = TypeVar("R")

MAX_SECONDS: Final = 180
"""The longest recording that is accepted. The caller checks it before the download."""
USD_PER_SECOND: Final = 0.0001
USD_PER_CHARACTER: Final = 0.000015
"""The prices of OpenAI. Those of other servers are similar."""
MAX_ALOUD_CHARS: Final = 1500
"""The part of an answer that is read aloud, in about a minute and a half."""
MAX_TRIES: Final = 2
"""The most tries of a request that may succeed when it is repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioServer:
    """A model on a server of `/audio/transcriptions` or `/audio/speech`."""

    http: httpx2.AsyncClient
    model: str
    voice: str = "alloy"
    """The voice in which the model reads aloud."""
    base_url: str | None = None
    """The address of the server, or None for OpenAI's."""
    api_key: SecretStr | None = None
    timeout_seconds: float = 60
    """The time-out of a whole request."""

    async def transcribe(self, audio: bytes) -> str:
        """Return the transcript of a voice message in Ogg/Opus.

        Raises:
            ModelError: the server did not return a transcript.
        """
        form = {"model": self.model, "response_format": "json"}
        files = {"file": ("voice.ogg", audio)}
        response = await self._post("audio/transcriptions", form=form, files=files)
        text = _read_transcript(response)
        if text is None:
            raise ModelUnavailable("audio/transcriptions answered without a text")
        return strip_invisible(text[: size_limits.MESSAGE_CHARS]).strip()

    async def read_aloud(self, text: str) -> bytes:
        """Return a text read aloud, in Ogg/Opus, which Telegram plays as a voice message.

        Raises:
            ModelError: the server did not return an Ogg file.
        """
        request = {
            "model": self.model,
            "voice": self.voice,
            "input": text,
            "response_format": "opus",
        }
        audio = await self._post("audio/speech", json_body=request)
        if not audio.startswith(b"OggS"):
            raise ModelUnavailable("audio/speech answered without an Ogg file")
        return audio

    async def _post(
        self,
        path: str,
        *,
        json_body: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        files: Mapping[str, tuple[str, bytes]] | None = None,
    ) -> bytes:
        """Return the body of the response to a request with JSON, or with a form and files."""
        seconds = self.timeout_seconds
        request = self.http.stream(
            "POST",
            f"{self.base_url or OPENAI_URL}/{path}",
            headers=build_bearer_headers(self.api_key),
            timeout=seconds,
            json=json_body,
            data=form,
            files=files,
        )
        try:
            async with asyncio.timeout(seconds), request as response:
                if response.status_code != httpx2.codes.OK:
                    raise _make_error(path, response.status_code)
                data = await read_body(response, size_limits.FILE_BYTES)
        except (httpx2.HTTPError, TimeoutError) as error:
            error_name = type(error).__name__
            raise ModelUnavailable(f"{path} did not answer ({error_name})") from None
        if data is None:
            limit = size_limits.FILE_BYTES
            raise ModelUnavailable(f"{path} answered with over {limit} bytes")
        return data


def _read_transcript(response: bytes) -> str | None:
    """Return the text of a response with JSON, or None if it has none."""
    try:
        text = json.loads(response)["text"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    if isinstance(text, str):
        return text
    return None


def _make_error(path: str, status: int) -> ModelError:
    """Return the error for a response with this status."""
    problem = f"{path} answered {status}"
    if is_transient_status(status):
        return ModelUnavailable(problem)
    return ModelRejected(problem)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The transcript of a voice message, or the type of the error that prevented it."""

    text: str = ""
    error_type: str = ""


async def transcribe_voice(
    download: Callable[[], Awaitable[bytes]],
    seconds: float,
    *,
    run: Run,
    server: AudioServer,
) -> Transcript:
    """Return the transcript of a recording of some seconds. The recording is not stored."""
    if run.usage.find_exhausted_limit(run.limits):
        return Transcript(error_type="budget")
    with run.span.child(
        "hear.voice", "generation", input=f"[voice, {seconds:g} s]"
    ) as span:
        try:
            audio = await download()
        except UnusableFile as error:
            # The text of this error is a code, such as "too_big".
            span.update(metadata={"error_type": str(error)}, level="WARNING")
            return Transcript(error_type=str(error))

        async def transcribe() -> str:
            return await server.transcribe(audio)

        price = USD_PER_SECOND * seconds
        text, error_type = await _request(transcribe, price, run, server, span)
        span.update(output=text)
    if not text and not error_type:
        error_type = "nothing_said"
    return Transcript(text or "", error_type)


async def read_aloud(
    text: str,
    run: Run,
    server: AudioServer,
) -> bytes:
    """Return the beginning of an answer read aloud, or nothing if that fails."""
    text = text[:MAX_ALOUD_CHARS]
    if not text or run.usage.find_exhausted_limit(run.limits):
        return b""

    async def read_text() -> bytes:
        return await server.read_aloud(text)

    with run.span.child(
        "speak.answer", "generation", input=f"[{len(text)} characters]"
    ) as span:
        price = USD_PER_CHARACTER * len(text)
        audio, _ = await _request(read_text, price, run, server, span)
    return audio or b""


async def _request(
    call: Callable[[], Awaitable[R]],
    price: float,
    run: Run,
    server: AudioServer,
    span: Span,
) -> tuple[R | None, str]:
    """Return the result of `call` and an empty text, or None and the type of its error.

    Record the request, and its price in USD unless it failed, in the turn's usage and on the span.
    """
    result = None
    error_type = ""
    cost_usd = 0.0
    try:
        result = await retry(call, max_tries=MAX_TRIES, should_retry=is_worth_a_retry)
    except ModelError as error:
        log_failure("An audio request failed", error)
        error_type = type(error).__name__
        metadata = {
            "error_type": error_type,
            "status": error.status,
            "cause": error.cause,
        }
        span.update(metadata=metadata, level="WARNING")
    else:
        run.usage.answered_requests += 1
        if server.base_url is None or not is_local(server.base_url):
            cost_usd = price
    run.usage.requests += 1
    run.usage.cost_usd += cost_usd
    # The cost depends on seconds or characters, and not on tokens.
    span.update(model=server.model, cost_usd=cost_usd, costs={"total": cost_usd})
    return result, error_type
