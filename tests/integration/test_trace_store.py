"""The local store of traces, on both databases, and what a trace is kept as."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.engine import Sessions
from db.records import TraceFilter, TraceSummary
from db.repositories.traces import (
    SqlTraceStore,
    TraceRows,
    packed,
    plain,
    trace_queue,
)
from tests.traces import NOON, SUMMARY, bare_trace, retried_trace


@given(
    st.recursive(
        st.none() | st.floats() | st.text() | st.binary() | st.tuples(st.text()) | st.datetimes(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=6,
    )
)
def test_any_value_becomes_json_that_a_database_takes_and_stays_as_it_is_then(
    value: object,
) -> None:
    kept = plain(value)
    text = json.dumps(kept, ensure_ascii=False, allow_nan=False).encode()
    assert b"\\u0000" not in text
    assert plain(json.loads(text)) == kept


@pytest.fixture
def store(sessions: Sessions) -> SqlTraceStore:
    return SqlTraceStore(sessions, now=lambda: NOON)


def ids(found: list[TraceSummary]) -> list[str]:
    return [each.trace_id for each in found]


class TestTraceStore:
    async def test_a_trace_comes_back_whole_but_for_the_names_to_mask(
        self, store: SqlTraceStore
    ) -> None:
        trace = retried_trace()
        await store.save([trace, bare_trace("2" * 32)])
        await store.save([trace])
        assert await store.get(trace.trace_id) == replace(trace, names=())
        assert len(await store.summaries()) == 2

    async def test_a_list_shows_what_the_turn_came_to(self, store: SqlTraceStore) -> None:
        await store.save([retried_trace()])
        (summary,) = await store.summaries()
        assert summary == SUMMARY
        assert summary.seconds == 1.83

    async def test_what_no_database_holds_is_kept_without_it(self, store: SqlTraceStore) -> None:
        trace = bare_trace("1" * 32, question="a\x00b \ud83d \x1b[2J")
        trace.root.output = {"\x00k": float("inf"), "said": "\ud800"}
        await store.save([trace])
        root = (await store.get("1" * 32)).root
        assert (root.input, root.output) == ("ab ? \x1b[2J", {"k": "inf", "said": "?"})

    async def test_failing_turns_come_first_then_the_newest(self, store: SqlTraceStore) -> None:
        hour = timedelta(hours=1)
        await store.save(
            [
                bare_trace("1" * 32, NOON - 4 * hour, "ERROR"),
                bare_trace("2" * 32, NOON - 3 * hour, "WARNING"),
                bare_trace("3" * 32, NOON - 2 * hour, "ERROR"),
                bare_trace("4" * 32, NOON - hour),
                bare_trace("5" * 32, NOON),
            ]
        )
        numbers = [trace_id[0] for trace_id in ids(await store.summaries())]
        assert numbers == ["3", "1", "2", "5", "4"]
        newest = await store.summaries(2, failing_first=False)
        assert [trace_id[0] for trace_id in ids(newest)] == ["5", "4"]
        assert [
            trace_id[0]
            for trace_id in ids(await store.summaries(which=TraceFilter(level="WARNING")))
        ] == ["3", "1", "2"]
        assert [
            trace_id[0] for trace_id in ids(await store.summaries(which=TraceFilter(level="ERROR")))
        ] == ["3", "1"]
        recent = await store.summaries(which=TraceFilter(since=NOON - 2 * hour))
        assert [trace_id[0] for trace_id in ids(recent)] == ["3", "5", "4"]
        assert await store.summaries(0) == []

    async def test_the_beginning_of_an_id_is_enough_if_it_is_the_only_one(
        self, store: SqlTraceStore
    ) -> None:
        await store.save([bare_trace("ab1" + "0" * 29), bare_trace("ab2" + "0" * 29)])
        assert (await store.get("AB1")).trace_id == "ab1" + "0" * 29
        with pytest.raises(
            LookupError, match=r"more than one trace begins with 'ab': ab10.*, ab20"
        ):
            await store.get("ab")
        for nobody in ("", "c", "%", "_b1", "ab1" + "0" * 30):
            with pytest.raises(LookupError, match="there is no trace"):
                await store.get(nobody)

    async def test_of_old_traces_the_words_go_first_and_the_numbers_later(
        self, store: SqlTraceStore
    ) -> None:
        day = timedelta(days=1)
        old, recent = bare_trace("1" * 32, NOON - 8 * day), bare_trace("2" * 32, NOON - day)
        await store.save([old, recent])
        assert await store.forget(7 * day, 30 * day, MUCH) == 0
        assert ids(await store.summaries()) == ["2" * 32]
        with pytest.raises(LookupError):
            await store.get("1" * 32)
        assert len(await store.traced(NOON - 30 * day)) == 2
        await store.forget(7 * day, 8 * day - timedelta(hours=1), MUCH)
        assert len(await store.traced(NOON - 30 * day)) == 1

    async def test_what_takes_too_much_room_is_forgotten_from_its_old_end_and_counted(
        self, sessions: Sessions
    ) -> None:
        store = SqlTraceStore(sessions, lambda: NOON, TraceRows(exported=True))
        traces = [bare_trace(f"{n:032x}", NOON - timedelta(minutes=n)) for n in range(6)]
        size = len(packed(traces[0]))
        await store.save(traces)
        week = timedelta(days=7)
        assert await store.forget(week, week, 3 * size + size // 2) == 3
        assert ids(await store.summaries()) == [each.trace_id for each in traces[:3]]
        assert await trace_queue(sessions).backlog() == {"waiting": 3, "refused": 3}


MUCH = 10**9  # bytes
