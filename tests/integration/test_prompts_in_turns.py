"""Which prompt a turn was asked with stands on its generations; what was replayed is marked."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest

from agent.documents.answer import answer_question
from agent.documents.quotes import QuoteCache, find_quotes
from agent.documents.refine import refine_question
from agent.engine.limits import Limits
from agent.engine.run import Run
from agent.engine.span import Prompt, PromptRef
from agent.places.find import find_places
from agent.prompts import REPOSITORY, repository_prompts
from agent.sommelier.service import Sommelier
from agent.turn import Deps
from tests.doubles.model_server import ModelServer, Step, answer, answer_json
from tests.fakes import FakeCatalogue, SpanRecord, asked, root_span
from tests.faults.turns import QUESTION, search, valid
from tests.library import SUR_LIE, FakeLibrary, open_model, sent

MARK = "As the house likes it."
NOTHING = answer_json({"snippets": [], "summary": "Nothing.", "noResults": True})


@dataclass
class HousePrompts:
    """Every prompt of the repository with a sentence of the house in front, as version 7."""

    asked: list[str] = field(default_factory=list)
    version: int = 7

    def get(self, name: str) -> Prompt:
        self.asked.append(name)
        ref = PromptRef(name, self.version, "production", is_fallback=False)
        return Prompt(f"{MARK}\n{repository_prompts()[name].text}", ref)


def generations(span: SpanRecord) -> list[SpanRecord]:
    """The generations of a trace, in order."""
    own = [span] if span.kind == "generation" else []
    return own + [found for child in span.children for found in generations(child)]


async def test_every_generation_of_a_turn_carries_its_one_prompt(model_server: ModelServer) -> None:
    prompts, root = HousePrompts(), root_span()
    model_server.script(search(), answer("no"), valid())
    async with open_model(model_server) as model:
        run = Run([model], limits=Limits(seconds=10), span=root, deps=Deps(prompts=prompts))
        sommelier = Sommelier(catalogue=FakeCatalogue())
        await asked(sommelier, f"{QUESTION} Quote a definition.", run)
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


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("documents-answer", answer(f"Lees are yeast cells [{SUR_LIE.path}].")),
        ("documents-quotes", NOTHING),
        ("place-queries", answer_json([f"wine bar Bilbao {word}" for word in "abcdefghij"])),
        ("refinement", answer("no")),
    ],
)
async def test_a_look_up_has_a_prompt_of_its_own(
    name: str, step: Step, model_server: ModelServer
) -> None:
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
        fails = pytest.raises(Exception, match="no 10 distinct")
        with fails if name == "place-queries" else nullcontext():
            await look_up[name]()
    ref = PromptRef(name, 7, "production", is_fallback=False)
    assert {span.prompt for span in generations(root)} == {ref}
    system = sent(model_server, 0)["messages"][0]["content"]
    assert system.startswith(MARK)
    assert "{{" not in system


async def test_quotes_of_an_older_prompt_are_not_taken_from_the_cache(
    model_server: ModelServer,
) -> None:
    model_server.script(NOTHING, NOTHING)
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
    assert [quotes.cached for quotes in found] == [False, True, False, True]
