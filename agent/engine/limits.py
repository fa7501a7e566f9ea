"""The limits of a turn, and the ledger of what it used and cost."""

from dataclasses import dataclass, field
from typing import Final

from agent.engine.messages import LLMResponse, Usage
from agent.engine.prices import Costs, Prices


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

    def larger_answer_limit(self, tokens: int) -> int:
        """Return twice a token limit, up to `answer_tokens_ceiling`, and never less than it."""
        return max(tokens, min(tokens * 2, self.answer_tokens_ceiling))


@dataclass(frozen=True, slots=True)
class Spent:
    """Requests, tokens and US dollars that were used."""

    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.requests + other.requests,
            self.tokens + other.tokens,
            self.cost_usd + other.cost_usd,
        )

    def __mul__(self, times: int) -> "Spent":
        return Spent(self.requests * times, self.tokens * times, self.cost_usd * times)


NOTHING_SPENT: Final = Spent()


@dataclass(slots=True)
class Ledger:
    """The requests, tokens and cost of a turn so far, failed attempts included."""

    requests: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    prices: Prices = field(default_factory=Prices, repr=False)
    spent_before: Spent = NOTHING_SPENT
    """Use that counts towards the budgets of a day, but no more towards the limits of the turn."""
    ceiling: Limits | None = None
    """Limits for every request that is counted here, also one made with limits of its own."""

    @property
    def spent(self) -> Spent:
        """Return the use that counts towards the budgets of a day."""
        return self.spent_before + Spent(self.requests, self.usage.total_tokens, self.cost_usd)

    def add(self, response: LLMResponse) -> Costs:
        """Count a response's tokens and cost, and return the latter."""
        costs = self.prices.costs(response)
        self.usage += response.usage
        self.cost_usd += sum(costs.values())
        return costs

    def take(self, spent: Spent) -> None:
        """Add the use of a part of the turn that had a ledger of its own."""
        self.requests += spent.requests
        self.usage += Usage(prompt_tokens=spent.tokens)
        self.cost_usd += spent.cost_usd

    def requests_left(self, limits: Limits) -> int:
        """Count how many further requests are allowed."""
        allowed = min(limits.requests, self.ceiling.requests if self.ceiling else limits.requests)
        return max(0, allowed - self.requests)

    def exhausted(self, limits: Limits) -> str | None:
        """Name the limit that forbids a further request, None while there is none."""
        return self._reached(limits) or (self._reached(self.ceiling) if self.ceiling else None)

    def _reached(self, limits: Limits) -> str | None:
        if self.requests >= limits.requests:
            return "requests"
        if self.usage.total_tokens >= limits.tokens:
            return "tokens"
        if self.cost_usd >= limits.cost_usd:
            return "cost"
        return None
