"""Wines in any chat, without a model: inline mode."""

from tests.acceptance.test_end_to_end import CHAT, running_here
from tests.acceptance.test_follow_ups import answered
from tests.doubles.bot_api import BotApi
from tests.doubles.server import JsonObject, eventually

TEENAGER, ALLERGIC, STRANGER = 8001, 8002, 8003


async def inline(bot_api: BotApi, words: str, user_id: int = CHAT) -> list[JsonObject]:
    """What somebody is offered who types this in some chat."""
    query = bot_api.ask_inline(words, user_id)
    await eventually(lambda: bot_api.inline_results(query) is not None)
    return bot_api.inline_results(query) or []


async def test_in_any_chat_wines_are_offered_as_they_are_shown_in_an_answer(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        bot_api.say("lamb under 25", chat_id=CHAT)
        answer = await answered(bot_api, 1)
        found = await inline(bot_api, "lamb under 25")
        assert len(found) == 10
        shown = [each["message"]["text"] for each in found]
        first = next(each for each in shown if each.splitlines()[0] in answer["text"])
        assert first.splitlines()[1] in answer["text"]
        assert all(float(each.rpartition("≈ €")[2].split()[0]) <= 25 for each in shown)
        assert [each["title"] for each in found] == [
            each.splitlines()[0] for each in shown
        ]
        assert 1 <= len(await inline(bot_api, "Trimbach")) <= 10
        assert len(await inline(bot_api, "")) == 10
        assert await inline(bot_api, "a red under 1 euro") == []
        bot_api.say("I am 15", chat_id=TEENAGER)
        bot_api.say("I am allergic to egg", chat_id=ALLERGIC)
        await bot_api.wait_for_message(1, TEENAGER)
        await bot_api.wait_for_message(1, ALLERGIC)
        assert await inline(bot_api, "lamb under 25", TEENAGER) == []
        assert await inline(bot_api, "I am 15, a beer", CHAT) == []
        assert await inline(bot_api, "lamb under 25", ALLERGIC)
        asked = [bot_api.ask_inline("a", STRANGER) for _ in range(30)]
        assert await inline(bot_api, "a white for fish")
        assert any(bot_api.inline_results(each) is None for each in asked)
        assert await inline(bot_api, "ein Roter zu Lamm unter 20 Euro")
    assert bot_api.calls_of("answerInlineQuery")[0].params["is_personal"] is True


async def test_only_who_is_let_in_is_offered_wines(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(
        bot_api, environment, ACCESS="allow_list", ADMIN_IDS=str(CHAT)
    ):
        assert await inline(bot_api, "lamb under 25", STRANGER) == []
        assert await inline(bot_api, "lamb under 25", CHAT)
    assert bot_api.sent(STRANGER) == []
