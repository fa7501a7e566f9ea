"""Exports of shop programs, lists of restaurants and cellars: one small file of each kind."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from agent.sommelier.wine import Wine
from db.wines.lists.importing import CatalogueFile, parse_catalogue
from db.wines.lists.problems import CatalogueFileError
from tests.files import xlsx

LISTS = Path(__file__).parents[1] / "lists"


def read(content: str, encoding: str = "utf-8") -> CatalogueFile:
    file = parse_catalogue(content.encode(encoding))
    assert file.problems == ()
    return file


def read_file(name: str) -> CatalogueFile:
    return read((LISTS / name).read_text("utf-8"))


def lines(wines: Iterable[Wine]) -> str:
    """Each wine on a line: id, producer, name, vintage, style, and its offers."""
    return "\n".join(
        " | ".join(
            [
                wine.id,
                f"{wine.producer}, {wine.name}, {wine.vintage}",
                str(wine.style),
                *(f"{offer} {offer.stock} {offer.in_stock}" for offer in wine.offers),
            ]
        )
        for wine in wines
    )


def left_out(file: CatalogueFile) -> dict[str, str]:
    return {product.name: product.reason for product in file.left_out}


def test_of_a_shopify_export_each_size_is_an_offer_and_only_what_is_for_sale_is_read() -> (
    None
):
    file = read_file("shopify_until_2024.csv")
    assert lines(file.wines) == (
        "barolo | Aldo Conterno, Barolo Bussia, 2019 | red | bottle 49.0 EUR 0 False"
        " | half 26.95 EUR 4 True | magnum 99.0 EUR 0 True\n"
        "kabinett | Keller, Riesling Kabinett, 2021 | white | bottle 18.5 EUR None True\n"
        "cremant-2018 | Domaine Langlois, Crémant de Loire Brut, 2018 | sparkling"
        " | bottle 15.0 EUR 1 True\n"
        "cremant-2019 | Domaine Langlois, Crémant de Loire Brut, 2019 | sparkling"
        " | bottle 16.0 EUR 2 True"
    )
    barolo, kabinett, cremant, _ = file.wines
    assert (barolo.country, barolo.region, barolo.appellation) == (
        "Italy",
        "Piedmont",
        "Barolo",
    )
    assert (barolo.notes, barolo.abv, barolo.grapes) == (
        "Rosen & Teer.",
        14.5,
        ("Nebbiolo",),
    )
    assert (barolo.image, barolo.link) == ("https://cdn.example/1.jpg", "")
    assert kabinett.grapes == ("Riesling",)
    assert cremant.country == "France"
    assert file.derived["barolo"] == (
        "country",
        "region",
        "appellation",
        "grapes",
        "style",
    )
    assert left_out(file) == {
        "Chablis 2011": "archived",
        "Chablis 2024": "a draft",
        "Chablis 2023": "not published",
        "Gutschein 50": "a gift card",
        "Rotweinglas Barolo": "a glass or an accessory",
    }


def test_the_new_column_names_of_shopify_are_read_too() -> None:
    file = read_file("shopify.csv")
    assert lines(file.wines) == (
        "etna | Tenuta delle Terre Nere, Etna Bianco, 2022 | white"
        " | bottle 22.0 EUR 0 False | case 4500 ml 120.0 EUR 2 True"
    )
    assert left_out(file) == {"Olive oil": "an oil, a vinegar or other food"}


def test_of_a_woocommerce_export_the_price_of_today_counts_and_variations_are_offers() -> (
    None
):
    file = read_file("woocommerce.csv")
    assert lines(file.wines) == (
        "a1 | Vacheron, Sancerre, 2022 | white | bottle 24.0 EUR 12 True\n"
        "a2 | Raffault, Chinon, 2021 | red | bottle 15.0 EUR 3 True\n"
        "a3 | Raffault, Bourgueil, 2021 | red | bottle 9.0 EUR 0 False\n"
        "a4 | Huet, Vouvray, 2020 | white | bottle 30.0 EUR 4 True | magnum 65.0 EUR 0 False"
    )
    assert (file.wines[0].notes, file.wines[0].image) == (
        "Flint.",
        "https://shop.example/a.jpg",
    )
    assert left_out(file) == {
        "Old vines": "a draft",
        "An evening in Burgundy": "a tasting or an event",
    }
    german = read_file("woocommerce_german.csv")
    assert lines(german.wines) == (
        "r1 | Prager, Riesling Smaragd Achleiten, 2021 | white | bottle 39.9 EUR 6 True"
    )
    (riesling,) = german.wines
    assert (riesling.country, riesling.region) == ("Austria", "Wachau")
    assert (riesling.notes, riesling.grapes) == ("Steinobst & Rauch.", ("Riesling",))


def test_a_workbook_of_a_restaurant_has_sheets_headings_and_prices_by_the_glass() -> (
    None
):
    white: list[Sequence[object]] = [
        ("Restaurant Zum Löwen",),
        ("Weinkarte Winter", None, None, None),
        (),
        ("Wein", "Jahrgang", "Glas 0,1l", "Flasche 0,75l"),
        ("Burgund",),
        ("Chablis, Domaine Vocoret", 2022, 9.5, 54),
        ("Mosel",),
        ("Riesling trocken, Weingut Keller", 2021, "–", "39,00 €"),
        ("Alle Preise in Euro inkl. MwSt.",),
    ]
    red: list[Sequence[object]] = [
        ("Rotweine", "Jahrgang", "0,1 l", "0,75 l"),
        ("Chianti Classico - Fèlsina", 2020, 8, 45),
        ("Rosé", "Jahrgang", "0,1 l", "0,75 l"),
        ("Domaine Tempier Bandol 2022", None, 11, 62),
    ]
    file = parse_catalogue(xlsx({"Weißwein": white, "Rot": red, "Archiv 2023": white}))
    assert file.problems == ()
    assert lines(file.wines) == (
        "domaine-vocoret-chablis-2022 | Domaine Vocoret, Chablis, 2022 | white"
        " | bottle 54.0 EUR None True | glass 100 ml 9.5 EUR None True\n"
        "weingut-keller-riesling-trocken-2021 | Weingut Keller, Riesling trocken, 2021 | white"
        " | bottle 39.0 EUR None True\n"
        "felsina-chianti-classico-2020 | Fèlsina, Chianti Classico, 2020 | red"
        " | bottle 45.0 EUR None True | glass 100 ml 8.0 EUR None True\n"
        "domaine-tempier-bandol-2022 | Domaine Tempier, Bandol, 2022 | rose"
        " | bottle 62.0 EUR None True | glass 100 ml 11.0 EUR None True"
    )
    assert [wine.region for wine in file.wines] == [
        "Burgundy",
        "Mosel",
        "Tuscany",
        "Provence",
    ]


def test_a_sheet_of_open_wines_without_a_title_above_the_names_is_read_too() -> None:
    opened: list[Sequence[object]] = [
        ("Gasthof Post",),
        ("Weiß",),
        (None, None, "0,1 l", "0,75"),
        ("Hausmarke", "Weingut Moric, 2022", "6,90", "46,00"),
    ]
    bottled: list[Sequence[object]] = [
        ("Wein", "Weingut", "Jg.", "Glas 0,1", "Flasche"),
        ("Barolo", "Conterno", 2018, "", "auf Anfrage"),
        ("Sancerre", "Cotat", 2019, 9, 70),
    ]
    suppliers: list[Sequence[object]] = [("Lieferant", "Telefon"), ("Moric", "123")]
    book: dict[str, Iterable[Sequence[object]]] = {
        "Offene Weine": opened,
        "Flaschen": bottled,
        "Lieferanten": suppliers,
    }
    file = parse_catalogue(xlsx(book))
    assert file.problems == ()
    assert lines(file.wines) == (
        "weingut-moric-hausmarke-2022 | Weingut Moric, Hausmarke, 2022 | white"
        " | bottle 46.0 EUR None True | glass 100 ml 6.9 EUR None True\n"
        "conterno-barolo-2018 | Conterno, Barolo, 2018 | red | bottle None True\n"
        "cotat-sancerre-2019 | Cotat, Sancerre, 2019 | white | bottle 70.0 EUR None True"
        " | glass 100 ml 9.0 EUR None True"
    )
    assert left_out(file) == {"Lieferanten": "a sheet without a list of wines"}


@pytest.mark.parametrize("end", ['y,"Chab', "y,Chablis,Defau"])
def test_a_file_that_ends_within_a_row_is_refused(end: str) -> None:
    rows = "Handle,Title,Option1 Value,Variant Price\nx,Barolo,Default Title,9\n"
    assert len(read(rows.rstrip()).wines) == 1
    with pytest.raises(CatalogueFileError, match="was probably cut off"):
        parse_catalogue(f"{rows}{end}".encode())


def test_a_producer_within_the_name_of_a_wine_stays_there() -> None:
    file = read(
        "producer,name\nDiel,Rosé de Diel trocken\nKeller,Riesling Keller trocken\n"
    )
    assert [wine.name for wine in file.wines] == [
        "Rosé de Diel trocken",
        "Riesling trocken",
    ]


def test_the_sizes_of_a_flat_list_and_of_cellar_programs_are_offers_of_one_wine() -> (
    None
):
    flat = read(
        "Wine;Producer;Size;Price\nBarolo 2019;Ceretto;75 cl;45\nBarolo 2019;Ceretto;Magnum;95\n"
    )
    assert lines(flat.wines) == (
        "ceretto-barolo-2019 | Ceretto, Barolo, 2019 | red | bottle 45.0 EUR None True"
        " | magnum 95.0 EUR None True"
    )
    cellar = read(
        "iWine\tType\tSize\tCurrency\tPrice\tVintage\tWine\tCountry\tProducer\tMasterVarietal\n"
        "7\tRed\t1.5L\tUSD\t80\t2010\tMarqués Rioja Reserva\tSpain\tMarqués\tTempranillo\n",
        "cp1252",
    )
    assert lines(cellar.wines) == (
        "7 | Marqués, Rioja Reserva, 2010 | red | magnum 80.0 USD None True"
    )
    vivino = read(
        "Winery,Wine name,Vintage,Region,Country,Regional wine style,Average rating,Wine type\n"
        "Giacosa,Barbera d'Alba,2019,Barbera d'Alba,Italy,Northern Italy Barbera,4.1,Red Wine\n"
    )
    (barbera,) = vivino.wines
    assert (barbera.style, barbera.grapes, barbera.vintage) == (
        "red",
        ("Barbera",),
        2019,
    )


RUSSIAN = (
    "producer;wine;Год;colour;price\nАбрау-Дюрсо;Каберне Совиньон;2019;red;890\n"
    "Фанагория;Шардоне Авторское;2021;white;950\n"
)


@pytest.mark.parametrize(
    ("content", "encoding", "expected"),
    [
        (RUSSIAN, "cp1251", "Абрау-Дюрсо Каберне Совиньон"),
        (
            "wine;colour\nOgier Côte-Rôtie;red\nWeiße Rebe;white\n",
            "cp1252",
            "Ogier Côte-Rôtie",
        ),
        (
            "wine;colour\nΑσύρτικο Σαντορίνη;white\nΓαία;red\n",
            "cp1253",
            "Ασύρτικο Σαντορίνη",
        ),
        (
            "wine;colour\nŒil de Perdrix, Neuchâtel;rose\n",
            "utf-16",
            "Œil de Perdrix, Neuchâtel",
        ),
    ],
)
def test_lists_in_the_encodings_of_other_alphabets_are_read(
    content: str, encoding: str, expected: str
) -> None:
    file = read(content, encoding)
    assert (file.read_as, file.wines[0].label) == (encoding, f"{expected} NV")


def test_a_file_without_a_table_is_refused_with_what_to_do() -> None:
    with pytest.raises(CatalogueFileError, match=r"is a PDF.*Export the list as CSV"):
        parse_catalogue(b"%PDF-1.7 ...")
    with pytest.raises(CatalogueFileError, match=r"save it as \.xlsx"):
        parse_catalogue(b"\xd0\xcf\x11\xe0 ...")


def test_a_product_of_shopify_keeps_its_id_when_its_price_comes() -> None:
    titles = (
        "Handle,Title,Body (HTML),Vendor,Option1 Name,Option1 Value,Variant Price\n"
    )
    row = "soave,Soave Classico,,Pieropan,Title,Default Title,"
    (unpriced,) = read(f"{titles}{row}\n").wines
    (priced,) = read(f"{titles}{row}14.50\n").wines
    assert (unpriced.id, unpriced.price) == ("soave", None)
    assert (priced.id, priced.price) == ("soave", 14.5)
    counted = titles.replace("\n", ",Variant Inventory Qty\n") + f"{row}14.50,12.0\n"
    assert read(counted).wines[0].offers[0].stock == 12


def test_a_year_of_another_kind_is_no_vintage() -> None:
    titles = ("Alvear Pedro Ximénez Solera 1927", "Keller seit 1905 Riesling 2020")
    file = read("name\n" + "\n".join(titles))
    assert [(wine.vintage, "1927" in wine.label) for wine in file.wines] == [
        (None, True),
        (2020, False),
    ]
