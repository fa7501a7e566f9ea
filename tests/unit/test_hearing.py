"""The cost of transcriptions, and errors that prevent them; the server is a double."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from agent.engine.run import Limits, Run, Usage
from agent.senses.sent_files import UnusableFile
from agent.senses.speech import AudioServer, transcribe_voice
from tests.doubles.model_server import ModelServer, hang


@pytest.fixture
async def server(model_server: ModelServer) -> AsyncIterator[AudioServer]:
    async with httpx2.AsyncClient() as http:
        yield AudioServer(
            http=http, model="w", base_url=model_server.base_url, timeout_seconds=0.3
        )


async def recording() -> bytes:
    return b"OggS"


async def missing() -> bytes:
    raise UnusableFile("not_fetched")


async def test_without_a_remaining_budget_nothing_is_transcribed(
    server: AudioServer, model_server: ModelServer
) -> None:
    for run in (Run(usage=Usage(cost_usd=1)), Run(limits=Limits(requests=0))):
        transcript = await transcribe_voice(recording, 30, run=run, server=server)
        assert (transcript.error_type, model_server.recordings) == ("budget", [])


async def test_a_failed_download_costs_nothing_and_a_time_out_one_request(
    server: AudioServer, model_server: ModelServer
) -> None:
    run = Run()
    transcript = await transcribe_voice(missing, 3, run=run, server=server)
    assert (transcript.error_type, run.usage.requests) == ("not_fetched", 0)
    model_server.hear(hang(30), hang(30))
    transcript = await transcribe_voice(recording, 3, run=run, server=server)
    assert (transcript.error_type, run.usage.requests) == ("ModelUnavailable", 1)
