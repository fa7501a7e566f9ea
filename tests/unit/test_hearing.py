"""The cost of voices, and when none is heard; the server is doubled."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from agent.engine.limits import Ledger, Limits
from agent.engine.run import Run
from agent.senses.sent_files import Unusable
from agent.senses.speech import LONGEST_ALOUD, AudioServer, hear, read_aloud
from tests.doubles.model_server import ModelServer, hang


@pytest.fixture
async def server(model_server: ModelServer) -> AsyncIterator[AudioServer]:
    async with httpx2.AsyncClient() as http:
        yield AudioServer(http=http, model="w", base_url=model_server.base_url, timeout_seconds=0.3)


async def recording() -> bytes:
    return b"OggS"


async def gone() -> bytes:
    raise Unusable("not_fetched")


def test_a_request_costs_nothing_on_this_machine(server: AudioServer) -> None:
    elsewhere = replace(server, base_url="https://audio.example/v1")
    assert (server.spent(0.009).cost_usd, elsewhere.spent(0.009).cost_usd) == (0, 0.009)


@pytest.mark.parametrize(
    "run",
    [Run(ledger=Ledger(cost_usd=1)), Run(limits=Limits(requests=0))],
    ids=["the day's", "the turn's"],
)
async def test_with_a_budget_used_up_nothing_is_asked(
    run: Run, server: AudioServer, model_server: ModelServer
) -> None:
    heard = await hear(recording, 30, run=run, server=server)
    assert (heard.why, model_server.recordings) == ("budget", [])


async def test_what_is_not_fetched_costs_nothing_and_a_silent_server_a_request(
    server: AudioServer, model_server: ModelServer
) -> None:
    run = Run()
    heard = await hear(gone, 3, run=run, server=server)
    assert (heard.why, run.ledger.requests) == ("not_fetched", 0)
    model_server.hear(hang(30), hang(30))
    heard = await hear(recording, 3, run=run, server=server)
    assert (heard.why, run.ledger.requests) == ("ModelUnavailable", 1)


async def test_the_beginning_of_a_long_answer_is_read_aloud(
    server: AudioServer, model_server: ModelServer
) -> None:
    assert (await read_aloud("a" * 9000, Run(), server)).startswith(b"OggS")
    assert len(model_server.spoken[0]["input"]) == LONGEST_ALOUD
