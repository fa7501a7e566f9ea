"""The questions of docs/admin.md: each filter is tried on an old server, a new one, and here."""

import asyncio
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.tracing.recorder import Recorder
from agent.tracing.records import TraceRecord
from agent.turn import Reply
from agent.turn_trace import record_turn
from bot.commands.doctor import check_tracing
from config import load_settings
from db.engine import Sessions, create_engine
from db.records import TurnRecord
from db.repositories.traces import SqlTraceStore, TraceRows
from db.repositories.turns import FeedbackRepository, TurnRepository
from tests.commands import empty_home, sommelier_here
from tests.doubles.langfuse_filters import matching
from tests.doubles.otlp import OtlpReceiver, Span
from tests.traces import export

DOCS = (Path(__file__).parents[2] / "docs" / "admin.md").read_text("utf-8")
ROW = re.compile(
    r"^\| (?P<question>[^|]+\?) \| (?P<filter>(?:Traces|Observations): [^|]+?) "
    r"\| `(?P<here>[^`]+)` \|$",
    re.M,
)
ROWS = [found.groupdict() for found in ROW.finditer(DOCS)]
"""Question, filter and options of `sommelier traces list`."""
OLD, NEW = (4, 16), (4, 59)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def turn(number: int, *, name: str = "chat", session: str = "s", user: str = "u") -> TraceRecord:
    """A turn that went well, answered by the first model."""
    return told(number, Reply(text="Yes."), name=name, session=session, user=user)


def told(
    number: int,
    reply: Reply,
    *,
    model: str = "gpt-4o",
    first: str = "",
    tool_error: str = "",
    send_error: str = "",
    resumed: int = 0,
    mode: str = "json_object",
    **known: str,
) -> TraceRecord:
    names = {"session": "s", "user": "u", "name": "chat"} | known
    root = Recorder().turn(input="a red?", trace_id=f"{number:032x}", **names)  # type: ignore[arg-type]
    with root as span:
        for asked in dict.fromkeys([first or model, model]):
            with span.child("llm.answer", "generation", metadata={"model": asked}) as answer:
                answer.update(metadata={"mode": mode}, level="ERROR" if asked != model else None)
        if tool_error:
            with span.child(f"tool.{tool_error}", "tool") as tool:
                tool.update(level="ERROR", metadata={"error_type": "ToolError"})
        record_turn(span, reply)
        if send_error:
            span.update(level="ERROR", metadata={"send_error": send_error})
        if resumed:
            span.update(metadata={"resumed": resumed})
    return root.trace


TRACES = [
    turn(1),
    told(2, Reply(text="Sorry.", outcome="failed", error_types=("ValueError",))),
    told(3, Reply(text="By rules.", outcome="fallback", error_types=("model_error",))),
    told(4, Reply(text="Ok.", retries=1, error_types=("grounding",))),
    told(5, Reply(text="Ok."), tool_error="search_wines"),
    told(6, Reply(text="Ok."), resumed=2),
    told(7, Reply(text="Ok."), send_error="unreachable"),
    turn(8),  # disliked
    told(9, Reply(text="No.", outcome="refused")),
    turn(10, name="find"),
    turn(11, session="1f2e3d4c5b6a7988"),
    turn(12, user="8897a6b5c4d3e2f1"),
    told(13, Reply(text="Ok."), model="gpt-4o-mini", first="gpt-4o"),
    told(14, Reply(text="Ok."), mode="json_schema"),
    told(15, Reply(text="Ok.", retries=2, error_types=("semantic", "grounding"))),
    told(16, Reply(text="Half.", outcome="salvaged", retries=2, error_types=("schema",) * 3)),
    told(17, Reply(text="Please call ...", outcome="care")),
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
    "--outcome refused": {9},
    "--outcome failed": {2},
    "--outcome salvaged": {16},
    "--outcome care": {17},
    "--name find": {10},
    "--session 1f2e3d4c5b6a7988": {11},
    "--user 8897a6b5c4d3e2f1": {12},
    "--tag model:gpt-4o-mini": {13},
    "--tag mode:json_schema": {14},
}


async def fill(url: str, servers: Sequence[OtlpReceiver]) -> None:
    """Store the turns, and have them and a dislike arrive on each server."""
    engine = create_engine(url)
    sessions, rows = Sessions(engine), TraceRows(exported=True)
    store = SqlTraceStore(sessions, rows=rows)
    feedback = FeedbackRepository(sessions, rows=rows)
    disliked = TRACES[7]
    known = {"trace_id": disliked.trace_id, "root_id": disliked.root.span_id}
    await TurnRepository(sessions).record(
        TurnRecord(turn_id=8, chat_id=1, user_id=1, at=NOW, outcome="answered", **known)  # type: ignore[arg-type]
    )
    for server in servers:
        await store.save(TRACES)
        await feedback.rate(8, "liked")
        await feedback.rate(8, "disliked")
        assert await export(sessions, server) == 0
    await engine.dispose()


@dataclass(frozen=True)
class World:
    """The same turns in the local store and on two servers."""

    environment: dict[str, str]
    old: OtlpReceiver
    new: OtlpReceiver

    def listed(self, *options: str) -> set[int]:
        done = sommelier_here(
            "traces", "list", "--json", "--limit", "100", *options, environment=self.environment
        )
        assert done.returncode == 0, done.stderr
        return {int(each["trace_id"], 16) for each in json.loads(done.stdout)}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, stocked: Path) -> Iterator[World]:
    home = tmp_path_factory.mktemp("filters")
    shutil.copytree(stocked, home / "data")
    (database,) = home.rglob("*.sqlite3")
    with OtlpReceiver(version=OLD) as old, OtlpReceiver(version=NEW) as new:
        asyncio.run(fill(f"sqlite+aiosqlite:///{database}", [old, new]))
        yield World(empty_home(home), old, new)


def found(server: OtlpReceiver, text: str) -> set[int]:
    return {int(trace_id, 16) for trace_id in matching(server, text)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["question"])
def test_a_question_of_the_docs_finds_the_same_everywhere(
    row: dict[str, str], world: World
) -> None:
    expected = EXPECTED[row["here"]]
    assert found(world.old, row["filter"]) == expected, "a server of version 4.16"
    assert found(world.new, row["filter"]) == expected, "a server of version 4.59"
    assert world.listed(*row["here"].split()) == expected, "sommelier traces list"


def test_every_question_is_asked() -> None:
    assert {row["here"] for row in ROWS} == set(EXPECTED)
    assert len(ROWS) == len(EXPECTED)


@pytest.mark.parametrize("is_old", [True, False])
async def test_doctor_tells_the_version_and_what_follows(is_old: bool, world: World) -> None:
    server = world.old if is_old else world.new
    settings = load_settings(
        None,
        {
            "LANGFUSE_PUBLIC_KEY": server.public_key,
            "LANGFUSE_SECRET_KEY": server.secret_key,
            "LANGFUSE_BASE_URL": server.base_url,
            "TRACE_USER_KEY": "a long random text",
        },
    )
    said = await check_tracing(settings)
    assert said.startswith(f"traces go to Sommelier, Langfuse 4.{16 if is_old else 59}.0")
    assert ("filter by tags and scores" in said) is is_old


def test_why_no_question_is_answered_by_metadata(world: World) -> None:
    by_metadata = "Traces: Metadata `retried` = `yes`"
    assert found(world.new, by_metadata) == EXPECTED["--tag retried"]
    assert found(world.old, by_metadata) == set()


async def test_the_root_says_which_model_answered_and_what_went_before(world: World) -> None:
    def root(number: int) -> Span:
        spans = (each for each in world.new.spans if int(each.trace_id, 16) == number)
        return next(each for each in spans if each.parent_id is None)

    assert root(13).metadata["model"] == "gpt-4o-mini"
    assert root(13).metadata["fallback"] == "yes"
    assert root(1).metadata["fallback"] == "no"
    assert root(6).metadata["resumed"] == 2
    assert {span.attributes["langfuse.trace.name"] for span in world.new.spans} == {"chat", "find"}
