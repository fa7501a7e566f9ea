"""Offer wines inline in any chat, without a model."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from telegram import InlineQuery, InlineQueryResultArticle, InputTextMessageContent, Update
from telegram.ext import InlineQueryHandler

from agent.fallback.searching import parse_query
from agent.markdown import escape
from agent.sommelier.answer import format_facts, render_wine
from agent.sommelier.safety import find_wines
from agent.sommelier.wine import Wine
from bot.telegram.buttons import answer_inline
from bot.telegram.conversation import AnyHandler, Conversation
from bot.telegram.rate_limit import Limit, RateLimit
from bot.telegram.render import split_messages

MOST: Final = 10
CACHED_SECONDS: Final = 60
"""Seconds for which Telegram may repeat an answer to this user by itself."""
PER_PERSON: Final = (Limit(20, 10),)
"""A fast typist asks twice a second."""


def inline_handlers() -> list[AnyHandler]:
    """Return the handler of inline queries."""
    return [InlineQueryHandler(partial(_offer, RateLimit(PER_PERSON, PER_PERSON, ())))]


async def _offer(limit: RateLimit, update: Update, conversation: Conversation) -> None:
    """Offer wines to send in any chat; none to a user who is offered no alcohol."""
    query = update.inline_query
    if query is not None and limit.count_if_free(query.from_user.id):
        wines = await _find(conversation, query)
        results = [_article(number, wine) for number, wine in enumerate(wines)]
        await answer_inline(query, results, CACHED_SECONDS)


async def _find(conversation: Conversation, query: InlineQuery) -> Sequence[Wine]:
    safety, user_id = conversation.turns.safety, query.from_user.id
    state = await safety.find_state_in_any_chat(query.query, user_id)
    person = await safety.read_person(0, user_id, state)
    if person.safety.forbids_alcohol or person.safety.is_crisis:
        return ()
    request = parse_query(query.query).model_copy(update={"limit": MOST})
    found = await find_wines(conversation.repositories.wines, request, person)
    return found.wines[:MOST]


def _article(number: int, wine: Wine) -> InlineQueryResultArticle:
    return InlineQueryResultArticle(
        str(number),
        wine.label,
        InputTextMessageContent(split_messages(render_wine(wine, escape(wine.notes)))[0]),
        description=format_facts(wine),
    )
