"""The bot as it runs, for tests: polling, turns in memory or durable, a database of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import cast

from agent.documents.passages import DocumentStore
from agent.documents.quotes import QuoteCache
from agent.engine.messages import LLM
from agent.engine.run import Limits, Run
from agent.places.find import WebSearch
from agent.sommelier.service import Answerer
from agent.tracing.records import OpenSpan, TraceRecord
from bot.app import App, build_app, rate_limit_of, run_app, run_bot
from bot.core import build_core
from bot.resources import Repositories, Resources, Stores, budgets_of
from bot.telegram.answer_buttons import buttons_below
from bot.telegram.chat import ButtonsBelow
from bot.telegram.connection import telegram_bot
from bot.turn import OpenRoot, RunningTurns
from bot.updates.locks import Locks
from config import load_settings
from db.engine import Sessions
from db.models import utc_now
from db.repositories.people import MessageRepository
from db.traces import TraceRows
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import BotApi
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import eventually
from tests.library import FakeLibrary
from tests.traces import export


@dataclass
class RecordingTracer:
    """Keeps the trace of every turn, what it was asked, and who asked."""

    turns: list[TraceRecord] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    sessions: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, trace: TraceRecord, input: str, started_ns: int) -> OpenSpan:
        self.turns.append(trace)
        self.inputs.append(input)
        self.sessions.append((trace.session, trace.user))
        return trace.open_root(input, started_ns)


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What a bot looks things up in, and with which models."""

    documents: DocumentStore
    models: Sequence[LLM] = ()
    limits: Limits = field(default_factory=Limits)
    search: WebSearch | None = None
    refinement: bool | None = None
    cache: QuoteCache = field(default_factory=QuoteCache)

    @property
    def run(self) -> Run:
        return Run(self.models, limits=self.limits)

    def resources(
        self, repositories: Repositories | None = None, run: Run | None = None
    ) -> Resources:
        return Resources(
            sessions=cast("Sessions", None),
            repositories=cast("Repositories", repositories),
            documents=self.documents,
            run=run or self.run,
            search=self.search,
            refinement=self.refinement,
            cache=self.cache,
        )


UNHURRIED: dict[str, str] = {"JOIN_SECONDS": "0", "TELEGRAM_MESSAGES_PER_SECOND": "0"}
"""The settings of a bot that waits for no further message, and sends as fast as it can."""


@asynccontextmanager
async def running(
    bot_api: BotApi,
    answerer: Answerer,
    messages: MessageRepository,
    tracer: OpenRoot = TraceRecord.open_root,
    *,
    sources: Sources | None = None,
    run: Run | None = None,
    kept: Mapping[str, object] = MappingProxyType({}),
    langfuse: OtlpReceiver | None = None,
    sessions: Sessions | None = None,
    exported: bool = False,
    buttons: ButtonsBelow = buttons_below,
    now: Callable[[], datetime] = utc_now,
    **settings: str,
) -> AsyncIterator[App]:
    """Run the bot as the app puts it together, and stop it as SIGTERM does.

    With `sources` it looks things up. `kept` are repositories that replace its own, `sessions`
    those of its database; `settings` are added to `UNHURRIED`. What is traced has arrived in
    `langfuse` at the end.
    """
    engine, stop = await migrated_sqlite(Path("updates.sqlite3")), asyncio.Event()
    if sessions is None and isinstance(messages, MessageRepository):
        sessions = messages.sessions
    sessions = sessions or Sessions(engine)
    repositories = Repositories(sessions)
    for name, repository in {"messages": messages, **kept}.items():
        setattr(repositories, name, repository)
    telegram = {
        "TELEGRAM_BOT_TOKEN": bot_api.token,
        "TELEGRAM_BASE_URL": bot_api.base_url,
    }
    loaded = load_settings(None, UNHURRIED | telegram | settings)
    core = build_core(
        loaded,
        (sources or Sources(documents=FakeLibrary())).resources(repositories, run),
        Stores(
            sessions,
            TraceRows(is_exported=exported or langfuse is not None),
            budgets_of(loaded, sessions, now),
        ),
        RunningTurns(),
        answerer=answerer,
        open_trace_root=tracer,
    )
    rate_limit = rate_limit_of(core.settings)
    bot = telegram_bot(bot_api.token, bot_api.base_url, rate_limit)
    app = build_app(core, bot, rate_limit, Locks(core.stores.inbox), buttons)
    serving = asyncio.create_task(run_app(app, stop))
    try:
        yield app
    finally:
        stop.set()
        await serving
        await bot.shutdown()
    if langfuse is not None:
        await export(sessions, langfuse)
    await engine.dispose()


async def at_rest(bot: App) -> None:
    """Return once no turn runs: what was said in the last is kept."""
    await eventually(lambda: not bot.scheduler.running)


@asynccontextmanager
async def whole_bot(environment: Mapping[str, str]) -> AsyncIterator[None]:
    """`sommelier run` with these settings in this process; told to stop at the end, and must."""
    stop = asyncio.Event()
    bot = asyncio.create_task(run_bot(load_settings(None, environment), stop))
    try:
        yield
    finally:
        stop.set()
        await bot
