"""The window of a conversation that a model is shown."""

import json
from dataclasses import replace

from agent.sommelier.answer import to_model_message
from agent.sommelier.attachment import Attachment
from agent.turn import StoredMessage
from bot.telegram.conversation import as_visible_to, attachment_in


def test_a_model_reads_its_answers_as_it_wrote_them() -> None:
    cards = "**1. Pinot 2019**\nBaden\nRipe.\n\n**2. Merlot 2018**\nItaly"
    answer = f"Two reds:\n\n{cards}\n\nFor a roast?"
    assert said_by_model(answer, "pinot", "merlot") == {
        "response_type": "recommendation",
        "intro": "Two reds:",
        "wines": [{"wine_id": "pinot"}, {"wine_id": "merlot"}],
        "closing": "For a roast?",
    }
    assert said_by_model(f"On your list:\n\n{cards}") == {
        "response_type": "informational",
        "intro": "On your list:\n\n1. Pinot 2019\nBaden\nRipe.\n\n2. Merlot 2018\nItaly",
    }
    assert said_by_model("Wine from Jerez.")["intro"] == "Wine from Jerez."


def said_by_model(content: str, *wine_ids: str) -> dict[str, object]:
    message = {"role": "assistant", "content": content, "wine_ids": wine_ids}
    answer: dict[str, object] = json.loads(to_model_message(message)["content"])
    return answer


def test_the_picture_of_another_user_of_a_group_is_seen_only_in_reply_to_its_turn() -> None:
    picture = Attachment().model_dump_json()
    sent = StoredMessage("user", "my list", turn_id=3, user_id=7, attachment=picture)

    def is_seen(user_id: int, replied_turn_id: int | None = None) -> bool:
        return attachment_in([as_visible_to(user_id, sent, replied_turn_id)]) is not None

    assert [is_seen(7), is_seen(8), is_seen(8, replied_turn_id=3)] == [True, False, True]
    sent = replace(sent, turn_id=None)  # its turn is unknown
    assert not is_seen(8)
