"""/ask, /quotes and /find in Telegram."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent.engine.run import Limits
from agent.i18n import translate
from agent.markdown import NOTE_SYMBOL
from bot.app import App
from db.engine import Sessions
from db.repositories.people import MessageRepository
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import ModelServer, Step, answer, answer_json
from tests.doubles.server import JsonObject
from tests.fakes import fake_sommelier, names
from tests.library import (
    MUSCADET,
    OYSTERS,
    REFINED,
    FakeLibrary,
    open_model,
    sent,
    snippet,
)
from tests.running import RecordingTracer, Sources, running

LEES = "Lees are mostly dead yeast cells [methods/sur-lie.md]."
FAST = Limits(seconds=10, model_tries=1, structured_output_max_retries=1)


@dataclass
class LookUpBot:
    """A bot with a library, and with a model that answers `steps` if there are any."""

    bot_api: BotApi
    model_server: ModelServer
    messages: MessageRepository
    tracer: RecordingTracer = field(default_factory=RecordingTracer)

    @asynccontextmanager
    async def open(
        self, *steps: Step, library: FakeLibrary | None = None, **sources: Any
    ) -> AsyncIterator[App]:
        self.model_server.script(*steps)
        sommelier = fake_sommelier()
        async with open_model(self.model_server) as model:
            models = [model] if steps else []
            all_sources = Sources(
                documents=library or FakeLibrary(),
                models=models,
                limits=FAST,
                **sources,
            )
            async with running(
                self.bot_api, sommelier, self.messages, self.tracer, sources=all_sources
            ) as bot:
                yield bot

    async def ask(
        self, text: str, *steps: Step, replies: int = 1, **sources: Any
    ) -> list[str]:
        """Send a message to the bot and return its replies."""
        async with self.open(*steps, **sources):
            self.bot_api.say(text)
            return await self.bot_api.wait_for_message(replies)

    @property
    def messages_in_chat(self) -> list[JsonObject]:
        return self.bot_api.messages(CHAT)


@pytest.fixture
def bot(
    bot_api: BotApi, model_server: ModelServer, sqlite_sessions: Sessions
) -> LookUpBot:
    return LookUpBot(bot_api, model_server, MessageRepository(sqlite_sessions))


def buttons(message: JsonObject) -> list[JsonObject]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button for row in rows for button in row]


def marks(message: JsonObject) -> list[str]:
    return [entity["type"] for entity in message.get("entities", [])]


async def test_an_answer_has_footnotes_with_titles_and_collapsed_passages(
    bot: LookUpBot,
) -> None:
    (reply,) = await bot.ask("/ask What are lees?", answer(LEES))
    assert reply.startswith(
        "Lees are mostly dead yeast cells [1].\n\nSources\n[1] Sur lie · "
    )
    assert reply.count("Lees are mostly dead   yeast cells.") == 1
    assert "methods/sur-lie.md" not in reply
    (message,) = bot.messages_in_chat
    assert marks(message) == ["bold", "expandable_blockquote"]
    assert [button["text"] for button in buttons(message)] == ["👍", "👎"]
    (turn,) = bot.tracer.turns
    assert bot.tracer.inputs == ["/ask What are lees?"]
    expected = [
        "guard.input",
        "retrieve.documents",
        "llm.answer",
        "guard.output",
        "telegram.send",
    ]
    assert names(turn) == expected
    assert (turn.root.metadata["outcome"], turn.root.metadata["llm_calls"]) == (
        "answered",
        1,
    )
    assert str(turn.root.output).startswith("Lees are mostly dead yeast cells [1].")


async def test_without_a_model_the_best_passages_are_shown_with_a_note(
    bot: LookUpBot,
) -> None:
    (reply,) = await bot.ask("/ask When may Muscadet be bottled?")
    announcement = translate("best_passages", count=1)
    assert reply.startswith(f"{announcement}\n\n{MUSCADET.text} [1]")
    assert reply.endswith(f"\n\n{NOTE_SYMBOL} {translate('documents_no_model')}")
    assert "[1] Sur lie · Muscadet" in reply
    assert reply.count(MUSCADET.text) == 1
    assert [button["text"] for button in buttons(bot.messages_in_chat[0])] == [
        "👍",
        "👎",
    ]


async def test_a_question_is_refined_on_request_and_the_refined_one_is_shown(
    bot: LookUpBot,
) -> None:
    question = "What *are* lees,\n> and [why]?"
    (reply,) = await bot.ask(
        f"/ask {question} --refine", answer_json(REFINED), answer(LEES)
    )
    assert reply.startswith(
        f"I also searched for: {REFINED['refined_query']}\n\nLees are"
    )
    assert f"QUESTION: {question}" in sent(bot.model_server)["messages"][1]["content"]


async def test_invalid_look_ups_are_answered_with_one_sentence(bot: LookUpBot) -> None:
    replies = {
        "/ask ?!": translate("ask_usage"),
        f"/ask {'x' * 1001}": translate("question_too_long"),
        "/quotes": translate("quotes_usage"),
        "/find": translate("find_usage"),
        "/find wine bar": translate("find_where", name="Wine bar", what="wine bar"),
        f"/find wine bar {'x' * 121}": translate("place_too_long"),
        "/ask What are lees?": translate("no_documents"),
        "/quotes lees": translate("no_documents"),
    }
    async with bot.open(library=FakeLibrary(())):
        for text in replies:
            bot.bot_api.say(text)
        assert await bot.bot_api.wait_for_message(len(replies)) == [*replies.values()]


async def test_each_quote_is_a_message_and_the_models_words_are_marked(
    bot: LookUpBot,
) -> None:
    first, second = "lees are mostly dead yeast", OYSTERS.text
    model_answer = {
        "snippets": [snippet(first), snippet(second, OYSTERS)],
        "summary": "Lees are old yeast.",
        "noResults": False,
    }
    replies = await bot.ask(
        "/quotes lees with oysters", answer_json(model_answer), replies=3
    )
    relevance = "The model's words: It says so."
    assert replies == [
        f"1. Sur lie · What the lees are\nLees are mostly dead   yeast\n{relevance}",
        f"2. Wine with oysters · Section 1 of 1\n{second}\n{relevance}",
        "The model's words: Lees are old yeast.",
    ]
    assert [marks(message) for message in bot.messages_in_chat] == [
        ["bold", "blockquote", "italic"],
        ["bold", "blockquote", "italic"],
        ["italic"],
    ]


async def test_without_a_provider_there_are_ten_links(bot: LookUpBot) -> None:
    (reply,) = await bot.ask("/find wine bars in Lyon")
    beginning = (
        f"Wine bar · Lyon\n\n{translate('no_place_search')}\n\n1. wine bar Lyon\n2. "
    )
    assert reply.startswith(beginning)
    (message,) = bot.messages_in_chat
    links = [
        entity["url"] for entity in message["entities"] if entity["type"] == "text_link"
    ]
    assert len(links) == 10
    assert all(link.startswith("https://duckduckgo.com/?q=") for link in links)
