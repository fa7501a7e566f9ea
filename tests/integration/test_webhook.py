"""The bot over HTTP, on real sockets: what it takes, what it refuses, and how it stops."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from bot.http.server import SECRET_HEADER, WEBHOOK_PATH, CannotListen, Webhook, listen
from bot.metrics import Metrics
from bot.updates.accept import Accept
from db.records import Backlog, Payload
from tests.serving import Running
from tests.serving import serving as serve

PATIENCE = 30
"""Seconds after which what never comes is given up; nothing is to take that long."""

SECRET = "right-secret-5c1f"
PRIVATE = "Gevrey for Aunt Rosalind"
UPDATE: dict[str, object] = {"update_id": 7, "message": {"text": PRIVATE}}
BODY = json.dumps(UPDATE).encode()
JSON = {"content-type": "application/json"}
GOOD = {**JSON, SECRET_HEADER: SECRET}


@dataclass
class Accepted:
    """Takes every update, and keeps it."""

    updates: list[Payload] = field(default_factory=list)

    async def __call__(self, updates: Sequence[Payload]) -> None:
        self.updates += updates


@dataclass
class HeldBack(Accepted):
    """Takes an update only when `go` is set."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, updates: Sequence[Payload]) -> None:
        self.began.set()
        await self.go.wait()
        await super().__call__(updates)


class DatabaseGone(Exception):
    """Its text holds what was to be stored, as that of database errors does."""


async def fail(updates: Sequence[Payload]) -> None:
    raise DatabaseGone(f"INSERT {updates}")


@asynccontextmanager
async def serving(accept: Accept = fail, **others: Any) -> AsyncIterator[Running]:
    """Serve the app with a webhook."""
    metrics = Metrics()
    webhook = Webhook(accept=accept, secret=SecretStr(SECRET), metrics=metrics)
    async with serve(webhook, metrics=metrics, **others) as running:
        yield running


async def status_of(reader: asyncio.StreamReader) -> int:
    """The status of a response, which has to come before the request is complete."""
    line = await asyncio.wait_for(reader.readline(), PATIENCE)
    return int(line.split()[1])


def head(**headers: object) -> bytes:
    """The head of a POST with the right secret and content type."""
    given = {"host": "localhost", **GOOD}
    given |= {name.replace("_", "-"): str(value) for name, value in headers.items()}
    lines = [
        f"POST {WEBHOOK_PATH} HTTP/1.1",
        *(f"{name}: {value}" for name, value in given.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def test_an_update_is_accepted() -> None:
    accept = Accepted()
    async with serving(accept) as running:
        response = await running.client.post(WEBHOOK_PATH, content=BODY, headers=GOOD)
        assert (response.status_code, response.text) == (200, "")
        assert accept.updates == [UPDATE]
        assert running.refusals() == {}


REFUSED = {
    "no secret": (JSON, BODY, 403, "secret"),
    "wrong secret": (JSON | {SECRET_HEADER: "wrong-secret-9d2e"}, BODY, 403, "secret"),
    "non-ASCII secret": (JSON | {SECRET_HEADER: "sécret-ключ"}, BODY, 403, "secret"),
    "endless nesting": (GOOD, b"[" * 500_000, 400, "malformed"),
    "update_id true": (GOOD, b'{"update_id": true}', 400, "malformed"),
}


async def test_the_webhook_refuses_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    accept = Accepted()
    async with serving(accept) as running:
        for headers, body, status, reason in REFUSED.values():
            before = running.refusals().get(reason, 0)
            wire = [(name.encode(), value.encode()) for name, value in headers.items()]
            response = await running.client.post(WEBHOOK_PATH, content=body, headers=wire)
            assert response.status_code == status
            assert running.refusals()[reason] == before + 1
            assert_nothing_told(caplog, response)
    assert accept.updates == []


def assert_nothing_told(caplog: pytest.LogCaptureFixture, response: httpx.Response) -> None:
    """Neither the log nor the answer repeats the request."""
    for secret in (SECRET, "wrong-secret", "ключ", "Rosalind", "update_id\\", "7}"):
        assert secret not in caplog.text
        assert secret not in response.text


async def test_a_stranger_is_refused_before_the_body_is_read() -> None:
    async with serving() as running:
        reader, writer = await running.raw(head(content_length=10**12).replace(b"right", b"wrong"))
        assert await status_of(reader) == 403
        writer.close()


async def test_an_update_that_cannot_be_stored_is_to_be_delivered_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(1)
    async with serving(fail) as running:
        response = await running.client.post(WEBHOOK_PATH, content=BODY, headers=GOOD)
        assert response.status_code == 503
        assert running.refusals() == {"not_accepted": 1}
    assert f"{WEBHOOK_PATH} failed with DatabaseGone" in caplog.text
    assert "INSERT" not in caplog.text
    assert_nothing_told(caplog, response)


async def test_a_process_that_is_not_ready_is_alive(caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([Backlog(), None, Backlog()])

    async def next_answer() -> Backlog:
        if (found := next(answers)) is None:
            raise DatabaseGone("postgresql://bot:password@db")
        return found

    async with serving(backlog=next_answer) as running:
        paths = ("/readyz", "/readyz", "/healthz", "/readyz")
        statuses = [(await running.client.get(path)).status_code for path in paths]
        assert statuses == [200, 503, 200, 200]
    assert "the backlog could not be read (DatabaseGone)" in caplog.text
    assert "password" not in caplog.text


async def test_metrics_show_what_waits_and_are_there_when_that_cannot_be_read() -> None:
    answers = iter([Backlog(waiting=3, oldest_seconds=12.5)])

    async def backlog() -> Backlog:
        for found in answers:
            return found
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(backlog=backlog) as running:
        running.metrics.update("accepted")
        response = await running.client.get("/metrics")
        later = (await running.client.get("/metrics")).text.splitlines()
    lines = response.text.splitlines()
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "sommelier_queue_depth 3.0" in lines
    assert "sommelier_queue_oldest_seconds 12.5" in lines
    assert "sommelier_queue_depth NaN" in later
    assert 'sommelier_updates_total{result="accepted"} 1.0' in later


async def test_200_comes_only_after_the_update_is_accepted_also_while_the_bot_stops() -> None:
    accept = HeldBack()
    async with serving(accept, finish_seconds=60) as running:
        request = running.client.post(WEBHOOK_PATH, content=BODY, headers=GOOD)
        posting = asyncio.create_task(request)
        await accept.began.wait()
        running.stop.set()
        await running.refuses_connections()
        assert not posting.done()
        accept.go.set()
        assert (await posting).status_code == 200
        await running.task
        assert accept.updates == [UPDATE]


async def test_an_update_that_takes_too_long_while_the_bot_stops_is_not_acknowledged() -> None:
    accept = HeldBack()
    async with serving(accept, finish_seconds=1) as running:
        request = running.client.post(WEBHOOK_PATH, content=BODY, headers=GOOD)
        posting = asyncio.create_task(request)
        await accept.began.wait()
        running.stop.set()
        await running.task
        assert (await posting).status_code == 500
    assert accept.updates == []


async def test_a_connection_that_idles_does_not_hold_up_a_stop() -> None:
    async with serving(finish_seconds=3600) as running:
        await running.client.get("/healthz")
        _, silent = await running.raw(b"")
        _, half = await running.raw(b"GET /healthz HTTP/1.1\r\nHos")
        await running.client.get("/healthz")
        running.stop.set()
        await asyncio.wait_for(running.task, PATIENCE)
        silent.close()
        half.close()


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=rf"127\.0\.0\.1 port {port}: Address already"):
            listen("127.0.0.1", port)
