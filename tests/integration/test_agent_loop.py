"""The turn, from message to validated answer: R-001 to R-007 of the structured-output research.

Real client, scripted server. R-005 is in `tests/unit/test_semantics.py`.
"""

import json
from collections.abc import Awaitable
from typing import Any

import pytest

import agent
from agent.documents.answer import answer_question
from agent.documents.quotes import find_quotes
from agent.engine.contract import OutputContract
from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.messages import LLMResponse
from agent.engine.parsing import ParseResult
from agent.engine.run import Limits, Run
from agent.engine.tools import ToolOutput, tool
from agent.engine.wire import Dialect
from agent.language import truncate_at_boundary
from agent.senses.pictures import VISION, read_pictures
from agent.senses.sent_files import to_data_url
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine_tools import wine_tools
from agent.turn import Deps
from config import load_settings
from tests.doubles.model_server import (
    ModelServer,
    Step,
    answer,
    answer_json,
    refusal,
    tool_call,
)
from tests.fakes import CHINON, FakeCatalogue, children, names, root_span
from tests.faults.turns import (
    INFORMATIONAL,
    INVENTED,
    QUESTION,
    VALID,
    named,
    reply_to,
    search,
    service,
    turn,
    valid,
)
from tests.library import FakeLibrary
from tests.pictures import drawn

SHOWN = (
    "For your lamb:\n\n**1. Bernard Baudry Chinon Les Granges 2020**\n"
    "Chinon, France · €16.50\nFresh, with fine tannin for the meat."
)


def last_messages(server: ModelServer, count: int = 2) -> list[dict[str, str]]:
    messages: list[dict[str, str]] = server.requests[-1].json["messages"]
    return messages[-count:]


def assert_answered(response: AgenticResponse[SommelierResponse]) -> None:
    assert (response.outcome, response.text, named(response)) == (
        "answered",
        SHOWN,
        [CHINON.id],
    )


EMPTY = {
    "response_type": "recommendation",
    "intro": "Here:",
    "wines": [],
    "closing": "",
}
TRUNCATED = answer('{"response_type": "rec', "length")


@pytest.mark.parametrize(
    ("invalid", "error", "told"),
    [
        pytest.param(
            answer("I like it!"), "invalid_json", "holds no JSON", id="r003_1"
        ),
        pytest.param(TRUNCATED, "truncated", "cut off at the token limit", id="r003_5"),
        pytest.param(answer_json(EMPTY), "semantic", "wines", id="r003_6"),
    ],
)
async def test_r003_an_invalid_answer_is_fed_back_and_the_retry_succeeds(
    invalid: Step, error: str, told: str, model_server: ModelServer
) -> None:
    model_server.script(search(), invalid, valid())
    response = await turn(service(model_server))
    assert_answered(response)
    assert (response.retry_count, response.error_types) == (1, (error,))
    assert told in last_messages(model_server)[1]["content"]
    limits = [
        request.json["max_completion_tokens"] for request in model_server.requests
    ]
    assert limits == [1500, 1500, 3000 if error == "truncated" else 1500]


async def test_r003_3_and_4_a_valid_answer_and_a_refusal_cost_no_retry(
    model_server: ModelServer,
) -> None:
    model_server.script(search(), valid(), refusal("I cannot help with that."))
    answered, refused = [await turn(service(model_server)) for _ in range(2)]
    assert_answered(answered)
    assert (answered.retry_count, named(answered)) == (0, [CHINON.id])
    assert (refused.text, refused.outcome) == ("", "refusal")
    assert len(model_server.requests) == 3


async def test_r003_7_the_trace_holds_retry_count_and_error_types(
    model_server: ModelServer,
) -> None:
    model_server.script(search(), answer("{"), answer_json(INVENTED), valid())
    root = root_span()
    response = await turn(service(model_server), span=root)
    assert (response.retry_count, response.error_types) == (
        2,
        ("invalid_json", "grounding"),
    )
    assert names(root.trace) == [
        "llm.plan",
        "tool.search_wines",
        *["llm.answer", "guard.output"] * 3,
    ]
    answers = [child for child in children(root.trace) if child.name == "llm.answer"]
    assert [child.metadata.get("error_type") for child in answers] == [
        "invalid_json",
        "grounding",
        None,
    ]
    assert [child.output for child in answers[:1]] == ["{"]
    assert all(child.usage and child.usage.prompt_tokens for child in answers)
    for child in answers:
        assert child.model == "gpt-4o"
        assert child.model_parameters == {
            "max_tokens": 1500,
            "response_format": "json_object",
        }
        assert child.cost_usd
        assert (
            child.metadata.items() >= {"mode": "json_object", "model": "gpt-4o"}.items()
        )
    assert [child.level for child in answers] == ["WARNING", "WARNING", "DEFAULT"]


async def test_r002_the_wording_is_the_documented_one(
    model_server: ModelServer,
) -> None:
    model_server.script(search(), answer_json({"intro": "Hi"}), valid())
    await turn(service(model_server))
    raw, said = last_messages(model_server)
    assert raw == {"role": "assistant", "content": '{"intro": "Hi"}'}
    assert said == {
        "role": "user",
        "content": "Your previous response failed validation: response_type: Field required. "
        "Please respond again with valid JSON matching the required schema. Do not include any "
        "text outside the JSON object.",
    }


@pytest.mark.parametrize("finish", ["length", "error"])
async def test_r002_a_response_that_was_cut_off_is_shown_raw_and_clipped(
    finish: str, model_server: ModelServer
) -> None:
    begun = '{"response_type": "recommendation", "intro": "For your'
    long = f"{begun} {'lamb ' * 2000}"
    model_server.script(search(), answer(begun, finish), answer(long, finish), valid())
    await turn(service(model_server))
    shown = [
        request.json["messages"][-2]["content"] for request in model_server.requests[2:]
    ]
    assert shown[0] == begun
    assert shown[1].startswith(begun)
    assert len(shown[1]) == 4_000


async def test_r002_thoughts_before_an_invalid_answer_are_not_shown_again(
    model_server: ModelServer,
) -> None:
    thinking = answer('<think>A red, I think.</think>{"intro": "Hi"}')
    model_server.script(search(), thinking, valid())
    await turn(service(model_server))
    raw, _ = last_messages(model_server)
    assert raw == {"role": "assistant", "content": '{"intro": "Hi"}'}


async def test_r001_a_retry_keeps_the_tool_results_and_runs_no_tool_again(
    model_server: ModelServer,
) -> None:
    catalogue = FakeCatalogue()
    model_server.script(search(), answer("{"), valid())
    assert_answered(await turn(service(model_server), catalogue=catalogue))
    roles = [message["role"] for message in model_server.requests[-1].json["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert len(catalogue.searched) == 1


async def test_r003_7_the_root_of_a_turn_holds_retry_count_and_error_types(
    model_server: ModelServer,
) -> None:
    model_server.script(search(), answer("{"), answer_json(INVENTED), valid())
    _, trace = await reply_to(QUESTION, server=model_server)
    metadata = trace.root.metadata
    assert (metadata["retried"], metadata["retry_count"]) == (True, 2)
    assert metadata["error_types"] == ["invalid_json", "grounding"]


def test_r004_a_result_has_a_text_ids_and_an_error() -> None:
    result = ParseResult[str]("Hello", ["w1"])
    assert (result.text, result.wine_ids, result.error) == ("Hello", ["w1"], None)
    assert result.ok
    assert not ParseResult("  ").ok
    assert not ParseResult("Hello", [], "broken").ok
    assert not ParseResult("Hello", [], "").ok
    assert agent.ParseResult is ParseResult


def test_r006_history_ends_at_a_boundary_within_its_limit() -> None:
    paragraphs = f"{'First. ' * 200}\n\n{'no end ' * 200}"
    assert truncate_at_boundary(paragraphs, 2000) == ("First. " * 200).strip()
    assert truncate_at_boundary("First. " * 400, 2000).endswith("First.")
    assert truncate_at_boundary("Short.", 2000) == "Short."


@pytest.mark.parametrize(
    "invalid",
    [
        [answer(f"no JSON {number}") for number in range(3)],
        [answer_json({"wines": number}) for number in range(3)],
        [answer_json(INFORMATIONAL | {"intro": " " * number}) for number in range(3)],
        [answer_json(INVENTED | {"closing": f"{number}."}) for number in range(3)],
        [answer("{" * (number + 1), "length") for number in range(3)],
        [answer(" " * number) for number in range(3)],
    ],
    ids=["no JSON", "schema", "semantic", "grounding", "truncated", "empty"],
)
async def test_r007_and_r003_2_every_error_is_retried_alike_and_the_result_is_empty(
    invalid: list[Step], model_server: ModelServer
) -> None:
    model_server.script(search(), *invalid)
    response = await turn(service(model_server))
    assert (response.text, response.answer, response.outcome) == ("", None, "exhausted")
    assert (response.retry_count, len(model_server.requests)) == (2, 4)


def test_r007_the_setting_is_two_by_default() -> None:
    assert load_settings(None, {}).structured_output_max_retries == 2
    assert Limits().structured_output_max_retries == 2


async def test_r007_the_setting_holds_for_every_contract(
    model_server: ModelServer,
) -> None:
    llm = service(model_server)
    library = FakeLibrary()
    run = Run(
        [llm],
        limits=Limits(structured_output_max_retries=3),
        deps=Deps(models={VISION: llm}),
    )

    async def picture() -> str:
        return to_data_url(drawn(["Weinkarte"]))

    async def requests_of(asked: Awaitable[object]) -> int:
        before = len(model_server.requests)
        await asked
        return len(model_server.requests) - before

    model_server.default = answer("{")
    assert await requests_of(turn(llm, limits=run.limits)) == 4
    assert (
        await requests_of(find_quotes("lees", documents=library, run=run.for_turn()))
        == 4
    )
    assert (
        await requests_of(read_pictures([picture], run.for_turn(), FakeCatalogue()))
        == 4
    )
    model_server.default = answer("Lees glow [methods/magic.md].")
    assert (
        await requests_of(
            answer_question("lees", documents=library, run=run.for_turn())
        )
        == 4
    )
    await llm.close()


async def test_a_model_that_skipped_the_search_may_call_it_after_feedback(
    model_server: ModelServer,
) -> None:
    model_server.script(valid(), search(), valid())
    response = await turn(service(model_server))
    assert_answered(response)
    assert all("tools" in request.json for request in model_server.requests)


async def test_the_valid_part_of_an_answer_is_salvaged(
    model_server: ModelServer,
) -> None:
    mixed = VALID | {"wines": [*VALID["wines"], *INVENTED["wines"]]}
    model_server.script(search(), *[answer_json(mixed)] * 3)
    response = await turn(service(model_server))
    assert (response.outcome, response.text) == ("salvaged", SHOWN)


@pytest.mark.parametrize("mode", ["prompt", "json_object", "json_schema"])
async def test_tools_history_and_format_are_sent(
    mode: Any, model_server: ModelServer
) -> None:
    model_server.strict = True
    model_server.script(search(), answer("no"), valid(), answer_json(INFORMATIONAL))
    llm = service(model_server, dialect=Dialect.of_openai(mode))
    first = await turn(llm)
    roles = [message["role"] for message in first.messages]
    assert roles == ["user", "assistant", "tool", "assistant"]
    said = json.loads(first.messages[-1]["content"])
    assert SommelierResponse.model_validate(said) == first.answer
    second = await turn(llm, history=first.messages, message="And tannin?")
    assert second.outcome == "answered"
    sent = model_server.requests[-1].json
    assert sent["messages"][1:] == [
        *first.messages,
        {"role": "user", "content": "And tannin?"},
    ]
    tools = [tool["function"]["name"] for tool in sent["tools"]]
    assert tools == [tool.name for tool in wine_tools(FakeCatalogue())]
    wanted = sent.get("response_format", {"type": "prompt"})
    assert wanted["type"] == mode
    if mode == "json_schema":
        assert wanted["json_schema"]["name"] == "SommelierResponse"
        assert wanted["json_schema"]["strict"] is True


@pytest.mark.parametrize("run", [Run(), None])
async def test_a_run_needs_a_model(run: Any) -> None:
    with pytest.raises(TypeError, match="run must have a model"):
        await generate_agentic_response("Hi", run=run, contract=SOMMELIER)


async def test_a_model_of_ones_own_that_breaks_makes_way_for_the_next(
    model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        model, base_url = "own", None

        async def generate_with_tools(self, *_: object) -> LLMResponse:
            raise RuntimeError("secret")

    model_server.script(answer("Hello"))
    second, contract = service(model_server), OutputContract(str)
    run = Run([Broken(), second])
    response = await generate_agentic_response("Hi", run=run, contract=contract)
    alone = await generate_agentic_response(
        "Hi", run=Run([Broken()]), contract=contract
    )
    await second.close()
    assert (response.text, run.usage.requests) == ("Hello", 2)
    assert (alone.outcome, alone.error) == (
        "model_error",
        "the model failed (RuntimeError)",
    )
    assert "secret" not in caplog.text


async def test_effects_come_in_order_equal_ones_once_and_ground_nothing(
    model_server: ModelServer,
) -> None:
    def note(text: str) -> ToolOutput:
        """Note a text."""
        return ToolOutput("noted", effects=({"noted": text},))

    calls = [tool_call("note", {"text": text}) for text in ("b", "a", "b")]
    model_server.script(*calls, refusal("No."))
    llm = service(model_server)
    response = await generate_agentic_response(
        "Note it", run=Run([llm]), contract=OutputContract(str), tools=[tool(note)]
    )
    await llm.close()
    assert (response.outcome, response.sources) == ("refusal", {})
    assert response.effects == ({"noted": "b"}, {"noted": "a"})
