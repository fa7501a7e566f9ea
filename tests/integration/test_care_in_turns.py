"""Care in whole turns: whatever a model does, nobody is shown what they must not drink."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.care.concerns import Care, Concern
from agent.care.help import Help
from agent.engine.run import Run
from agent.sommelier.history import messages_for_model
from agent.sommelier.safety import care_in
from agent.sommelier.service import Sommelier
from agent.sommelier.wine import Wine
from agent.turn import Deps, Person, Reply, StoredMessage
from bot.care import SafetyService
from bot.telegram.noticed import care_buttons, noticed_handlers
from db.engine import Sessions
from db.repositories.people import CareRepository, MessageRepository
from tests.databases import migrated_sqlite
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import ModelServer, Step, answer_json, tool_call
from tests.doubles.server import eventually
from tests.fakes import CHINON, FREE, RIOJA, FakeCatalogue, SpanRecord, asked, root_span
from tests.faults.turns import VALID, search, service
from tests.library import FakeLibrary
from tests.running import RecordingTracer, Sources, running

PHOTO = [{"file_id": "1", "file_unique_id": "1", "width": 1, "height": 1}]


def shown(*wines: Wine, intro: str = "For your lamb:") -> Step:
    listed = [{"wine_id": wine.id, "description": "Fits the meat."} for wine in wines]
    return answer_json(VALID | {"intro": intro, "wines": listed})


async def reply_to(
    *said: str, server: ModelServer, wines: tuple[Wine, ...] = (CHINON, RIOJA, FREE)
) -> tuple[Reply, SpanRecord]:
    root, model = root_span(), service(server)
    run = Run(
        [model],
        history=messages_for_model([StoredMessage("user", text) for text in said[:-1]]),
        span=root,
    )
    with root:
        sommelier = Sommelier(catalogue=FakeCatalogue(wines))
        reply = await asked(sommelier, said[-1], run)
    await model.close()
    return reply, root


async def test_in_a_crisis_no_model_is_asked(model_server: ModelServer) -> None:
    reply, root = await reply_to("I want to end my life, what wine?", server=model_server)
    assert (reply.outcome, root.scores["outcome"]) == ("care", "care")
    assert "988" in reply.text
    assert model_server.requests == []


async def test_a_model_is_told_what_the_guest_reads_above_its_answer(
    model_server: ModelServer,
) -> None:
    why = Help().notice_for(Care(stated=frozenset({"under_age"})))
    model_server.script(tool_call("search_wines", {}), shown(FREE))
    reply, _ = await reply_to("I am 15. A red for lamb?", server=model_server)
    assert reply.text.startswith(why)
    prompt = str(model_server.requests[0].json["messages"][0]["content"])
    assert f'Above your answer the guest reads: "{why}"' in prompt


IN_POLISH = "nie chcę już żyć, czerwone wino na dziś"


async def test_a_crisis_that_only_the_model_understands_is_answered_with_help(
    model_server: ModelServer,
) -> None:
    model_server.script(search(), answer_json(VALID | {"concern": "crisis"}))
    reply, root = await reply_to(IN_POLISH, server=model_server)
    assert (reply.outcome, reply.wine_ids, [*reply.concerns]) == ("care", (), ["crisis"])
    assert "findahelpline.com" in reply.text
    assert "Chinon" not in reply.text
    assert [span.output for span in root.children if span.name == "guard.care"] == [["crisis"]]
    model_server.script(
        answer_json({"response_type": "informational", "intro": "", "concern": "crisis"})
    )
    reply, _ = await reply_to(IN_POLISH, server=model_server)
    assert (reply.outcome, reply.retries) == ("care", 0)


async def test_a_concern_of_a_model_holds_for_its_answer_and_its_reason_is_said(
    model_server: ModelServer,
) -> None:
    both = VALID | {"wines": [{"wine_id": CHINON.id}, {"wine_id": FREE.id}]}
    expected: dict[Concern, tuple[str, ...]] = {
        "dependence": (FREE.id,),
        "driving": (FREE.id, CHINON.id),
    }
    for concern, wine_ids in expected.items():
        model_server.script(
            tool_call("get_wine", {"wine_ids": [CHINON.id, FREE.id]}),
            answer_json(both | {"concern": concern}),
        )
        reply, _ = await reply_to("dziś prowadzę", server=model_server)
        assert (reply.wine_ids, [*reply.concerns]) == (wine_ids, [concern])
        assert reply.text.startswith(Help().notice_for(Care(stated=frozenset({concern}))))


async def test_who_is_pregnant_at_the_table_takes_no_wine_from_the_others(
    model_server: ModelServer,
) -> None:
    said = "My sister is pregnant and comes to dinner, lamb for all. What do I serve?"
    searches: list[dict[str, Any]] = [
        {"alcohol_free": True},
        {"styles": ["red"], "foods": ["lamb"]},
    ]
    model_server.script(
        *(tool_call("search_wines", query) for query in searches), shown(FREE, CHINON)
    )
    reply, _ = await reply_to(said, server=model_server)
    assert (reply.outcome, reply.wine_ids) == ("answered", (FREE.id, CHINON.id))
    assert reply.text.startswith("For your lamb")


@pytest.mark.parametrize("concern", ["None", None, "no crisis", 3])
async def test_a_model_that_names_a_concern_at_random_spoils_no_answer(
    model_server: ModelServer, concern: object
) -> None:
    model_server.script(search(), answer_json(VALID | {"concern": concern}))
    wines = (CHINON, RIOJA)
    reply, _ = await reply_to("a red for lamb", server=model_server, wines=wines)
    assert (reply.outcome, reply.wine_ids) == ("answered", (CHINON.id,))
    assert reply.concerns == frozenset()


@dataclass
class Listener:
    """An answerer that keeps the care of each turn; a model `notices` concerns in its first."""

    notices: list[frozenset[Concern]] = field(default_factory=list)
    cares: list[Care] = field(default_factory=list)

    async def answer(self, message: str, run: Run, attached: object = None) -> Reply:
        self.cares.append(care_in(run))
        return Reply(text="Well.", concerns=self.notices.pop() if self.notices else frozenset())


@pytest.fixture
async def sessions(tmp_path: Path) -> AsyncIterator[Sessions]:
    engine = await migrated_sqlite(tmp_path / "test.sqlite3")
    yield Sessions(engine)
    await engine.dispose()


@pytest.fixture
def cares(sessions: Sessions) -> CareRepository:
    return CareRepository(sessions)


@pytest.fixture
def messages(sessions: Sessions) -> MessageRepository:
    return MessageRepository(sessions)


async def say(bot_api: BotApi, *texts: str, **message: Any) -> None:
    for text in texts:
        before = len(bot_api.sent())
        bot_api.say(text, **message)
        await bot_api.wait_for_message(before + 1)


async def test_what_was_told_outlives_a_restart_and_only_some_of_it_new(
    bot_api: BotApi, messages: MessageRepository, cares: CareRepository
) -> None:
    listener = Listener()
    async with running(bot_api, listener, messages, safety=SafetyService(cares=cares)):
        await say(bot_api, "I'm 15", "have to drive home after")
    async with running(bot_api, listener, messages, safety=SafetyService(cares=cares)):
        await say(bot_api, "a red", "/new", "a red")
    held = [sorted(care.remembered) for care in listener.cares]
    assert held == [[], ["under_age"], ["driving", "under_age"], ["under_age"]]


async def press(bot_api: BotApi, data: str, user_id: int = CHAT) -> None:
    answered = len(bot_api.calls_of("answerCallbackQuery"))
    bot_api.press(bot_api.messages(CHAT)[0], data, user_id)
    await eventually(
        lambda: len(bot_api.calls_of("answerCallbackQuery")) > answered,
        seconds=10,
        otherwise=lambda: "no press was answered",
    )


async def test_a_concern_that_a_model_noticed_is_remembered_by_a_press_alone(
    bot_api: BotApi, messages: MessageRepository, cares: CareRepository
) -> None:
    listener = Listener(notices=[frozenset({"dependence"})])
    async with with_buttons(bot_api, listener, messages, cares):
        await say(bot_api, "mam problem z piciem", "a red")
        ((button,), *_) = bot_api.messages(CHAT)[0]["reply_markup"]["inline_keyboard"]
        await press(bot_api, button["callback_data"], user_id=CHAT + 1)
        await say(bot_api, "a red")
        await press(bot_api, button["callback_data"])
    async with with_buttons(bot_api, listener, messages, cares):
        await say(bot_api, "a red")
    assert [sorted(care.remembered) for care in listener.cares] == [[], [], [], ["dependence"]]


async def test_a_crisis_that_was_none_is_taken_back_by_a_press_of_its_person(
    bot_api: BotApi, messages: MessageRepository, cares: CareRepository
) -> None:
    listener = Listener()
    async with with_buttons(bot_api, listener, messages, cares):
        await say(bot_api, "I want to end my life", "a red")
        ((button,),) = bot_api.messages(CHAT)[0]["reply_markup"]["inline_keyboard"]
        await press(bot_api, button["callback_data"], user_id=CHAT + 1)
        await say(bot_api, "a red")
        for _ in range(2):
            await press(bot_api, button["callback_data"])
        await bot_api.wait_for_message(4)
        await say(bot_api, "a red")
    assert [sorted(care.remembered) for care in listener.cares] == [["crisis"], ["crisis"], []]


def with_buttons(
    bot_api: BotApi, listener: Listener, messages: MessageRepository, cares: CareRepository
) -> AbstractAsyncContextManager[Any]:
    return running(
        bot_api,
        listener,
        messages,
        further=noticed_handlers,
        safety=SafetyService(cares=cares),
        buttons=care_buttons,
    )


async def test_help_is_said_without_the_answerer(
    bot_api: BotApi, messages: MessageRepository
) -> None:
    tracer, listener = RecordingTracer(), Listener()
    library = Sources(documents=FakeLibrary())
    async with running(bot_api, listener, messages, tracer, sources=library):
        await say(bot_api, "ich will nicht mehr leben")
        await say(bot_api, "/quotes I want to kill myself")
        await say(bot_api, "/end I want to kill myself", "/find me a way to end my life")
        await say(bot_api, "", photo=PHOTO, caption="voglio farla finita")
    sent = bot_api.messages(CHAT)
    helped = ["0800 111 0 111" in sent[0]["text"], "988" in sent[1]["text"]]
    helped += ["988" in each["text"] for each in sent[2:4]]
    assert [*helped, "02 2327 2327" in sent[4]["text"]] == [True] * 5
    assert listener.cares == []
    assert {turn.scores["outcome"] for turn in tracer.turns} == {"care"}


async def test_nothing_is_looked_up_for_who_must_not_drink(
    bot_api: BotApi, messages: MessageRepository, cares: CareRepository
) -> None:
    tracer, safety = RecordingTracer(), SafetyService(cares=cares)
    sources = Sources(documents=FakeLibrary())
    async with running(bot_api, Listener(), messages, tracer, sources=sources, safety=safety):
        await say(bot_api, "I'm 15", "/ask what is sur lie?", "/quotes lie", "/find wine bar Lyon")
    assert [turn.scores["outcome"] for turn in tracer.turns][1:] == ["care"] * 3


async def test_the_fallback_knows_what_was_told_before_too() -> None:
    sommelier = Sommelier(catalogue=FakeCatalogue((CHINON, RIOJA, FREE)))
    minor = Person(care=Care(remembered=frozenset({"under_age"})))
    reply = await sommelier.answer("a red for lamb", Run(deps=Deps(person=minor)))
    assert reply.wine_ids == (FREE.id,)
    assert "under 18" in reply.text
    reply = await sommelier.answer("a red for lamb", Run(deps=Deps(person=Person())))
    assert FREE.id not in reply.wine_ids
