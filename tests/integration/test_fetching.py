"""Adding a page of the web: from public addresses, within limits."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import pytest

from agent.senses.pdf import Unreadable
from db.documents.indexing import AddReport, add_page
from db.documents.web import fetch, is_public
from db.engine import Sessions
from db.repositories.documents import SqlDocumentStore

PAGE = b"<h1>Lees</h1><p>They are dead yeast.</p>"


def answer(body: bytes = PAGE, status: str = "200 OK", **headers: str) -> bytes:
    told = {"content_type": "text/html", "content_length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in told.items())
    return f"HTTP/1.1 {status}\r\n{lines}connection: close\r\n\r\n".encode() + body


@asynccontextmanager
async def serving(answers: dict[str, bytes]) -> AsyncIterator[tuple[int, list[str]]]:
    """A web server that says what it is given for each path; its port, and the hosts asked for."""
    hosts: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        hosts.extend(line[6:] for line in head.split("\r\n") if line.lower().startswith("host: "))
        writer.write(answers[head.split()[1]])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], hosts


def found(*addresses: str) -> Any:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


here: Callable[..., Any] = lambda url, **more: fetch(  # noqa: E731
    url, resolve=found("127.0.0.1"), allowed=lambda _: True, **more
)


async def test_a_page_is_known_by_its_address_and_asked_for_by_its_name() -> None:
    async with serving({"/lees": answer(), "/a/b.pdf?x=1": answer(b"%PDF-")}) as (port, hosts):
        path, content = await here(f"http://wine.example:{port}/lees")
        assert (path, content, hosts) == (
            "wine.example/lees.html",
            PAGE,
            [f"wine.example:{port}"],
        )
        other, _ = await here(f"http://wine.example:{port}/a/b.pdf?x=1")
        assert other == "wine.example/a/b.pdf?x=1.html"


async def test_what_the_server_says_of_the_encoding_holds() -> None:
    said = answer("Вино".encode("cp1251"), content_type="text/plain; charset=windows-1251")
    async with serving({"/": said}) as (port, _):
        path, content = await here(f"http://wine.example:{port}/")
        assert (path, content.decode()) == ("wine.example.txt", "Вино")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (answer(status="404 Not Found"), "answers 404"),
        (answer(content_type="image/png"), "is of the type image/png, not Markdown"),
        (answer(b"x" * 2000), "has over 1,000 bytes, which is the limit"),
        (answer(status="302 Found", location="/"), "redirects more than 5 times"),
        (answer(status="302 Found", location="ftp://wine.example/"), "is no web address"),
        (answer(status="302 Found", location="http://me:secret@wine.example/"), "is no web"),
        (answer(status="302 Found", location="file:///etc/passwd"), "is no web address"),
        (b"nonsense\r\n\r\n", "cannot be fetched: RemoteProtocolError"),
    ],
)
async def test_what_cannot_be_added_says_why(said: bytes, reason: str) -> None:
    async with serving({"/": said}) as (port, _):
        with pytest.raises(Unreadable, match=f"^{reason}"):
            await here(f"http://wine.example:{port}/", max_bytes=1000)


async def test_a_redirect_is_judged_as_the_address_was() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1", *(["10.0.0.1"] if host == "inside.example" else [])]

    said = answer(status="301 Moved", location="http://inside.example/secret")
    async with serving({"/": said}) as (port, _):
        with pytest.raises(Unreadable, match="leads to a private address"):
            await fetch(
                f"http://wine.example:{port}/",
                resolve=resolve,
                allowed=lambda address: str(address) == "127.0.0.1",
            )


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        *((each, False) for each in ("10.1.2.3", "192.168.1.1", "127.0.0.1", "169.254.169.254")),
        *((each, False) for each in ("100.64.0.1", "0.0.0.0", "224.0.0.1", "::1", "fe80::1")),
        *((each, False) for each in ("fd00::1", "::ffff:8.8.8.8", "64:ff9b::1", "2002:a00:1::1")),
    ],
)
def test_addresses_are_judged(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public


async def test_a_page_is_indexed_once(sessions: Sessions) -> None:
    store, report = SqlDocumentStore(sessions), AddReport()

    async def fetched(url: str, max_bytes: int) -> tuple[str, bytes]:
        if "bad" in url:
            raise Unreadable("answers 404")
        return "wine.example/lees.html", PAGE

    for url in ("https://wine.example/lees", "https://wine.example/lees", "https://bad.example"):
        await add_page(store, url, 1000, report, fetched)
    assert (report.added, report.unchanged) == (["wine.example/lees.html"],) * 2
    assert list(map(str, report.problems)) == ["https://bad.example answers 404"]
    assert [chunk.title for chunk in await store.search(["yeast"])] == ["Lees"]
