"""Which prompt a turn was asked with stands on its generations; what was replayed is marked."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from agent.documents.answer import answer_question
from agent.documents.quotes import QuoteCache, find_quotes
from agent.documents.refine import refine_question
from agent.engine.limits import Ledger, Limits
from agent.engine.run import Run
from agent.engine.span import Prompt, PromptRef
from agent.engine.tools import Tool
from agent.places.find import find_places
from agent.prompts import REPOSITORY, repository_prompts
from agent.sommelier.service import Sommelier
from agent.turn import Deps, Prompts, Reply
from tests.doubles.model_server import ModelServer, Step, answer, answer_json
from tests.fakes import FakeCatalogue, SpanRecord, asked, root_span
from tests.faults.turns import INFORMATIONAL, QUESTION, search, service, valid
from tests.library import SUR_LIE, FakeLibrary, open_model, sent

R = TypeVar("R")
MARK = "As the house likes it."


@dataclass
class HousePrompts:
    """Every prompt of the repository with a sentence of the house in front, as version 7."""

    asked: list[str] = field(default_factory=list)
    version: int = 7

    def get(self, name: str) -> Prompt:
        self.asked.append(name)
        ref = PromptRef(name, self.version, "production", is_fallback=False)
        return Prompt(f"{MARK}\n{repository_prompts()[name].text}", ref)


async def reply_to(
    server: ModelServer,
    *steps: Step,
    tools: Iterable[Tool] = (),
    prompts: Prompts | None = None,
    ledger: Ledger | None = None,
) -> tuple[Reply, SpanRecord]:
    server.script(*steps)
    root, model = root_span(), service(server)
    sommelier = Sommelier(catalogue=FakeCatalogue(), research_tools=list(tools))
    limits = Limits(seconds=10, model_tries=2)
    run = Run(
        [model],
        limits=limits,
        span=root,
        deps=Deps(prompts=prompts),
        ledger=ledger or Ledger(),
    )
    try:
        return await asked(sommelier, f"{QUESTION} Quote a definition.", run), root
    finally:
        await model.close()


def generations(span: SpanRecord) -> list[SpanRecord]:
    """The generations of a trace, in order."""
    own = [span] if span.kind == "generation" else []
    return own + [found for child in span.children for found in generations(child)]


class TestSommelier:
    """A turn has one prompt from its beginning to its end."""

    async def test_every_generation_carries_the_prompt(self, model_server: ModelServer) -> None:
        prompts = HousePrompts()
        _, root = await reply_to(model_server, search(), answer("no"), valid(), prompts=prompts)
        ref = PromptRef("sommelier", 7, "production", is_fallback=False)
        assert [span.prompt for span in generations(root)] == [ref] * 3
        assert prompts.asked == ["sommelier"]
        systems = [sent(model_server, number)["messages"][0]["content"] for number in range(3)]
        assert [system.count(MARK) for system in systems] == [1, 1, 1]
        assert {key: root.metadata[key] for key in root.metadata if key.startswith("prompt")} == {
            "prompt_name": "sommelier",
            "prompt_version": "langfuse:7",
            "prompt_is_fallback": False,
            "prompt_label": "production",
        }


class TestResearch:
    """Each look-up has a prompt of its own."""

    @pytest.mark.parametrize(
        ("name", "made_of"),
        [
            ("documents-answer", {"text": f"Lees are yeast cells [{SUR_LIE.path}]."}),
            (
                "documents-quotes",
                {"json": {"snippets": [], "summary": "Nothing.", "noResults": True}},
            ),
            ("place-queries", {"json": [f"wine bar Bilbao {word}" for word in "abcdefghij"]}),
            ("refinement", {"text": "no"}),
        ],
    )
    async def test_its_generations_carry_it(
        self, name: str, made_of: Mapping[str, Any], model_server: ModelServer
    ) -> None:
        step = answer(made_of["text"]) if "text" in made_of else answer_json(made_of["json"])
        model_server.script(*[step] * 3)
        root, prompts = root_span(), HousePrompts()
        async with open_model(model_server) as model:
            run = Run([model], limits=Limits(seconds=10), span=root, deps=Deps(prompts=prompts))
            library = FakeLibrary()
            look_up: dict[str, Callable[[], Awaitable[object]]] = {
                "documents-answer": lambda: answer_question("lees?", documents=library, run=run),
                "documents-quotes": lambda: find_quotes("lees", documents=library, run=run),
                "place-queries": lambda: find_places("WINE_BAR", "Bilbao", run=run),
                "refinement": lambda: refine_question("lees?", run=run),
            }
            if name == "place-queries":
                with pytest.raises(Exception, match="no 10 distinct"):
                    await look_up[name]()
            else:
                await look_up[name]()
        ref = PromptRef(name, 7, "production", is_fallback=False)
        assert {span.prompt for span in generations(root)} == {ref}
        system = sent(model_server, 0)["messages"][0]["content"]
        assert system.startswith(MARK)
        assert "{{" not in system

    async def test_quotes_of_an_older_prompt_are_not_taken_from_the_cache(
        self, model_server: ModelServer
    ) -> None:
        nothing = answer_json({"snippets": [], "summary": "Nothing.", "noResults": True})
        model_server.script(nothing, nothing)
        cache = QuoteCache()
        async with open_model(model_server) as model:
            found = [
                await find_quotes(
                    "lees",
                    run=Run([model], deps=Deps(prompts=prompts)),
                    documents=FakeLibrary(),
                    cache=cache,
                )
                for prompts in (REPOSITORY, REPOSITORY, HousePrompts(), HousePrompts())
            ]
        assert [each.cached for each in found] == [False, True, False, True]


def valid_text() -> Step:
    """An answer that needs no tool."""
    return answer_json(INFORMATIONAL)
