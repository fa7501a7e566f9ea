"""Entries of MCP_SERVERS, results of tools, and strict schemas of tools."""

import json
from dataclasses import replace
from typing import Any

import pytest
from mcp.types import CallToolResult, ImageContent, TextContent

from agent.engine.contract import Evidence
from agent.engine.messages import LLMRequest, ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox, tool
from agent.engine.wire import Dialect
from agent.mcp import collect_evidence, format_result, read_servers


def test_the_usual_format_is_read_and_invalid_entries_are_listed() -> None:
    servers, problems = read_servers(
        json.dumps(
            {
                "mcpServers": {
                    "time": {
                        "type": "stdio",
                        "command": "uvx",
                        "env": {"KEY": "s3cret"},
                    },
                    "web.one": {
                        "url": "https://x.example/mcp",
                        "headers": {"X": "s3cret"},
                    },
                    "both": {"command": "x", "url": "https://x.example"},
                    "none": {},
                    "number": 3,
                }
            }
        )
    )
    assert list(servers) == ["time", "web_one"]
    assert "s3cret" not in str(servers)
    assert [problem.partition(":")[0] for problem in problems] == [
        "both",
        "none",
        "number",
    ]
    for text in ("[", "[1]", "null", '{"mcpServers": 3}'):
        assert read_servers(text)[1][0].startswith("must be JSON like")


@pytest.mark.parametrize(
    ("content", "structured", "text"),
    [
        ([], {"at": "8 pm"}, '{"at": "8 pm"}'),
        ([TextContent(text=" a\x00\u202eb ")], None, "ab"),
        (
            [ImageContent(data="AA==", mime_type="image/png")],
            None,
            "[image, not shown]",
        ),
        (
            [TextContent(text="x" * 2000)],
            None,
            "x" * 700 + "\n[cut: 2000 characters in all]",
        ),
    ],
)
def test_a_result_is_text_of_limited_length(
    content: list[Any], structured: Any, text: str
) -> None:
    result = CallToolResult(content=content, structured_content=structured)
    assert format_result(result, 1000) == text


def test_repeated_arguments_of_the_model_are_not_evidence() -> None:
    result = "Page https://made.up/x links https://real.example/y"
    sources = collect_evidence(
        "web__get#1", result, {"url": "https://made.up/x", "n": 3}
    )
    evidence = Evidence(sources=sources)
    assert evidence.links == {"https://real.example/y"}
    assert "made.up" not in "".join(evidence.texts)


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "default": 3},
    },
    "required": ["city"],
}


def test_strict_schemas_are_sent_once_the_server_has_asked_for_them() -> None:
    dialect = Dialect("json_object").simplify(
        "Invalid schema for function 'fair': 'additionalProperties' is required to be false"
    )
    assert dialect == replace(Dialect("json_object"), needs_strict_tools=True)
    tool = {"type": "function", "function": {"name": "fair", "parameters": SCHEMA}}
    asked = dialect.build_parameters([], LLMRequest([tool]))
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
    assert dialect.build_parameters([], LLMRequest([open_tool]))["tools"] == [open_tool]


async def test_null_arguments_fall_back_to_their_defaults() -> None:
    def fair(city: str, days: int = 3) -> str:
        """When."""
        return f"{city} {days}"

    called = ToolCall("1", "fair", '{"city": "Graz", "days": null}')
    assert (await Toolbox([tool(fair)]).call(called, Run())).text == "Graz 3"
