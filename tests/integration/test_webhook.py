"""The HTTP server on real sockets: what it accepts, what it refuses, and how it stops."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from bot.http.server import (
    SECRET_HEADER,
    WEBHOOK_PATH,
    CannotListen,
    build_webhook_router,
    listen,
)
from bot.telegram.connection import AcceptUpdates
from db.repositories.inbox import Backlog, Payload
from tests.serving import Running
from tests.serving import serving as serve

PATIENCE = 30
"""Seconds after which what never comes is given up; nothing should take that long."""

SECRET = "right-secret-5c1f"
PRIVATE = "Gevrey for Aunt Rosalind"
UPDATE: dict[str, object] = {"update_id": 7, "message": {"text": PRIVATE}}
BODY = json.dumps(UPDATE).encode()
JSON = {"content-type": "application/json"}
HEADERS = {**JSON, SECRET_HEADER: SECRET}


class Inbox:
    """Accepts updates once `go` is set."""

    def __init__(self) -> None:
        self.updates: list[Payload] = []
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, updates: Sequence[Payload]) -> None:
        self.asked.set()
        await self.go.wait()
        self.updates += updates


class DatabaseGone(Exception):
    """An error whose text contains the update, like the errors of databases."""


async def fail(updates: Sequence[Payload]) -> None:
    raise DatabaseGone(f"INSERT {updates}")


@asynccontextmanager
async def serving(
    accept: AcceptUpdates = fail, **others: Any
) -> AsyncIterator[Running]:
    """Serve the app with a webhook."""
    router = build_webhook_router(accept, SecretStr(SECRET))
    async with serve(routers=[router], **others) as running:
        yield running


async def post(running: Running) -> httpx.Response:
    return await running.client.post(WEBHOOK_PATH, content=BODY, headers=HEADERS)


REFUSED = {
    "no secret": (JSON, BODY, 403),
    "wrong secret": (JSON | {SECRET_HEADER: "wrong-secret-9d2e"}, BODY, 403),
    "non-ASCII secret": (JSON | {SECRET_HEADER: "sécret-ключ"}, BODY, 403),
    "endless nesting": (HEADERS, b"[" * 500_000, 400),
    "update_id true": (HEADERS, b'{"update_id": true}', 400),
    "not to be stored": (HEADERS, BODY, 503),
}


async def test_the_webhook_refuses_requests_and_reveals_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(1)
    async with serving(fail) as running:
        for headers, body, status in REFUSED.values():
            wire = [(name.encode(), value.encode()) for name, value in headers.items()]
            response = await running.client.post(
                WEBHOOK_PATH, content=body, headers=wire
            )
            assert response.status_code == status
            for secret in (SECRET, "wrong-secret", "ключ", "Rosalind", "INSERT", "7}"):
                assert secret not in caplog.text + response.text
    assert f"{WEBHOOK_PATH} failed with DatabaseGone" in caplog.text


async def test_a_request_without_the_secret_is_refused_before_the_body_is_read() -> (
    None
):
    async with serving() as running:
        lines = ["host: localhost", f"content-length: {10**12}", "", ""]
        request = "\r\n".join([f"POST {WEBHOOK_PATH} HTTP/1.1", *lines])
        reader, writer = await running.raw(request.encode())
        async with asyncio.timeout(PATIENCE):
            assert (await reader.readline()).split()[1] == b"403"
        writer.close()


async def test_health_and_metrics_are_served_without_a_database(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waiting = Backlog(unfinished=3, oldest_seconds=12.5)
    answers = iter([waiting, None, waiting])

    async def backlog() -> Backlog:
        for found in answers:
            if found is None:
                raise DatabaseGone("postgresql://bot:password@db")
            return found
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(backlog=backlog) as running:
        running.metrics.count_update("accepted")
        running.metrics.count_send("ambiguous")
        running.metrics.count_turn("answered", 1.5)
        paths = ("/readyz", "/readyz", "/healthz")
        statuses = [(await running.client.get(path)).status_code for path in paths]
        assert statuses == [200, 503, 200]
        shown, later = [await running.client.get("/metrics") for _ in range(2)]
    assert "the backlog could not be read (DatabaseGone)" in caplog.text
    assert "password" not in caplog.text
    assert shown.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "sommelier_queue_depth 3.0\n" in shown.text
    assert "sommelier_queue_oldest_seconds 12.5" in shown.text
    assert "sommelier_queue_depth NaN" in later.text
    assert 'sommelier_turns_total{outcome="answered"} 1.0\n' in shown.text
    assert (
        'sommelier_turns_total{outcome="failed"} 0.0\n' in shown.text
    )  # is there from the start
    assert "sommelier_turn_seconds_total 1.5\n" in shown.text
    assert 'sommelier_telegram_sends_total{result="ambiguous"} 1.0\n' in shown.text
    assert 'sommelier_updates_total{result="accepted"} 1.0\n' in later.text


@pytest.mark.parametrize(("seconds", "status"), [(60, 200), (1, 500)])
async def test_during_shutdown_only_an_accepted_update_is_answered_with_200(
    seconds: int, status: int
) -> None:
    inbox = Inbox()
    async with serving(inbox, finish_seconds=seconds) as running:
        posting = asyncio.create_task(post(running))
        await inbox.asked.wait()
        running.task.cancel()
        await running.refuses_connections()
        assert not posting.done()
        if status == 200:
            inbox.go.set()
        assert (await posting).status_code == status
        await asyncio.wait([running.task])
    assert inbox.updates == [UPDATE] * (status == 200)


def test_a_port_in_use_is_reported_in_one_line() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            CannotListen, match=rf"127\.0\.0\.1 port {port}: Address already"
        ):
            listen("127.0.0.1", port)
