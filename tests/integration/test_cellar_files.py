"""Lists of bottles as cellar programs export them, and as people write them."""

import pytest

from db.wines.lists.cellar import CellarFile, read_cellar
from db.wines.lists.problems import CatalogueFileError
from tests.cellars import collect, export_inventory, export_list
from tests.files import xlsx

WINES = collect(60)
VIVINO = (
    "Winery,Wine name,Vintage,Region,Country,Regional wine style,Average rating,Wine type,"
    "Drinking Window,Link to wine,User cellar count,Bottle size,Personal Note\n"
    "Vietti,Barolo Castiglione,2016,Barolo,Italy,Italian Barolo,4.2,Red Wine,"
    "2022 - 2035,https://www.vivino.com/x,6,750 ml,good with truffles\n"
    "Château d'Yquem,Sauternes,2005,Sauternes,France,Bordeaux Sauternes,4.7,Dessert Wine,"
    ",https://www.vivino.com/y,2,375 ml,\n"
)
WORKBOOK: dict[str, list[list[object]]] = {
    "Keller": [
        [
            "Weingut",
            "Wein",
            "Jahrgang",
            "Flaschen",
            "Preis",
            "Fach",
            "Trinken ab",
            "Trinken bis",
        ],
        ["Vietti", "Barolo", 2016, 6, 45, "G33", 2024, 2035],
        ["Keller", "Riesling trocken", 2020, 2, 25.5, "A1", None, None],
    ],
    "Magnums": [
        ["Weingut", "Wein", "Jahrgang", "Flaschen", "Flaschengröße"],
        ["Vietti", "Barolo", 2016, 1, "1,5 l"],
    ],
    "Kontakte": [["Name", "Telefon"], ["Anna Maier", "123"], ["Bruno Schulz", "456"]],
}
PLAIN = """My cellar

- 6 Barolo 2016 45 EUR
* Château d'Yquem 2005
3 x Chablis 2020
2x Rioja Reserva 2015
"""
NO_CELLARS = {
    "a letter": "Dear Anna,\nwe met in 2019 in Rome.\nIn 2020 we moved to Berlin.\nBest wishes\n",
    "tasks": "1 buy milk\n2 call mum\n3 pay the rent\n4 water plants\n",
    "a log": "2026-11-01 10:00:01 INFO start\n2026-11-01 10:00:02 INFO stop\n",
    "a recipe": "200 g spaghetti\n2 eggs\n100 ml white wine\n50 g pecorino\n1 egg\n",
    "dates": "10 Uhr Zahnarzt\n12 Uhr Mittag mit Peter\n15 Uhr Meeting 2026\n",
    "history": "1914 Beginn des Ersten Weltkriegs\n1918 Ende\n1945 Kriegsende\n",
    "contacts": "Name,Phone,Email\nAnna Smith,123,a@b.de\nBob Jones,456,b@c.de\n",
    "money": "Date;Description;Amount\n2026-01-02;Rent;-800\n2026-01-03;Salary;3000\n",
    "tools": "Name,Price,Stock\nHammer,12,3\nNails,3,100\n",
    "films": "Title,Year,Rating\nAlien,1979,9\nHeat,1995,8\n",
}


def rows(file: CellarFile) -> list[tuple[int, str, int | None]]:
    return [(item.count, item.key, item.size_ml) for item in file.items]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_the_exports_of_a_cellar_program_tell_all_of_each_wine(
    delimiter: str, encoding: str
) -> None:
    by_wine = read_cellar(export_list(WINES, delimiter, encoding))
    by_bottle = read_cellar(export_inventory(WINES, delimiter, encoding))
    assert rows(by_wine) == rows(by_bottle)
    listed = zip(WINES, by_wine.items, by_bottle.items, strict=True)
    for wine, item, summed in listed:
        assert (item.count, item.wine["vintage"]) == (wine.count, wine.vintage)
        assert wine.producer in (item.wine["producer"], item.wine["name"])
        assert (item.drink_from, item.drink_until) == (wine.first_year, wine.last_year)
        assert item.wine["price"] == wine.price
        assert summed.place == ", ".join(wine.place)
        assert summed.bought.startswith("5/")
    assert (by_wine.unread_count, by_bottle.unread_count) == (0, 0)


def test_an_export_of_vivino_tells_counts_windows_and_notes() -> None:
    barolo, yquem = read_cellar(VIVINO.encode()).items
    assert (barolo.count, barolo.drink_from, barolo.drink_until) == (6, 2022, 2035)
    assert (barolo.note, barolo.wine["style"]) == ("good with truffles", "red")
    assert (yquem.count, yquem.size_ml, yquem.drink_from) == (2, 375, None)


def test_a_workbook_is_read_sheet_by_sheet_but_not_those_of_other_things() -> None:
    file = read_cellar(xlsx({**WORKBOOK}))
    assert rows(file) == [
        (6, "vietti barolo 2016", None),
        (2, "keller riesling trocken 2020", None),
        (1, "vietti barolo 2016 1500 ml", 1500),
    ]
    barolo = file.items[0]
    assert (barolo.place, barolo.wine["price"], barolo.drink_until) == ("G33", 45, 2035)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_a_table_with_tabs_and_a_plain_list_are_read(encoding: str) -> None:
    tabs = "Wine\tYear\tQty\nSassicaia\t2016\t6\nChâteau Latour\t2000\t3\n"
    assert rows(read_cellar(tabs.encode(encoding))) == [
        (6, "sassicaia 2016", None),
        (3, "chateau latour 2000", None),
    ]
    file = read_cellar(PLAIN.encode(encoding))
    assert rows(file) == [
        (6, "barolo 2016", None),
        (1, "chateau d yquem 2005", None),
        (3, "chablis 2020", None),
        (2, "rioja reserva 2015", None),
    ]
    assert (file.unread_count, file.items[0].wine["price"]) == (1, 45)


def test_what_a_file_says_twice_is_not_there_twice() -> None:
    bottle, *_ = export_inventory(WINES[:1]).splitlines()[1:2]
    titles = export_inventory([]).rstrip()
    twice = b"\n".join([titles, bottle, bottle])
    assert [item.count for item in read_cellar(twice).items] == [1]


@pytest.mark.parametrize("name", NO_CELLARS)
def test_other_texts_and_tables_are_no_cellars(name: str) -> None:
    with pytest.raises(CatalogueFileError):
        read_cellar(NO_CELLARS[name].encode())
