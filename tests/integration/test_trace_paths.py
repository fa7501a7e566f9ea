"""The whole trace of every path a turn can take, decoded from what Langfuse gets."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from agent.engine.llm import LLMService
from agent.engine.run import Limits, Run
from agent.i18n import translate
from agent.tracing.records import compute_keyed_hash
from agent.turn import Reply
from bot.telegram.sender import ButtonRows
from bot.turn import Question, Turn
from db.engine import Sessions
from db.repositories.people import MessageRepository
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import (
    ModelServer,
    answer,
    answer_json,
    hang,
    refusal,
    tool_call,
)
from tests.doubles.otlp import OtlpReceiver, Span, Tree
from tests.doubles.server import eventually
from tests.fakes import CHINON, fake_sommelier
from tests.running import at_rest, running

QUESTION = "a red for lamb with Gugelhupf"
SEARCH = tool_call("search_wines", {"styles": ["red"], "foods": ["lamb"]})
WINES = [{"wine_id": CHINON.id, "description": "Fresh and fine with lamb."}]
VALID = answer_json(
    {
        "response_type": "recommendation",
        "intro": "With lamb:",
        "wines": WINES,
        "closing": "",
    }
)
EMPTY = answer_json({"response_type": "recommendation", "intro": "Here:", "wines": []})

PLAN: Tree = ("llm.plan", "generation", [])
TOOL: Tree = ("tool.search_wines", "tool", [("retrieve.wines", "retriever", [])])
ATTEMPT: list[Tree] = [
    ("llm.answer", "generation", []),
    ("guard.output", "guardrail", []),
]
FALLBACK: Tree = ("retrieve.wines", "retriever", [])
SEND: Tree = ("telegram.send", "span", [])


@dataclass
class World:
    """The bot with a small catalogue, a model and Langfuse."""

    bot_api: BotApi
    model_server: ModelServer
    langfuse: OtlpReceiver
    messages: MessageRepository

    async def answer(
        self,
        *steps: Any,
        models: tuple[str, ...] = ("gpt-4o",),
        seconds: float = 120,
        **given: Any,
    ) -> str:
        """Return the answer to `QUESTION`, once its trace has arrived."""
        self.model_server.script(*steps)
        base_url = self.model_server.base_url
        made = [
            LLMService(model=name, api_key="sk-test", base_url=base_url)
            for name in models
        ]
        run = Run(made, limits=Limits(seconds=seconds))
        sommelier = fake_sommelier()
        given |= {"run": run, "langfuse": self.langfuse}
        async with running(self.bot_api, sommelier, self.messages, **given) as bot:
            self.bot_api.say(QUESTION)
            sent = self.bot_api.calls_of
            await eventually(
                lambda: bool(sent("sendMessage")), seconds=20, otherwise=str
            )
            await at_rest(bot)
        for model in made:
            await model.close()
        return "\n".join(self.bot_api.sent())

    def root(self, *children: Tree) -> Span:
        """Return the root of the only trace, which has this tree; its spans say whose it is."""
        entered: Tree = ("guard.input", "guardrail", [])
        assert self.langfuse.tree() == ("turn", "agent", [entered, *children, SEND])
        root = self.langfuse.span("turn")
        key = SecretStr("sommelier")
        whose = (
            compute_keyed_hash("chat", CHAT, key),
            compute_keyed_hash("user", CHAT, key),
        )
        for span in self.langfuse.spans:
            assert (span.session, span.user) == whose
            assert root.start <= span.start
            assert span.end <= root.end
        return root

    def spans(self, name: str) -> list[Span]:
        found = (span for span in self.langfuse.spans if span.name == name)
        return sorted(found, key=lambda span: span.start)

    @property
    def scores(self) -> dict[str, Any]:
        return self.langfuse.scores_of(self.langfuse.span("turn").trace_id)


@pytest.fixture
def world(
    bot_api: BotApi,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
    sqlite_sessions: Sessions,
) -> World:
    return World(
        bot_api, model_server, otlp_receiver, MessageRepository(sqlite_sessions)
    )


async def test_an_answer_after_a_tool_call(world: World) -> None:
    final_answer = answer(VALID.message["content"], usage=(100, 20), cached=40)  # type: ignore[index]
    text = await world.answer(SEARCH, final_answer)
    root = world.root(PLAN, TOOL, *ATTEMPT)
    assert (root.level, root.input) == ("DEFAULT", QUESTION)
    assert "Fresh and fine with lamb." in text
    final = world.langfuse.span("llm.answer")
    assert final.usage == {"input": 60, "input_cached_tokens": 40, "output": 20}
    assert final.cost == {
        "input": pytest.approx(60 * 2.5 / 1e6),
        "input_cached_tokens": pytest.approx(40 * 1.25 / 1e6),
        "output": pytest.approx(20 * 10 / 1e6),
        "total": pytest.approx((60 * 2.5 + 40 * 1.25 + 20 * 10) / 1e6),
    }
    assert isinstance(final.input, dict)
    assert final.input["tools"][0]["function"]["name"] == "search_wines"
    assert final.input["messages"][-1]["role"] == "tool"
    assert str(final.metadata["prompt_version"]).startswith("repository:")
    assert (final.metadata["prompt_name"], final.metadata["mode"]) == (
        "sommelier",
        "prompt",
    )
    assert root.tags == ["mode:prompt", "model:gpt-4o"]
    sending = world.langfuse.span("telegram.send")
    assert "Fresh and fine with lamb." in str(sending.output)
    assert (sending.metadata["messages"], sending.metadata["failed_requests"]) == (1, 0)
    assert world.scores == {"structured_retries": 0, "outcome": "answered"}


async def test_the_trace_of_a_retried_answer_has_each_attempt_and_its_error(
    world: World,
) -> None:
    await world.answer(SEARCH, answer("{not json"), EMPTY, VALID)
    root = world.root(PLAN, TOOL, *ATTEMPT * 3)
    assert (root.level, root.metadata["retried"], root.metadata["retry_count"]) == (
        *("DEFAULT", True, 2),
    )
    assert root.metadata["error_types"] == ["invalid_json", "semantic"]
    first, second, third = world.spans("llm.answer")
    assert (first.output, first.metadata["error_type"]) == ("{not json", "invalid_json")
    assert (second.metadata["error_type"], second.level) == ("semantic", "WARNING")
    # The model is told the reason in the next request.
    assert str(second.metadata["reason"]) in str(third.input)
    assert third.metadata.keys().isdisjoint({"error_type", "reason"})
    errors, modes = (
        ["error:invalid_json", "error:semantic"],
        ["mode:prompt", "mode:json_object"],
    )
    assert root.tags == ["retried", *errors, *modes, "model:gpt-4o"]
    assert [span.metadata["attempt"] for span in (first, second, third)] == [0, 1, 2]
    assert all(span.usage and span.cost for span in (first, second, third))
    assert world.scores["structured_retries"] == 2


async def test_a_refusal_is_told_as_such_and_not_retried(world: World) -> None:
    text = await world.answer(refusal("I won't."))
    root = world.root(*ATTEMPT)
    assert text == root.output == translate("declined")
    assert (root.metadata["outcome"], root.metadata["retry_count"]) == ("refused", 0)
    assert world.langfuse.span("llm.answer").output == "I won't."


async def test_the_fallback_answers_after_the_deadline(world: World) -> None:
    await world.answer(SEARCH, hang(30), seconds=3)
    root = world.root(PLAN, TOOL, PLAN, FALLBACK)
    assert (root.level, root.metadata["outcome"]) == ("WARNING", "fallback")
    assert root.metadata["error_types"] == ["deadline"]
    late = world.spans("llm.plan")[1]
    assert (late.level, late.metadata["error_type"]) == ("ERROR", "DeadlinePassed")


async def test_a_turn_that_breaks_each_time_is_one_trace_with_all_it_did(
    world: World,
) -> None:
    def buttons(
        turn: Turn, question: Question, reply: Reply, links: object
    ) -> ButtonRows:
        raise ValueError("a secret text")

    text = await world.answer(models=(), buttons=buttons)
    root = world.root(FALLBACK, *[("guard.input", "guardrail", []), FALLBACK] * 2)
    assert text == root.output == translate("set_aside")
    assert (root.level, root.metadata["outcome"]) == ("ERROR", "failed")
    assert root.metadata["error_types"] == ["ValueError"]
    assert world.scores["outcome"] == "failed"
    assert [span.metadata["superseded"] for span in world.spans("guard.input")] == [
        True
    ] * 3
    assert "secret" not in repr(world.langfuse.spans)
