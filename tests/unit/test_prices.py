"""Prices of models: from a setting, from the list, from genai-prices, or of a model unknown."""

import logging
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from agent.engine.messages import LLMResponse, TokenUsage
from agent.engine.models import UNKNOWN_PRICE, assume_price, find_price
from agent.engine.run import Costs, Price
from config import load_settings

MILLION = TokenUsage(prompt_tokens=1_000_000, completion_tokens=1_000_000)


def costs_of(response: LLMResponse, prices: Mapping[str, Price]) -> Costs:
    price = find_price(response, prices) or assume_price(response)
    return price.compute_costs(response.usage)


def cost(
    model: str,
    prices: Mapping[str, Price] = MappingProxyType({}),
    base_url: str | None = None,
) -> float:
    """The cost of a million tokens in and out, in US dollars."""
    response = LLMResponse(model=model, usage=MILLION, base_url=base_url)
    return sum(costs_of(response, prices).values())


def test_a_model_of_ones_own_costs_what_the_setting_says() -> None:
    setting = '{"house-model": {"prompt": 2, "cached": 1, "completion": 4}}'
    prices = load_settings(None, {"LLM_PRICES": setting}).llm_prices
    usage = TokenUsage(
        prompt_tokens=1_000_000, completion_tokens=500_000, cached_tokens=500_000
    )
    costs = costs_of(LLMResponse(model="house-model-2026-01-01", usage=usage), prices)
    assert (costs["input"], costs["input_cached_tokens"], costs["output"]) == (
        1,
        0.5,
        2,
    )
    assert cost("gpt-4o", prices) == cost("gpt-4o")


def test_a_model_costs_what_is_published_for_that_many_tokens() -> None:
    assert cost("claude-opus-4-5") == 5 + 25
    at_reseller = cost(
        "anthropic/claude-opus-4.5", base_url="https://openrouter.ai/api/v1"
    )
    behind_a_proxy = cost(
        "anthropic/claude-opus-4-5", base_url="http://litellm:4000/v1"
    )
    assert at_reseller == behind_a_proxy == 30
    few = LLMResponse(model="gemini-2.5-pro", usage=TokenUsage(100_000, 0))
    many = LLMResponse(model="gemini-2.5-pro", usage=TokenUsage(1_000_000, 0))
    assert sum(costs_of(many, {}).values()) > 10 * sum(costs_of(few, {}).values())


def test_cached_and_reasoning_tokens_have_a_cost_of_their_own() -> None:
    usage = TokenUsage(1000, 100, cached_tokens=600, reasoning_tokens=80)
    assert costs_of(LLMResponse(model="gpt-4o", usage=usage), {}) == {
        "input": pytest.approx(400 * 2.5 / 1e6),
        "input_cached_tokens": pytest.approx(600 * 1.25 / 1e6),
        "output": pytest.approx(20 * 10 / 1e6),
        "output_reasoning_tokens": pytest.approx(80 * 10 / 1e6),
    }


def test_a_model_that_nobody_knows_is_not_free_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    response = LLMResponse(
        model="unheard-of-7b", usage=MILLION, base_url="https://models.example/v1"
    )
    with caplog.at_level(logging.WARNING):
        costs = [sum(costs_of(response, {}).values()) for _ in range(3)]
    assert costs == [UNKNOWN_PRICE.prompt + UNKNOWN_PRICE.completion] * 3
    assert [record.getMessage() for record in caplog.records] == [
        "The price of the model 'unheard-of-7b' is not known, it counts as one of the dearest: 5 "
        "and 25 US dollars per million tokens read and written. LLM_PRICES may say what it costs."
    ]


@pytest.mark.parametrize(
    "base_url", ["http://192.168.1.20/v1", "http://ollama:11434/v1"]
)
def test_local_is_what_no_one_bills(base_url: str) -> None:
    assert cost("unheard-of:8b", base_url=base_url) == 0 < cost("unheard-of:8b")
