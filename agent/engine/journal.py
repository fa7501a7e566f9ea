"""Where the steps of a turn are recorded, so that a turn that was interrupted goes on."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

R = TypeVar("R")


class Journal(Protocol):
    """Records what the steps of a turn returned.

    When a turn is run again after an interruption, steps that are recorded return what they
    returned then, without running. So between steps a turn depends on nothing but their results,
    and steps are begun in the same order each time.
    """

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Return what `run` returns, plain data; from the record if this step was run before.

        Raises:
            StepsChanged: another step is recorded at this place.
        """
        ...


class StepsChanged(BaseException):
    """A turn that is run again begins another step than the one that is recorded there.

    So it was when an earlier release began the turn, or somebody was let in meanwhile. No
    `Exception`, as a cancellation is none: whoever runs turns begins this one anew, nobody else is
    to take it for the failure of what the step did.
    """


class NoJournal:
    """Every step simply runs."""

    async def step(self, name: str, run: Callable[[], Awaitable[R]]) -> R:
        """Run it."""
        return await run()


NO_JOURNAL: Final = NoJournal()
