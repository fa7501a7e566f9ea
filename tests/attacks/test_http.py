"""Requests to the HTTP server that redirect, break its answers, or come from a web page."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.integration.test_api import JSON
from tests.integration.test_api import serving as serving_api
from tests.serving import serving

ROOT = Path(__file__).parents[2]
TOKEN = "a-long-random-token-5c1f"


@pytest.mark.parametrize("path", ["/healthz/", "/admin/", "/api/chat/"])
async def test_nothing_redirects_to_the_host_that_a_request_names(path: str) -> None:
    async with serving() as running:
        answered = await running.client.get(path, headers={"host": "evil.example"})
    assert answered.status_code == 404
    assert "location" not in answered.headers


@pytest.mark.parametrize(
    "body",
    [
        rb'{"message": "\ud800"}',
        rb'{"message": "", "\ud800": 1}',
        rb'{"\ud800": "\ud800"}',
    ],
)
async def test_a_lone_surrogate_is_invalid_input(body: bytes) -> None:
    async with serving_api() as client:
        refused = await client.post("/api/chat", content=body, headers=JSON)
    assert refused.status_code == 422
    assert "input" not in refused.text


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1"]
)
async def test_a_web_page_of_another_address_reaches_no_tool(origin: str) -> None:
    async with serving(token=SecretStr(TOKEN)) as running:
        headers = {"authorization": f"Bearer {TOKEN}", "origin": origin}
        refused = await running.client.post("/mcp", headers=headers)
        own = f"http://127.0.0.1:{running.port}"
        allowed = await running.client.post("/mcp", headers=headers | {"origin": own})
    assert refused.status_code == 403
    assert allowed.status_code == 404  # there is no such route in this server


def parse_blocks(text: str) -> list[Any]:
    """Return a Caddyfile: a directive is its line, a block its opening line and its content."""
    open_blocks: list[tuple[str, list[Any]]] = [("", [])]
    for line in map(str.strip, text.splitlines()):
        if line.endswith("{"):
            open_blocks.append((line.removesuffix("{").strip(), []))
        elif line == "}":
            block = open_blocks.pop()
            open_blocks[-1][1].append(block)
        elif line and not line.startswith("#"):
            open_blocks[-1][1].append(line)
    ((_, content),) = open_blocks
    return content


def test_slow_requests_are_ended_by_the_proxy_that_the_docs_recommend() -> None:
    options, site = parse_blocks((ROOT / "deploy" / "Caddyfile").read_text())
    assert options == (
        "",
        [("servers", [("timeouts", ["read_header 10s", "read_body 30s"])])],
    )
    assert site[0] == "bot.example.com"
    assert ("request_body", ["max_size 1MB"]) in site[1]
    assert site[1][-1] == ("handle", ["respond 404"])
    assert "deploy/Caddyfile" in (ROOT / "docs" / "deploy.md").read_text()


def test_actions_are_pinned_by_hash() -> None:
    uses = re.findall(
        r"uses: (\S+)", (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    )
    assert uses
    assert [
        action
        for action in uses
        if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)
    ] == []
