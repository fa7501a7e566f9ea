"""Serve the catalogue and the documents to external agents, by the Model Context Protocol (MCP).

`sommelier mcp` serves one client over standard input and output. `sommelier run` serves clients at
/mcp, if they have the API's token. The bot's own model has these tools, too. Here they are called
for no user, so no taste or allergy is taken into account. Importing this module takes most of a
second, as it loads the protocol's library.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import (
    StreamableHTTPASGIApp,
    StreamableHTTPSessionManager,
)
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ListedTool
from starlette.routing import Route

from agent.documents.passages import search_documents_tool
from agent.documents.quotes import quote_documents_tool
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Tool, Toolbox, ToolResult, tool
from agent.sommelier.queries import ShortText, WineQuery
from agent.sommelier.wine_tools import wine_tools
from bot.resources import Resources

NAME: Final = "sommelier"
INSTRUCTIONS: Final = (
    "Wines that exist in this catalogue, and documents about wine. Recommend only wines that a "
    "tool returned; cite documents by their [path]."
)

ToolCaller = Callable[[ToolCall], Awaitable[ToolResult]]
"""Runs a tool call."""


def create_toolbox(resources: Resources) -> Toolbox:
    """Return the tools for external agents."""
    tools_by_name = Toolbox(wine_tools(resources.repositories.wines)).tools
    search_wines = tools_by_name["search_wines"]
    get_wine = tools_by_name["get_wine"]

    async def find_similar_wines(wine_id: ShortText, run: Run) -> object:
        """Find wines of the catalogue that are similar to one of them, the most similar first."""
        return await search_wines.function(WineQuery(like=wine_id), run)

    search_documents = search_documents_tool(resources.documents)
    quote_documents = quote_documents_tool(resources.documents, cache=resources.cache)
    quotes = replace(quote_documents, name="quotes")
    return Toolbox(
        [search_wines, get_wine, tool(find_similar_wines), search_documents, quotes]
    )


def create_server(tools: Toolbox, run_call: ToolCaller) -> Server[Any]:
    """Return a server that lists `tools`, and runs calls with `run_call`."""
    listed_tools = [_list_tool(tool) for tool in tools.tools.values()]

    async def list_tools(*_: object) -> ListToolsResult:
        return ListToolsResult(tools=listed_tools)

    async def call_tool(_: object, request: CallToolRequestParams) -> CallToolResult:
        arguments = json.dumps(request.arguments or {})
        # Only the bot's own model gives its calls ids.
        result = await run_call(ToolCall("", request.name, arguments))
        content = TextContent(text=result.text)
        is_error = result.error_type is not None
        return CallToolResult(content=[content], is_error=is_error)

    return Server(
        NAME,
        version=version("sommelier"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _list_tool(tool: Tool) -> ListedTool:
    """Return the description of a tool for external agents."""
    function = tool.openai_schema["function"]
    return ListedTool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(function["parameters"]),
        annotations=ToolAnnotations(read_only_hint=True),
    )


async def serve_stdio(resources: Resources) -> None:
    """Serve one client over standard input and output, until it closes them."""
    tools = create_toolbox(resources)

    async def run_call(call: ToolCall) -> ToolResult:
        return await tools.call(call, resources.run.for_turn())

    server = create_server(tools, run_call)
    options = server.create_initialization_options()
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, options)


@asynccontextmanager
async def open_http_route(tools: Toolbox, run_call: ToolCaller) -> AsyncIterator[Route]:
    """Start an HTTP server, and yield its route.

    The server has no sessions, so any replica can answer any request.
    """
    server = create_server(tools, run_call)
    sessions = StreamableHTTPSessionManager(
        app=server, json_response=True, stateless=True
    )
    async with sessions.run():
        yield Route("/mcp", StreamableHTTPASGIApp(sessions))
