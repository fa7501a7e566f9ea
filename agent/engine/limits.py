"""The limits of a turn, the ledger of what it used, and the prices of models."""

import ipaddress
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from agent.engine.messages import LLMResponse, Usage
from agent.text import pattern

log = logging.getLogger(__name__)

VERSION: Final = pattern(r"(?s)(?:-(?:v?\d|latest).*)?")
"""The rest of a name that is still the same model: nothing, a date or a version."""
LOCAL_HOSTS: Final = (".local", ".internal", ".lan", ".home.arpa", ".localhost")

Costs = Mapping[str, float]
"""US dollars by bucket of tokens: `input`, with what was cached, and `output`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one turn: seconds, US dollars, and characters of a tool's result."""

    structured_output_max_retries: int = 2
    requests: int = 12
    tool_calls: int = 16
    tokens: int = 100_000
    cost_usd: float = 0.50
    seconds: float = 120
    tool_seconds: float = 15
    answer_tokens: int = 1500
    answer_tokens_ceiling: int = 6000
    result_chars: int = 12_000
    model_tries: int = 3


class Price(BaseModel):
    """US dollars per million tokens; cached tokens cost like the others unless it is said."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    prompt: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    completion: float = Field(ge=0, allow_inf_nan=False)

    def costs(self, usage: Usage) -> Costs:
        """Return the cost of `usage`."""
        cached = self.prompt if self.cached is None else self.cached
        uncached = usage.prompt_tokens - usage.cached_tokens
        return {
            "input": (uncached * self.prompt + usage.cached_tokens * cached) / 1_000_000,
            "output": usage.completion_tokens * self.completion / 1_000_000,
        }


FREE: Final = Price(prompt=0, completion=0)
UNKNOWN: Final = Price(prompt=5, completion=25)
"""The price of the dearest models in common use, about: a limit stops too early, not never."""


def costs_of(response: LLMResponse, own: Mapping[str, Price]) -> Costs:
    """Return the cost of a response at `own` prices, else at those of genai-prices.

    A model that nobody knows is free on a local server, and costs `UNKNOWN` on any other. The first
    look-up takes 0.2 s.
    """
    usage, model, server = response.usage, response.model, response.base_url
    if not usage.total_tokens:
        return FREE.costs(usage)
    begun = [name for name in own if model.startswith(name)]
    if known := [name for name in begun if VERSION.fullmatch(model.removeprefix(name))]:
        return own[max(known, key=len)].costs(usage)
    if (published := _published_costs(usage, model, server)) is not None:
        return published
    if server is not None and is_local(server):
        return FREE.costs(usage)
    _warn_of(model)
    return UNKNOWN.costs(usage)


def _published_costs(usage: Usage, model: str, server: str | None) -> Costs | None:
    """Return the cost at the prices of the server, else of the model's maker, tiers included."""
    from genai_prices import Usage as Tokens  # noqa: PLC0415 (0.2 s and 13 MB)
    from genai_prices import calc_price  # noqa: PLC0415

    tokens = Tokens(
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=usage.cached_tokens,
        output_tokens=usage.completion_tokens,
    )
    for name, url in ((model, server), (model, None), (model.rpartition("/")[2], None)):
        with suppress(LookupError):
            price = calc_price(tokens, name, provider_api_url=url)
            return {"input": float(price.input_price), "output": float(price.output_price)}
    return None


@lru_cache(256)
def _warn_of(model: str) -> None:
    log.warning(
        "The price of the model %.80r is not known, it counts as one of the dearest: %g and %g US "
        "dollars per million tokens read and written. LLM_PRICES may say what it costs.",
        *(model, UNKNOWN.prompt, UNKNOWN.completion),
    )


def is_local(base_url: str) -> bool:
    """Return True if a server is on this machine or in its own network, where models are free."""
    host = urlsplit(base_url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(LOCAL_HOSTS)
    return address.is_loopback or address.is_private


@dataclass(frozen=True, slots=True)
class Spent:
    """Requests, tokens and US dollars that were used."""

    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        requests, tokens = self.requests + other.requests, self.tokens + other.tokens
        return Spent(requests, tokens, self.cost_usd + other.cost_usd)


NOTHING_SPENT: Final = Spent()


@dataclass(slots=True)
class Ledger:
    """The requests, tokens and cost of a turn so far, failed attempts included."""

    requests: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    prices: Mapping[str, Price] = field(default_factory=dict, repr=False)
    """Own prices of models, by name."""
    spent_before: Spent = NOTHING_SPENT
    """Use that counts towards the budgets of a day, but no more towards the limits of the turn."""

    @property
    def spent(self) -> Spent:
        """Return the use that counts towards the budgets of a day."""
        return self.spent_before + Spent(self.requests, self.usage.total_tokens, self.cost_usd)

    def add(self, response: LLMResponse) -> Costs:
        """Count a response's tokens and cost, and return the latter."""
        costs = costs_of(response, self.prices)
        self.usage += response.usage
        self.cost_usd += sum(costs.values())
        return costs

    def take(self, spent: Spent) -> None:
        """Add requests that had no tokens: to a server for speech."""
        self.requests += spent.requests
        self.cost_usd += spent.cost_usd

    def exhausted(self, limits: Limits) -> str | None:
        """Name the limit that forbids a further request, None while there is none."""
        if self.requests >= limits.requests:
            return "requests"
        if self.usage.total_tokens >= limits.tokens:
            return "tokens"
        return "cost" if self.cost_usd >= limits.cost_usd else None
