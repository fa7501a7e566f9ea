"""The bot over HTTP, on real sockets: what it takes, what it refuses, and how it stops."""

import asyncio
import json
import logging
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from agent.repositories import Backlog, Payload
from bot.http import guards, server
from bot.http.server import (
    SECRET_HEADER,
    WEBHOOK_PATH,
    CannotListen,
    Webhook,
    http_app,
    listen,
    serve_http,
)
from bot.metrics import Metrics
from bot.updates.accept import Accept
from tests.doubles.server import eventually
from tests.serving import Running, nothing_waits
from tests.serving import serving as serve

PATIENCE = 30
"""Seconds after which what never comes is given up; nothing is to take that long."""

SECRET = "right-secret-5c1f"
PRIVATE = "Gevrey for Aunt Rosalind"
UPDATE: dict[str, object] = {"update_id": 7, "message": {"text": PRIVATE}}
BODY = json.dumps(UPDATE).encode()
JSON = {"content-type": "application/json"}
GOOD = {**JSON, SECRET_HEADER: SECRET}
TWO_MEGABYTES = json.dumps({"update_id": 7, "text": PRIVATE + "x" * 2_000_000}).encode()


@dataclass
class Accepted:
    """Takes every update, and keeps it."""

    updates: list[Payload] = field(default_factory=list)

    async def __call__(self, updates: Sequence[Payload]) -> None:
        self.updates += updates


@dataclass
class HeldBack:
    """Takes an update only when `go` is set; tidies up for a moment when cancelled before."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    tidy: bool = False
    updates: list[Payload] = field(default_factory=list)

    async def __call__(self, updates: Sequence[Payload]) -> None:
        self.began.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            self.tidy = True
            raise
        self.updates += updates


class DatabaseGone(Exception):
    """Its text holds what was to be stored, as that of database errors does."""


async def fail(updates: Sequence[Payload]) -> None:
    raise DatabaseGone(f"INSERT {updates}")


@asynccontextmanager
async def serving(
    accept: Accept = fail,
    *,
    secret: str = SECRET,
    max_body_bytes: int = 1_000_000,
    body_seconds: float = 10,
    **others: Any,
) -> AsyncIterator[Running]:
    """The app with a webhook."""
    metrics = Metrics()
    webhook = Webhook(
        accept=accept,
        secret=SecretStr(secret),
        metrics=metrics,
        max_body_bytes=max_body_bytes,
        body_seconds=body_seconds,
    )
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


async def send_on(writer: asyncio.StreamWriter) -> None:
    """A hundred bytes a second, for as long as the other side takes them."""
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def in_chunks(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 65_536):
        yield body[start : start + 65_536]


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
async def test_an_update_is_accepted_as_it_was_sent(kind: str) -> None:
    accept = Accepted()
    async with serving(accept) as running:
        headers = GOOD | {"content-type": kind}
        response = await running.client.post(WEBHOOK_PATH, content=BODY, headers=headers)
        assert (response.status_code, response.text) == (200, "")
        assert accept.updates == [UPDATE]
        assert running.refusals() == {}


@pytest.mark.parametrize("odd", ["[" * 1500 + "]" * 1500, "9" * 6000, "[" * 300 + "]" * 300])
async def test_of_an_update_that_cannot_be_held_the_id_is_accepted(odd: str) -> None:
    accept = Accepted()
    async with serving(accept) as running:
        body = f'{{"update_id": 7, "message": {{"text": "{PRIVATE}", "future": {odd}}}}}'
        response = await running.client.post(WEBHOOK_PATH, content=body.encode(), headers=GOOD)
        assert response.status_code == 200
        assert accept.updates == [{"update_id": 7, "message": {}}]


REFUSED = {
    "no secret": (JSON, BODY, 403, "secret"),
    "empty secret": (JSON | {SECRET_HEADER: ""}, BODY, 403, "secret"),
    "wrong secret": (JSON | {SECRET_HEADER: "wrong-secret-9d2e"}, BODY, 403, "secret"),
    "half the secret": (JSON | {SECRET_HEADER: SECRET[:8]}, BODY, 403, "secret"),
    "longer secret": (JSON | {SECRET_HEADER: SECRET + "x"}, BODY, 403, "secret"),
    "non-ASCII secret": (JSON | {SECRET_HEADER: "sécret-ключ"}, BODY, 403, "secret"),
    "no secret and 2 MB": (JSON, TWO_MEGABYTES, 403, "secret"),
    "no content type": ({SECRET_HEADER: SECRET}, BODY, 415, "content_type"),
    "form": (GOOD | {"content-type": "multipart/form-data"}, BODY, 415, "content_type"),
    "2 MB": (GOOD, TWO_MEGABYTES, 413, "too_large"),
    "malformed JSON": (GOOD, BODY[:-1], 400, "malformed"),
    "not UTF-8": (GOOD, BODY.replace(b"Aunt", b"\xff\xfe"), 400, "malformed"),
    "empty body": (GOOD, b"", 400, "malformed"),
    "endless nesting": (GOOD, b"[" * 500_000, 400, "malformed"),
    "list": (GOOD, b"[" + BODY + b"]", 400, "malformed"),
    "no update_id": (GOOD, json.dumps({"text": PRIVATE}).encode(), 400, "malformed"),
    "update_id as text": (GOOD, b'{"update_id": "7"}', 400, "malformed"),
    "update_id true": (GOOD, b'{"update_id": true}', 400, "malformed"),
}


@pytest.mark.parametrize(
    ("headers", "body", "status", "reason"), REFUSED.values(), ids=REFUSED.keys()
)
async def test_the_webhook_refuses_and_tells_nothing(
    headers: dict[str, str],
    body: bytes,
    status: int,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(1)
    accept = Accepted()
    wire = [(name.encode(), value.encode()) for name, value in headers.items()]
    async with serving(accept) as running:
        response = await running.client.post(WEBHOOK_PATH, content=body, headers=wire)
        assert response.status_code == status
        assert accept.updates == []
        assert running.refusals() == {reason: 1}
    assert_nothing_told(caplog, response)


@pytest.mark.parametrize("headers", [GOOD, JSON], ids=["413 to Telegram", "403 to a stranger"])
async def test_a_2_mb_body_without_content_length_is_refused(
    headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(1)
    async with serving() as running:
        response = await running.client.post(
            WEBHOOK_PATH, content=in_chunks(TWO_MEGABYTES), headers=headers
        )
        assert "content-length" not in response.request.headers
        assert response.status_code == (413 if SECRET_HEADER in headers else 403)
    assert_nothing_told(caplog, response)


def assert_nothing_told(caplog: pytest.LogCaptureFixture, response: httpx.Response) -> None:
    """One line says why, and neither it nor any other nor the answer repeats the request."""
    refusals = [record for record in caplog.records if record.name == "bot.http.server"]
    messages = [record.getMessage() for record in refusals if record.levelno == logging.WARNING]
    assert messages == [f"The webhook refused a request: {response.text.strip()}"]
    for secret in (SECRET, "wrong-secret", "ключ", "Rosalind", "update_id\\", "7}"):
        assert secret not in caplog.text
        assert secret not in response.text


CHUNK = b"2711\r\n" + b"x" * 10_001 + b"\r\n"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"content_length": 2_000_000}, b""),
        ({"content_length": 2_000_000, "expect": "100-continue"}, b""),
        ({"transfer_encoding": "chunked"}, CHUNK),
    ],
    ids=["declared", "asked first", "without length"],
)
async def test_too_much_is_refused_at_the_limit_and_not_at_its_end(
    headers: dict[str, object], body: bytes
) -> None:
    async with serving(max_body_bytes=10_000) as running:
        reader, writer = await running.raw(head(**headers) + body)
        assert await status_of(reader) == 413
        writer.close()


async def test_a_stranger_cannot_keep_a_refused_connection_open_by_sending_on() -> None:
    async with serving() as running:
        reader, writer = await running.raw(head(content_length=10**12).replace(b"right", b"wrong"))
        assert await status_of(reader) == 403
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(send_on(writer), PATIENCE)
        writer.close()


async def test_the_limit_is_the_last_size_that_is_taken() -> None:
    accept = Accepted()
    async with serving(accept, max_body_bytes=len(BODY)) as running:
        post = running.client.post
        assert (await post(WEBHOOK_PATH, content=BODY, headers=GOOD)).status_code == 200
        assert (await post(WEBHOOK_PATH, content=BODY + b" ", headers=GOOD)).status_code == 413
        chunked = in_chunks(BODY + b" ")
        assert (await post(WEBHOOK_PATH, content=chunked, headers=GOOD)).status_code == 413
        assert accept.updates == [UPDATE]


async def test_a_body_that_trickles_in_is_given_up() -> None:
    async with serving(body_seconds=0.2) as running:
        reader, writer = await running.raw(head(content_length=1000))
        trickling = asyncio.create_task(send_on(writer))
        assert await status_of(reader) == 408
        trickling.cancel()
        writer.close()
        assert running.refusals() == {"too_slow": 1}


async def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    accept = Accepted()
    async with serving(accept) as running:
        _, writer = await running.raw(head(content_length=len(BODY)) + BODY[:20])
        await running.client.get("/healthz")
        writer.close()
        await writer.wait_closed()
        await eventually(
            lambda: running.refusals() == {"cut_off": 1},
            seconds=PATIENCE,
            otherwise=lambda: str(running.refusals()),
        )
    assert accept.updates == []
    assert "Traceback" not in caplog.text


async def test_200_comes_only_after_the_update_is_accepted() -> None:
    accept = HeldBack()
    async with serving(accept) as running:
        request = running.client.post(WEBHOOK_PATH, content=BODY, headers=GOOD)
        posting = asyncio.create_task(request)
        await accept.began.wait()
        await asyncio.sleep(0.05)
        assert not posting.done()
        accept.go.set()
        assert (await posting).status_code == 200
        assert accept.updates == [UPDATE]


async def test_an_update_that_cannot_be_stored_is_to_be_delivered_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(1)
    async with serving(fail) as running:
        response = await running.client.post(WEBHOOK_PATH, content=BODY, headers=GOOD)
        assert response.status_code == 503
        assert running.refusals() == {"not_accepted": 1}
    assert "Accepting an update failed with DatabaseGone" in caplog.text
    assert "INSERT" not in caplog.text
    assert_nothing_told(caplog, response)


@pytest.mark.parametrize("headers", [JSON, JSON | {SECRET_HEADER: ""}], ids=["none", "empty"])
async def test_an_empty_secret_lets_nobody_in(headers: dict[str, str]) -> None:
    async with serving(Accepted(), secret="") as running:
        response = await running.client.post(WEBHOOK_PATH, content=BODY, headers=headers)
        assert response.status_code == 403


async def test_without_a_secret_there_is_no_webhook() -> None:
    async with serve() as running:
        response = await running.client.post(WEBHOOK_PATH, content=BODY, headers=GOOD)
        assert response.status_code == 404


async def test_the_webhook_is_only_posted_to() -> None:
    async with serving() as running:
        assert (await running.client.get(WEBHOOK_PATH, headers=GOOD)).status_code == 405


async def test_readiness_is_asked_for_every_time_and_whoever_is_not_ready_is_alive() -> None:
    answers = iter([Backlog(), None, Backlog()])

    async def next_answer() -> Backlog:
        if (found := next(answers)) is None:
            raise DatabaseGone
        return found

    async with serving(backlog=next_answer) as running:
        paths = ("/readyz", "/readyz", "/healthz", "/readyz")
        statuses = [(await running.client.get(path)).status_code for path in paths]
        assert statuses == [200, 503, 200, 200]


async def test_a_readiness_check_that_fails_is_a_no_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken() -> Backlog:
        raise DatabaseGone("postgresql://bot:password@db")

    async with serving(backlog=broken) as running:
        response = await running.client.get("/readyz")
        assert (response.status_code, response.text) == (503, "not ready\n")
    assert "readiness could not be found out (DatabaseGone)" in caplog.text
    assert "password" not in caplog.text


async def test_metrics_show_what_waits() -> None:
    async def three_wait() -> Backlog:
        return Backlog(waiting=3, oldest_seconds=12.5)

    async with serving(backlog=three_wait) as running:
        running.metrics.update("accepted")
        response = await running.client.get("/metrics")
        lines = response.text.splitlines()
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "sommelier_queue_depth 3.0" in lines
    assert "sommelier_queue_oldest_seconds 12.5" in lines
    assert 'sommelier_updates_total{result="accepted"} 1.0' in lines


@pytest.mark.parametrize("hangs", [False, True], ids=["fails", "hangs"])
async def test_metrics_are_there_when_the_backlog_is_not(hangs: bool) -> None:
    async def broken() -> Backlog:
        if hangs:
            await asyncio.Event().wait()
        raise DatabaseGone

    async with serving(backlog=broken) as running:
        running.metrics.update("accepted")
        response = await running.client.get("/metrics")
        lines = response.text.splitlines()
    assert response.status_code == 200
    assert "sommelier_queue_depth NaN" in lines
    assert 'sommelier_updates_total{result="accepted"} 1.0' in lines


async def test_stopping_answers_what_is_being_accepted_and_takes_nothing_new() -> None:
    accept = HeldBack()
    async with serving(accept, finish_seconds=60) as running:
        request = running.client.post(WEBHOOK_PATH, content=BODY, headers=GOOD)
        posting = asyncio.create_task(request)
        await accept.began.wait()
        running.stop.set()
        await running.refuses_connections()
        assert not running.task.done()
        accept.go.set()
        assert (await posting).status_code == 200
        await running.task
        assert accept.updates == [UPDATE]


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nHos",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
    ],
)
async def test_whoever_does_not_send_a_whole_request_in_time_is_cut_off(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "HEADER_SECONDS", 0.2)
    async with serving() as running:
        reader, writer = await running.raw(sent)
        trickling = asyncio.create_task(send_on(writer))
        await asyncio.wait_for(gone_or_cut(reader), PATIENCE)
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(trickling, PATIENCE)
        writer.close()


async def test_a_connection_that_is_used_on_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "HEADER_SECONDS", 0.2)
    async with serving() as running:
        reader, writer = await running.raw(b"")
        for _ in range(4):
            writer.write(b"GET /healthz HTTP/1.1\r\n")
            await asyncio.sleep(0.1)
            writer.write(b"Host: x\r\n\r\n")
            assert await status_of(reader) == 200
            await asyncio.wait_for(reader.readuntil(b"alive\n"), PATIENCE)
        writer.close()


async def test_beyond_a_limit_connections_are_refused_and_then_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (guards, server):
        monkeypatch.setattr(module, "MOST_CONNECTIONS", 3)
    async with serving() as running:
        waiting = [await running.raw(b"GET /heal") for _ in range(4)]
        waiting.append(await running.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))
        assert await status_of(waiting[-1][0]) == 503
        waiting += [await running.raw(b"") for _ in range(3)]
        assert await asyncio.wait_for(gone(waiting[-1][0]), PATIENCE)
        for _, writer in waiting:
            writer.close()


async def gone_or_cut(reader: asyncio.StreamReader) -> None:
    """Return when a connection has ended, by an end or a reset, whatever was said before."""
    with suppress(ConnectionError):
        await reader.read()


async def gone(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


async def test_wrong_secrets_are_limited_and_the_right_one_never_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    accept = Accepted()
    async with serving(accept) as running:
        post = partial(running.client.post, WEBHOOK_PATH, content=BODY)
        wrong = [await post(headers={**GOOD, SECRET_HEADER: f"wrong-{n}"}) for n in range(12)]
        assert [each.status_code for each in wrong] == [403] * 10 + [429] * 2
        assert (await post(headers=GOOD)).status_code == 200
        assert running.refusals() == {"secret": 10, "too_many": 2}
        # A proxy on this machine is believed whom it speaks for.
        other = {**GOOD, SECRET_HEADER: "wrong", "X-Forwarded-For": "203.0.113.7"}
        assert (await post(headers=other)).status_code == 403
    assert (len(accept.updates), caplog.text.count("refused a request")) == (1, 11)


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


async def test_an_accept_that_never_ends_is_cut_off_and_not_acknowledged() -> None:
    accept = HeldBack()
    async with serving(accept, finish_seconds=1) as running:
        request = running.client.post(WEBHOOK_PATH, content=BODY, headers=GOOD)
        posting = asyncio.create_task(request)
        await accept.began.wait()
        running.stop.set()
        await running.task
        assert accept.tidy
        assert (await posting).status_code == 500
    assert accept.updates == []


async def test_a_cancelled_server_closes_its_connections_and_frees_its_port() -> None:
    async with serving() as running:
        reader, writer = await running.raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert await status_of(reader) == 200
        running.task.cancel()
        assert (await asyncio.wait_for(reader.read(), PATIENCE)).endswith(b"alive\n")
        writer.close()
        with pytest.raises(asyncio.CancelledError):
            await running.task
        listen("127.0.0.1", running.port).close()


async def test_signals_stay_with_who_handles_them() -> None:
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in signals]
    async with serving() as running:
        await running.client.get("/healthz")
        assert [signal.getsignal(number) for number in signals] == before


async def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        app = http_app(metrics=Metrics(), backlog=nothing_waits)
        with pytest.raises(CannotListen, match=rf"127\.0\.0\.1 port {port}: Address already"):
            await serve_http(app, host="127.0.0.1", port=port, stop=asyncio.Event())
