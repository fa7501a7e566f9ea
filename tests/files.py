"""Files of every kind that is read, made of a few lines each."""

import io
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

from docx import Document
from openpyxl import Workbook

PICTURE = "q 600 0 0 800 0 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q"
"""A page of one grey picture, as a scanner makes it."""


def at(x: int, y: int, text: str) -> str:
    return f"BT /F1 10 Tf {x} {y} Td ({text}) Tj ET"


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF file as simple as they come; a page is a line, or drawn as it says."""
    drawn = [
        page if not page or page.endswith(("ET", "Q")) else at(50, 700, page)
        for page in pages
    ]
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids = []
    for stream in (page.encode("latin-1") for page in drawn):
        objects.append(
            b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream)
        )
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%b] /Count %d >>" % (
        b" ".join(kids),
        len(kids),
    )
    objects.append(f"<< /Title ({title}) >>".encode())
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return (
        body
        + b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
        + b"trailer\n<< /Size %d"
        b" /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (size, size - 1, len(body))
    )


def encrypted_pdf() -> bytes:
    """A PDF file that no empty password opens."""
    key = b"<" + b"0a" * 32 + b">"
    told = (
        b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -44 /O %b /U %b >> /ID [<00> <00>]"
        % (
            key,
            key,
        )
    )
    return pdf("Secret").replace(b"trailer\n<< ", b"trailer\n<< " + told + b" ")


def docx(build: Any) -> bytes:
    document, file = Document(), io.BytesIO()
    build(document)
    document.save(file)
    return file.getvalue()


def epub(*chapters: str, title: str = "", locked: bool = False) -> bytes:
    """An EPUB book; the order of its chapters is that of its spine, not of its files."""
    names = [f"text/{len(chapters) - number}.xhtml" for number in range(len(chapters))]
    items = "".join(
        f'<item id="c{at}" href="{name}"/>' for at, name in enumerate(names)
    )
    spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(names)))
    files = {
        "META-INF/container.xml": "<container "
        'xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>{title}</dc:title></metadata><manifest>{items}</manifest>"
        f"<spine>{spine}</spine></package>",
    }
    files |= {f"OEBPS/{name}": text for name, text in zip(names, chapters, strict=True)}
    if locked:
        files["META-INF/encryption.xml"] = (
            '<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#">'
            f'<e:CipherReference URI="OEBPS/{names[0]}"/></encryption>'
        )
    return packed(files)


def packed(files: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return file.getvalue()


def xlsx(sheets: dict[str, Iterable[Sequence[object]]], hidden: str = "") -> bytes:
    """A workbook; the sheet named `hidden` is not shown."""
    book, file = Workbook(), io.BytesIO()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
        if name == hidden:
            sheet.sheet_state = "hidden"
    book.save(file)
    return file.getvalue()
