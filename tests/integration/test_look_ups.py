"""/ask, /quotes and /find in Telegram: what people see, press and get."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent.engine.run import Limits
from agent.i18n import translate
from agent.markdown import NOTE_SYMBOL
from agent.sommelier.service import Sommelier
from bot.updates.lanes import Lanes
from db.engine import Sessions
from db.repositories.people import MessageRepository
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import ModelServer, Step, answer, answer_json
from tests.doubles.server import JsonObject
from tests.fakes import FakeCatalogue, names
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
class Desk:
    """The bot over a library, with a model that answers `steps` if there are any."""

    bot_api: BotApi
    model_server: ModelServer
    messages: MessageRepository
    tracer: RecordingTracer = field(default_factory=RecordingTracer)

    @asynccontextmanager
    async def open(
        self, *steps: Step, library: FakeLibrary | None = None, **sources: Any
    ) -> AsyncIterator[Lanes]:
        self.model_server.script(*steps)
        sommelier = Sommelier(catalogue=FakeCatalogue())
        async with open_model(self.model_server) as model:
            models = [model] if steps else []
            found = Sources(
                documents=library or FakeLibrary(), models=models, limits=FAST, **sources
            )
            async with running(
                self.bot_api, sommelier, self.messages, self.tracer, sources=found
            ) as lanes:
                yield lanes

    async def ask(self, text: str, *steps: Step, replies: int = 1, **sources: Any) -> list[str]:
        """Say something to the bot and return its replies."""
        async with self.open(*steps, **sources):
            self.bot_api.say(text)
            return await self.bot_api.wait_for_message(replies)

    @property
    def shown(self) -> list[JsonObject]:
        return self.bot_api.messages(CHAT)


@pytest.fixture
def desk(bot_api: BotApi, model_server: ModelServer, sqlite_sessions: Sessions) -> Desk:
    return Desk(bot_api, model_server, MessageRepository(sqlite_sessions))


def buttons(message: JsonObject) -> list[JsonObject]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button for row in rows for button in row]


def marks(message: JsonObject) -> list[str]:
    return [entity["type"] for entity in message.get("entities", [])]


async def test_an_answer_has_footnotes_with_titles_and_folded_passages(desk: Desk) -> None:
    (shown,) = await desk.ask("/ask What are lees?", answer(LEES))
    assert shown.startswith("Lees are mostly dead yeast cells [1].\n\nSources\n[1] Sur lie · ")
    assert shown.count("Lees are mostly dead   yeast cells.") == 1
    assert "methods/sur-lie.md" not in shown
    (message,) = desk.shown
    assert (marks(message), buttons(message)) == (["bold", "expandable_blockquote"], [])
    (turn,) = desk.tracer.turns
    assert desk.tracer.inputs == ["/ask What are lees?"]
    expected = ["guard.input", "retrieve.documents", "llm.answer", "guard.output", "telegram.send"]
    assert names(turn) == expected
    assert (turn.metadata["outcome"], turn.metadata["llm_calls"]) == ("answered", 1)
    assert str(turn.output).startswith("Lees are mostly dead yeast cells [1].")


async def test_without_a_model_the_best_passages_are_shown_once_and_that_is_said(
    desk: Desk,
) -> None:
    (shown,) = await desk.ask("/ask When may Muscadet be bottled?")
    assert shown.startswith(f"{translate('best_passages')}\n\n{MUSCADET.text} [1]")
    assert shown.endswith(f"\n\n{NOTE_SYMBOL} {translate('documents_no_model')}")
    assert "[1] Sur lie · Muscadet" in shown
    assert shown.count(MUSCADET.text) == 1
    assert buttons(desk.shown[0]) == []


async def test_a_question_is_refined_when_asked_and_the_refined_one_is_shown(desk: Desk) -> None:
    question = "What *are* lees,\n> and [why]?"
    (shown,) = await desk.ask(f"/ask {question} --refine", answer_json(REFINED), answer(LEES))
    assert shown.startswith(f"I also searched for: {REFINED['refined_query']}\n\nLees are")
    assert f"QUESTION: {question}" in sent(desk.model_server)["messages"][1]["content"]


async def test_what_cannot_be_looked_up_gets_one_sentence(desk: Desk) -> None:
    replies = {
        "/ask ?!": translate("ask_usage"),
        f"/ask {'x' * 1001}": translate("question_too_long"),
        "/quotes": translate("quotes_usage"),
        "/find": translate("find_usage"),
        "/find wine bar": translate("find_where", what="wine bar"),
        f"/find wine bar {'x' * 121}": translate("place_too_long"),
        "/ask What are lees?": translate("no_documents"),
        "/quotes lees": translate("no_documents"),
    }
    async with desk.open(library=FakeLibrary(())):
        for text in replies:
            desk.bot_api.say(text)
        assert await desk.bot_api.wait_for_message(len(replies)) == [*replies.values()]


async def test_each_quote_is_a_message_and_the_models_words_are_marked(desk: Desk) -> None:
    first, second = "lees are mostly dead yeast", OYSTERS.text
    found = {
        "snippets": [snippet(first), snippet(second, OYSTERS)],
        "summary": "Lees are old yeast.",
        "noResults": False,
    }
    seen = await desk.ask("/quotes lees with oysters", answer_json(found), replies=3)
    relevance = "The model's words: It says so."
    assert seen == [
        f"1. Sur lie · What the lees are\nLees are mostly dead   yeast\n{relevance}",
        f"2. Wine with oysters · Section 1 of 1\n{second}\n{relevance}",
        "The model's words: Lees are old yeast.",
    ]
    assert [marks(message) for message in desk.shown] == [
        ["bold", "blockquote", "italic"],
        ["bold", "blockquote", "italic"],
        ["italic"],
    ]


async def test_without_a_provider_there_are_ten_links(desk: Desk) -> None:
    (shown,) = await desk.ask("/find wine bars in Lyon")
    lead = f"Wine bar · Lyon\n\n{translate('no_place_search')}\n\n1. wine bar Lyon · duck"
    assert shown.startswith(lead)
    (message,) = desk.shown
    links = [entity["url"] for entity in message["entities"] if entity["type"] == "text_link"]
    assert len(links) == 10
    assert all(link.startswith("https://duckduckgo.com/?q=") for link in links)
