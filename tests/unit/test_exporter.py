"""The exporter's queue: what is delivered, tried again, dropped and counted. No clock is read."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from agent.engine.retry import Backoff
from agent.tracing.exporter import (
    LARGEST_BATCH,
    LONGEST_QUEUE,
    LONGEST_RETRY_AFTER,
    Exporter,
    PartialSuccess,
    RateLimitedLogger,
    Rejected,
    RetryLater,
)
from agent.tracing.recorder import Recorder, TraceRecord

PATIENCE = 30.0
"""Seconds after which a test that waits for an event has failed."""


@dataclass
class Server:
    """Takes batches one at a time: each waits until it may be answered, by `answer`."""

    answer: Callable[[Sequence[TraceRecord]], None] = lambda traces: None
    batches: list[list[str]] = field(default_factory=list)
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    may_answer: threading.Event = field(default_factory=threading.Event)

    def send(self, traces: Sequence[TraceRecord]) -> None:
        self.batches.append([str(trace.root.input) for trace in traces])
        self.asked.release()
        assert self.may_answer.wait(PATIENCE)
        self.answer(traces)

    def wait(self) -> None:
        """Wait for the next batch."""
        assert self.asked.acquire(timeout=PATIENCE)


def refuse(traces: Sequence[TraceRecord]) -> None:
    raise Rejected("status 401")


def fail(traces: Sequence[TraceRecord]) -> None:
    raise RetryLater("status 503")


@contextmanager
def exporting(server: Server) -> Iterator[Exporter]:
    exporter = Exporter(
        server.send, where="a server", gap_seconds=0.001, backoff=Backoff(0.001, 0.002)
    )
    try:
        yield exporter
    finally:
        server.may_answer.set()
        exporter.close(time.monotonic() + PATIENCE)
        exporter._thread.join(PATIENCE)


def record(exporter: Exporter, traces: int, children: int = 1) -> None:
    """Turns of a root and so many spans below it, numbered."""
    recorder = Recorder(exporter)
    for number in range(traces):
        with recorder.turn(input=str(number), session="s", user="u") as root:
            for _ in range(children):
                with root.child("tool.a", "tool"):
                    pass


@pytest.mark.parametrize("answer", [refuse, fail], ids=["refused", "not now"])
def test_whoever_stops_sends_nothing_more_after_a_failure_and_counts_what_is_left(
    answer: Callable[[Sequence[TraceRecord]], None],
) -> None:
    server = Server(answer)
    with exporting(server) as exporter:
        record(exporter, 1)
        server.wait()
        record(exporter, 5 * LARGEST_BATCH)
        closing = threading.Thread(target=exporter.close, args=[time.monotonic() + PATIENCE])
        closing.start()
        while not exporter._closing:
            time.sleep(0.001)
        server.may_answer.set()
        closing.join(PATIENCE)
        assert len(server.batches) == 1
        assert exporter.dropped_spans == 2 * (5 * LARGEST_BATCH + 1)


def test_what_is_left_when_the_time_is_over_is_counted_and_never_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server()
    with exporting(server) as exporter:
        exporter._limited_log = RateLimitedLogger(clock=iter([0.0, 1.0]).__next__)
        record(exporter, 1)
        server.wait()
        record(exporter, 3 * LARGEST_BATCH)
        exporter.close(time.monotonic())
        assert exporter.dropped_spans == 2 * 3 * LARGEST_BATCH
    assert server.batches == [["0"]]
    assert exporter.dropped_spans == 2 * 3 * LARGEST_BATCH
    assert caplog.messages == [
        "Traces were still on their way to a server at the end, some may be lost"
    ]


def test_what_fails_at_the_end_of_the_time_is_counted_once() -> None:
    server = Server(fail)
    with exporting(server) as exporter:
        record(exporter, 1)
        server.wait()
        record(exporter, 2)
        exporter.close(time.monotonic())
    assert exporter.dropped_spans == 6


def test_everything_left_is_sent_before_an_end_in_time() -> None:
    server = Server()
    server.may_answer.set()
    with exporting(server) as exporter:
        record(exporter, 3 * LARGEST_BATCH)
    assert [number for batch in server.batches for number in batch] == [
        str(number) for number in range(3 * LARGEST_BATCH)
    ]
    assert exporter.dropped_spans == 0


def test_a_trace_that_ends_after_the_end_is_counted() -> None:
    server = Server()
    with exporting(server) as exporter:
        exporter.close(time.monotonic() + PATIENCE)
        record(exporter, 1)
        assert exporter.flush(PATIENCE)
    assert (server.batches, exporter.dropped_spans) == ([], 2)


def test_a_batch_that_is_not_taken_now_is_sent_again_in_its_order() -> None:
    answers = iter([fail, fail])

    def fails_twice(traces: Sequence[TraceRecord]) -> None:
        for answer in answers:
            answer(traces)

    server = Server(fails_twice)
    server.may_answer.set()
    with exporting(server) as exporter:
        record(exporter, 1)
        assert exporter.flush(PATIENCE)
    assert (server.batches, exporter.dropped_spans) == ([["0"]] * 3, 0)


def test_a_full_queue_lets_the_oldest_go() -> None:
    server = Server()
    with exporting(server) as exporter:
        record(exporter, 1)
        server.wait()
        record(exporter, LONGEST_QUEUE // 2 + 3)
        assert exporter.dropped_spans == 6
    assert server.batches[1][0] == "3"


def test_one_bad_trace_costs_itself_alone_and_what_is_taken_in_part_is_counted() -> None:
    def picky(traces: Sequence[TraceRecord]) -> None:
        if "6" in [trace.root.input for trace in traces]:
            raise ValueError("unreadable")
        if "0" in [trace.root.input for trace in traces]:
            raise PartialSuccess(1)

    server = Server(picky)
    with exporting(server) as exporter:
        record(exporter, 10)
        server.may_answer.set()
        assert exporter.flush(PATIENCE)
    assert exporter.dropped_spans == 3


def test_a_server_is_left_alone_as_long_as_it_asks_and_five_minutes_at_most() -> None:
    now = [1000.0]
    exporter = Exporter(
        lambda traces: None, where="a server", gap_seconds=0.25, clock=lambda: now[0]
    )
    exporter.close(time.monotonic() + PATIENCE)
    for asked, left_alone in ((7, 7), (7_000, LONGEST_RETRY_AFTER)):
        exporter._put_back([], RetryLater("status 429", retry_after=asked).retry_after)
        assert exporter._pause() == left_alone
    exporter._settle()
    now[0] += LONGEST_RETRY_AFTER
    assert exporter._pause() == 0.25


def test_those_who_depend_on_one_server_warn_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    limited_log = RateLimitedLogger(lambda: now[0])
    log = logging.getLogger("a part")
    for now[0] in (0, 1, 59.9, 60, 61):
        limited_log.warning(log, f"it is down at {now[0]}")
    assert caplog.messages == ["it is down at 0", "it is down at 60"]
