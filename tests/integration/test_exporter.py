"""Traces and scores on their way out of the database: none is lost, whatever happens."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

import pytest
from sqlalchemy import update

from agent.tracing.delivery import OtlpServer
from agent.tracing.langfuse_project import Refused, Unavailable
from agent.tracing.records import ScoreRecord, TraceRecord
from bot.metrics import Metrics
from bot.tracing import CLAIM_TIME, MAX_BATCH, Exporter
from db.changes.ratings import RateTurn
from db.engine import Sessions
from db.export_queue import TIME_ASIDE, RowQueue
from db.models import ScoreRow, TraceRow, TurnRow, Verdict
from db.repositories.turns import TurnRepository
from db.traces import DELETION_DELAY, SqlTraceStore, TraceRows
from tests.doubles.otlp import OtlpReceiver
from tests.stored import make, store_turn
from tests.traces import NOON, bare_trace, exporter_to, save_traces

EXPORTED = TraceRows(is_exported=True)
Rate = Callable[[Verdict | None], Awaitable[None]]
VERDICTS: tuple[Verdict | None, ...] = ("liked", None, "disliked")
WAITS = [2, 4, 8, 16, 32, 64, 128, 256, 300]


def trace(number: int) -> TraceRecord:
    made = bare_trace(f"{number:032x}", NOON + timedelta(seconds=number))
    made.scores["outcome"] = ScoreRecord("outcome", "answered", "CATEGORICAL")
    return made


@dataclass
class Clock:
    at: datetime = NOON + timedelta(hours=1)

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(sessions: Sessions, clock: Clock) -> SqlTraceStore:
    return SqlTraceStore(sessions, clock, EXPORTED)


@pytest.fixture
def queue(sessions: Sessions, clock: Clock) -> RowQueue:
    return RowQueue(sessions, TraceRow, clock)


@dataclass
class Server:
    """Accepts traces, and remembers which; `answer` may raise before it does."""

    answer: Callable[[TraceRecord], None] = lambda trace: None
    accepted: list[str] = field(default_factory=list)

    async def send_trace(self, trace: TraceRecord) -> None:
        self.answer(trace)
        self.accepted.append(trace.trace_id)

    async def send_score(self, score: object) -> None:
        pass

    def exporter(self, store: SqlTraceStore) -> Exporter:
        return Exporter(lambda: cast("OtlpServer", self), store.sessions, now=store.now)


@dataclass
class BadTrace:
    """Fails for one trace."""

    error: Exception

    def __call__(self, given: TraceRecord) -> None:
        if given.trace_id == trace(6).trace_id:
            raise self.error


async def test_two_replicas_send_all_that_waits_once_and_it_stays_readable(
    store: SqlTraceStore, queue: RowQueue
) -> None:
    traces = [trace(number) for number in range(3 * MAX_BATCH + 3)]
    await save_traces(store, traces)
    servers = [Server(), Server()]
    await asyncio.gather(*(server.exporter(store).send_due() for server in servers))
    accepted = servers[0].accepted + servers[1].accepted
    assert sorted(accepted) == [trace.trace_id for trace in traces]
    assert await queue.count_by_state() == {"sent": len(traces)}
    assert len(await store.list_summaries(200)) == len(traces)
    await save_traces(SqlTraceStore(store.sessions), [trace(1)])  # without a server
    assert await queue.claim(10, CLAIM_TIME) == []


async def test_rows_that_a_killed_process_claimed_are_sent_when_its_lease_ends(
    store: SqlTraceStore, sessions: Sessions, clock: Clock, otlp_receiver: OtlpReceiver
) -> None:
    await save_traces(store, [trace(1)])
    assert await RowQueue(sessions, TraceRow, clock).claim(10, CLAIM_TIME)
    async with exporter_to(otlp_receiver, sessions, clock) as exporter:
        assert await exporter.send_due() == 0
        assert otlp_receiver.spans == [], "another may be sending it"
        clock.at += CLAIM_TIME
        assert await exporter.send_due() == 0
    assert [span.trace_id for span in otlp_receiver.spans] == [trace(1).trace_id]
    assert [score["id"] for score in otlp_receiver.scores] == [
        f"{trace(1).trace_id}-outcome"
    ]


async def test_a_trace_that_changes_while_it_is_sent_is_sent_again(
    store: SqlTraceStore, queue: RowQueue, clock: Clock
) -> None:
    await save_traces(store, [trace(1)])
    claimed = await queue.claim(10, CLAIM_TIME)
    clock.at += timedelta(seconds=1)
    await save_traces(store, [trace(1)])
    await queue.settle(claimed)
    assert await queue.count_by_state() == {"waiting": 1}


async def test_a_trace_that_the_server_refuses_waits_for_resend(
    store: SqlTraceStore, queue: RowQueue
) -> None:
    await save_traces(store, [trace(number) for number in range(10)])
    server = Server(BadTrace(Refused("Langfuse answered HTTP 400: too long")))
    exporter = server.exporter(store)
    metrics = Metrics()
    exporter.on_loss = metrics.count_dropped_traces
    assert await exporter.send_due() == 0
    assert len(server.accepted) == len(set(server.accepted)) == 9
    assert await queue.count_by_state() == {"refused": 1, "sent": 9}
    refused = ("refused", 1, "Langfuse answered HTTP 400: too long")
    assert await queue.list_problems() == [refused]
    assert "sommelier_traces_dropped 1" in metrics.to_text()
    server.answer = lambda trace: None
    assert await queue.resend() == 1
    assert await exporter.send_due() == 0
    assert await queue.count_by_state() == {"sent": 10}
    assert await queue.list_problems() == []


async def test_a_trace_that_we_cannot_encode_is_set_aside_alone_and_tried_again(
    store: SqlTraceStore, queue: RowQueue, clock: Clock
) -> None:
    lost: list[int] = []
    await save_traces(store, [trace(number) for number in range(10)])
    server = Server(BadTrace(KeyError("a bug of ours")))
    exporter = server.exporter(store)
    exporter.on_loss = lost.append
    assert await exporter.send_due() == 0
    assert (len(server.accepted), lost) == (9, [])
    set_aside = ("waiting", 1, "it cannot be encoded (KeyError)")
    assert await queue.list_problems() == [set_aside]
    server.answer = lambda trace: None
    assert await exporter.send_due() == 0
    assert len(server.accepted) == 9
    clock.at += TIME_ASIDE
    assert await exporter.send_due() == 0
    assert await queue.count_by_state() == {"sent": 10}
    assert await queue.list_problems() == []


async def test_a_trace_that_cannot_be_read_costs_itself_alone(
    store: SqlTraceStore, sessions: Sessions, clock: Clock, otlp_receiver: OtlpReceiver
) -> None:
    await save_traces(store, [trace(1), trace(2)])
    async with sessions.begin() as session:
        broken = update(TraceRow).where(TraceRow.trace_id == trace(1).trace_id)
        await session.execute(broken.values(record=b"broken"))
    async with exporter_to(otlp_receiver, sessions, clock) as exporter:
        assert await exporter.send_due() == 0
        (problem,) = await exporter.traces.list_problems()
    assert problem == ("waiting", 1, "it cannot be encoded (error)")
    assert [span.trace_id for span in otlp_receiver.spans] == [trace(2).trace_id]


async def test_a_trace_that_cannot_be_masked_is_lost_and_its_turn_is_not(
    sessions: Sessions, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd:
        def __str__(self) -> str:
            raise ValueError("what somebody wrote")

    bad = trace(1)
    bad.root.output = Odd()
    turn = TurnRow(
        turn_id=1, chat_id=1, user_id=1, at=NOON, outcome="answered", seconds=1
    )
    await store_turn(sessions, turn, (), bad, EXPORTED)
    assert await TurnRepository(sessions).get(1) == turn
    assert caplog.messages == ["A trace cannot be stored: ValueError"]


async def test_trouble_is_waited_out_ever_longer_told_once_and_costs_nothing(
    store: SqlTraceStore, queue: RowQueue, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(trace: TraceRecord) -> None:
        raise Unavailable("the keys are not known (HTTP 401)")

    await save_traces(store, [trace(1)])
    server = Server(fail)
    exporter = server.exporter(store)
    waits = [await exporter.send_due() for _ in range(9)]
    assert all(
        most / 2 <= wait <= most for wait, most in zip(waits, WAITS, strict=True)
    ), waits
    told = "Traces wait, and are sent later: the keys are not known (HTTP 401)"
    assert caplog.messages == [told]
    server.answer = lambda trace: None
    assert await exporter.send_due() == 0
    assert await queue.count_by_state() == {"sent": 1}


@pytest.fixture
async def rate(sessions: Sessions, clock: Clock) -> Rate:
    """Rates the one turn of a bot, which is traced."""
    known, turn = (
        trace(1),
        TurnRow(turn_id=1, chat_id=1, user_id=1, at=NOON, outcome="answered"),
    )
    turn.trace_id, turn.root_id = known.trace_id, known.root.span_id
    await store_turn(sessions, turn, (), known, EXPORTED, clock)

    async def rate(verdict: Verdict | None) -> None:
        await make(sessions, RateTurn(1, verdict), rows=EXPORTED, now=clock)

    return rate


async def test_a_verdict_that_is_taken_back_and_given_again_has_another_id(
    rate: Rate, clock: Clock, sessions: Sessions, otlp_receiver: OtlpReceiver
) -> None:
    """Langfuse deletes some time after it was told to, whatever has the id by then."""
    seen = list[str]()
    for verdict in VERDICTS:
        await rate(verdict)
        clock.at += DELETION_DELAY
        async with exporter_to(otlp_receiver, sessions, clock) as exporter:
            assert await exporter.send_due() == 0
        feedback = (s for s in otlp_receiver.scores if s["name"] == "user_feedback")
        seen += [score["id"] for score in feedback]
    name = f"{trace(1).trace_id}-user_feedback"
    assert seen == [name, f"{name}-1"]


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_verdict_that_is_withdrawn_at_once_does_not_stay(
    rate: Rate,
    clock: Clock,
    sessions: Sessions,
    otlp_receiver: OtlpReceiver,
    is_restarted: bool,
) -> None:
    otlp_receiver.holds_scores = True
    async with exporter_to(otlp_receiver, sessions, clock) as exporter:
        await rate("disliked")
        assert await exporter.send_due() == 0
        await rate(None)
        if is_restarted:
            await RowQueue(sessions, ScoreRow, clock).resume()
        assert await exporter.send_due() == 0
        otlp_receiver.store_queued_scores()
        clock.at += DELETION_DELAY
        assert await exporter.send_due() == 0
    assert "user_feedback" not in {score["name"] for score in otlp_receiver.scores}


async def test_a_changed_verdict_does_not_overtake_the_one_that_is_being_sent(
    rate: Rate, clock: Clock, sessions: Sessions, otlp_receiver: OtlpReceiver
) -> None:
    scores = RowQueue(sessions, ScoreRow, clock)
    await rate("disliked")
    assert await scores.claim(10, CLAIM_TIME), "another replica sends it now"
    await rate("liked")
    assert await scores.claim(10, CLAIM_TIME) == []
    clock.at += CLAIM_TIME + timedelta(seconds=1)
    assert [row.value for row in await scores.claim(10, CLAIM_TIME)][-1] == 1


async def test_a_score_that_is_refused_keeps_the_words_of_the_server_and_is_sent_again(
    rate: Rate, clock: Clock, sessions: Sessions, otlp_receiver: OtlpReceiver
) -> None:
    otlp_receiver.refused_scores = {"outcome"}
    await rate("disliked")
    scores = RowQueue(sessions, ScoreRow, clock)
    async with exporter_to(otlp_receiver, sessions, clock) as exporter:
        assert await exporter.send_due() == 0
        assert await scores.count_by_state() == {"sent": 1, "refused": 1}
        refusal = "Langfuse answered HTTP 400: outcome is no score here"
        assert await scores.list_problems() == [("refused", 1, refusal)]
        otlp_receiver.refused_scores.clear()
        await scores.resend()
        assert await exporter.send_due() == 0
    names = {score["name"] for score in otlp_receiver.scores}
    assert names == {"outcome", "user_feedback"}
