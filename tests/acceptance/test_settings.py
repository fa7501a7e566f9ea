"""What a person sets holds for them: prices in searches, degrees, what is kept of answers."""

from tests.acceptance.test_end_to_end import running_here, traced_to
from tests.acceptance.test_languages import choose, said
from tests.doubles.bot_api import BotApi
from tests.doubles.otlp import OtlpReceiver
from tests.doubles.server import eventually

ADA, BOB = 7100480, 7100481


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
