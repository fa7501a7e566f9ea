"""The history of a conversation as it is stored, and as a model reads it."""

from collections.abc import Iterable, Sequence

from agent.engine.messages import Message
from agent.language import truncate_at_boundary
from agent.markdown import unescape
from agent.sommelier.attachment import AnyWine
from agent.sommelier.basket import format_total_for_model, list_basket
from agent.sommelier.sommelier_prompts import (
    SommelierResponse,
    StoredAnswer,
    StoredWine,
)
from agent.sommelier.vocabulary import format_money_for_model
from agent.turn import StoredMessage


def to_stored(answer: SommelierResponse, wines: Iterable[AnyWine]) -> StoredAnswer:
    """Return an answer as it is stored: each of its wines with its name and price."""
    known = {wine.id: wine for wine in wines}
    stored_wines = []
    for item in answer.wines:
        wine = known[item.wine_id]
        price = (
            ""
            if wine.price is None
            else format_money_for_model(wine.price, wine.currency)
        )
        stored_wines.append(
            StoredWine(
                wine_id=wine.id,
                name=wine.label,
                price=price,
                bottles=item.bottles,
                size=item.size,
                description=item.description,
            )
        )
    return StoredAnswer(
        response_type=answer.response_type,
        intro=answer.intro,
        wines=tuple(stored_wines),
        total=format_total_for_model(list_basket(answer.wines, known)),
        closing=answer.closing,
    )


def cut_stored(answer: StoredAnswer, max_chars: int) -> StoredAnswer:
    """Return an answer whose prose has at most so many characters, cut where a sentence ends."""
    remaining = max_chars

    def cut(text: str) -> str:
        nonlocal remaining
        kept = truncate_at_boundary(text, remaining)
        remaining -= len(kept)
        return kept

    intro = cut(answer.intro)
    wines = [
        wine.model_copy(update={"description": cut(wine.description)})
        for wine in answer.wines
    ]
    return answer.model_copy(
        update={"intro": intro, "wines": tuple(wines), "closing": cut(answer.closing)}
    )


def to_model_message(message: StoredMessage) -> Message:
    """Return a stored message as a model reads it: answers are JSON, as the model writes them.

    An answer that was stored as a text, as by earlier releases, is the intro of its JSON.
    """
    if message.role == "user":
        return {"role": "user", "content": message.content}
    if message.answer:
        return {"role": "assistant", "content": message.answer}
    answer = StoredAnswer(
        response_type="recommendation" if message.wine_ids else "informational",
        intro=unescape(message.content).replace("**", "").strip(),
        wines=tuple(StoredWine(wine_id=wine_id) for wine_id in message.wine_ids),
    )
    return {"role": "assistant", "content": answer.to_json()}


def to_history(stored: Sequence[StoredMessage]) -> list[Message]:
    """Return stored messages as the history of a run.

    Blank messages are left out, because some servers respond to them with an error.
    """
    return [to_model_message(message) for message in stored if message.content.strip()]
