"""A question that was spoken: heard once, paid once, traced, and within the day's budgets."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from agent.engine.errors import ModelError, ModelRejected, log_failure, retry
from agent.engine.limits import NOTHING_SPENT, Spent
from agent.engine.run import Run
from agent.senses.images import Unusable
from agent.senses.speech import Speaker, Transcriber, Transcript

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
    """Fetch a recording of so many seconds and write it down: one step of the journal.

    The recording is kept nowhere. It costs by its length, as the server or else Telegram tells it.
    """
    with run.span.child("hear.voice", "generation", input=f"[voice, {seconds:g} s]") as span:

        async def work() -> Heard:
            if run.allowance.used_up or run.ledger.exhausted(run.limits):
                return Heard(why="budget")
            try:
                audio = await download()
                transcript = await retry(
                    lambda: transcriber.transcribe(audio, name), tries=TRIES, on=is_passing
                )
            except (Unusable, ModelError) as error:
                kind = str(error) if isinstance(error, Unusable) else log_failure("hearing", error)
                return Heard(why=kind, spent=Spent(requests=int(isinstance(error, ModelError))))
            length = max(seconds, transcript.seconds)
            return Heard(transcript, spent=Spent(1, 0, transcriber.cost(length)))

        heard = await run.step("voice", work, span)
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
    """Return an answer read aloud, empty if it cannot be: one step of the journal."""
    said = text[:LONGEST_ALOUD]
    with run.span.child("speak.answer", "generation", input=f"[{len(said)} characters]") as span:

        async def work() -> tuple[bytes, Spent, str]:
            if not said or run.is_over_budget:
                return b"", NOTHING_SPENT, ""
            try:
                audio = await retry(lambda: speaker.read_aloud(said), tries=TRIES, on=is_passing)
            except ModelError as error:
                return b"", Spent(requests=1), log_failure("reading aloud", error)
            return audio, Spent(1, 0, speaker.cost(said)), ""

        audio, spent, why = await run.step("speech", work, span)
        run.ledger.take(spent)
        span.update(
            model=speaker.model,
            cost_usd=spent.cost_usd,
            metadata={"error_type": why} if why else None,
            level="WARNING" if why else None,
        )
    return audio


def is_passing(error: Exception) -> bool:
    """Tell whether another try may help."""
    return isinstance(error, ModelError) and not isinstance(error, ModelRejected)
