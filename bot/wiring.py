"""What is made of the settings alone: models, limits, sources. Nothing here connects yet."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

import httpx
from platformdirs import user_cache_path
from pydantic import HttpUrl, SecretStr

from agent.budget import PRICES, DailyBudget, Limits, Price, prices_with
from agent.embedding import EmbeddingService
from agent.embedding_local import NOT_INSTALLED, PREFIX, LocalEmbedding, is_installed
from agent.langfuse.feedback import LangfuseFeedback
from agent.langfuse.links import TraceLinks
from agent.langfuse.prompts import LangfusePrompts
from agent.llm import LLMService
from agent.ports import PlaceSearch
from agent.prompts import REPOSITORY, Prompts
from agent.research.desk import ResearchDesk
from agent.research.refine import refinement_wanted
from agent.tools.documents import ask_documents_tool, quote_documents_tool, search_documents_tool
from agent.tools.places import find_places_tool
from agent.tools.registry import Tool
from agent.tracing import NO_TRACE, Recorder, Tracer, TraceRecord
from agent.tracing.masking import Masking, prepared
from agent.wire import ResponseMode
from bot import doctor
from bot.budgets import Budgets
from bot.durable import DurableSettings, durable_settings
from bot.memory import Forget, Memory
from bot.pace import Limit, Pace
from bot.place_search import BraveSearch, SearxngSearch
from bot.service import ServiceSettings
from bot.trace_store import Save, store_sink
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


def root(url: HttpUrl) -> str:
    """A base URL without the slash at its end."""
    return str(url).rstrip("/")


def plain(value: SecretStr | None) -> str | None:
    """What a secret hides, None if there is none."""
    return value.get_secret_value() if value else None


def models(settings: Settings) -> list[LLMService]:
    """The configured model and what to fall back on, in order; none without a server."""
    if not settings.has_model:
        return []
    names = (settings.llm_model, *settings.llm_fallback_models)
    return [model(settings, name, settings.llm_response_mode) for name in names]


def model(settings: Settings, name: str, mode: ResponseMode) -> LLMService:
    """One model of the configured server."""
    return LLMService(
        model=name,
        api_key=settings.openai_api_key,
        base_url=root(settings.openai_base_url) if settings.openai_base_url else None,
        mode=mode,
        timeout_seconds=settings.llm_timeout_seconds,
    )


def embedder(settings: Settings) -> EmbeddingService | LocalEmbedding | None:
    """The configured source of vectors, None if documents are searched by words only.

    The key of the model's server is not sent to a server of another address.

    Raises:
        SettingsError: the model is to run here, and what runs it is not installed.
    """
    if settings.embedding_model is None:
        return None
    if settings.embedding_model.startswith(PREFIX):
        if not is_installed():
            raise SettingsError(f"EMBEDDING_MODEL: {NOT_INSTALLED}")
        name = settings.embedding_model.removeprefix(PREFIX)
        return LocalEmbedding(name, cache=user_cache_path("sommelier") / "models")
    own = settings.embedding_base_url
    base_url = own or settings.openai_base_url
    return EmbeddingService(
        model=settings.embedding_model,
        api_key=settings.embedding_api_key or (None if own else settings.openai_api_key),
        base_url=root(base_url) if base_url else None,
        timeout_seconds=settings.llm_timeout_seconds,
    )


def place_search(settings: Settings, http: httpx.AsyncClient) -> PlaceSearch | None:
    """The configured search for places; one's own instance before the one with a key."""
    if settings.searxng_url is not None:
        return SearxngSearch(root(settings.searxng_url), http)
    if settings.brave_api_key is not None:
        return BraveSearch(settings.brave_api_key, http)
    return None


def research_tools(desk: ResearchDesk) -> list[Tool]:
    """What a turn may look up, as tools over the same documents, models and places as `desk`."""
    refine = refinement_wanted(desk.refinement, None)
    return [
        search_documents_tool(desk.documents),
        ask_documents_tool(desk.documents, desk.models, refine=refine, prompts=desk.prompts),
        quote_documents_tool(desk.documents, desk.models, cache=desk.cache, prompts=desk.prompts),
        find_places_tool(desk.models, desk.search, prompts=desk.prompts),
    ]


def prices(settings: Settings) -> Mapping[str, Price]:
    """What models cost: the list in the code, with what the settings say of others.

    Raises:
        SettingsError: LLM_PRICES is not a list of prices.
    """
    try:
        return prices_with(settings.llm_prices) if settings.llm_prices else PRICES
    except ValueError as error:
        raise SettingsError(f"LLM_PRICES: {error}") from None


def prompts(settings: Settings) -> Prompts | LangfusePrompts:
    """The prompts in use: with Langfuse's keys those managed there, once they are fetched."""
    public, secret = plain(settings.langfuse_public_key), plain(settings.langfuse_secret_key)
    if public is None or secret is None:
        return REPOSITORY
    return LangfusePrompts(
        public,
        secret,
        root(settings.langfuse_base_url),
        label=settings.langfuse_prompt_label,
        every_seconds=settings.langfuse_prompt_seconds,
    )


def limits(settings: Settings) -> Limits:
    """What one turn may use."""
    return Limits(
        structured_output_max_retries=settings.structured_output_max_retries,
        requests=settings.turn_max_requests,
        tool_calls=settings.turn_max_tool_calls,
        tokens=settings.turn_max_tokens,
        cost_usd=settings.turn_max_cost_usd,
        seconds=settings.turn_timeout_seconds,
        tool_seconds=settings.tool_timeout_seconds,
        answer_tokens=settings.llm_max_tokens,
        answer_tokens_ceiling=settings.llm_max_tokens_ceiling,
    )


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


def prepare(settings: Settings) -> Callable[[TraceRecord], TraceRecord]:
    """What may be shown of a trace."""
    return partial(prepared, content=settings.trace_content, secrets=settings.secrets)


def tracer(settings: Settings, save: Save | None = None) -> Tracer:
    """Where turns are traced: in Langfuse with its keys, else by `save` in the database."""
    public, secret = plain(settings.langfuse_public_key), plain(settings.langfuse_secret_key)
    if public is None or secret is None:
        return Recorder(store_sink(save, prepare(settings))) if save else NO_TRACE
    from agent.langfuse.sink import langfuse_sink  # noqa: PLC0415 - only needed with keys

    sink = langfuse_sink(
        public,
        secret,
        root(settings.langfuse_base_url),
        environment=settings.langfuse_tracing_environment,
        release=settings.langfuse_release,
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
