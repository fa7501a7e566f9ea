"""Reading files of every kind, whole and damaged."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PIL import Image

from agent import size_limits
from agent.files import FileReader, Unreadable
from agent.senses.sent_files import (
    UnusableFile,
    read_sent_file,
    render_pages,
    to_data_url,
)
from db.documents import reading
from db.documents.chunking import Section
from db.documents.reading import Document, read_bytes, read_document
from tests.files import PICTURE, at, docx, encrypted_pdf, epub, pdf, xlsx
from tests.pictures import drawn, saved

T = TypeVar("T")

RUSSIAN = "Красное вино из винограда Саперави выдерживают в дубовых бочках двенадцать месяцев."
LEFT = (
    "The lees are the dead yeast",
    "that sinks to the bottom of",
    "the tank in the winter.",
)
RIGHT = (
    "Sur lie means that a wine",
    "rests upon its lees for some",
    "months, as Muscadet does.",
)
MENU = "".join(
    f"<li><a href=/{number}>Wine number {number}</a></li>" for number in range(40)
)
PAGE = f"""<html><head><title>Of  lees</title><style>p {{}}</style></head><body>
<header><nav><ul>{MENU}</ul></nav></header><script>alert(1)</script>
<h1>Temperature</h1><p>Reds <b>cool</b>,\n whites <i>cold</i>, 5 &lt; 8.</p><h2>How</h2>
<ol><li>An hour</li><li>in ice</li></ol>
<table><tr><th>Wine</th><th>C</th></tr><tr><td>Port</td><td>16</td></tr></table>
<footer><ul>{MENU}</ul></footer></body></html>"""


def document(name: str, data: bytes | str) -> Document:
    path = Path(name)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_document(read_bytes(path), name)


def text_of(found: Document) -> str:
    return "\n\n".join(section.text for section in found.sections)


def word_file(made: Any) -> None:
    made.core_properties.title = "Cellar notes"
    made.add_heading("Lees", 1)
    made.add_paragraph("They are dead ").add_run("yeast.").bold = True
    made.add_heading("Serving", 2)
    made.add_paragraph("Cold", style="List Bullet")
    table = made.add_table(2, 2)
    for row, texts in zip(table.rows, (("Wine", "C"), ("Port", "16")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text


CHAPTER = "<html><body><h1>{}</h1><p>{}</p></body></html>"
BOOK = epub(
    CHAPTER.format("One", "Lees."), CHAPTER.format("Two", "Must."), title="Of wine"
)
COLUMNS = " ".join(
    at(x, 700 - 14 * row, text)
    for x, lines in ((50, LEFT), (320, RIGHT))
    for row, text in enumerate(lines)
)
SHEETS = xlsx(
    {
        "Reds": [("Wine", "Price"), ("Chinon", 12.5), ("Fino", None)],
        "Secret": [("No",)],
    },
    "Secret",
)


@pytest.mark.parametrize(
    ("name", "data", "title", "sections"),
    [
        (
            "page.html",
            PAGE,
            "Of lees",
            [
                (("Temperature",), "Reds cool, whites cold, 5 < 8."),
                (
                    ("Temperature", "How"),
                    "1. An hour\n2. in ice\n\nWine | C\nPort | 16",
                ),
            ],
        ),
        ("part.html", "<p>A part of a page.</p>", "Part", [((), "A part of a page.")]),
        ("two.pdf", pdf(COLUMNS), "Two", [(("Page 1",), "\n".join(LEFT + RIGHT))]),
        (
            "notes.docx",
            docx(word_file),
            "Cellar notes",
            [
                (("Lees",), "They are dead yeast."),
                (("Lees", "Serving"), "- Cold\n\nWine | C\nPort | 16"),
            ],
        ),
        ("book.epub", BOOK, "Of wine", [(("One",), "Lees."), (("Two",), "Must.")]),
        (
            "list.xlsx",
            SHEETS,
            "List",
            [(("Reds",), "Wine | Price\nChinon | 12.5\nFino")],
        ),
        (
            "sur_lie-aging.txt",
            "On the\u00ad lees.",
            "Sur lie aging",
            [((), "On the lees.")],
        ),
    ],
)
def test_a_file_is_read_with_its_title_and_headings(
    name: str,
    data: bytes | str,
    title: str,
    sections: list[tuple[tuple[str, ...], str]],
) -> None:
    found = document(name, data)
    assert (found.title, found.note) == (title, "")
    assert found.sections == tuple(Section(*section) for section in sections)


def test_a_table_is_read_in_parts_that_begin_with_its_header() -> None:
    rows = [f"Wine {number};{number} EUR" for number in range(200)]
    found = document("list.csv", "\n".join(["Wine;Price", *rows]))
    parts = text_of(found).split("\n\n")
    assert len(parts) > 1
    assert all(part.startswith("Wine | Price\nWine ") for part in parts)
    assert "Wine 199 | 199 EUR" in parts[-1]


@pytest.mark.parametrize(
    ("text", "encoding", "read_as"),
    [
        ("Rosé, pâle.", "utf-16", ""),
        ("“Cru” – Château, 5 €", "cp1252", "cp1252"),
    ],
)
def test_text_is_read_in_its_encoding_and_a_guess_is_noted(
    text: str, encoding: str, read_as: str
) -> None:
    found = document("a.txt", text.encode(encoding))
    assert text_of(found) == text
    assert (f"was read as {read_as}, which is a guess" in found.note) == bool(read_as)


@pytest.mark.parametrize(
    ("name", "data", "text", "note"),
    [
        ("a.txt", RUSSIAN.encode()[:-2], RUSSIAN[:-2], "has 1 damaged places"),
        (
            "a.pdf",
            pdf("Lees.", "", "Must."),
            "Lees.\n\nMust.",
            "holds no text on 1 of its pages",
        ),
        (
            "a.epub",
            BOOK.replace(b"text/1.xhtml", b"text/9.xhtml"),
            "Lees.",
            "has 1 chapters that are missing or damaged",
        ),
    ],
)
def test_the_rest_of_a_damaged_file_is_read_with_a_note(
    name: str, data: bytes, text: str, note: str
) -> None:
    found = document(name, data)
    assert text_of(found).startswith(text)
    assert found.note.startswith(note)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.md", b"", "is empty"),
        ("a.html", b"<script>1</script>", "holds no text"),
        ("a.txt", b"wine\x00\x01", "is binary, not text"),
        (
            "a.odt",
            b"PK",
            "is not Markdown, text, HTML, PDF, Word (.docx), EPUB, CSV or Excel",
        ),
        ("a.pdf", pdf("Lees.")[:300], "is broken or cut off"),
        (
            "a.pdf",
            pdf(PICTURE),
            "holds pictures of pages and no text (a scan): run ocrmypdf",
        ),
        ("a.pdf", encrypted_pdf(), "is encrypted; save it without a password"),
        ("a.epub", BOOK[:-300], "is damaged, or no epub file"),
        (
            "a.epub",
            epub("<p>Lees.</p>", locked=True),
            "is encrypted (protected against copies)",
        ),
    ],
)
def test_a_file_that_cannot_be_read_has_a_reason(
    name: str, data: bytes, reason: str
) -> None:
    with pytest.raises(Unreadable, match=f"^{re.escape(reason)}"):
        document(name, data)


def test_files_over_a_limit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(size_limits, "DOCUMENT_CHARS", 100)
    monkeypatch.setattr(size_limits, "PDF_PAGES", 1)
    with pytest.raises(Unreadable, match="holds over 100 characters of text; split it"):
        document("a.txt", b"a " * 51)
    with pytest.raises(Unreadable, match="has 2 pages, the limit is 1"):
        document("a.pdf", pdf("One", "Two"))
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 1000)
    (tmp_path / "big.txt").write_bytes(b"x" * 1001)
    with pytest.raises(
        Unreadable, match="has 1,001 bytes, the limit is 1,000; split it"
    ):
        read_bytes(tmp_path / "big.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(Unreadable, match="is not a file"):
        read_bytes(tmp_path / "pipe.txt")


async def read(
    data: bytes, convert: Callable[[bytes], T], *, is_photo: bool = False
) -> T:
    async def download() -> bytes:
        return data

    return await read_sent_file(
        FileReader(), download, convert, user_id=1, is_photo=is_photo
    )


async def test_sent_files_are_converted_or_refused() -> None:
    large = saved(Image.new("1", (5000, 5000)), "PNG")
    assert (await read(large, to_data_url)).startswith("data:image/jpeg")
    photo = await read(drawn(["Chablis"]), to_data_url, is_photo=True)
    assert photo.startswith("data:image/jpeg")
    pages, more = await read(pdf(*["Wine"] * 9), render_pages)
    assert (len(pages), more) == (size_limits.IMAGES, 1)
    with pytest.raises(UnusableFile, match="no_picture"):
        await read(b"%PDF-1.7 and no more", render_pages)
