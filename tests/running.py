"""The bot as it runs, for tests: polling, turns in memory or durable, a database of its own."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from agent.documents.passages import DocumentStore
from agent.documents.quotes import QuoteCache
from agent.engine.messages import LLM
from agent.engine.run import Limits, Run
from agent.places.find import WebSearch
from agent.sommelier.service import Answerer
from agent.tracing.records import SpanRecord, TraceRecord
from bot.app import run_bot
from bot.resources import Repositories, Resources, Stores
from bot.runner import TurnRunner
from bot.tasks import run_every, run_until
from bot.telegram.admin import send_broadcasts
from bot.telegram.chat import ButtonsBelow, Services, no_buttons
from bot.telegram.connection import AnyBot, introduce, poll, telegram_bot
from bot.telegram.conversation import AnyHandler
from bot.telegram.dispatch import Dispatcher
from bot.telegram.handlers import all_handlers, show_commands
from bot.telegram.progress import Progress
from bot.telegram.rate_limit import RateLimit
from bot.telegram.sender import Sender
from bot.turn import OpenRoot
from bot.updates.life import UpdateLife
from bot.updates.locks import Locks
from bot.updates.scheduler import Scheduler
from config import load_settings
from db.engine import Sessions
from db.repositories.people import MessageRepository
from db.repositories.traces import TraceRows
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import BotApi
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import eventually
from tests.library import FakeLibrary
from tests.traces import export


@dataclass
class RecordingTracer:
    """Keeps the root span of every turn, what it was asked, and who asked."""

    turns: list[SpanRecord] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    sessions: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, trace: TraceRecord, input: str, started_ns: int) -> SpanRecord:
        self.turns.append(trace.open_root(input, started_ns))
        self.inputs.append(input)
        self.sessions.append((trace.session, trace.user))
        return self.turns[-1]


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

    def resources(self, repositories: Repositories | None = None) -> Resources:
        return Resources(
            sessions=cast("Sessions", None),
            repositories=cast("Repositories", repositories),
            documents=self.documents,
            run=self.run,
            search=self.search,
            refinement=self.refinement,
            cache=self.cache,
        )


@dataclass(frozen=True, kw_only=True)
class RunningBot:
    """The parts of a running bot that tests reach for."""

    bot: AnyBot
    services: Services
    stores: Stores
    scheduler: Scheduler


@asynccontextmanager
async def running(
    bot_api: BotApi,
    answerer: Answerer,
    messages: MessageRepository,
    tracer: OpenRoot = TraceRecord.open_root,
    *,
    sources: Sources | None = None,
    run: Run | None = None,
    further: Sequence[AnyHandler] = (),
    admins: Collection[int] = (),
    allow_list: bool = False,
    kept: Mapping[str, object] = MappingProxyType({}),
    burst: float = 0,
    tries: int = 3,
    langfuse: OtlpReceiver | None = None,
    sessions: Sessions | None = None,
    exported: bool = False,
    buttons: ButtonsBelow = no_buttons,
    **turns_with: Any,
) -> AsyncIterator[RunningBot]:
    """Run the bot, polling; stop it as SIGTERM does. Bursts are not awaited.

    With `sources` it looks things up. `further` are more handlers, `admins` and `allow_list` say
    who is let in, `kept` are repositories that replace its own, `sessions` those of its database;
    its turns get `turns_with` too. What is traced has arrived in `langfuse` at the end.
    """
    engine, stop = await migrated_sqlite(Path("updates.sqlite3")), asyncio.Event()
    if sessions is None and isinstance(messages, MessageRepository):
        sessions = messages.sessions
    rows = TraceRows(is_exported=exported or langfuse is not None)
    repositories = Repositories(sessions or Sessions(engine))
    stores = Stores(sessions or Sessions(engine), rows)
    for name, repository in {"messages": messages, **kept}.items():
        setattr(repositories, name, repository)
    rate_limit = RateLimit((), (), ())
    bot = telegram_bot(bot_api.token, bot_api.base_url, rate_limit)
    sender = Sender(bot, stores.outbox, rate_limit)
    found = sources or Sources(documents=FakeLibrary())
    runner = TurnRunner(
        base_run=run or found.run,
        open_trace_root=tracer,
        **{"commits": stores.commits, **turns_with},
    )
    services = Services(
        resources=found.resources(repositories),
        runner=runner,
        answerer=answerer,
        trace_hash=lambda kind, value: f"{kind}-{value}",
        progress=Progress(bot),
        buttons_below=buttons,
    )
    dispatcher = Dispatcher(bot, services, all_handlers(further), admins, allow_list)
    life = UpdateLife(
        inbox=stores.inbox,
        deliverer=sender,
        handlers=dispatcher,
        metrics=runner.metrics,
        burst_seconds=burst,
        max_tries=tries,
    )
    scheduler = Scheduler(
        inbox=stores.inbox,
        life=life,
        answer_inline=dispatcher.handle_inline,
        stopped_elsewhere=runner.running,
        locks=Locks(stores.inbox),
        metrics=runner.metrics,
    )

    async def receive() -> None:
        await introduce(bot)
        scheduler.ready.set()
        await show_commands(bot)
        await poll(bot, scheduler.accept)

    async def broadcast() -> None:
        await send_broadcasts(stores.broadcasts, repositories.memory, sender)

    async def serve() -> None:
        further = partial(run_every, 1, "sending to everyone", broadcast)
        await run_until(stop, scheduler.watch, receive, further)
        await scheduler.finish(5)

    serving = asyncio.create_task(serve())
    try:
        yield RunningBot(bot=bot, services=services, stores=stores, scheduler=scheduler)
    finally:
        stop.set()
        await serving
        await scheduler.finish()
        await bot.shutdown()
    if langfuse is not None:
        await export(sessions or Sessions(engine), langfuse)
    await engine.dispose()


async def at_rest(bot: RunningBot) -> None:
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
