"""The bot as it runs, for tests: polling, turns in memory or durable, a database of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
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
from agent.turn import Reply
from bot.app import run_bot
from bot.question import OpenRoot, Question
from bot.resources import Repositories, Resources
from bot.tasks import run_every, run_until
from bot.telegram.admin import send_broadcasts
from bot.telegram.connection import introduce, poll, telegram_bot
from bot.telegram.conversation import AnyHandler, Conversation
from bot.telegram.dispatch import Dispatcher
from bot.telegram.handlers import all_handlers, show_commands
from bot.telegram.replies import Replies
from bot.telegram.sender import ButtonRows, Sender
from bot.turn import TurnRunner
from bot.updates.lanes import Lanes
from bot.updates.locks import Locks
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
    buttons: Callable[[Question, Reply], ButtonRows] = lambda question, reply: (),
    **turns_with: Any,
) -> AsyncIterator[Lanes]:
    """Run the bot, polling; stop it as SIGTERM does. Bursts are not awaited.

    With `sources` it looks things up. `further` are more handlers, `admins` and `allow_list` say
    who is let in, `kept` are repositories that replace its own, `sessions` those of its database;
    its turns get `turns_with` too. What is traced has arrived in `langfuse` at the end.
    """
    engine, stop = await migrated_sqlite(Path("updates.sqlite3")), asyncio.Event()
    if sessions is None and isinstance(messages, MessageRepository):
        sessions = messages.sessions
    rows = TraceRows(is_exported=exported or langfuse is not None)
    repositories = Repositories(sessions or Sessions(engine), rows)
    for name, repository in {"messages": messages, **kept}.items():
        setattr(repositories, name, repository)
    bot = telegram_bot(bot_api.token, bot_api.base_url)
    inbox = repositories.inbox
    sender = Sender(bot, repositories.chats, inbox)
    found = sources or Sources(documents=FakeLibrary())
    conversation = Conversation(
        resources=found.resources(repositories),
        turns=TurnRunner(
            base_run=run or found.run,
            replies=Replies(sender, buttons),
            open_trace_root=tracer,
            **{"store": repositories.turns, **turns_with},
        ),
        sender=sender,
        answerer=answerer,
        trace_hash=lambda kind, value: f"{kind}-{value}",
    )
    handlers = all_handlers(further)
    dispatcher = Dispatcher(bot, conversation, handlers, admins, allow_list)

    async def receive() -> None:
        await introduce(bot)
        lanes.ready.set()
        await show_commands(bot)
        await poll(bot, lanes.accept)

    async def serve() -> None:
        broadcasts = partial(send_broadcasts, conversation)
        further = partial(run_every, 1, "sending to everyone", broadcasts)
        await run_until(stop, lanes.watch, receive, further)
        await lanes.finish(5)

    lanes = Lanes(
        inbox=inbox,
        sender=sender,
        dispatcher=dispatcher,
        locks=Locks(inbox),
        metrics=conversation.turns.metrics,
        burst_seconds=burst,
        max_tries=tries,
    )
    serving = asyncio.create_task(serve())
    try:
        yield lanes
    finally:
        stop.set()
        await serving
        await lanes.finish()
        await bot.shutdown()
    if langfuse is not None:
        await export(sessions or Sessions(engine), langfuse)
    await engine.dispose()


async def at_rest(lanes: Lanes) -> None:
    """Return once no turn runs: what was said in the last is kept."""
    await eventually(lambda: not lanes.running)


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
