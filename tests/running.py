"""The bot as it runs, for tests: polling, turns in memory or durable, a database of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from agent.documents.quotes import QuoteCache
from agent.documents.store import DocumentStore
from agent.engine.limits import Limits
from agent.engine.messages import LLM
from agent.engine.run import NO_JOURNAL, Journal, Run
from agent.engine.span import Span
from agent.places.find import PlaceSearch
from agent.repositories import ChatRepository, MessageRepository
from agent.sommelier.service import Answerer
from agent.tracing.recorder import NO_TRACE, Recorder
from bot.app import (
    App,
    close_application,
    durable_of,
    lanes_of,
    repositories_of,
    telegram_application,
)
from bot.service import cancelled_at_stop, run_tasks, unless
from bot.telegram.access import Access
from bot.telegram.handlers import AnyApplication, AnyHandler, Conversation, no_turn
from bot.telegram.look_ups import LookUps
from bot.telegram.rate_limit import RateLimit
from bot.telegram.sender import Sender
from bot.turn import Turns
from bot.updates.accept import introduce, poll, show_commands
from bot.updates.journal import DurableSettings, RunTurn, open_turns
from bot.updates.lanes import TurnQueue
from config import settings_of
from db.engine import session_factory
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import BotApi
from tests.fakes import SpanRecord, root_span

R = TypeVar("R")


class Lanes:
    """A queue of turns in memory: order and lanes as in the product, no record of any step.

    Runs the turns of a lane one after the other, those of different lanes side by side.
    """

    def __init__(self, settings: DurableSettings, run: RunTurn, ready: asyncio.Event) -> None:
        self.settings = settings
        self._ready = ready
        self.active: set[int] = set()
        self._run = run
        self._known: set[tuple[int, int]] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def enqueue(self, update_id: int, lane: str, retry: int = 0) -> None:
        """Have the turn of an update run, once."""
        if (update_id, retry) in self._known or self._stopping:
            return
        self._known.add((update_id, retry))
        task = asyncio.create_task(self._turn(update_id, lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _turn(self, update_id: int, lane: str) -> None:
        async with self._locks.setdefault(lane, asyncio.Lock()):
            await self._ready.wait()
            if self._stopping:
                return
            self.active.add(update_id)
            try:
                await self._run(update_id)
            finally:
                self.active.discard(update_id)

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Run it."""
        return await run()

    async def steps_recorded(self) -> Sequence[str]:
        """None is."""
        return ()

    async def finish(self, seconds: float) -> bool:
        """Begin no turn any more and wait for those that run, so long at most."""
        self._stopping = True
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        return not self.active

    async def forget(self) -> int:
        """Nothing is recorded."""
        return 0

    async def close(self) -> None:
        """Cut off what still runs."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def open_lanes(
    settings: DurableSettings, run: RunTurn, ready: asyncio.Event
) -> AsyncIterator[Lanes]:
    """In place of `bot.updates.journal.open_turns`."""
    lanes = Lanes(settings, run, ready)
    try:
        yield lanes
    finally:
        await lanes.close()


@dataclass
class RecordingTracer(Recorder):
    """Keeps the root span of every turn, what it was asked, and who asked."""

    turns: list[SpanRecord] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    sessions: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def turn(
        self, *, input: str, session: str, user: str, **_: object
    ) -> AbstractContextManager[Span]:
        self.turns.append(root_span())
        self.inputs.append(input)
        self.sessions.append((session, user))
        return self.turns[-1].opened()

    async def close(self) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What a bot looks things up in, and with which models."""

    documents: DocumentStore
    models: Sequence[LLM] = ()
    limits: Limits = field(default_factory=Limits)
    search: PlaceSearch | None = None
    refinement: bool | None = None
    cache: QuoteCache = field(default_factory=QuoteCache)

    @property
    def run(self) -> Run:
        return Run(self.models, limits=self.limits)

    def handlers(self, conversation: Conversation) -> list[AnyHandler]:
        look_ups = LookUps(
            turns=conversation.turns,
            sender=conversation.sender,
            messages=conversation.messages,
            documents=self.documents,
            search=self.search,
            refinement=self.refinement,
            cache=self.cache,
        )
        return look_ups.handlers()


def conversation_of(
    application: AnyApplication,
    answerer: Answerer,
    messages: MessageRepository,
    *,
    run: Run | None = None,
    journal: Journal = NO_JOURNAL,
    chats: ChatRepository | None = None,
    access: Callable[[Sender], Access | None] = lambda sender: None,
    turn_of: Callable[[int, int], Awaitable[int | None]] = no_turn,
    **turns_with: Any,
) -> Conversation:
    """The conversation over this application, nothing of it waiting for a rate limit."""
    sender = Sender(application.bot, RateLimit((), (), ()), chats, journal)
    turns = Turns(
        run=run or Run(),
        journal=journal,
        sender=sender,
        messages=messages,
        max_content_length=2000,
        hashed=lambda kind, value: f"{kind}-{value}",
        **turns_with,
    )
    return Conversation(
        turns=turns,
        sender=sender,
        messages=messages,
        answerer=answerer,
        history_messages=20,
        access=access(sender),
        turn_of=turn_of,
    )


@asynccontextmanager
async def running(
    bot_api: BotApi,
    answerer: Answerer,
    messages: MessageRepository,
    tracer: Recorder = NO_TRACE,
    *,
    sources: Sources | None = None,
    run: Run | None = None,
    further: Callable[[Conversation], Sequence[AnyHandler]] = lambda conversation: (),
    access: Callable[[Sender], Access | None] = lambda sender: None,
    finish_seconds: float = 5,
    burst: float = 0,
    tries: int = 3,
    durable: bool = False,
    **turns_with: Any,
) -> AsyncIterator[TurnQueue]:
    """The bot, polling; stopped as SIGTERM stops it. Bursts are not awaited.

    Its turns are queued in memory, unless they are to be `durable`: that takes seconds to start and
    to stop. With `sources` it looks things up. `further` makes more handlers, `access` says who is
    let in; its `Turns` get `turns_with` too.
    """
    settings = settings_of(
        {
            "TELEGRAM_BOT_TOKEN": bot_api.token,
            "TELEGRAM_BASE_URL": bot_api.base_url,
            "BURST_SECONDS": str(burst),
            "UPDATE_MAX_TRIES": str(tries),
            "DATABASE_URL": "sqlite+aiosqlite:///updates.sqlite3",
        }
    )
    engine = await migrated_sqlite(Path("updates.sqlite3"))
    repositories = repositories_of(session_factory(engine))
    stop, ready = asyncio.Event(), asyncio.Event()
    application = telegram_application(settings, bot_api.token)

    async def run_turn(update_id: int) -> None:
        await lanes.run(update_id)

    async def serve() -> None:
        if await unless(stop, introduce(application)):
            ready.set()
            polling = partial(poll, application, lanes.accept)
            showing = partial(show_commands, application)
            await run_tasks([cancelled_at_stop(polling), cancelled_at_stop(showing)], stop)
            await queue.finish(finish_seconds)

    open_queue = open_turns if durable else open_lanes
    async with open_queue(durable_of(settings), run_turn, ready) as queue:
        conversation = conversation_of(
            application,
            answerer,
            messages,
            run=run or (sources.run if sources else None),
            journal=queue,
            chats=repositories.chats,
            access=access,
            turn_of=repositories.updates.turn_of,
            tracer=tracer,
            **turns_with,
        )
        look_ups = sources.handlers(conversation) if sources else []
        conversation.register(application, [*further(conversation), *look_ups])
        app = App(
            application=application,
            repositories=repositories,
            turns=conversation.turns,
        )
        lanes = lanes_of(settings, app, queue)
        serving = asyncio.create_task(serve())
        try:
            yield queue
        finally:
            stop.set()
            await serving
            await close_application(application)
            await engine.dispose()
