"""Run the HTTP server on a free port of this machine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from fastapi import APIRouter
from pydantic import SecretStr

from bot.http.server import build_http_app, build_monitoring_router, listen, serve_http
from bot.metrics import Metrics
from db.repositories.inbox import Backlog


@dataclass
class Running:
    port: int
    task: asyncio.Task[None]
    client: httpx.AsyncClient
    metrics: Metrics

    async def raw(
        self, request: bytes
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection and send `request` on it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        await writer.drain()
        return reader, writer

    async def refuses_connections(self) -> None:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except ConnectionError:
                return
            writer.close()
            await asyncio.sleep(0.005)


async def read_empty_backlog() -> Backlog:
    return Backlog()


@asynccontextmanager
async def serving(
    *,
    backlog: Callable[[], Awaitable[Backlog]] = read_empty_backlog,
    routers: Sequence[APIRouter] = (),
    token: SecretStr | None = None,
    finish_seconds: int = 4,
) -> AsyncIterator[Running]:
    metrics = Metrics()
    app = build_http_app(
        [build_monitoring_router(metrics, backlog), *routers], token=token
    )
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    task = asyncio.create_task(serve_http(app, listener, finish_seconds=finish_seconds))
    root = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(
            timeout=60, base_url=root, trust_env=False, verify=False
        ) as client:
            yield Running(port, task, client, metrics)
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
