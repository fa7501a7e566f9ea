"""What users store: as large, as odd and as late as they can make it."""

from datetime import UTC, datetime

from agent.cellar.items import find_items_with_room
from agent.cellar.rows import MAX_SHOWN_ITEMS, format_items
from agent.i18n import translate
from agent.markdown import escape
from agent.turn import MAX_CELLAR_ITEMS, CellarItem, Change, Fact
from bot.telegram.render import MAX_LINKS, MAX_REPLY_CHARS, split_messages
from db.changes.memory import UNDOABLE_FOR, ChangeMemory
from db.engine import Sessions
from db.repositories.people import MemoryRepository
from tests.doubles.telegram_links import live_links
from tests.stored import make

ADA = 71


def items(count: int, first: int = 0) -> tuple[CellarItem, ...]:
    return tuple(
        CellarItem(
            key=f"wine {number}",
            wine={"name": f"Wine {number}", "style": "red"},
            count=1,
        )
        for number in range(first, first + count)
    )


async def test_a_cellar_holds_so_many_wines_and_a_message_lists_some(
    sessions: Sessions,
) -> None:
    for first in range(0, 8_000, 4_000):
        change = Change(user_id=ADA, bottles=items(4_000, first))
        await make(sessions, ChangeMemory(change))
    stored = await MemoryRepository(sessions).list_bottles(ADA)
    assert len(stored) == MAX_CELLAR_ITEMS
    again = [*items(1), *items(10, 9_000)]
    assert find_items_with_room(again, stored) == [*items(1)]
    text = format_items(stored, datetime.now(UTC).year, "Yours:")
    assert len(text.splitlines()) == 1 + MAX_SHOWN_ITEMS + 1
    more = MAX_CELLAR_ITEMS - MAX_SHOWN_ITEMS
    assert text.endswith(translate("cellar_more", count=more))


async def test_a_change_with_unstorable_characters_is_stored_and_undone(
    sessions: Sessions,
) -> None:
    wine = {"name": "Rag\x00e \ud800", "style": "red"}
    item = CellarItem(key="rag\x00e \ud800", wine=wine, count=2, note="from\x00 Ada")
    fact = Fact("note", "tannin\x00 \ud800", "no \ud800 tannin")
    change = Change(user_id=ADA, added_facts=(fact,), bottles=(item,), undo_id=9)
    memory = MemoryRepository(sessions)
    await make(sessions, ChangeMemory(change))
    assert await memory.list_facts(ADA) == [Fact("note", "tannin ?", "no ? tannin")]
    (stored,) = await memory.list_bottles(ADA)
    assert (stored.key, stored.wine["name"], stored.note) == (
        "rage ?",
        "Rage ?",
        "from Ada",
    )
    await make(sessions, ChangeMemory(Change(user_id=ADA, reverts_id=9)))
    assert await memory.list_facts(ADA) == []
    assert [item.count for item in await memory.list_bottles(ADA)] == [0]


async def test_a_change_cannot_be_undone_after_its_time(sessions: Sessions) -> None:
    change = Change(user_id=ADA, added_facts=(Fact("note", "no tannin"),), undo_id=9)
    undo = ChangeMemory(Change(user_id=ADA, reverts_id=9))
    await make(sessions, ChangeMemory(change))
    late = datetime.now(UTC) + UNDOABLE_FOR
    await make(sessions, undo, now=lambda: late)
    memory = MemoryRepository(sessions)
    assert [fact.value for fact in await memory.list_facts(ADA)] == ["no tannin"]
    await make(sessions, undo)
    assert await memory.list_facts(ADA) == []


def test_a_reply_is_rendered_up_to_a_length() -> None:
    messages = split_messages("Barolo is good. " * 60_000)
    assert sum(map(len, messages)) <= MAX_REPLY_CHARS
    assert messages[-1].endswith("…")


def test_a_text_of_thousands_of_addresses_is_code_as_a_whole() -> None:
    messages = split_messages(escape("@evil_bot evil.com " * MAX_LINKS))
    assert len(messages) <= MAX_REPLY_CHARS // 4_096 + 2
    assert [link for html in messages for link in live_links(html)] == []
