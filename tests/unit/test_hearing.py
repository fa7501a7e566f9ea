"""What hearing and reading aloud cost, and when neither is done; servers are doubled."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from agent.engine.limits import Ledger, Limits
from agent.engine.run import Run
from agent.senses.pictures import Unusable
from agent.senses.speech import (
    LONGEST_ALOUD,
    AudioServer,
    Heard,
    Speaker,
    Transcriber,
    hear,
    read_aloud,
)
from tests.doubles.model_server import ModelServer, hang


@pytest.fixture
async def server(model_server: ModelServer) -> AsyncIterator[AudioServer]:
    async with httpx2.AsyncClient() as http:
        yield AudioServer(http=http, base_url=model_server.base_url, timeout_seconds=0.3)


def transcriber(server: AudioServer) -> Transcriber:
    return Transcriber(server=server, model="w", usd_per_minute=0.6, longest_seconds=60)


async def recording() -> bytes:
    return b"OggS"


async def heard(server: AudioServer, run: Run) -> Heard:
    return await hear(recording, "voice.ogg", 30, run=run, transcriber=transcriber(server))


async def test_a_minute_costs_what_the_setting_says_and_nothing_on_this_machine(
    server: AudioServer,
) -> None:
    elsewhere = replace(server, base_url="https://audio.example/v1")
    assert transcriber(elsewhere).cost(90) == pytest.approx(0.9)
    assert transcriber(server).cost(90) == 0
    speaker = Speaker(server=elsewhere, model="t", voice="alloy", usd_per_million=15)
    assert speaker.cost("x" * 1000) == pytest.approx(0.015)
    assert replace(speaker, server=server).cost("x" * 1000) == 0


class Elsewhere(AudioServer):
    """A server that is not on this machine, and hears a minute of one word."""

    async def post(self, path: str, most: int, **body: object) -> bytes:
        return b'{"text": "red", "language": "english", "duration": 60}'


async def test_what_is_heard_counts_in_the_ledger() -> None:
    async with httpx2.AsyncClient() as http:
        run = Run()
        found = await heard(Elsewhere(http=http, base_url="https://audio.example/v1"), run)
    assert (found.transcript.text, found.transcript.language) == ("red", "english")
    assert run.ledger.requests == 1
    assert run.ledger.cost_usd == pytest.approx(0.6)


@pytest.mark.parametrize(
    "run",
    [Run(ledger=Ledger(cost_usd=1)), Run(limits=Limits(requests=0))],
    ids=["the day's", "the turn's"],
)
async def test_with_a_budget_used_up_nothing_is_fetched_or_asked(
    run: Run, server: AudioServer, model_server: ModelServer
) -> None:
    assert (await heard(server, run)).why == "budget"
    assert model_server.recordings == []


async def test_a_recording_that_cannot_be_fetched_costs_nothing(server: AudioServer) -> None:
    async def gone() -> bytes:
        raise Unusable("not_fetched")

    run = Run()
    found = await hear(gone, "voice.ogg", 3, run=run, transcriber=transcriber(server))
    assert (found.why, run.ledger.requests) == ("not_fetched", 0)


async def test_a_server_that_does_not_answer_is_not_waited_for(
    server: AudioServer, model_server: ModelServer
) -> None:
    model_server.hear(hang(30), hang(30))
    assert (await heard(server, Run())).why == "ModelUnavailable"


async def test_the_beginning_of_a_long_answer_is_read_aloud(
    server: AudioServer, model_server: ModelServer
) -> None:
    run = Run()
    speaker = Speaker(server=server, model="t", voice="alloy", usd_per_million=15)
    assert (await read_aloud("a" * 9000, run, speaker)).startswith(b"OggS")
    assert len(model_server.spoken[0]["input"]) == LONGEST_ALOUD
    assert run.ledger.requests == 1
