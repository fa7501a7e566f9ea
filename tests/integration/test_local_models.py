"""Local models: finding a server, and turns with a small model that cannot call tools."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.contract import OutputContract
from agent.engine.llm import LLMService
from agent.engine.loop import generate_agentic_response
from agent.engine.messages import Conversation, Message
from agent.engine.run import Run
from agent.i18n import translate_into
from bot.resources import run_of
from config import Settings
from tests.commands import sommelier_here
from tests.doubles.model_server import ModelServer, Step, answer, answer_json, error
from tests.fakes import CHINON, fake_sommelier
from tests.integration.test_console import PseudoTerminal, pipe

WINE_ID = re.compile(r"^([a-z0-9-]+): ", re.MULTILINE)


@dataclass
class SmallModel:
    """A model that writes about the wines in its prompt."""

    words: str = "It is what you ask for."

    def __call__(self, body: dict[str, Any]) -> Step:
        found = WINE_ID.findall(str(body["messages"][-1]["content"]))
        wines = [
            {"wine_id": wine_id, "description": self.words} for wine_id in found[:2]
        ]
        return answer_json({"wines": wines})


@pytest.fixture
def port(model_server: ModelServer) -> str:
    return model_server.base_url.rpartition(":")[2].partition("/")[0]


def small(
    environment: dict[str, str], server: ModelServer, **settings: str
) -> dict[str, str]:
    """Return an environment in which a small model answers."""
    return (
        environment
        | {"OPENAI_BASE_URL": server.base_url, "LLM_PROFILE": "small"}
        | settings
    )


def test_a_small_model_writes_about_wines_that_were_found_first_in_one_request_a_turn(
    environment: dict[str, str], model_server: ModelServer
) -> None:
    model_server.default = SmallModel()
    messages = (
        "a red for lamb under 25 euros",
        translate_into("en", "wish_cheaper"),
        translate_into("en", "wish_why"),
        "Weißwein zu Fisch",
    )
    typed = "\n".join(messages)
    done = pipe(typed, small(environment, model_server))
    assert done.stdout.count("It is what you ask for.") == 6
    assert "*" not in done.stdout
    assert "Red wine · lamb · under €25" in done.stdout
    assert (
        "Weißwein" in done.stdout
    )  # by the rules: the notes of the wines are in English
    assert len(model_server.requests) == 3
    first, cheaper, why_first = (request.json for request in model_server.requests)
    shown = WINE_ID.findall(cheaper["messages"][-1]["content"])[:2]
    assert WINE_ID.findall(why_first["messages"][-1]["content"]) == shown
    found = WINE_ID.findall(first["messages"][-1]["content"])
    wine = first["response_format"]["json_schema"]["schema"]["properties"]["wines"][
        "items"
    ]
    assert wine["properties"]["wine_id"]["enum"] == found  # it can name no other
    assert len(found) == 4
    assert "tools" not in first
    assert "(Red wine · lamb · under €25)" in first["messages"][-1]["content"]
    assert "lamb" in cheaper["messages"][-1]["content"]
    assert model_server.violations == []


@pytest.mark.parametrize(
    ("words", "is_shown"),
    [
        ("Fresh fruit and fine tannin for the lamb.", True),
        ("Soft Merlot fruit for the lamb.", False),
        ("A crisp white for the lamb.", False),
        ("Frisch und saftig, das passt gut zum Lamm.", False),
        ("Red wine · medium-bodied · goes with lamb.", False),
        (("Fresh for the lamb, and " * 10)[:220], False),
    ],
)
async def test_a_description_in_another_language_or_of_another_wine_is_replaced_by_the_rules(
    words: str, is_shown: bool, model_server: ModelServer
) -> None:
    model_server.default = SmallModel(words)
    llm = LLMService(model="m", base_url=model_server.base_url)
    sommelier = fake_sommelier(uses_small_model=True)
    reply = await sommelier.answer("a red for lamb", Run([llm]))
    await llm.close()
    assert reply.outcome == "answered"
    assert reply.text.startswith("*Red wine · lamb*")
    assert (words in reply.text) is is_shown
    assert ("Red wine · Cabernet Franc · goes with lamb" in reply.text) is not is_shown


async def test_the_name_of_a_wine_before_its_description_is_left_out(
    model_server: ModelServer,
) -> None:
    model_server.default = SmallModel(f"{CHINON.label}: Fine tannin for the lamb.")
    llm = LLMService(model="m", base_url=model_server.base_url)
    sommelier = fake_sommelier(uses_small_model=True)
    reply = await sommelier.answer("a red for lamb", Run([llm]))
    await llm.close()
    assert "\nFine tannin for the lamb." in reply.text


def test_a_small_model_is_not_asked_to_explain_or_under_a_concern(
    environment: dict[str, str], model_server: ModelServer
) -> None:
    typed = "what does sur lie mean?\nI am pregnant, something for dinner with fish\n"
    done = pipe(typed, small(environment, model_server))
    assert model_server.requests == []
    assert "Sur lie" in done.stdout  # the passage, word for word, with its source
    assert "[1] " in done.stdout
    assert "alcohol" in done.stdout


def test_a_local_server_is_offered_once(
    environment: dict[str, str], model_server: ModelServer, port: str
) -> None:
    terminal = PseudoTerminal(environment | {"LLM_LOCAL_PORTS": port})
    terminal.wait_for("A model server runs on this machine. Let gpt-4o answer?")
    terminal.type("n\n")
    terminal.wait_for("you › ")
    assert terminal.leave("\x04") == 0
    without_ports = {
        name: environment[name] for name in environment if name != "LLM_LOCAL_PORTS"
    }
    again = PseudoTerminal(without_ports)
    again.wait_for("you › ")
    assert "Let gpt-4o answer?" not in again.shown
    assert again.leave("\x04") == 0


def test_a_local_server_is_found_by_doctor_and_saved_by_sommelier_model(
    environment: dict[str, str], model_server: ModelServer, port: str
) -> None:
    model_server.default = answer_json({"colour": "white", "is_served_cold": True})
    env = Path(environment["HOME"], ".env")
    env.write_text("# mine\nLLM_MODEL=other\nLEGAL_AGE=21\n")
    found = sommelier_here("doctor", environment=environment, LLM_LOCAL_PORTS=port)
    saved = sommelier_here("model", "--port", port, environment=environment)
    checked = sommelier_here("doctor", environment=environment)
    assert (
        "A model server runs here with gpt-4o: run `sommelier model` to use it"
        in found.stdout
    )
    assert "gpt-4o answers from now on (.env; profile full" in saved.stdout
    assert env.read_text().splitlines() == [
        *("# mine", "LEGAL_AGE=21"),
        f"OPENAI_BASE_URL=http://127.0.0.1:{port}/v1",
        "LLM_MODEL=gpt-4o",
    ]
    assert "gpt-4o gave a valid answer after 1 request(s)" in checked.stdout


@pytest.mark.parametrize(
    ("name", "is_small"),
    [("Qwen2.5-Coder-1.5B", True), ("llama3.1:8b", False), ("mixtral-8x7b", False)],
)
def test_the_size_in_a_models_name_chooses_the_profile(
    name: str, is_small: bool
) -> None:
    assert Settings(llm_model=name).is_small == is_small


@pytest.mark.parametrize(
    ("request_seconds", "turn_seconds"), [(20, 120), (60, 120), (600, 1200)]
)
def test_a_slow_model_has_time_for_two_requests(
    request_seconds: float, turn_seconds: float
) -> None:
    settings = Settings(llm_timeout_seconds=request_seconds)
    assert run_of(settings, {}).limits.seconds == turn_seconds


REFUSALS = (
    (400, "'max_tokens' is too large: 1500. The maximum context length is 4096 tokens"),
    (
        500,
        "the request exceeds the available context size. try increasing the context size",
    ),
    (400, "prompt is too long: 9000 tokens > 4096 maximum"),
)


@pytest.mark.parametrize(("status", "message"), REFUSALS)
async def test_a_conversation_that_is_too_long_is_shortened_and_answered(
    status: int, message: str, model_server: ModelServer
) -> None:
    def refuse_long(body: dict[str, Any]) -> Step:
        return (
            error(status, {"error": {"message": message}})
            if len(body["messages"]) > 4
            else OK
        )

    model_server.default = refuse_long
    llm = LLMService(model="m", base_url=model_server.base_url)
    run = Run([llm], history=conversation(8))
    response = await generate_agentic_response(
        "And now?", run=run, contract=OutputContract(str)
    )
    assert response.text == "Fine."
    assert response.usage.requests == len(model_server.requests) == 2
    sent = model_server.requests[-1].json["messages"]
    assert [message["role"] for message in sent] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert sent[-1]["content"] == "And now?"
    await llm.close()


OK = answer("Fine.")


def conversation(count: int) -> list[Message]:
    """Return a number of earlier messages, the first of them by the user."""
    roles = ["user", "assistant"]
    return [
        {"role": roles[index % 2], "content": f"{index // 2} {'word ' * 20}"}
        for index in range(count)
    ]


@given(st.lists(st.integers(0, 400), max_size=30))
def test_a_shortened_conversation_begins_with_the_user_and_ends_with_the_question(
    lengths: list[int],
) -> None:
    roles = ["user", "assistant"]
    history: list[Message] = [
        {"role": roles[index % 2], "content": "é" * length}
        for index, length in enumerate(lengths)
    ]
    chat = Conversation("Be brief.", history, "Which one?")
    assert chat.shorten() == bool(lengths)
    first, *remaining, last = chat.messages
    assert (first["content"], last["content"]) == ("Be brief.", "Which one?")
    assert remaining == history[len(history) - len(remaining) :]
    assert not remaining or remaining[0]["role"] == "user"
