"""Prompts from Langfuse: fetched by its client in a thread, never on the way of a turn."""

import asyncio

import pytest

from agent.engine.run import Prompt, PromptRef
from agent.prompts import built_in_prompts
from agent.tracing.encoding import get_trace_encoder
from agent.tracing.langfuse_project import ManagedPrompts
from tests.doubles.otlp import Mode, OtlpReceiver
from tests.doubles.server import eventually
from tests.traces import project_of

GOOD = "Be brief.\n{{tool_rules}}\n{{schema}}\n{{guest_rules}}"
BETTER = "Be briefer.\n{{tool_rules}}\n{{schema}}\n{{guest_rules}}"
REPOSITORYS = built_in_prompts()["sommelier"]


def prompts_of(server: OtlpReceiver, label: str = "production") -> ManagedPrompts:
    return ManagedPrompts(lambda: get_trace_encoder(project_of(server)).client, label)


def in_langfuse(text: str, version: int, label: str = "production") -> Prompt:
    return Prompt(text, PromptRef("sommelier", version, label, is_fallback=False))


async def test_the_newest_version_in_langfuse_is_in_use_soon(
    otlp_receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.tracing.langfuse_project.REFRESH_SECONDS", 0.02)
    prompts = prompts_of(otlp_receiver)
    refreshing = asyncio.create_task(prompts.refresh())
    for version, text in enumerate((GOOD, BETTER), 1):
        otlp_receiver.save_prompt("sommelier", text)
        wanted = in_langfuse(text, version)
        await eventually(
            lambda: prompts.current["sommelier"] == wanted,  # noqa: B023
            seconds=30,
            otherwise=lambda: str(prompts.current["sommelier"].ref),
        )
    refreshing.cancel()
    await asyncio.wait([refreshing])


def test_every_prompt_is_asked_for_by_the_label(
    otlp_receiver: OtlpReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    otlp_receiver.save_prompt("sommelier", GOOD)
    otlp_receiver.save_prompt("sommelier", BETTER, "candidate")
    prompts = prompts_of(otlp_receiver, "candidate")
    prompts.fetch()
    assert prompts.current["sommelier"] == in_langfuse(BETTER, 2, "candidate")
    assert otlp_receiver.prompt_requests == [
        (name, "candidate") for name in built_in_prompts()
    ]
    otlp_receiver.prompts["sommelier"][1].labels.remove("candidate")
    prompts.fetch()
    assert prompts.current["sommelier"] == REPOSITORYS, "a label that is taken away"
    assert caplog.messages == []


def test_a_broken_version_never_reaches_a_turn_and_one_line_says_why(
    otlp_receiver: OtlpReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    prompts = prompts_of(otlp_receiver)
    otlp_receiver.save_prompt("sommelier", GOOD)
    for broken in (
        "Be brief, {{guest}}. {{tool_rules}}",
        [{"role": "system", "content": "x"}],
    ):
        prompts.fetch()
        otlp_receiver.save_prompt("sommelier", broken)
        prompts.fetch()
        assert prompts.current["sommelier"] == in_langfuse(GOOD, 1)
    otlp_receiver.save_prompt("sommelier", BETTER)
    prompts.fetch()
    assert prompts.current["sommelier"] == in_langfuse(BETTER, 4)
    said = "prompt sommelier: langfuse:{} is refused: {}; langfuse:1 stays in use"
    assert caplog.messages == [
        said.format(2, "it lacks {{guest_rules}}, {{schema}}"),
        said.format(3, "it is empty"),
    ]


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("503", "Langfuse answered HTTP 503: Out of order.; check LANGFUSE_BASE_URL"),
        ("other", ""),
    ],
)
def test_while_langfuse_is_in_trouble_the_last_good_one_stays_and_one_line_says_so(
    mode: Mode, said: str, otlp_receiver: OtlpReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    otlp_receiver.save_prompt("sommelier", GOOD)
    prompts = prompts_of(otlp_receiver)
    prompts.fetch()
    otlp_receiver.mode = mode
    for _ in range(2):
        prompts.fetch()
        assert prompts.current["sommelier"] == in_langfuse(GOOD, 1)
    (line,) = caplog.messages
    assert line.startswith(
        f"Prompts cannot be fetched, the last good ones stay: {said}"
    )
    otlp_receiver.mode = "ok"
    otlp_receiver.save_prompt("sommelier", BETTER)
    prompts.fetch()
    assert prompts.current["sommelier"] == in_langfuse(BETTER, 2)


async def test_a_server_that_never_answers_holds_up_no_turn(
    otlp_receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.tracing.langfuse_project.FETCH_SECONDS", 1)
    otlp_receiver.mode = "black_hole"
    prompts = prompts_of(otlp_receiver)
    refreshing = asyncio.create_task(prompts.refresh())
    await eventually(
        lambda: bool(otlp_receiver.prompt_requests),
        seconds=30,
        otherwise=lambda: "not asked",
    )
    assert prompts.current["sommelier"] == REPOSITORYS
    refreshing.cancel()
    await asyncio.wait([refreshing])
