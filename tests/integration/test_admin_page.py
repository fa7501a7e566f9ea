"""The page of admins: who sees it, what stands on it, and how it looks on a phone."""

import asyncio
import os
import struct
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import httpx
import pytest
from PIL import Image
from pydantic import SecretStr

from agent.conversation import StoredMessage
from agent.engine.messages import Usage
from agent.tracing.recorder import Recorder
from agent.tracing.records import TraceRecord
from agent.turn import Reply
from agent.turn_trace import Outcome, record_turn
from bot.admin.page import COOKIE
from bot.app import admin_page
from config import load_settings
from db.engine import Sessions
from db.models import TurnRow
from db.records import EndedTurn
from db.repositories.turns import FeedbackRepository, TurnRepository
from tests.browser import browser, needs_browser
from tests.databases import migrated_sqlite
from tests.serving import Running, serving

TOKEN = "a-token-of-the-admin-0123456789"
PICTURES = Path(__file__).parents[2] / "docs"
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
    ("fallback", 2, ("schema", "schema", "semantic", "exhausted"), "house-sommelier"),
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


async def log_in(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/admin", data={"token": TOKEN}, follow_redirects=True)


async def test_only_who_has_the_token_sees_anything(served: Running) -> None:
    it = served.client
    asked = await it.get("/admin")
    assert (asked.status_code, "Numbers" in asked.text) == (401, False)
    assert (await it.get("/admin/traces/1")).status_code == 303
    assert (await it.post("/admin", data={"token": "wrong"})).status_code == 403
    assert (await it.post("/admin", data={"other": "x"})).status_code == 403
    assert (await it.post("/admin", json={"token": TOKEN})).status_code == 403
    assert (await it.post("/admin", data={"token": "x" * 5000})).status_code == 413
    forged = {"cookie": f"{COOKIE}={TOKEN}"}
    assert (await it.get("/admin", headers=forged)).status_code == 401
    entered = await it.post("/admin", data={"token": TOKEN})
    assert (entered.status_code, entered.headers["location"]) == (303, "/admin")
    cookie = entered.headers["set-cookie"]
    assert TOKEN not in cookie
    assert all(each in cookie for each in ("HttpOnly", "SameSite=strict", "Path=/admin"))
    page = await it.get("/admin")
    assert (page.status_code, "Numbers" in page.text) == (200, True)
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in page.headers["content-security-policy"]


async def test_a_link_with_the_token_enters_once_and_shows_it_no_more(served: Running) -> None:
    entered = await served.client.get(f"/admin?token={TOKEN}")
    assert (entered.status_code, entered.headers["location"]) == (303, "/admin")
    assert (await served.client.get("/admin")).status_code == 200


async def test_an_empty_store_is_a_page_too(served: Running) -> None:
    page = await log_in(served.client)
    assert page.status_code == 200
    assert "Nobody disliked an answer." in page.text
    assert "No model was asked." in page.text


async def test_the_page_tells_numbers_and_leads_from_a_dislike_to_its_trace(
    served: Running, sessions: Sessions
) -> None:
    await fill(sessions, days=3)
    page = (await log_in(served.client)).text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "wrong_wine: I wanted a Rioja, not this. [email]" in page
    assert "<td>grounding</td>" in page
    assert "<td>gpt-4o-mini · llm.answer</td>" in page
    assert "<td>llm.plan</td>" in page
    assert f'href="/admin/traces/{5:032x}"' in page
    trace = await served.client.get(f"/admin/traces/{5:032x}")
    assert trace.status_code == 200
    assert "<script>" not in trace.text
    assert "llm.answer [generation]" in trace.text
    assert f"https://cloud.langfuse.com/trace/{5:032x}" in trace.text
    assert (await served.client.get("/admin/traces/ffff")).status_code == 404


async def test_with_no_content_no_words_of_people_are_shown(sessions: Sessions) -> None:
    await fill(sessions, days=1)
    router = admin_page(
        load_settings(None, {"TRACE_CONTENT": "none"}), sessions, SecretStr(TOKEN)
    ).router()
    async with serving(routers=[router]) as it:
        page = (await log_in(it.client)).text
    assert "Rioja" not in page
    assert "Guigal" not in page


@needs_browser
async def test_a_phone_shows_it_all_without_scrolling_sideways(
    served: Running, sessions: Sessions
) -> None:
    """With SCREENSHOTS set the pictures of the documentation are made anew."""
    await fill(sessions)

    def look() -> tuple[bytes, bytes]:
        with browser() as window:
            window.resize(390, 844)
            window.open(f"http://127.0.0.1:{served.port}/admin")
            window.type("input", TOKEN)
            window.click("button")
            window.find("td")
            wide = window.run("document.documentElement.scrollWidth")
            assert wide <= 390, f"the page is {wide} pixels wide"
            assert window.run("getComputedStyle(document.querySelector('td')).fontSize") == "16px"
            assert window.run("document.querySelectorAll('svg rect').length") > 60
            window.resize(390, window.run("document.documentElement.scrollHeight"))
            page = window.screenshot()
            window.resize(390, 844)
            window.click("details summary")
            window.click("details a")
            window.find("pre")
            assert window.run("document.querySelector('h2').textContent") == "Asked"
            assert window.run("document.documentElement.scrollWidth") <= 390
            return page, window.screenshot()

    page, trace = await asyncio.to_thread(look)
    for name, picture in (("admin", page), ("admin-trace", trace)):
        width, _ = struct.unpack(">II", picture[16:24])
        assert width == 390
        if "SCREENSHOTS" in os.environ:
            few_colors = Image.open(BytesIO(picture)).convert("RGB").quantize(64)
            few_colors.save(PICTURES / f"{name}.png", optimize=True)
