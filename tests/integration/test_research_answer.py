"""Cited answers (rules of the research on prompts for retrieval): real client, scripted server."""

import pytest

from agent.documents.answer import CORRECTION, NOT_ENOUGH, Answer, answer_question
from agent.engine.limits import Ledger, Limits
from agent.engine.run import Run
from agent.i18n import say
from tests.doubles.model_server import (
    ModelServer,
    Step,
    answer,
    answer_json,
    error,
    refusal,
)
from tests.fakes import root_span
from tests.library import (
    INJECTED,
    MUSCADET,
    OYSTERS,
    SUR_LIE,
    FakeLibrary,
    feedback_of,
    open_model,
    sent,
)

QUESTION = "What are the lees of a wine, and why do oysters like them?"
GOOD = f"Lees are mostly dead yeast cells [methods/sur-lie.md].\n\n{OYSTERS.text} [{OYSTERS.path}]"
FAST = Limits(seconds=10, model_tries=1)


async def ask(
    server: ModelServer, *steps: Step, library: FakeLibrary | None = None, limits: Limits = FAST
) -> Answer:
    server.script(*steps)
    async with open_model(server) as model:
        return await answer_question(
            QUESTION, run=Run([model], limits=limits), documents=library or FakeLibrary()
        )


class TestPrompt:
    """Option B: a structured prompt with explicit citation rules."""

    async def test_the_four_rules_are_in_the_prompt(self, model_server: ModelServer) -> None:
        await ask(model_server, answer(GOOD))
        rules = sent(model_server)["messages"][0]["content"]
        assert "Use only information that stands in the excerpts" in rules
        assert "Cite the source of every statement: its file path in [brackets]" in rules
        assert f"say exactly: {NOT_ENOUGH}" in rules
        assert "Never invent a file path" in rules

    async def test_the_excerpts_stand_behind_their_paths_and_before_the_question(
        self, model_server: ModelServer
    ) -> None:
        await ask(model_server, answer(GOOD))
        said = sent(model_server)["messages"][1]["content"]
        assert said.startswith("FILE EXCERPTS:\n<excerpts>\n[")
        for chunk in (SUR_LIE, MUSCADET, OYSTERS):
            assert f"[{chunk.path}]: {chunk.text}" in said
        assert said.endswith(f"</excerpts>\n\nQUESTION: {QUESTION}")

    async def test_plain_text_is_asked_for_and_no_json(self, model_server: ModelServer) -> None:
        model_server.strict = True
        await ask(model_server, answer(GOOD))
        assert "response_format" not in sent(model_server)
        assert "JSON" not in sent(model_server)["messages"][0]["content"]

    async def test_the_overhead_is_small(self, model_server: ModelServer) -> None:
        await ask(model_server, answer(GOOD))
        assert len(sent(model_server)["messages"][0]["content"]) / 4 < 260


class TestAnswers:
    """What is an answer, and what it comes to."""

    async def test_a_cited_answer_is_taken_as_it_is(self, model_server: ModelServer) -> None:
        found = await ask(model_server, answer(GOOD))
        assert (found.text, found.outcome, found.enough_information) == (GOOD, "answered", True)
        assert [(each.number, each.path, each.title) for each in found.citations] == [
            (1, "methods/sur-lie.md", "Sur lie"),
            (2, "pairing/oysters.md", "Wine with oysters"),
        ]
        assert len(model_server.requests) == 1

    async def test_a_citation_shows_the_passage_it_comes_from(
        self, model_server: ModelServer
    ) -> None:
        said = "Muscadet is not bottled before 1 March after the harvest [methods/sur-lie.md]."
        (citation,) = (await ask(model_server, answer(said))).citations
        assert (citation.location, citation.passage) == ("Muscadet", MUSCADET.text)

    async def test_two_passages_of_one_document_have_two_numbers(
        self, model_server: ModelServer
    ) -> None:
        path = "methods/sur-lie.md"
        said = f"Lees are mostly dead yeast cells [{path}]. Muscadet waits until March [{path}]."
        found = await ask(model_server, answer(said))
        assert found.footnoted == f"Lees are mostly dead yeast cells [1]. “{MUSCADET.text}” [2]"
        assert [each.location for each in found.citations] == ["What the lees are", "Muscadet"]

    async def test_citations_can_be_shown_as_numbers(self, model_server: ModelServer) -> None:
        found = await ask(model_server, answer(GOOD))
        assert found.footnoted == (f"Lees are mostly dead yeast cells [1].\n\n{OYSTERS.text} [2]")

    async def test_not_enough_information_is_a_valid_answer(
        self, model_server: ModelServer
    ) -> None:
        found = await ask(model_server, answer(f"{NOT_ENOUGH}."))
        assert (found.text, found.outcome) == (f"{NOT_ENOUGH}.", "answered")
        assert (found.enough_information, found.citations) == (False, ())
        assert len(model_server.requests) == 1

    @pytest.mark.parametrize(
        ("said", "text"),
        [
            (
                "Lees are mostly dead yeast cells [methods/sur-lie.md](methods/sur-lie.md).",
                "Lees are mostly dead yeast cells [P].",
            ),
            (
                "Lees are mostly dead [yeast cells](methods/sur-lie.md).",
                "Lees are mostly dead yeast cells [P].",
            ),
            (
                "Lees are mostly dead yeast cells【methods/sur-lie.md】.",
                "Lees are mostly dead yeast cells[P].",
            ),
            (
                "【Lees】 are dead yeast [methods/sur-lie.md].",
                "“Lees are mostly dead yeast cells.” [P]",
            ),
        ],
    )
    async def test_a_citation_made_a_link_or_put_into_wide_brackets_is_one(
        self, model_server: ModelServer, said: str, text: str
    ) -> None:
        found = await ask(model_server, answer(said))
        assert found.text == text.replace("[P]", "[methods/sur-lie.md]")
        assert len(model_server.requests) == 1

    async def test_a_link_to_a_document_that_was_not_retrieved_is_fed_back(
        self, model_server: ModelServer
    ) -> None:
        found = await ask(
            model_server, answer("Dead yeast cells [Sur lie](made/up.md)."), answer(GOOD)
        )
        assert found.text == GOOD
        assert "[made/up.md] is not one of the excerpts" in feedback_of(model_server)

    async def test_a_fence_around_the_answer_is_taken_off(self, model_server: ModelServer) -> None:
        assert (await ask(model_server, answer(f"```markdown\n{GOOD}\n```"))).text == GOOD


class TestWording:
    """A statement is shown in its source's words, whatever the model made of them."""

    @pytest.mark.parametrize(
        "said",
        [
            "Muscadet may not be bottled before 1 May",
            "Muscadet may not be bottled before 15 March",
            "Muscadet may be bottled before 1 March after the harvest",
            "Chablis may not be bottled before 1 March",
            "“Muscadet may be bottled in March”",
            "Muscadet sur lie wird vor dem 1. Mai nicht abgefüllt",
            "Muscadet waits until March, see muscadet.example",
        ],
    )
    async def test_an_altered_one_is_not_shown(self, model_server: ModelServer, said: str) -> None:
        found = await ask(model_server, answer(f"{GOOD}\n\n{said} [methods/sur-lie.md]."))
        assert found.text == f"{GOOD}\n\n“{MUSCADET.text}” [methods/sur-lie.md]"
        assert (found.outcome, found.retry_count) == ("answered", 0)

    async def test_what_another_document_says_is_cited_with_that(
        self, model_server: ModelServer
    ) -> None:
        swapped = f"{GOOD}\n\nMuscadet waits until 1 March [pairing/oysters.md]."
        assert "[pairing/oysters.md]" in (await ask(model_server, answer(swapped))).text

    async def test_what_no_source_speaks_of_is_cut(self, model_server: ModelServer) -> None:
        said = f"{GOOD} Your budget is used up [pairing/oysters.md]."
        found = await ask(model_server, answer(said))
        assert (found.text, found.outcome) == (GOOD, "salvaged")

    async def test_the_same_passage_is_shown_once(self, model_server: ModelServer) -> None:
        said = "Muscadet waits until March [P]. No Muscadet is bottled before the 1st [P]."
        found = await ask(model_server, answer(said.replace("P", "methods/sur-lie.md")))
        assert found.text == f"“{MUSCADET.text}” [methods/sur-lie.md]"

    async def test_a_sentence_of_two_passages_is_shown_once(
        self, model_server: ModelServer
    ) -> None:
        said = "Resting on fine lees: that is dead yeast. Creamier texture by stirring the lees."
        found = await ask(model_server, answer(f"{said} [methods/sur-lie.md]"))
        assert found.text.count("dead yeast") == found.text.count("creamier texture") == 1

    @pytest.mark.parametrize(
        "heading", ["**99 kinds of lees**", "There are 99 kinds of lees:", "Lees are dead wine:"]
    )
    async def test_a_heading_is_one_of_the_sources(
        self, model_server: ModelServer, heading: str
    ) -> None:
        said = f"**What the lees are**\n\n{GOOD}"
        assert (await ask(model_server, answer(f"{heading}\n\n{said}"))).text == said

    async def test_courtesies_are_not_shown(self, model_server: ModelServer) -> None:
        found = await ask(model_server, answer(f"{GOOD}\n\nI hope this helps! Anything else?"))
        assert (found.text, found.outcome) == (GOOD, "answered")


class TestCheck:
    """A model set aside for it says which statements say the same: those stand as they are."""

    TRUE = "Muscadet stays unbottled until 1 March [methods/sur-lie.md]."
    FALSE = "Muscadet stays unbottled until 2 March [methods/sur-lie.md]."
    REPLACED = f"{GOOD}\n\n“{MUSCADET.text}” [methods/sur-lie.md]"

    async def _ask(self, server: ModelServer, said: str, check: Step) -> tuple[Answer, Ledger]:
        server.script(answer(f"{GOOD}\n\n{said}"), check)
        async with open_model(server) as model:
            run = Run([model], limits=FAST, aside={"check": model})
            found = await answer_question(QUESTION, run=run, documents=FakeLibrary())
        return found, run.ledger

    async def test_what_is_supported_stands_as_it_is(self, model_server: ModelServer) -> None:
        verdict = {"number": 1, "verdict": "supported", "differs": ""}
        found, ledger = await self._ask(
            model_server, self.TRUE, answer_json({"verdicts": [verdict]})
        )
        assert (found.text, ledger.requests) == (f"{GOOD}\n\n{self.TRUE}", 2)
        said = sent(model_server)["messages"][1]["content"]
        assert "1. Muscadet stays unbottled until 1 March.\nPASSAGE: Muscadet sur lie may" in said
        assert "2. " not in said

    @pytest.mark.parametrize(
        ("said", "check"),
        [
            (TRUE, answer_json({"verdicts": []})),
            (
                TRUE,
                answer_json({"verdicts": [{"number": 1, "verdict": "supported", "differs": "1"}]}),
            ),
            (
                TRUE,
                answer_json(
                    {"verdicts": [{"number": 1, "verdict": "contradicted", "differs": ""}]}
                ),
            ),
            (
                FALSE,
                answer_json({"verdicts": [{"number": 1, "verdict": "supported", "differs": ""}]}),
            ),
            (TRUE, answer("All is well.")),
            (TRUE, error(503)),
            (TRUE, refusal("No.")),
        ],
        ids=["no verdict", "differs", "contradicted", "a number", "no JSON", "down", "refused"],
    )
    async def test_anything_else_is_replaced(
        self, model_server: ModelServer, said: str, check: Step
    ) -> None:
        found, _ = await self._ask(model_server, said, check)
        assert (found.text, found.outcome) == (self.REPLACED, "answered")
        assert len(model_server.requests) == 2

    async def test_nothing_is_asked_where_nothing_is_replaced(
        self, model_server: ModelServer
    ) -> None:
        found, ledger = await self._ask(model_server, "", error(500))
        assert (found.text, ledger.requests) == (GOOD, 1)


class TestFeedback:
    """What is wrong is shown to the model."""

    async def test_an_invented_path(self, model_server: ModelServer) -> None:
        invented = "Lees are yeast [methods/lees-of-the-world.md]."
        found = await ask(model_server, answer(invented), answer(GOOD))
        assert (found.text, found.retry_count) == (GOOD, 1)
        assert sent(model_server)["messages"][-2] == {"role": "assistant", "content": invented}
        assert feedback_of(model_server) == CORRECTION.format(
            error_description=(
                "[methods/lees-of-the-world.md] is not one of the excerpts; cite only "
                "[methods/sur-lie.md], [pairing/oysters.md]"
            )
        )

    async def test_a_path_of_the_store_that_was_not_retrieved(
        self, model_server: ModelServer
    ) -> None:
        library = FakeLibrary(chunks=(SUR_LIE, MUSCADET))
        other = "Oysters like it [pairing/oysters.md]."
        good = "Lees are mostly dead yeast cells [methods/sur-lie.md]."
        found = await ask(model_server, answer(other), answer(good), library=library)
        assert found.text == good
        assert "[pairing/oysters.md] is not one of the excerpts" in feedback_of(model_server)

    async def test_a_document_that_the_metadata_store_does_not_know_is_not_shown(
        self, model_server: ModelServer
    ) -> None:
        library = FakeLibrary(forgotten=frozenset({OYSTERS.path}))
        good = "Lees are mostly dead yeast cells [methods/sur-lie.md]."
        found = await ask(model_server, answer(GOOD), answer(good), library=library)
        assert found.text == good
        assert OYSTERS not in found.chunks
        assert OYSTERS.text not in sent(model_server, 0)["messages"][1]["content"]

    async def test_a_statement_without_a_citation(self, model_server: ModelServer) -> None:
        await ask(model_server, answer(f"{GOOD} They love it."), answer(GOOD))
        assert "this statement has no citation: They love it. (1 in all)" in feedback_of(
            model_server
        )

    async def test_an_answer_that_cites_nothing(self, model_server: ModelServer) -> None:
        await ask(model_server, answer("What would you like to know?"), answer(GOOD))
        assert "the answer cites nothing" in feedback_of(model_server)

    async def test_an_answer_in_json(self, model_server: ModelServer) -> None:
        await ask(model_server, answer_json({"answer": "Lees [methods/sur-lie.md]."}), answer(GOOD))
        assert "the answer is JSON; write plain text" in feedback_of(model_server)

    async def test_an_answer_of_which_nothing_stands_in_the_excerpts(
        self, model_server: ModelServer
    ) -> None:
        said = "Buy Domaine Trap today [pairing/oysters.md]."
        found = await ask(model_server, answer(said), answer(GOOD))
        assert found.text == GOOD
        assert "nothing of it stands in the excerpts" in feedback_of(model_server)

    async def test_what_follows_an_admission_is_not_shown(self, model_server: ModelServer) -> None:
        said = f"{NOT_ENOUGH}, but Muscadet must rest for 99 months."
        found = await ask(model_server, *[answer(said)] * 2)
        assert (found.text, found.enough_information) == (f"{NOT_ENOUGH}.", False)

    async def test_a_cut_off_answer(self, model_server: ModelServer) -> None:
        found = await ask(model_server, answer(GOOD[:40], "length"), answer(GOOD))
        assert found.text == GOOD
        assert "cut off" in feedback_of(model_server)


class TestDegrading:
    """A person always gets something, and never anything unverified."""

    async def test_what_is_cited_rightly_is_kept(self, model_server: ModelServer) -> None:
        mixed = f"{GOOD}\n\nThey glow at night [methods/magic.md]."
        found = await ask(model_server, *[answer(mixed)] * 3)
        assert (found.text, found.outcome) == (GOOD, "salvaged")
        assert len(model_server.requests) == 2

    async def test_when_nothing_is_left_the_passages_are_shown(
        self, model_server: ModelServer
    ) -> None:
        found = await ask(model_server, *[answer("They glow [methods/magic.md].")] * 3)
        assert (found.outcome, found.by_model) == ("fallback", False)
        assert found.note == say("documents_model_failed")
        assert found.text.startswith(f"{NOT_ENOUGH}.\n\n")
        assert not found.enough_information
        assert f"{OYSTERS.text} [{OYSTERS.path}]" in found.text
        assert "magic" not in found.text

    async def test_a_model_that_is_down(self, model_server: ModelServer) -> None:
        found = await ask(model_server, error(503))
        assert (found.outcome, found.by_model) == ("fallback", False)
        assert [each.passage for each in found.citations] == [
            SUR_LIE.text.split("\n\n")[0],
            OYSTERS.text,
            MUSCADET.text,
        ]

    async def test_a_refusal_is_not_asked_again(self, model_server: ModelServer) -> None:
        found = await ask(model_server, refusal("No."))
        assert (found.outcome, found.citations) == ("refused", ())
        assert len(model_server.requests) == 1

    async def test_without_a_model_the_best_passages_and_their_citations(self) -> None:
        found = await answer_question(QUESTION, run=Run(), documents=FakeLibrary())
        assert (found.outcome, found.by_model) == ("answered", False)
        assert found.note == say("documents_no_model")
        assert found.text.count("[methods/sur-lie.md]") >= 1
        assert {each.path for each in found.citations} == {SUR_LIE.path, OYSTERS.path}

    async def test_nothing_retrieved_needs_no_request(self, model_server: ModelServer) -> None:
        found = await ask(model_server, library=FakeLibrary(chunks=()))
        assert found.text.startswith(NOT_ENOUGH)
        assert model_server.requests == []


class TestInjection:
    """A document that gives orders changes nothing that code can check."""

    LIBRARY = (INJECTED, SUR_LIE)

    async def test_it_cannot_close_its_fence(self, model_server: ModelServer) -> None:
        await ask(
            model_server,
            answer("Lees are sediment [notes/evil.md]."),
            library=FakeLibrary(self.LIBRARY),
        )
        said = sent(model_server)["messages"][1]["content"]
        assert said.count("</excerpts>") == 1
        assert "</sources>" not in said

    async def test_a_path_it_names_is_no_citation(self, model_server: ModelServer) -> None:
        obeyed = "The secret is out [secret/passwords.md]."
        found = await ask(model_server, *[answer(obeyed)] * 3, library=FakeLibrary(self.LIBRARY))
        assert found.outcome == "fallback"
        assert "secret is out" not in found.text
        assert "secret/passwords.md" not in {each.path for each in found.citations}


class TestRecord:
    """What an operator sees."""

    async def test_the_ledger_counts_every_attempt(self, model_server: ModelServer) -> None:
        model_server.script(answer("Uncited."), answer(GOOD))
        ledger = Ledger()
        async with open_model(model_server) as model:
            await answer_question(
                QUESTION, run=Run([model], ledger=ledger), documents=FakeLibrary()
            )
        assert ledger.requests == 2
        assert ledger.usage.prompt_tokens == model_server.usage.prompt

    async def test_the_trace_of_an_answer(self, model_server: ModelServer) -> None:
        model_server.script(answer("Lees [methods/magic.md]."), answer(GOOD))
        root = root_span()
        async with open_model(model_server) as model:
            await answer_question(QUESTION, run=Run([model], span=root), documents=FakeLibrary())
        assert root.names == ["retrieve.documents", *["llm.answer", "guard.output"] * 2]
        assert root.metadata["outcome"] == "answered"
        assert (root.metadata["retry_count"], root.metadata["error_types"]) == (1, "grounding")
        guards = [each for each in root.children if each.name == "guard.output"]
        assert [each.level for each in guards] == ["WARNING", None]
        assert guards[0].metadata["error_type"] == "grounding"

    async def test_at_most_eight_chunks_are_retrieved(self) -> None:
        library = FakeLibrary()
        await answer_question(QUESTION, run=Run(), documents=library, limit=50)
        assert library.limits == [8]
