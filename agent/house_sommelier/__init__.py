"""The house sommelier: answers by rules when there is no key, or every model is down. Pure."""

from agent.house_sommelier.model import HouseSommelier, language_of, query_for
from agent.house_sommelier.wording import as_note, country_in_words, say

__all__ = ["HouseSommelier", "as_note", "country_in_words", "language_of", "query_for", "say"]
