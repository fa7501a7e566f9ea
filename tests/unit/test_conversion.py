"""Prices in the currency that the guest named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.i18n import use_language
from agent.sommelier.cards import format_prices, render_wine
from agent.sommelier.conversion import find_named_currency
from agent.sommelier.offers import Offer
from agent.sommelier.vocabulary import Currency, OfferKind, convert
from tests.fakes import CHINON

AMOUNTS = st.floats(0.5, 10_000)
CURRENCIES = st.sampled_from(Currency)


@given(AMOUNTS, CURRENCIES, CURRENCIES)
def test_an_amount_comes_back_as_it_was(
    amount: float, one: Currency, other: Currency
) -> None:
    there_and_back = convert(convert(amount, one, other), other, one)
    assert there_and_back == pytest.approx(amount)


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (["coś czerwonego do 40 zł"], Currency.PLN),
        (["a red under £20", "und bis 30 Franken?", "rather white"], Currency.CHF),
        (["a red for lamb, six bottles"], None),
    ],
)
def test_the_newest_amount_with_a_currency_counts(
    texts: list[str], named: Currency | None
) -> None:
    assert find_named_currency(texts) is named


def test_every_offer_shows_its_price_in_the_named_currency_too() -> None:
    offers = (Offer(price=8.9), Offer(kind=OfferKind.GLASS, price=3))
    wine = CHINON.model_copy(update={"offers": offers})
    expected = {
        Currency.PLN: "8,90 € (≈ 38 PLN) · Glas 3 € (≈ 13 PLN)",
        Currency.JPY: "8,90 € (≈ 1.530 ¥) · Glas 3 € (≈ 517 ¥)",
        Currency.EUR: "8,90 € · Glas 3 €",
        None: "8,90 € · Glas 3 €",
    }
    with use_language("de"):
        for currency, prices in expected.items():
            assert format_prices(wine, currency).replace("\u00a0", " ") == prices


def test_a_card_reads_the_currency_of_the_guest() -> None:
    card = render_wine(CHINON, "", user_text="a red for lamb under 20 dollars")
    assert "€16.50 (≈ $19)" in card
