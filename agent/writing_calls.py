"""Calls of tools that may write: each is made at most once in a turn, however often it is tried."""

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


async def _save_nothing(calls: Sequence[str]) -> None:
    """Keep the calls in memory: no other try of the turn follows."""


@dataclass(slots=True)
class WritingCalls:
    """The calls of a turn that may write. Each is a tool's name and its arguments as JSON.

    `earlier` are those of tries before, which a crash or a correction has ended. `save` stores all
    calls before the last of them is made.
    """

    earlier: tuple[str, ...] = ()
    made: list[str] = field(default_factory=list)
    save: Callable[[Sequence[str]], Awaitable[None]] = _save_nothing
    _saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while calls are stored: those of one response are made at once, and an older list must
    not be stored over a newer one."""

    async def add(self, tool_name: str, arguments: str) -> None:
        """Store a call; only then may it be made.

        Raises:
            ToolError: an earlier try has called the tool, or this one with the same arguments.
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
            await self.save([*self.earlier, *self.made])

    def begin_try(self) -> None:
        """Regard the calls made so far as those of an earlier try."""
        self.earlier += tuple(self.made)
        self.made = []


def once_a_turn(tool: Tool, calls: WritingCalls) -> Tool:
    """Return a tool that stores each of its calls before it runs, and repeats none of them."""

    async def run_once(arguments: BaseModel, run: Run) -> object:
        values: dict[str, Any] = arguments.model_dump(mode="json")
        written = json.dumps(values, ensure_ascii=False, sort_keys=True)
        await calls.add(tool.name, written)
        return await tool.function(arguments, run)

    return replace(tool, function=run_once)
