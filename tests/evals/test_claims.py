"""What a model affirms without a source: true sentences pass, invented ones are sent back.

The sentences were written before the tables of words (`claims` in `languages/`). Those that are
`held_out` were not looked at when the tables were completed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.documents.shop import SHOP_DOCUMENT
from agent.engine.contract import Evidence, Source
from agent.i18n import use_language
from agent.sommelier.answer import grounding_problem
from agent.sommelier.sommelier_prompts import SommelierResponse, WineRecommendation
from agent.sommelier.vocabulary import Allergen, OfferKind
from agent.sommelier.wine import Offer
from tests.fakes import CHINON
from tests.library import SUR_LIE

FOLDER = Path(__file__).parent
OFFERS = (
    Offer(price=16.5, stock=12),
    Offer(kind=OfferKind.HALF, price=9, stock=5),
    Offer(kind=OfferKind.MAGNUM, price=35, stock=1),
)
WINES = {
    "plain": CHINON,
    "counted": CHINON.model_copy(update={"offers": OFFERS}),
    "gone": CHINON.model_copy(update={"offers": (Offer(price=16.5, in_stock=False),)}),
    "vegan": CHINON.model_copy(update={"notes": "Fresh. Vegan."}),
    "egg": CHINON.model_copy(update={"allergens": (Allergen.EGG, Allergen.SULPHITES)}),
    "scored": CHINON.model_copy(update={"notes": "92 points from Robert Parker."}),
}
SHOP = (
    "We deliver within Ireland in two to three days, for 6.50 euros. Opening hours: Tuesday to "
    "Saturday, 10 to 18."
)


def read(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]


def find_problems(row: dict[str, Any]) -> list[str]:
    """Return what is wrong with a sentence as the description of a wine, and in the intro."""
    wine = WINES[row["wine"]]
    sources: dict[str, Source] = {wine.id: wine}
    if row["has_document"]:
        sources["shop"] = SUR_LIE.__class__(
            **{field: getattr(SUR_LIE, field) for field in SUR_LIE.__slots__}
            | {"id": "shop", "path": SHOP_DOCUMENT, "title": "The shop", "text": SHOP}
        )
    evidence = Evidence(sources, ["?"])
    problems: list[str] = []
    with use_language(row["language"]):
        for description, intro in ((row["sentence"], ""), ("", row["sentence"])):
            item = WineRecommendation(wine_id=wine.id, description=description)
            answer = SommelierResponse(
                response_type="recommendation", intro=intro, wines=[item]
            )
            problems.append(grounding_problem(answer, evidence) or "")
    return problems


def said(language: str, sentence: str) -> dict[str, Any]:
    """Return a row with a sentence on a wine of which nothing special is known."""
    return {
        "language": language,
        "sentence": sentence,
        "wine": "plain",
        "has_document": False,
    }


@pytest.mark.parametrize("held_out", [False, True])
def test_no_true_sentence_is_cut(held_out: bool) -> None:
    rows = [row for row in read("claims_true") if row["held_out"] is held_out]
    assert [row["sentence"] for row in rows if any(find_problems(row))] == []


@pytest.mark.parametrize("held_out", [False, True])
def test_at_least_four_of_five_invented_sentences_are_stopped(held_out: bool) -> None:
    rows = [row for row in read("claims_invented") if row["held_out"] is held_out]
    missed = [row["sentence"] for row in rows if not all(find_problems(row))]
    assert len(missed) <= len(rows) / 5, missed


def test_how_many_of_the_wines_are_in_stock_is_no_count_of_bottles() -> None:
    for sentence in (
        "Alle drie zijn op voorraad.",
        "Van deze drie zijn ze op voorraad.",
    ):
        assert not any(find_problems(said("nl", sentence))), sentence


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "Reckon with half a bottle for each of you."),
        ("de", "Rechnen Sie mit einer halben Flasche pro Person."),
        ("fr", "Comptez une demi-bouteille par personne."),
        ("es", "Calcule media botella por persona."),
        ("it", "Calcoli mezza bottiglia a persona."),
        ("nl", "Reken op een halve fles per persoon."),
        ("pt", "Conte com meia garrafa por pessoa."),
    ],
)
def test_half_a_bottle_for_each_guest_is_no_size(language: str, sentence: str) -> None:
    assert not any(find_problems(said(language, sentence)))
