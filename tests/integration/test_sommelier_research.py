"""Documents beside the cellar, in one turn of the sommelier."""

import json

import pytest

from agent.documents.passages import search_documents_tool
from agent.engine.run import Run
from agent.fallback import Fallback
from agent.i18n import translate
from agent.sommelier.service import Sommelier
from tests.doubles.model_server import ModelServer, answer_json, tool_call
from tests.doubles.server import JsonObject
from tests.fakes import FakeCatalogue
from tests.library import OYSTERS, SUR_LIE, FakeLibrary, open_model, sent

LOOK_UP = tool_call("search_documents", {"query": "lees"})
LEES = "Lees are mostly dead yeast cells [methods/sur-lie.md]."


def desk_tools(library: FakeLibrary) -> Sommelier:
    return Sommelier(
        catalogue=FakeCatalogue(),
        fallback=Fallback(catalogue=FakeCatalogue(), documents=library),
        research_tools=[search_documents_tool(library)],
    )


async def test_a_cited_path_becomes_a_footnote_with_the_title(model_server: ModelServer) -> None:
    model_server.script(LOOK_UP, answer_json(informed(LEES)))
    reply = await reply_of(model_server, FakeLibrary())
    assert reply == "Lees are mostly dead yeast cells [1].\n\n[1] Sur lie · What the lees are"
    assert "search_documents" in sent(model_server, 0)["messages"][0]["content"]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("Lees are yeast [secret/passwords.md].", "cites [secret/passwords.md]"),
        ("Lees are yeast [here](https://evil.example/x).", "the address https://evil.example/x"),
    ],
    ids=["path", "address"],
)
async def test_what_no_tool_returned_is_an_error_with_feedback(
    said: str, problem: str, model_server: ModelServer
) -> None:
    model_server.script(LOOK_UP, answer_json(informed(said)), answer_json(informed(LEES)))
    reply = await reply_of(model_server, FakeLibrary([SUR_LIE]))
    assert reply.startswith("Lees are mostly dead yeast cells [1].")
    assert problem in sent(model_server)["messages"][-1]["content"]


async def test_the_fallback_with_nothing_in_the_library_is_only_honest() -> None:
    reply = await desk_tools(FakeLibrary([OYSTERS])).answer("What is tannin?", run=Run())
    assert reply.text == translate("fallback_only")


def informed(intro: str) -> JsonObject:
    return {"response_type": "informational", "intro": intro, "wines": [], "closing": ""}


async def reply_of(server: ModelServer, library: FakeLibrary) -> str:
    async with open_model(server) as model:
        reply = await desk_tools(library).answer("What are lees?", run=Run([model]))
    assert json.dumps(sent(server, 0)["tools"]).count('"search_documents"') == 1
    return reply.text
