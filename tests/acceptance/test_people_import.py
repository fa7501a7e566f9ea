"""`sommelier people import` takes an export back, so that tastes and cellars survive."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from agent.cellar.items import guess_wine, to_cellar_item
from agent.turn import Change, Drink, Fact
from bot.resources import open_database
from config import load_settings
from db.changes.base import StoredChange
from db.changes.memory import ChangeMemory, SaveConcerns
from db.engine import Sessions
from db.models import TasteRatingRow
from db.repositories.people import MemoryRepository
from tests.commands import sommelier_here
from tests.stored import make

ADA = 1001
BAROLO = to_cellar_item(
    guess_wine("Barolo 2016", price=45), 6, note="from Anna", place="G33"
)
EMPTY = to_cellar_item(guess_wine("Chablis 2021"), 0)
OPENED = Drink(
    key=BAROLO.key,
    wine=BAROLO.wine,
    at=datetime(2026, 5, 1, tzinfo=UTC),
    rating="92",
    note="fine",
)
FACTS = (
    Fact("hate", "grapes=Riesling", "Riesling"),
    Fact("allergy", "fish", "fish"),
    Fact("budget", "15-30 EUR"),
    Fact("note", "my wife: no eggs", "my wife: no eggs"),
)
OLD = {
    "facts": [
        {
            "user_id": ADA,
            "kind": "like",
            "value": "grapes=Nebbiolo",
            "turn_id": 0,
            "said": "Barolo",
        },
        {
            "user_id": ADA,
            "kind": "setting",
            "value": "language=de",
            "turn_id": 0,
            "said": "",
        },
        {
            "user_id": ADA,
            "kind": "setting",
            "value": "age=18",
            "turn_id": 0,
            "said": "",
        },
        {
            "user_id": ADA,
            "kind": "setting",
            "value": "due barolo 2016=2025",
            "turn_id": 0,
            "said": "",
        },
        {
            "user_id": ADA,
            "kind": "rated",
            "value": "grapes=Syrah",
            "turn_id": 9,
            "said": "+",
        },
        {
            "user_id": ADA,
            "kind": "undo",
            "value": "7",
            "turn_id": 0,
            "said": "{}" * 500,
        },
        {
            "user_id": ADA,
            "kind": "allergy",
            "value": "moonlight",
            "turn_id": 0,
            "said": "",
        },
    ],
    "bottles": [
        {
            "id": 1,
            "user_id": ADA,
            "key": "barolo, 2016",
            "wine": {"producer": "", "name": "Barolo", "vintage": 2016, "style": "red"},
            "count": 6,
            "drink_from": 2024,
            "drink_until": None,
            "note": "",
            "at": "2026-11-21T12:00:00+00:00",
        },
        {"user_id": ADA, "wine": {"name": "No style"}, "count": -1},
    ],
    "messages": [{"id": 1, "content": "a red for lamb"}],
}
"""An export of release 0.1.0."""


def database(home: Path) -> dict[str, str]:
    return {
        "DATABASE_URL": f"sqlite+aiosqlite:///{home}/here.sqlite3",
        "HOME": str(home),
    }


def people(home: Path, *arguments: str, typed: str = "") -> CompletedProcess[str]:
    return sommelier_here("people", *arguments, environment=database(home), typed=typed)


def in_database(home: Path, function: Any) -> Any:
    async def run() -> Any:
        async with open_database(load_settings(None, database(home))) as sessions:
            return await function(sessions)

    return asyncio.run(run())


def remember(
    home: Path, *changes: StoredChange, ratings: Sequence[TasteRatingRow] = ()
) -> None:
    async def store(sessions: Sessions) -> None:
        await make(sessions, *changes)
        async with sessions.begin() as session:
            session.add_all(ratings)

    in_database(home, store)


def memory(home: Path) -> tuple[Any, ...]:
    """The memory of Ada, with her concerns."""

    async def read(sessions: Sessions) -> tuple[Any, ...]:
        stored = MemoryRepository(sessions)
        facts = {
            fact.value: fact.original_text for fact in await stored.list_facts(ADA)
        }
        bottles = await stored.list_bottles(ADA)
        drinks = await stored.list_drinks(ADA)
        return facts, bottles, drinks, await stored.list_concerns(None, ADA)

    found: tuple[Any, ...] = in_database(home, read)
    return found


def test_an_export_is_taken_to_another_bot_and_only_adds_there(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    chosen = (Fact("setting", "language=de"), Fact("setting", "traces=numbers"))
    change = Change(
        user_id=ADA,
        added_facts=(*FACTS, *chosen),
        bottles=(BAROLO, EMPTY),
        drinks=(OPENED,),
    )
    rating = TasteRatingRow(
        user_id=ADA, turn_id=None, taste="grapes=Syrah", is_liked=True, at=OPENED.at
    )
    pregnant = SaveConcerns(ADA, ADA, {"pregnancy": None})
    remember(here, ChangeMemory(change), pregnant, ratings=[rating])
    file = tmp_path / "sommelier.json"
    file.write_text(people(here, "export", str(ADA)).stdout)
    remember(
        there,
        ChangeMemory(
            Change(user_id=ADA, added_facts=(Fact("setting", "language=fr"),))
        ),
    )

    asked = people(there, "import", str(file), typed="n\n")
    assert "2 wines with 6 bottles" in asked.stdout
    assert "no Riesling" in asked.stdout
    assert not memory(there)[1], "it is shown before it is written"
    done = people(there, "import", str(file), typed="y\n")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Stored.")
    facts, bottles, drinks, concerns = memory(there)
    expected, *rest = memory(here)
    del expected["language=de"]
    assert facts == {**expected, "language=fr": ""}
    assert [bottles, drinks] == rest[:2]
    assert concerns == frozenset()

    again = people(there, "import", str(file), "--yes")
    assert "0 wines with 0 bottles; 2 stay as they are here" in again.stdout
    assert memory(there)[:3] == (facts, bottles, drinks)


def test_an_export_of_0_1_is_read(tmp_path: Path) -> None:
    file = tmp_path / "sommelier.json"
    file.write_text(json.dumps(OLD))
    done = people(tmp_path, "import", str(file), "--yes")
    assert "Left out: 2 rows that cannot be read" in done.stdout
    facts, [barolo], drinks, _ = memory(tmp_path)
    assert facts == {"grapes=Nebbiolo": "Barolo", "language=de": "", "grapes=Syrah": ""}
    assert (barolo.wine["name"], barolo.count, barolo.drink_from) == ("Barolo", 6, 2024)
    assert barolo.key == to_cellar_item(guess_wine("Barolo 2016"), 1).key
    assert drinks == []


def test_another_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    two = {"facts": [{"user_id": 1}, {"user_id": 2}]}
    contents = {
        "[": "not JSON",
        '{"a": 1}': "not what /export",
        json.dumps(two): "does not belong to a single user",
    }
    for content, reason in contents.items():
        file.write_text(content)
        refused = people(tmp_path, "import", str(file))
        assert refused.returncode == 1
        assert reason in refused.stderr
