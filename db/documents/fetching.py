"""Fetching a page or a file from the web: public addresses only, within limits.

A name is looked up once, and the connection goes to an address that was judged; so does each
redirect. Whoever runs the command names the address: nothing that people or models say gets here.
"""

import asyncio
import hashlib
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from agent import lengths
from db.documents.reading import (
    INDEX_VERSION,
    KINDS,
    KINDS_SAID,
    MAX_FILE_BYTES,
    Content,
    Unreadable,
)

SECONDS: Final = 30.0
MOST_REDIRECTS: Final = 5
TYPES: Final = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}
TEXTS: Final = ("text/", "application/xhtml")
HEADERS: Final = {"user-agent": "sommelier", "accept-encoding": "identity"}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def fetch(
    url: str,
    max_bytes: int = MAX_FILE_BYTES,
    *,
    resolve: Resolve | None = None,
    allowed: Callable[[Address], bool] | None = None,
) -> tuple[str, Content]:
    """Fetch `url`: the path that it is to be known by, and its content.

    Raises:
        Unreadable: it has no public address, fails, is too large or slow, or of another kind.
    """
    look_up, may = resolve or addresses, allowed or is_public
    try:
        async with asyncio.timeout(SECONDS), httpx.AsyncClient(trust_env=False) as client:
            for _ in range(MOST_REDIRECTS + 1):
                request = await _pinned(client, url, look_up, may)
                response = await client.send(request, stream=True)
                try:
                    if not response.has_redirect_location:
                        return await _content(url, response, max_bytes)
                    url = urljoin(url, response.headers["location"])
                finally:
                    await response.aclose()
    except TimeoutError:
        raise Unreadable(f"did not come within {SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"cannot be fetched: {type(error).__name__}") from error
    raise Unreadable(f"redirects more than {MOST_REDIRECTS} times")


def is_public(address: Address) -> bool:
    """Say whether an address is one of the public internet, in whatever form it is written."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None,))[0]
        if inner is not None:
            return False
        if address in ipaddress.ip_network("64:ff9b::/96"):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


async def addresses(host: str, port: int) -> Sequence[str]:
    """Look a name up."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


async def _pinned(
    client: httpx.AsyncClient, url: str, resolve: Resolve, allowed: Callable[[Address], bool]
) -> httpx.Request:
    """A request to an address of the name, all of which are judged; TLS still checks the name."""
    asked = httpx.URL(url)
    if asked.scheme not in {"http", "https"} or not asked.host or asked.userinfo:
        raise Unreadable("is no address of the web that can be added: http or https, no user name")
    port = asked.port or {"http": 80, "https": 443}[asked.scheme]
    found = [ipaddress.ip_address(each) for each in await resolve(asked.raw_host.decode(), port)]
    if not found or not all(map(allowed, found)):
        raise Unreadable("leads to a private address, or to none")
    return client.build_request(
        "GET",
        asked.copy_with(host=str(found[0])),
        headers={**HEADERS, "host": asked.netloc.decode()},
        extensions={"sni_hostname": asked.host},
    )


async def _content(url: str, response: httpx.Response, max_bytes: int) -> tuple[str, Content]:
    if response.status_code != 200:
        raise Unreadable(f"answers {response.status_code}")
    kind, _, rest = response.headers.get("content-type", "").partition(";")
    path = _known_as(url, kind.strip().lower())
    data = b""
    async for part in response.aiter_bytes():
        data += part
        if len(data) > max_bytes:
            raise Unreadable(f"has over {max_bytes:,} bytes, which is the limit")
    if not data.strip():
        raise Unreadable("is empty")
    charset = response.charset_encoding if "charset" in rest.lower() else None
    if charset and kind.startswith(TEXTS):
        data = data.decode(charset, "replace").encode("utf-8")
    return path, Content(data, hashlib.sha256(b"%d:%b" % (INDEX_VERSION, data)).hexdigest())


def _known_as(url: str, kind: str) -> str:
    parts = urlsplit(url)
    path = unquote(parts.path).rstrip("/") + (f"?{parts.query}" if parts.query else "")
    suffix = PurePosixPath(unquote(parts.path)).suffix.lower()
    ending = TYPES.get(kind) or (suffix if suffix in KINDS else "")
    if not ending:
        raise Unreadable(f"is of the type {kind or '(none)'}, not {KINDS_SAID}")
    same = KINDS.get(suffix) == KINDS[ending] and not parts.query
    known = f"{parts.hostname}{path}{'' if same else ending}"
    if len(known) > lengths.FILE_NAME:
        raise Unreadable(f"has an address of over {lengths.FILE_NAME} characters")
    return known
