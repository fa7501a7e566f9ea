"""Traces on their way out of the store: none lost, none twice, whatever the server and kill -9 do.

Time is virtual where seconds matter; the store is the real one.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from agent.engine.span import ScoreRecord, TraceRecord
from agent.repositories import TurnRecord
from agent.tracing.exporter import (
    LARGEST_BATCH,
    LEASE,
    Exporter,
    RateLimitedLogger,
    Unavailable,
)
from agent.tracing.langfuse import LangfuseClient, LangfuseTraces
from agent.tracing.otlp import Origin
from bot.metrics import Metrics
from db.engine import Sessions
from db.repositories.traces import SqlTraceStore, TraceRows
from db.repositories.turns import SqlFeedbackRepository, SqlTurnRepository
from tests.databases import migrated_sqlite
from tests.doubles.otlp import OtlpReceiver, spans_in
from tests.traces import NOON, bare_trace, export
from tests.virtual_time import VirtualTimeLoop, in_virtual_time

EXPORTED = TraceRows(exported=True)


def trace(number: int) -> TraceRecord:
    made = bare_trace(f"{number:032x}", NOON + timedelta(seconds=number))
    made.scores["outcome"] = ScoreRecord("outcome", "answered", "CATEGORICAL")
    return made


@dataclass
class Clock:
    at: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return NOON + timedelta(hours=1) + self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(sessions: Sessions, clock: Clock) -> SqlTraceStore:
    return SqlTraceStore(sessions, clock, EXPORTED)


@dataclass
class Server:
    """Takes traces, and remembers which; `answer` may raise before it does."""

    answer: Callable[[Sequence[TraceRecord]], int] = lambda traces: 0
    taken: list[str] = field(default_factory=list)
    requests: int = 0

    async def send(self, traces: Sequence[TraceRecord]) -> int:
        self.requests += 1
        refused = self.answer(traces)
        self.taken += [each.trace_id for each in traces]
        return refused


def fail(error: Exception) -> Callable[[Sequence[TraceRecord]], int]:
    def answer(traces: Sequence[TraceRecord]) -> int:
        raise error

    return answer


class TestStore:
    async def test_all_that_waits_is_sent_once_oldest_first_and_stays_readable(
        self, store: SqlTraceStore
    ) -> None:
        traces = [trace(number) for number in range(2 * LARGEST_BATCH + 3)]
        await store.save(traces)
        server = Server()
        exporter = Exporter(store, server.send, where="a server")
        assert await exporter.round() == 0
        assert await exporter.round() == 0
        assert sorted(server.taken) == [each.trace_id for each in traces]
        assert server.requests == 3
        assert (await store.backlog(), exporter.given_up) == ({"sent": len(traces)}, 0)
        assert len(await store.summaries(100)) == len(traces)

    async def test_without_a_place_to_send_them_traces_are_kept(self, sessions: Sessions) -> None:
        store = SqlTraceStore(sessions)
        await store.save([trace(1)])
        assert await store.claim(10, LEASE) == []
        assert await store.backlog() == {"kept": 1}

    async def test_two_replicas_never_send_the_same(self, store: SqlTraceStore) -> None:
        await store.save([trace(number) for number in range(100)])
        servers = [Server() for _ in range(2)]
        exporters = [Exporter(store, each.send, where="a server") for each in servers]
        await asyncio.gather(*(each.round() for each in exporters))
        taken = servers[0].taken + servers[1].taken
        assert len(taken) == len(set(taken)) == 100

    @pytest.mark.parametrize("step", ["claim", "spans", "settle"])
    async def test_a_kill_between_any_two_steps_loses_nothing_and_adds_nothing(
        self, store: SqlTraceStore, clock: Clock, otlp_receiver: OtlpReceiver, step: str
    ) -> None:
        """What a process that is killed leaves is what stood in the database at that moment."""
        await store.save([trace(1)])
        (claimed,) = await store.claim(10, LEASE)
        if step != "claim":
            scores, claimed.scores = claimed.scores, {}
            await send_to(otlp_receiver, claimed)
            claimed.scores = scores
        if step == "settle":
            await send_to(otlp_receiver, claimed)
        otlp_receiver.spans.clear()  # a span of the same id takes the place of the first
        assert await export(store, otlp_receiver) == 0
        assert otlp_receiver.spans == [], "another may be sending it"
        clock.at += LEASE
        assert await export(store, otlp_receiver) == 0
        assert [each.trace_id for each in otlp_receiver.spans] == [claimed.trace_id]
        assert [each["id"] for each in otlp_receiver.scores] == [f"{claimed.trace_id}-outcome"]
        assert await store.backlog() == {"sent": 1}

    async def test_what_was_being_sent_when_sending_stopped_is_due_at_once(
        self, store: SqlTraceStore
    ) -> None:
        sending = asyncio.Event()

        async def hang(traces: Sequence[TraceRecord]) -> int:
            sending.set()
            await asyncio.Event().wait()
            return 0

        await store.save([trace(1)])
        task = asyncio.create_task(Exporter(store, hang, where="a server").run())
        await sending.wait()
        task.cancel()
        await asyncio.wait([task])
        server = Server()
        assert await Exporter(store, server.send, where="a server").round() == 0
        assert server.taken == [trace(1).trace_id]

    async def test_a_turn_that_is_run_again_while_its_trace_is_sent_is_sent_again(
        self, store: SqlTraceStore, clock: Clock
    ) -> None:
        await store.save([trace(1)])
        claimed = await store.claim(10, LEASE)
        clock.at += timedelta(seconds=1)
        await store.save([trace(1)])
        await store.settle(claimed)
        assert await store.backlog() == {"waiting": 1}
        assert await store.seconds_until_due() == 0

    async def test_one_bad_trace_costs_itself_alone(self, store: SqlTraceStore) -> None:
        def picky(traces: Sequence[TraceRecord]) -> int:
            if any(each.trace_id == trace(6).trace_id for each in traces):
                raise Unavailable("HTTP 400", 400)
            return 0

        await store.save([trace(number) for number in range(10)])
        server = Server(picky)
        exporter = Exporter(store, server.send, where="a server")
        metrics = Metrics(lambda: exporter.given_up)
        assert await exporter.round() == 0
        assert len(server.taken) == len(set(server.taken)) == 9
        assert await store.backlog() == {"refused": 1, "sent": 9}
        assert b"sommelier_traces_dropped_total 1.0" in metrics.text()

    async def test_what_cannot_be_masked_costs_its_trace_and_never_the_turn(
        self, sessions: Sessions, caplog: pytest.LogCaptureFixture
    ) -> None:
        def prepare(found: TraceRecord) -> TraceRecord:
            raise ValueError("what somebody wrote")

        turns = SqlTurnRepository(sessions, rows=TraceRows(prepare, exported=True))
        turn = TurnRecord(turn_id=1, chat_id=1, user_id=1, at=NOON, outcome="answered", seconds=1)
        await turns.record(turn, (), trace(1))
        assert await turns.get(1) == turn
        assert caplog.messages == ["A trace cannot be kept: ValueError"]

    async def test_what_is_too_old_is_given_up_and_counted(
        self, store: SqlTraceStore, clock: Clock
    ) -> None:
        await store.save([trace(1), trace(2)])
        clock.at += timedelta(days=20)
        week = timedelta(days=7)
        assert await store.forget(week, timedelta(days=90), 10**9) == 2
        assert await store.backlog() == {"refused": 2}
        assert await store.claim(10, LEASE) == []


async def send_to(receiver: OtlpReceiver, *traces: TraceRecord) -> None:
    keys = receiver.public_key, receiver.secret_key
    client = LangfuseClient(*keys, receiver.base_url)
    await LangfuseTraces(client, Origin()).send(traces)
    await client.aclose()


class TestVerdicts:
    async def test_a_verdict_never_goes_before_its_trace(self, sessions: Sessions) -> None:
        store = SqlTraceStore(sessions, rows=EXPORTED)
        feedback, turns = (
            SqlFeedbackRepository(sessions),
            SqlTurnRepository(sessions, rows=EXPORTED),
        )
        known = trace(1)
        turn = TurnRecord(
            turn_id=1,
            chat_id=1,
            user_id=1,
            at=NOON,
            outcome="answered",
            seconds=1,
            trace_id=known.trace_id,
        )
        await turns.record(turn, (), known)
        await feedback.rate(1, "liked")
        arrived: list[str] = []

        async def send(traces: Sequence[TraceRecord]) -> int:
            if not up:
                raise Unavailable("HTTP 503", 503)
            arrived.append("trace")
            return 0

        async def deliver(_: object) -> None:
            arrived.append("verdict")

        exporter = Exporter(store, send, where="a server", feedback=feedback, deliver=deliver)
        up = False
        assert await exporter.round() > 0
        assert (arrived, await feedback.undelivered()) == ([], [])
        up = True
        assert await exporter.round() == 0
        assert arrived == ["trace", "verdict"]


class TestTrouble:
    async def test_wrong_keys_park_everything_with_one_line_and_lose_nothing(
        self, store: SqlTraceStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        await store.save([trace(number) for number in range(3)])
        server = Server(fail(Unavailable("Langfuse does not know the keys (HTTP 401)", 401)))
        exporter = Exporter(store, server.send, where="Langfuse")
        waits = [await exporter.round() for _ in range(6)]
        assert server.requests == 6
        assert all(wait >= 150 for wait in waits), waits
        assert max(waits) >= 1800
        assert caplog.messages == [
            "Traces were refused by Langfuse and wait in the store: "
            "Langfuse does not know the keys (HTTP 401)"
        ]
        server.answer = lambda traces: 0
        assert await exporter.round() == 0
        assert await store.backlog() == {"sent": 3}

    async def test_trouble_that_passes_is_waited_out_ever_longer_as_the_server_asks(
        self, store: SqlTraceStore
    ) -> None:
        await store.save([trace(1)])
        server = Server(fail(Unavailable("HTTP 503", 503)))
        exporter = Exporter(store, server.send, where="a server")
        waits = [await exporter.round() for _ in range(9)]
        assert all(most / 2 <= wait <= most for wait, most in zip(waits, WAITS, strict=True)), waits
        server.answer = fail(Unavailable("HTTP 429", 429, retry_after=7_000))
        exporter = Exporter(store, server.send, where="a server")
        assert await exporter.round() == 300

    def test_each_kind_of_trouble_is_told_once_a_minute(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        now = [0.0]
        limited_log = RateLimitedLogger(lambda: now[0])
        log = logging.getLogger("a part")
        for now[0] in (0, 1, 59.9, 60, 61):
            limited_log.warning(log, "down", f"it is down at {now[0]}")
            limited_log.warning(log, "prompts", f"no prompts at {now[0]}")
        assert caplog.messages == [
            *("it is down at 0", "no prompts at 0", "it is down at 60", "no prompts at 60")
        ]


WAITS = [2, 4, 8, 16, 32, 64, 128, 256, 300]


@dataclass
class SlowLangfuse:
    """Takes what it is sent at once, and says so `seconds` later."""

    loop: VirtualTimeLoop
    seconds: float
    arrived: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/traces"):
            self.arrived += [each.trace_id for each in spans_in(request.content)]
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        return httpx2.Response(202, json={})


@asynccontextmanager
async def virtual_store(loop: VirtualTimeLoop) -> AsyncIterator[SqlTraceStore]:
    engine = await migrated_sqlite(Path("virtual.sqlite3"))
    yield SqlTraceStore(Sessions(engine), loop.moment, EXPORTED)
    await engine.dispose()


@pytest.mark.parametrize(("seconds", "copies"), [(1, 1), (29, 1), (40, 2), (100, 3)])
def test_a_slow_server_gets_each_trace_once_or_as_often_as_it_takes_to_know_how_slow_it_is(
    seconds: float, copies: int
) -> None:
    async def work(loop: VirtualTimeLoop) -> None:
        server = SlowLangfuse(loop, seconds)
        transport = httpx2.MockTransport(server)
        client = LangfuseClient(
            "pk", "sk", "http://x", seconds=30, waits_longer=True, transport=transport
        )
        async with virtual_store(loop) as store:
            await store.save([trace(1)])
            send = LangfuseTraces(client, Origin()).send
            exporter = Exporter(store, send, where="Langfuse", look_seconds=60)
            running = asyncio.create_task(exporter.run())
            await asyncio.sleep(1200)
            assert server.arrived == [trace(1).trace_id] * copies
            await store.save([trace(2)])
            await asyncio.sleep(1200)
            running.cancel()
            assert server.arrived[copies:] == [trace(2).trace_id]
            assert await store.backlog() == {"sent": 2}
        assert server.most_at_once == 1
        await client.aclose()

    in_virtual_time(work)
