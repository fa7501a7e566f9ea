"""The house sommelier: answers by rules when there is no key, or every model is down. Pure."""

from agent.house_sommelier.model import HouseSommelier, query_for

__all__ = ["HouseSommelier", "query_for"]
