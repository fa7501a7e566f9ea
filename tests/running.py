"""The bot as it runs, for tests: polling, durable turns, a database of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent.desk import ResearchDesk
from agent.engine.run import Run
from agent.engine.span import Span
from agent.repositories import MessageRepository
from agent.sommelier.service import Answerer
from agent.tracing.recorder import NO_TRACE, Tracer
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
from bot.updates.polling import AcceptQueue
from config import settings_of
from db.engine import session_factory
from db.repositories.chats import SqlChatRepository
from db.repositories.updates import SqlUpdateRepository
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import BotApi
from tests.fakes import SpanRecord, root_span
from tests.lanes import open_lanes


@dataclass
class RecordingTracer:
    """Keeps the root span of every turn, what it was asked, and who asked."""

    turns: list[SpanRecord] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    sessions: list[tuple[str, str]] = field(default_factory=list)
    dropped_spans: int = 0

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
    tracer: Tracer = NO_TRACE,
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
