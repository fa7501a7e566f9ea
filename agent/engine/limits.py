"""The limits of a turn, the ledger of what it used and cost, and the budgets of a day.

Prices of models come from a setting, from `prices.toml`, or from the package genai-prices.
"""

import ipaddress
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agent.engine.feedback import describe_validation_error
from agent.engine.messages import LLMResponse, Usage
from agent.tables import read_toml
from agent.text import pattern

log = logging.getLogger(__name__)

FILE: Final = Path(__file__).with_name("prices.toml")
VERSION: Final = pattern(r"-(?:v?\d|latest)")
"""How a name goes on that is still the same model: by a date or a version."""

LOCAL_HOSTS: Final = (".local", ".internal", ".lan", ".home.arpa", ".localhost")

N = TypeVar("N", int, float)


class Price(BaseModel):
    """US dollars per million tokens; what is cached costs like the rest unless it is said."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    prompt: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    completion: float = Field(ge=0, allow_inf_nan=False)

    def parts(self, usage: Usage) -> dict[str, float]:
        """What `usage` costs by bucket of tokens, in US dollars."""
        cached = self.prompt if self.cached is None else self.cached
        uncached = usage.prompt_tokens - usage.cached_tokens
        return {
            "input": uncached * self.prompt / 1_000_000,
            "input_cached_tokens": usage.cached_tokens * cached / 1_000_000,
            "output": usage.completion_tokens * self.completion / 1_000_000,
        }


class PriceFile(BaseModel):
    """What `prices.toml` holds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    unknown: Price
    models: dict[str, Price]


FREE: Final = Price(prompt=0, completion=0)
SETTING: Final = TypeAdapter(dict[str, Price])


@dataclass(frozen=True, slots=True)
class Prices:
    """What models cost; `own` stands before what is known of a model otherwise.

    A model that nobody knows is free on a local server, and costs `unknown` of `prices.toml` on any
    other.
    """

    own: Mapping[str, Price] = field(default_factory=dict)

    @classmethod
    def from_setting(cls, setting: str | None) -> "Prices":
        """Read prices from a setting, a JSON object of models; `cached` may be left out.

        `{"my-model": {"prompt": 1, "cached": 0.5, "completion": 2}}`, in US dollars per million
        tokens.

        Raises:
            ValueError: it is not such an object; one line that says where it is wrong.
        """
        try:
            return cls(SETTING.validate_json(setting) if setting else {})
        except ValidationError as error:
            wrong = describe_validation_error(error).removeprefix("answer: ")
            raise ValueError(
                f'{wrong}; write {{"MODEL": {{"prompt": 1, "completion": 2}}}}'
            ) from None

    def of(self, model: str, base_url: str | None = None) -> Price:
        """Look a model's price up; the first look-up of a model not listed here takes 0.2 s."""
        return listed(model, self.own) or known_price(model, base_url)

    def costs(self, response: LLMResponse) -> dict[str, float]:
        """What a response cost by bucket of tokens; nothing if it used none."""
        used = response.usage
        return self.of(response.model, response.base_url).parts(used) if used.total_tokens else {}


@cache
def price_file() -> PriceFile:
    """The prices kept with this code, read once.

    Raises:
        ValidationError: the file is not as it must be.
    """
    return read_toml(PriceFile, FILE)


def listed(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price under the longest name that `model` is, or extends by a date or version."""
    names = [
        name
        for name in prices
        if model == name or (model.startswith(name) and VERSION.match(model[len(name) :]))
    ]
    return prices[max(names, key=len)] if names else None


@lru_cache(maxsize=256)
def known_price(model: str, base_url: str | None) -> Price:
    """The price of a model as far as anybody knows it; that nobody does is logged once."""
    known = listed(model, price_file().models) or published_price(model, base_url)
    if known is not None:
        return known
    if base_url is not None and is_local(base_url):
        return FREE
    unknown = price_file().unknown
    log.warning(
        "The price of the model %.80r is not known: %g US dollars per million tokens of a prompt "
        "and %g of an answer are counted. Say what it costs in LLM_PRICES.",
        model,
        unknown.prompt,
        unknown.completion,
    )
    return unknown


def published_price(model: str, base_url: str | None) -> Price | None:
    """What genai-prices knows of a model, on this server if it can tell, else at its maker."""
    from genai_prices import Usage as Tokens  # noqa: PLC0415 (0.2 s and 13 MB, seldom needed)
    from genai_prices import calc_price  # noqa: PLC0415

    # Few tokens: some models cost more per token in prompts beyond 200,000.
    prompt = Tokens(input_tokens=1000)
    cached = Tokens(input_tokens=1000, cache_read_tokens=1000)
    completion = Tokens(output_tokens=1000)
    for name, url in names_and_servers(model, base_url):
        try:
            found = [calc_price(each, name, provider_api_url=url) for each in (prompt, cached)]
            answer = calc_price(completion, name, provider_api_url=url)
        except LookupError:
            continue
        return Price(
            prompt=float(found[0].input_price) * 1000,
            cached=float(found[1].input_price) * 1000,
            completion=float(answer.output_price) * 1000,
        )
    return None


def names_and_servers(model: str, base_url: str | None) -> Iterator[tuple[str, str | None]]:
    """Under which names to look a model up, and at whose prices; the surest first."""
    if base_url is not None:
        yield model, base_url
    yield model, None
    if "/" in model:
        yield model.rpartition("/")[2], None


def is_local(base_url: str) -> bool:
    """Whether a server is on this machine or in its own network, where models cost nothing."""
    host = urlsplit(base_url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(LOCAL_HOSTS)
    return address.is_loopback or address.is_private


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

    def raised(self, tokens: int) -> int:
        """Double a token limit, up to `answer_tokens_ceiling`, and never lowered."""
        return max(tokens, min(tokens * 2, self.answer_tokens_ceiling))


@dataclass(frozen=True, slots=True)
class Spent:
    """What a person, or everyone, has used since a moment."""

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
    """What a turn has used so far, failed attempts included; complete on every exit."""

    requests: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    prices: Prices = field(default_factory=Prices, repr=False)
    before: Spent = NOTHING_SPENT
    """What counts towards the budgets of a day, but no more towards the limits of the turn."""
    ceiling: Limits | None = None
    """What holds for every request that is counted here, also one made with limits of its own."""

    @property
    def spent(self) -> Spent:
        """What counts towards the budgets of a day."""
        return self.before + Spent(self.requests, self.usage.total_tokens, self.cost_usd)

    def restore(self, spent: Spent) -> None:
        """Count what was used before an interruption, as a record of it says."""
        if self.spent != spent:
            self.before = NOTHING_SPENT
            self.requests, self.cost_usd = spent.requests, spent.cost_usd
            self.usage = Usage(prompt_tokens=spent.tokens)

    def add(self, response: LLMResponse) -> dict[str, float]:
        """Count a response's tokens and cost; returns the latter in US dollars by bucket."""
        costs = self.prices.costs(response)
        self.usage += response.usage
        self.cost_usd += sum(costs.values())
        return costs

    def take(self, spent: Spent) -> None:
        """Count what a part of the turn used that had a ledger of its own."""
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


BudgetLimit = Literal["requests", "tokens", "cost"]
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """What may be used in a day (UTC): requests to models, tokens, US dollars. None: no limit."""

    requests: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None

    @property
    def is_set(self) -> bool:
        """Whether anything is limited."""
        return self != NO_BUDGET

    def left(self, spent: Spent) -> "DailyBudget":
        """Subtract what was spent, to nothing below zero."""
        return DailyBudget(
            None if self.requests is None else max(0, self.requests - spent.requests),
            None if self.tokens is None else max(0, self.tokens - spent.tokens),
            None if self.cost_usd is None else max(0.0, self.cost_usd - spent.cost_usd),
        )

    def reached(self, spent: Spent, share: float = 1.0) -> BudgetLimit | None:
        """Name the first limit of which this share is used; None while there is none."""
        if self.requests is not None and spent.requests >= self.requests * share:
            return "requests"
        if self.tokens is not None and spent.tokens >= self.tokens * share:
            return "tokens"
        if self.cost_usd is not None and spent.cost_usd >= self.cost_usd * share:
            return "cost"
        return None


NO_BUDGET: Final = DailyBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What of the day's budgets a turn that began at `at` may still use.

    `person` and `everyone` are what is left of each budget. `used_up` names the limit that forbids
    any request, `is_shared` says that it is one of everyone's.
    """

    person: DailyBudget = NO_BUDGET
    everyone: DailyBudget = NO_BUDGET
    used_up: BudgetLimit | None = None
    is_shared: bool = False
    at: datetime = EPOCH

    @property
    def resets_at(self) -> datetime:
        """When the next day (UTC) begins."""
        return day_of(self.at) + timedelta(days=1)

    def narrowed(self, limits: Limits) -> Limits:
        """Narrow the limits of a turn, as far as the budgets allow them.

        Where few requests are left, they are for a tool call and an answer, not for retries.
        """
        asked = limits.requests
        for left in (self.person, self.everyone):
            limits = replace(
                limits,
                requests=_lower(limits.requests, left.requests),
                tokens=_lower(limits.tokens, left.tokens),
                cost_usd=_lower(limits.cost_usd, left.cost_usd),
            )
        if limits.requests == asked:
            return limits
        retries = min(limits.structured_output_max_retries, max(0, limits.requests - 2))
        return replace(limits, structured_output_max_retries=retries)

    def after(self, spent: Spent) -> "Allowance":
        """Judge the same once a turn has used so much: used up or not."""
        if self.used_up:
            return self
        return _judged(self, self.person, self.everyone, spent, spent)


UNLIMITED: Final = Allowance()


def allowance_of(
    person: DailyBudget,
    everyone: DailyBudget,
    *,
    by_person: Spent,
    by_everyone: Spent,
    now: datetime,
) -> Allowance:
    """Work out what of both budgets is left for a turn, after what the day has used."""
    allowance = Allowance(
        person=person.left(by_person), everyone=everyone.left(by_everyone), at=now
    )
    return _judged(allowance, person, everyone, by_person, by_everyone)


def day_of(moment: datetime) -> datetime:
    """Return when the day (UTC) of a moment began."""
    return datetime.combine(moment.astimezone(UTC).date(), time(), UTC)


def _judged(
    allowance: Allowance,
    person: DailyBudget,
    everyone: DailyBudget,
    by_person: Spent,
    by_everyone: Spent,
) -> Allowance:
    own, shared = person.reached(by_person), everyone.reached(by_everyone)
    return replace(allowance, used_up=own or shared, is_shared=own is None and shared is not None)


def _lower(limit: N, left: N | None) -> N:
    return limit if left is None else min(limit, left)
