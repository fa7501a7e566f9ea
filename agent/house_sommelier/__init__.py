"""The house sommelier: the rule-based model used with no key, or when every model is down."""

from agent.house_sommelier.criteria import country_in_words
from agent.house_sommelier.lexicon import Language
from agent.house_sommelier.model import HouseSommelier, language_of
from agent.house_sommelier.phrases import as_note, say

__all__ = ["HouseSommelier", "Language", "as_note", "country_in_words", "language_of", "say"]
