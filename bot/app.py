"""Compose the bot: all objects between Telegram and the agent.

`bot.resources` opens the objects that need no Telegram; `bot.running` runs the bot.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from math import inf
from typing import Final

from agent.mcp import McpServers, open_servers
from agent.tracing.records import keyed_hash
from bot.budgets import Budgets
from bot.care import SafetyService
from bot.metrics import Metrics
from bot.question import RunningTurns
from bot.resources import STATS_RETENTION, Resources, sommelier_of
from bot.tasks import bounded
from bot.telegram.admin import admin_handlers
from bot.telegram.answer_buttons import answer_handlers, buttons_below
from bot.telegram.connection import telegram_bot
from bot.telegram.conversation import AnyHandler, Conversation
from bot.telegram.dispatch import Dispatcher
from bot.telegram.handlers import all_handlers
from bot.telegram.inline import inline_handlers
from bot.telegram.look_ups import look_up_handlers
from bot.telegram.media import media_handlers
from bot.telegram.memory import memory_handlers
from bot.telegram.rate_limit import Limit, RateLimit
from bot.telegram.rating import rating_handlers
from bot.telegram.replies import Replies
from bot.telegram.sender import Sender
from bot.telegram.settings import Privacy, settings_handlers
from bot.tracing import masking_of, send_traces, trace_link
from bot.turn import TurnRunner
from bot.updates.locks import Locks
from config import Settings

TRACED: Final = "the service for traces"


@asynccontextmanager
async def open_dispatcher(
    settings: Settings,
    resources: Resources,
    token: str,
    locks: Locks,
) -> AsyncIterator[Dispatcher]:
    """Open the bot with all its handlers, not yet initialized."""
    metrics, repositories = Metrics(), resources.repositories
    async with AsyncExitStack() as stack:
        sending = send_traces(settings, resources.sessions, metrics.traces_dropped)
        await stack.enter_async_context(sending)
        in_all = settings.telegram_messages_per_second
        rate_limit = RateLimit(in_all=(Limit(in_all, 1),)) if in_all else None
        bot = telegram_bot(token, settings.telegram_base_url, rate_limit)
        stack.push_async_callback(bounded, "Telegram", bot.shutdown)
        servers = await stack.enter_async_context(open_servers(settings.mcp_servers))
        admins = frozenset(settings.admin_ids)
        sender = Sender(bot, repositories.chats, repositories.inbox)
        conversation = Conversation(
            resources=resources,
            sender=sender,
            answerer=sommelier_of(resources, servers),
            turns=TurnRunner(
                base_run=resources.run,
                replies=Replies(sender, buttons_below),
                store=repositories.turns,
                budgets=budgets_of(settings, resources, admins),
                safety=SafetyService(help=resources.help, memory=repositories.memory),
                metrics=metrics,
                running=RunningTurns(locks.stop),
            ),
            trace_name=partial(keyed_hash, key=settings.trace_user_key),
        )
        allow_list = settings.access == "allow_list"
        handlers = handlers_of(settings, conversation, servers, admins)
        yield Dispatcher(bot, conversation, handlers, admins, allow_list)


def budgets_of(settings: Settings, resources: Resources, admins: Collection[int]) -> Budgets | None:
    """Return the daily budgets, None if no limit is set."""
    requests, cost_usd = settings.budget_person_requests, settings.budget_total_cost_usd
    if not requests and not cost_usd:
        return None
    return Budgets(
        turns=resources.repositories.turns,
        person_requests=requests or inf,
        total_cost_usd=cost_usd or inf,
        exempt=admins,
    )


def handlers_of(
    settings: Settings, conversation: Conversation, servers: McpServers, admins: frozenset[int]
) -> list[AnyHandler]:
    """Return the handlers of all commands and buttons, in the order in which they are tried."""
    only_allowed, days = settings.access == "allow_list", settings.trace_retention_days
    privacy = Privacy(
        days={"stats_days": STATS_RETENTION.days, "trace_days": days},
        elsewhere="Langfuse" if settings.langfuse_keys else TRACED if settings.is_exported else "",
        is_deleted_there=settings.langfuse_keys is not None,
    )
    further = [
        *media_handlers(),
        *inline_handlers(),
        *memory_handlers(),
        *settings_handlers(privacy),
        *answer_handlers(),
        *admin_handlers(admins, trace_link(settings), only_allowed=only_allowed),
        *rating_handlers(masking_of(settings)),
        *look_up_handlers(servers),  # the last takes the presses that no other takes
    ]
    return all_handlers(further)
