"""Make each call of a tool that may write at most once in a turn, even if the turn is tried again.

The calls are stored before they are made. A try that begins after a crash reads them.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import BaseModel

from agent.engine.errors import ToolError
from agent.engine.run import Run
from agent.engine.tools import Tool

MADE_IN_EARLIER_TRY: Final = (
    "this tool may write, and an interrupted try of this turn has called it: {call}. Whether that "
    "had an effect is not known, so it is not called again: tell the user what was called"
)
MADE_IN_THIS_TRY: Final = (
    "this tool may write, and you have called it with these arguments already"
)


SaveCalls = Callable[[Sequence[str]], Awaitable[None]]


async def _save_nothing(calls: Sequence[str]) -> None:
    """Store nothing. This is for turns that are not tried again."""


@dataclass(slots=True)
class WritingCalls:
    """The calls of a turn to tools that may write.

    A call is the name of the tool, a space, and the arguments as JSON.
    """

    earlier: tuple[str, ...] = ()
    """The calls of earlier tries, which a crash or a correction of the user has ended."""
    made: list[str] = field(default_factory=list)
    """The calls of the present try."""
    save: SaveCalls = _save_nothing
    """Stores the calls of all tries. It is called before the last of these calls is made."""
    _saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while calls are stored. The calls of one response are made at the same time, and without
    this lock an older list of calls could be stored over a newer one."""

    async def add(self, tool_name: str, arguments: str) -> None:
        """Store a call. The caller may make it only after this.

        Raises:
            ToolError: an earlier try has called the tool, or this try has called it with the same
                arguments.
        """
        call = f"{tool_name} {arguments}"
        for earlier_call in self.earlier:
            earlier_tool, _, _ = earlier_call.partition(" ")
            if earlier_tool == tool_name:
                raise ToolError(MADE_IN_EARLIER_TRY.format(call=earlier_call))
        if call in self.made:
            raise ToolError(MADE_IN_THIS_TRY)
        self.made.append(call)
        async with self._saving:
            all_calls = [*self.earlier, *self.made]
            await self.save(all_calls)

    def begin_try(self) -> None:
        """Begin another try: the calls made so far become calls of earlier tries."""
        self.earlier += tuple(self.made)
        self.made = []


def once_a_turn(tool: Tool, calls: WritingCalls) -> Tool:
    """Return a tool that stores each call before making it, and makes no call twice."""

    async def run_once(arguments: BaseModel, run: Run) -> object:
        values: dict[str, Any] = arguments.model_dump(mode="json")
        # With sorted keys, equal arguments have equal texts.
        arguments_json = json.dumps(values, ensure_ascii=False, sort_keys=True)
        await calls.add(tool.name, arguments_json)
        return await tool.function(arguments, run)

    return replace(tool, function=run_once)
