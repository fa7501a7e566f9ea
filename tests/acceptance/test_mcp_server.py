"""The bot's tools, listed and called by the official client of the Model Context Protocol."""

import asyncio
import json
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from pydantic import SecretStr

from agent.mcp import open_servers
from tests.acceptance.test_end_to_end import running_here
from tests.doubles.bot_api import BotApi

TOKEN = "a-long-random-token-5c1f"
TOOLS = ["search_wines", "get_wine", "find_similar_wines", "search_documents", "quotes"]


async def called(client: Client, name: str, arguments: Mapping[str, object]) -> str:
    result = await client.call_tool(name, dict(arguments))
    assert not result.is_error
    (block,) = result.content
    return str(getattr(block, "text", ""))


async def searched(client: Client) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    found = json.loads(
        await called(client, "search_wines", {"styles": ["red"], "foods": ["lamb"]})
    )
    assert found["found"] > 10
    wine_id = found["wines"][0]["wine_id"]
    (wine,) = json.loads(await called(client, "get_wine", {"wine_ids": [wine_id]}))[
        "wines"
    ]
    assert wine["wine_id"] == wine_id
    alike = json.loads(await called(client, "find_similar_wines", {"wine_id": wine_id}))
    assert wine_id not in [wine["wine_id"] for wine in alike["wines"]]
    assert "[" in await called(client, "search_documents", {"query": "sur lie"})
    quotes = json.loads(await called(client, "quotes", {"query": "cork taint"}))
    assert quotes["quotes"][0]["content"]
    wrong = await client.call_tool("search_wines", {"styles": ["purple"]})
    assert wrong.is_error
    assert "styles.0" in str(wrong.content)


async def test_another_agent_searches_the_starter_cellar_over_stdio(
    environment: dict[str, str],
) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "bot", "mcp"], env=environment
    )
    async with Client(command) as client:
        await searched(client)


async def test_another_agent_searches_over_http_with_the_api_token(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    async with running_here(bot_api, environment, API_TOKEN=TOKEN, HTTP_PORT=str(port)):
        bearer = {"authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient() as stranger,
            httpx2.AsyncClient(headers=bearer) as known,
        ):
            await until_served(stranger, url)
            assert (await stranger.post(url, json={})).status_code == 401
            async with Client(streamable_http_client(url, http_client=known)) as client:
                await searched(client)
        ours = SecretStr(json.dumps({"cellar": {"url": url, "headers": bearer}}))
        async with open_servers(ours) as servers:
            await servers.connections[0].first_attempt_ended.wait()
            assert [tool.name for tool in servers.tools] == [
                f"cellar__{name}" for name in TOOLS
            ]


async def until_served(http: httpx2.AsyncClient, url: str) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(httpx2.TransportError):
                await http.get(url)
                return
            await asyncio.sleep(0.02)
