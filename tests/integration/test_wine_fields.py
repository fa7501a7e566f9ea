"""What is declared of the fields of a wine holds wherever the product uses them."""

import csv
import io
from pathlib import Path

from agent.cellar.export import to_csv
from agent.cellar.items import to_cellar_item
from agent.engine.contract import Evidence
from agent.sommelier.answer import grounding_problem
from agent.sommelier.offers import OFFER_FACTS
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.vocabulary import (
    Allergen,
    Body,
    Colour,
    Currency,
    Food,
    Level,
    Style,
    Sweetness,
)
from agent.sommelier.wine import Wine, wine_fields, wine_record
from agent.sommelier.wine_tools import wines_by_id
from db.engine import Sessions
from db.wines.catalogue import SqlCatalogue
from db.wines.catalogue_import import import_wines
from db.wines.lists.cellar import read_cellar
from db.wines.lists.importing import parse_catalogue

DOCS = Path(__file__).parents[2] / "docs" / "wines-and-documents.md"
GROUNDING = (
    "producer name vintage country region appellation grapes style colour sweetness body acidity "
    "tannin abv offers price currency foods allergens notes"
)
FULL = Wine(
    id="maker-cuvee",
    producer="Maker",
    name="Cuvée",
    vintage=2004,
    country="Italy",
    region="Veneto",
    appellation="Soave",
    grapes=("Garganega",),
    style=Style.SWEET,
    colour=Colour.ORANGE,
    sweetness=Sweetness.LUSCIOUS,
    body=Body.FULL,
    acidity=Level.HIGH,
    tannin=Level.LOW,
    abv=12.5,
    price=31,
    currency=Currency.CHF,
    foods=(Food.SUSHI,),
    allergens=(Allergen.EGG,),
    notes="Quince.",
    link="https://shop.example/soave/2011",
    image="https://shop.example/soave-2012.jpg",
    in_stock=False,
)
"""A wine with a different value in every field."""


async def test_a_list_tells_every_field_and_the_database_keeps_it(
    sessions: Sessions,
) -> None:
    columns = [name for name, field in wine_fields().items() if field.has_column]
    cells = [FULL.field_text(name).replace("False", "no") for name in columns]
    table = io.StringIO()
    csv.writer(table).writerows([columns, cells])
    await import_wines(sessions, parse_catalogue(table.getvalue().encode()))
    assert await SqlCatalogue(sessions).get([FULL.id]) == [FULL]


def test_an_exported_cellar_keeps_the_fields_that_a_cellar_has() -> None:
    item = to_cellar_item(FULL, 6)
    (again,) = read_cellar(to_csv([item])).items
    assert again.wine == {
        name: value for name, value in item.wine.items() if name != "notes"
    }


class ShelvedWine(Wine):
    """A wine with a field that nobody declared."""

    shelf: str = "the last one"


def test_every_field_of_a_wine_is_declared_and_in_the_docs() -> None:
    assert {*wine_fields()} == {*Wine.model_fields, *OFFER_FACTS}
    undocumented = [
        name for name in wine_fields() if f"`{name}`" not in DOCS.read_text("utf-8")
    ]
    assert undocumented == []


def test_these_fields_of_a_wine_ground_an_answer() -> None:
    (text,) = Evidence(wines_by_id([FULL])).texts
    lines = text.splitlines()
    assert [
        name for name in wine_fields() if FULL.field_text(name) in lines
    ] == GROUNDING.split()


def test_a_link_with_a_year_in_it_grounded_the_year() -> None:
    answer = SommelierResponse(response_type="informational", intro="It is a 2011.")
    assert "2011" in (grounding_problem(answer, Evidence(wines_by_id([FULL]))) or "")


def test_no_model_is_told_the_addresses_of_a_wine() -> None:
    assert "https" not in str(wine_record(FULL))
    assert "https" not in str(to_cellar_item(FULL, 1).wine)


def test_a_field_that_is_not_declared_is_not_told_searched_or_kept() -> None:
    wine = ShelvedWine(**FULL.model_dump())
    assert wine_record(wine) == wine_record(FULL)
    assert to_cellar_item(wine, 1) == to_cellar_item(FULL, 1)


def test_the_stock_of_a_shop_is_not_kept_with_the_bottles_of_a_user() -> None:
    assert "in_stock" not in to_cellar_item(FULL, 1).wine
