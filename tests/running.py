"""The bot as it runs, for tests: polling, turns in memory or durable, a database of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from agent.desk import ResearchDesk
from agent.engine.run import Run
from agent.engine.span import Span
from agent.repositories import MessageRepository
from agent.sommelier.service import Answerer
from agent.tracing.recorder import NO_TRACE, Recorder
from bot.app import close_application, telegram_application
from bot.metrics import Metrics
from bot.service import Service, ServiceSettings, open_service
from bot.telegram.access import Door
from bot.telegram.conversation import AnyHandler, TelegramBot
from bot.telegram.rate_limit import Pace
from bot.telegram.research_commands import ResearchCommands
from bot.telegram.sender import Sender
from bot.turn import Replies
from bot.updates.journal import DurableSettings, open_turns
from bot.updates.journal import Run as RunTurn
from bot.updates.polling import AcceptQueue
from config import settings_of
from db.engine import session_factory
from db.repositories.chats import SqlChatRepository
from db.repositories.updates import SqlUpdateRepository
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import BotApi
from tests.fakes import SpanRecord, root_span

R = TypeVar("R")


class Lanes:
    """A queue of turns in memory: order and lanes as in the product, no record of any step.

    Runs the turns of a lane one after the other, those of different lanes side by side.
    """

    def __init__(self, settings: DurableSettings, run: RunTurn) -> None:
        self.settings = settings
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
async def open_lanes(settings: DurableSettings, run: RunTurn) -> AsyncIterator[Lanes]:
    """In place of `bot.updates.journal.open_turns`."""
    lanes = Lanes(settings, run)
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


@asynccontextmanager
async def running(
    bot_api: BotApi,
    answerer: Answerer,
    messages: MessageRepository,
    tracer: Recorder = NO_TRACE,
    *,
    desk: ResearchDesk | None = None,
    run: Run | None = None,
    further: Callable[[Replies], Sequence[AnyHandler]] = lambda replies: (),
    door: Callable[[Replies], Door | None] = lambda replies: None,
    finish_seconds: float = 5,
    burst: float = 0,
    durable: bool = False,
    **replies_with: Any,
) -> AsyncIterator[Service]:
    """The bot, polling; stopped as SIGTERM stops it. Bursts are not awaited.

    Its turns are queued in memory, unless they are to be `durable`: that takes seconds to start and
    to stop. With a `desk` it looks things up. `further` makes more handlers of the bot's `Replies`,
    which get `replies_with` too, and `door` who is let in.
    """
    settings = settings_of(
        {"TELEGRAM_BOT_TOKEN": bot_api.token, "TELEGRAM_BASE_URL": bot_api.base_url}
    )
    engine = await migrated_sqlite(Path("updates.sqlite3"))
    updates = SqlUpdateRepository(session_factory(engine))
    stop, inbox, metrics = asyncio.Event(), AcceptQueue(), Metrics()
    application = telegram_application(settings, bot_api.token, inbox)

    async def give_up(update: Any, error: str) -> None:
        await replies.give_up(update, error)

    async with open_service(
        application=application,
        give_up=give_up,
        updates=updates,
        metrics=metrics,
        settings=ServiceSettings(burst=timedelta(seconds=burst), finish_seconds=finish_seconds),
        durable=DurableSettings(url="sqlite:///turns.sqlite3", executor_id="local"),
        open_queue=open_turns if durable else open_lanes,
    ) as service:
        inbox.accept = service.turns.accept
        chats = SqlChatRepository(session_factory(engine))
        replies = Replies(
            message_repo=messages,
            tracer=tracer,
            sender=Sender(application.bot, Pace((), (), ()), chats),
            metrics=metrics,
            journal=service.queue,
            hashed=lambda kind, value: f"{kind}-{value}",
            **replies_with,
        )
        bot = TelegramBot(
            answerer=answerer,
            replies=replies,
            turn_of=updates.turn_of,
            door=door(replies),
            run=run or Run(),
        )
        research = ResearchCommands(replies, desk).handlers() if desk else []
        bot.register(application, [*further(replies), *research])
        serving = asyncio.create_task(service.run(stop))
        try:
            yield service
        finally:
            stop.set()
            await serving
            await close_application(application)
            await engine.dispose()
