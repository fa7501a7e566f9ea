"""Which statements a citation covers, and what may be kept of an answer."""

import pytest

from agent.documents.citations import (
    admission,
    admits,
    admits_not_enough,
    blocks,
    citations,
    kept,
    uncited,
    unretrieved_path,
)
from agent.engine.contract import Evidence
from tests.library import SUR_LIE

COVERED = {
    "at the end of the sentence": "Lees are yeast [a.md].",
    "after the full stop": "Lees are yeast. [a.md]",
    "stuck to the full stop": "Lees are yeast.[a.md] They settle.[b.md]",
    "within the sentence": "According to [a.md], lees are yeast.",
    "one that closes the paragraph": "Lees are yeast. They settle. [a.md]",
    "one of several in a paragraph": "Lees are yeast [a.md]. They settle. They rest [b.md].",
    "every list item": "There are two:\n- gross lees [a.md]\n- fine lees [b.md]",
    "an item that goes on": "1. Gross lees are\n   heavy. They smell. [a.md]\n2. Fine lees [b.md]",
    "below a heading": "# Lees\n\nThey are yeast [a.md].",
    "below a bold heading": "**Lees**\nThey are yeast [a.md].",
    "a question back": "Lees are yeast [a.md]. Would you like to know more?",
    "an abbreviation is no end": "Lees, e.g. Dead yeast approx. 2 % vol. of it, settle [a.md].",
    "on a line of its own": "Lees are yeast.\n\n[a.md]\n\nThey settle.\nSource: [a.md], [b.md]",
    "as the last paragraph": "Lees are yeast.\n\n**Sources:** [a.md], [b.md]",
    "not enough in another language": "Leider habe ich dazu nicht genügend Informationen.",
    "not enough, and why, in another": "Ich habe nicht genug Informationen. Kein Auszug nennt sie.",
    "not enough information": "I don't have enough information.",
    "not enough, and why": "I don't have enough information. The excerpts speak of Rioja only.",
    "not enough on a part": "Lees are yeast [a.md].\n\nI do not have enough information on prices.",
    "courtesies below it": "Lees are yeast [a.md].\n\nHope this helps! Let me know!",
    "a wish beside it": "Lees are yeast [a.md]. Cheers! 🍷",
    "CJK sentences": "澱は酵母です。沈みます [a.md]。",
}


@pytest.mark.parametrize(
    "claim",
    [
        "Hope this helps: Muscadet is red.",
        "Let me know if you need a red Muscadet.",
        "Enjoy it at 12 degrees.",
        "That helps.",
        "Ask for Chablis.",
        "I hope it helps digestion.",
    ],
)
def test_a_courtesy_that_says_more_is_a_statement(claim: str) -> None:
    assert uncited(f"Lees are yeast [a.md]. {claim}") == [claim]


@pytest.mark.parametrize("text", COVERED.values(), ids=COVERED.keys())
def test_a_statement_with_a_citation_is_covered(text: str) -> None:
    assert uncited(text) == []


UNCITED = {
    "no citation at all": ("Lees are yeast.", ["Lees are yeast."]),
    "after the last citation": ("Lees are yeast. [a.md] They settle.", ["They settle."]),
    "stuck citations": ("Lees are yeast.[a.md] They settle.", ["They settle."]),
    "one paragraph of two": ("Lees are yeast [a.md].\n\nThey settle.", ["They settle."]),
    "one list item": ("- gross lees\n- fine lees [a.md]", ["gross lees"]),
    "sentence before a colon": ("Lees are yeast. Two kinds:\n- fine [a.md]", ["Lees are yeast."]),
    "a list of sources behind all": (
        "Lees are yeast.\n\nThey settle.\n\nSources: [a.md]",
        ["Lees are yeast."],
    ),
    "no reason at all": (
        "I don't have enough information on Chinon. It must be aged for three years.",
        ["It must be aged for three years."],
    ),
    "more than a reason": (
        "I don't have enough information. Sorry. Lees are dead yeast.",
        ["Lees are dead yeast."],
    ),
    "an ellipsis in brackets": ("Lees are yeast [...].", ["Lees are yeast [...]."]),
}


@pytest.mark.parametrize(("text", "missing"), UNCITED.values(), ids=UNCITED.keys())
def test_a_statement_without_a_citation_is_found(text: str, missing: list[str]) -> None:
    assert uncited(text) == missing


def test_brackets_are_read_as_paths() -> None:
    paths = ["a.md", "folder/b c.md", "odd[1].md", "_index.md", 'say "hi".md']
    text = (
        "One [a.md]. Two [`a.md`, folder/b c.md]. Three [odd[1].md]. Four [x.md; a.md]. [...] "
        'Five [_index.md, **a.md**]. Six [say "hi".md].'
    )
    found = citations(text, paths)
    assert [cited.paths for cited in found] == [
        ("a.md",),
        ("a.md", "folder/b c.md"),
        ("odd[1].md",),
        ("a.md",),
        ("_index.md", "a.md"),
        ('say "hi".md',),
    ]
    assert [cited.unknown for cited in found] == [(), (), (), ("x.md",), (), ()]


def test_an_answer_taken_apart_and_put_together_is_the_same() -> None:
    text = "# Lees\n\nThey are yeast [a.md].\n\n1. Gross [a.md]\n2. Fine [b.md]\n\nThe end [c.md]."
    assert "".join(block.gap + block.text for block in blocks(text)) == text


def test_what_is_kept_has_citations_only_that_are_accepted() -> None:
    text = (
        "# Lees\n\nThey are yeast. They glow [bad.md].\n\n# Kinds\n\nTwo kinds:\n"
        "- gross [a.md]\n- golden [bad.md]\n\nThey settle [a.md]. They sing."
    )
    assert kept(text, lambda statement: "bad" not in statement.text) == (
        "# Kinds\n\nTwo kinds:\n- gross [a.md]\n\nThey settle [a.md]."
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "I don't have enough information, but Muscadet is red.",
            "I don't have enough information.",
        ),
        (
            "Les extraits ne le disent pas; le Muscadet est rouge.",
            "Je n'ai pas assez d'informations.",
        ),
        ("Os trechos não mencionam o preço.", "Não tenho informações suficientes."),
        ("В этих отрывках нет сведений о ценах.", "У меня недостаточно информации."),
    ],
)
def test_an_admission_is_shown_in_words_of_our_own(text: str, shown: str) -> None:
    assert uncited(text) == []
    assert admission(text) == shown
    assert admits(shown)
    assert admits(admission(text, rest=True))


@pytest.mark.parametrize(
    ("text", "opens"),
    [
        ("I don't have enough information", True),
        ("I don’t have enough information about that.", True),
        ("**I do not have enough information.**", True),
        ("I'm sorry, but I don't have enough information.", True),
        ("Based on the provided excerpts, I don't have enough information to answer.", True),
        ("Unfortunately, the excerpts do not contain enough information on this.", True),
        ("There is not enough information in the sources.", True),
        ("Es liegen leider nicht genügend Informationen vor.", True),
        ("Je n’ai pas assez d’informations pour répondre.", True),
        ("Lo siento, pero no tengo suficiente información.", True),
        ("Purtroppo non ho informazioni sufficienti.", True),
        ("Helaas heb ik onvoldoende informatie.", True),
        ("Não tenho informações suficientes.", True),
        ("Dazu habe ich nicht genügend Informationen.", True),
        ("Darüber geben die Auszüge keine Auskunft.", True),
        ("Les extraits ne contiennent pas de réponse à cette question.", True),
        ("Los fragmentos no dicen nada sobre el precio.", True),
        ("Nessuna delle fonti ne parla.", True),
        ("De fragmenten zeggen hier niets over.", True),
        ("Os trechos não mencionam o preço.", True),
        ("К сожалению, у меня недостаточно информации.", True),
        ("В этих отрывках нет сведений о ценах.", True),
        ("None of the excerpts speaks of Madeira.", True),
        ("I don't have enough information, but Muscadet is red.", True),
        ("The documents do not say so, but 99 hectolitres are allowed.", True),
        ("No wine is free of sulphites.", False),
        ("Everyone has enough information.", False),
        ("Lees are yeast. I don't have enough information on prices.", False),
    ],
)
def test_the_admission_opens_the_answer(text: str, opens: bool) -> None:
    assert admits_not_enough(text) is opens


def test_a_path_that_no_tool_returned_is_named() -> None:
    evidence = Evidence(found={SUR_LIE.id: SUR_LIE})
    assert unretrieved_path(f"Lees [{SUR_LIE.path}], [sic], [2]", evidence) is None
    said = unretrieved_path("Lees [methods/magic.md]", evidence)
    assert said is not None
    assert "methods/magic.md" in said
