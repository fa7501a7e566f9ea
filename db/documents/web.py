"""Fetch a page or file of the web for the operator, from public addresses only.

A name is looked up once, and the connection goes to an address that was checked; so does each
redirect. Only the command line names addresses: nothing that users or models write gets here.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

import httpx2

from agent import lengths
from agent.senses.pdf import Unreadable
from db.documents.reading import KINDS, MAX_FILE_BYTES, SUPPORTED

SECONDS: Final = 30.0
MAX_REDIRECTS: Final = 5
SUFFIXES: Final = {
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
HEADERS: Final = {"user-agent": "sommelier", "accept-encoding": "identity"}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet and embeds no other address."""
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour or address.teredo
        if embedded or address in ipaddress.ip_network("64:ff9b::/96"):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


async def look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


async def fetch(
    url: str,
    max_bytes: int = MAX_FILE_BYTES,
    *,
    resolve: Resolve = look_up,
    allowed: Callable[[Address], bool] = is_public,
) -> tuple[str, bytes]:
    """Return the path by which the page at `url` will be known, and its content.

    Raises:
        Unreadable: it has no public address, fails, or is too large, too slow or of another kind.
    """
    try:
        async with asyncio.timeout(SECONDS), httpx2.AsyncClient(trust_env=False) as client:
            for _ in range(MAX_REDIRECTS + 1):
                request = await _request(client, url, resolve, allowed)
                response = await client.send(request, stream=True)
                try:
                    if not response.has_redirect_location:
                        return await _content(url, response, max_bytes)
                    url = urljoin(url, response.headers["location"])
                finally:
                    await response.aclose()
    except TimeoutError:
        raise Unreadable(f"did not come within {SECONDS:g} s") from None
    except Unreadable:
        raise
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise Unreadable(f"cannot be fetched: {type(error).__name__}") from error
    raise Unreadable(f"redirects more than {MAX_REDIRECTS} times")


async def _request(
    client: httpx2.AsyncClient, url: str, resolve: Resolve, allowed: Callable[[Address], bool]
) -> httpx2.Request:
    """Return a request to one checked address of the name; TLS still verifies the name."""
    asked = httpx2.URL(url)
    if asked.scheme not in {"http", "https"} or not asked.host or asked.userinfo:
        raise Unreadable("is no web address that can be added: http or https, no user name")
    port = asked.port or {"http": 80, "https": 443}[asked.scheme]
    found = await resolve(asked.raw_host.decode(), port)
    addresses = [ipaddress.ip_address(address) for address in found]
    if not addresses or not all(map(allowed, addresses)):
        raise Unreadable("leads to a private address, or to none")
    return client.build_request(
        "GET",
        asked.copy_with(host=str(addresses[0])),
        headers={**HEADERS, "host": asked.netloc.decode()},
        extensions={"sni_hostname": asked.host},
    )


async def _content(url: str, response: httpx2.Response, max_bytes: int) -> tuple[str, bytes]:
    if response.status_code != 200:
        raise Unreadable(f"answers {response.status_code}")
    kind, _, parameters = response.headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    path = _known_as(url, kind)
    data = await lengths.body_of(response, max_bytes)
    if data is None:
        raise Unreadable(f"has over {max_bytes:,} bytes, which is the limit")
    if "charset" in parameters.lower() and kind.startswith("text/") and response.charset_encoding:
        data = data.decode(response.charset_encoding, "replace").encode("utf-8")
    return path, data


def _known_as(url: str, kind: str) -> str:
    """Return host and path, with the suffix of the kind of file unless the path has it."""
    parts = urlsplit(url)
    path = unquote(parts.path).rstrip("/") + (f"?{parts.query}" if parts.query else "")
    suffix = PurePosixPath(unquote(parts.path)).suffix.lower()
    ending = SUFFIXES.get(kind) or (suffix if suffix in KINDS else "")
    if not ending:
        raise Unreadable(f"is of the type {kind or '(none)'}, not {SUPPORTED}")
    has_suffix = KINDS.get(suffix) == KINDS[ending] and not parts.query
    known = f"{parts.hostname}{path}{'' if has_suffix else ending}"
    if len(known) > lengths.FILE_NAME:
        raise Unreadable(f"has an address of over {lengths.FILE_NAME} characters")
    return known
