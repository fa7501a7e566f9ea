"""The house sommelier: the rule-based model used with no key, or when every model is down."""

from agent.house_sommelier.model import HouseSommelier

__all__ = ["HouseSommelier"]
