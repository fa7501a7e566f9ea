"""/ask, /quotes and /find in Telegram: what people see, press and get."""

import pickle
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Update

from agent.documents.citations import NOT_ENOUGH
from agent.documents.passages import Chunk
from agent.engine.errors import ToolError
from agent.engine.limits import Limits
from agent.engine.run import NO_JOURNAL, Journal
from agent.i18n import say
from agent.markdown import NOTE_SIGN
from agent.places.search import PlaceHit
from agent.sommelier.service import Sommelier
from agent.tracing.recorder import Recorder
from bot.console import LocalTelegram
from bot.telegram.connection import AnyApplication, close_application, telegram_application
from bot.telegram.conversation import Conversation
from bot.telegram.handlers import Handlers
from bot.telegram.look_ups import LookUps
from bot.telegram.render import visible_text
from bot.updates.lanes import Lanes
from db.engine import Sessions
from db.repositories.people import SqlMessageRepository
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import ModelServer, answer, answer_json, error
from tests.doubles.server import JsonObject
from tests.fakes import FakeCatalogue
from tests.library import MUSCADET, OYSTERS, SUR_LIE, FakeLibrary, open_model, sent
from tests.running import RecordingTracer, Sources, at_rest, conversation_of, running

R = TypeVar("R")

LEES = "Lees are mostly dead yeast cells [methods/sur-lie.md]."
WEAK = f"{NOT_ENOUGH}."
PERSON = {"id": CHAT, "is_bot": False, "first_name": "Ada"}
REFINED = {
    "refined_query": "lees contact in white wine",
    "variants": ["sur lie ageing", "yeast lees contact", "wine aged on lees"],
    "keywords": [],
    "entities": [],
    "constraints": [],
    "ambiguities": [],
    "security_flags": [],
}
TEN = [
    "wine bar Bilbao Casco Viejo",
    "vinoteca Bilbao",
    "natural wine Bilbao Ensanche",
    "txakoli bar Bilbao",
    "wines by the glass Abando Bilbao",
    "bar de vinos Bilbao Indautxu",
    "pintxos and Rioja Bilbao",
    "ardo taberna Bilbao",
    "sherry bar Bilbao",
    "wine tasting bar Bilbao Guggenheim",
]
REFINE_BUTTON = InlineKeyboardButton("Refine my question", callback_data="refine")
FAST = Limits(seconds=10, model_tries=1, structured_output_max_retries=1)


@dataclass
class FakePlaces:
    """A place search that finds the same for every query, or is down."""

    hits: Sequence[PlaceHit] = (PlaceHit("Bar A", "https://www.a.example/", "Pintxos."),)
    down: bool = False

    async def search(self, query: str, limit: int = 10, language: str = "") -> list[PlaceHit]:
        if self.down:
            raise ToolError("down")
        return list(self.hits)


@pytest.fixture
async def messages(tmp_path: Path) -> AsyncIterator[SqlMessageRepository]:
    engine = await migrated_sqlite(tmp_path / "test.sqlite3")
    yield SqlMessageRepository(Sessions(engine))
    await engine.dispose()


def looking_up(
    bot_api: BotApi,
    sources: Sources,
    messages: SqlMessageRepository,
    tracer: Recorder | None = None,
) -> AbstractAsyncContextManager[Lanes]:
    """The bot; a wine question is answered by the house."""
    return running(
        bot_api,
        Sommelier(catalogue=FakeCatalogue()),
        messages,
        tracer,
        sources=sources,
    )


def press(bot_api: BotApi, message: JsonObject, data: str | None = None) -> None:
    """A person presses the first button of a message, as Telegram tells it."""
    pressed = data or buttons(message)[0]["callback_data"]
    bot_api.press(message, pressed)


def buttons(message: JsonObject) -> list[JsonObject]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button for row in rows for button in row]


def prompt_of(tracer: RecordingTracer) -> tuple[object, ...]:
    """What the one turn says of its prompt: its name, its version, whether it is built in."""
    (turn,) = tracer.turns
    keys = ("prompt_name", "prompt_version", "prompt_is_fallback")
    return tuple(turn.metadata.get(key) for key in keys)


def marks(message: JsonObject) -> list[str]:
    return [entity["type"] for entity in message.get("entities", [])]


def quoted(text: str, chunk: Chunk) -> JsonObject:
    return {
        "content": text,
        "sourceId": chunk.document_id,
        "sourceTitle": chunk.title,
        "sourceLocation": chunk.location,
        "relevance": "It says so.",
    }


class TestAsk:
    async def test_an_answer_has_footnotes_with_titles_and_folded_passages(
        self, bot_api: BotApi, model_server: ModelServer, messages: SqlMessageRepository
    ) -> None:
        model_server.script(answer(LEES))
        tracer = RecordingTracer()
        async with open_model(model_server) as model:
            sources = Sources(documents=FakeLibrary(), models=[model], limits=FAST)
            async with looking_up(bot_api, sources, messages, tracer):
                bot_api.say("/ask What are lees?")
                (shown,) = await bot_api.wait_for_message()
        assert shown.startswith("Lees are mostly dead yeast cells [1].\n\nSources\n[1] Sur lie · ")
        assert "Lees are mostly dead   yeast cells." in shown
        assert "methods/sur-lie.md" not in shown
        (message,) = bot_api.messages(CHAT)
        assert marks(message) == ["bold", "expandable_blockquote"]
        assert buttons(message) == []
        assert prompt_of(tracer) == ("documents-answer", "repository:2", True)
        assert len(bot_api.calls_of("sendChatAction")) >= 1
        (turn,) = tracer.turns
        assert tracer.inputs == ["/ask What are lees?"]
        assert turn.names == [
            "guard.input",
            "retrieve.documents",
            "llm.answer",
            "guard.output",
            "telegram.send",
        ]
        assert turn.scores == {"structured_retries": 0, "outcome": "answered", "grounding": 1}
        assert (turn.metadata["outcome"], turn.metadata["llm_calls"]) == ("answered", 1)
        assert str(turn.output).startswith("Lees are mostly dead yeast cells [1].")

    async def test_without_a_model_the_best_passages_are_shown_and_that_is_said(
        self, bot_api: BotApi, messages: SqlMessageRepository
    ) -> None:
        async with looking_up(bot_api, Sources(documents=FakeLibrary()), messages):
            bot_api.say("/ask When may Muscadet be bottled?")
            (shown,) = await bot_api.wait_for_message()
        assert shown.startswith(f"{say('best_passages')}\n\n{MUSCADET.text} [1]")
        assert shown.endswith(f"\n\n{NOTE_SIGN} {say('documents_no_model')}")
        assert "[1] Sur lie · Muscadet" in shown
        assert shown.count(MUSCADET.text) == 1
        assert buttons(bot_api.messages(CHAT)[0]) == []

    async def test_a_refined_question_is_shown_and_searched_for_too(
        self, bot_api: BotApi, model_server: ModelServer, messages: SqlMessageRepository
    ) -> None:
        model_server.script(answer_json(REFINED), answer(LEES))
        library = FakeLibrary()
        async with open_model(model_server) as model:
            sources = Sources(documents=library, models=[model], limits=FAST)
            async with looking_up(bot_api, sources, messages):
                bot_api.say("/ask —refine What are lees?")
                (shown,) = await bot_api.wait_for_message()
        assert shown.startswith("I also searched for: lees contact in white wine\n\nLees are")
        assert library.searched[0][:2] == ("What are lees?", "lees contact in white wine")

    async def test_under_a_weak_answer_a_button_refines_the_question_once(
        self, bot_api: BotApi, model_server: ModelServer, messages: SqlMessageRepository
    ) -> None:
        question = "What *are* lees,\n> and [why]?"
        model_server.script(answer(WEAK), answer_json(REFINED), answer(LEES))
        async with open_model(model_server) as model:
            sources = Sources(documents=FakeLibrary(), models=[model], limits=FAST)
            async with looking_up(bot_api, sources, messages):
                bot_api.say(f"/ask {question}")
                assert await bot_api.wait_for_message() == [f"{WEAK}\n\n{question}"]
                (weak,) = bot_api.messages(CHAT)
                (button,) = buttons(weak)
                assert button["text"] == "Refine my question"
                assert len(button["callback_data"].encode()) <= 64
            # Pressed after a restart, and twice.
            async with looking_up(bot_api, sources, messages) as lanes:
                press(bot_api, weak)
                press(bot_api, weak)
                await bot_api.wait_for_message(2)
                await at_rest(lanes)
                bot_api.say("/new")
                seen = await bot_api.wait_for_message(3)
        assert seen[1].startswith("I also searched for: lees contact in white wine\n\nLees are")
        assert seen[2:] == [say("forgotten")]
        assert f"QUESTION: {question}" in sent(model_server)["messages"][1]["content"]
        assert [call.status for call in bot_api.calls_of("answerCallbackQuery")] == [200, 200]
        assert all(buttons(message) == [] for message in bot_api.messages(CHAT))
        assert len(model_server.requests) == 3

    async def test_the_press_is_acknowledged_before_the_work_begins(
        self, bot_api: BotApi, model_server: ModelServer, messages: SqlMessageRepository
    ) -> None:
        model_server.script(answer(WEAK), error(400), answer(WEAK))
        async with open_model(model_server) as model:
            sources = Sources(documents=FakeLibrary(), models=[model], limits=FAST)
            async with looking_up(bot_api, sources, messages):
                bot_api.say("/ask What are lees?")
                await bot_api.wait_for_message()
                press(bot_api, bot_api.messages(CHAT)[0])
                seen = await bot_api.wait_for_message(2)
        beside = ("getUpdates", "setMyCommands")
        methods = [call.method for call in bot_api.calls if call.method not in beside]
        after = methods[methods.index("answerCallbackQuery") :]
        assert after[:3] == ["answerCallbackQuery", "editMessageReplyMarkup", "sendChatAction"]
        # Refining failed, silently; a refined question is not offered the button again.
        assert seen[1] == WEAK
        assert buttons(bot_api.messages(CHAT)[1]) == []

    @pytest.mark.parametrize(
        "foreign",
        [
            {"message": {"message_id": 5, "date": 0, "chat": {"id": CHAT, "type": "private"}}},
            {"data": "from an earlier version"},
        ],
        ids=["inaccessible", "unknown"],
    )
    async def test_an_old_or_foreign_button_does_nothing_but_say_so(
        self, foreign: JsonObject, bot_api: BotApi, messages: SqlMessageRepository
    ) -> None:
        chat = {"id": CHAT, "type": "private", "first_name": "Ada"}
        message = {"message_id": 5, "date": 1, "chat": chat, "text": "Hello"}
        query = {"id": "1", "from": PERSON, "chat_instance": "1", "data": "refine"}
        async with looking_up(bot_api, Sources(documents=FakeLibrary()), messages):
            bot_api.push({"callback_query": query | {"message": message} | foreign})
            bot_api.say("/new")
            assert await bot_api.wait_for_message() == [say("nothing_to_forget")]
        (call,) = bot_api.calls_of("answerCallbackQuery")
        assert call.params["text"] == say("button_too_old")


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("/ask", say("ask_usage")),
        ("/ask ?!", say("ask_usage")),
        (f"/ask {'x' * 1001}", say("question_too_long")),
        ("/quotes", say("quotes_usage")),
        ("/find", say("find_usage")),
        ("/find wine bar", say("find_where", what="wine bar")),
        (f"/find wine bar {'x' * 121}", say("place_too_long")),
        ("/ask What are lees?", say("no_documents")),
        ("/quotes lees", say("no_documents")),
    ],
)
async def test_what_cannot_be_looked_up_gets_one_sentence(
    said: str, answered: str, bot_api: BotApi, messages: SqlMessageRepository
) -> None:
    async with looking_up(bot_api, Sources(documents=FakeLibrary(())), messages):
        bot_api.say(said)
        bot_api.say("/unknown")
        assert await bot_api.wait_for_message(2) == [answered, say("unknown_command")]


async def test_a_library_that_is_down_ends_in_a_sentence_and_an_error_in_the_trace(
    bot_api: BotApi, messages: SqlMessageRepository
) -> None:
    class BrokenLibrary(FakeLibrary):
        async def search(self, queries: Sequence[str], limit: int = 6) -> list[Chunk]:
            raise OSError("the disk is gone")

    tracer = RecordingTracer()
    async with looking_up(bot_api, Sources(documents=BrokenLibrary()), messages, tracer):
        bot_api.say("/ask What are lees?")
        assert await bot_api.wait_for_message() == [say("apology")]
    assert (tracer.turns[0].level, tracer.turns[0].metadata["outcome"]) == ("ERROR", "failed")


async def test_an_edited_command_is_not_run_as_a_wine_question(
    bot_api: BotApi, messages: SqlMessageRepository
) -> None:
    async with looking_up(bot_api, Sources(documents=FakeLibrary()), messages):
        bot_api.say("/ask What are lees?", message_id=77)
        await bot_api.wait_for_message()
        chat = {"id": CHAT, "type": "private", "first_name": "Ada"}
        edit = {"message_id": 77, "date": 1, "edit_date": 2, "chat": chat, "from": PERSON}
        bot_api.push({"edited_message": edit | {"text": "/ask What is sur lie?"}})
        assert (await bot_api.wait_for_message(2))[1] == say("edited")


class TestQuotes:
    async def test_each_quote_is_a_message_and_the_summary_comes_last(
        self, bot_api: BotApi, model_server: ModelServer, messages: SqlMessageRepository
    ) -> None:
        first, second = "lees are mostly dead yeast", OYSTERS.text
        relevance = "The model's words: It says so."
        found = {
            "snippets": [quoted(first, SUR_LIE), quoted(second, OYSTERS)],
            "summary": "Lees are mostly dead yeast cells.",
            "noResults": False,
        }
        model_server.script(answer_json(found))
        async with open_model(model_server) as model:
            sources = Sources(documents=FakeLibrary(), models=[model], limits=FAST)
            async with looking_up(bot_api, sources, messages):
                bot_api.say("/quotes lees with oysters")
                seen = await bot_api.wait_for_message(3)
        assert seen == [
            f"1. Sur lie · What the lees are\nLees are mostly dead   yeast\n{relevance}",
            f"2. Wine with oysters · Section 1 of 1\n{second}\n{relevance}",
            "The model's words: Lees are mostly dead yeast cells.",
        ]
        assert [marks(each) for each in bot_api.messages(CHAT)] == [
            ["bold", "blockquote", "italic"],
            ["bold", "blockquote", "italic"],
            ["italic"],
        ]

    async def test_no_results_are_explained(
        self, bot_api: BotApi, model_server: ModelServer, messages: SqlMessageRepository
    ) -> None:
        explained = "The sources speak of lees, but oak is dearer."
        model_server.script(answer_json({"snippets": [], "summary": explained, "noResults": True}))
        async with open_model(model_server) as model:
            sources = Sources(documents=FakeLibrary(), models=[model], limits=FAST)
            async with looking_up(bot_api, sources, messages) as lanes:
                bot_api.say("/quotes lees and oak")
                await bot_api.wait_for_message(1)
                await at_rest(lanes)
                bot_api.say("/new")
                seen = await bot_api.wait_for_message(2)
        assert seen == [f"The model's words: {explained}", say("forgotten")]


class TestFind:
    async def test_without_a_provider_there_are_ten_links_and_the_text_file_on_a_press(
        self, bot_api: BotApi, messages: SqlMessageRepository
    ) -> None:
        async with looking_up(bot_api, Sources(documents=FakeLibrary()), messages) as lanes:
            bot_api.say("/find wine bars in Lyon")
            (shown,) = await bot_api.wait_for_message()
            (message,) = bot_api.messages(CHAT)
            press(bot_api, message)
            press(bot_api, message)
            await bot_api.wait_for_message(2)
            await at_rest(lanes)
            bot_api.say("/new")
            seen = await bot_api.wait_for_message(3)
        assert shown.startswith(
            f"Wine bar · Lyon\n\n{say('no_place_search')}\n\n1. bar à vin Lyon · duck"
        )
        links = [each["url"] for each in message["entities"] if each["type"] == "text_link"]
        assert len(links) == 10
        assert all(link.startswith("https://duckduckgo.com/?q=") for link in links)
        assert seen[1:] == ["queries.txt", say("forgotten")]
        (document,) = bot_api.calls_of("sendDocument")
        lines = document.files["document"].data.decode().splitlines()
        assert (len(lines), lines[0]) == (10, "bar à vin Lyon")
        listed = (f"{n}. {line} · duckduckgo.com" for n, line in enumerate(lines, 1))
        assert "\n".join(listed) in shown

    async def test_results_are_links_and_the_searches_follow(
        self, bot_api: BotApi, model_server: ModelServer, messages: SqlMessageRepository
    ) -> None:
        model_server.script(answer_json(TEN))
        tracer = RecordingTracer()
        async with open_model(model_server) as model:
            sources = Sources(
                documents=FakeLibrary(), models=[model], search=FakePlaces(), limits=FAST
            )
            async with looking_up(bot_api, sources, messages, tracer):
                bot_api.say("/find WINE_BAR Bilbao")
                places, searches = await bot_api.wait_for_message(2)
        assert places == (
            "Wine bar · Bilbao\n\n1. Bar A · a.example\nPintxos.\nfound by 10 of 10 searches"
        )
        assert searches.endswith(f"10. {TEN[-1]} · duckduckgo.com")
        assert [len(buttons(each)) for each in bot_api.messages(CHAT)] == [0, 1]
        assert tracer.turns[0].metadata["outcome"] == "answered"
        assert tracer.turns[0].metadata["llm_calls"] == 1
        assert prompt_of(tracer) == ("place-queries", "repository:2", True)

    async def test_a_model_that_is_down_is_a_fallback(
        self, bot_api: BotApi, model_server: ModelServer, messages: SqlMessageRepository
    ) -> None:
        model_server.script(answer("No."), error(401))
        tracer = RecordingTracer()
        async with open_model(model_server) as model:
            sources = Sources(documents=FakeLibrary(), models=[model], limits=FAST)
            async with looking_up(bot_api, sources, messages, tracer):
                bot_api.say("/find wine bar Bilbao")
                (shown,) = await bot_api.wait_for_message()
        assert "1. bar de vinos Bilbao" in shown
        (turn,) = tracer.turns
        assert turn.level == "WARNING"
        assert turn.metadata["outcome"] == turn.scores["outcome"] == "fallback"
        assert turn.metadata["error_types"] == "invalid_json,model_error"

    async def test_queries_that_cannot_be_made_end_in_one_sentence(
        self, bot_api: BotApi, model_server: ModelServer, messages: SqlMessageRepository
    ) -> None:
        model_server.script(answer("No."), answer("No."))
        tracer = RecordingTracer()
        async with open_model(model_server) as model:
            sources = Sources(documents=FakeLibrary(), models=[model], limits=FAST)
            async with looking_up(bot_api, sources, messages, tracer):
                bot_api.say("/find wine bar Bilbao")
                assert await bot_api.wait_for_message() == [say("no_queries")]
        metadata = tracer.turns[0].metadata
        assert (metadata["outcome"], metadata["retry_count"]) == ("failed", 1)
        assert metadata["error_types"] == "invalid_json,degenerate,exhausted"

    async def test_a_location_is_the_place_of_what_was_just_asked_even_after_a_restart(
        self, bot_api: BotApi, messages: SqlMessageRepository
    ) -> None:
        sources = Sources(documents=FakeLibrary())
        async with looking_up(bot_api, sources, messages):
            bot_api.say("/find wine bar")
            await bot_api.wait_for_message(1)
        async with looking_up(bot_api, sources, messages):
            bot_api.push({"message": located()})
            shown = (await bot_api.wait_for_message(2))[1]
        assert shown.startswith(
            f"Wine bar · 48.8566, 2.3522\n\n{say('no_place_search')}\n\n1. wine bar 48.8"
        )
        kept = [each.content for each in await messages.recent(CHAT)]
        assert kept[0] == "/find wine bar"
        assert not any("48.8" in each for each in kept)

    async def test_in_a_group_a_location_is_not_for_the_bot(
        self, bot_api: BotApi, messages: SqlMessageRepository
    ) -> None:
        group = {"id": -500, "type": "supergroup", "title": "The wine club"}
        async with looking_up(bot_api, Sources(documents=FakeLibrary()), messages):
            bot_api.push({"message": located() | {"chat": group}})
            bot_api.say("/new", -500)
            assert await bot_api.wait_for_message() == [say("nothing_to_forget")]


def located() -> JsonObject:
    chat = {"id": CHAT, "type": "private", "first_name": "Ada"}
    place = {"latitude": 48.856613, "longitude": 2.352222}
    return {"message_id": 900, "date": 1, "chat": chat, "from": PERSON, "location": place}


@dataclass
class Rewound:
    """A journal whose records outlive their turn, up to where it was cut off."""

    records: list[tuple[str, bytes]] = field(default_factory=list)
    at: int = 0

    def cut_after(self, name: str) -> None:
        kept = [each for each, _ in self.records].index(name) + 1
        del self.records[kept:]
        self.at = 0

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        if self.at == len(self.records):
            self.records.append((name, pickle.dumps(await run())))
        recorded, data = self.records[self.at]
        assert recorded == name
        self.at += 1
        result: R = pickle.loads(data)
        return result


def conversation_in(
    application: AnyApplication,
    messages: SqlMessageRepository,
    journal: Journal,
    tracer: Recorder | None = None,
    sources: Sources | None = None,
) -> Conversation:
    answerer = Sommelier(catalogue=FakeCatalogue())
    return conversation_of(
        application, answerer, messages, sources=sources, journal=journal, tracer=tracer
    )


@asynccontextmanager
async def in_terminal(
    sources: Sources,
    messages: SqlMessageRepository,
    journal: Journal = NO_JOURNAL,
    tracer: Recorder | None = None,
) -> AsyncIterator[Callable[[str], Awaitable[list[str]]]]:
    """The same handlers in a terminal: what is shown for a line."""
    telegram = LocalTelegram()
    application = telegram_application("0:terminal", "", telegram)
    talk = conversation_in(application, messages, journal, tracer, sources)
    Handlers(talk).register(application, LookUps(talk).handlers())

    async def say(line: str) -> list[str]:
        await application.process_update(telegram.typed(line, application.bot))
        return [visible_text(html) for html in telegram.take()]

    await application.initialize()
    yield say
    await close_application(application)


class TestTerminal:
    async def test_a_button_is_a_numbered_choice_and_a_file_is_shown(
        self, messages: SqlMessageRepository
    ) -> None:
        async with in_terminal(Sources(documents=FakeLibrary()), messages) as say:
            (shown,) = await say("/find domaine viticole Beaune")
            assert shown.endswith("\n\n1 › As a text file")
            (document,) = await say("1")
            lines = document.splitlines()
            assert (lines[0], lines[1], len(lines)) == (
                "queries.txt",
                "domaine viticole Beaune",
                11,
            )
            # The choice is gone: a number is a number again.
            assert "queries.txt" not in (await say("1"))[0]


class TestAfterACrash:
    @pytest.mark.parametrize("step", ["press", "button", "first"])
    async def test_a_press_is_still_answered(
        self, step: str, bot_api: BotApi, messages: SqlMessageRepository
    ) -> None:
        journal = Rewound()
        application = telegram_application(bot_api.token, bot_api.base_url)
        talk = conversation_in(application, messages, journal)
        await application.initialize()
        sent_message = await application.bot.send_message(
            CHAT,
            "<blockquote>What are lees?</blockquote>",
            parse_mode="HTML",
            reply_markup=InlineKeyboardMarkup.from_button(REFINE_BUTTON),
        )
        query = {"id": "1", "from": PERSON, "chat_instance": "1", "data": "refine"}
        update: dict[str, Any] = {
            "update_id": 5,
            "callback_query": query | {"message": sent_message.to_dict()},
        }
        Handlers(talk).register(application, LookUps(talk).handlers())
        for _ in range(2):
            await application.process_update(Update.de_json(update, application.bot))
            journal.cut_after(step)
        await close_application(application)
        assert len(bot_api.sent(CHAT)) == 3
