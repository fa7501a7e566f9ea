"""The limits of a turn, and the ledger of what it used."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from agent.messages import LLMResponse, Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """What one turn may use. Times are seconds; money is US dollars; `result_chars` characters."""

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


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    cached: float
    completion: float

    def of(self, usage: Usage) -> float:
        """What `usage` costs, in US dollars."""
        uncached = usage.prompt_tokens - usage.cached_tokens
        return (
            uncached * self.prompt
            + usage.cached_tokens * self.cached
            + usage.completion_tokens * self.completion
        ) / 1_000_000


PRICES: Final[Mapping[str, Price]] = MappingProxyType(
    {
        "gpt-4o": Price(2.50, 1.25, 10.00),
        "gpt-4o-mini": Price(0.15, 0.075, 0.60),
        "gpt-4.1": Price(2.00, 0.50, 8.00),
        "gpt-4.1-mini": Price(0.40, 0.10, 1.60),
        "gpt-4.1-nano": Price(0.10, 0.025, 0.40),
    }
)
"""List prices; a model that is not listed, a local one say, costs nothing."""

FREE: Final = Price(0, 0, 0)


def price_of(model: str, prices: Mapping[str, Price] = PRICES) -> Price:
    """The price of the longest listed name that `model` is, or extends by a date or version."""
    names = [name for name in prices if model == name or model.startswith(f"{name}-")]
    return prices[max(names, key=len)] if names else FREE


@dataclass(slots=True)
class Ledger:
    """What a turn has used so far, failed attempts included; complete on every exit."""

    requests: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    prices: Mapping[str, Price] = field(default_factory=lambda: PRICES, repr=False)

    def add(self, response: LLMResponse) -> float:
        """Count a response's tokens and cost; the cost of this response in US dollars."""
        cost = price_of(response.model, self.prices).of(response.usage)
        self.usage += response.usage
        self.cost_usd += cost
        return cost

    def exhausted(self, limits: Limits) -> str | None:
        """The name of the limit that forbids a further request, None while there is none."""
        if self.requests >= limits.requests:
            return "requests"
        if self.usage.total_tokens >= limits.tokens:
            return "tokens"
        if self.cost_usd >= limits.cost_usd:
            return "cost"
        return None


current_ledger: Final[ContextVar[Ledger | None]] = ContextVar("current_ledger", default=None)
"""The ledger of the turn whose tool runs; a tool that asks a model counts its requests there."""
