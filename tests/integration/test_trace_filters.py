"""The questions of docs/admin.md: the filter of each is tried on a server, and here."""

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.tracing.recorder import Recorder
from agent.tracing.records import TraceRecord
from agent.turn import Reply, record_turn
from db.engine import Sessions, create_engine
from db.models import TurnRow
from db.records import EndedTurn
from db.repositories.traces import SqlTraceStore, TraceRows
from db.repositories.turns import FeedbackRepository, TurnRepository
from tests.commands import empty_home, sommelier_here
from tests.doubles.otlp import OtlpReceiver, Span
from tests.traces import export

DOCS = (Path(__file__).parents[2] / "docs" / "admin.md").read_text("utf-8")
ROWS = re.findall(r"^\| [^|]+\? \| ((?:Traces|Observations): [^|]+?) \| `([^`]+)` \|$", DOCS, re.M)
"""The filter in Langfuse and the options of `sommelier traces list` for each question."""
CONDITION = re.compile(r"([^`]+?)(?: `([^`]+)`)? (?:any of|=) `([^`]+)`")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def turn(
    number: int,
    reply: Reply = Reply(text="Yes."),  # noqa: B008 - frozen
    *,
    model: str = "gpt-4o",
    first: str = "",
    tool_error: str = "",
    mode: str = "json_object",
    **root: object,
) -> TraceRecord:
    known = {name: str(root.pop(name, name[0])) for name in ("session", "user")}
    trace = TraceRecord(f"{number:032x}", **known, name=str(root.pop("name", "chat")))  # type: ignore[arg-type]
    with Recorder().turn(trace, "a red?") as span:
        for asked in dict.fromkeys([first or model, model]):
            with span.child("llm.answer", "generation", metadata={"model": asked}) as answer:
                answer.update(metadata={"mode": mode}, level="ERROR" if asked != model else None)
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
    turn(10, name="find"),
    turn(11, session="1f2e3d4c5b6a7988"),
    turn(12, user="8897a6b5c4d3e2f1"),
    turn(13, model="gpt-4o-mini", first="gpt-4o"),
    turn(14, mode="json_schema"),
    turn(15, Reply(text="Ok.", retries=2, error_types=("semantic", "grounding"))),
    turn(16, Reply(text="Half.", outcome="salvaged", retries=2, error_types=("schema",) * 3)),
    turn(17, Reply(text="Please call ...", outcome="care")),
]
EXPECTED = {
    "--error": {2, 7},
    "--failed": {2, 3, 7},
    "--tag fallback": {3, 13},
    "--tag retried": {4, 15, 16},
    "--tag error:grounding": {4, 15},
    "--tag tool_error:search_wines": {5},
    "--tag resumed": {6},
    "--tag send_error:unreachable": {7},
    "--disliked": {8},
    "--where outcome=refused": {9},
    "--where outcome=failed": {2},
    "--where outcome=salvaged": {16},
    "--where outcome=care": {17},
    "--where name=find": {10},
    "--where session=1f2e3d4c5b6a7988": {11},
    "--where user=8897a6b5c4d3e2f1": {12},
    "--tag model:gpt-4o-mini": {13},
    "--tag mode:json_schema": {14},
}


async def fill(url: str, server: OtlpReceiver) -> None:
    """Store the turns, and have them and a dislike arrive on the server."""
    engine = create_engine(url)
    sessions, rows = Sessions(engine), TraceRows(exported=True)
    await SqlTraceStore(sessions, rows=rows).save(TRACES)
    record = TurnRow(turn_id=8, chat_id=1, user_id=1, at=NOW, outcome="answered")
    record = replace(record, trace_id=TRACES[7].trace_id, root_id=TRACES[7].root.span_id)
    await TurnRepository(sessions).save(EndedTurn(record))
    feedback = FeedbackRepository(sessions, rows=rows)
    await feedback.rate(8, "liked")
    await feedback.rate(8, "disliked")
    assert await export(sessions, server) == 0
    await engine.dispose()


@dataclass(frozen=True)
class World:
    """The turns in the local store and on a server."""

    environment: dict[str, str]
    server: OtlpReceiver

    def listed(self, options: str) -> set[int]:
        done = sommelier_here(
            *["traces", "list", "--json", "--limit", "100", *options.split()],
            environment=self.environment,
        )
        assert done.returncode == 0, done.stderr
        return {int(summary["trace_id"], 16) for summary in json.loads(done.stdout)}

    def filtered(self, text: str) -> set[int]:
        """Return the traces that a filter of Langfuse's tables finds."""
        table, _, conditions = text.partition(": ")
        spans = [span for span in self.server.spans if table != "Traces" or not span.parent_id]
        for condition in conditions.split("; "):
            column, key, value = CONDITION.fullmatch(condition).groups()  # type: ignore[union-attr]
            wanted = set(value.split(", "))
            spans = [span for span in spans if wanted & set(self.values(span, column, key))]
        return {int(span.trace_id, 16) for span in spans}

    def values(self, span: Span, column: str, key: str) -> list[str]:
        if column.startswith("Scores"):
            named = (score for score in self.server.scores if score["name"] == key)
            scores = [score["value"] for score in named if score["traceId"] == span.trace_id]
            return [f"{value:g}" if isinstance(value, float) else value for value in scores]
        if column == "Tags":
            return span.tags
        trace_name = span.attributes["langfuse.trace.name"]
        name = span.name if span.parent_id or key else trace_name
        columns = {"Level": span.level, "Session ID": span.session, "User ID": span.user}
        return [span.name, str(name)] if column == "Name" else [str(columns[column])]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, stocked: Path) -> Iterator[World]:
    home = tmp_path_factory.mktemp("filters")
    shutil.copytree(stocked, home / "data")
    (database,) = home.rglob("*.sqlite3")
    with OtlpReceiver() as server:
        asyncio.run(fill(f"sqlite+aiosqlite:///{database}", server))
        yield World(empty_home(home), server)


@pytest.mark.parametrize(("filter", "options"), ROWS)
def test_a_question_of_the_docs_finds_the_same_in_langfuse_and_here(
    filter: str, options: str, world: World
) -> None:
    assert world.filtered(filter) == EXPECTED[options]
    assert world.listed(options) == EXPECTED[options]


async def test_every_question_is_asked_and_the_root_says_which_model_answered(
    world: World,
) -> None:
    assert sorted(options for _, options in ROWS) == sorted(EXPECTED)
    roots = {int(span.trace_id, 16): span for span in world.server.spans if not span.parent_id}
    metadata = roots[13].metadata
    assert (metadata["model"], metadata["fallback"]) == ("gpt-4o-mini", "yes")
    assert (roots[1].metadata["fallback"], roots[6].metadata["resumed"]) == ("no", 2)
