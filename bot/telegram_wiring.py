"""What is made of the settings for whoever talks in Telegram. Nothing connects yet.

It stands apart from `bot.wiring` because commands that look at the database need none of it.
"""

import re
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

import httpx

from agent.engine.limits import DailyBudget
from agent.engine.span import NO_TRACE, Tracer
from agent.tracing.exporter import RateLimitedLogger
from agent.tracing.langfuse.feedback import LangfuseFeedback
from agent.tracing.langfuse.links import TraceLinks
from agent.tracing.masking import Masking
from agent.tracing.recorder import Recorder
from bot.budgets import Budgets
from bot.commands import doctor
from bot.memory import Forget, Memory
from bot.service import ServiceSettings
from bot.telegram.rate_limit import Limit, Pace
from bot.trace_store import Save, store_sink
from bot.updates.journal import DurableSettings, durable_settings
from bot.wiring import plain, prepare, product_version, root
from config import Settings, SettingsError

BOT_TOKEN: Final = re.compile(r"\d+:[\w-]+")


def bot_token(settings: Settings) -> str:
    """The bot's token.

    Raises:
        SettingsError: there is none, or it cannot be one.
    """
    token = plain(settings.telegram_bot_token)
    if token is None:
        raise SettingsError(f"TELEGRAM_BOT_TOKEN is not set: {doctor.NO_TOKEN}")
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
        webhook_url=str(settings.webhook_url) if settings.webhook_url else None,
        webhook_secret=settings.webhook_secret,
        http_host=settings.http_host,
        http_port=settings.http_port,
        burst=timedelta(seconds=settings.burst_seconds),
        max_tries=settings.update_max_tries,
        retention=timedelta(days=settings.retention_days),
        finish_seconds=settings.shutdown_seconds,
        admin_ids=settings.admin_ids,
    )


def durable(settings: Settings) -> DurableSettings:
    """How turns are kept and resumed."""
    return durable_settings(
        settings.database_url.get_secret_value(),
        settings.executor_id,
        version=settings.turns_version,
        poll_seconds=settings.turns_poll_seconds,
        turns_at_once=settings.turns_at_once,
        retention=timedelta(days=settings.retention_days),
    )


def tracer(
    settings: Settings, save: Save | None = None, limited_log: RateLimitedLogger | None = None
) -> Tracer:
    """Where turns are traced: in Langfuse with its keys, else by `save` in the database."""
    public, secret = plain(settings.langfuse_public_key), plain(settings.langfuse_secret_key)
    if public is None or secret is None:
        return Recorder(store_sink(save, prepare(settings))) if save else NO_TRACE
    from agent.tracing.langfuse.sink import langfuse_sink  # noqa: PLC0415 - only needed with keys

    sink = langfuse_sink(
        public,
        secret,
        root(settings.langfuse_base_url),
        environment=settings.langfuse_tracing_environment,
        release=settings.langfuse_release,
        version=product_version(),
        limited_log=limited_log,
        prepare=prepare(settings),
    )
    return Recorder(sink)


def feedback_client(settings: Settings) -> LangfuseFeedback | None:
    """What brings people's verdicts to Langfuse; None without its keys."""
    public, secret = plain(settings.langfuse_public_key), plain(settings.langfuse_secret_key)
    if public is None or secret is None:
        return None
    content = settings.trace_content
    masking = Masking(content, (), settings.secrets)
    return LangfuseFeedback(
        public,
        secret,
        root(settings.langfuse_base_url),
        environment=settings.langfuse_tracing_environment,
        hide=(lambda text: "") if content == "none" else masking.text,
    )


def trace_links(settings: Settings, http: httpx.AsyncClient) -> TraceLinks | None:
    """Where traces are shown; None without Langfuse's keys."""
    public, secret = plain(settings.langfuse_public_key), plain(settings.langfuse_secret_key)
    if public is None or secret is None:
        return None
    return TraceLinks(root(settings.langfuse_base_url), public, secret, http)


def budgets(settings: Settings, memory: Memory, admins: Collection[int]) -> Budgets:
    """What people may use in a day."""
    return Budgets(
        turns=memory.turns,
        people=memory.people,
        person=DailyBudget(
            settings.budget_person_requests,
            settings.budget_person_tokens,
            settings.budget_person_cost_usd,
        ),
        everyone=DailyBudget(
            settings.budget_total_requests,
            settings.budget_total_tokens,
            settings.budget_total_cost_usd,
        ),
        exempt=admins if settings.budget_admins_exempt else (),
    )


def retention(settings: Settings, memory: Memory) -> Sequence[Forget]:
    """What is forgotten in time."""
    return memory.retention(
        turns=timedelta(days=settings.stats_retention_days),
        traces=timedelta(days=settings.trace_retention_days),
    )
