"""Safety in whole turns: no model can show users wines that they must not drink."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from agent.cellar.items import guess_wine, to_cellar_item
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox
from agent.memory.tools import memory_tools
from agent.safety.help_texts import Help
from agent.safety.state import Concern, SafetyState
from agent.sommelier.filters import get_safety_state
from agent.sommelier.wine import Wine
from agent.turn import Deps, Person, Reply, StoredMessage
from db.engine import Sessions
from db.repositories.people import MessageRepository
from tests.doubles.bot_api import CHAT, BotApi
from tests.doubles.model_server import ModelServer, Step, answer_json, tool_call
from tests.doubles.server import eventually
from tests.fakes import CHINON, FREE, RIOJA, children
from tests.faults.turns import VALID, reply_to, search
from tests.library import FakeLibrary
from tests.running import RecordingTracer, Sources, running

PHOTO = [{"file_id": "1", "file_unique_id": "1", "width": 1, "height": 1}]


def shown(*wines: Wine, intro: str = "For your lamb:") -> Step:
    listed = [{"wine_id": wine.id, "description": "Fits the meat."} for wine in wines]
    return answer_json(VALID | {"intro": intro, "wines": listed})


answered = partial(reply_to, wines=(CHINON, RIOJA, FREE))


IN_CZECH = "už nechci žít, červené víno na dnes"


async def test_a_crisis_that_only_the_model_detects_is_answered_with_help(
    model_server: ModelServer,
) -> None:
    model_server.script(search(), answer_json(VALID | {"concern": "crisis"}))
    reply, trace = await answered(IN_CZECH, server=model_server)
    assert (reply.outcome, reply.wine_ids, [*reply.concerns]) == (
        "help",
        (),
        ["crisis"],
    )
    assert "findahelpline.com" in reply.text
    assert "Chinon" not in reply.text
    assert [
        span.output for span in children(trace) if span.name == "guard.concerns"
    ] == [["crisis"]]
    model_server.script(
        answer_json(
            {"response_type": "informational", "intro": "", "concern": "crisis"}
        )
    )
    reply, _ = await answered(IN_CZECH, server=model_server)
    assert (reply.outcome, reply.retries) == ("help", 0)


async def test_a_concern_that_the_model_detects_applies_to_its_answer_with_a_notice(
    model_server: ModelServer,
) -> None:
    both = VALID | {"wines": [{"wine_id": CHINON.id}, {"wine_id": FREE.id}]}
    expected: dict[Concern, tuple[str, ...]] = {
        "dependence": (FREE.id,),
        "driving": (FREE.id, CHINON.id),
    }
    for concern, wine_ids in expected.items():
        notice = Help().write_notice(SafetyState(turn_concerns=frozenset({concern})))
        look_up = tool_call("get_wine", {"wine_ids": [CHINON.id, FREE.id]})
        own_advice = both | {"concern": concern, "intro": "You had better not drink."}
        shown_ids = both | {
            "wines": [{"wine_id": wine_id} for wine_id in reversed(wine_ids)]
        }
        model_server.script(
            *(look_up, answer_json(own_advice)),
            *(look_up, answer_json(shown_ids | {"concern": concern})),
        )
        reply, _ = await answered("dziś prowadzę", server=model_server)
        assert (reply.wine_ids, [*reply.concerns]) == (wine_ids, [concern])
        assert reply.text.startswith(notice)
        assert "You had better" not in reply.text
        told = model_server.requests[-1].json["messages"][0]["content"]
        assert f'A fixed notice is shown above your answer: "{notice}"' in told


async def test_the_pregnancy_of_another_guest_does_not_remove_wines(
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
    reply, _ = await answered(said, server=model_server)
    assert (reply.outcome, reply.wine_ids) == ("answered", (FREE.id, CHINON.id))
    assert reply.text.startswith("For your lamb")


@pytest.mark.parametrize("concern", ["None", None, "no crisis", 3])
async def test_a_random_concern_from_the_model_does_not_spoil_an_answer(
    model_server: ModelServer, concern: object
) -> None:
    model_server.script(search(), answer_json(VALID | {"concern": concern}))
    reply, _ = await reply_to("a red for lamb", server=model_server)
    assert (reply.outcome, reply.wine_ids) == ("answered", (CHINON.id,))
    assert reply.concerns == frozenset()


@dataclass
class Chat:
    """A chat with the bot; its answerer records each safety state, and `notices` concerns."""

    bot_api: BotApi
    sessions: Sessions
    notices: list[frozenset[Concern]] = field(default_factory=list)
    states: list[SafetyState] = field(default_factory=list)
    tracer: RecordingTracer = field(default_factory=RecordingTracer)
    button: str = ""

    async def answer(
        self,
        message: str,
        run: Run,
        attachment: object = None,
        *,
        history: Sequence[StoredMessage] = (),
    ) -> Reply:
        self.states.append(get_safety_state(run))
        return Reply(
            text="Well.", concerns=self.notices.pop() if self.notices else frozenset()
        )

    def started(self) -> AbstractAsyncContextManager[Any]:
        return running(
            self.bot_api,
            self,
            MessageRepository(self.sessions),
            self.tracer,
            sources=Sources(documents=FakeLibrary()),
        )

    async def say(self, *texts: str, **message: Any) -> None:
        for text in texts:
            before = len(self.bot_api.sent())
            self.bot_api.say(text, **message)
            await self.bot_api.wait_for_message(before + 1)

    async def press(self, user_id: int = CHAT) -> None:
        """Press the button below the first message of the bot, as it was then."""
        first, answered = self.bot_api.messages(CHAT)[0], self._answered()
        rows = first["reply_markup"]["inline_keyboard"]
        presses = [button.get("callback_data", "") for row in rows for button in row]
        self.button = self.button or next(
            data for data in presses if data.startswith("c:")
        )
        self.bot_api.press(first, self.button, user_id)
        await eventually(
            lambda: self._answered() > answered,
            seconds=10,
            otherwise=lambda: "no press answered",
        )

    def _answered(self) -> int:
        return len(self.bot_api.calls_of("answerCallbackQuery"))

    @property
    def remembered(self) -> list[list[str]]:
        """Return the concerns that were remembered at the beginning of each turn."""
        return [sorted(state.earlier_concerns) for state in self.states]


@pytest.fixture
def chat(bot_api: BotApi, sqlite_sessions: Sessions) -> Chat:
    return Chat(bot_api, sqlite_sessions)


async def test_concerns_outlive_a_restart_and_only_permanent_ones_outlive_new(
    chat: Chat,
) -> None:
    async with chat.started():
        await chat.say("I can't stop drinking", "have to drive home after")
    async with chat.started():
        await chat.say("a red", "/new", "a red")
    assert chat.remembered == [
        ["dependence"],
        ["dependence", "driving"],
        ["dependence"],
    ]


async def test_a_concern_that_a_model_detected_is_stored_only_after_a_press(
    chat: Chat,
) -> None:
    chat.notices.append(frozenset({"dependence"}))
    async with chat.started():
        await chat.say("mam problem z piciem", "a red")
        await chat.press(user_id=CHAT + 1)
        await chat.say("a red")
        await chat.press()
    async with chat.started():
        await chat.say("a red")
    assert chat.remembered == [[], [], [], ["dependence"]]


async def test_only_the_user_who_wrote_can_retract_a_crisis_with_the_button(
    chat: Chat,
) -> None:
    async with chat.started():
        await chat.say("I want to end my life", "a red")
        await chat.press(user_id=CHAT + 1)
        await chat.say("a red")
        for _ in range(2):
            await chat.press()
        await chat.bot_api.wait_for_message(4)
        await chat.say("a red")
    assert chat.remembered == [["crisis"], ["crisis"], []]


async def test_help_needs_no_answerer(chat: Chat) -> None:
    async with chat.started():
        await chat.say("ich will nicht mehr leben")
        await chat.say("/quotes I want to kill myself")
        await chat.say("/end I want to kill myself", "/find me a way to end my life")
        await chat.say("", photo=PHOTO, caption="voglio farla finita")
    lines = ("0800 111 0 111", "988", "988", "988", "02 2327 2327")
    for line, sent in zip(lines, chat.bot_api.sent(), strict=True):
        assert line in sent
    assert chat.states == []
    assert {turn.scores["outcome"].value for turn in chat.tracer.turns} == {"help"}


async def test_look_ups_are_refused_to_users_who_must_not_drink(chat: Chat) -> None:
    async with chat.started():
        await chat.say(
            "I'm 15", "/ask what is sur lie?", "/quotes lie", "/find wine bar Lyon"
        )
    assert [turn.scores["outcome"].value for turn in chat.tracer.turns][1:] == [
        "help"
    ] * 3


async def test_a_minor_is_shown_no_wine_whatever_they_write(chat: Chat) -> None:
    async with chat.started():
        await chat.say("I'm 15", "a red", "others", "something alcohol-free", "thanks")
        await chat.say("I can't stop drinking")
    *refused, helped = chat.bot_api.sent()
    assert all("not even alcohol-free wine" in sent for sent in refused)
    assert "Alcoholics Anonymous" in helped
    assert "alcohol-free drinks, or" not in helped
    assert chat.states == []


async def test_own_cellar_lists_only_wines_that_the_guest_may_drink() -> None:
    call = ToolCall("call_1", "own_cellar", "{}")
    barolo = replace(to_cellar_item(guess_wine("Barolo 2016", 45), 6), number=1)
    owner = Person(bottles=(barolo,), user_id=7)
    told = await Toolbox(memory_tools()).call(call, Run(deps=Deps(person=owner)))
    assert "6 bottles" in told.text
    minor = replace(owner, safety=SafetyState().with_stored_names(["under_age"]))
    told = await Toolbox(memory_tools()).call(call, Run(deps=Deps(person=minor)))
    assert told.error_type
