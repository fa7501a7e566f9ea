"""Answers as they form: drafts, Stop, corrections, kills, through the process as it is run."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import pytest

from agent.text import split_words
from tests.acceptance.test_end_to_end import ANSWER, CHAT, killed, running, running_here
from tests.doubles.bot_api import BotApi, Call
from tests.doubles.model_server import (
    ModelServer,
    Script,
    answer_json,
    hang,
    paced,
    tool_call,
)
from tests.doubles.server import eventually
from tests.doubles.telegram_html import parse_html

SEARCH = tool_call(
    "search_wines", {"styles": ["white"], "foods": ["fish"], "text": "Trimbach"}
)
LONG: dict[str, Any] = ANSWER | {
    "intro": "For your trout and almonds, something dry. It is fresh and light.",
    "closing": " ".join(["Serve it cool, in a small glass."] * 8),
}
INVENTED = ANSWER | {
    "intro": "The Zorkovitz 1984 won gold. Here it is.",
    "wines": [{"wine_id": "zorkovitz-1984", "description": "Gold."}, *ANSWER["wines"]],
    "closing": "Buy it at zorkovitz.example for 1984 euros. Enjoy it.",
}
UNGROUNDED = {"zorkovitz", "1984", "gold"}
STAGES: dict[str, tuple[list[Script], str]] = {
    "before it writes": ([SEARCH, hang(60)], "Searching"),
    "while it writes": ([SEARCH, paced(answer_json(LONG), 20)], "Trimbach"),
    "while it mends what it wrote": (
        [SEARCH, answer_json(INVENTED), hang(60)],
        "Searching",
    ),
}


class World:
    """The bot with a model, and what users see of its answers."""

    def __init__(
        self, api: BotApi, model: ModelServer, environment: dict[str, str]
    ) -> None:
        self.api, self.model = api, model
        own = {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": model.base_url}
        self.environment = environment | own

    def running(self) -> AbstractAsyncContextManager[None]:
        return running_here(self.api, self.environment)

    def killed(self) -> AbstractContextManager[object]:
        """Run the bot in a process of its own, which is killed at the end."""
        return killed(self.api, self.environment)

    def asked(self) -> list[str]:
        said = [request.json["messages"] for request in self.model.requests]
        return [
            [one["content"] for one in all if one["role"] == "user"][-1] for all in said
        ]

    def shown(self, calls: Sequence[Call]) -> list[str]:
        return [parse_html(call.params["text"])[0] for call in calls]

    def edits(self) -> list[str]:
        return self.shown(self.api.calls_of("editMessageText"))

    async def at(self, stage: str, said: str = "trout?") -> None:
        """Ask, and wait until the turn is at a stage."""
        script, draft = STAGES[stage]
        before = len(self.model.requests)
        self.model.script(*script)
        self.api.say(said, chat_id=CHAT)
        await eventually(
            lambda: any(draft in one for one in self.shown(self.api.drafts))
        )
        await eventually(lambda: len(self.model.requests) == before + len(script))

    def ask_in_group(self) -> None:
        mention = {"type": "mention", "offset": 0, "length": 19}
        self.api.say(
            "@sommelier_test_bot for trout?", chat_id=-CHAT, entities=[mention]
        )

    async def until_answered_in_group(self, answers: int = 1) -> None:
        """Wait until so many answers with their buttons stand in the group."""
        messages = self.api.messages
        await eventually(
            lambda: sum("reply_markup" in m for m in messages(-CHAT)) >= answers
        )


@pytest.fixture
def world(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> World:
    return World(bot_api, model_server, environment)


def informational(intro: str) -> Script:
    return answer_json({"response_type": "informational", "intro": intro})


async def test_an_answer_is_drafted_as_it_forms_and_then_sent_once(
    world: World,
) -> None:
    api = world.api
    world.model.script(
        SEARCH, paced(answer_json(INVENTED), 80), paced(answer_json(LONG), 80)
    )
    api.say("Something for trout?", chat_id=CHAT)
    with running(api, world.environment):
        (text,) = await api.wait_for_message(1, chat_id=CHAT)
    shown = world.shown(api.drafts)
    assert len(shown) > 2
    assert not UNGROUNDED & set(split_words(" ".join(shown)))
    assert "1. Trimbach" in shown[-1]
    assert text.startswith(shown[-1][: shown[-1].index("1. Trimbach")])
    times = [call.time for call in api.drafts]
    assert max(times) < api.calls_of("sendMessage")[0].time
    assert api.calls_of("sendChatAction")[0].time < times[0]
    assert api.draft(CHAT) is None
    assert len({call.params["draft_id"] for call in api.drafts}) == 1


async def test_in_a_group_one_message_grows_and_becomes_the_answer(
    world: World,
) -> None:
    api = world.api
    world.model.script(
        SEARCH, paced(answer_json(INVENTED), 60), paced(answer_json(LONG), 18)
    )
    api.fail("editMessageText", 429, retry_after=1)
    world.ask_in_group()
    async with world.running():
        await world.until_answered_in_group()
    assert api.sent(-CHAT) == world.edits()[-1:]
    assert len(api.calls_of("sendMessage")) == 1
    refused, *shown, _ = api.calls_of("editMessageText")
    assert refused.status == 429
    assert shown
    assert not UNGROUNDED & set(split_words(" ".join(world.edits())))


async def test_a_kill_while_an_answer_grows_leaves_one_answer_in_a_group(
    world: World,
) -> None:
    api, model = world.api, world.model
    model.script(SEARCH, paced(answer_json(LONG), 25))
    model.default = answer_json(LONG)
    world.ask_in_group()
    api.delay("editMessageText", 0.3)
    with world.killed():
        await eventually(lambda: any("Trimbach" in shown for shown in world.edits()))
    await eventually(
        lambda: all(call.status for call in api.calls_of("editMessageText"))
    )
    api.delay("editMessageText", 0)
    model.script(SEARCH)  # what was not committed is asked again
    async with world.running():
        world.ask_in_group()
        await world.until_answered_in_group(2)
    answer, _ = api.sent(-CHAT)
    assert answer.startswith(LONG["intro"])
    assert "in a small glass." in answer


@pytest.mark.parametrize(
    ("stage", "by_button"),
    [*((stage, False) for stage in STAGES), ("while it writes", True)],
)
async def test_stop_at_any_stage_keeps_what_was_shown(
    world: World, stage: str, by_button: bool
) -> None:
    api = world.api
    async with world.running():
        await world.at(stage)
        if by_button:
            api.stop_draft(CHAT)
        else:
            api.say("/stop", chat_id=CHAT)
        (text,) = await api.wait_for_message(1, chat_id=CHAT)
        world.model.script(informational("Gladly."))
        api.say("thanks", chat_id=CHAT)
        await api.wait_for_message(2, chat_id=CHAT)
    assert not UNGROUNDED & set(split_words(text))
    if stage == "before it writes":
        assert text.startswith("Stopped.")
    else:
        assert "1. Trimbach" in text
        assert text.endswith("Stopped here, as you asked.")


async def test_an_answer_on_its_way_is_neither_stopped_nor_corrected(
    world: World,
) -> None:
    api = world.api
    world.model.script(informational("Red, then."), informational("White, then."))
    api.delay("sendMessage", 1)
    async with world.running():
        api.say("a red for trout?", chat_id=CHAT)
        await eventually(lambda: bool(api.calls_of("sendMessage")))
        api.say("/stop", chat_id=CHAT)
        api.say("white, sorry", chat_id=CHAT)
        texts = await api.wait_for_message(2, chat_id=CHAT)
    assert texts == ["Red, then.", "White, then."]
    assert world.asked() == ["a red for trout?", "white, sorry"]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_correction_at_any_stage_is_answered_together_once(
    world: World, stage: str
) -> None:
    world.model.default = informational("White, then. Gladly.")
    async with world.running():
        await world.at(stage, "a red for trout?")
        world.api.say("white, sorry", chat_id=CHAT)
        texts = await world.api.wait_for_message(1, chat_id=CHAT)
    assert texts == ["White, then. Gladly."]
    assert world.asked()[-1] == "a red for trout?\nwhite, sorry"
