"""What people say of their own bottles, when to drink these, and which suit."""

from dataclasses import replace

import pytest

from agent.memory.cellar import chosen, read_cellar, state_of, window_of, wine_of
from agent.memory.correcting import read_correction
from agent.memory.reading import read_message
from agent.turn import Bottles, Change, Fact, Person, changed
from db.wines.importing import read_bottles, write_bottles

NOBODY = Person(user_id=1)
INVENTORY = (
    "my cellar: 3 chablis 2021, 2 rioja reserva 2015, 1 vintage port 1994, 6 barolo 2016 at 45"
)


def after(person: Person, said: str) -> Person:
    return changed(person, Change(user_id=1, bottles=read_cellar(said, person).changed))


def owner(said: str = INVENTORY) -> Person:
    person = after(NOBODY, said)
    return replace(person, bottles=tuple(replace(b, id=n) for n, b in enumerate(person.bottles, 1)))


def listed(bottles: tuple[Bottles, ...]) -> str:
    return ", ".join(
        f"{each.count} {wine_of(each).label}"
        + (f" at {wine_of(each).price:g}" if wine_of(each).price else "")
        for each in bottles
    )


ADDED = {
    "I bought six Barolo 2016 at 45": "6 Barolo 2016 at 45",
    "bought a Barolo 2016": "1 Barolo 2016",
    "ma cave : 4 chinon 2018, 2 condrieu 2022, 1 banyuls": (
        "4 Chinon 2018, 2 Condrieu 2022, 1 Banyuls"
    ),
    "mijn kelder: 4 riesling 2019, 2 rioja gran reserva 2011": (
        "4 Riesling 2019, 2 Rioja gran reserva 2011"
    ),
    "hab 12 sekt geholt, 9,90 die flasche": "12 Sekt at 9.9",
    "9 grauburgunder zu 8,20 und 3 st laurent zu 14 gekauft": (
        "9 Grauburgunder at 8.2, 3 St laurent at 14"
    ),
    "apunta en mi bodega cuatro magnums de mencía del 2020, me costaron 32 cada uno": (
        "4 Mencía 2020 at 32"
    ),
    "Hab ne Flasche Brunello 2015 geschenkt bekommen": "1 Brunello 2015",
    "mio suocero mi ha lasciato 2 taurasi 2008 e 1 barolo 1996": "2 Taurasi 2008, 1 Barolo 1996",
    "We have 8 guests, 2 reds and 2 whites please": "",
    "I have 3 guests for dinner and want a Barolo": "",
    "do you have 2 Barolo 2016?": "",
    "I bought 2 Barolo 2016 for nan": "2 Barolo 2016",
    "something red for lamb under 25": "",
}
TAKEN = {
    "drank one, wonderful": "-1 Barolo 2016 at 45",
    "took one of the riojas in the end": "-1 Rioja reserva 2015",
    "j'ai ouvert le chablis finalement, il était top": "-1 Chablis 2021",
    "zwei chablis sind weg": "-2 Chablis 2021",
    "nam de port, leeg nu": "-1 Vintage port 1994",
    "had two of the chablis on sunday": "-2 Chablis 2021",
    "oh and I gave two riojas to my dad": "-2 Rioja reserva 2015",
    "I drank a lovely Barbera yesterday": "",
    "a red for lamb": "",
}
CHOSEN = {
    "what can i drink tonight from what i own, its salmon": "Chablis 2021",
    "heute abend gibts gans, was aus meinem bestand": "Rioja reserva 2015",
    "what should I open this year?": "Chablis 2021",
    "que puis-je boire de ma cave avec le roquefort ?": "Vintage port 1994",
}


@pytest.mark.parametrize(("said", "bottles"), ADDED.items())
def test_what_somebody_bought_or_owns(said: str, bottles: str) -> None:
    assert listed(read_cellar(said, NOBODY).changed) == bottles


@pytest.mark.parametrize(("said", "bottles"), TAKEN.items())
def test_what_somebody_drank(said: str, bottles: str) -> None:
    assert listed(read_cellar(said, owner()).changed) == bottles


@pytest.mark.parametrize(("said", "label"), CHOSEN.items())
def test_what_of_their_own_somebody_may_drink(said: str, label: str) -> None:
    person = owner()
    talk = read_cellar(said, person)
    assert talk.chooses
    found = [wine_of(each).label for each in chosen(talk, person, 2026)]
    assert found[0] == label or label in found[:2]


def test_what_is_praised_is_liked_and_noted() -> None:
    talk = read_cellar("drank a Barolo, wonderful", owner())
    assert [(each.kind, each.value) for each in talk.liked] == [("like", "regions=Barolo")]
    assert talk.changed[0].note == "drank a Barolo, wonderful"


def test_what_is_hated_or_not_tolerated_is_not_chosen() -> None:
    person = owner()
    hates = replace(person, facts=(Fact("hate", "regions=Chablis", "Chablis"),))
    talk = read_cellar("what of my own bottles with salmon?", hates)
    assert "Chablis 2021" not in [wine_of(each).label for each in chosen(talk, hates, 2026)]


def test_a_window_follows_from_region_style_and_vintage_or_is_told() -> None:
    barolo = next(each for each in owner().bottles if "barolo" in each.key)
    assert window_of(barolo) == (2024, 2041)
    assert [state_of(barolo, year) for year in (2020, 2030, 2050)] == ["young", "ready", "late"]
    assert window_of(replace(barolo, drink_from=2028, drink_until=2035)) == (2028, 2035)
    none = next(iter(read_cellar("I bought 3 sekt at 9", NOBODY).changed))
    assert window_of(none) is None


CELLARTRACKER = b""""iWine","Price","Currency","Color","Vintage","Wine","Producer","Varietal",\
"Country","Region","Appellation","Quantity","BeginConsume","EndConsume"
"1","45.00","EUR","Red","2016","Vietti Barolo","Vietti","Nebbiolo","Italy","Piedmont","Barolo",\
"6","2024","2040"
"2","18.00","EUR","White","2021","Chablis","Fevre","Chardonnay","France","Burgundy","Chablis",\
"3","9999","9999"
"""


def test_a_cellar_of_cellartracker_is_read_and_comes_back() -> None:
    bottles, left = read_bottles(CELLARTRACKER)
    assert (listed(tuple(bottles)), left) == (
        "6 Vietti Barolo 2016 at 45, 3 Fevre Chablis 2021 at 18",
        0,
    )
    assert [window_of(each) for each in bottles] == [(2024, 2040), (2022, 2029)]
    again, _ = read_bottles(write_bottles(bottles))
    assert listed(tuple(again)) == listed(tuple(bottles))


def test_a_plain_file_in_another_language_is_read_and_one_without_names_is_not() -> None:
    plain = "Wein;Jahrgang;Anzahl;Preis\nRiesling Spätlese;2019;4;12,50 €\n;2016;2;45\n"
    bottles, left = read_bottles(plain.encode("cp1252"))
    assert (listed(tuple(bottles)), left) == ("4 Riesling Spätlese 2019 at 12.5", 1)
    with pytest.raises(ValueError, match="no column of the file holds names of wines"):
        read_bottles(b"\x00\x01 hello")


BOUGHT = {
    "I bought six Barolo 2016 at 45": """
        it was three = -3 Barolo 2016 at 45 | no, six not five = 0 Barolo 2016 at 45
        three, not six = -3 Barolo 2016 at 45 | sorry, three = -3 Barolo 2016 at 45
        I meant 2015 = -6 Barolo 2016 at 45, 6 Barolo 2015 at 45
        the year is 2012 not 2021 = -6 Barolo 2016 at 45, 6 Barolo 2012 at 45
        not Barolo, Barbaresco = -6 Barolo 2016 at 45, 6 Barbaresco 2016 at 45
        at 54, not 45 = 0 Barolo 2016 at 54 | delete that = -6 Barolo 2016 at 45
        something white, not red = no | no thanks = no | what about 2015? = no | it was great = no
        a red for lamb = no | actually I drank two = no | no, two reds for lamb please = no
    """,
    "ich hab 6 Barolo 2016 zu 45 gekauft": """
        es waren drei = -3 Barolo 2016 at 45 | nein, fünf nicht sechs = -1 Barolo 2016 at 45
        ich meinte 2015 = -6 Barolo 2016 at 45, 6 Barolo 2015 at 45
        nicht Barolo, sondern Barbaresco = -6 Barolo 2016 at 45, 6 Barbaresco 2016 at 45
        lösch das = -6 Barolo 2016 at 45 | nein danke = no
    """,
    "j'ai acheté 6 Barolo 2016 à 45": """
        c'était trois = -3 Barolo 2016 at 45 | non, cinq pas six = -1 Barolo 2016 at 45
        je voulais dire 2015 = -6 Barolo 2016 at 45, 6 Barolo 2015 at 45
        pas barolo, barbaresco = -6 Barolo 2016 at 45, 6 Barbaresco 2016 at 45
        efface ça = -6 Barolo 2016 at 45
    """,
    "compré 6 Barolo 2016 a 45": """
        eran tres = -3 Barolo 2016 at 45 | no, cinco, no seis = -1 Barolo 2016 at 45
        quise decir 2015 = -6 Barolo 2016 at 45, 6 Barolo 2015 at 45
        no Barolo, Barbaresco = -6 Barolo 2016 at 45, 6 Barbaresco 2016 at 45
        borra eso = -6 Barolo 2016 at 45
    """,
    "ho comprato 6 Barolo 2016 a 45": """
        erano tre = -3 Barolo 2016 at 45 | no, cinque non sei = -1 Barolo 2016 at 45
        volevo dire 2015 = -6 Barolo 2016 at 45, 6 Barolo 2015 at 45
        non Barolo, Barbaresco = -6 Barolo 2016 at 45, 6 Barbaresco 2016 at 45
        annulla = -6 Barolo 2016 at 45
    """,
    "ik heb 6 Barolo 2016 gekocht voor 45": """
        het waren er drie = -3 Barolo 2016 at 45 | nee, vijf niet zes = -1 Barolo 2016 at 45
        ik bedoelde 2015 = -6 Barolo 2016 at 45, 6 Barolo 2015 at 45
        niet Barolo maar Barbaresco = -6 Barolo 2016 at 45, 6 Barbaresco 2016 at 45
        verwijder dat = -6 Barolo 2016 at 45
    """,
}
DRUNK = """
    actually I drank two | it was two | doch zwei getrunken | en fait j'en ai bu deux
    en realidad bebí dos | in realtà ne ho bevute due | eigenlijk heb ik er twee gedronken
"""
TASTE = {
    ("I love Barolo", "not Barolo, Barbaresco"): "+like:regions=Barbaresco -like:regions=Barolo",
    ("I hate Riesling", "vergiss das"): "-hate:grapes=Riesling",
    ("I usually spend up to 20", "no, 25 not 20"): "+budget:25 EUR -budget:20 EUR",
}


def lines(table: str) -> list[str]:
    return [each.strip() for each in table.replace("\n", "|").split("|") if each.strip()]


@pytest.mark.parametrize("first", BOUGHT)
def test_what_was_recorded_last_is_corrected(first: str) -> None:
    person = after(NOBODY, first)
    for each in lines(BOUGHT[first]):
        said, _, right = each.partition(" = ")
        found = read_correction(said, [first], person)
        assert (listed(found.changed) if found else "no") == right, said


@pytest.mark.parametrize("said", lines(DRUNK))
def test_how_many_were_drunk_is_corrected(said: str) -> None:
    person = owner()
    now = after(person, "drank one")
    found = read_correction(said, ["drank one"], now)
    assert found is not None
    assert listed(found.changed) == "-1 Barolo 2016 at 45"
    again = read_correction("no, it was the Chablis", ["drank one", said], now)
    assert again is not None
    assert listed(again.changed) == "2 Barolo 2016 at 45, -2 Chablis 2021"


@pytest.mark.parametrize(("said", "right"), TASTE.items())
def test_a_taste_that_was_told_is_corrected(said: tuple[str, str], right: str) -> None:
    first, then = said
    found = read_correction(then, [first], replace(NOBODY, facts=read_message(first).learned))
    assert found is not None
    told = [f"+{each.kind}:{each.value}" for each in found.learned]
    gone = [f"-{each.kind}:{each.value}" for each in found.unlearned]
    assert " ".join([*told, *gone]) == right
    assert read_correction(then, [first, "a red for lamb"], NOBODY) is None


@pytest.mark.parametrize(
    ("said", "is_all"),
    [
        ("hab gestern drei Flaschen Grünen Veltliner gekauft, was koche ich dazu", False),
        ("he comprado dos Rioja reserva. y ahora algo para el pescado", False),
        ("ho comprato sei Barbera a 9, cosa ci abbino stasera", False),
        ("I bought six Barolo 2016 at 45, a bargain, from the shop in Beaune", True),
        ("j'ai acheté 6 Sancerre à 18", True),
    ],
)
def test_what_is_asked_beside_bottles_is_not_swallowed(said: str, is_all: bool) -> None:
    talk = read_cellar(said, NOBODY)
    assert talk.changed
    assert talk.is_all == is_all
