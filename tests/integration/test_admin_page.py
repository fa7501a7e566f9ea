"""The page of admins and the table of /stats: who sees them, and what they show."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent.engine.messages import Usage
from agent.tracing.recorder import Recorder
from agent.tracing.records import TraceRecord
from agent.turn import Outcome, Reply, StoredMessage, record_turn
from bot.admin.page import parts, stats_table
from bot.app import admin_page
from config import load_settings
from db.engine import Sessions
from db.models import TurnRow
from db.records import DayStats, EndedTurn, Stats
from db.repositories.turns import FeedbackRepository, TurnRepository
from tests.databases import migrated_sqlite
from tests.serving import Running, serving

TOKEN = "a-token-of-the-admin-0123456789"
ADMIN = ("anybody", TOKEN)
SCRIPT = "<script>alert(1)</script>"
QUESTIONS = (
    "a red for lamb, under 25 euros",
    f"what does sur lie mean? {SCRIPT}",
    "something dry and sparkling for oysters",
    "un rouge léger pour ce soir",
    "a bottle for my boss, up to 60 euros",
)
ANSWER = "Try the Guigal Crozes-Hermitage: Syrah, ripe and peppery."
KEPT: tuple[tuple[Outcome, int, tuple[str, ...], str], ...] = (
    ("answered", 0, (), "gpt-4o"),
    ("answered", 1, ("grounding",), "gpt-4o"),
    ("answered", 0, (), "gpt-4o"),
    ("fallback", 2, ("schema", "schema", "semantic", "exhausted"), "gpt-4o"),
    ("salvaged", 2, ("grounding", "semantic", "grounding"), "gpt-4o-mini"),
    ("answered", 0, (), "gpt-4o"),
    ("failed", 0, ("ValueError",), "gpt-4o"),
)


def traced(number: int, reply: Reply, model: str, ended: datetime) -> TraceRecord:
    """A turn that ended then, 2 s and a bit after it was accepted."""
    started = int((ended - timedelta(seconds=2 + number % 5)).timestamp() * 1e9)
    name = "ask" if number % 4 == 3 else "chat"
    trace = TraceRecord(f"{number + 1:032x}", "5e55", "0f0f", name=name)
    question = QUESTIONS[number % len(QUESTIONS)]
    with Recorder().turn(trace, question, started_ns=started) as span:
        with span.child("llm.plan", "generation", metadata={"model": model}) as plan:
            plan.update(model=model, usage=Usage(900, 40), cost_usd=0.002, started_ns=started)
            plan.update(ended_ns=started + 700_000_000)
        with span.child("llm.answer", "generation", metadata={"model": model}) as answer:
            answer.update(model=model, usage=Usage(1500, 200), cost_usd=0.006, started_ns=started)
            answer.update(ended_ns=started + 1_300_000_000)
        record_turn(span, reply)
        span.update(ended_ns=int(ended.timestamp() * 1e9))
    return span.trace


async def fill(sessions: Sessions, days: int = 30) -> None:
    """Some turns a day, one of them disliked."""
    turns, feedback, now = (
        TurnRepository(sessions),
        FeedbackRepository(sessions),
        datetime.now(UTC),
    )
    number = 0
    for day in range(days):
        for outcome, retries, errors, model in KEPT[: 3 + day * 5 % 7]:
            reply = Reply(text=ANSWER, outcome=outcome, retries=retries, error_types=errors)
            trace = traced(number, reply, model, now - timedelta(days=day, minutes=number))
            record = TurnRow(
                turn_id=number + 1,
                chat_id=1 + number % 5,
                user_id=1 + number % 5,
                at=now - timedelta(days=day, minutes=number),
                outcome=outcome,
                seconds=trace.root.seconds,
                requests=2,
                retries=retries,
                tokens=2640,
                cost_usd=0.008,
                error_types=[*errors],
                trace_id=trace.trace_id,
                root_id=trace.root.span_id,
            )
            said = (
                StoredMessage("user", str(trace.root.input)),
                StoredMessage("assistant", reply.text),
            )
            await turns.save(EndedTurn(record, said, trace))
            number += 1
    for turn_id in (2, 5, 9):
        await feedback.rate(turn_id, "disliked")
        await feedback.reason(turn_id, "wrong_wine")
    await feedback.comment(5, "I wanted a Rioja, not this. ada@example.org")
    await feedback.rate(1, "liked")


@pytest.fixture
async def sessions(tmp_path: Path) -> AsyncIterator[Sessions]:
    engine = await migrated_sqlite(tmp_path / "test.sqlite3")
    yield Sessions(engine)
    await engine.dispose()


@pytest.fixture
async def served(sessions: Sessions) -> AsyncIterator[Running]:
    settings = load_settings(None, {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"})
    router = admin_page(settings, sessions, SecretStr(TOKEN)).router()
    async with serving(routers=[router]) as running:
        yield running


async def test_only_who_has_the_token_sees_anything(served: Running) -> None:
    for path in ("/admin", f"/admin/traces/{1:032x}"):
        asked = await served.client.get(path)
        assert asked.status_code == 401
        assert asked.headers["www-authenticate"].startswith("Basic ")
        assert "Numbers" not in asked.text
        for wrong in (("admin", "wrong"), ("admin", ""), (TOKEN, "")):
            assert (await served.client.get(path, auth=wrong)).status_code == 401
        for header in (f"Bearer {TOKEN}", "Basic", "Basic é", "Basic !!!", f"Basic {TOKEN}"):
            answer = await served.client.get(path, headers={b"authorization": header.encode()})
            assert answer.status_code == 401
    page = await served.client.get("/admin", auth=ADMIN)
    assert (page.status_code, "Numbers" in page.text) == (200, True)
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "Nobody disliked an answer." in page.text
    assert "No model was asked." in page.text


async def test_the_page_tells_numbers_and_leads_from_a_dislike_to_its_trace(
    served: Running, sessions: Sessions
) -> None:
    await fill(sessions, days=3)
    page = (await served.client.get("/admin", auth=ADMIN)).text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "wrong_wine: I wanted a Rioja, not this. [email]" in page
    assert "<td>grounding</td>" in page
    assert "<td>gpt-4o-mini · llm.answer</td>" in page
    assert "<td>llm.plan</td>" in page
    assert f'href="/admin/traces/{5:032x}"' in page
    trace = await served.client.get(f"/admin/traces/{5:032x}", auth=ADMIN)
    assert trace.status_code == 200
    assert "<script>" not in trace.text
    assert "llm.answer [generation]" in trace.text
    assert f"https://cloud.langfuse.com/trace/{5:032x}" in trace.text
    assert (await served.client.get("/admin/traces/ffff", auth=ADMIN)).status_code == 404


async def test_with_no_content_no_words_of_people_are_shown(sessions: Sessions) -> None:
    await fill(sessions, days=1)
    settings = load_settings(None, {"TRACE_CONTENT": "none"})
    router = admin_page(settings, sessions, SecretStr(TOKEN)).router()
    async with serving(routers=[router]) as it:
        page = (await it.client.get("/admin", auth=ADMIN)).text
    assert "Rioja" not in page
    assert "Guigal" not in page


TODAY = date(2026, 5, 7)
DAY = DayStats(
    TODAY,
    people=3,
    turns=40,
    retried=4,
    outcomes={"answered": 30, "salvaged": 4, "fallback": 4, "failed": 2},
    liked=5,
    disliked=1,
    tokens=1_234_567,
    cost_usd=0.4,
    median_seconds=2.34,
    p95_seconds=9.1,
)
QUIET = [DayStats(TODAY - timedelta(days=number)) for number in range(6, 0, -1)]


def test_outcomes_of_another_version_are_drawn_as_other() -> None:
    assert parts(DayStats(TODAY, turns=3, outcomes={"failed": 1, "postponed": 2})) == [
        ("failed", 1),
        ("other", 2),
    ]


def test_the_table_of_stats_fits_a_phone() -> None:
    week = replace(DAY, people=1234, turns=120_000, median_seconds=3.45, cost_usd=123.4)
    assert stats_table(Stats((*QUIET, DAY), week)).splitlines() == [
        "                  today    7 days",
        "people                3     1,234",
        "turns                40   120,000",
        "retried          4  10%    4   0%",
        "failed           2   5%    2   0%",
        "salvaged         4  10%    4   0%",
        "fallback         4  10%    4   0%",
        "refused          0   0%    0   0%",
        "cost              $0.40   $123.40",
        "tokens            1.2 M     1.2 M",
        "median            2.3 s     3.5 s",
        "95 % within       9.1 s     9.1 s",
        "👍 / 👎             5 / 1     5 / 1",
    ]
    outcomes = {"fallback": 123_456, "failed": 700_000}
    busy = replace(DAY, turns=1_000_000, retried=999_999, outcomes=outcomes, people=98_765)
    lines = stats_table(Stats((*QUIET, busy), busy)).splitlines()
    assert max(map(len, lines)) <= 34
    assert "fallback      123k  12% 123k  12%" in lines
    assert "failed                0         0" in stats_table(Stats((*QUIET,), QUIET[0]))
