"""The turn that runs in a lane, for the updates that arrive while it does."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from bot.outgoing import Delivery
from bot.pending import PendingTurn, TurnState
from bot.updates.bursts import is_same_turn, merge
from db.records import Payload


class Superseded(Exception):
    """A correction arrived: the turn begins again together with it."""


class CurrentTurn:
    """The turn that runs in a lane; a correction that arrives before its commit cancels it."""

    def __init__(self, first: Payload) -> None:
        self.payloads: Sequence[Payload] = (first,)
        self.turn: PendingTurn | None = None
        self.state: TurnState | None = None
        self._is_superseded = False
        self._task: asyncio.Task[object] | None = None

    def begin(self, payloads: Sequence[Payload], turn: PendingTurn) -> None:
        """Begin a turn of these updates; corrections from before it are among them."""
        self.payloads, self.turn = payloads, turn

    def end(self) -> None:
        """End the turn, however it went."""
        if self.turn is not None:
            self.turn.delivered(Delivery())

    def take_in(self, payload: Payload) -> None:
        """Cancel the turn if this update corrects it and its answer is not committed."""
        if self._is_superseded or not is_same_turn(self.payloads, payload):
            return
        if self._task is None:
            # Between two tries nothing runs that could be cancelled: `handle` will see it.
            self._is_superseded = True
        elif self.turn is not None and self.turn.is_open:
            self._is_superseded = True
            self._task.cancel()

    async def handle(self, handle: Callable[[Payload], Awaitable[None]]) -> None:
        """Handle the updates of the turn as one.

        Raises:
            Superseded: a correction arrived meanwhile.
        """
        if self._is_superseded:
            self._is_superseded = False
            raise Superseded
        self._task = task = asyncio.current_task()
        try:
            await handle(merge(self.payloads))
        except asyncio.CancelledError:
            # Closing cancels the task too, perhaps at the same time as a correction does: only a
            # cancellation that is a correction's alone is taken back.
            if not self._is_superseded or task is None or task.uncancel():
                raise
            self._is_superseded = False
            raise Superseded from None
        finally:
            self._task = None
