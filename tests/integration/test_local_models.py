"""A model on one's own machine: found, tried out, told less, and helped where it calls no tools."""

import json
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.contract import OutputContract
from agent.engine.conversation import Conversation, tokens_of
from agent.engine.llm import LLMService
from agent.engine.loop import generate_agentic_response
from agent.engine.messages import Message
from agent.engine.run import Run
from agent.prompts import REPOSITORY
from agent.sommelier.answer import SMALL_SOMMELIER
from agent.sommelier.wine_tools import wine_tools
from config import ModelSettings
from tests.commands import sommelier
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, Step, answer, answer_json, error, tool_call
from tests.fakes import FakeCatalogue
from tests.integration.test_console import PseudoTerminal, piped

LOOKED_UP = "This was looked up for you"
WINE_ID = re.compile(r'wine_id[\\": ]+([\w-]+)')


@dataclass
class SmallModel:
    """A model as people run them at home: it knows some ways of asking, and one wine list."""

    tools: bool = True
    modes: tuple[str, ...] = ("json_schema", "json_object", "prompt")
    format_stops_tools: bool = False

    def __call__(self, body: dict[str, Any]) -> Step:
        mode = body.get("response_format", {}).get("type", "prompt")
        said = json.dumps(body["messages"])
        if body.get("tools"):
            stopped = self.format_stops_tools and mode != "prompt"
            if self.tools and not stopped and "w7" in said:
                return tool_call("count_bottles", {"wine_id": "w7"})
            return answer("I would have to look that up.")
        if mode not in self.modes:
            return answer("With oysters? White, of course, and cold!")
        if "oysters" in said and LOOKED_UP not in said:
            return answer_json({"dish": "oysters", "colour": "white", "serve_cold": True})
        return answer_json(self._recommendation(said))

    def _recommendation(self, said: str) -> dict[str, Any]:
        found = WINE_ID.findall(said.partition(LOOKED_UP)[2])[:1]
        wines = [{"wine_id": each, "description": "It is what you ask for."} for each in found]
        kind = "recommendation" if wines else "informational"
        return {"response_type": kind, "intro": "Gladly.", "wines": wines}


@pytest.fixture
def port(model_server: ModelServer) -> str:
    return model_server.base_url.rpartition(":")[2].partition("/")[0]


def test_a_model_without_tools_is_taken_and_answers_in_one_request_a_turn(
    environment: dict[str, str], model_server: ModelServer, port: str
) -> None:
    model_server.default = SmallModel(tools=False, modes=("prompt",))
    done = sommelier("model", "--port", port, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "gpt-4o answers from now on" in done.stdout
    written = Path(environment["HOME"], ".env")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert "LLM_MODEL=gpt-4o" in written.read_text().replace("'", "").split()
    small = environment | {"LLM_PROFILE": "small", "LLM_RESPONSE_MODE": "prompt"}
    model_server.requests.clear()
    answered = piped("a red for lamb under 25 euros\na cheaper one?\n", small)
    assert answered.stdout.count("It is what you ask for.") == 2
    assert len(model_server.requests) == 2
    for request in model_server.requests:
        assert "tools" not in request.json
        assert LOOKED_UP in request.json["messages"][-1]["content"]
    assert model_server.violations == []


@pytest.mark.parametrize(("reply", "port_written"), [("y", False), ("n", True)])
def test_a_server_that_is_found_is_offered_once(
    reply: str,
    port_written: bool,
    environment: dict[str, str],
    model_server: ModelServer,
    port: str,
) -> None:
    model_server.default = SmallModel()
    here = environment | {"LLM_LOCAL_PORTS": port}
    terminal = PseudoTerminal(here)
    terminal.wait_for("A model server runs on this machine. Let gpt-4o answer?")
    terminal.type(f"{reply}\n")
    terminal.wait_for("you › ")
    assert terminal.leave("\x04") == 0
    written = Path(environment["HOME"], ".env").read_text()
    assert ("LLM_LOCAL_PORTS" in written) == port_written
    assert ("OPENAI_BASE_URL" in written) != port_written
    asked = len(model_server.requests)
    again = PseudoTerminal(environment | ({} if port_written else {"LLM_LOCAL_PORTS": port}))
    again.wait_for("you › ")
    assert "Let gpt-4o answer?" not in again.shown
    assert again.leave("\x04") == 0
    assert len(model_server.requests) == asked


def test_doctor_names_a_server_that_runs_here_and_tries_the_one_that_is_set(
    environment: dict[str, str], model_server: ModelServer, port: str
) -> None:
    found = sommelier("doctor", environment=environment, LLM_LOCAL_PORTS=port)
    assert "A model server runs here with gpt-4o: `sommelier model` takes it" in found.stdout
    model_server.default = answer_json({"colour": "white", "is_served_cold": True})
    tried = sommelier("doctor", environment=environment, OPENAI_BASE_URL=model_server.base_url)
    assert "answers: a valid answer after 1 request(s)" in tried.stdout


@pytest.mark.parametrize(
    ("name", "is_small"),
    [("qwen2.5:1.5b", True), ("Qwen2.5-Coder-3B-Instruct", True), ("llama3.1:8b", False),
     ("mixtral-8x7b", False), ("gpt-4o-mini", False), ("llama3.2:latest", False)],
)  # fmt: skip
def test_the_size_in_a_models_name_chooses_the_profile(name: str, is_small: bool) -> None:
    assert ModelSettings.model_validate({"LLM_MODEL": name}).is_small == is_small


def test_what_listens_at_a_usual_port_and_is_no_model_server_is_passed_over(
    environment: dict[str, str], bot_api: BotApi
) -> None:
    port = bot_api.base_url.rpartition(":")[2]
    done = sommelier("model", "--port", port, environment=environment)
    assert done.returncode == 1
    assert done.stdout == f"No model server with a model answers at port {port}.\n"


def test_a_small_model_that_is_held_to_a_schema_can_name_found_wines_alone(
    environment: dict[str, str], model_server: ModelServer
) -> None:
    model_server.default = SmallModel(tools=False)
    chosen = {"LLM_RESPONSE_MODE": "json_schema", "LLM_PROFILE": "small"}
    set_up = environment | chosen | {"OPENAI_BASE_URL": model_server.base_url}
    piped("a red for lamb under 25 euros\nhello there\n", set_up)
    of_wines, of_words = (
        each.json["response_format"]["json_schema"]["schema"]["properties"]
        for each in model_server.requests
    )
    looked_up = str(model_server.requests[0].json["messages"][-1]["content"])
    ids = of_wines["wines"]["items"]["properties"]["wine_id"]["enum"]
    assert ids == list(dict.fromkeys(WINE_ID.findall(looked_up)))
    assert len(ids) > 4
    assert "wines" not in of_words
    assert of_words["response_type"]["enum"] == ["informational", "off_topic"]


def test_the_library_is_searched_for_a_small_model_that_calls_no_tools(
    environment: dict[str, str], model_server: ModelServer
) -> None:
    model_server.default = SmallModel(tools=False)
    chosen = {"LLM_RESPONSE_MODE": "prompt", "LLM_PROFILE": "small"}
    set_up = environment | chosen | {"OPENAI_BASE_URL": model_server.base_url}
    piped("what does sur lie mean?\nhello there\n", set_up)
    of_library, of_house = (
        str(each.json["messages"][-1]["content"]).partition(LOOKED_UP)[2]
        for each in model_server.requests
    )
    assert "stays in contact with the fine lees" in of_library
    assert "Tell me a dish, a colour or a price" in of_house


def test_to_a_small_model_little_is_said() -> None:
    prompt = REPOSITORY.get("sommelier-small").text
    tools = [json.dumps(each.schema.wire) for each in wine_tools(FakeCatalogue(), small=True)]
    assert len(tools) == 2
    # A token has some four characters of English, and at least three of JSON.
    assert sum(map(len, [prompt, SMALL_SOMMELIER.output.text, *tools])) / 3 < 1800


REFUSALS = (
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 5100.",
    "the request exceeds the available context size. try increasing the context size",
    "prompt is too long: 9000 tokens > 4096 maximum",
    "'max_tokens' is too large: 1500. This model's maximum context length is 4096 tokens",
)


@pytest.mark.parametrize("said", REFUSALS)
@pytest.mark.parametrize("status", [400, 500])
async def test_a_talk_that_is_too_long_is_shortened_and_answered(
    said: str, status: int, model_server: ModelServer
) -> None:
    def refusing(body: dict[str, Any]) -> Step:
        return error(status, {"error": {"message": said}}) if len(body["messages"]) > 4 else OK

    model_server.default = refusing
    llm = LLMService(model="m", base_url=model_server.base_url)
    run = Run([llm], history=talk(8))
    response = await generate_agentic_response("And now?", run=run, contract=OutputContract(str))
    assert response.text == "Fine."
    assert response.ledger.requests == len(model_server.requests) == 2
    sent = model_server.requests[-1].json["messages"]
    assert [each["role"] for each in sent] == ["system", "user", "assistant", "user"]
    assert sent[-1]["content"] == "And now?"
    await llm.close()


async def test_where_the_context_is_known_the_first_request_fits(model_server: ModelServer) -> None:
    model_server.default = OK
    llm = LLMService(model="m", base_url=model_server.base_url, context_tokens=2048)
    run = Run([llm], history=talk(100))
    await generate_agentic_response("And now?", run=run, contract=OutputContract(str))
    (request,) = model_server.requests
    assert sum(map(tokens_of, request.json["messages"])) <= 2048 - run.limits.answer_tokens
    assert request.json["messages"][-2]["content"].startswith("49 ")
    await llm.close()


OK = answer("Fine.")


def talk(messages: int) -> list[Message]:
    """What was said before, from the person's first message on."""
    roles = ["user", "assistant"]
    return [
        {"role": roles[at % 2], "content": f"{at // 2} {'word ' * 20}"} for at in range(messages)
    ]


@given(
    lengths=st.lists(st.integers(0, 400), max_size=30),
    room=st.integers(0, 3000),
    shorten=st.booleans(),
)
def test_what_is_left_of_a_talk_begins_with_the_person_and_ends_with_the_question(
    lengths: list[int], room: int, shorten: bool
) -> None:
    roles = ["user", "assistant"]
    history: list[Message] = [
        {"role": roles[at % 2], "content": "é" * length} for at, length in enumerate(lengths)
    ]
    chat = Conversation("Be brief.", history, "Which one?")
    if shorten:
        chat.shorten()
    else:
        chat.fit(room)
    first, *left, last = chat.as_sent(0)
    assert (first["content"], last["content"]) == ("Be brief.", "Which one?")
    assert left == history[len(history) - len(left) :]
    assert not left or left[0]["role"] == "user"
    assert shorten or not left or sum(map(tokens_of, chat.messages)) <= room
