"""The rules that answer when there is no language model, or none that answers."""

from agent.fallback.answering import Fallback, LookUp, reply_to, source_of
from agent.fallback.library import Passage
from agent.fallback.request import Request, read_request
from agent.fallback.searching import certain_query, query_for, wine_called
from agent.fallback.wording import describe_wine, request_in_words, search_in_words
from agent.fallback.words import language_of

__all__ = [
    "Fallback",
    "LookUp",
    "Passage",
    "Request",
    "certain_query",
    "describe_wine",
    "language_of",
    "query_for",
    "read_request",
    "reply_to",
    "request_in_words",
    "search_in_words",
    "source_of",
    "wine_called",
]
