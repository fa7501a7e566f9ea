"""The window of a conversation that a model is shown."""

import json
from dataclasses import replace

from agent.engine.contract import Evidence
from agent.sommelier.attachment import Attachment
from agent.sommelier.grounding import FigureChecker
from agent.sommelier.history import cut_stored, to_model_message
from agent.sommelier.sommelier_prompts import StoredAnswer, StoredWine
from agent.sommelier.vocabulary import format_money_for_model
from agent.turn import StoredMessage
from bot.telegram.chat import as_visible_to, attachment_in
from tests.doubles.model_server import ModelServer
from tests.fakes import CHINON
from tests.faults.turns import QUESTION, VALID, reply_to, search, valid


def test_a_model_reads_an_answer_of_an_earlier_release_as_its_intro() -> None:
    answer = "Two reds:\n\n**1. Pinot 2019**\nBaden\n\nUnder 20 \\* 2?"
    assert read_by_model(StoredMessage("assistant", answer, ("pinot",))) == {
        "response_type": "recommendation",
        "intro": "Two reds:\n\n1. Pinot 2019\nBaden\n\nUnder 20 * 2?",
        "wines": [{"wine_id": "pinot"}],
    }
    assert read_by_model(StoredMessage("assistant", "Wine from Jerez.")) == {
        "response_type": "informational",
        "intro": "Wine from Jerez.",
    }


async def test_a_model_reads_its_last_answer_with_the_names_and_prices_of_the_wines(
    model_server: ModelServer,
) -> None:
    model_server.script(search(), valid(), search(), valid())
    first, _ = await reply_to(QUESTION, server=model_server)
    shown = StoredMessage(
        "assistant", first.text, first.wine_ids, answer=first.stored_answer
    )
    await reply_to(
        "now write that again in Japanese",
        server=model_server,
        history=[StoredMessage("user", QUESTION), shown],
    )
    *_, earlier = [
        message
        for message in model_server.requests[-1].json["messages"]
        if message["role"] == "assistant" and not message.get("tool_calls")
    ]
    (wine,) = json.loads(earlier["content"])["wines"]
    assert (wine["name"], wine["description"]) == (
        CHINON.label,
        VALID["wines"][0]["description"],
    )
    assert format_money_for_model(CHINON.price or 0, CHINON.currency) == wine["price"]


def test_the_price_of_a_wine_shown_before_grounds_no_other_wine() -> None:
    wines = (StoredWine(wine_id="pinot", name="Pinot 2011", price="€14"),)
    answer = StoredAnswer(
        response_type="recommendation", intro="At 12 °C.", wines=wines
    )
    checker = FigureChecker(Evidence({}, [], [answer.to_json()]))
    assert checker.find_wrong_figures("At 12 °C, for €14, a 2011.", None)
    assert not checker.find_wrong_figures("At 12 °C.", None)


def test_a_stored_answer_is_cut_where_a_sentence_ends() -> None:
    wines = (StoredWine(wine_id="pinot", description="It is red. " * 20),)
    answer = StoredAnswer(
        response_type="recommendation", intro="One red. " * 10, wines=wines
    )
    cut = cut_stored(answer, 120)
    assert cut.intro == answer.intro
    assert cut.wines[0].description == "It is red. It is red."
    assert len(cut.intro + cut.wines[0].description) <= 120


def read_by_model(message: StoredMessage) -> dict[str, object]:
    answer: dict[str, object] = json.loads(to_model_message(message)["content"])
    return answer


def test_the_picture_of_another_user_of_a_group_is_seen_only_in_reply_to_its_turn() -> (
    None
):
    picture = Attachment().model_dump_json()
    sent = StoredMessage("user", "my list", turn_id=3, user_id=7, attachment=picture)

    def is_seen(user_id: int, replied_turn_id: int | None = None) -> bool:
        return (
            attachment_in([as_visible_to(user_id, sent, replied_turn_id)]) is not None
        )

    assert [is_seen(7), is_seen(8), is_seen(8, replied_turn_id=3)] == [
        True,
        False,
        True,
    ]
    sent = replace(sent, turn_id=None)  # its turn is unknown
    assert not is_seen(8)
