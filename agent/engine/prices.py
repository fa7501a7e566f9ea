"""What models cost: prices from a setting, from `prices.toml`, from the package genai-prices."""

import ipaddress
import logging
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agent.engine.feedback import describe_validation_error
from agent.engine.messages import LLMResponse, Usage

log = logging.getLogger(__name__)

FILE: Final = Path(__file__).with_name("prices.toml")
VERSION: Final = re.compile(r"-(?:v?\d|latest)")
"""How a name goes on that is still the same model: by a date or a version."""

LOCAL_HOSTS: Final = (".local", ".internal", ".lan", ".home.arpa", ".localhost")


class Price(BaseModel):
    """US dollars per million tokens; what is cached costs like the rest unless it is said."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    prompt: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    completion: float = Field(ge=0, allow_inf_nan=False)

    def of(self, usage: Usage) -> float:
        """What `usage` costs, in US dollars."""
        cached = self.prompt if self.cached is None else self.cached
        uncached = usage.prompt_tokens - usage.cached_tokens
        return (
            uncached * self.prompt
            + usage.cached_tokens * cached
            + usage.completion_tokens * self.completion
        ) / 1_000_000


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

    def cost(self, response: LLMResponse) -> float:
        """What a response cost, in US dollars."""
        used = response.usage
        return self.of(response.model, response.base_url).of(used) if used.total_tokens else 0.0


KNOWN_PRICES: Final = Prices()


@cache
def price_file() -> PriceFile:
    """The prices kept with this code, read once.

    Raises:
        ValidationError: the file is not as it must be.
    """
    return PriceFile.model_validate(tomllib.loads(FILE.read_text("utf-8")))


def listed(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price under the longest name that `model` is, or extends by a date or version."""
    names = [
        name
        for name in prices
        if model == name or (model.startswith(name) and VERSION.match(model, len(name)))
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
