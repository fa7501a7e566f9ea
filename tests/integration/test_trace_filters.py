"""The questions of docs/admin.md: the filter of each is tried on a server."""

import re
from pathlib import Path
from typing import Any

from agent.tracing.records import TraceRecord
from agent.turn import Reply, record_turn
from db.changes.ratings import RateTurn
from db.engine import Sessions
from db.models import TurnRow
from db.traces import SqlTraceStore, TraceRows
from tests.doubles.otlp import OtlpReceiver, Span
from tests.stored import make, store_turn
from tests.traces import NOON, deliver, export

DOCS = (Path(__file__).parents[2] / "docs" / "admin.md").read_text("utf-8")
FILTERS = re.findall(r"^\| [^|]+\? \| ([^|]+?) \|$", DOCS, re.M)
"""The filter in Langfuse for each question, in addition to the Name `turn`."""
CONDITION = re.compile(r"([^`]+?)(?: `([^`]+)`)? (?:any of|=) `([^`]+)`")


def turn(
    number: int,
    reply: Reply = Reply(text="Yes."),  # noqa: B008 - frozen
    *,
    model: str = "gpt-4o",
    first: str = "",
    tool_error: str = "",
    **root: object,
) -> TraceRecord:
    known = {name: str(root.pop(name, name[0])) for name in ("session", "user")}
    trace = TraceRecord(f"{number:032x}", **known, name=str(root.pop("name", "chat")))  # type: ignore[arg-type]
    with trace.open_root("a red?") as span:
        for asked in dict.fromkeys([first or model, model]):
            with span.child(
                "llm.answer", "generation", metadata={"model": asked}
            ) as answer:
                answer.update(level="ERROR" if asked != model else None)
        if tool_error:
            with span.child(f"tool.{tool_error}", "tool") as tool:
                tool.update(level="ERROR", metadata={"error_type": "ToolError"})
        record_turn(span, reply)
        span.update(level="ERROR" if "send_error" in root else None, metadata=root)
    return trace


TRACES = [
    turn(1),
    turn(2, Reply(text="Sorry.", outcome="failed", error_types=("ValueError",))),
    turn(3, Reply(text="By rules.", outcome="fallback", error_types=("model_error",))),
    turn(4, Reply(text="Ok.", retries=1, error_types=("grounding",))),
    turn(5, tool_error="search_wines"),
    turn(6, resumed=2),
    turn(7, send_error="unreachable"),
    turn(8),  # disliked
    turn(9, Reply(text="No.", outcome="refused")),
    turn(11, session="1f2e3d4c5b6a7988"),
    turn(12, user="8897a6b5c4d3e2f1"),
    turn(13, model="gpt-4o-mini", first="gpt-4o"),
    turn(15, Reply(text="Ok.", retries=2, error_types=("semantic", "grounding"))),
    turn(
        16,
        Reply(text="Half.", outcome="salvaged", retries=2, error_types=("schema",) * 3),
    ),
    turn(17, Reply(text="Please call ...", outcome="help")),
    turn(18, Reply(text="A red", outcome="stopped")),
]
EXPECTED = {
    "Status any of `ERROR`": {2, 7},
    "Status any of `ERROR, WARNING`": {2, 3, 7},
    "Trace Tags any of `fallback`": {3, 13},
    "Trace Tags any of `retried`": {4, 15, 16},
    "Trace Tags any of `error:grounding`": {4, 15},
    "Trace Tags any of `tool_error:search_wines`": {5},
    "Trace Tags any of `resumed`": {6},
    "Trace Tags any of `send_error:unreachable`": {7},
    "Boolean Scores `user_feedback` = `False`": {8},
    "Categorical Scores `outcome` any of `salvaged, refused, stopped, help`": {
        9,
        16,
        17,
        18,
    },
    "Session ID any of `1f2e3d4c5b6a7988`": {11},
    "User ID any of `8897a6b5c4d3e2f1`": {12},
    "Trace Tags any of `model:gpt-4o-mini`": {13},
}


def values(server: OtlpReceiver, root: Span, column: str, key: str) -> list[str]:
    """The values of a column of Langfuse's table of observations."""
    if column.endswith("Scores"):
        value = server.scores_of(root.trace_id).get(key, "")
        return [
            str(bool(value)) if column.startswith("Boolean") and value != "" else value
        ]
    columns: dict[str, list[Any]] = {
        "Status": [root.level],
        "Trace Tags": root.tags,
        "Session ID": [root.session],
        "User ID": [root.user],
    }
    return columns[column]


def filtered(server: OtlpReceiver, text: str) -> set[int]:
    """Return the traces whose root a filter of Langfuse's table finds."""
    column, key, value = CONDITION.fullmatch(text).groups()  # type: ignore[union-attr]
    wanted = set(value.split(", "))
    roots = [span for span in server.spans if span.name == "turn"]
    found = [root for root in roots if wanted & set(values(server, root, column, key))]
    return {int(root.trace_id, 16) for root in found}


async def test_every_question_of_the_docs_finds_its_turns_in_langfuse(
    sessions: Sessions, otlp_receiver: OtlpReceiver
) -> None:
    await deliver(otlp_receiver, sessions, *TRACES)
    record = TurnRow(turn_id=8, chat_id=1, user_id=1, at=NOON, outcome="answered")
    record.trace_id, record.root_id = TRACES[7].trace_id, TRACES[7].root.span_id
    rows = TraceRows(is_exported=True)
    await store_turn(sessions, record, rows=rows)
    await make(sessions, RateTurn(8, "liked"), rows=rows)
    await make(sessions, RateTurn(8, "disliked"), rows=rows)
    assert await export(sessions, otlp_receiver) == 0
    assert {text: filtered(otlp_receiver, text) for text in FILTERS} == EXPECTED
    roots = {
        int(span.trace_id, 16): span
        for span in otlp_receiver.spans
        if not span.parent_id
    }
    metadata = roots[13].metadata
    assert (metadata["model"], metadata["fallback"]) == ("gpt-4o-mini", True)
    assert (roots[1].metadata["fallback"], roots[6].metadata["resumed"]) == (False, 2)
    summaries = await SqlTraceStore(sessions).list_summaries(9, failed=True)
    assert {int(trace.trace_id, 16) for trace in summaries} == {2, 3, 7}
