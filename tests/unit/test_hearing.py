"""The cost of voices, and when none is heard; the server is doubled."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from agent.engine.run import Ledger, Limits, Run
from agent.senses.sent_files import Unusable
from agent.senses.speech import AudioServer, hear
from tests.doubles.model_server import ModelServer, hang


@pytest.fixture
async def server(model_server: ModelServer) -> AsyncIterator[AudioServer]:
    async with httpx2.AsyncClient() as http:
        yield AudioServer(http=http, model="w", base_url=model_server.base_url, timeout_seconds=0.3)


async def recording() -> bytes:
    return b"OggS"


async def gone() -> bytes:
    raise Unusable("not_fetched")


async def test_with_a_budget_used_up_nothing_is_asked(
    server: AudioServer, model_server: ModelServer
) -> None:
    for used_up in (Run(ledger=Ledger(cost_usd=1)), Run(limits=Limits(requests=0))):
        heard = await hear(recording, 30, run=used_up, server=server)
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
