"""What is made of the settings for whoever talks in Telegram. Nothing connects yet.

It stands apart from `bot.wiring` because commands that look at the database need none of it.
"""

import re
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from agent.tracing.exporter import RateLimitedLogger
from agent.tracing.langfuse.client import LangfuseClient, LangfuseFeedback, TraceLinks
from agent.tracing.masking import Masking, mask
from agent.tracing.recorder import NO_TRACE, Recorder
from bot.budgets import Budgets
from bot.memory import Forget, Memory
from bot.resources import prepare_trace
from bot.service import ServiceSettings
from bot.telegram.rate_limit import Limit, Pace
from bot.trace_store import Save, store_sink
from bot.updates.journal import DurableSettings, durable_settings
from config import Settings, SettingsError

BOT_TOKEN: Final = re.compile(r"\d+:[\w-]+")


def bot_token(settings: Settings) -> str:
    """The bot's token.

    Raises:
        SettingsError: there is none, or it cannot be one.
    """
    secret = settings.telegram.bot_token
    if secret is None:
        raise SettingsError("TELEGRAM_BOT_TOKEN is not set: set it to what @BotFather gives you")
    token = secret.get_secret_value()
    if not BOT_TOKEN.fullmatch(token):
        raise SettingsError(
            "TELEGRAM_BOT_TOKEN is not a bot token; it looks like 123456789:AAExampleExample"
        )
    return token


def pace(messages_per_second: int) -> Pace:
    """Telegram's limits, with this process's share of the limit of all chats; 0: no limits."""
    if not messages_per_second:
        return Pace((), (), ())
    return Pace(in_all=(Limit(messages_per_second, 1),))


def service_settings(settings: Settings) -> ServiceSettings:
    """How updates come in."""
    return ServiceSettings(
        webhook_url=settings.http.webhook_url,
        webhook_secret=settings.http.webhook_secret,
        http_host=settings.http.host,
        http_port=settings.http.port,
        burst=timedelta(seconds=settings.updates.burst_seconds),
        max_tries=settings.updates.max_tries,
        retention=timedelta(days=settings.updates.retention_days),
        finish_seconds=settings.updates.shutdown_seconds,
        admin_ids=settings.access.admin_ids,
    )


def durable(settings: Settings) -> DurableSettings:
    """How turns are kept and resumed."""
    return durable_settings(
        settings.database.url.get_secret_value(),
        settings.updates.executor_id,
        version=settings.updates.version,
        poll_seconds=settings.updates.poll_seconds,
        turns_at_once=settings.updates.at_once,
        retention=timedelta(days=settings.updates.retention_days),
    )


def tracer(
    settings: Settings, save: Save | None = None, limited_log: RateLimitedLogger | None = None
) -> Recorder:
    """Where turns are traced: in Langfuse with its keys, else by `save` in the database."""
    if settings.tracing.langfuse_keys is None:
        return Recorder(store_sink(save, prepare_trace(settings))) if save else NO_TRACE
    from agent.tracing.langfuse.traces import langfuse_sink  # noqa: PLC0415 - only needed with keys

    sink = langfuse_sink(
        *settings.tracing.langfuse_keys,
        settings.tracing.base_url,
        environment=settings.tracing.environment,
        release=settings.tracing.release,
        version=product_version(),
        limited_log=limited_log,
        prepare=prepare_trace(settings),
    )
    return Recorder(sink)


def feedback_client(settings: Settings) -> LangfuseFeedback | None:
    """What brings people's verdicts to Langfuse; None without its keys."""
    if settings.tracing.langfuse_keys is None:
        return None
    content = settings.tracing.content
    masking = Masking(content, (), settings.secrets)
    return LangfuseFeedback(
        LangfuseClient(*settings.tracing.langfuse_keys, settings.tracing.base_url),
        environment=settings.tracing.environment,
        hide=(lambda text: "") if content == "none" else masking.text,
    )


def trace_links(settings: Settings) -> TraceLinks | None:
    """Where traces are shown; None without Langfuse's keys."""
    if settings.tracing.langfuse_keys is None:
        return None
    keys, base_url = settings.tracing.langfuse_keys, settings.tracing.base_url
    return TraceLinks(LangfuseClient(*keys, base_url))


def kept(settings: Settings) -> Callable[[str, Collection[str]], str]:
    """What is kept of a comment on an answer: without personal data, unless traces may hold it."""
    return (lambda text, names: text) if settings.tracing.content == "full" else mask


def product_version() -> str | None:
    """This product's version, by which traces are told apart; None if it is not installed."""
    try:
        return version("sommelier")
    except PackageNotFoundError:
        return None


def budgets(settings: Settings, memory: Memory, admins: Collection[int]) -> Budgets:
    """What people may use in a day."""
    return Budgets(
        turns=memory.turns,
        people=memory.people,
        person=settings.budgets.person,
        everyone=settings.budgets.everyone,
        exempt=admins if settings.budgets.admins_exempt else (),
    )


def retention(settings: Settings, memory: Memory) -> Sequence[Forget]:
    """What is forgotten in time."""
    return memory.retention(
        turns=timedelta(days=settings.tracing.stats_retention_days),
        traces=timedelta(days=settings.tracing.retention_days),
    )
