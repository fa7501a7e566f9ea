"""Answer inline queries with wines, without a model. Users type inline queries in any chat."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from telegram import (
    InlineQuery,
    InlineQueryResultArticle,
    InputTextMessageContent,
    Update,
)
from telegram.ext import InlineQueryHandler

from agent.markdown import escape
from agent.sommelier.building_queries import parse_query
from agent.sommelier.cards import format_facts, get_shown_label, render_wine
from agent.sommelier.filters import find_wines
from agent.sommelier.tasting_notes import describe_taste
from agent.sommelier.wine import Wine
from bot.telegram.buttons import answer_inline_query
from bot.telegram.chat import AnyHandler, ChatTurn
from bot.telegram.rate_limit import Limit, RateLimit
from bot.telegram.render import split_messages

NO_CHAT: Final = 0
"""The chat of a query, as a turn has it: 0 for a question that belongs to no conversation."""
MAX_RESULTS: Final = 10
CACHE_SECONDS: Final = 60
"""How long Telegram may answer the same query of the same user from its cache."""
USER_LIMITS: Final = (Limit(20, 10),)
"""20 queries in 10 seconds: Telegram sends one for nearly every letter that a user types."""


def inline_handlers() -> list[AnyHandler]:
    """Return the handler of inline queries."""
    # Queries belong to no chat. They are counted by user, whose id is that of their private chat.
    rate_limit = RateLimit(per_chat=USER_LIMITS, per_group=(), overall=())
    return [InlineQueryHandler(partial(_answer_query, rate_limit))]


async def _answer_query(rate_limit: RateLimit, update: Update, turn: ChatTurn) -> None:
    """Answer an inline query with the wines that match it."""
    query = update.inline_query
    # A query beyond the limit stays without an answer: the next letter brings another one.
    if query is None or not rate_limit.count_if_allowed_now(query.from_user.id):
        return
    wines = await _find_wines(turn, query)
    results = []
    for index, wine in enumerate(wines):
        results.append(_make_article(index, wine))
    await answer_inline_query(query, results, CACHE_SECONDS)


async def _find_wines(turn: ChatTurn, query: InlineQuery) -> Sequence[Wine]:
    """Return the wines that match a query. A user who must not be offered alcohol gets none."""
    safety_service = turn.services.runner.safety
    user_id = query.from_user.id
    # The query itself may reveal a concern: "wine for a pregnant woman".
    state = await safety_service.find_state_in_any_chat(query.query, user_id)
    person = await safety_service.read_person(NO_CHAT, user_id, state)
    if person.safety.forbids_alcohol:
        return ()
    request = parse_query(query.query)
    limited = request.model_copy(update={"limit": MAX_RESULTS})
    search = await find_wines(turn.repositories.wines, limited, person)
    return search.wines


def _make_article(index: int, wine: Wine) -> InlineQueryResultArticle:
    """Return a result that shows a wine, and sends its card when the user chooses it."""
    card = render_wine(wine, escape(describe_taste(wine)))
    # A result is one message: the rest of a card that is too long is left out.
    first_message = split_messages(card)[0]
    return InlineQueryResultArticle(
        str(index),
        get_shown_label(wine),
        InputTextMessageContent(first_message),
        description=format_facts(wine),
    )
