"""Finished traces into the database, where there is no Langfuse: `sommelier traces` shows them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import TimeoutError as NotInTime
from typing import Final

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from agent.tracing.exporter import Exporter, RetryLater
from agent.tracing.records import TraceRecord

SAVE_SECONDS: Final = 10.0

Save = Callable[[Sequence[TraceRecord]], Awaitable[None]]


def store_sink(save: Save, prepare: Callable[[TraceRecord], TraceRecord]) -> Exporter:
    """Open a sink that has `save` keep what `prepare` leaves of a trace, on this event loop."""
    loop = asyncio.get_running_loop()

    async def keep(traces: Sequence[TraceRecord]) -> None:
        await save(traces)

    def send(traces: Sequence[TraceRecord]) -> None:
        shown = [prepare(trace) for trace in traces]
        saving = asyncio.run_coroutine_threadsafe(keep(shown), loop)
        try:
            saving.result(SAVE_SECONDS)
        except NotInTime:
            saving.cancel()
            raise RetryLater("it does not answer") from None
        except (InterfaceError, OperationalError, PoolTimeout, OSError) as error:
            raise RetryLater(type(error).__name__) from None

    return Exporter(send, where="the database")
