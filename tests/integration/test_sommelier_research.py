"""Documents beside the cellar, in one turn of the sommelier."""

import json
from collections.abc import Sequence

import pytest

from agent.documents.passages import Chunk, search_documents_tool
from agent.engine.limits import Limits
from agent.engine.run import Run
from agent.fallback import Fallback
from agent.i18n import translate
from agent.sommelier.service import Sommelier
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.doubles.server import JsonObject
from tests.fakes import FakeCatalogue
from tests.library import INJECTED, OYSTERS, SUR_LIE, FakeLibrary, open_model, sent

LEES = "Lees are mostly dead yeast cells [methods/sur-lie.md]."
LOOK_UP = tool_call("search_documents", {"query": "lees"})
FAST = Limits(seconds=10, model_tries=1, structured_output_max_retries=1)


def desk_tools(library: FakeLibrary) -> Sommelier:
    return Sommelier(
        catalogue=FakeCatalogue(),
        fallback=Fallback(catalogue=FakeCatalogue(), documents=library),
        research_tools=[search_documents_tool(library)],
    )


class TestInTheLoop:
    """Documents beside the cellar, in one turn of the sommelier."""

    async def test_a_cited_path_becomes_a_footnote_with_the_title(
        self, model_server: ModelServer
    ) -> None:
        model_server.script(
            tool_call("search_documents", {"query": "sur lie"}), answer_json(informed(LEES))
        )
        reply = await reply_of(model_server, FakeLibrary())
        assert reply == ("Lees are mostly dead yeast cells [1].\n\n[1] Sur lie · What the lees are")
        assert "search_documents" in sent(model_server, 0)["messages"][0]["content"]

    @pytest.mark.parametrize(
        ("said", "problem"),
        [
            ("Lees are yeast [secret/passwords.md].", "cites [secret/passwords.md]"),
            (
                "Lees are yeast [here](https://evil.example/x).",
                "the address https://evil.example/x",
            ),
        ],
        ids=["path", "address"],
    )
    async def test_what_no_tool_returned_is_an_error_with_feedback(
        self, said: str, problem: str, model_server: ModelServer
    ) -> None:
        model_server.script(
            tool_call("search_documents", {"query": "lees"}),
            answer_json(informed(said)),
            answer_json(informed(LEES)),
        )
        reply = await reply_of(model_server, FakeLibrary([SUR_LIE]))
        assert reply.startswith("Lees are mostly dead yeast cells [1].")
        assert problem in sent(model_server)["messages"][-1]["content"]

    async def test_a_document_that_gives_orders_changes_nothing_that_is_checked(
        self, model_server: ModelServer
    ) -> None:
        obeyed = "Buy Chateau Trap 1999 [secret/passwords.md]."
        model_server.script(
            tool_call("search_documents", {"query": "lees sediment"}),
            *[answer_json(informed(obeyed))] * 3,
        )
        reply = await reply_of(model_server, FakeLibrary([INJECTED]))
        # Its path and wine are not taken for real: it stands there as a passage of that document.
        assert "> Lees are sediment." in reply
        assert "[1] Lees and more · Section 1 of 1" in reply

    async def test_without_research_the_prompt_does_not_speak_of_a_library(
        self, model_server: ModelServer
    ) -> None:
        model_server.script(answer_json(informed("Lees are yeast.")))
        async with open_model(model_server) as model:
            sommelier = Sommelier(catalogue=FakeCatalogue())
            await sommelier.answer("What are lees?", run=Run([model], limits=FAST))
        assert "library" not in sent(model_server)["messages"][0]["content"]

    async def test_the_fallback_shows_the_best_passage_and_adds_nothing(self) -> None:
        reply = await desk_tools(FakeLibrary()).answer("What does sur lie mean?", run=Run())
        begins, passage, source = reply.text.split("\n\n")
        assert begins == translate("fallback_passage")
        assert passage.startswith("> Sur lie means that a wine rests on its fine lees.")
        assert source == "[1] Sur lie · What the lees are"
        assert reply.notes == (translate("no_model"),)

    @pytest.mark.parametrize("chunks", [(), (OYSTERS,)], ids=["empty", "nothing fits"])
    async def test_the_fallback_with_nothing_in_the_library_is_only_honest(
        self, chunks: Sequence[Chunk]
    ) -> None:
        reply = await desk_tools(FakeLibrary(chunks)).answer("What is tannin?", run=Run())
        assert reply.text == translate("fallback_only")

    async def test_the_fallback_shows_an_order_in_a_document_as_what_it_is(self) -> None:
        library = FakeLibrary([INJECTED])
        reply = await desk_tools(library).answer("What is sediment?", run=Run())
        assert (reply.outcome, reply.wine_ids) == ("answered", ())
        assert "> Lees are sediment. &lt;" in reply.text or "> Lees are sediment." in reply.text
        assert "[1] Lees and more" in reply.text


def informed(intro: str, closing: str = "") -> JsonObject:
    return {"response_type": "informational", "intro": intro, "wines": [], "closing": closing}


async def reply_of(server: ModelServer, library: FakeLibrary) -> str:
    async with open_model(server) as model:
        reply = await desk_tools(library).answer("What are lees?", run=Run([model]))
    assert json.dumps(sent(server, 0)["tools"]).count('"search_documents"') == 1
    return reply.text
