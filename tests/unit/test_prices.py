"""Prices from a setting: beside the listed ones, or in their place."""

import pytest

from agent.engine.limits import PRICES, Ledger, Price, prices_with
from agent.engine.messages import LLMResponse, Usage


def test_a_model_of_ones_own_costs_what_the_setting_says() -> None:
    prices = prices_with('{"house-model": {"prompt": 2, "cached": 1, "completion": 4}}')
    ledger = Ledger(prices=prices)
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=500_000, cached_tokens=500_000)
    assert ledger.add(LLMResponse(model="house-model-2026-01-01", usage=usage)) == 1 + 0.5 + 2
    assert {**prices, "house-model": None} == {**PRICES, "house-model": None}


def test_a_listed_price_is_replaced_and_cached_tokens_cost_like_the_others() -> None:
    prices = prices_with('{"gpt-4o": {"prompt": 3, "completion": 9.5}}')
    assert prices["gpt-4o"] == Price(3, 3, 9.5)
    assert prices["gpt-4o-mini"] == PRICES["gpt-4o-mini"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("{", "Invalid JSON"),
        ("[]", "Input should be an object"),
        ('{"m": 3}', "m: Input should be an object"),
        ('{"m": {"prompt": 1}}', "m.completion: Field required"),
        ('{"m": {"prompt": "1", "completion": 1}}', "m.prompt: Input should be a valid number"),
        ('{"m": {"prompt": -1, "completion": 1}}', "m.prompt: Input should be greater than or"),
        ('{"m": {"prompt": 1, "completion": Infinity}}', "m.completion: Input should be a finite"),
        ('{"m": {"prompt": 1, "completion": 1, "image": 1}}', "m.image: Extra inputs are not"),
    ],
)
def test_a_wrong_setting_is_one_line_that_says_where(setting: str, message: str) -> None:
    with pytest.raises(ValueError, match="MODEL") as raised:
        prices_with(setting)
    assert str(raised.value).startswith(message)
    assert str(raised.value).endswith('write {"MODEL": {"prompt": 1, "completion": 2}}')
    assert "\n" not in str(raised.value)
