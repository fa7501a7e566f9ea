"""Entries of MCP_SERVERS, results of tools, and schemas for servers that want them strict."""

import json
from dataclasses import replace
from typing import Any

import pytest
from mcp.types import CallToolResult, ImageContent, TextContent

from agent.engine.contract import Evidence
from agent.engine.messages import LLMRequest, ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox
from agent.engine.wire import Dialect
from agent.mcp import read_servers, statements, text_of


def test_entries_are_read_as_other_programs_write_them_and_wrong_ones_are_told() -> None:
    servers, problems = read_servers(
        json.dumps(
            {
                "mcpServers": {
                    "time": {"type": "stdio", "command": "uvx", "env": {"KEY": "s3cret"}},
                    "web.one": {"url": "https://x.example/mcp", "headers": {"X": "s3cret"}},
                    "both": {"command": "x", "url": "https://x.example"},
                    "none": {},
                    "number": 3,
                }
            }
        )
    )
    assert list(servers) == ["time", "web_one"]
    assert "s3cret" not in str(servers)
    assert [problem.partition(":")[0] for problem in problems] == ["both", "none", "number"]
    for text in ("[", "[1]", "null", '{"mcpServers": 3}'):
        assert read_servers(text)[1][0].startswith("must be JSON like")


@pytest.mark.parametrize(
    ("content", "structured", "text"),
    [
        ([], {"at": "8 pm"}, '{"at": "8 pm"}'),
        ([TextContent(text=" a\x00\u202eb ")], None, "ab"),
        ([ImageContent(data="AA==", mime_type="image/png")], None, "[image, not shown]"),
        ([TextContent(text="x" * 2000)], None, "x" * 700 + "\n[cut: 2000 characters in all]"),
    ],
)
def test_a_result_is_bounded_text(content: list[Any], structured: Any, text: str) -> None:
    result = CallToolResult(content=content, structured_content=structured)
    assert text_of(result, 1000) == text


def test_what_a_model_wrote_itself_is_no_evidence() -> None:
    said = "Page https://made.up/x links https://real.example/y"
    found = statements("web__get#1", said, {"url": "https://made.up/x", "n": 3})
    evidence = Evidence(sources=found)
    assert evidence.links == {"https://real.example/y"}
    assert "made.up" not in "".join(evidence.texts)


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}},
    "required": ["city"],
}


def test_a_server_that_wants_strict_tools_gets_them_after_its_complaint() -> None:
    dialect = Dialect("json_object").without(
        "Invalid schema for function 'fair': 'additionalProperties' is required to be false"
    )
    assert dialect == replace(Dialect("json_object"), strict_tools=True)
    tool = {"type": "function", "function": {"name": "fair", "parameters": SCHEMA}}
    asked = dialect.parameters([], LLMRequest([tool]))
    function = asked["tools"][0]["function"]
    assert function["strict"] is True
    assert function["parameters"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    }
    nested = {"type": "object", "properties": {"anything": {"type": "object"}}}
    open_tool = {"type": "function", "function": {"name": "any", "parameters": nested}}
    assert dialect.parameters([], LLMRequest([open_tool]))["tools"] == [open_tool]


async def test_arguments_that_are_null_are_not_given() -> None:
    def fair(city: str, days: int = 3) -> str:
        """When."""
        return f"{city} {days}"

    called = ToolCall("1", "fair", '{"city": "Graz", "days": null}')
    assert (await Toolbox([fair]).call(called, Run())).text == "Graz 3"
