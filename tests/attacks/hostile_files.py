"""Files of a few bytes or megabytes that cost whoever opens them time or memory."""

import io
import zipfile
import zlib
from collections.abc import Sequence
from struct import pack

from docx import Document

from tests.files import epub, xlsx


def write_pdf(objects: Sequence[bytes]) -> bytes:
    """Return a PDF file of objects, the first of which is the catalogue."""
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    size, table = (
        len(objects) + 1,
        b"".join(b"%010d 00000 n \n" % offset for offset in offsets),
    )
    end = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        len(body),
    )
    return body + b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table) + end


def nested_pdf(levels: int = 9) -> bytes:
    """A PDF file of 2.4 kB whose forms each draw the next one ten times."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
        b" /Resources << /XObject << /X 5 0 R >> >> >>",
        b"<< /Length 5 >>\nstream\n/X Do\nendstream",
    ]
    for level in range(levels):
        is_last = level == levels - 1
        drawing = b"0 0 600 800 re f" if is_last else b"/X Do " * 10
        objects.append(
            b"<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Length %d"
            b" /Resources << /XObject << /X %d 0 R >> >> >>\nstream\n%b\nendstream"
            % (len(drawing), min(6 + level, 4 + levels), drawing)
        )
    return write_pdf(objects)


def swelling_pdf(gigabytes: int = 4) -> bytes:
    """A PDF file of 7 kB with one stream, packed twice, that swells to gigabytes."""
    # After a full flush a packed megabyte can be repeated, which saves packing it.
    packer = zlib.compressobj(9, wbits=-15)
    megabyte = packer.compress(bytes(1_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    size = gigabytes * 1_000_000_000
    checksum = ((size % 65_521) << 16 | 1).to_bytes(4)
    once = b"\x78\xda" + megabyte * (size // 1_000_000) + b"\x03\x00" + checksum
    stream = zlib.compress(once, 9)
    return write_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R >>",
            b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n%b\nendstream"
            % (len(stream), stream),
        ]
    )


def with_member(archive: bytes, name: str, megabytes: int, part: bytes) -> bytes:
    """Return a zip archive in which one member is `part`, repeated for so many megabytes."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(archive)) as old,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for member in old.namelist():
            if member != name:
                new.writestr(member, old.read(member))
        with new.open(name, "w", force_zip64=True) as content:
            for _ in range(megabytes):
                content.write(part * (1_000_000 // len(part)))
    return file.getvalue()


def swelling_workbook(megabytes: int = 220) -> bytes:
    """A workbook of some 100 kB whose table of texts swells."""
    book = xlsx({"Cellar": [["name", "count"], ["Barolo", 1]]})
    return with_member(
        book, "xl/sharedStrings.xml", megabytes, b"<si><t>aaaaaaaaaa</t></si>"
    )


def swelling_docx(megabytes: int = 150) -> bytes:
    """A Word file whose text swells."""
    file = io.BytesIO()
    Document().save(file)
    paragraph = b"<w:p><w:r><w:t>aaaaaaaaaa</w:t></w:r></w:p>"
    return with_member(file.getvalue(), "word/document.xml", megabytes, paragraph)


def swelling_epub(megabytes: int = 150) -> bytes:
    """A book of some 150 kB whose only chapter swells."""
    paragraph = b"<p>aaaaaaaaaa</p>"
    return with_member(epub("<p>Lees.</p>"), "OEBPS/text/1.xhtml", megabytes, paragraph)


def commas(megabytes: int = 2) -> bytes:
    """A table of one row with millions of cells."""
    return b"name,count\n" + b"," * (megabytes * 1_000_000 - 20)


def large_picture(side: int = 7_000) -> bytes:
    """A PNG file of 49 megapixels, all of them black, and so of 150 kB."""
    packer = zlib.compressobj(9)
    rows = [packer.compress(bytes(1 + 3 * side)) for _ in range(side)]
    header = pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"IDAT", b"".join([*rows, packer.flush()])),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def marks(count: int = 2_000_000) -> bytes:
    """A text of one letter with so many combining marks."""
    return ("a" + "\u0301\u0316" * (count // 2)).encode()
