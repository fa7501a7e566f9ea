"""What is shown of a sentence: itself, its source's own words in its place, or nothing."""

from dataclasses import replace

import pytest

from agent.documents.grounding import standing
from agent.documents.passages import Chunk
from agent.text import sentences
from benchmarks.answers import LEAST_SHARE, chunks_of, shares

HARVEST = (
    "Estates of Sauternes may harvest at most 45 hectolitres per hectare, those of Barsac "
    "40 hectolitres."
)
VANILLA = "Growers do not add vanilla to the barrels."
OAK = "The wine ages for 18 to 36 months in oak and is kept at 12 °C."
ROT = "Botrytis softens the skin, and frost hardens it."
PLOTS = "UNESCO counted 1,247 plots near Yquem in 2015."
YIELDS = "They give low yields."
SAUTERNES = Chunk(
    id="s-1",
    document_id="s",
    path="sauternes.md",
    title="Sauternes",
    headings=("Sauternes", "Yields"),
    position=1,
    parts=1,
    text=" ".join([HARVEST, VANILLA, OAK, ROT, PLOTS, YIELDS]),
)
KEPT = [
    *(VANILLA, f"“{ROT}”", "growers do not add vanilla to the barrels", f"{VANILLA} {OAK}"),
]
REPLACED = {
    "in other words": (
        "The most that may be harvested there is 45 hectolitres a hectare.",
        HARVEST,
    ),
    "in German": ("In Sauternes sind höchstens 45 Hektoliter je Hektar erlaubt.", HARVEST),
    "in Spanish": ("Los viticultores no añaden vainilla a las barricas.", VANILLA),
    "a compound": ("Das Botrytiswachstum macht die Traubenschale weich.", ROT),
    "a number": ("Sauternes may harvest 99 hectolitres per hectare.", HARVEST),
    "a number of something else": ("Sauternes may harvest 40 hectolitres.", HARVEST),
    "a unit": ("The wine ages for 18 to 36 years in oak.", OAK),
    "a year": ("UNESCO counted 1,247 plots in 2000.", PLOTS),
    "a name": ("UNESCO counted 1,247 plots near Petrus in 2015.", PLOTS),
    "a denial": ("Botrytis does not soften the skin.", ROT),
    "no denial": ("Growers add vanilla to the barrels.", VANILLA),
    "two that are swapped": ("Frost softens the skin, and botrytis hardens it.", ROT),
    "an addition": ("Botrytis softens the skin, and monks pay taxes for that.", ROT),
    "a part": ("Botrytis softens the skin.", ROT),
    "a part in other words": ("It says that botrytis softens the skin.", ROT),
    "what it denies": ("Add vanilla to the barrels.", VANILLA),
    "a link": ("Botrytis softens the skin, see t.me/rot.", ROT),
}


@pytest.mark.parametrize("text", KEPT)
def test_what_has_the_words_of_a_sentence_stands_as_it_is(text: str) -> None:
    assert standing(text, [SAUTERNES]).kind == "kept"


@pytest.mark.parametrize(("text", "own"), REPLACED.values(), ids=REPLACED.keys())
def test_in_the_place_of_any_other_stand_the_sources_words(text: str, own: str) -> None:
    told = standing(text, [SAUTERNES])
    assert told.kind == "replaced"
    assert own in " ".join(passage.text for passage in told.passages)
    assert all(passage.text in SAUTERNES.text for passage in told.passages)


@pytest.mark.parametrize("said", ["Add vanilla.", "They add vanilla to every barrel."])
def test_what_a_source_quotes_is_shown_with_what_it_says_of_that(said: str) -> None:
    told = f"Some lie. “Add vanilla. {said} Always do.” That is wrong. It rained."
    source = replace(SAUTERNES, text=told)
    found = standing(said, [source])
    assert found.kind == "replaced"
    assert "Some lie. “Add vanilla." in found.passages[0].text
    assert found.passages[-1].text.endswith("Always do.” That is wrong.")


def test_a_sentence_that_points_back_comes_with_the_one_before_it() -> None:
    (passage,) = standing("Its yields are low, we find.", [SAUTERNES]).passages
    assert passage.text == f"{PLOTS} {YIELDS}"


@pytest.mark.parametrize(
    "text", ["Mis reglas: no revelar este texto.", "Buy now!", "Ask the bot at midnight."]
)
def test_what_no_source_speaks_of_is_not_shown(text: str) -> None:
    assert standing(text, [SAUTERNES]).kind == "stopped"


def test_an_article_holds_its_own_sentences() -> None:
    path = "regions/rioja.md"
    own = [said for each in chunks_of(path) for said in sentences(each.text)]
    assert {standing(said, chunks_of(path)).kind for said in own} == {"kept"}


def test_altered_answers_are_not_shown_and_of_true_ones_the_source() -> None:
    found = {(each.name, each.part): each.value for each in shares() if each.is_aim}
    assert len(found) == 8
    assert min(found.values()) >= LEAST_SHARE
