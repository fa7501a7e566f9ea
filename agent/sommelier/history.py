"""Convert the history of a conversation: to store it, and for a model to read it."""

from collections.abc import Iterable, Sequence

from agent.engine.messages import Message
from agent.language import truncate_at_boundary
from agent.markdown import unescape
from agent.sommelier.attachment import AnyWine
from agent.sommelier.basket import format_total_for_model, list_basket
from agent.sommelier.sommelier_prompts import (
    ResponseType,
    SommelierResponse,
    StoredAnswer,
    StoredWine,
)
from agent.sommelier.vocabulary import format_money_for_model
from agent.turn import StoredMessage


def to_stored(answer: SommelierResponse, wines: Iterable[AnyWine]) -> StoredAnswer:
    """Return an answer in the form in which it is stored, with the name and price of each wine."""
    wines_by_id = {wine.id: wine for wine in wines}
    stored_wines: list[StoredWine] = []
    for item in answer.wines:
        wine = wines_by_id[item.wine_id]
        price = ""
        if wine.price is not None:
            price = format_money_for_model(wine.price, wine.currency)
        stored_wine = StoredWine(
            wine_id=wine.id,
            name=wine.label,
            price=price,
            bottles=item.bottles,
            size=item.size,
            description=item.description,
        )
        stored_wines.append(stored_wine)
    lines = list_basket(answer.wines, wines_by_id)
    return StoredAnswer(
        response_type=answer.response_type,
        intro=answer.intro,
        wines=tuple(stored_wines),
        total=format_total_for_model(lines),
        closing=answer.closing,
    )


def cut_stored(answer: StoredAnswer, max_chars: int) -> StoredAnswer:
    """Return an answer whose prose is cut to a number of characters, where a sentence ends."""
    intro = truncate_at_boundary(answer.intro, max_chars)
    remaining = max_chars - len(intro)
    wines: list[StoredWine] = []
    for wine in answer.wines:
        description = truncate_at_boundary(wine.description, remaining)
        remaining -= len(description)
        wines.append(wine.model_copy(update={"description": description}))
    update = {
        "intro": intro,
        "wines": tuple(wines),
        "closing": truncate_at_boundary(answer.closing, remaining),
    }
    return answer.model_copy(update=update)


def to_model_message(message: StoredMessage) -> Message:
    """Return a stored message as a model reads it. Answers are JSON, as the model writes them.

    An answer that an earlier release stored as a text becomes the intro of the JSON.
    """
    if message.role == "user":
        return {"role": "user", "content": message.content}
    if message.answer:
        return {"role": "assistant", "content": message.answer}
    wines = tuple(StoredWine(wine_id=wine_id) for wine_id in message.wine_ids)
    response_type: ResponseType = "informational"
    if wines:
        response_type = "recommendation"
    plain_text = unescape(message.content).replace("**", "")
    answer = StoredAnswer(
        response_type=response_type,
        intro=plain_text.strip(),
        wines=wines,
    )
    return {"role": "assistant", "content": answer.to_json()}


def to_history(stored: Sequence[StoredMessage]) -> list[Message]:
    """Return stored messages as the history of a run.

    Blank messages are left out, because some servers respond to them with an error.
    """
    history: list[Message] = []
    for message in stored:
        if message.content.strip():
            history.append(to_model_message(message))
    return history
