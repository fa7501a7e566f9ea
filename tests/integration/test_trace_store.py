"""The local store of traces, on both databases."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from agent.tracing.records import OpenSpan
from bot.turn import Delivery, trace_delivery
from db.engine import Sessions
from db.export_queue import RowQueue
from db.models import TraceRow
from db.repositories.retention import Retention
from db.traces import SqlTraceStore, TraceRows
from tests.traces import NOON, bare_trace, retried_trace, save_traces

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def store(sessions: Sessions) -> SqlTraceStore:
    return SqlTraceStore(sessions, now=lambda: NOON)


def firsts(found: Sequence[TraceRow]) -> str:
    """The first digits of the ids."""
    return "".join(trace.trace_id[0] for trace in found)


async def test_a_trace_is_stored_completely_except_for_masked_names(
    store: SqlTraceStore,
) -> None:
    trace = retried_trace()
    await save_traces(store, [trace, bare_trace("2" * 32)])
    await save_traces(store, [trace])
    assert await store.get(trace.trace_id) == replace(trace, names=())
    summary, _ = await store.list_summaries(9)
    assert (summary.outcome, summary.level) == ("fallback", "WARNING")
    assert (summary.cost_usd, summary.error_types) == (
        0.0042,
        ["grounding", "model_error"],
    )
    assert summary.question == "a red for lamb under 25"


async def test_the_delivery_is_added_to_a_trace_that_stays_as_it_was_packed(
    store: SqlTraceStore,
) -> None:
    trace = bare_trace("1" * 32)
    trace.names = ("Ada",)
    await save_traces(store, [trace])
    [packed] = await records(store)
    root = OpenSpan(trace, trace.root)
    trace_delivery(
        root, Delivery(requests=2, error="network", texts=("For Ada: ada@example.com",))
    )
    trace.root.output = "not packed again"
    delivered = await store.rows.prepare_delivery(trace)
    async with store.sessions.begin() as session:
        assert await store.rows.save_delivery(session, delivered, NOON)
    assert await records(store) == [packed]
    stored = await store.get("1" * 32)
    assert stored.spans[-1].output == "For [name]: [email]"
    assert (stored.root.output, stored.root.level) == (None, "ERROR")
    [summary] = await store.list_summaries(9, failed=True)
    assert summary.error_types == ["network"]


async def records(store: SqlTraceStore) -> list[bytes]:
    async with store.sessions() as session:
        return [*await session.scalars(select(TraceRow.record))]


async def test_unstorable_characters_are_removed(store: SqlTraceStore) -> None:
    trace = bare_trace("1" * 32, question="a\x00b \ud83d \x1b[2J")
    trace.root.output = {"\x00k": object, "said": ("\ud800", float("nan"))}
    await save_traces(store, [trace])
    root = (await store.get("1" * 32)).root
    assert (root.input, root.output) == (
        "ab ? \x1b[2J",
        {"k": "<class 'object'>", "said": ["?", None]},
    )


async def test_a_unique_id_prefix_finds_a_trace(store: SqlTraceStore) -> None:
    await save_traces(
        store, [bare_trace("ab1" + "0" * 29), bare_trace("ab2" + "0" * 29)]
    )
    assert (await store.get("AB1")).trace_id == "ab1" + "0" * 29
    with pytest.raises(
        LookupError, match=r"more than one trace begins with 'ab': ab10.*, ab20"
    ):
        await store.get("ab")
    for nobody in ("c", "%", "_b1"):
        with pytest.raises(LookupError, match="there is no trace"):
            await store.get(nobody)


async def test_old_traces_are_deleted_and_unsent_ones_counted(
    sessions: Sessions,
) -> None:
    store = SqlTraceStore(sessions, lambda: NOON, TraceRows(is_exported=True))
    await save_traces(
        store, [bare_trace(f"{age}" * 32, NOON - age * DAY) for age in range(6)]
    )
    assert await Retention(sessions, lambda: NOON).delete_traces(4 * DAY + HOUR) == 1
    assert firsts(await store.list_summaries(9)) == "01234"
    assert await RowQueue(sessions, TraceRow).count_by_state() == {"waiting": 5}
