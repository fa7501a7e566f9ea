"""/ask: cited answers in the model's words (ADR "RAG prompt strategy"); scripted server."""

import pytest

from agent.documents.answer import FEEDBACK, Answer, answer_question
from agent.documents.citations import NOT_ENOUGH_PHRASE
from agent.engine.run import Limits, Run
from agent.i18n import translate, use_language
from tests.doubles.model_server import ModelServer, Step, answer, refusal
from tests.library import (
    MUSCADET,
    OYSTERS,
    SUR_LIE,
    FakeLibrary,
    feedback_of,
    open_model,
    sent,
)

QUESTION = "What are the lees of a wine, and why do oysters like them?"
LEES = f"Dead yeast is what lees mostly are [{SUR_LIE.path}]."
GOOD = f"{LEES}\n\nWith oysters, drink something lean [{OYSTERS.path}]."
FAST = Limits(seconds=10, model_tries=1)


async def ask(
    server: ModelServer, *steps: Step, library: FakeLibrary | None = None
) -> Answer:
    server.script(*steps)
    async with open_model(server) as model:
        return await answer_question(
            QUESTION, run=Run([model], limits=FAST), documents=library or FakeLibrary()
        )


async def test_the_models_sentences_are_shown_as_it_wrote_them(
    model_server: ModelServer,
) -> None:
    found = await ask(model_server, answer(f"```markdown\n{GOOD}\n```"))
    assert (found.text, found.outcome, found.enough_information) == (
        GOOD,
        "answered",
        True,
    )
    assert found.footnoted == GOOD.replace(SUR_LIE.path, "1").replace(OYSTERS.path, "2")
    assert [(cited.number, cited.path, cited.title) for cited in found.citations] == [
        (1, SUR_LIE.path, "Sur lie"),
        (2, OYSTERS.path, "Wine with oysters"),
    ]
    assert len(model_server.requests) == 1


async def test_a_citation_is_numbered_by_the_passage_it_comes_from(
    model_server: ModelServer,
) -> None:
    said = f"{LEES} Muscadet is bottled from 1 March on [{SUR_LIE.path}]."
    found = await ask(model_server, answer(said))
    assert [cited.location for cited in found.citations] == [
        "What the lees are",
        "Muscadet",
    ]
    assert found.citations[1].passage == MUSCADET.text


async def test_citations_side_by_side_are_of_one_statement(
    model_server: ModelServer,
) -> None:
    said = f"Muscadet is bottled from 1 March on [{OYSTERS.path}] [{SUR_LIE.path}]."
    found = await ask(model_server, answer(said))
    assert [cited.passage for cited in found.citations] == [OYSTERS.text, MUSCADET.text]


async def test_not_enough_information_is_a_valid_answer(
    model_server: ModelServer,
) -> None:
    with use_language("de"):
        found = await ask(model_server, answer(f"{NOT_ENOUGH_PHRASE}."))
        assert found.text == translate("not_enough")
    assert (found.outcome, found.enough_information, found.citations) == (
        "answered",
        False,
        (),
    )
    assert len(model_server.requests) == 1


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            f"{GOOD} They love it.",
            "this statement has no citation: They love it.; put the [path]",
        ),
        (
            "Lees are yeast [methods/magic.md].",
            f"[methods/magic.md] is not one of the excerpts; cite only [{SUR_LIE.path}], "
            f"[{OYSTERS.path}]",
        ),
        (
            "Lees are yeast [Sur lie](methods/sur-lie.md).",
            "[Sur lie] is not one of the excerpts",
        ),
        (
            f"Muscadet is bottled from 15 March on [{SUR_LIE.path}].",
            f"the number 15 in Muscadet is bottled from 15 March on [{SUR_LIE.path}]. does not "
            f"occur in [{SUR_LIE.path}]",
        ),
        ("What would you like to know?", "the answer cites nothing"),
        ('{"answer": "Lees."}', "the answer is JSON; write plain text"),
    ],
)
async def test_an_answer_that_breaks_a_rule_is_sent_back_with_the_reason(
    model_server: ModelServer, said: str, problem: str
) -> None:
    found = await ask(model_server, answer(said), answer(GOOD))
    assert (found.text, found.retry_count) == (GOOD, 1)
    assert sent(model_server)["messages"][-2]["content"] == said
    assert problem in feedback_of(model_server)
    assert feedback_of(model_server).endswith(FEEDBACK.partition("}")[2])


async def test_a_sentence_that_stays_wrong_is_left_out(
    model_server: ModelServer,
) -> None:
    wrong = f"They glow [methods/magic.md]. Muscadet is bottled from 15 March on [{SUR_LIE.path}]."
    found = await ask(model_server, *[answer(f"{GOOD}\n\n{wrong}")] * 3)
    assert (found.text, found.outcome) == (GOOD, "salvaged")
    assert len(model_server.requests) == 3


async def test_when_nothing_is_left_the_passages_are_shown(
    model_server: ModelServer,
) -> None:
    found = await ask(model_server, *[answer("They glow [methods/magic.md].")] * 3)
    assert (found.outcome, found.by_model) == ("fallback", False)
    assert found.note == translate("documents_model_failed")
    assert found.text.startswith(f"{NOT_ENOUGH_PHRASE}.\n\n")
    assert not found.enough_information
    assert f"{OYSTERS.text} [{OYSTERS.path}]" in found.text
    assert "magic" not in found.text


async def test_without_a_model_passages_about_something_else_are_not_shown() -> None:
    """ "Dead" is in a passage that the search finds."""
    found = await answer_question(
        "Which dead king won the cup?", run=Run(), documents=FakeLibrary()
    )
    assert (tuple(found.chunks), found.citations, found.enough_information) == (
        (),
        (),
        False,
    )
    assert translate("no_matching_document") in found.text
    with use_language("es"):
        about = await answer_question(
            "¿Y las levaduras?", run=Run(), documents=FakeLibrary()
        )
    assert SUR_LIE.path in about.text


async def test_a_document_that_the_metadata_store_does_not_know_is_not_shown(
    model_server: ModelServer,
) -> None:
    library = FakeLibrary(forgotten=frozenset({OYSTERS.path}))
    found = await ask(model_server, answer(GOOD), answer(LEES), library=library)
    assert found.text == LEES
    assert OYSTERS not in found.chunks
    assert OYSTERS.text not in sent(model_server, 0)["messages"][1]["content"]


async def test_a_model_that_declines_is_not_asked_again(
    model_server: ModelServer,
) -> None:
    found = await ask(model_server, refusal("No."))
    assert (found.outcome, found.by_model, found.citations) == ("refused", False, ())
    assert len(model_server.requests) == 1
