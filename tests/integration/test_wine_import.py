"""Importing wines from files."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from agent.sommelier.offers import Offer
from agent.sommelier.queries import WineQuery
from agent.sommelier.vocabulary import Currency, OfferKind, Style
from agent.sommelier.wine import Wine
from db.engine import Sessions, create_engine
from db.wines.catalogue import SqlCatalogue
from db.wines.catalogue_import import (
    STARTER,
    ImportReport,
    count_samples,
    import_catalogue,
    import_wines,
    load_starter,
)
from db.wines.lists.importing import CatalogueFile, parse_catalogue, read_catalogue
from db.wines.lists.problems import CatalogueFileError
from tests.databases import CELLAR, Databases
from tests.files import xlsx

SMALL = "producer,name,country,style\n"


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "wines.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


async def test_a_file_is_imported_once_and_then_unchanged(
    sessions: Sessions, cellar: dict[str, Wine]
) -> None:
    assert await import_catalogue(sessions, CELLAR) == ImportReport(added=22)
    assert await import_catalogue(sessions, CELLAR) == ImportReport(unchanged=22)
    assert await SqlCatalogue(sessions).get(list(cellar)) == list(cellar.values())


async def test_all_offers_of_a_wine_are_kept_and_sold_out_when_it_is_gone(
    sessions: Sessions, cellar: dict[str, Wine]
) -> None:
    glass = Offer(kind=OfferKind.GLASS, size_ml=100, price=9.5, currency=Currency.CHF)
    half = Offer(kind=OfferKind.HALF, price=26.95, stock=3)
    bottle = Offer(price=49.9, in_stock=False, stock=0)
    offers = (glass, half, bottle)
    wine = Wine(
        id="a", producer="A", name="B", country="", style=Style.RED, offers=offers
    )
    assert wine.offers == (bottle, half, glass)
    assert (wine.price, wine.in_stock, wine.prices) == (49.9, True, (49.9, 26.95, 9.5))
    await import_wines(sessions, CatalogueFile((wine, *cellar.values()), source="list"))
    catalogue = SqlCatalogue(sessions)
    assert await catalogue.get(["a"]) == [wine]
    await import_wines(sessions, CatalogueFile((*cellar.values(),), source="list"))
    (gone,) = await catalogue.get(["a"])
    assert not any(offer.in_stock for offer in gone.offers)


async def test_the_page_and_the_picture_of_a_wine_are_kept(
    sessions: Sessions, tmp_path: Path
) -> None:
    page, picture = "https://shop.example/b?id=1", "https://cdn.example/b.jpg"
    content = f"id,name,Product URL,Bild\na,Soave,{page},{picture}\nb,Lugana,,\n"
    await import_catalogue(sessions, write(tmp_path, content))
    soave, lugana = await SqlCatalogue(sessions).get(["a", "b"])
    assert (soave.link, soave.image, lugana.link, lugana.image) == (
        page,
        picture,
        "",
        "",
    )


async def test_a_database_that_fails_half_way_keeps_the_whole_file_out(
    sessions: Sessions, tmp_path: Path
) -> None:
    rows = "".join(f"Maker,Wine {number},Italy,red\n" for number in range(500))
    inserts = 0

    def fail_at_the_third_chunk(*details: object) -> None:
        nonlocal inserts
        inserts += str(details[2]).startswith("INSERT INTO wines ")
        if inserts == 3:
            raise OSError("disk full")

    event.listen(Engine, "before_cursor_execute", fail_at_the_third_chunk)
    with pytest.raises(OSError, match="disk full"):
        await import_catalogue(sessions, write(tmp_path, SMALL + rows))
    event.remove(Engine, "before_cursor_execute", fail_at_the_third_chunk)
    assert await SqlCatalogue(sessions).count() == 0


async def test_replicas_that_load_the_starter_at_once_load_it_once(
    databases: Databases, migrated_url: str
) -> None:
    url = databases.create(template=migrated_url)
    replicas = [create_engine(url) for _ in range(3)]
    reports = await asyncio.gather(*(load_starter(Sessions(one)) for one in replicas))
    wines = len(read_catalogue(STARTER).wines)
    assert ImportReport(added=wines) in reports
    assert await load_starter(Sessions(replicas[0])) is None
    assert await SqlCatalogue(Sessions(replicas[0])).count() == wines
    for one in replicas:
        await one.dispose()


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("price", "cheap", "'cheap' should be a valid number"),
        ("price", "-3", "'-3' should be greater than or equal to 0.01"),
        ("vintage", "20x0", "'20x0' is not a year from 1780 to"),
        ("foods", "lamb;shoes", "'shoes' should be 'lamb', 'beef',"),
        (
            "link",
            "http://a.example/b",
            "'http://a.example/b' is not an address like https://",
        ),
        (
            "image",
            "https://localhost/b",
            "'https://localhost/b' is not an address like https://",
        ),
        ("id", "Кагор", "needs an id of the letters a-z, digits, '-', '.' and '_'"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(
    column: str, value: str, reason: str
) -> None:
    content = (
        f"producer,name,country,style,{column}\nA,B,Italy,red,\nC,D,Italy,red,{value}\n"
    )
    (problem,) = parse_catalogue(content.encode()).problems
    assert (problem.line, problem.column) == (3, column)
    assert problem.reason.startswith(reason)


GERMAN = """Preisliste Weinhandlung;;;;;;;;;
Stand: 01.10.2026;;;;;;;;;
Art.-Nr.;Weingut;Bezeichnung;Jahr;Land;Rebsorten;Farbe;Geschmack;Alkohol;Preis inkl. MwSt.;Bestand
1001;Müller;Riesling Bürgergarten;2021;Deutschland;Riesling;weiß;halbtrocken;12,5 % vol;24,50 €;12
1002;Ama;Chianti;2019;Italien;95% Sangiovese, 5% Merlot;Rotwein;trocken;13,5;"1.234,50 €";0
1003;Veuve;Brut;o. J.;Frankreich;Chardonnay;Schaumwein;brut;12;49.-;ausverkauft
"""
FRENCH = (
    "Domaine\tCuvée\tMillésime\tPays\tCouleur\tCépages\tPrix TTC (CHF)\tDisponibilité\n"
    "Château Test\tLes Vieilles Vignes\t2018\tFrance\tVin rouge\tMerlot / Cabernet\t19,90\tépuisé\n"
)
CELLARTRACKER = (
    "iWine,Type,Color,Category,Size,Currency,Value,Price,Quantity,Vintage,Wine,Country,Producer\n"
    "7,White - Sparkling,White,Dry,750ml,USD,80,75,2,1001,Krug Grande Cuvée,France,Krug\n"
    "8,Red - Fortified,Red,Sweet,750ml,USD,80,55.5,1,1994,Graham Porto,Portugal,Graham\n"
)


@pytest.mark.parametrize(
    ("content", "encoding", "expected"),
    [
        (
            GERMAN,
            "cp1252",
            """1001 | Riesling Bürgergarten | 2021 | Germany | white | off_dry | 24.5 | EUR
1002 | Chianti | 2019 | Italy | red | dry | 1234.5 | EUR
1003 | Brut | None | France | sparkling | dry | 49.0 | EUR""",
        ),
        (
            FRENCH,
            "utf-16",
            "chateau-test-les-vieilles-vignes-2018 | Les Vieilles Vignes | 2018 | France | red | "
            "None | 19.9 | CHF",
        ),
        (
            CELLARTRACKER,
            "utf-8",
            """7 | Grande Cuvée | None | France | sparkling | None | 75.0 | USD
8 | Porto | 1994 | Portugal | fortified | None | 55.5 | USD""",
        ),
    ],
)
def test_lists_are_read_as_shops_and_programs_write_them(
    tmp_path: Path, content: str, encoding: str, expected: str
) -> None:
    file = read_catalogue(write(tmp_path, content.encode(encoding)))
    assert (file.problems, file.read_as) == ((), encoding)
    fields = (
        "id",
        "name",
        "vintage",
        "country",
        "style",
        "sweetness",
        "price",
        "currency",
    )
    read = [
        " | ".join(str(getattr(wine, name)) for name in fields) for wine in file.wines
    ]
    assert "\n".join(read) == expected


def test_stocks_shares_and_strengths_are_read_as_people_write_them() -> None:
    riesling, chianti, brut = parse_catalogue(GERMAN.encode()).wines
    assert [wine.in_stock for wine in (riesling, chianti, brut)] == [True, False, False]
    assert (chianti.grapes, riesling.abv) == (("Sangiovese", "Merlot"), 12.5)


def test_each_sheet_says_itself_whether_it_tells_allergens(tmp_path: Path) -> None:
    """A column of one sheet made the wines of all others free of sulphites."""
    titles = ("Name", "Winery", "Price")
    sheets: dict[str, Iterable[Sequence[object]]] = {
        "Reds": [
            (*titles, "Allergens"),
            ("Barolo", "A", 40, ""),
            ("Soave", "A", 12, "egg"),
        ],
        "Whites": [titles, ("Lugana", "A", 15)],
    }
    barolo, soave, lugana = read_catalogue(write(tmp_path, xlsx(sheets))).wines
    assert (barolo.allergens, soave.allergens, lugana.allergens) == (
        (),
        ("egg",),
        ("sulphites",),
    )


def test_a_count_of_bottles_may_be_written_with_decimals() -> None:
    content = b"name,stock\nA,12.0\nB,0.0\nC,-3\nD,2.5\n"
    file = parse_catalogue(content)
    assert [(wine.offers[0].stock, wine.in_stock) for wine in file.wines] == [
        (12, True),
        (0, False),
        (None, False),
    ]
    assert [problem.line for problem in file.problems] == [5]


def test_a_workbook_is_read_by_the_sheet_that_lists_wines(tmp_path: Path) -> None:
    rows = [line.split(";") for line in GERMAN.replace('"', "").splitlines()]
    first: list[object] = [*rows[3][:8], 12.5, 1024.5, 12]
    sheets: dict[str, Iterable[Sequence[object]]] = {
        "Kontakt": [("Weinhandlung",)],
        "Weine": [*rows[:3], first, *rows[4:]],
    }
    file = read_catalogue(write(tmp_path, xlsx(sheets)))
    assert (file.problems, file.read_as) == ((), "a workbook")
    riesling, *others = parse_catalogue(GERMAN.encode()).wines
    riesling = riesling.model_copy(update={"offers": (Offer(price=1024.5, stock=12),)})
    assert file.wines == (riesling, *others)
    with pytest.raises(CatalogueFileError, match="is damaged, or no workbook"):
        read_catalogue(write(tmp_path, xlsx(sheets)[:-300]))


@given(st.binary(max_size=2_000))
def test_any_file_content_is_read_or_refused(content: bytes) -> None:
    with TemporaryDirectory() as folder, suppress(CatalogueFileError):
        read_catalogue(write(Path(folder), content))


async def test_wines_missing_from_a_new_file_are_out_of_stock_until_they_return(
    sessions: Sessions, tmp_path: Path
) -> None:
    october, november, other = (
        tmp_path / f"{name}.csv" for name in ("L 2026-10", "L 2026-11", "M")
    )
    october.write_text(SMALL + "A,B,Italy,red\nC,D,Italy,red\n")
    november.write_text(SMALL + "A,B,Italy,red\n")
    other.write_text(SMALL + "E,F,Italy,red\n")
    assert await import_catalogue(sessions, october) == ImportReport(added=2)
    assert await import_catalogue(sessions, other) == ImportReport(added=1)
    plan = await import_wines(sessions, read_catalogue(november), dry_run=True)
    gone = await import_catalogue(sessions, november)
    assert plan == gone == ImportReport(unchanged=1, gone=1)
    wines = await SqlCatalogue(sessions).get(["a-b-nv", "c-d-nv", "e-f-nv"])
    assert [wine.in_stock for wine in wines] == [True, False, True]
    assert await import_catalogue(sessions, october) == ImportReport(
        updated=1, unchanged=1
    )


async def test_starter_wines_can_be_taken_out_of_stock(
    sessions: Sessions, tmp_path: Path
) -> None:
    await load_starter(sessions)
    samples = await count_samples(sessions)
    file = read_catalogue(write(tmp_path, SMALL + "A,B,Italy,red\n"))
    report = await import_wines(sessions, file, without_samples=True)
    assert report == ImportReport(added=1, gone=samples)
    assert [w.id for w in (await SqlCatalogue(sessions).search(WineQuery())).wines] == [
        "a-b-nv"
    ]
