"""What a sentence claims, held against the passages it cites."""

import pytest

from agent.documents.claims import foreign, unsupported
from agent.documents.store import Chunk
from agent.evals.answers import shares
from agent.text import sentences
from bot.commands.evaluate import _chunks_of
from db.documents.indexing import STARTER

SAUTERNES = Chunk(
    id="s-1",
    document_id="s",
    path="sauternes.md",
    title="Sauternes",
    headings=("Sauternes", "Yields"),
    position=1,
    parts=1,
    text=(
        "Estates of Sauternes may harvest at most 45 hectolitres per hectare, those of Barsac "
        "40 hectolitres. Growers do not add vanilla to the barrels. The wine ages for 18 to 36 "
        "months in oak and is kept at 12 °C. Botrytis softens the skin, and frost hardens it. "
        "UNESCO counted 1,247 plots near Yquem in 2015. Vines of that age give low yields."
    ),
)
HELD = {
    "in other words": "In Sauternes the most that may be harvested is 45 hectolitres per hectare.",
    "in German": "In Sauternes sind höchstens 45 Hektoliter je Hektar erlaubt.",
    "a number in words": "The wine is kept at twelve °C.",
    "a range with a dash": "The wine ages 18–36 months in oak.",
    "a denial in other words": "Barrels are free of vanilla that growers add.",
    "a denial": "Vanilla is never added to the barrels.",
}
ALTERED = {
    "a number": ("Sauternes may harvest 99 hectolitres per hectare.", "the number 99"),
    "a number in German": ("In Sauternes sind 99 Hektoliter je Hektar erlaubt.", "the number 99"),
    "a number of something else": ("Sauternes may harvest 40 hectolitres.", "of something else"),
    "a unit": ("The wine ages for 18 years in oak.", "the number 18"),
    "the end of a range": ("The wine ages for 12 to 36 months in oak.", "12"),
    "a year": ("UNESCO counted 1,247 plots in 2000.", "the number 2000"),
    "a name": ("UNESCO counted 1,247 plots near Petrus in 2015.", "the name Petrus"),
    "a name in German": ("Güter von Chablis dürfen 45 Hektoliter ernten.", "the name Chablis"),
    "a link": ("Botrytis softens the skin, see t.me/rot.", "the link t.me/rot"),
    "a denial": ("Botrytis does not soften the skin.", "the opposite stands there"),
    "another denial": ("UNESCO did not count 1,247 plots.", "not denied there"),
    "no denial": ("Growers add vanilla to the barrels.", "it is denied there"),
    "an opposite": ("Vines give high yields.", "the opposite stands there"),
    "an addition": (
        "Botrytis softens the skin, and monks pay taxes for that.",
        "monks, pay, taxes do not stand there",
    ),
}


@pytest.mark.parametrize("text", HELD.values(), ids=HELD.keys())
def test_what_the_passage_says_is_held(text: str) -> None:
    assert unsupported(text, [SAUTERNES]) is None


@pytest.mark.parametrize(("text", "problem"), ALTERED.values(), ids=ALTERED.keys())
def test_what_it_does_not_say_is_named(text: str, problem: str) -> None:
    assert problem in str(unsupported(text, [SAUTERNES]))


def test_a_heading_has_the_names_and_numbers_of_the_question_and_of_the_passages() -> None:
    assert foreign("Of Petrus in 1961 and Yquem", [SAUTERNES], ["What of Petrus 1961?"]) is None
    assert "Petrus" in str(foreign("Of Petrus in 1961", [SAUTERNES], ["What of 1961?"]))


def test_an_article_holds_its_own_sentences() -> None:
    paths = sorted(str(file.relative_to(STARTER)) for file in STARTER.rglob("*.md"))
    own = [(path, said) for path in paths for c in _chunks_of(path) for said in sentences(c.text)]
    lost = [said for path, said in own if unsupported(said, _chunks_of(path))]
    assert len(lost) <= 0.005 * len(own)


def test_true_answers_are_kept_and_altered_ones_stopped() -> None:
    found = {(each.name, each.part): each for each in shares(_chunks_of)}
    for half in ("first", "second"):
        assert found["true, kept", half].value >= 0.9
        assert found["altered, stopped", half].value >= 0.75
        assert found["number, stopped", half].value >= 0.9
        assert found["link, stopped", half].value == 1
