"""The admin page: its access and its content."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from pydantic import SecretStr

from agent.tracing.records import TraceRecord
from agent.turn import Reply, StoredMessage, TurnOutcome, record_turn
from bot.http.admin_page import AdminPage
from bot.tracing import masking_of, trace_link
from config import Settings, load_settings
from db.changes.ratings import ExplainRating, RateTurn
from db.engine import Sessions
from db.models import TurnRow
from tests.serving import Running, serving
from tests.stored import make, store_turn

TOKEN = "a-token-of-the-admin-0123456789"
ADMIN = ("anybody", TOKEN)
SCRIPT = "<script>alert(1)</script>"
CELL = re.compile("<td>(.*?)</td>")
TURNS: tuple[tuple[TurnOutcome, str], ...] = (
    ("answered", "a red for lamb, under 25 euros"),
    ("answered", f"what does sur lie mean? {SCRIPT}"),
    ("fallback", "something dry and sparkling for oysters"),
    ("failed", "un rouge léger pour ce soir"),
)


async def store_turns(sessions: Sessions) -> None:
    """Store one turn of today for each of `TURNS`, the second of them disliked."""
    now = datetime.now(UTC)
    for number, (outcome, question) in enumerate(TURNS, 1):
        reply = Reply(text="Try the Guigal.", outcome=outcome, error_types=("schema",))
        trace = TraceRecord(f"{number:032x}", "5e55", "0f0f")
        with trace.open_root(question) as span:
            span.child("llm.answer", "generation", metadata={"model": "gpt-4o"})
            record_turn(span, reply)
        record = TurnRow(
            turn_id=number,
            chat_id=number,
            user_id=number,
            at=now,
            outcome=outcome,
            seconds=2.0,
            cost_usd=0.25,
            trace_id=trace.trace_id,
            root_id=trace.root.span_id,
        )
        messages = (
            StoredMessage("user", question),
            StoredMessage("assistant", reply.text),
        )
        await store_turn(sessions, record, messages, trace)
    await make(sessions, RateTurn(2, "disliked"))
    await make(sessions, ExplainRating(2, "reason", "wrong_wine"))
    await make(
        sessions,
        ExplainRating(2, "comment", "I wanted a Rioja, not this. ada@example.org"),
    )


def admin_page(settings: Settings, sessions: Sessions) -> AdminPage:
    hide, link = masking_of(settings).mask_words, trace_link(settings)
    return AdminPage(sessions, hide, SecretStr(TOKEN), link)


@pytest.fixture
async def served(sqlite_sessions: Sessions) -> AsyncIterator[Running]:
    settings = load_settings(
        None, {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"}
    )
    async with serving(
        routers=[admin_page(settings, sqlite_sessions).build_router()]
    ) as running:
        yield running


async def test_without_the_token_nothing_is_shown(served: Running) -> None:
    for path in ("/admin", f"/admin/traces/{1:032x}"):
        response = await served.client.get(path)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Basic ")
        assert "turns" not in response.text
        for wrong in (("admin", "wrong"), ("admin", ""), (TOKEN, "")):
            assert (await served.client.get(path, auth=wrong)).status_code == 401
        for header in (f"Bearer {TOKEN}", "Basic", "Basic é", f"Basic {TOKEN}"):
            answer = await served.client.get(
                path, headers={b"authorization": header.encode()}
            )
            assert answer.status_code == 401
    page = await served.client.get("/admin", auth=ADMIN)
    assert page.status_code == 200
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "Nobody disliked an answer." in page.text


async def test_the_page_shows_numbers_and_links_a_dislike_to_its_trace(
    served: Running, sqlite_sessions: Sessions
) -> None:
    await store_turns(sqlite_sessions)
    page = (await served.client.get("/admin", auth=ADMIN)).text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "wrong_wine: I wanted a Rioja, not this. [email]" in page
    numbers = {row[0]: row[1:] for row in map(CELL.findall, page.splitlines()) if row}
    earlier_days = ["0"] * 6
    assert numbers["turns"] == [*earlier_days, "4", "4"]
    assert numbers["failed"] == [*earlier_days, "1  25%", "1  25%"]
    assert numbers["cost"] == [*["–"] * 6, "$1.00", "$1.00"]
    assert numbers["👍 / 👎"] == [*["0 / 0"] * 6, "0 / 1", "0 / 1"]
    failed = page.partition("What went wrong")[2]
    assert [f"traces/{number:032x}" in failed for number in range(1, 5)] == [0, 0, 1, 1]
    assert f'href="/admin/traces/{2:032x}"' in page
    trace = await served.client.get(f"/admin/traces/{2:032x}", auth=ADMIN)
    assert trace.status_code == 200
    assert "<script>" not in trace.text
    assert "llm.answer [generation]" in trace.text
    assert f"https://cloud.langfuse.com/trace/{2:032x}" in trace.text
    assert (
        await served.client.get("/admin/traces/ffff", auth=ADMIN)
    ).status_code == 404
    for wrong in ("9999-12-31", "0001-01-01", "today"):
        response = await served.client.get(
            "/admin", params={"until": wrong}, auth=ADMIN
        )
        assert response.status_code == 422


async def test_without_trace_content_no_messages_are_shown(
    sqlite_sessions: Sessions,
) -> None:
    settings = load_settings(None, {"TRACE_CONTENT": "none"})
    await store_turns(sqlite_sessions)
    async with serving(
        routers=[admin_page(settings, sqlite_sessions).build_router()]
    ) as running:
        page = (await running.client.get("/admin", auth=ADMIN)).text
    assert "Rioja" not in page
    assert "Guigal" not in page
