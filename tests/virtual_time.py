"""An event loop whose clock goes on when nothing else is to be done: seconds take no time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Threads are not waited for: what would go into one is done at once."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.now


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._of = loop

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found and timeout:
            self._of.now += timeout
        return found


def in_virtual_time(work: Callable[[VirtualTimeLoop], Coroutine[Any, Any, R]]) -> R:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualTimeLoop)
        return runner.run(work(loop))
