"""The package for other bots: its names, streams, rules and models of one's own."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import agent
from agent import (
    AgenticResponse,
    Draft,
    Evidence,
    LLMRequest,
    LLMResponse,
    LLMService,
    Message,
    OutputContract,
    Run,
    generate_agentic_response,
    stream_agentic_response,
)
from tests.doubles.model_server import ModelServer, answer, paced
from tests.doubles.server import eventually

GUIDE = Path(__file__).parents[2] / "docs" / "embedding.md"


def test_the_names_are_sorted_and_all_that_the_guide_uses() -> None:
    def as_isort(name: str) -> tuple[bool, bool, str]:
        return not name.isupper(), name[0].islower(), name

    assert agent.__all__ == sorted(agent.__all__, key=as_isort)
    assert all(hasattr(agent, name) for name in agent.__all__)
    imported = re.findall(r"(?m)^from agent import (.+)$", GUIDE.read_text())
    assert {name for names in imported for name in names.split(", ")} <= set(
        agent.__all__
    )
    assert Path(agent.__file__).with_name("py.typed").exists()


def service(server: ModelServer) -> LLMService:
    return LLMService(model="m", base_url=server.base_url)


async def test_a_turn_is_a_stream_of_drafts_and_the_response_and_ends_if_nobody_listens(
    model_server: ModelServer,
) -> None:
    llm, contract = service(model_server), OutputContract(str)

    def stream() -> AsyncIterator[Draft | AgenticResponse[str]]:
        run = Run([llm])
        return stream_agentic_response(
            "?", run=run, contract=contract, interval_seconds=0.01
        )

    model_server.script(paced(answer("It is warm. It is dry. Take nothing."), 100))
    *drafts, response = [part async for part in stream()]
    assert isinstance(response, AgenticResponse)
    assert response.text == "It is warm. It is dry. Take nothing."
    assert [draft.text for draft in drafts] == ["It is warm.", "It is warm. It is dry."]
    model_server.script(paced(answer("It is warm. " * 200), 100))
    left = stream()
    async for _ in left:
        break
    await left.aclose()  # type: ignore[attr-defined]
    await eventually(
        lambda: model_server.abandoned_streams == 1,
        seconds=10,
        otherwise=lambda: "still there",
    )
    await llm.close()


async def test_rules_may_be_coroutines_and_feedback_on_plain_text_speaks_of_no_json(
    model_server: ModelServer,
) -> None:
    async def short(text: str) -> str | None:
        await asyncio.sleep(0)
        return "too long" if len(text) > 10 else None

    async def known(text: str, evidence: Evidence) -> str | None:
        await asyncio.sleep(0)
        return None if text in {"Sun.", "Rain."} else "it is not known"

    model_server.script(
        answer("It is warm and sunny."), answer("Snow."), answer("Sun.")
    )
    llm = service(model_server)
    contract = OutputContract(str, semantic=short, grounding=known)
    response = await generate_agentic_response(
        "Rome?", run=Run([llm]), contract=contract
    )
    await llm.close()
    assert (response.text, response.error_types) == ("Sun.", ("semantic", "grounding"))
    feedback = model_server.requests[1].json["messages"][-1]["content"]
    assert feedback.startswith("Your previous response failed validation: too long.")
    assert "JSON" not in feedback


class Parrot:
    """A model of one's own, which has the members of the protocol and no others."""

    model, base_url = "parrot", None

    async def generate_with_tools(
        self, messages: Sequence[Message], request: LLMRequest
    ) -> LLMResponse:
        return LLMResponse(str(messages[-1]["content"]), model=self.model)


async def test_a_model_of_ones_own_answers() -> None:
    run = Run([Parrot()])
    response = await generate_agentic_response(
        "Hello!", run=run, contract=OutputContract(str)
    )
    assert response.text == "Hello!"
