"""The product as it is run, as a process; Telegram, a model and Langfuse are doubled."""

import logging
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.doubles.bot_api import TOKEN, BotApi
from tests.doubles.model_server import ModelServer, answer_json, error, hang, tool_call
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import eventually
from tests.processes import Process
from tests.running import whole_bot

CHAT = 4711
WINE = "trimbach-riesling-reserve-2024"
ANSWER = {
    "response_type": "recommendation",
    "intro": "For your trout & almonds:",
    "wines": [{"wine_id": WINE, "description": "Dry and <fresh>."}],
    "closing": "",
}


SEARCH = tool_call(
    "search_wines", {"styles": ["white"], "foods": ["fish"], "text": "Trimbach"}
)


def telegram_at(bot_api: BotApi) -> dict[str, str]:
    """The settings of a bot there, with Telegram's limits lifted: nobody is told to wait there."""
    known = {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_BASE_URL": bot_api.base_url}
    return known | {"TELEGRAM_MESSAGES_PER_SECOND": "0"}


def known_to(model_server: ModelServer) -> dict[str, str]:
    return {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": model_server.base_url}


def traced_to(langfuse: OtlpReceiver) -> dict[str, str]:
    return {
        "LANGFUSE_PUBLIC_KEY": langfuse.public_key,
        "LANGFUSE_SECRET_KEY": langfuse.secret_key,
        "LANGFUSE_BASE_URL": langfuse.base_url,
    }


@contextmanager
def killed(
    bot_api: BotApi, environment: dict[str, str], **settings: str
) -> Iterator[Process]:
    """`sommelier run` with these settings, killed while it works."""
    with Process(
        "run", environment=environment | telegram_at(bot_api) | settings
    ) as process:
        yield process


@contextmanager
def running(
    bot_api: BotApi, environment: dict[str, str], **settings: str
) -> Iterator[Process]:
    """`sommelier run` with these settings; it is told to stop at the end, and must."""
    with killed(bot_api, environment, **settings) as process:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0, process.said
        assert TOKEN not in process.said
        assert "Traceback" not in process.said


@asynccontextmanager
async def running_here(
    bot_api: BotApi, environment: dict[str, str], **settings: str
) -> AsyncIterator[None]:
    """As `running`, but in this process: more than a second sooner."""
    file = Path(environment["XDG_DATA_HOME"]) / "sommelier" / "sommelier.sqlite3"
    database = {"DATABASE_URL": f"sqlite+aiosqlite:///{file}"}
    tracebacks = Tracebacks()
    logging.getLogger().addHandler(tracebacks)
    try:
        async with whole_bot(environment | telegram_at(bot_api) | database | settings):
            yield
    finally:
        logging.getLogger().removeHandler(tracebacks)
    assert tracebacks.said == []


class Tracebacks(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.said.append(record.getMessage())


async def test_a_message_is_answered_by_the_model_and_traced(
    bot_api: BotApi,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
    environment: dict[str, str],
) -> None:
    empty = {"response_type": "recommendation", "intro": "Here:", "wines": []}
    model_server.script(SEARCH, answer_json(empty), answer_json(ANSWER))
    bot_api.say("Something for trout with Gugelhupf?", chat_id=CHAT)
    settings = known_to(model_server) | traced_to(otlp_receiver)
    with running(bot_api, environment, **settings):
        texts = await bot_api.wait_for_message(1, chat_id=CHAT)
    assert len(texts) == 1
    assert texts[0].startswith("For your trout & almonds:\n\n1. Trimbach")
    assert texts[0].endswith("Dry and <fresh>.")
    await otlp_receiver.wait_for_spans(10)
    await otlp_receiver.wait_for_scores(2)
    root = otlp_receiver.span("turn")
    assert root.input == "Something for trout with Gugelhupf?"
    assert root.metadata["outcome"] == "answered"
    assert (root.metadata["retried"], root.metadata["retry_count"]) == (True, 1)
    assert root.metadata["error_types"] == ["semantic"]
    assert Counter(span.name for span in otlp_receiver.spans) == {
        **dict.fromkeys(
            ("guard.input", "llm.plan", "retrieve.wines", "telegram.send"), 1
        ),
        **{"tool.search_wines": 1, "turn": 1, "guard.output": 2, "llm.answer": 2},
    }
    for span in otlp_receiver.spans:
        first_token = span.attributes.get("langfuse.observation.completion_start_time")
        assert (first_token is not None) == span.name.startswith("llm.")
    whose = {(span.session, span.user) for span in otlp_receiver.spans}
    assert len(whose) == 1
    assert str(CHAT) not in str(whose)
    assert {score["name"]: score["value"] for score in otlp_receiver.scores} == {
        "structured_retries": 1,
        "outcome": "answered",
    }


async def test_a_turn_that_was_cut_off_in_the_middle_is_one_trace(
    bot_api: BotApi,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
    environment: dict[str, str],
) -> None:
    model_server.script(SEARCH, hang(60), SEARCH, answer_json(ANSWER))
    settings = known_to(model_server) | traced_to(otlp_receiver)
    bot_api.say("Something for trout with Gugelhupf?", chat_id=CHAT)
    with killed(bot_api, environment, **settings):
        await eventually(lambda: len(model_server.requests) == 2)
    assert otlp_receiver.spans == []
    async with running_here(bot_api, environment, **settings):
        await bot_api.wait_for_message(1, chat_id=CHAT)
    assert len(bot_api.sent(CHAT)) == 1
    assert len(model_server.requests) == 4
    root = otlp_receiver.span("turn")
    assert root.metadata["resumed"] == 1
    assert "resumed" in root.tags
    assert otlp_receiver.tree()[0] == "turn"
    assert len(otlp_receiver.spans) == 8


async def test_a_trace_outlives_a_bot_that_is_killed_while_langfuse_is_away(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, environment: dict[str, str]
) -> None:
    settings = traced_to(otlp_receiver)
    otlp_receiver.mode = "503"
    bot_api.say("Something for trout with Gugelhupf?", chat_id=CHAT)
    tried = "POST /api/public/otel/v1/traces"
    with killed(bot_api, environment, **settings):
        await bot_api.wait_for_message(1, chat_id=CHAT)
        await eventually(lambda: tried in otlp_receiver.requests)
    assert (otlp_receiver.spans, otlp_receiver.scores) == ([], [])
    otlp_receiver.mode = "ok"
    async with running_here(bot_api, environment, **settings):
        await otlp_receiver.wait_for_scores(2)
        await otlp_receiver.wait_for_spans(
            1
        )  # the kill may have come while they were sent
    root = otlp_receiver.span("turn")
    assert root.metadata["outcome"] == "answered"
    assert {score["traceId"] for score in otlp_receiver.scores} == {root.trace_id}


async def test_a_dead_model_still_ends_in_wines(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.default = error(500)
    bot_api.say("a sparkling under 30 for oysters", chat_id=CHAT)
    async with running_here(bot_api, environment, **known_to(model_server)):
        texts = await bot_api.wait_for_message(1, chat_id=CHAT)
    assert "≈ €" in texts[0]
    assert "oysters" in texts[0]


async def test_with_nothing_but_a_token_the_fallback_answers(
    bot_api: BotApi, empty_environment: dict[str, str]
) -> None:
    bot_api.say("a red for lamb under 25 euros", chat_id=CHAT)
    with running(bot_api, empty_environment):
        texts = await bot_api.wait_for_message(1, chat_id=CHAT)
    assert "Red wine · lamb · under €25" in texts[0]
    assert "without AI" in texts[0]
