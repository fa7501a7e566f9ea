"""Tools with which the model stores and deletes facts about the user, and changes their cellar.

A tool changes nothing itself. It returns a `Change`, which the commit of the turn applies. The
reply lists the change below its text, with a button that undoes it.
"""

from agent.engine.tools import Tool
from agent.memory.cellar_tools import cellar_tools
from agent.memory.fact_tools import fact_tools


def memory_tools() -> list[Tool]:
    """Return the tools remember, forget, change_cellar and own_cellar."""
    return [*fact_tools(), *cellar_tools()]
