"""Voice messages to the running bot; Telegram, the models and the transcriber are doubles."""

from tests.acceptance.test_end_to_end import CHAT, known_to, running_here
from tests.acceptance.test_pictures import recommending
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, error, raw
from tests.doubles.server import eventually

LAMB = "a red for lamb with Gugelhupf, under 25 euros"
FORWARDED = {"type": "hidden_user", "sender_user_name": "Bob", "date": 1}
SOUND = b"OggS, as far as anybody here knows"


def hearing(server: ModelServer, **more: str) -> dict[str, str]:
    return {
        "TRANSCRIPTION_MODEL": "whisper-1",
        "SECOND_BASE_URL": server.base_url,
        "SECOND_API_KEY": "sk-ears",
        **more,
    }


async def test_a_voice_message_is_transcribed_shown_and_answered_in_its_language(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.hear("Ein Rotwein zu Lamm, bis 25 Euro.")
    bot_api.send("voice", SOUND, CHAT, duration=4)
    async with running_here(bot_api, environment, **hearing(model_server)):
        (said,) = await bot_api.wait_for_message(1, chat_id=CHAT)
        bot_api.say("und billiger?", CHAT)
        await bot_api.wait_for_message(2, chat_id=CHAT)
    lead, answer = said.split("\n\n", 1)
    assert lead.endswith(": Ein Rotwein zu Lamm, bis 25 Euro.")
    assert "Lamm" in answer
    assert "bis 25\u00a0€" in answer
    (recording,) = model_server.recordings
    assert (recording.params["model"], recording.file.data) == ("whisper-1", SOUND)
    assert recording.file.filename == "voice.ogg"


async def test_a_forwarded_recording_is_answered_as_the_words_of_somebody_else(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.hear(LAMB, "I hate Chardonnay")
    model_server.script(*[recommending(intro="Lamb likes Rioja.")] * 2)
    settings = hearing(model_server, **known_to(model_server))
    bot_api.send("voice", SOUND, CHAT)
    async with running_here(bot_api, environment, **settings):
        (said,) = await bot_api.wait_for_message(1, chat_id=CHAT)
        assert said == f"I understood: {LAMB}\n\nLamb likes Rioja."
        assert model_server.requests[-1].json["messages"][-1]["content"] == LAMB
        bot_api.send("voice", SOUND, CHAT, forward_origin=FORWARDED)
        await bot_api.wait_for_message(2, chat_id=CHAT)
    asked = model_server.requests[-1].json["messages"][-1]["content"]
    assert asked == "[forwarded, written by somebody else]\n> I hate Chardonnay"


async def test_users_learn_that_a_recording_cannot_be_transcribed(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.hear(error(500), error(500), raw(b'{"text": " "}'))
    async with running_here(bot_api, environment, **hearing(model_server)):
        for count, duration in enumerate((1, 1, 181), 1):
            bot_api.send("voice", SOUND, CHAT, duration=duration)
            said = await bot_api.wait_for_message(count, chat_id=CHAT)
    assert all(text.startswith("I'm sorry, I couldn't understand") for text in said[:2])
    assert (
        said[2] == "That recording is too long for me. Please send up to 180 seconds."
    )
    assert len(model_server.recordings) == 3
    async with running_here(bot_api, environment):
        bot_api.send("voice", SOUND, CHAT)
        (*_, said_without) = await bot_api.wait_for_message(4, chat_id=CHAT)
    assert said_without.startswith("I can only read text.")


async def test_an_answer_is_read_aloud_to_users_who_chose_that(
    bot_api: BotApi, model_server: ModelServer, environment: dict[str, str]
) -> None:
    model_server.hear(LAMB, LAMB)
    settings = hearing(model_server, SPEECH_MODEL="tts-1")
    async with running_here(bot_api, environment, **settings):
        bot_api.send("voice", SOUND, CHAT)
        await bot_api.wait_for_message(1, chat_id=CHAT)
        bot_api.say("/settings", CHAT)
        await bot_api.wait_for_message(2, chat_id=CHAT)
        shown = bot_api.messages(CHAT)[-1]
        assert "Read aloud: off ✓" in str(shown["reply_markup"])
        bot_api.press(shown, "s:aloud:on")
        await eventually(lambda: "Read aloud: on ✓" in str(bot_api.messages(CHAT)[-1]))
        bot_api.send("voice", SOUND, CHAT)
        await bot_api.wait_for_message(4, chat_id=CHAT)
    assert [call.files["voice"].data[:4] for call in bot_api.calls_of("sendVoice")] == [
        b"OggS"
    ]
    (asked,) = model_server.speech_requests
    assert (asked["model"], asked["voice"]) == ("tts-1", "alloy")
    assert asked["input"] in bot_api.sent(CHAT)[2]
    assert "I understood" not in asked["input"]
