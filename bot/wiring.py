"""What is made of the settings for whoever thinks: models, limits, sources. All unconnected."""

from collections.abc import Callable, Collection
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import httpx
from platformdirs import user_cache_path
from pydantic import HttpUrl, SecretStr

from agent.desk import ResearchDesk
from agent.documents.embedding import EmbeddingService
from agent.documents.embedding_local import NOT_INSTALLED, PREFIX, LocalEmbedding, is_installed
from agent.documents.refine import refinement_wanted
from agent.documents.tools import ask_documents_tool, quote_documents_tool, search_documents_tool
from agent.engine.limits import Limits
from agent.engine.llm import LLMService
from agent.engine.prices import Prices
from agent.engine.tools import Tool
from agent.engine.trace_records import TraceRecord
from agent.engine.wire import ResponseMode
from agent.places.search import PlaceSearch
from agent.places.tools import find_places_tool
from agent.places.web_search import BraveSearch, SearxngSearch
from agent.prompts import REPOSITORY, Prompts
from agent.tracing.exporter import RateLimitedLogger
from agent.tracing.langfuse.prompts import LangfusePrompts
from agent.tracing.masking import Masking, mask, prepared
from config import Settings, SettingsError


def root(url: HttpUrl) -> str:
    """A base URL without the slash at its end."""
    return str(url).rstrip("/")


def plain(value: SecretStr | None) -> str | None:
    """What a secret hides, None if there is none."""
    return value.get_secret_value() if value else None


def product_version() -> str | None:
    """This product's version, by which traces are told apart; None if it is not installed."""
    try:
        return version("sommelier")
    except PackageNotFoundError:
        return None


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


def prices(settings: Settings) -> Prices:
    """What models cost; what is not known of the configured ones is logged here, at the start.

    Raises:
        SettingsError: LLM_PRICES is not a list of prices.
    """
    base_url = root(settings.openai_base_url) if settings.openai_base_url else None
    try:
        found = Prices.from_setting(settings.llm_prices, base_url)
    except ValueError as error:
        raise SettingsError(f"LLM_PRICES: {error}") from None
    if settings.has_model:
        for name in (settings.llm_model, *settings.llm_fallback_models):
            found.of(name)
    return found


def prompts(
    settings: Settings, limited_log: RateLimitedLogger | None = None
) -> Prompts | LangfusePrompts:
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
        limited_log=limited_log,
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


def prepare(settings: Settings) -> Callable[[TraceRecord], TraceRecord]:
    """What may be shown of a trace."""
    return partial(prepared, content=settings.trace_content, secrets=settings.secrets)


def kept(settings: Settings) -> Callable[[str, Collection[str]], str]:
    """What is kept of a comment on an answer: without personal data, unless traces may hold it."""
    return (lambda text, names: text) if settings.trace_content == "full" else mask


def hide(settings: Settings) -> Callable[[object], object]:
    """What may be shown of data that stands in no trace; nothing if no content may leave."""
    if settings.trace_content == "none":
        return lambda data: None
    return Masking(settings.trace_content, (), settings.secrets).value
