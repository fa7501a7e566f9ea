"""Write voice messages down and read answers aloud, by servers that speak OpenAI's `/audio` API.

A question that was spoken is transcribed once, paid once, traced, and within the day's budgets. The
words of a server's error stay out of logs: it may repeat what was said.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import httpx2
from pydantic import SecretStr

from agent import lengths
from agent.engine.errors import (
    ModelError,
    ModelRejected,
    ModelUnavailable,
    log_failure,
)
from agent.engine.limits import NOTHING_SPENT, Spent, is_local
from agent.engine.models import worth_a_wait
from agent.engine.run import Run
from agent.engine.span import Span
from agent.markdown import visible
from agent.retrying import retry
from agent.senses.pictures import Unusable

OPENAI: Final = "https://api.openai.com/v1"
PASSING: Final = frozenset({408, 409, 425, 429})
SECONDS_A_MINUTE: Final = 60
LONGEST_SECONDS: Final = 180
USD_PER_MINUTE: Final = 0.006
USD_PER_MILLION: Final = 15
"""OpenAI's prices; others' are in this range."""
LONGEST_ALOUD: Final = 1500
"""Characters of an answer that are read aloud: about a minute and a half."""
TRIES: Final = 2


@dataclass(frozen=True, slots=True)
class Transcript:
    """The words of a recording, and its length in seconds if the server tells it."""

    text: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioServer:
    """A server of `/audio/transcriptions` and `/audio/speech`, asked over connections of `http`.

    A whole answer takes `timeout_seconds` at most.
    """

    http: httpx2.AsyncClient
    base_url: str | None = None
    api_key: SecretStr | None = None
    timeout_seconds: float = 60

    def cost(self, usd: float) -> float:
        """Return what a request costs; a server on this machine asks nothing."""
        return 0.0 if self.base_url is not None and is_local(self.base_url) else usd

    async def post(self, path: str, most: int, **body: Any) -> bytes:
        """Return the body of an answer, of `most` bytes.

        Raises:
            ModelError: there is none.
        """
        key = self.api_key.get_secret_value() if self.api_key else ""
        request = self.http.stream(
            "POST",
            f"{self.base_url or OPENAI}/{path}",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=self.timeout_seconds,
            **body,
        )
        try:
            async with asyncio.timeout(self.timeout_seconds), request as response:
                if response.status_code != httpx2.codes.OK:
                    raise _refusal(path, response.status_code)
                data = await lengths.body_of(response, most)
        except (httpx2.HTTPError, TimeoutError) as error:
            raise ModelUnavailable(f"{path} did not answer ({type(error).__name__})") from None
        if data is None:
            raise ModelUnavailable(f"{path} answered with over {most} bytes")
        return data


def _refusal(path: str, status: int) -> ModelError:
    """Return the error that a status means."""
    problem = f"{path} answered {status}"
    if status >= httpx2.codes.INTERNAL_SERVER_ERROR or status in PASSING:
        return ModelUnavailable(problem, status=status)
    return ModelRejected(problem, status=status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcriber:
    """A model that writes down what is said."""

    server: AudioServer
    model: str
    longest_seconds: float = LONGEST_SECONDS

    def cost(self, seconds: float) -> float:
        """Return what a recording of this length costs, in US dollars."""
        return self.server.cost(seconds / SECONDS_A_MINUTE * USD_PER_MINUTE)

    async def transcribe(self, audio: bytes, name: str) -> Transcript:
        """Write down what is said in `audio`; the end of `name` tells its format.

        Raises:
            ModelError: the server gave no transcript.
        """
        body = await self.server.post(
            "audio/transcriptions",
            lengths.TRANSCRIPT_BYTES,
            data={"model": self.model, "response_format": "json"},
            files={"file": (name, audio)},
        )
        said: object = None
        with suppress(ValueError, RecursionError):
            said = json.loads(body)
        if not isinstance(said, Mapping) or not isinstance(said.get("text"), str):
            raise ModelUnavailable("audio/transcriptions answered with no text")
        seconds = said.get("duration")
        return Transcript(
            visible(said["text"][: lengths.MESSAGE]).strip(),
            float(seconds) if isinstance(seconds, int | float) and seconds > 0 else 0.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """A model that reads aloud, in a voice of its server's."""

    server: AudioServer
    model: str
    voice: str

    def cost(self, text: str) -> float:
        """Return what reading a text aloud costs, in US dollars."""
        return self.server.cost(len(text) / 1_000_000 * USD_PER_MILLION)

    async def read_aloud(self, text: str) -> bytes:
        """Return a text as Ogg/Opus, which Telegram plays as a voice message.

        Raises:
            ModelError: the server gave no sound.
        """
        asked = {"model": self.model, "voice": self.voice, "input": text, "response_format": "opus"}
        audio = await self.server.post("audio/speech", lengths.FILE_BYTES, json=asked)
        if not audio.startswith(b"OggS"):
            raise ModelUnavailable("audio/speech answered with no Ogg file")
        return audio


@dataclass(frozen=True, slots=True)
class Heard:
    """The transcript of a voice message; `why` names what kept it from being transcribed."""

    transcript: Transcript = field(default_factory=Transcript)
    why: str = ""


async def hear(
    download: Callable[[], Awaitable[bytes]],
    name: str,
    seconds: float,
    *,
    run: Run,
    transcriber: Transcriber,
) -> Heard:
    """Fetch a recording of this length and write it down.

    The recording is stored nowhere. It costs by its length, as the server or else Telegram tells
    it.
    """
    if run.ledger.exhausted(run.limits):
        return Heard(why="budget")
    with run.span.child("hear.voice", "generation", input=f"[voice, {seconds:g} s]") as span:
        heard, spent = Heard(), NOTHING_SPENT
        try:
            audio = await download()
            transcript = await retry(
                lambda: transcriber.transcribe(audio, name), tries=TRIES, on=worth_a_wait
            )
        except Unusable as error:
            heard = Heard(why=str(error))
        except ModelError as error:
            heard, spent = Heard(why=log_failure("hearing", error)), Spent(requests=1)
        else:
            length = max(seconds, transcript.seconds)
            heard, spent = Heard(transcript), Spent(1, 0, transcriber.cost(length))
        _record(span, run, transcriber.model, spent, heard.why)
        span.update(output=heard.transcript.text)
    return heard if heard.why or heard.transcript.text else replace(heard, why="nothing_said")


async def read_aloud(text: str, run: Run, speaker: Speaker) -> bytes:
    """Return an answer read aloud, empty if it cannot be."""
    said = text[:LONGEST_ALOUD]
    if not said or run.ledger.exhausted(run.limits):
        return b""
    with run.span.child("speak.answer", "generation", input=f"[{len(said)} characters]") as span:
        try:
            audio = await retry(lambda: speaker.read_aloud(said), tries=TRIES, on=worth_a_wait)
        except ModelError as error:
            why = log_failure("reading aloud", error)
            _record(span, run, speaker.model, Spent(requests=1), why)
            return b""
        _record(span, run, speaker.model, Spent(1, 0, speaker.cost(said)))
    return audio


def _record(span: Span, run: Run, model: str, spent: Spent, why: str = "") -> None:
    """Count what a request took in the turn's ledger, and tell it in the trace."""
    run.ledger.take(spent)
    span.update(model=model, cost_usd=spent.cost_usd)
    if why:
        span.update(metadata={"error_type": why}, level="WARNING")
