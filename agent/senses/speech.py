"""Write voice messages down and read answers aloud, by servers that speak OpenAI's `/audio` API.

A question that was spoken is transcribed once, paid once, traced, and within the day's budgets. The
words of a server's error stay out of logs: it may repeat the user's.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import httpx2
from pydantic import SecretStr

from agent import size_limits
from agent.engine.errors import ModelError, ModelRejected, ModelUnavailable, log_failure
from agent.engine.models import is_local, worth_a_wait
from agent.engine.run import Run, Span
from agent.markdown import strip_invisible
from agent.retrying import retry
from agent.senses.sent_files import Unusable

R = TypeVar("R")

OPENAI: Final = "https://api.openai.com/v1"
TEMPORARY: Final = frozenset({408, 409, 425, 429})
MAX_SECONDS: Final = 180
"""The longest recording that is transcribed."""
USD_PER_SECOND: Final = 0.0001
USD_PER_CHARACTER: Final = 0.000015
"""OpenAI's prices; others' are in this range."""
LONGEST_ALOUD: Final = 1500
"""Characters of an answer that are read aloud: about a minute and a half."""
TRIES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioServer:
    """A model on a server of `/audio/transcriptions` or `/audio/speech`.

    Connections are those of `http`. A whole answer takes `timeout_seconds` at most. `voice` is that
    of a model that reads aloud.
    """

    http: httpx2.AsyncClient
    model: str
    voice: str = "alloy"
    base_url: str | None = None
    api_key: SecretStr | None = None
    timeout_seconds: float = 60

    async def transcribe(self, audio: bytes) -> str:
        """Return what is said in a voice message, which is Ogg/Opus.

        Raises:
            ModelError: the server gave no transcript.
        """
        body = await self._post(
            "audio/transcriptions",
            data={"model": self.model, "response_format": "json"},
            files={"file": ("voice.ogg", audio)},
        )
        text: object = None
        with suppress(ValueError, RecursionError, LookupError, TypeError):
            text = json.loads(body)["text"]
        if not isinstance(text, str):
            raise ModelUnavailable("audio/transcriptions answered with no text")
        return strip_invisible(text[: size_limits.MESSAGE_CHARS]).strip()

    async def read_aloud(self, text: str) -> bytes:
        """Return a text as Ogg/Opus, which Telegram plays as a voice message.

        Raises:
            ModelError: the server gave no sound.
        """
        asked = {"model": self.model, "voice": self.voice, "input": text, "response_format": "opus"}
        audio = await self._post("audio/speech", json=asked)
        if not audio.startswith(b"OggS"):
            raise ModelUnavailable("audio/speech answered with no Ogg file")
        return audio

    async def _post(self, path: str, **body: Any) -> bytes:
        key, url = self.api_key, f"{self.base_url or OPENAI}/{path}"
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        seconds = self.timeout_seconds
        request = self.http.stream("POST", url, headers=headers, timeout=seconds, **body)
        try:
            async with asyncio.timeout(seconds), request as response:
                if (status := response.status_code) != httpx2.codes.OK:
                    is_passing = status >= 500 or status in TEMPORARY
                    kind = ModelUnavailable if is_passing else ModelRejected
                    raise kind(f"{path} answered {status}")
                data = await size_limits.read_body(response, size_limits.FILE_BYTES)
        except (httpx2.HTTPError, TimeoutError) as error:
            raise ModelUnavailable(f"{path} did not answer ({type(error).__name__})") from None
        if data is None:
            raise ModelUnavailable(f"{path} answered with over {size_limits.FILE_BYTES} bytes")
        return data


@dataclass(frozen=True, slots=True)
class Heard:
    """The transcript of a voice message; `why` names what kept it from being transcribed."""

    text: str = ""
    why: str = ""


async def hear(
    download: Callable[[], Awaitable[bytes]], seconds: float, *, run: Run, server: AudioServer
) -> Heard:
    """Fetch a recording of this length and write it down; it is stored nowhere."""
    if run.ledger.exhausted(run.limits):
        return Heard(why="budget")
    with run.span.child("hear.voice", "generation", input=f"[voice, {seconds:g} s]") as span:
        try:
            audio = await download()
        except Unusable as error:
            span.update(metadata={"error_type": str(error)}, level="WARNING")
            return Heard(why=str(error))
        usd = USD_PER_SECOND * seconds
        text, why = await _ask(lambda: server.transcribe(audio), usd, run, server, span)
        span.update(output=text)
    return Heard(text or "", why or ("" if text else "nothing_said"))


async def read_aloud(text: str, run: Run, server: AudioServer) -> bytes:
    """Return an answer read aloud, empty if it cannot be."""
    text = text[:LONGEST_ALOUD]
    if not text or run.ledger.exhausted(run.limits):
        return b""
    with run.span.child("speak.answer", "generation", input=f"[{len(text)} characters]") as span:
        usd = USD_PER_CHARACTER * len(text)
        audio, _ = await _ask(lambda: server.read_aloud(text), usd, run, server, span)
    return audio or b""


async def _ask(
    call: Callable[[], Awaitable[R]], usd: float, run: Run, server: AudioServer, span: Span
) -> tuple[R | None, str]:
    """Return the answer of a server, or None and the name of its error.

    The request counts in the turn's ledger and on the span; one that failed costs nothing.
    """
    answer, why = None, ""
    try:
        answer = await retry(call, max_tries=TRIES, should_retry=worth_a_wait)
    except ModelError as error:
        why = log_failure("A request about sound failed", error)
        span.update(metadata={"error_type": why}, level="WARNING")
    is_free = why or (server.base_url is not None and is_local(server.base_url))
    cost_usd = 0 if is_free else usd
    run.ledger.requests += 1
    run.ledger.cost_usd += cost_usd
    span.update(model=server.model, cost_usd=cost_usd)
    return answer, why
