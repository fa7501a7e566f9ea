"""What a person sets holds for them: prices in searches, degrees, what is kept of answers."""

from tests.acceptance.test_end_to_end import running_here, traced_to
from tests.acceptance.test_languages import choose, said
from tests.doubles.bot_api import BotApi
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import eventually

ADA, BOB = 7100480, 7100481


def prices(text: str) -> list[float]:
    return [float(price.split()[0].rstrip(".,")) for price in text.split("≈ €")[1:]]


async def test_usual_prices_hold_until_words_say_otherwise(
    bot_api: BotApi, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment):
        assert "usually €30 to €60" in await said(bot_api, "/taste 30 to 60 euros", ADA)
        answer = await said(bot_api, "a red for lamb", ADA)
        assert prices(answer)
        assert all(30 <= price <= 60 for price in prices(answer))
        assert all(price <= 15 for price in prices(await said(bot_api, "a white under 15", ADA)))
        # Nobody else's.
        assert min(prices(await said(bot_api, "a red for lamb", BOB))) < 30


async def test_whoever_wants_numbers_alone_has_no_words_in_traces(
    bot_api: BotApi, otlp_receiver: OtlpReceiver, environment: dict[str, str]
) -> None:
    async with running_here(bot_api, environment, **traced_to(otlp_receiver)):
        await said(bot_api, "/settings", ADA)
        await choose(bot_api, ADA, "Records of answers: numbers only")
        await said(bot_api, "a red for lamb, says zanzibar", ADA)
        await said(bot_api, "a red for lamb, says quebracho", BOB)
        await otlp_receiver.wait_for_spans(6)
        await eventually(
            lambda: len([span for span in otlp_receiver.spans if span.name == "turn"]) == 2,
            seconds=20,
            otherwise=lambda: str(otlp_receiver.spans),
        )
    assert "quebracho" in str(otlp_receiver.spans)
    assert "zanzibar" not in str(otlp_receiver.spans)
