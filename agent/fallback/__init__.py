"""The rules that answer when there is no language model, or none that answers."""

from agent.fallback.answering import Fallback, LookUp, reply_to
from agent.fallback.request import read_request
from agent.fallback.searching import parse_query, unambiguous_query, wine_called
from agent.fallback.wording import describe_request, describe_search, describe_wine
from agent.fallback.words import language_of

__all__ = [
    "Fallback",
    "LookUp",
    "describe_request",
    "describe_search",
    "describe_wine",
    "language_of",
    "parse_query",
    "read_request",
    "reply_to",
    "unambiguous_query",
    "wine_called",
]
