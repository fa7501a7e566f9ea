"""What a person sets holds for them: prices in searches, degrees, what is kept of answers."""

from tests.acceptance.test_end_to_end import running_here
from tests.acceptance.test_languages import buttons, pressed, said, settings
from tests.doubles.bot_api import BotApi
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import eventually

ADA, BOB = 7100480, 7100481
SERVING = "At what temperature do I serve Cabernet Sauvignon?"


async def chosen(bot_api: BotApi, person: int, setting: str, choice: str) -> None:
    """Choose something in a menu that was just opened, as a thumb does."""

    def shown() -> set[str]:
        return {*buttons(settings(bot_api, person))}

    def is_there(label: str) -> bool:
        return any(each.startswith(label) for each in shown())

    for label, then in ((setting, choice), (choice, setting)):
        await eventually(lambda: is_there(label), seconds=20, otherwise=lambda: str(shown()))  # noqa: B023
        exact = next(each for each in shown() if each.startswith(label))
        await pressed(bot_api, exact, person)
        await eventually(lambda: is_there(then), seconds=20, otherwise=lambda: str(shown()))  # noqa: B023


def prices(text: str) -> list[float]:
    return [float(each.split()[0].rstrip(".,")) for each in text.split("≈ €")[1:]]


async def test_usual_prices_hold_until_words_say_otherwise(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        await said(bot_api, "/settings", ADA)
        await chosen(bot_api, ADA, "Price of a bottle", "€30 to €60")
        answer = await said(bot_api, "a red for lamb", ADA)
        assert prices(answer)
        assert all(30 <= price <= 60 for price in prices(answer))
        assert all(price <= 15 for price in prices(await said(bot_api, "a white under 15", ADA)))
        assert "usually €30 to €60" in str((await last(bot_api, "/taste", ADA))["reply_markup"])
        # Nobody else's.
        assert min(prices(await said(bot_api, "a red for lamb", BOB))) < 30
        await said(bot_api, "/settings", ADA)
        await chosen(bot_api, ADA, "Price of a bottle", "any")
        await said(bot_api, "/new", ADA)
        assert min(prices(await said(bot_api, "a red for lamb", ADA))) < 30


async def last(bot_api: BotApi, words: str, person: int) -> dict[str, object]:
    await said(bot_api, words, person)
    return bot_api.messages(person)[-1]


async def test_degrees_are_told_as_chosen(bot_api: BotApi, environment: dict[str, str]) -> None:
    async with running_here(bot_api, environment):
        assert "16 to 18 °C" in await said(bot_api, SERVING, ADA)
        await said(bot_api, "/settings", ADA)
        await chosen(bot_api, ADA, "Temperatures", "°F")
        assert "61 to 64 °F" in await said(bot_api, SERVING, ADA)


async def test_whoever_wants_numbers_alone_has_no_words_in_traces(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, environment: dict[str, str]
) -> None:
    langfuse = {
        "LANGFUSE_PUBLIC_KEY": otlp_receiver.public_key,
        "LANGFUSE_SECRET_KEY": otlp_receiver.secret_key,
        "LANGFUSE_BASE_URL": otlp_receiver.base_url,
    }
    async with running_here(bot_api, environment, **langfuse):
        await said(bot_api, "/settings", ADA)
        await chosen(bot_api, ADA, "Records of answers", "numbers only")
        await said(bot_api, "a red for lamb, says zanzibar", ADA)
        await said(bot_api, "a red for lamb, says quebracho", BOB)
        await otlp_receiver.wait_for_spans(6)
        await eventually(
            lambda: len([each for each in otlp_receiver.spans if each.name == "turn"]) == 2,
            seconds=20,
            otherwise=lambda: str(otlp_receiver.spans),
        )
    assert "quebracho" in str(otlp_receiver.spans)
    assert "zanzibar" not in str(otlp_receiver.spans)
