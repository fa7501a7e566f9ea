"""Voices heard and answers read aloud, by servers that speak OpenAI's `/audio` API.

One call is one request; tries belong to who calls. What a server says in an error stays out of
logs: it may repeat what was said. A question that was spoken is heard once, paid once, traced, and
within the day's budgets.
"""

import asyncio
import json
import math
import wave
from array import array
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, Final

import httpx2
from pydantic import SecretStr

from agent import lengths
from agent.engine.errors import (
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelResponseInvalid,
    ModelUnavailable,
    log_failure,
    retry,
)
from agent.engine.limits import NOTHING_SPENT, Spent
from agent.engine.models import worth_a_wait
from agent.engine.prices import is_local
from agent.engine.run import Run
from agent.markdown import visible
from agent.senses.pictures import Unusable

OPENAI: Final = "https://api.openai.com/v1"
PASSING: Final = frozenset({408, 409, 425})
SECONDS_A_MINUTE: Final = 60
LONGEST_SECONDS: Final = 180
USD_PER_MINUTE: Final = 0.006
USD_PER_MILLION: Final = 15
"""OpenAI's prices; others' are in this range."""
RATE: Final = 16_000
PITCH: Final = 440
"""Of the tone by which it is tried whether a server hears, in Hz."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was heard: the words, their language if the server tells it, and how long it took."""

    text: str = ""
    language: str = ""
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

    @property
    def is_free(self) -> bool:
        """Whether it is on this machine or in its own network, and asks nothing."""
        return self.base_url is not None and is_local(self.base_url)

    async def post(self, path: str, most: int, **body: Any) -> bytes:
        """Return the body of an answer, of `most` bytes.

        Raises:
            ModelError: there is none.
        """
        key = self.api_key.get_secret_value() if self.api_key else ""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = f"{self.base_url or OPENAI}/{path}"
        try:
            async with (
                asyncio.timeout(self.timeout_seconds),
                self.http.stream(
                    "POST", url, headers=headers, timeout=self.timeout_seconds, **body
                ) as response,
            ):
                if response.status_code != httpx2.codes.OK:
                    raise refusal(path, response.status_code)
                data = await lengths.body_of(response, most)
                if data is None:
                    raise ModelResponseInvalid(f"{path} answered with over {most} bytes")
        except (httpx2.HTTPError, TimeoutError) as error:
            raise ModelUnavailable(f"{path} did not answer ({type(error).__name__})") from None
        return data


def refusal(path: str, status: int) -> ModelError:
    """Say what a status means."""
    problem = f"{path} answered {status}"
    if status == httpx2.codes.TOO_MANY_REQUESTS:
        return ModelRateLimited(problem, status=status)
    if status >= httpx2.codes.INTERNAL_SERVER_ERROR or status in PASSING:
        return ModelUnavailable(problem, status=status)
    return ModelRejected(problem, status=status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcriber:
    """A model that writes down what is said, at US dollars a minute."""

    server: AudioServer
    model: str
    usd_per_minute: float = USD_PER_MINUTE
    longest_seconds: float = LONGEST_SECONDS

    def cost(self, seconds: float) -> float:
        """What so many seconds cost, in US dollars; a server on this machine asks nothing."""
        return 0.0 if self.server.is_free else seconds / SECONDS_A_MINUTE * self.usd_per_minute

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
        return read_transcript(body)


def read_transcript(body: bytes) -> Transcript:
    """Read what a server answers with; language and length if it tells them.

    Raises:
        ModelResponseInvalid: it is no transcript.
    """
    said: object = None
    with suppress(ValueError, RecursionError):
        said = json.loads(body)
    if not isinstance(said, Mapping) or not isinstance(said.get("text"), str):
        raise ModelResponseInvalid("audio/transcriptions answered with no text")
    language, seconds = said.get("language"), said.get("duration")
    return Transcript(
        visible(said["text"][: lengths.MESSAGE]).strip(),
        language[: lengths.NAME] if isinstance(language, str) else "",
        float(seconds) if isinstance(seconds, int | float) and seconds > 0 else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """A model that reads aloud, in a voice of its server's, at US dollars a million characters."""

    server: AudioServer
    model: str
    voice: str
    usd_per_million: float = USD_PER_MILLION

    def cost(self, text: str) -> float:
        """What reading a text aloud costs, in US dollars; a server on this machine asks nothing."""
        return 0.0 if self.server.is_free else len(text) / 1_000_000 * self.usd_per_million

    async def read_aloud(self, text: str) -> bytes:
        """Return a text as Ogg/Opus, which Telegram plays as a voice message.

        Raises:
            ModelError: the server gave no sound.
        """
        asked = {"model": self.model, "voice": self.voice, "input": text, "response_format": "opus"}
        audio = await self.server.post("audio/speech", lengths.FILE_BYTES, json=asked)
        if not audio.startswith(b"OggS"):
            raise ModelResponseInvalid("audio/speech answered with no Ogg file")
        return audio


TRIES: Final = 2
LONGEST_ALOUD: Final = 1500
"""Characters of an answer that are read aloud: about a minute and a half."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a voice said, and what that took; `why` names what kept it from being heard."""

    transcript: Transcript = field(default_factory=Transcript)
    why: str = ""
    spent: Spent = NOTHING_SPENT


async def hear(
    download: Callable[[], Awaitable[bytes]],
    name: str,
    seconds: float,
    *,
    run: Run,
    transcriber: Transcriber,
) -> Heard:
    """Fetch a recording of so many seconds and write it down.

    The recording is kept nowhere. It costs by its length, as the server or else Telegram tells it.
    """
    with run.span.child("hear.voice", "generation", input=f"[voice, {seconds:g} s]") as span:

        async def work() -> Heard:
            if run.ledger.exhausted(run.limits):
                return Heard(why="budget")
            try:
                audio = await download()
                transcript = await retry(
                    lambda: transcriber.transcribe(audio, name), tries=TRIES, on=worth_a_wait
                )
            except (Unusable, ModelError) as error:
                kind = str(error) if isinstance(error, Unusable) else log_failure("hearing", error)
                return Heard(why=kind, spent=Spent(requests=int(isinstance(error, ModelError))))
            length = max(seconds, transcript.seconds)
            return Heard(transcript, spent=Spent(1, 0, transcriber.cost(length)))

        heard = await work()
        run.ledger.take(heard.spent)
        span.update(
            model=transcriber.model,
            output=heard.transcript.text,
            cost_usd=heard.spent.cost_usd,
            metadata={"error_type": heard.why} if heard.why else None,
            level="WARNING" if heard.why else None,
        )
    return heard if heard.why or heard.transcript.text else replace(heard, why="nothing_said")


async def read_aloud(text: str, run: Run, speaker: Speaker) -> bytes:
    """Return an answer read aloud, empty if it cannot be."""
    said = text[:LONGEST_ALOUD]
    with run.span.child("speak.answer", "generation", input=f"[{len(said)} characters]") as span:

        async def work() -> tuple[bytes, Spent, str]:
            if not said or run.ledger.exhausted(run.limits):
                return b"", NOTHING_SPENT, ""
            try:
                audio = await retry(lambda: speaker.read_aloud(said), tries=TRIES, on=worth_a_wait)
            except ModelError as error:
                return b"", Spent(requests=1), log_failure("reading aloud", error)
            return audio, Spent(1, 0, speaker.cost(said)), ""

        audio, spent, why = await work()
        run.ledger.take(spent)
        span.update(
            model=speaker.model,
            cost_usd=spent.cost_usd,
            metadata={"error_type": why} if why else None,
            level="WARNING" if why else None,
        )
    return audio


def tone() -> bytes:
    """Make a second of a tone, as a WAV file."""
    turn = 2 * math.pi * PITCH / RATE
    samples = array("h", (int(8000 * math.sin(turn * at)) for at in range(RATE)))
    written = BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(samples.tobytes())
    return written.getvalue()


async def hears(transcriber: Transcriber) -> None:
    """Have a second of a tone written down, whatever that comes to.

    Raises:
        ModelError: the server writes nothing down.
    """
    await transcriber.transcribe(tone(), "tone.wav")
