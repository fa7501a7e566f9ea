"""Which prompt a turn was asked with stands on its generations; what was replayed is marked."""

from agent.documents.answer import answer_question
from agent.engine.run import Limits, Prompt, PromptRef, Run
from agent.prompts import built_in_prompts
from agent.tracing.records import SpanRecord, TraceRecord
from agent.turn import Deps
from tests.doubles.model_server import ModelServer, answer, answer_json
from tests.fakes import asked, fake_sommelier, root_span
from tests.faults.turns import QUESTION, search, valid
from tests.library import REFINED, SUR_LIE, FakeLibrary, open_model, sent

MARK = "As the house likes it."


def house_prompts() -> dict[str, Prompt]:
    """Every prompt of the repository with a sentence of the house in front, as version 7."""
    return {
        name: Prompt(
            f"{MARK}\n{prompt.text}",
            PromptRef(name, 7, "production", is_fallback=False),
        )
        for name, prompt in built_in_prompts().items()
    }


def generations(trace: TraceRecord) -> list[SpanRecord]:
    """The generations of a trace, in order."""
    return [span for span in trace.spans if span.kind == "generation"]


async def test_every_generation_of_a_turn_carries_its_one_prompt(
    model_server: ModelServer,
) -> None:
    prompts, root = house_prompts(), root_span()
    model_server.script(search(), answer("no"), valid())
    async with open_model(model_server) as model:
        run = Run(
            [model], limits=Limits(seconds=10), span=root, deps=Deps(prompts=prompts)
        )
        sommelier = fake_sommelier()
        await asked(sommelier, f"{QUESTION} Quote a definition.", run)
    ref = PromptRef("sommelier", 7, "production", is_fallback=False)
    assert [span.prompt for span in generations(root.trace)] == [ref] * 3
    systems = [
        sent(model_server, number)["messages"][0]["content"] for number in range(3)
    ]
    assert [system.count(MARK) for system in systems] == [1, 1, 1]
    known = root.record.metadata
    assert {key: known[key] for key in known if key.startswith("prompt")} == {
        "prompt_name": "sommelier",
        "prompt_version": "langfuse:7",
    }


async def test_look_ups_have_prompts_of_their_own(model_server: ModelServer) -> None:
    model_server.script(
        answer_json(REFINED), answer(f"Lees are yeast cells [{SUR_LIE.path}].")
    )
    root, prompts = root_span(), house_prompts()
    async with open_model(model_server) as model:
        run = Run(
            [model], limits=Limits(seconds=10), span=root, deps=Deps(prompts=prompts)
        )
        await answer_question("lees?", documents=FakeLibrary(), run=run, refine=True)
    names = [span.prompt and span.prompt.name for span in generations(root.trace)]
    assert names == ["refinement", "documents-answer"]
    for number in range(2):
        system = sent(model_server, number)["messages"][0]["content"]
        assert system.startswith(MARK)
        assert "{{" not in system
