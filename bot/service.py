"""The running bot: updates come in by polling or webhook, turns run, and stopping loses nothing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from pydantic import SecretStr
from starlette.routing import BaseRoute
from telegram import Bot, Update
from telegram.error import InvalidToken, TelegramError

from agent.engine.journal import Journal
from agent.repositories import Backlog
from bot.http.server import WEBHOOK_PATH, Webhook, http_app, serve_http
from bot.metrics import Metrics
from bot.stopping import unless
from bot.telegram.conversation import ALLOWED_UPDATES, AnyApplication
from bot.updates.journal import DurableSettings, Run, open_turns
from bot.updates.lanes import Queue, Turns, Updates, dispatch
from bot.updates.payloads import Payload, chat_of
from bot.updates.polling import TokenRejected, introduce, poll_until

log = logging.getLogger(__name__)

Task = Callable[[asyncio.Event], Coroutine[object, object, None]]
"""What runs beside the turns until the event is set; what it raises ends the service."""

RETRY_SCAN_SECONDS: Final = 5.0
FORGET_SECONDS: Final = 3600.0
WATCH_SECONDS: Final = 60.0
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 30.0


class KeptUpdates(Updates, Protocol):
    """Accepted updates, with what an operator watches and what is forgotten in time."""

    async def backlog(self) -> Backlog: ...  # noqa: D102
    async def forget(self, older_than: timedelta) -> int: ...  # noqa: D102


class TurnQueue(Queue, Journal, Protocol):
    """Where turns wait and are recorded, while the service runs. `DurableTurns` is."""

    @property
    def settings(self) -> DurableSettings: ...  # noqa: D102
    @property
    def active(self) -> Set[int]: ...  # noqa: D102
    async def finish(self, seconds: float) -> bool: ...  # noqa: D102
    async def forget(self) -> int: ...  # noqa: D102


OpenQueue = Callable[[DurableSettings, Run], AbstractAsyncContextManager[TurnQueue]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How updates come in and how long stopping may take, in seconds.

    With `webhook_url` Telegram delivers to it, else updates are polled. `http_port` serves health,
    metrics and the webhook. `admin_ids` see their commands in the menu.
    """

    webhook_url: str | None = None
    webhook_secret: SecretStr | None = None
    http_host: str = "127.0.0.1"
    http_port: int | None = None
    burst: timedelta = timedelta(milliseconds=800)
    max_tries: int = 3
    retention: timedelta = timedelta(days=7)
    finish_seconds: float = 20
    admin_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """All that runs while the bot answers people."""

    application: AnyApplication
    turns: Turns
    queue: TurnQueue
    updates: KeptUpdates
    metrics: Metrics
    settings: ServiceSettings
    ready: asyncio.Event
    routes: Sequence[BaseRoute] = ()
    tasks: Sequence[Task] = ()

    async def run(self, stop: asyncio.Event) -> bool:
        """Answer people until `stop` is set; False if turns are left that a resume must end.

        Raises:
            TokenRejected: Telegram does not know the token.
            CannotListen: the HTTP address is taken.
        """
        if not await unless(stop, introduce(self.application, self.settings.admin_ids)):
            return True
        self.ready.set()
        stopped = asyncio.Event()
        tasks = [asyncio.create_task(each) for each in self._tasks(stopped)]
        try:
            if not await unless(stop, _until_one_fails(tasks)):
                log.info("Stopping")
        finally:
            stopped.set()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            task.result()
        return await self.queue.finish(self.settings.finish_seconds)

    def _tasks(self, stopped: asyncio.Event) -> list[Coroutine[object, object, None]]:
        tasks = [self._keep_house(stopped), *(task(stopped) for task in self.tasks)]
        if self.settings.http_port is not None:
            tasks.append(self._serve_http(stopped, self.settings.http_port))
        if self.settings.webhook_url is None:
            tasks.append(poll_until(self.application, stopped))
        else:
            tasks.append(_until(stopped, self._set_webhook(self.settings.webhook_url)))
        tasks.append(_until(stopped, self._watch_token()))
        if not self.queue.settings.url.startswith("sqlite"):
            from bot.updates.takeover import Takeover  # noqa: PLC0415 - loads the driver of Postgres

            tasks.append(_until(stopped, Takeover(self.queue.settings).run()))
        return tasks

    async def _serve_http(self, stopped: asyncio.Event, port: int) -> None:
        app = http_app(
            metrics=self.metrics,
            backlog=self.updates.backlog,
            ready=self._ready,
            webhook=self._webhook(),
            routes=self.routes,
        )
        await serve_http(app, host=self.settings.http_host, port=port, stop=stopped)

    def _webhook(self) -> Webhook | None:
        secret = self.settings.webhook_secret
        if self.settings.webhook_url is None or secret is None:
            return None
        return Webhook(accept=self.turns.accept, secret=secret, metrics=self.metrics)

    async def _ready(self) -> bool:
        await self.updates.backlog()
        return True

    async def _set_webhook(self, url: str) -> None:
        """Point Telegram here; every replica says the same, so it matters not which is the last."""
        secret = self.settings.webhook_secret
        wait = FIRST_WAIT_SECONDS
        while True:
            try:
                await self.application.bot.set_webhook(
                    url=url.rstrip("/") + WEBHOOK_PATH,
                    secret_token=secret.get_secret_value() if secret else None,
                    allowed_updates=ALLOWED_UPDATES,
                )
            except TelegramError as error:
                log.warning("The webhook could not be set (%s), trying again", error)
            else:
                log.info("Telegram delivers to the webhook")
                return
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)

    async def _watch_token(self) -> None:
        """Notice a token that was revoked: polling ends in silence then, a webhook falls dry.

        Raises:
            TokenRejected: Telegram does not know the token any more.
        """
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await self.application.bot.get_me()
            except InvalidToken:
                raise TokenRejected from None
            except TelegramError as error:
                log.debug("Telegram did not say who we are: %s", error)

    async def _keep_house(self, stopped: asyncio.Event) -> None:
        """Retries that an operator asked for, and forgetting what is over."""
        elapsed = FORGET_SECONDS
        while not stopped.is_set():
            await calmly("retrying updates", self.turns.retry_asked)
            if elapsed >= FORGET_SECONDS:
                elapsed = 0.0
                await calmly("forgetting updates", self._forget)
            elapsed += RETRY_SCAN_SECONDS
            await _until(stopped, asyncio.sleep(RETRY_SCAN_SECONDS))

    async def _forget(self) -> None:
        await self.updates.forget(self.settings.retention)
        await self.queue.forget()


@asynccontextmanager
async def open_service(
    *,
    application: AnyApplication,
    give_up: Callable[[Update, str], Awaitable[None]],
    updates: KeptUpdates,
    metrics: Metrics,
    settings: ServiceSettings,
    durable: DurableSettings,
    routes: Sequence[BaseRoute] = (),
    tasks: Sequence[Task] = (),
    open_queue: OpenQueue = open_turns,
) -> AsyncIterator[Service]:
    """A service, not yet running; the handlers of `application` may be registered until it is.

    `give_up` has the last word on an update that fails for good; `routes` are served over HTTP
    beside its own, and `tasks` run while it runs.
    """

    async def handle(payload: Payload) -> None:
        await dispatch(application, payload)

    async def set_aside(payload: Payload, error: str) -> None:
        await give_up(readable(payload, application.bot), error)

    async def run(update_id: int) -> None:
        await ready.wait()
        await turns.run(update_id)

    # DBOS begins to resume turns as it opens, before the rest is tied together.
    ready = asyncio.Event()
    async with open_queue(durable, run) as queue:
        turns = Turns(
            updates=updates,
            queue=queue,
            metrics=metrics,
            handle=handle,
            give_up=set_aside,
            burst=settings.burst,
            max_tries=settings.max_tries,
        )
        yield Service(
            application=application,
            turns=turns,
            queue=queue,
            updates=updates,
            metrics=metrics,
            settings=settings,
            ready=ready,
            routes=routes,
            tasks=tasks,
        )


def readable(payload: Payload, bot: Bot) -> Update:
    """An update, or as much of it as says where it came from, if that cannot be read."""
    try:
        return Update.de_json(dict(payload), bot)
    except Exception:
        chat = {"id": chat_of(payload), "type": "private"}
        message = {"message_id": 0, "date": 0, "chat": chat}
        update = {"update_id": payload["update_id"], "message": message}
        return Update.de_json(update, bot)


async def _until_one_fails(tasks: list[asyncio.Task[None]]) -> None:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    if not any(task.exception() for task in done):
        await asyncio.Event().wait()


async def _until(stopped: asyncio.Event, work: Coroutine[object, object, None]) -> None:
    """Do `work`, but cancel it when `stopped` is set."""
    await unless(stopped, work)


async def calmly(what: str, work: Callable[[], Awaitable[object]]) -> None:
    """Do what can wait for the next time if it fails."""
    try:
        await work()
    except Exception as error:
        log.warning("%s failed (%s), it is tried again later", what, type(error).__name__)
