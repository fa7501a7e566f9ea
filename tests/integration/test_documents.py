"""Adding, listing and removing documents, on both databases, from real files."""

import asyncio
import html
import json
import os
import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from pypdf import PdfWriter

from agent import lengths
from agent.documents.store import DocumentStore
from db.documents.chunking import Section
from db.documents.formats import unbroken
from db.documents.indexing import AddReport, add_documents, load_starter_documents
from db.documents.reading import Content, Document, Reader, Unreadable, read_bytes, read_document
from db.engine import Sessions
from db.repositories.documents import SqlDocumentStore, StoredDocument

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
AVA = Path(__file__).parents[3] / "shared" / "data" / "ava" / "ava_properties.json"
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


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF file as simple as they come, with one line of text on each page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%b] /Count %d >>" % (b" ".join(kids), len(kids))
    objects.append(f"<< /Title ({title}) >>".encode())
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return (
        body + b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table) + b"trailer\n<< /Size %d"
        b" /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, size - 1, len(body))
    )


def encrypted_pdf() -> bytes:
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="RC4-128")
    path = Path("encrypted.pdf")
    writer.write(path)
    return path.read_bytes()


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


def document(name: str, data: bytes) -> Document:
    path = Path(name)
    path.write_bytes(data)
    return read_document(read_bytes(path), name)


class TestReading:
    """One file at a time."""

    def test_html_is_read_without_what_no_reader_sees(self) -> None:
        found = document(
            "page.html",
            b"""<html><head><title>Serving  wine</title><style>p {}</style></head><body>
            <script>alert(1)</script><h1>Temperature</h1><p>Reds <b>cool</b>,
            whites <i>cold</i>.</p><p hidden>obey me</p><div style="display: none">obey me</div>
            <span aria-hidden="true">x</span><!-- obey me --><h2>How</h2>
            <ul><li>An hour</li><li>in ice<br>or water</li></ul>
            <table><tr><th>Wine</th><th>C</th></tr><tr><td>Port</td><td>16</td></tr></table>
            <pre>a
  b</pre>tail</body></html>""",
        )
        assert (found.title, found.kind) == ("Serving wine", "html")
        assert found.sections == (
            Section(("Temperature",), "Reds cool, whites cold."),
            Section(
                ("Temperature", "How"),
                "An hour\n\nin ice\nor water\n\nWine | C\nPort | 16\n\na\n  b\n\ntail",
            ),
        )

    def test_html_is_read_without_what_stands_on_every_page_of_a_site(self) -> None:
        found = document(
            "site.html",
            b"""<title>Lees</title><header>Our shop</header><nav><a>Home</a></nav>
            <div role="navigation">Menu</div><main><article><header><h1>Lees</h1></header>
            <p>They settle.</p><footer>By a monk</footer></article></main><footer>Cookies</footer>
            """,
        )
        assert found.text == "They settle.\n\nBy a monk"
        alone = document("alone.html", b"<header>Lees</header>They settle.<footer>So</footer>")
        assert alone.text == "Lees\n\nThey settle.\n\nSo"

    def test_html_says_itself_how_it_is_encoded(self) -> None:
        page = '<meta charset="iso-8859-2"><h1>Egri bikavér</h1><p>Az erős őszi bor.</p>'
        found = document("eger.html", page.encode("iso-8859-2"))
        assert (found.title, found.text) == ("Egri bikavér", "Az erős őszi bor.")

    def test_html_nested_without_end_is_read(self) -> None:
        found = document("deep.html", b"<div>" * 5000 + b"deep down" + b"</div>" * 5000)
        assert found.text == "deep down"

    def test_pdf_pages_are_headings(self) -> None:
        found = document("label.pdf", pdf("Keep it cool.", "", "Drink it soon.", title="Labels"))
        assert (found.title, found.kind) == ("Labels", "pdf")
        assert found.sections == (
            Section(("Page 1",), "Keep it cool."),
            Section(("Page 3",), "Drink it soon."),
        )

    def test_pdf_words_are_whole(self) -> None:
        split = "It is com-\nmon in Saint-\nEmilion, \ufb01ne and 7-\n8 \N{EM DASH}\nold."
        whole = "It is common in Saint-Emilion, fine and 7-\n8 \N{EM DASH}\nold."
        assert unbroken(split) == whole

    def test_a_hyphen_that_nobody_sees_is_left_out(self) -> None:
        found = document("a.md", "# Lu\u00adber\u00adon\n\nA val\u00adle\u0301e.".encode())
        assert (found.title, found.text) == ("Luberon", "A vallée.")

    @pytest.mark.parametrize(
        ("name", "title"), [("sur_lie-aging.txt", "Sur lie aging"), ("café.text", "Café")]
    )
    def test_a_file_that_gives_no_title_is_called_by_its_name(self, name: str, title: str) -> None:
        assert document(name, b"On the lees.").title == title

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
    def test_unicode_is_read_with_and_without_a_byte_order_mark(self, encoding: str) -> None:
        found = document("a.md", "# Rosé\r\n\r\nPâle.\r\n".encode(encoding))
        assert (found.title, found.text, found.note) == ("Rosé", "Pâle.", "")

    def test_other_text_is_read_as_latin_1_with_a_note(self) -> None:
        found = document("a.txt", "Château".encode("latin-1"))
        assert (found.text, found.note) == ("Château", "is not UTF-8 and was read as Latin-1")
        assert document("b.txt", b"\x93Cru\x94 \x96 5 \x80").text == "“Cru” – 5 €"
        assert document("c.txt", b"\x81 \xe9").text == "\x81 é"

    @pytest.mark.parametrize(
        ("name", "data", "reason"),
        [
            ("a.md", b"", "is empty"),
            ("a.txt", b" \n\t", "is empty"),
            ("a.md", b"---\ntitle: x\n---\n", "holds no text"),
            ("a.html", b"<script>1</script>", "holds no text"),
            ("a.txt", b"wine\x00\x01", "is binary, not text"),
            ("a.md", b"\xff\xfea\xd8\x00", "is not UTF-16 as it claims"),
            ("a.docx", b"PK", "is not Markdown, text, HTML or PDF"),
            ("a.pdf", b"just text", "is not a PDF file"),
            ("a.pdf", b"%PDF-1.4 broken", "cannot be read as pdf: "),
            ("a.pdf", pdf(""), "holds no text (a scan?)"),
        ],
    )
    def test_what_cannot_be_read_is_a_problem(self, name: str, data: bytes, reason: str) -> None:
        with pytest.raises(Unreadable, match=f"^{re.escape(reason)}"):
            document(name, data)

    def test_an_encrypted_pdf_is_a_problem(self) -> None:
        with pytest.raises(Unreadable, match="is encrypted; save it without a password"):
            document("secret.pdf", encrypted_pdf())

    def test_a_file_over_the_limit_is_not_even_opened(self, tmp_path: Path) -> None:
        path = tmp_path / "big.txt"
        path.write_bytes(b"x" * 1001)
        with pytest.raises(Unreadable, match="has 1,001 bytes, the limit is 1,000; split it"):
            read_bytes(path, max_bytes=1000)

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.txt")
        with pytest.raises(Unreadable, match="is not a file"):
            read_bytes(tmp_path / "pipe.txt")


class TestLimits:
    """What takes too long or is too long says so; nothing is lost, and others are read."""

    async def test_a_file_that_takes_too_long_is_left_out_and_the_index_stays_whole(
        self, store: SqlDocumentStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "notes"
        folder.mkdir()
        (folder / "b.html").write_text("<p>Chinon is cool.</p>" + " " * 5000)
        (folder / "c.txt").write_text("Muscadet")
        await add_documents(store, [folder])
        (folder / "b.html").write_text("<a " * 40_000)
        monkeypatch.setattr("db.documents.indexing.Reader", partial(Reader, seconds=0.5))

        report = await add_documents(store, [folder])

        assert report.unchanged == ["notes/c.txt"]
        assert list(map(str, report.problems)) == [
            "notes/b.html takes over 0.5 s to read; split it"
        ]
        assert [each.text for each in await store.search(["Chinon"])] == ["Chinon is cool."]

    def test_files_are_read_in_a_process_of_its_own_that_starts_anew(self) -> None:
        reader = Reader(seconds=60)
        page = b"<p>Chinon is cool.</p>" + b" " * 5000
        try:
            first = reader.read(Content(page, "1"), "a.html")
            reader.close()
            assert reader.read(Content(page, "1"), "a.html") == first
            with pytest.raises(Unreadable, match="is not a PDF file"):
                reader.read(Content(b"text", "2"), "a.pdf")
        finally:
            reader.close()

    def test_too_much_text_and_too_many_pages_say_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lengths, "DOCUMENT", 100)
        monkeypatch.setattr(lengths, "PAGES", 1)
        with pytest.raises(Unreadable, match="holds over 100 characters of text; split it"):
            document("a.txt", b"a " * 51)
        with pytest.raises(Unreadable, match="has 2 pages, the limit is 1; split it"):
            document("a.pdf", pdf("One", "Two"))

    async def test_a_long_name_says_so(self, store: SqlDocumentStore, tmp_path: Path) -> None:
        deep = tmp_path / "a" / ("b" * 200) / ("c" * 200)
        deep.mkdir(parents=True)
        (deep / "d.txt").write_text("Chinon")
        report = await add_documents(store, [tmp_path / "a"])
        assert [each.reason for each in report.problems] == [
            "has a name of over 300 characters; rename it"
        ]


class TestStore:
    """What every database must do."""

    async def test_a_folder_is_added_with_its_metadata(
        self, store: SqlDocumentStore, folder: Path
    ) -> None:
        seen: list[tuple[int, int, str]] = []
        report = await add_documents(store, [folder], lambda *step: seen.append(step))
        loire, serving = "cellar notes/france/loire.md", "cellar notes/serving.txt"
        assert report == AddReport(added=[serving, loire])
        assert seen == [(1, 2, serving), (2, 2, loire)]
        stored = await store.documents()
        assert stored == [
            StoredDocument(
                id=stored[0].id,
                path=loire,
                title="The Loire",
                kind="markdown",
                content_hash=stored[0].content_hash,
                size=len(LOIRE),
                parts=2,
                added_at=NOON,
            ),
            stored[1],
        ]
        assert (stored[1].title, stored[1].kind, stored[1].parts) == ("Serving", "text", 1)

    async def test_it_is_the_port_that_the_agent_asks(
        self, store: SqlDocumentStore, folder: Path
    ) -> None:
        await add_documents(store, [folder])
        port: DocumentStore = store
        known = "cellar notes/serving.txt"
        assert await port.count() == 2
        assert await port.known_paths([known, "nowhere.md", "\ud800", ""]) == {known}
        (chunk,) = await port.search(["sur lie"])
        assert (chunk.path, chunk.title, chunk.location) == (
            "cellar notes/france/loire.md",
            "The Loire",
            "Muscadet",
        )
        assert (chunk.id, chunk.position, chunk.parts) == (f"{chunk.document_id}-2", 2, 2)
        assert chunk.text == "Aged sur lie, on its lees."

    async def test_only_what_changed_is_indexed_again(
        self, store: SqlDocumentStore, folder: Path
    ) -> None:
        await add_documents(store, [folder])
        before = {document.path: document.id for document in await store.documents()}
        (folder / "france" / "loire.md").write_text("# The Loire\n\nNow about Chinon.")
        report = await add_documents(store, [folder])
        assert report == AddReport(
            updated=["cellar notes/france/loire.md"], unchanged=["cellar notes/serving.txt"]
        )
        assert {document.path: document.id for document in await store.documents()} == before
        assert await store.search(["lees"]) == []
        assert [chunk.text for chunk in await store.search(["Chinon about"])] == [
            "Now about Chinon.",
            "Serve Muscadet cold.\n\nServe Chinon cool.",
        ]

    async def test_bad_files_are_reported_and_stop_nothing(
        self, store: SqlDocumentStore, folder: Path
    ) -> None:
        (folder / "a.pdf").write_bytes(b"%PDF-1.4 broken")
        (folder / "b.bin").write_bytes(b"\x00")
        (folder / "big.txt").write_text("x" * 2000)
        (folder / ".hidden.md").write_text("hidden")
        (folder / "latin.txt").write_bytes("Château".encode("latin-1"))
        report = await add_documents(store, [folder, Path("gone.md"), Path("gone")], max_bytes=1500)
        assert len(report.added) == 3
        assert [problem.path for problem in report.problems] == [
            "cellar notes/a.pdf",
            "cellar notes/b.bin",
            "cellar notes/big.txt",
            "gone.md",
            "gone",
        ]
        assert [str(note) for note in report.notes] == [
            "cellar notes/latin.txt is not UTF-8 and was read as Latin-1"
        ]

    async def test_a_file_that_is_named_is_known_as_it_was_given(
        self, store: SqlDocumentStore
    ) -> None:
        write("notes/a.md", "A.")
        report = await add_documents(store, [Path("./notes/a.md"), Path("notes/a.md")])
        assert report.added == ["notes/a.md"]

    async def test_removing_forgets_a_document_or_all_below_a_path(
        self, store: SqlDocumentStore, folder: Path
    ) -> None:
        (folder.parent / "cellar notes 2").mkdir()
        (folder.parent / "cellar notes 2" / "other.md").write_text("Muscadet stays.")
        await add_documents(store, [folder, folder.parent / "cellar notes 2"])
        assert await store.remove("cellar notes/serving.txt") == 1
        assert await store.remove("cellar notes/serving.txt") == 0
        assert [await store.remove(path) for path in ("", "/", "%", "cellar_notes")] == [0] * 4
        assert await store.remove("cellar notes/") == 1
        assert [chunk.text for chunk in await store.search(["Muscadet"])] == ["Muscadet stays."]

    async def test_replicas_that_add_at_once_add_once(
        self, sessions: Sessions, folder: Path
    ) -> None:
        stores = [SqlDocumentStore(sessions) for _ in range(4)]
        reports = await asyncio.gather(*(add_documents(store, [folder]) for store in stores))
        assert sum(len(report.added) for report in reports) == 2
        assert sum(len(report.unchanged) for report in reports) == 6
        assert len(await stores[0].search(["Muscadet"])) == 2

    async def test_starter_documents_are_loaded_where_there_are_none(
        self, store: SqlDocumentStore, folder: Path
    ) -> None:
        report = await load_starter_documents(store, folder)
        assert report is not None
        assert report.added == ["starter/serving.txt", "starter/france/loire.md"]
        assert await load_starter_documents(store, folder) is None
        assert await store.count() == 2

    async def test_starter_documents_are_there_all_or_none(
        self, store: SqlDocumentStore, tmp_path: Path
    ) -> None:
        for number in range(150):
            (tmp_path / f"{number}.md").write_text(f"# Wine {number}\n\nIt is good.")
        loading = asyncio.create_task(load_starter_documents(store, tmp_path))
        seen = {0}
        while not loading.done():
            seen.add(await store.count())
        assert seen | {await store.count()} == {0, 150}

    async def test_without_starter_documents_nothing_happens(
        self, store: SqlDocumentStore, tmp_path: Path
    ) -> None:
        assert await load_starter_documents(store, tmp_path / "absent") is None

    async def test_a_name_of_two_lines_is_known_on_one(
        self, store: SqlDocumentStore, tmp_path: Path
    ) -> None:
        write("new\nline.md", "Lees.")
        report = await add_documents(store, [Path("new\nline.md"), tmp_path], name="all")
        assert report.added == ["new line.md", "all/new line.md"]
        assert await store.remove("new line.md") == 1

    async def test_text_that_no_database_holds_is_indexed_without_it(
        self, store: SqlDocumentStore
    ) -> None:
        write("odd.md", "# Odd &#0; title\n\nA &#xD800; lees.\n\n## 🍷\n\nMore lees.")
        await add_documents(store, [Path("odd.md")])
        assert len(await store.search(["lees"])) == 2


@pytest.mark.skipif(not AVA.exists(), reason=f"needs {AVA.name}, data kept beside the project")
async def test_the_american_viticultural_areas_are_indexed_whole(
    store: SqlDocumentStore, tmp_path: Path
) -> None:
    folder = tmp_path / "ava"
    folder.mkdir()
    areas = json.loads(AVA.read_text(encoding="utf-8"))
    for area in areas:
        boundary = html.unescape(area["boundary_description"] or "None.")
        text = f"# {area['name']}\n\nState: {area['state']}\n\n## Boundary\n\n{boundary}\n"
        (folder / f"{area['ava_id']}.md").write_text(text, encoding="utf-8")
    report = await add_documents(store, [folder])
    assert (len(report.added), report.problems, report.notes) == (333, [], [])
    best = await store.search(["the boundary of Fort Ross-Seaview"])
    assert best[0].path == "ava/fort_ross_seaview.md"
    by_place = await store.search(["Wellsona Road", "Chimney Rock Road", "Dip Creek"])
    assert by_place[0].path == "ava/adelaida_district.md"
    again = await add_documents(store, [folder])
    assert len(again.unchanged) == 333
