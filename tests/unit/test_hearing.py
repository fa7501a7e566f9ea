"""The cost of voices, and when none is heard; the server is doubled."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from agent.engine.limits import Ledger, Limits
from agent.engine.run import Run
from agent.senses.pictures import Unusable
from agent.senses.speech import LONGEST_ALOUD, AudioServer, Speaker, Transcriber, hear, read_aloud
from tests.doubles.model_server import ModelServer, hang


@pytest.fixture
async def transcriber(model_server: ModelServer) -> AsyncIterator[Transcriber]:
    async with httpx2.AsyncClient() as http:
        server = AudioServer(http=http, base_url=model_server.base_url, timeout_seconds=0.3)
        yield Transcriber(server=server, model="w")


async def recording() -> bytes:
    return b"OggS"


async def gone() -> bytes:
    raise Unusable("not_fetched")


def test_a_request_costs_what_openai_asks_and_nothing_on_this_machine(
    transcriber: Transcriber,
) -> None:
    assert transcriber.cost(90) == 0
    elsewhere = replace(transcriber.server, base_url="https://audio.example/v1")
    assert replace(transcriber, server=elsewhere).cost(90) == pytest.approx(0.009)
    assert Speaker(server=elsewhere, model="t", voice="a").cost("x" * 1000) == pytest.approx(0.015)


@pytest.mark.parametrize(
    "run",
    [Run(ledger=Ledger(cost_usd=1)), Run(limits=Limits(requests=0))],
    ids=["the day's", "the turn's"],
)
async def test_with_a_budget_used_up_nothing_is_asked(
    run: Run, transcriber: Transcriber, model_server: ModelServer
) -> None:
    heard = await hear(recording, "voice.ogg", 30, run=run, transcriber=transcriber)
    assert (heard.why, model_server.recordings) == ("budget", [])


async def test_what_is_not_fetched_costs_nothing_and_a_silent_server_a_request(
    transcriber: Transcriber, model_server: ModelServer
) -> None:
    run = Run()
    heard = await hear(gone, "voice.ogg", 3, run=run, transcriber=transcriber)
    assert (heard.why, run.ledger.requests) == ("not_fetched", 0)
    model_server.hear(hang(30), hang(30))
    heard = await hear(recording, "voice.ogg", 3, run=run, transcriber=transcriber)
    assert (heard.why, run.ledger.requests) == ("ModelUnavailable", 1)


async def test_the_beginning_of_a_long_answer_is_read_aloud(
    transcriber: Transcriber, model_server: ModelServer
) -> None:
    speaker = Speaker(server=transcriber.server, model="t", voice="alloy")
    assert (await read_aloud("a" * 9000, Run(), speaker)).startswith(b"OggS")
    assert len(model_server.spoken[0]["input"]) == LONGEST_ALOUD
