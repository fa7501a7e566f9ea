"""Money, dates, sizes, durations and countries as users read them, and money as models do."""

from contextvars import copy_context
from datetime import UTC, date, datetime

import pytest

from agent.formatting import (
    format_country,
    format_date,
    format_duration,
    format_money,
    format_volume,
)
from agent.i18n import (
    current_language,
    set_app_language,
    set_language,
    use_language,
)
from agent.sommelier.cards import format_facts, translate_country
from agent.sommelier.vocabulary import Currency, format_money_for_model
from agent.sommelier.wine import Wine


def speak(code: str) -> None:
    set_app_language(code)
    set_language(code)


@pytest.mark.parametrize(
    ("code", "amounts"),
    [
        ("en", "€16.50|€1,234|CHF 20|PLN 120"),
        ("de", "16,50 €|1.234 €|20 CHF|120 PLN"),
        ("de-AT", "€ 16,50|€ 1.234|CHF 20|PLN 120"),
        ("fr", "16,50 €|1 234 €|20 CHF|120 PLN"),
        ("pl", "16,50 €|1 234 €|20 CHF|120 zł"),
        ("pt", "16,50 €|1 234 €|20 CHF|120 PLN"),
        ("ja", "€16.50|€1,234|CHF 20|PLN 120"),
        ("xx", "€16.50|€1,234|CHF 20|PLN 120"),
    ],
)
def test_users_read_money_as_their_language_and_country_write_it(
    code: str, amounts: str
) -> None:
    def shown() -> str:
        speak(code)
        prices = [(16.5, "EUR"), (1234, "EUR"), (20, "CHF"), (120, "PLN")]
        return "|".join(" ".join(format_money(*price).split()) for price in prices)

    assert copy_context().run(shown) == amounts


def test_models_read_money_in_one_form_in_every_language() -> None:
    def shown() -> str:
        speak("de")
        return format_money_for_model(1234.5, Currency.EUR)

    assert copy_context().run(shown) == "€1234.50"


@pytest.mark.parametrize(
    ("code", "country"),
    [
        ("en", "Hungary"),
        ("de", "Ungarn"),
        ("pl", "Węgry"),
        ("ja", "ハンガリー"),
        ("xx", "Hungary"),
    ],
)
def test_countries_have_their_names_in_languages_without_a_catalogue_too(
    code: str, country: str
) -> None:
    def shown() -> tuple[str, str, str]:
        speak(code)
        assert current_language() in ("en", code)
        return (
            translate_country("Hungary"),
            format_country("HU"),
            translate_country("Atlantis"),
        )

    assert copy_context().run(shown) == (country, country, "Atlantis")


def test_a_card_names_a_country_as_people_do_and_only_once() -> None:
    wine = Wine(
        id="zero",
        producer="McGuigan",
        name="Zero",
        country="Australia",
        region="South Eastern Australia",
    )
    with use_language("de"):
        assert translate_country("United States") == "USA"
        assert format_facts(wine) == "Südostaustralien"
    with use_language("en"):
        assert format_facts(wine) == "South Eastern Australia"


def test_a_duration_is_written_in_the_language() -> None:
    def shown() -> tuple[str, str]:
        speak("de")
        return format_duration(200), format_duration(5)

    assert copy_context().run(shown) == ("3 Std. 20 Min.", "5 Min.")


@pytest.mark.parametrize(
    ("code", "days", "sizes"),
    [
        ("en", "Nov 28|Nov 28, 2019", "375 mL|1.5 L"),
        ("de", "28. Nov.|28. Nov. 2019", "375 ml|1,5 l"),
        ("fr", "28 nov.|28 nov. 2019", "375 ml|1,5 l"),
        ("pl", "28 lis|28 lis 2019", "375 ml|1,5 l"),
        ("ja", "11月28日|2019年11月28日", "375 ml|1.5 L"),
    ],
)
def test_dates_and_sizes_are_written_in_the_language(
    code: str, days: str, sizes: str
) -> None:
    def shown() -> tuple[str, str]:
        speak(code)
        written = [
            format_date(date(year, 11, 28)) for year in (datetime.now(UTC).year, 2019)
        ]
        volumes = [" ".join(format_volume(size).split()) for size in (375, 1500)]
        return "|".join(written), "|".join(volumes)

    assert copy_context().run(shown) == (days, sizes)
