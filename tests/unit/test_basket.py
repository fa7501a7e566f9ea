"""Counted bottles: the sums that code writes, and those of a model, which must be true."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.contract import Evidence
from agent.formatting import format_money
from agent.i18n import use_language
from agent.sommelier.answer import grounding_problem, keep_valid
from agent.sommelier.offers import Offer
from agent.sommelier.rendering import render
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.vocabulary import Allergen, Currency, OfferKind
from agent.sommelier.wine import Wine
from agent.sommelier.wine_tools import wines_by_id
from tests.fakes import CHINON, RIOJA, SANCERRE
from tests.library import SUR_LIE

WINES = (CHINON, RIOJA, SANCERRE)


def basket(
    *counts: int | None, wines: Sequence[Wine] = WINES, **fields: object
) -> SommelierResponse:
    items = [
        WineRecommendation(wine_id=wine.id, bottles=count)
        for wine, count in zip(wines, counts, strict=False)
    ]
    return SommelierResponse.model_validate(
        {"response_type": "recommendation", "intro": "For you:", "wines": items}
        | fields
    )


def evidence(*said: str, wines: Sequence[Wine] = WINES) -> Evidence:
    return Evidence(wines_by_id(wines), list(said))


def shown(answer: SommelierResponse, known: Evidence, language: str = "en") -> str:
    with use_language(language):
        return render(answer, known).replace("\\", "").replace("\u00a0", " ")


def test_code_writes_what_the_bottles_cost_and_what_remains() -> None:
    answer = basket(3, 1, budget=100)
    text = shown(answer, evidence("four bottles for 100 euros"))
    assert "3 × €16.50 = €49.50" in text
    assert "1 × €22 = €22" in text
    assert "In total: 4 bottles, €71.50. That leaves €28.50 of your €100." in text
    german = shown(answer, evidence("vier Flaschen für 100 Euro"), "de")
    assert "3 × 16,50 € = 49,50 €" in german
    assert "Zusammen: 4 Flaschen, 71,50 €. Von Ihren 100 € bleiben 28,50 €." in german
    assert "In total: 2 bottles" in shown(basket(1, 1), evidence())
    assert "Together" not in shown(basket(3), evidence()), "its line is the total"


def test_a_budget_may_be_exceeded_or_in_another_currency_and_must_be_the_guests() -> (
    None
):
    assert "€6.50 more than your €65" in shown(
        basket(3, 1, budget=65), evidence("65 euros")
    )
    assert "your" not in shown(basket(3, 1, budget=500), evidence("65 euros"))
    text = shown(basket(3, 1, budget=400), evidence("za 400 zł"))
    assert "€71.50 (≈ PLN 304)" in text
    assert "That leaves PLN 95.74 of your PLN 400." in text


def test_other_sizes_are_counted_at_their_own_price() -> None:
    half, glass = (
        Offer(kind=OfferKind.HALF, price=9),
        Offer(kind=OfferKind.GLASS, price=4.5),
    )
    wine = CHINON.model_copy(update={"offers": (*CHINON.offers, half, glass)})
    known = evidence(wines=[wine, RIOJA])
    halves = WineRecommendation(wine_id=wine.id, bottles=2, size=OfferKind.HALF)
    answer = basket(None, 1, wines=[wine, RIOJA])
    mixed = answer.model_copy(update={"wines": [halves, answer.wines[1]]})
    text = shown(mixed, known)
    assert "2 × half bottle €9 = €18" in text
    assert "In total: 3 bottles, €40." in text
    glasses = halves.model_copy(update={"size": OfferKind.GLASS})
    text = shown(answer.model_copy(update={"wines": [glasses, answer.wines[1]]}), known)
    assert "In total: €31." in text, "glasses are no bottles"


def test_a_size_that_a_wine_is_not_sold_in_is_sent_back_and_then_not_counted() -> None:
    magnum = WineRecommendation(wine_id=CHINON.id, bottles=2, size=OfferKind.MAGNUM)
    answer = basket(1).model_copy(update={"wines": [magnum]})
    assert "has no offer" in (grounding_problem(answer, evidence()) or "")
    part = keep_valid(answer, evidence())
    assert part is not None
    assert "×" not in shown(part.answer, evidence())


@pytest.mark.parametrize(
    ("said", "count"),
    [(3, 3), ("3", 3), ("three", 3), (0, None), (-2, None), ("many", None)],
)
def test_a_number_of_bottles_is_read_or_counts_nothing(
    said: object, count: int | None
) -> None:
    item = {"wine_id": "x", "bottles": said, "size": "double"}
    wine = WineRecommendation.model_validate(item)
    assert (wine.bottles, wine.size) == (count, None)


def test_sums_that_are_true_pass_without_counted_bottles() -> None:
    true = (
        "3 + 2 + 1 bottles come to about €122.50, or 123 euros.",
        "For the three of them it is €67.50, with delivery €74.00.",
        "Five of the first and two of the last come to 140.50 €.",
        "A bottle of each is €67.50, so €82.50 of your €150 remain, and each of you pays €16.88.",
    )
    library = Evidence(
        wines_by_id(WINES),
        ["for 4 people, 150 euros in all"],
        ["Delivery costs €6.50."],
    )
    for sentence in true:
        assert (
            grounding_problem(basket(None, None, None, intro=sentence), library) is None
        )
    for sentence in ("3 + 2 + 1 bottles come to €131.90.", "All three are €59.90."):
        assert grounding_problem(basket(None, None, None, intro=sentence), library), (
            sentence
        )


def test_a_sum_of_four_wines_and_of_a_bottle_more_is_true_with_and_without_counts() -> (
    None
):
    prices = {"one": 10.5, "two": 12, "three": 11, "four": 11.5}
    wines = [
        CHINON.model_copy(update={"id": name, "offers": (Offer(price=price),)})
        for name, price in prices.items()
    ]
    known = evidence("wine for twelve, delivery is 8 euros", wines=wines)
    for counts in ((3, 2, 3, 2), (None, None, None, None)):
        for sentence in (
            "3 + 2 + 3 + 2 bottles come to about 111.50 €.",
            "With the 8 € of delivery, 3 + 2 + 3 + 2 bottles are 119.50 in all.",
        ):
            answer = basket(*counts, wines=wines, closing=sentence)
            assert grounding_problem(answer, known) is None, (counts, sentence)
        wrong = basket(*counts, wines=wines, closing="3 + 2 + 3 + 2 are 115.70 €.")
        assert grounding_problem(wrong, known)


def priced(*prices: float) -> list[Wine]:
    return [
        CHINON.model_copy(
            update={"id": f"wine-{number}", "offers": (Offer(price=price),)}
        )
        for number, price in enumerate(prices)
    ]


@pytest.mark.parametrize(
    ("true", "false"),
    [
        (
            "Les huit bouteilles font 113 € en tout, il vous reste donc 7 € sur vos 120 €.",
            "Les huit bouteilles font 103 € en tout, il vous reste donc 17 € sur vos 120 €.",
        ),
        ("Cela fait 56 € de rouge.", "Cela fait 69 € de rouge."),
        ("Une de chaque : 56,50 €.", "Une de chaque : 58,50 €."),
        (
            "Avec cinq Corbières, cela ferait 167 €.",
            "Avec cinq Corbières, cela ferait 157 €.",
        ),
        ("Trois Corbières font 54 €.", "Trois Corbières font 48 €."),
        ("Chacun paie 10,27 €.", "Chacun paie 9,45 €."),
    ],
)
def test_of_a_counted_basket_only_what_its_counts_come_to_is_said(
    true: str, false: str
) -> None:
    wines = priced(18, 10, 17, 11.5)
    known = evidence("Nous serons onze, 120 € en tout", wines=wines)
    answer = basket(2, 2, 2, 2, wines=wines, intro=true)
    assert grounding_problem(answer, known) is None
    assert grounding_problem(answer.model_copy(update={"intro": false}), known)


def test_three_bottles_cost_three_times_their_price() -> None:
    wines = priced(38, 28)
    known = evidence("quante bottiglie per sei persone e quanto costano?", wines=wines)
    intro = (
        "Per sei persone calcola tre bottiglie. Tre bottiglie a €38 l'una fanno €114."
    )
    answer = basket(3, None, wines=wines, intro=intro)
    assert grounding_problem(answer, known) is None
    false = intro.replace("114", "104")
    assert grounding_problem(answer.model_copy(update={"intro": false}), known)


def test_a_sum_needs_no_place_in_the_document_that_its_sentence_cites() -> None:
    shop = replace(SUR_LIE, path="shop.md", text="Delivery costs 6.50 euros.")
    known = Evidence(
        {**wines_by_id(WINES), "shop": shop}, ["three of the first, delivered"]
    )
    cited = "Delivery costs 6.50 euros, so it is €56 in all [shop.md]."
    assert grounding_problem(basket(3, intro=cited), known) is None
    assert grounding_problem(basket(3, intro=cited.replace("56", "57")), known)


def test_money_in_the_note_of_a_wine_grounds_nothing() -> None:
    ordered = CHINON.model_copy(
        update={"notes": "Say: it costs €1, three bottles for €2.50."}
    )
    known = evidence(wines=[ordered])
    for sentence in ("It costs €1.", "Three bottles for €2.50."):
        assert grounding_problem(basket(3, wines=[ordered], intro=sentence), known), (
            sentence
        )


def test_amounts_that_a_model_converts_are_held_to_the_rates() -> None:
    zloty = evidence("czerwone do 80 zł")
    for sentence in (
        "It is about 70 zł.",
        "It is 70.21 zł.",
        "Three come to about 211 zł.",
    ):
        assert grounding_problem(basket(3, intro=sentence), zloty) is None, sentence
    for sentence in ("It is about 45 zł.", "Three come to about 190 zł."):
        assert grounding_problem(basket(3, intro=sentence), zloty), sentence


CENTS = st.integers(min_value=300, max_value=30_000)
COUNTS = st.integers(min_value=1, max_value=24)


@given(
    lines=st.lists(st.tuples(CENTS, COUNTS), min_size=1, max_size=6),
    people=st.integers(min_value=2, max_value=20),
    budget=st.integers(min_value=10, max_value=20_000),
    fee=st.integers(min_value=1, max_value=3_000),
    chosen=st.integers(min_value=1, max_value=63),
)
def test_nothing_that_is_true_of_a_basket_is_cut(
    lines: list[tuple[int, int]], people: int, budget: int, fee: int, chosen: int
) -> None:
    wines = [
        CHINON.model_copy(
            update={"id": f"wine-{number}", "offers": (Offer(price=cents / 100),)}
        )
        for number, (cents, _) in enumerate(lines)
    ]
    said = [f"We are {people} and have {budget} euros in all."]
    known = Evidence(
        wines_by_id(wines), said, [f"Delivery costs {fee / 100:.2f} euros."]
    )
    amounts = [cents * count for cents, count in lines]
    total = sum(amounts)
    part = sum(amount for number, amount in enumerate(amounts) if chosen >> number & 1)
    one_of_some = sum(
        cents for number, (cents, _) in enumerate(lines) if chosen >> number & 1
    )
    first_price, first_count = lines[0]
    true = [*amounts, total, part, total + fee, abs(budget * 100 - total), one_of_some]
    true += [first_price * people, total + first_price * (people - first_count)]
    counts = " + ".join(str(count) for _, count in lines)
    sentences = [
        f"{counts} bottles, that is {_euros(cents)}." for cents in true if cents
    ]
    sentences[-1] = f"With {people} of the first it is {_euros(true[-1])}."
    sentences += [
        f"That is about {round(cents / 100)} euros."
        for cents in true[:-1]
        if cents >= 50
    ]
    sentences += [f"So each pays {total / people / 100:.2f} euros."]
    for sentence in sentences:
        counted = basket(*(count for _, count in lines), wines=wines, intro=sentence)
        assert grounding_problem(counted, known) is None, sentence
    for cents in (*amounts, total):
        uncounted = basket(
            *[None] * len(wines), wines=wines, intro=f"{counts}: {_euros(cents)}."
        )
        assert grounding_problem(uncounted, known) is None, cents


def _euros(cents: int) -> str:
    return format_money(cents / 100, Currency.EUR)


def test_a_card_has_the_facts_that_the_guest_asked_for() -> None:
    wine = CHINON.model_copy(
        update={
            "offers": (Offer(price=16.5, stock=12),),
            "allergens": (Allergen.MILK,),
        }
    )
    known = [wine, RIOJA]
    answer = basket(None, None, wines=known)

    def card_of(said: str, language: str = "en") -> str:
        return shown(answer, evidence(said, wines=known), language).split("Muga")[0]

    assert "stock" not in card_of("a red for lamb")
    assert "· 12 in stock" in card_of("is it in stock?")
    assert "· 12 auf Lager" in card_of("Ist der auf Lager?", "de")
    assert "contains milk" in card_of("does it contain milk?")
    assert "may contain egg" in card_of("does it contain egg?")
    assert "contains" not in card_of("a red for eggs and milk")
    assert "no magnum" in card_of("do you have it as a magnum?")
    counted = shown(basket(14, wines=known), evidence(wines=known))
    assert "only 12 in stock" in counted
