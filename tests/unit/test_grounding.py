"""The grounding rules of answers: ids of wines, and figures in prose."""

from dataclasses import replace

import pytest

from agent.engine.contract import Evidence
from agent.i18n import use_language
from agent.sommelier.answer import grounding_problem, keep_valid
from agent.sommelier.cards import format_facts, render_wine
from agent.sommelier.offers import Offer
from agent.sommelier.rendering import render
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.vocabulary import Currency, OfferKind
from agent.sommelier.wine import wine_record
from agent.sommelier.wine_tools import wines_by_id
from tests.fakes import CHINON, RIOJA, SANCERRE
from tests.library import SUR_LIE

WINES = [CHINON, RIOJA]
EVIDENCE = Evidence(sources=wines_by_id(WINES), user_texts=["a red under 25 euros"])
GOOD = WineRecommendation(wine_id=CHINON.id, description="Fresh.")


def recommend(*wines: WineRecommendation, intro: str = "For you:") -> SommelierResponse:
    return SommelierResponse(
        response_type="recommendation", intro=intro, wines=list(wines)
    )


def in_intro(text: str, evidence: Evidence = EVIDENCE) -> str | None:
    return grounding_problem(
        SommelierResponse(response_type="informational", intro=text), evidence
    )


def in_description(text: str, evidence: Evidence = EVIDENCE) -> str | None:
    described = WineRecommendation(wine_id=CHINON.id, description=text)
    return grounding_problem(recommend(described), evidence)


@pytest.mark.parametrize(
    "text",
    [
        "The Chinon costs €16.50, the Rioja €22, about 17 and 22 euros.",
        "Two of the Chinon come to €33, both wines to €38.50, the Rioja costs €5.50 more.",
        "Two of the Chinon and one of the Rioja, €55 in all.",
        "The Chinon is at its best until 2025.",
        "In 1976 a tasting in Paris changed much, and Grands crus were ranked in 1855.",
        "Serve it at 16 °C after 30 minutes, in a glass of 0,75 l or 13.50 %.",
        "Would you like something at €40, a 2015 perhaps?",
        "It keeps until 2060, bis in die 2040er.",
        "Take a glass of Pétrus; it is oak-free and from Zorbelo.",
    ],
)
def test_figures_that_follow_from_evidence_pass(text: str) -> None:
    assert in_intro(text) is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("It costs only €9.", "€9"),
        ("It costs nineteen euros.", "19 euros"),
        ("Yours for 1.234,50 €.", "1.234,50 €"),
        ("Kosztuje 9 zł.", "9 zl"),
        ("Kosztuje dziewięć złotych.", "9 zlotych"),
        ("Stojí 290 Kč.", "290 kc"),
        ("Sai por R$ 99.", "r$ 99"),
        ("価格は3,500円です。", "3,500円"),
        ("Elle coûte 1\u202f234 €.", "1234 €"),
        ("Sie kostet 1’234 €.", "1’234 €"),
        ("The Chinon 2015 is even better.", "2015"),
        ("Der 2016er ist reif.", "2016"),
        (f"{{wine:{CHINON.id}}} costs €22.", "€22"),
        ("It has 97 points.", "97 points"),
        ("A 96-point wine, 18/20 in France.", "96 points"),
    ],
)
def test_figures_without_evidence_are_named(text: str, named: str) -> None:
    problem = in_intro(text)
    assert problem is not None
    assert named in problem


@pytest.mark.parametrize(
    "text",
    [
        "We stay within 60, bleiben unter Ihrer Grenze von 50 Euro, below €60.",
        "I'm sorry, Château Margaux 2015 isn't in our cellar.",
        "Two at fifty come to €100.",
    ],
)
def test_figures_of_the_user_pass_in_the_whole_conversation(text: str) -> None:
    asked = [
        "do you have Château Margaux 2015, 98 points?",
        "up to sixty",
        "höchstens fünfzig",
    ]
    assert in_intro(text, Evidence(wines_by_id(WINES), asked)) is None


def test_a_description_may_only_have_figures_of_its_wine() -> None:
    for forged in (
        "At €22 a bargain.",
        "The 2019 is ripe.",
        "A bottle of 2019, made in 2018.",
    ):
        assert in_description(forged), forged
    for true in (
        "At €16.50 a bargain.",
        "The 2020 is ripe.",
        f"€22 is {{wine:{RIOJA.id}}}.",
    ):
        assert in_description(true) is None, true


def test_a_strength_must_belong_to_a_named_wine() -> None:
    strong = CHINON.model_copy(update={"abv": 13.5})
    evidence = Evidence(wines_by_id([strong]))
    assert in_description("At 13.5 % vol it is light.", evidence) is None
    assert in_description("At 15.5% alcohol.", evidence)
    assert in_intro("Port has about 20 % vol.", evidence) is None


def test_figures_of_a_document_and_years_derived_from_them_pass() -> None:
    said = "It was sold for 30 euros and keeps 10 to 20 years. The 2018 got 95 points."
    chunk = replace(SUR_LIE, text=said)
    evidence = Evidence(
        {chunk.id: chunk, CHINON.id: CHINON.model_copy(update={"vintage": 2005})}
    )
    for text in (
        "It was sold for 30 euros.",
        "Ready from 2015 on.",
        "The 2018 got 95 points.",
    ):
        assert in_intro(text, evidence) is None, text
    assert in_intro("Ready from 2013 on.", evidence) is not None


def test_the_sum_of_three_prices_passes_and_a_wrong_one_does_not() -> None:
    evidence = Evidence(sources=wines_by_id([CHINON, RIOJA, SANCERRE]))
    three = [WineRecommendation(wine_id=wine.id) for wine in (CHINON, RIOJA, SANCERRE)]
    right = recommend(*three, intro="Together €67.50, or 405 € for six.")
    assert grounding_problem(right, evidence) is None
    assert grounding_problem(recommend(*three, intro="Together €61."), evidence)
    two = recommend(*three[:2], intro="Yours for €58, the pair.")
    assert grounding_problem(two, evidence), (
        "it is twice the price of a wine that is not shown"
    )


def test_a_price_must_have_its_currency() -> None:
    priced = CHINON.model_copy(
        update={"offers": (Offer(price=16.5, currency=Currency.USD),)}
    )
    assert (
        in_intro("Yours for $16.50.", Evidence(sources=wines_by_id([priced]))) is None
    )
    assert in_intro("Yours for $16.50.")


def test_feedback_on_an_unknown_id_lists_the_known_ids() -> None:
    problem = grounding_problem(
        recommend(WineRecommendation(wine_id="opus-one-2018")), EVIDENCE
    )
    assert problem is not None
    assert "opus-one-2018" in problem
    assert CHINON.id in problem
    assert in_intro("Take {wine:nowhere} then.") is not None
    nothing = grounding_problem(recommend(GOOD), Evidence())
    assert nothing is not None
    assert "call search_wines first" in nothing


def test_the_valid_part_is_the_grounded_part() -> None:
    invented = WineRecommendation(wine_id="nowhere", description="Grand.")
    priced = WineRecommendation(wine_id=RIOJA.id, description="Yours for €5.")
    part = keep_valid(recommend(GOOD, invented, priced, intro="Only €9!"), EVIDENCE)
    assert part is not None
    assert part.cuts == ("nowhere: Grand.", "Only €9!", "Yours for €5.")
    assert grounding_problem(part.answer, EVIDENCE) is None
    text = render(part.answer, EVIDENCE)
    assert "Chinon" in text
    assert "Rioja" in text
    assert all(word not in text for word in ("€9", "Grand.", "€5."))


@pytest.mark.parametrize(
    ("language", "country", "price"),
    [
        ("en", "France", "€16.50"),
        ("de", "Frankreich", "16,50\u00a0€"),
        ("pt", "França", "16,50\u00a0€"),
    ],
)
def test_a_card_is_in_the_language_of_the_answer(
    language: str, country: str, price: str
) -> None:
    gone = CHINON.model_copy(update={"offers": (Offer(price=16.5, in_stock=False),)})
    with use_language(language):
        shown = format_facts(CHINON)
        assert shown == f"Chinon, {country} · {price}"
        assert format_facts(gone).startswith(f"{shown} · ")
    own = CHINON.model_copy(update={"id": "own:1", "country": ""})
    assert format_facts(own) == "Chinon · your own cellar"
    assert "· not known whether it is vegan" in render_wine(
        CHINON, "", user_text="a vegan red"
    )


def test_a_card_has_the_prices_of_all_offers_that_are_in_stock() -> None:
    offers = (
        Offer(price=49.9),
        Offer(kind=OfferKind.HALF, price=26.95),
        Offer(kind=OfferKind.MAGNUM, price=110, in_stock=False),
        Offer(kind=OfferKind.GLASS, price=9.5),
    )
    wine = CHINON.model_copy(update={"offers": offers})
    assert (
        format_facts(wine)
        == "Chinon, France · €49.90 · half bottle €26.95 · glass €9.50"
    )
    sample = wine.model_copy(update={"offers": offers[:1], "is_sample": True})
    assert format_facts(sample) == "Chinon, France · ≈ €49.90"
    evidence = Evidence(sources=wines_by_id([wine]))
    assert in_intro("A glass is €9.50, the half bottle €26.95.", evidence) is None
    assert in_intro("A glass is €8.50.", evidence)


def test_a_model_is_told_stock_and_offers_plainly() -> None:
    half = Offer(kind=OfferKind.HALF, size_ml=375, price=26.95, stock=3)
    wine = CHINON.model_copy(
        update={"offers": (Offer(price=49.9, in_stock=False), half)}
    )
    record = wine_record(wine)
    assert record["in_stock"] is True
    assert record["offers"] == [
        "bottle, €49.90, sold out",
        "half, 375 ml, €26.95, in stock: 3",
    ]
    assert "offers" not in wine_record(CHINON)
