"""The bot, running: with what Telegram sends, or alone in a terminal; closed in order.

`bot.app` says what it is made of.
"""

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol
from zoneinfo import ZoneInfo

from agent.engine.llm import load_client
from agent.fallback.words import lexicon
from agent.sommelier.service import Answerer
from agent.tracing.recorder import keyed_hash
from agent.turn import Change
from bot.announcing import Announcing
from bot.app import App, admin_page, open_app
from bot.resources import Resources, open_resources
from bot.tasks import (
    Task,
    attempt,
    bounded,
    cancelled_at_stop,
    every,
    run_tasks,
    stop_on_signals,
    unless,
)
from bot.telegram.connection import AnyApplication
from bot.telegram.conversation import question_of
from bot.telegram.dispatch import acknowledge_waiting_press, dispatch, is_readable, origin
from bot.telegram.local import TOKEN, LocalTelegram
from bot.telegram.menu import show_commands
from bot.telegram.reminders import Reminding
from bot.telegram.settings import speak_with
from bot.turn import Turns
from bot.updates.accept import introduce, point_webhook, poll, single_process
from bot.updates.lanes import Lanes, Lock, lock_of_one_process
from bot.watchdog import watchdog
from config import Settings
from db.engine import is_passing
from db.records import Payload

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from bot.updates.replicas import ReplicaLocks

FORGET_SECONDS: Final = 3600.0
REMIND_SECONDS: Final = 900.0
RULES_SECONDS: Final = 5.0
LEADER: Final = "/leader"
"""The name of the lock of who leads: no lane has it."""
LEAD_SECONDS: Final = 1.0
TURNS_AT_ONCE: Final = 64
TRACE_STORE_BYTES: Final = 500_000_000
"""The most that traces may take in the database; the oldest go first."""
LOOK_SECONDS: Final = 5.0
"""How often the only process looks for what an operator wants tried again."""


async def run_bot(settings: Settings, stop: asyncio.Event | None = None) -> None:
    """Answer people in Telegram until SIGTERM or SIGINT, or until `stop` is set.

    If turns are left unfinished, the process ends at once: they are resumable.

    Raises:
        AlreadyRunning: another process answers from this SQLite file.
        CannotListen: the HTTP address is taken.
        DatabaseUnavailable: no connection, or a Postgres that was not upgraded.
        SettingsError: there is no bot token, or it is not one.
        TokenRejected: Telegram does not know the token.
    """
    stop, token = stop or stop_on_signals(), settings.telegram.token
    async with AsyncExitStack() as stack:
        stack.enter_context(watchdog())
        resources = await stack.enter_async_context(open_resources(settings))
        stack.enter_context(single_process(settings.database.url.get_secret_value()))
        locks = replica_locks(settings)
        app = await stack.enter_async_context(open_app(settings, resources, token, locks=locks))
        lanes, further = await stack.enter_async_context(open_lanes(settings, app, locks))
        if settings.model.is_set:
            await load_client()
            further = [*further, cancelled_at_stop(load_words_later)]
        else:
            await asyncio.to_thread(lexicon)
        gc.freeze()  # what is there for good is not looked through again and again
        leading = while_leading(lanes.lock, tasks_of_leader(settings, app, lanes), locks)
        await run_tasks([*tasks_of(settings, resources, app, lanes), leading, *further], stop)
        if await lanes.finish(settings.updates.shutdown_seconds):
            return
        if app.exporter is not None:
            await bounded("tracing", app.exporter.round)
        os._exit(0)


class LostLead(Exception):
    """Another process may lead: the lock was lost."""


class LosesLocks(Protocol):
    """Knows when the lock of a lane is lost."""

    def lost(self, lane: str) -> asyncio.Event:
        """Return an event that is set when the lock of a lane that is held here was lost."""


def while_leading(lock: Lock, tasks: Sequence[Task], locks: LosesLocks | None) -> Task:
    """Return a task that runs others while this process leads; when it ends, another leads."""

    async def run(stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            async with lock(LEADER) as leads:
                if leads:
                    lost = locks.lost(LEADER) if locks else asyncio.Event()
                    with suppress(LostLead):
                        await run_tasks([*tasks, partial(fail_when, lost)], stopped)
            await unless(stopped, asyncio.sleep(LEAD_SECONDS))

    return run


async def fail_when(lost: asyncio.Event, stopped: asyncio.Event) -> None:
    """Wait until told to stop.

    Raises:
        LostLead: the lock was lost before.
    """
    if await unless(stopped, wait_for(lost)):
        raise LostLead


async def wait_for(event: asyncio.Event) -> None:
    """Return once an event is set."""
    await event.wait()


async def load_words_later() -> None:
    """Load what the fallback reads requests by, in time for when the model fails.

    In a thread: its first turn would hold the others up.
    """
    await asyncio.sleep(RULES_SECONDS)
    await asyncio.to_thread(lexicon)
    gc.freeze()


@asynccontextmanager
async def open_chat(settings: Settings, telegram: LocalTelegram) -> AsyncIterator[App]:
    """The conversation in this process alone: nothing is queued, a turn is over when it returns."""
    async with (
        open_resources(settings) as resources,
        open_app(settings, resources, TOKEN, telegram=telegram) as app,
    ):
        await forget_old(settings, app)
        sending = asyncio.create_task(app.exporter.run()) if app.exporter else None
        try:
            yield app
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.wait([sending])
            await bounded("what was told", partial(forget_told, app, telegram.chat_id))
            await bounded("forgetting people", app.forgetting.round)


async def forget_told(app: App, person: int) -> None:
    """Forget what somebody told and chose; another one may sit at the machine the next time."""
    await app.talk.repositories.cares.forget(person)
    told = tuple(await app.talk.repositories.memory.facts(person))
    await app.talk.repositories.turns.change([Change(user_id=person, unlearned=told)])


def replica_locks(settings: Settings) -> "ReplicaLocks | None":
    """What several processes share lanes by; None on SQLite, where there is one."""
    url = settings.database.url.get_secret_value()
    if url.startswith("sqlite"):
        return None
    from bot.updates.replicas import ReplicaLocks  # noqa: PLC0415

    return ReplicaLocks(url)


@asynccontextmanager
async def open_lanes(
    settings: Settings, app: App, locks: "ReplicaLocks | None" = None
) -> AsyncIterator[tuple[Lanes, Sequence[Task]]]:
    """What makes turns of updates, by `locks` beside other replicas, and what runs with it."""
    async with AsyncExitStack() as stack:
        further = list[Task]()
        if locks is None:
            seconds = LOOK_SECONDS
            repositories = app.talk.repositories
            for queue in (repositories.trace_queue, repositories.score_queue):
                await attempt("looking for traces that wait", queue.resume)
            lanes = lanes_of(settings, app, repositories.inbox.lanes, lock_of_one_process)
        else:
            seconds = locks.look_seconds
            stack.push_async_callback(bounded, "the locks of lanes", locks.close)
            lanes = lanes_of(settings, app, locks.unowned, locks.lock)
            further.append(cancelled_at_stop(partial(hear_others, locks, lanes, app.talk.turns)))
        stack.push_async_callback(lanes.close)
        yield (
            lanes,
            [
                every(seconds, "looking for lanes that nobody runs", lanes.schedule_unowned),
                *further,
            ],
        )


async def hear_others(locks: "ReplicaLocks", lanes: Lanes, turns: Turns) -> None:
    """Do what other processes tell: take in what came for a lane, stop what is to be stopped."""
    async for told in locks.told():
        if "lane" in told:
            await lanes.take_in(told["lane"])
        else:
            turns.running.stop(**told)


def lanes_of(
    settings: Settings, app: App, unowned: Callable[[], Awaitable[Sequence[str]]], lock: Lock
) -> Lanes:
    """What makes turns of updates, in the order of each chat."""
    bot = app.application.bot

    async def give_up(payload: Payload, error: str) -> None:
        update = origin(payload, bot)
        if update is not None and update.effective_message:
            said = update.effective_message.text or ""
            await speak_with(app.talk, update)
            await app.talk.turns.give_up(question_of(update, bot, said), error)

    return Lanes(
        inbox=app.talk.repositories.inbox,
        sender=app.talk.sender,
        lock=lock,
        unowned=unowned,
        metrics=app.talk.turns.metrics,
        handle=partial(dispatch, app.application),
        readable=partial(is_readable, bot=bot),
        acknowledge_press=partial(acknowledge_waiting_press, bot=bot),
        give_up=give_up,
        is_transient=is_passing,
        burst=timedelta(seconds=settings.updates.burst_seconds),
        max_tries=settings.updates.max_tries,
        concurrency=asyncio.Semaphore(TURNS_AT_ONCE),
    )


def tasks_of(settings: Settings, resources: Resources, app: App, lanes: Lanes) -> Sequence[Task]:
    """What runs while people are answered."""
    tasks = [
        cancelled_at_stop(partial(receive, settings, app, lanes)),
        cancelled_at_stop(resources.sessions.watch),
    ]
    if app.exporter is not None:
        tasks.append(cancelled_at_stop(app.exporter.run))
    if settings.http.port is not None:
        tasks.append(partial(serve, settings, resources, app, lanes))
    return tasks


def tasks_of_leader(settings: Settings, app: App, lanes: Lanes) -> Sequence[Task]:
    """Return what one process does for all of them."""
    forget = partial(forget_old, settings, app, of_updates=True)
    zone = settings.updates.time_zone
    reminding = Reminding(talk=app.talk, zone=UTC if zone == "UTC" else ZoneInfo(zone))
    tasks = [
        every(FORGET_SECONDS, "forgetting what is old", forget),
        every(LOOK_SECONDS, "forgetting people", app.forgetting.round),
        every(REMIND_SECONDS, "reminding", reminding.round),
        Announcing(app.talk).run,
    ]
    if settings.http.webhook_url is None:
        tasks.append(cancelled_at_stop(partial(fetch, app.application, lanes)))
    return tasks


async def fetch(application: AnyApplication, lanes: Lanes) -> None:
    """Fetch updates, once Telegram has told who we are.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    await lanes.ready.wait()
    await poll(application, lanes.accept)


async def receive(settings: Settings, app: App, lanes: Lanes) -> None:
    """Let turns begin once Telegram has told who we are, and have it deliver to the webhook.

    Raises:
        TokenRejected: Telegram does not know the token.
    """
    application, http = app.application, settings.http
    await introduce(application)
    lanes.ready.set()
    await show_commands(application, settings.access.admin_ids)
    if http.webhook_url is not None and http.webhook_secret is not None:
        from bot.http.server import WEBHOOK_PATH  # noqa: PLC0415

        url, secret = http.webhook_url + WEBHOOK_PATH, http.webhook_secret.get_secret_value()
        await point_webhook(application, url, secret)
    await asyncio.Event().wait()


async def forget_old(settings: Settings, app: App, *, of_updates: bool = False) -> None:
    """Forget what is older than the settings keep it; what cannot be now is the next time."""
    days, repositories = settings.tracing, app.talk.repositories

    async def forget_traces() -> None:
        unsent = await repositories.traces.forget(
            timedelta(days=days.retention_days),
            timedelta(days=days.stats_retention_days),
            TRACE_STORE_BYTES,
        )
        if app.exporter is not None:
            app.exporter.give_up(unsent)

    what: list[Callable[[], Awaitable[object]]] = [
        partial(repositories.turns.forget, timedelta(days=days.stats_retention_days)),
        forget_traces,
        repositories.cares.forget_expired,
    ]
    if of_updates:
        kept = timedelta(days=settings.updates.retention_days)
        what.append(partial(repositories.inbox.forget, kept))
    for each in what:
        await attempt("forgetting what is old", each)


async def serve(
    settings: Settings, resources: Resources, app: App, lanes: Lanes, stop: asyncio.Event
) -> None:
    """Serve HTTP until `stop` is set.

    Raises:
        CannotListen: the address is taken.
    """
    from bot.http.server import Webhook, http_app, listen, serve_http  # noqa: PLC0415 - not for the terminal

    http, metrics = settings.http, app.talk.turns.metrics
    secret, admin = http.webhook_secret, http.admin_token
    webhook = None
    if http.webhook_url is not None and secret is not None:
        webhook = Webhook(accept=lanes.accept, secret=secret, metrics=metrics)
    page = http_app(
        metrics=metrics,
        backlog=app.talk.repositories.inbox.backlog,
        webhook=webhook,
        routes=[
            *api_routes(settings, resources, app.talk.turns, app.talk.answerer),
            *(admin_page(settings, resources.sessions, admin).routes() if admin else ()),
        ],
    )
    await serve_http(page, listen(http.host, http.port or 0), stop)


def api_routes(
    settings: Settings, resources: Resources, turns: Turns, answerer: Answerer
) -> "Sequence[BaseRoute]":
    """The HTTP API; nothing without a token."""
    token = settings.http.api_token
    if token is None:
        return []
    from bot.http.api import Api  # noqa: PLC0415 - FastAPI takes a while to load

    user = keyed_hash("api", token.get_secret_value(), settings.tracing.user_key)
    api = Api(resources=resources, turns=turns, answerer=answerer, token=token, user=user)
    return api.routes()
