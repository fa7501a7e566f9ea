"""`sommelier traces` with stored turns."""

import asyncio
import json
import shutil
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from agent.evals import dataset
from agent.turn import StoredMessage
from db.changes.ratings import ExplainRating, RateTurn
from db.engine import Sessions, create_engine
from db.models import TurnRow
from db.traces import SqlTraceStore
from tests.acceptance.test_end_to_end import traced_to
from tests.commands import empty_home, sommelier_here
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import eventually
from tests.processes import Process
from tests.stored import make, store_turn
from tests.traces import bare_trace, deliver, retried_trace, save_traces

ADA, CHAT = 8_123_456_789, 8_123_456_789
GOOD, RETRIED, FAILED = "1" * 32, "ab" * 16, "c" * 32
HOUR = timedelta(hours=1)


async def fill(url: str) -> None:
    """Store three turns, an hour apart; the second was disliked, the third failed."""
    now = datetime.now(UTC)
    engine = create_engine(url)
    sessions = Sessions(engine)
    for turn_id, trace_id, retries, question, answer in (
        (1, GOOD, 0, "hello", "Hello!"),
        (2, RETRIED, 1, "a red for lamb?", "Try the Guigal."),
        (3, FAILED, 2, "and a white?", "Sorry."),
    ):
        row = TurnRow(
            turn_id=turn_id,
            chat_id=CHAT,
            user_id=ADA,
            at=now - (4 - turn_id) * HOUR,
            outcome="answered",
            retries=retries,
            trace_id=trace_id,
            root_id="0" * 16,
        )
        said = (
            StoredMessage("user", question),
            StoredMessage("assistant", answer, ("guigal",)),
        )
        await store_turn(sessions, row, said)
    await make(sessions, RateTurn(2, "disliked"))
    await make(sessions, ExplainRating(2, "reason", "wrong_wine"))
    await make(
        sessions, ExplainRating(2, "comment", "I wanted a Rioja. ada@example.org")
    )
    await save_traces(
        SqlTraceStore(sessions),
        [
            bare_trace(GOOD, now - 3 * HOUR, question="hello \x1b[31m[bold]x"),
            retried_trace(RETRIED, now - 2 * HOUR),
            bare_trace(FAILED, now - HOUR, "ERROR", "and a white?"),
        ],
    )
    await engine.dispose()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, stocked: Path) -> dict[str, str]:
    """Return the settings of a machine with three turns, which tests only read."""
    home = tmp_path_factory.mktemp("filled")
    shutil.copytree(stocked, home / "data")
    (database,) = home.rglob("*.sqlite3")
    asyncio.run(fill(f"sqlite+aiosqlite:///{database}"))
    return empty_home(home)


def run(environment: dict[str, str], *arguments: str, status: int = 0) -> str:
    done = sommelier_here("traces", *arguments, environment=environment)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def test_the_list_shows_failing_turns_first(filled: dict[str, str]) -> None:
    header, *rows = run(filled, "list").splitlines()[:4]
    assert header.startswith("When (UTC)")
    assert [row.split()[2:4] for row in rows] == [
        [FAILED[:8], "ERROR"],
        [RETRIED[:8], "WARNING"],
        [GOOD[:8], "DEFAULT"],
    ]
    assert "a red for lamb under 25" in rows[1]
    assert "hello [31m[bold]x" in rows[2]


def test_the_list_can_be_filtered(filled: dict[str, str]) -> None:
    def listed(*options: str) -> list[str]:
        shown = run(filled, "list", *options)
        return [trace for trace in (FAILED, RETRIED, GOOD) if f" {trace[:8]} " in shown]

    assert listed("--failed") == [FAILED, RETRIED]
    assert listed("--days", "0.1", "--limit", "5") == [FAILED, RETRIED]


def test_a_turn_is_found_by_the_start_of_its_id_and_shown_with_its_rating(
    filled: dict[str, str],
) -> None:
    assert f"trace {FAILED}" in run(filled, "show", "last")
    page = run(filled, "show", "abab")
    assert f"trace {RETRIED}" in page
    assert "score user_feedback = 0 (I wanted a Rioja. [email])" in page
    assert "├ llm.answer [generation] 0.25 s · gpt-4o" in page
    assert '{"line": 9}' not in page
    assert '{"line": 9}' in run(filled, "show", "abab", "--full")
    unknown = run(filled, "show", "beef", status=1)
    assert unknown.startswith("sommelier: there is no trace 'beef' in the local store")


def test_disliked_turns_can_be_exported_and_evaluated(
    filled: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "disliked.jsonl"
    said = run(filled, "export", "--disliked", "--days", "7", str(file))
    assert said == f"1 turn written to {file}.\n"
    (line,) = file.read_text("utf-8").splitlines()
    assert str(ADA) not in line
    written = json.loads(line)
    assert (written["kind"], written["trace_id"]) == ("disliked", RETRIED)
    assert written["note"] == "wrong_wine: I wanted a Rioja. [email]"
    assert written["answer"] == "Try the Guigal."
    (conversation,) = dataset.read_conversations(file)
    assert conversation.messages == ("a red for lamb?",)
    assert [said.content for said in conversation.history] == ["hello", "Hello!"]
    run(filled, "export", str(file))
    kinds = [json.loads(line)["kind"] for line in file.read_text("utf-8").splitlines()]
    assert kinds == ["turn", "disliked", "turn"]


def test_refused_traces_are_shown_and_sent_again(
    stocked: Path, tmp_path: Path, otlp_receiver: OtlpReceiver
) -> None:
    shutil.copytree(stocked, tmp_path / "data")
    (database,) = tmp_path.rglob("*.sqlite3")
    otlp_receiver.refused_scores = {"outcome"}

    async def send() -> None:
        engine = create_engine(f"sqlite+aiosqlite:///{database}")
        await deliver(otlp_receiver, Sessions(engine), retried_trace())
        await engine.dispose()

    asyncio.run(send())
    settings = empty_home(tmp_path) | traced_to(otlp_receiver)
    refusal = "1 of the scores were refused: Langfuse answered HTTP 400: outcome is no score here"
    assert refusal in run(settings, "list")
    doctor = sommelier_here("doctor", environment=settings)
    assert refusal in doctor.stdout
    assert doctor.returncode == 1
    assert refusal in run(settings, "resend")
    otlp_receiver.refused_scores.clear()
    assert run(settings, "resend") == "1 sent again.\n"
    assert otlp_receiver.scores_of(retried_trace().trace_id)["outcome"] == "fallback"
    assert "refused" not in run(settings, "list")


async def test_the_admin_page_is_served_locally(filled: dict[str, str]) -> None:
    with Process("admin", "--port", "0", environment=filled) as process:
        await eventually(lambda: "\n" in process.shown)
        address = process.shown.split()[1]
        async with httpx.AsyncClient() as client:
            page = await client.get(address)
            assert (page.status_code, "a red for lamb?" in page.text) == (200, True)
            port = address.rpartition(":")[2]
            assert (await client.get(f"http://127.0.0.1:{port}")).status_code == 401
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
