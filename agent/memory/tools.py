"""Tools with which the model stores and deletes facts about the user, and changes their cellar.

A tool changes nothing itself: it returns a `Change`, applied when the turn is committed. The reply
lists the change below its text, with a button that undoes it.
"""

from agent.engine.tools import Tool
from agent.memory.cellar_tools import cellar_tools
from agent.memory.fact_tools import fact_tools


def memory_tools() -> list[Tool]:
    """Return remember, forget, change_cellar and own_cellar, for every stored user."""
    return [*fact_tools(), *cellar_tools()]
