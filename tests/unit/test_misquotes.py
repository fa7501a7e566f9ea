"""Quotations beside a citation, or in a block quote, stand word for word in a source."""

import pytest

from agent.documents.misquotes import misquoted, without_misquotes
from agent.engine.contract import Evidence
from tests.library import MUSCADET, OYSTERS, SUR_LIE

EVIDENCE = Evidence(
    {chunk.id: chunk for chunk in (SUR_LIE, MUSCADET, OYSTERS)},
    asked=["Is “a wine for my aunt and her cat” a good gift?"],
)
LEES = SUR_LIE.path


@pytest.mark.parametrize(
    "text",
    [
        f"It says: “a wine rests on its fine lees” [{LEES}].",
        f'It says: "A WINE  rests on its fine lees" [{LEES}].',
        f"Es heißt: „Lees are mostly dead yeast cells.“ [{LEES}]",
        "> Muscadet sur lie may not be bottled before 1 March after the harvest. [methods/x.md]",
        "> Lees are mostly dead yeast cells.\n> Stirring the lees gives a creamier texture.",
        f"The “fine lees” are what rests [{LEES}].",
        f"You ask for “a wine for my aunt and her cat” [{LEES}].",
        "They call it “the finest wine under the sun and the moon”.",
    ],
)
def test_what_a_source_or_the_guest_said_may_be_quoted(text: str) -> None:
    assert misquoted(text, EVIDENCE) is None
    assert without_misquotes(text, EVIDENCE) == text


@pytest.mark.parametrize(
    "quote",
    [
        f"It says: “lees must be stirred at every full moon” [{LEES}].",
        f"Es heißt: „ein Wein ruht auf seiner feinen Hefe“ [{LEES}].",
        "> Lees must be stirred at every full moon.",
    ],
)
def test_an_invented_quote_is_fed_back_and_left_out_if_it_stays(quote: str) -> None:
    problem = str(misquoted(f"Good evening.\n\n{quote}", EVIDENCE))
    assert "does not stand word for word in anything a tool returned" in problem
    assert without_misquotes(f"Good evening.\n\n{quote}", EVIDENCE) == "Good evening."
    assert without_misquotes(f"Lees are yeast [{LEES}]. {quote}", EVIDENCE).startswith("Lees are")
