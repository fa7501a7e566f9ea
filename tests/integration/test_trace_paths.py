"""The whole trace of every path a turn can take, decoded from what Langfuse gets."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.engine.limits import Limits
from agent.engine.llm import LLMService
from agent.engine.run import Run
from agent.i18n import translate
from agent.sommelier.service import Sommelier
from agent.turn import Reply
from bot.outgoing import Rows
from bot.question import Question
from bot.updates.lanes import Lanes
from db.engine import Sessions
from db.repositories.people import MessageRepository
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import (
    ModelServer,
    answer,
    answer_json,
    error,
    hang,
    refusal,
    tool_call,
)
from tests.doubles.otlp import OtlpReceiver, Span, Tree
from tests.doubles.server import eventually
from tests.fakes import CHINON, FakeCatalogue
from tests.running import running

QUESTION = "a red for lamb"
SEARCH = tool_call("search_wines", {"styles": ["red"], "foods": ["lamb"]})
WINES = [{"wine_id": CHINON.id, "description": "Fresh and fine with lamb."}]
VALID = answer_json(
    {"response_type": "recommendation", "intro": "With lamb:", "wines": WINES, "closing": ""}
)
EMPTY = answer_json({"response_type": "recommendation", "intro": "Here:", "wines": []})

ENTER: Tree = ("guard.input", "guardrail", [])
PLAN: Tree = ("llm.plan", "generation", [])
ANSWER: Tree = ("llm.answer", "generation", [])
TOOL: Tree = ("tool.search_wines", "tool", [("retrieve.wines", "retriever", [])])
GUARD: Tree = ("guard.output", "guardrail", [])
SEND: Tree = ("telegram.send", "span", [])
ANSWERED_BY = ["mode:prompt", "model:gpt-4o"]
ATTEMPT = [ANSWER, GUARD]
FALLBACK: list[Tree] = [("retrieve.wines", "retriever", [])]


@pytest.fixture
async def messages(tmp_path: Path) -> AsyncIterator[MessageRepository]:
    engine = await migrated_sqlite(tmp_path / "test.sqlite3")
    yield MessageRepository(Sessions(engine))
    await engine.dispose()


@asynccontextmanager
async def traced(
    bot_api: BotApi,
    otlp: OtlpReceiver,
    messages: MessageRepository,
    models: Sequence[LLMService],
    limits: Limits | None = None,
) -> AsyncIterator[Lanes]:
    """The bot with a small cellar and these models; what is traced has arrived at the end."""
    sommelier = Sommelier(catalogue=FakeCatalogue())
    run = Run(models, limits=limits or Limits())
    try:
        async with running(bot_api, sommelier, messages, run=run, langfuse=otlp) as queue:
            yield queue
    finally:
        for each in models:
            await each.close()


def model(server: ModelServer, name: str = "gpt-4o") -> LLMService:
    return LLMService(model=name, api_key="sk-test", base_url=server.base_url)


async def over(queue: Lanes) -> None:
    """Return when no turn runs any more."""
    await eventually(lambda: not queue.active, seconds=10, otherwise=lambda: "a turn still runs")


async def answer_of(
    bot_api: BotApi,
    otlp: OtlpReceiver,
    messages: MessageRepository,
    models: Sequence[LLMService],
    limits: Limits | None = None,
) -> str:
    """What a person gets for `QUESTION`."""
    async with traced(bot_api, otlp, messages, models, limits) as queue:
        bot_api.say(QUESTION)
        (text,) = await bot_api.wait_for_message(timeout=20)
        await over(queue)
    return text


def expect(otlp: OtlpReceiver, children: list[Tree]) -> Span:
    """The root of the only trace, which has this tree; every span says whose it is."""
    entered = [] if ENTER in children else [ENTER]
    assert otlp.tree() == ("turn", "agent", [*entered, *children, SEND])
    assert {span.session for span in otlp.spans} == {f"chat-{CHAT}"}
    assert {span.user for span in otlp.spans} == {f"user-{CHAT}"}
    root = otlp.span("turn")
    assert all(root.start <= span.start and span.end <= root.end for span in otlp.spans), (
        "a span outlives its turn"
    )
    return root


def scores(otlp: OtlpReceiver) -> dict[str, object]:
    return {score["name"]: score["value"] for score in otlp.scores}


def spans(otlp: OtlpReceiver, name: str) -> list[Span]:
    return sorted((span for span in otlp.spans if span.name == name), key=lambda span: span.start)


async def test_success(
    bot_api: BotApi,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
    messages: MessageRepository,
) -> None:
    model_server.script(SEARCH, answer(VALID.message["content"], usage=(100, 20), cached=40))  # type: ignore[index]
    text = await answer_of(bot_api, otlp_receiver, messages, [model(model_server)])
    root = expect(otlp_receiver, [PLAN, TOOL, ANSWER, GUARD])
    assert (root.level, root.input) == ("DEFAULT", QUESTION)
    assert "Fresh and fine with lamb." in text
    assert root.metadata["outcome"] == "answered"
    assert (root.metadata["llm_calls"], root.metadata["tool_calls"]) == (2, 1)
    final = otlp_receiver.span("llm.answer")
    assert final.usage == {"input": 60, "input_cached_tokens": 40, "output": 20}
    assert final.cost == {
        "input": pytest.approx((60 * 2.5 + 40 * 1.25) / 1e6),
        "output": pytest.approx(20 * 10 / 1e6),
    }
    assert isinstance(final.input, dict)
    assert [each["function"]["name"] for each in final.input["tools"]][:1] == ["search_wines"]
    assert final.input["messages"][-1]["role"] == "tool"
    assert {span.attributes["langfuse.trace.name"] for span in otlp_receiver.spans} == {"chat"}
    assert root.tags == ANSWERED_BY
    assert str(final.metadata["prompt_version"]).startswith("repository:")
    assert final.metadata["prompt_name"] == "sommelier"
    assert final.metadata["mode"] == "prompt"
    assert scores(otlp_receiver) == {
        "structured_retries": 0,
        "outcome": "answered",
        "grounding": 1,
    }


async def test_retry(
    bot_api: BotApi,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
    messages: MessageRepository,
) -> None:
    model_server.script(SEARCH, answer("{not json"), EMPTY, VALID)
    await answer_of(bot_api, otlp_receiver, messages, [model(model_server)])
    root = expect(otlp_receiver, [PLAN, TOOL, *ATTEMPT, *ATTEMPT, *ATTEMPT])
    assert root.level == "DEFAULT"
    assert (root.metadata["retried"], root.metadata["retry_count"]) == ("yes", 2)
    assert root.metadata["error_types"] == "invalid_json,semantic"
    first, second, third = spans(otlp_receiver, "llm.answer")
    assert (first.output, first.metadata["error_type"]) == ("{not json", "invalid_json")
    assert (second.metadata["error_type"], second.level) == ("semantic", "WARNING")
    # Why it was not valid is what the model was told in the next request.
    assert str(second.metadata["reason"]) in str(third.input)
    assert "reason" not in third.metadata
    errors, modes = ["error:invalid_json", "error:semantic"], ["mode:prompt", "mode:json_object"]
    assert root.tags == ["retried", *errors, *modes, "model:gpt-4o"]
    assert (root.metadata["model"], root.metadata["fallback"]) == ("gpt-4o", "no")
    assert scores(otlp_receiver)["first_error"] == "invalid_json"
    assert "error_type" not in third.metadata
    assert [each.metadata["attempt"] for each in (first, second, third)] == [0, 1, 2]
    assert all(each.usage and each.cost for each in (first, second, third))
    assert scores(otlp_receiver)["structured_retries"] == 2


async def test_refusal(
    bot_api: BotApi,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
    messages: MessageRepository,
) -> None:
    model_server.script(refusal("I won't."))
    text = await answer_of(bot_api, otlp_receiver, messages, [model(model_server)])
    root = expect(otlp_receiver, [ANSWER, GUARD])
    assert (text, root.output) == (translate("declined"), translate("declined"))
    assert (root.metadata["outcome"], root.metadata["retry_count"]) == ("refused", 0)
    assert otlp_receiver.span("llm.answer").output == "I won't."


async def test_fallback_model(
    bot_api: BotApi,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
    messages: MessageRepository,
) -> None:
    model_server.script(error(401), SEARCH, VALID)
    models = [model(model_server, "gpt-4.1"), model(model_server)]
    await answer_of(bot_api, otlp_receiver, messages, models)
    root = expect(otlp_receiver, [PLAN, PLAN, TOOL, ANSWER, GUARD])
    assert (root.level, root.metadata["outcome"]) == ("DEFAULT", "answered")
    failed, asked = spans(otlp_receiver, "llm.plan")
    assert (failed.level, failed.metadata["error_type"]) == ("ERROR", "ModelRejected")
    assert (failed.metadata["model"], asked.metadata["model"]) == ("gpt-4.1", "gpt-4o")
    assert (root.metadata["model"], root.metadata["fallback"]) == ("gpt-4o", "yes")
    assert root.tags == ["fallback", *ANSWERED_BY]


async def test_deadline(
    bot_api: BotApi,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
    messages: MessageRepository,
) -> None:
    model_server.script(SEARCH, hang(30))
    limits = Limits(seconds=3)
    await answer_of(bot_api, otlp_receiver, messages, [model(model_server)], limits)
    root = expect(otlp_receiver, [PLAN, TOOL, PLAN, *FALLBACK])
    assert (root.metadata["outcome"], root.metadata["error_types"]) == ("fallback", "deadline")
    late = spans(otlp_receiver, "llm.plan")[1]
    assert (late.level, late.metadata["error_type"]) == ("ERROR", "DeadlinePassed")


async def test_send_failure(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, messages: MessageRepository
) -> None:
    bot_api.fail("sendMessage", 403, "Forbidden: bot was blocked by the user", times=5)
    async with traced(bot_api, otlp_receiver, messages, []) as queue:
        bot_api.say(QUESTION)
        await eventually(lambda: bool(bot_api.calls_of("sendMessage")), seconds=10, otherwise=str)
        await over(queue)
    root = expect(otlp_receiver, FALLBACK)
    send = otlp_receiver.span("telegram.send")
    assert (send.level, send.metadata["error"]) == ("ERROR", "unreachable")
    # Whoever filters by level finds who got nothing.
    assert (root.level, root.metadata["send_error"]) == ("ERROR", "unreachable")
    assert root.metadata["outcome"] == "answered"


async def test_a_turn_that_breaks_each_time_is_one_trace_with_all_it_did(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, messages: MessageRepository
) -> None:
    def buttons(question: Question, reply: Reply) -> Rows:
        raise ValueError("a secret text")

    sommelier = Sommelier(catalogue=FakeCatalogue())
    further: dict[str, Any] = {"buttons": buttons, "langfuse": otlp_receiver}
    async with running(bot_api, sommelier, messages, **further) as queue:
        bot_api.say(QUESTION)
        assert await bot_api.wait_for_message(timeout=20) == [translate("set_aside")]
        await over(queue)
    root = expect(otlp_receiver, FALLBACK)
    assert (root.level, root.output) == ("ERROR", translate("set_aside"))
    assert (root.metadata["outcome"], root.metadata["error_types"]) == ("failed", "ValueError")
    assert scores(otlp_receiver)["outcome"] == "failed"
    assert "secret" not in repr(otlp_receiver.spans)


async def test_a_turn_that_fails_for_good_is_one_trace(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, messages: MessageRepository
) -> None:
    class Broken(MessageRepository):
        async def forget(self, chat_id: int, *, thread_id: int = 0) -> int:
            raise OSError("a secret path")

    async with traced(bot_api, otlp_receiver, Broken(messages._sessions), []) as queue:
        bot_api.say("/new")
        assert await bot_api.wait_for_message(timeout=20) == [translate("set_aside")]
        await over(queue)
    assert otlp_receiver.tree() == ("turn", "agent", [SEND])
    root = otlp_receiver.span("turn")
    assert (root.level, root.input, root.output) == ("ERROR", "/new", translate("set_aside"))
    assert (root.metadata["outcome"], root.metadata["error_types"]) == ("failed", "OSError")
    assert scores(otlp_receiver)["outcome"] == "failed"
    assert "secret" not in repr(otlp_receiver.spans)
