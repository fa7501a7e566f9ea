"""Langfuse refuses connections, never answers, or answers with errors: nobody waits for it."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

import pytest

from agent.tracing.exporter import LARGEST_BATCH, LONGEST_QUEUE, RetryLater
from agent.tracing.langfuse.traces import LangfuseSender, Origin, langfuse_sink
from agent.tracing.recorder import Recorder
from bot.metrics import Metrics
from tests.doubles.otlp import Mode, OtlpReceiver
from tests.doubles.server import eventually
from tests.traces import bare_trace

SECRET = "sk-lf-secret"
SPANS = 8
TROUBLES = ("refused", "black_hole", "503", "500", "401")
Trouble = Literal["refused", "black_hole", "503", "500", "401"]


@contextmanager
def server(trouble: Trouble) -> Iterator[str]:
    """The address of a Langfuse that is in trouble."""
    if trouble == "refused":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            yield f"http://127.0.0.1:{free.getsockname()[1]}"
        return
    mode: Mode = trouble
    with OtlpReceiver(mode) as receiver:
        yield receiver.base_url


def turn(tracer: Recorder) -> None:
    """A turn with nothing but its trace."""
    with tracer.turn(input="a red for lamb", session="s", user="u") as root:
        for number in range(SPANS - 1):
            with root.child("llm.answer", "generation", input=[{"role": "user"}]) as span:
                span.update(output="{not json", metadata={"step": number})
        root.score("outcome", "answered", "CATEGORICAL")


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_no_turn_waits_nothing_grows_and_all_that_is_lost_is_counted(
    trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    turns = LONGEST_QUEUE // SPANS + 2 * LARGEST_BATCH
    with server(trouble) as url:
        tracer = Recorder(langfuse_sink("pk-lf-public", SECRET, url))
        metrics = Metrics(lambda: tracer.dropped_spans)
        for _ in range(turns):
            turn(tracer)
        assert tracer.dropped_spans >= SPANS * LARGEST_BATCH
        await tracer.close()
    # Of a batch that is on its way when the process stops nobody knows whether it was taken.
    on_its_way = SPANS * LARGEST_BATCH if trouble == "black_hole" else 0
    dropped = tracer.dropped_spans
    assert turns * SPANS - on_its_way <= dropped <= turns * SPANS
    shown = f"sommelier_spans_dropped_total {float(dropped)}"
    assert shown in metrics.text().decode().splitlines()
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) <= 1, [each.getMessage() for each in said]
    assert SECRET not in caplog.text


async def test_a_turn_says_nothing_about_a_dead_server_more_than_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with OtlpReceiver("503") as receiver:
        sink = langfuse_sink(receiver.public_key, receiver.secret_key, receiver.base_url)
        tracer = Recorder(sink)
        turn(tracer)
        await eventually(lambda: len(receiver.requests) >= 2, seconds=60, otherwise=str)
        await tracer.close()
    said = [r.getMessage() for r in caplog.records if r.name == "agent.tracing.exporter"]
    assert said == ["Traces were not delivered to Langfuse (status 503), trying again later"]


@contextmanager
def dripping() -> Iterator[str]:
    """The address of a server that answers byte by byte, and hardly comes to an end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip(client: socket.socket) -> None:
            with suppress(OSError), client:
                client.recv(65536)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n")
                for _ in range(9000):
                    client.sendall(b" ")
                    time.sleep(0.02)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=drip, args=listening.accept()[:1], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_an_answer_that_takes_too_long_is_given_up() -> None:
    with dripping() as url:
        sender = LangfuseSender(Origin("pk"), SECRET, url, lambda trace: trace, seconds=0.2)
        for _ in range(2):
            with pytest.raises(RetryLater, match=r"no whole answer within 0\.2 s"):
                sender.send([bare_trace("1" * 32)])
        sender.close()


async def test_what_is_on_its_way_when_the_process_stops_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with dripping() as url:
        tracer = Recorder(langfuse_sink("pk-lf-public", SECRET, url))
        turn(tracer)
        await asyncio.sleep(0.7)
        await tracer.close()
    assert caplog.messages == [
        "Traces were still on their way to Langfuse at the end, some may be lost"
    ]
