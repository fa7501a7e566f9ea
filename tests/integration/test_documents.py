"""Adding, listing and removing documents, on both databases, from real files."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from db.documents import reading
from db.documents.adding import AddReport, add_documents, load_starter_documents
from db.documents.store import SqlDocumentStore
from db.engine import Sessions

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LOIRE = "# The Loire\n\nA long river.\n\n## Muscadet\n\nAged sur lie, on its lees.\n"


@pytest.fixture
def store(sessions: Sessions) -> SqlDocumentStore:
    return SqlDocumentStore(sessions, now=lambda: NOON)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "cellar notes"
    (folder / "france").mkdir(parents=True)
    (folder / "france" / "loire.md").write_text(LOIRE)
    (folder / "serving.txt").write_text("Serve Muscadet cold.\n\nServe Chinon cool.")
    return folder


async def test_a_folder_is_added_with_its_metadata(
    store: SqlDocumentStore, folder: Path
) -> None:
    report = await add_documents(store, [folder])
    loire, serving = "cellar notes/france/loire.md", "cellar notes/serving.txt"
    assert report == AddReport(added=[serving, loire])
    first, second = await store.list_documents()
    assert (first.path, first.title, first.kind) == (loire, "The Loire", "markdown")
    assert (first.size, first.parts, first.added_at) == (len(LOIRE), 2, NOON)
    assert (second.title, second.kind, second.parts) == ("Serving", "text", 1)
    assert await store.known_paths([serving, "nowhere.md", "\ud800", ""]) == {serving}
    (chunk,) = await store.search(["sur lie"])
    assert (chunk.path, chunk.title, chunk.location) == (loire, "The Loire", "Muscadet")
    assert (chunk.id, chunk.position, chunk.parts) == (f"{chunk.document_id}-2", 2, 2)
    assert chunk.text == "Aged sur lie, on its lees."


async def test_only_what_changed_is_indexed_again(
    store: SqlDocumentStore, folder: Path
) -> None:
    await add_documents(store, [folder])
    before = {document.path: document.id for document in await store.list_documents()}
    (folder / "france" / "loire.md").write_text("# The Loire\n\nNow about Chinon.")
    report = await add_documents(store, [folder])
    assert report == AddReport(
        updated=["cellar notes/france/loire.md"], unchanged=["cellar notes/serving.txt"]
    )
    assert {
        document.path: document.id for document in await store.list_documents()
    } == before
    assert await store.search(["lees"]) == []
    assert {chunk.text for chunk in await store.search(["Chinon about"])} == {
        "Now about Chinon.",
        "Serve Muscadet cold.\n\nServe Chinon cool.",
    }


async def test_unreadable_files_are_reported_and_others_are_added(
    store: SqlDocumentStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 1500)
    (folder / "a.pdf").write_bytes(b"%PDF-1.4 broken")
    (folder / "b.bin").write_bytes(b"\x00")
    (folder / "big.txt").write_text("x" * 2000)
    (folder / ".hidden.md").write_text("hidden")
    (folder / ("n" * 250)).mkdir()
    (folder / ("n" * 250) / f"{'n' * 100}.md").write_text("long name")
    (folder / "latin.txt").write_bytes("Château".encode("latin-1"))
    report = await add_documents(store, [folder, Path("gone.md"), Path("gone")])
    assert len(report.added) == 3
    unread = ("a.pdf is broken", "b.bin is not", "big.txt has", f"{'n' * 250}/")
    begins = [
        *(f"cellar notes/{file}" for file in unread),
        "gone.md cannot be read: No",
        "gone is not",
    ]
    assert len(report.problems) == len(begins)
    assert all(map(str.startswith, report.problems, begins))
    (note,) = report.notes
    assert note.startswith("cellar notes/latin.txt is not UTF-8 and was read as cp1252")


async def test_a_document_or_a_folder_can_be_removed(
    store: SqlDocumentStore, folder: Path
) -> None:
    (folder.parent / "cellar notes 2").mkdir()
    (folder.parent / "cellar notes 2" / "other.md").write_text("Muscadet stays.")
    await add_documents(store, [folder, folder.parent / "cellar notes 2"])
    assert await store.remove("cellar notes/serving.txt") == 1
    assert await store.remove("cellar notes/serving.txt") == 0
    assert [await store.remove(path) for path in ("", "/", "%", "cellar_notes")] == [
        0
    ] * 4
    assert await store.remove("cellar notes/") == 1
    assert [chunk.text for chunk in await store.search(["Muscadet"])] == [
        "Muscadet stays."
    ]


async def test_replicas_that_add_at_once_add_once(
    sessions: Sessions, folder: Path
) -> None:
    stores = [SqlDocumentStore(sessions) for _ in range(4)]
    reports = await asyncio.gather(
        *(add_documents(store, [folder]) for store in stores)
    )
    assert sum(len(report.added) for report in reports) == 2
    assert sum(len(report.unchanged) for report in reports) == 6
    assert len(await stores[0].search(["Muscadet"])) == 2


async def test_starter_documents_are_added_all_or_none(
    store: SqlDocumentStore, tmp_path: Path
) -> None:
    for number in range(150):
        (tmp_path / f"{number}.md").write_text(f"# Wine {number}\n\nIt is good.")
    loading = asyncio.create_task(load_starter_documents(store, tmp_path))
    seen = {0}
    while not loading.done():
        seen.add(await store.count())
        await asyncio.sleep(0)
    assert seen | {await store.count()} == {0, 150}
    assert (await store.known_paths(["starter/7.md"])) == {"starter/7.md"}
    (tmp_path / "151.md").write_text("Too late.")
    await load_starter_documents(store, tmp_path)
    assert await store.count() == 150
