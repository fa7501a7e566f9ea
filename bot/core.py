"""The core: everything that answers a question, wherever it was asked.

Telegram, the HTTP API and the terminal share it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from agent.mcp import McpServers, open_servers
from agent.sommelier.service import Answerer
from agent.tracing.records import TraceRecord, compute_keyed_hash
from bot.metrics import Metrics
from bot.resources import Resources, Stores, sommelier_of, stores_of
from bot.runner import TurnRunner
from bot.safety import SafetyService
from bot.tracing import open_exporter
from bot.turn import OpenRoot, RunningTurns
from config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """The parts that answer."""

    settings: Settings
    resources: Resources
    stores: Stores
    servers: McpServers
    metrics: Metrics
    runner: TurnRunner
    answerer: Answerer
    trace_hash: Callable[[str, int], str]
    """Returns the hash that stands for a chat or a user in traces.

    It is given the kind, "chat" or "user", and the id.
    """


@asynccontextmanager
async def open_core(
    settings: Settings, resources: Resources, running: RunningTurns
) -> AsyncIterator[Core]:
    """Open the core, with the MCP servers, for the block. Meanwhile traces are exported."""
    metrics = Metrics()
    stores = stores_of(settings, resources.sessions)
    async with (
        open_exporter(settings, resources.sessions, metrics.count_dropped_traces),
        open_servers(settings.mcp_servers) as servers,
    ):
        yield build_core(
            settings, resources, stores, running, metrics=metrics, servers=servers
        )


def build_core(
    settings: Settings,
    resources: Resources,
    stores: Stores,
    running: RunningTurns,
    *,
    metrics: Metrics | None = None,
    servers: McpServers | None = None,
    answerer: Answerer | None = None,
    open_trace_root: OpenRoot = TraceRecord.open_root,
) -> Core:
    """Return the core, put together from its parts.

    Parts that are not given are made: new metrics, no MCP servers, and the sommelier as `answerer`.
    """
    metrics = metrics or Metrics()
    servers = servers or McpServers()
    memory = resources.repositories.memory
    runner = TurnRunner(
        base_run=resources.run,
        commits=stores.commits,
        budgets=stores.budgets,
        safety=SafetyService(help=resources.help, memory=memory),
        metrics=metrics,
        running=running,
        open_trace_root=open_trace_root,
    )
    return Core(
        settings=settings,
        resources=resources,
        stores=stores,
        servers=servers,
        metrics=metrics,
        runner=runner,
        answerer=answerer or sommelier_of(resources, servers),
        trace_hash=partial(compute_keyed_hash, key=settings.trace_user_key),
    )
