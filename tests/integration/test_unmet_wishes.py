"""What guests wanted and did not get, as admins read it."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.engine.run import Run
from agent.turn import Change, Fact, Lack, StoredMessage
from bot.look_ups import run_ask, run_quotes
from bot.wanted import group_wishes, to_csv
from db.changes.forgetting import ForgetConversation
from db.changes.memory import ChangeMemory
from db.changes.ratings import ExplainRating, RateTurn
from db.engine import Sessions
from db.models import TurnRow
from db.repositories.turns import export_turns
from db.repositories.unmet import UnmetWishes
from tests.doubles.bot_api import CHAT, BotApi
from tests.integration.test_admin import ADMIN, BEA, AdminBot
from tests.integration.test_admin_page import ADMIN as LOGIN
from tests.integration.test_admin_page import admin_page
from tests.library import FakeLibrary
from tests.running import Sources, at_rest
from tests.serving import serving
from tests.stored import make, store_turn

NOW = datetime.now(UTC)
ADA, BOB, CLEO, DORA = 31, 32, 33, 34
FIGURES_ONLY = Change(user_id=CLEO, added_facts=(Fact("setting", "traces=numbers"),))


async def store_wish(
    sessions: Sessions,
    number: int,
    user_id: int,
    words: str,
    lack: Lack | None = None,
    **more: Any,
) -> None:
    record = TurnRow(
        turn_id=number,
        chat_id=user_id,
        user_id=user_id,
        at=NOW - timedelta(hours=number),
        trace_id=f"{number:032x}",
        root_id=f"{number:016x}",
        lack=lack,
        **more,
    )
    messages = StoredMessage("user", words), StoredMessage("assistant", "Sorry.")
    await store_turn(sessions, record, messages)


async def store_week(sessions: Sessions) -> None:
    """Store what five guests wanted; Bob hid his words then, Cleo does now, Dora deleted hers."""
    await store_wish(sessions, 1, ADA, "Do you have a Barolo 2018?", Lack.NAME)
    await store_wish(
        sessions, 2, BOB, "Barolo for my secret wedding", Lack.NAME, hides_words=True
    )
    await store_wish(sessions, 3, CLEO, "Barolo for my secret divorce", Lack.NAME)
    await store_wish(sessions, 4, DORA, "a secret Barolo", Lack.NAME)
    await store_wish(sessions, 5, ADA, "=cmd barolo, ada@example.org", Lack.WINES)
    await store_wish(sessions, 6, ADA, "When are you open on Sundays?", Lack.DOCUMENTS)
    await store_wish(sessions, 7, ADA, "a red for lamb")
    await store_wish(sessions, 8, ADA, "a white for oysters")
    await store_wish(sessions, 200, ADA, "a Barolo of last week", Lack.NAME)
    await make(
        sessions,
        ChangeMemory(FIGURES_ONLY),
        ForgetConversation(DORA),
        RateTurn(3, "disliked"),
        ExplainRating(3, "comment", "my secret comment"),
        RateTurn(8, "disliked"),
        ExplainRating(8, "reason", "wrong_wine"),
        RateTurn(7, "liked"),
    )


async def test_wishes_are_grouped_by_the_word_that_most_share_and_hidden_words_stay_hidden(
    sessions: Sessions,
) -> None:
    await store_week(sessions)
    unmet = UnmetWishes(sessions)
    wishes = await unmet.list_between(NOW - timedelta(days=7), NOW, str)
    assert "secret" not in repr(wishes)
    groups = {group.about: group for group in group_wishes(wishes)}
    counts = {
        about: (len(group.wishes), group.reasons) for about, group in groups.items()
    }
    assert counts == {
        "(other words, or none kept)": (3, "not in stock, 👎"),
        "barolo": (2, "not in stock, no wine meets it"),
        "open sundays": (1, "no document answers"),
        "white oysters": (1, "👎 wrong wine"),
    }
    exported = await export_turns(sessions, str)
    assert "a red for lamb" in repr(exported)
    assert "secret" not in repr(exported)


async def test_the_csv_has_a_row_for_each_wish_and_no_formula(
    sessions: Sessions,
) -> None:
    await store_week(sessions)
    wishes = await UnmetWishes(sessions).list_between(NOW - timedelta(days=7), NOW, str)
    text = to_csv(group_wishes(wishes)).decode("utf-8-sig")
    rows = {row["trace"]: row for row in csv.DictReader(io.StringIO(text))}
    assert len(rows) == 7
    assert rows[f"{1:032x}"] == {
        "week": f"{NOW - timedelta(hours=1):%G-W%V}",
        "about": "barolo",
        "at": f"{NOW - timedelta(hours=1):%Y-%m-%d %H:%M}",
        "why": "not in stock",
        "words": "Do you have a Barolo 2018?",
        "comment": "",
        "trace": f"{1:032x}",
    }
    assert rows[f"{5:032x}"]["words"].startswith("'=cmd")
    assert "secret" not in text


async def test_the_page_and_its_csv_show_masked_wishes_of_the_week(
    sqlite_sessions: Sessions, settings: Any
) -> None:
    await store_week(sqlite_sessions)
    async with serving(
        routers=[admin_page(settings, sqlite_sessions).build_router()]
    ) as running:
        page = (await running.client.get("/admin", auth=LOGIN)).text
        download = await running.client.get("/admin/wanted.csv", auth=LOGIN)
        assert (await running.client.get("/admin/wanted.csv")).status_code == 401
    section = page.partition("What guests wanted")[2]
    assert "2 × barolo" in section
    assert f'href="/admin/traces/{1:032x}"' in section
    assert "[email]" in section
    assert download.headers["content-type"].startswith("text/csv")
    assert "Do you have a Barolo 2018?" in download.text
    for text in (page, download.text):
        assert "secret" not in text
        assert "ada@example.org" not in text
        assert "of last week" not in text


async def test_a_wish_in_vain_is_in_the_stats_of_an_admin_without_hidden_words(
    bot_api: BotApi, admin_bot: AdminBot
) -> None:
    await make(
        admin_bot.sessions,
        ChangeMemory(Change(user_id=BEA, added_facts=FIGURES_ONLY.added_facts)),
    )
    async with admin_bot.open(bot_api) as bot:
        for user_id in (CHAT, BEA):
            bot_api.say("a sparkling wine for caviar under 5 euros", user_id)
            await bot_api.wait_for_message(1, user_id)
        await at_rest(bot)
        bot_api.say("/stats", ADMIN)
        _, shown = await bot_api.wait_for_message(2, ADMIN)
    wanted = shown.partition("What guests wanted")[2]
    assert "1 × sparkling caviar euros: no wine meets it" in wanted
    assert "1 × (other words, or none kept): no wine meets it" in wanted


@pytest.fixture
def settings() -> Any:
    from config import load_settings  # noqa: PLC0415

    return load_settings(None)


@pytest.fixture
def admin_bot(sqlite_sessions: Sessions) -> AdminBot:
    return AdminBot(sqlite_sessions)


async def test_a_look_up_that_finds_nothing_lacks_documents() -> None:
    resources = Sources(documents=FakeLibrary()).resources()
    for reply in (
        await run_ask("kangaroo trampolines", Run(), resources, refine=None),
        await run_quotes("kangaroo trampolines", Run(), resources),
    ):
        assert reply.lack is Lack.DOCUMENTS
