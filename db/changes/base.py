"""The base of changes, and the transaction in which they are made."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from sqlalchemy.ext.asyncio import AsyncSession

from db.models import OutboxRow
from db.traces import TraceRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The transaction of a commit.

    `accepted_at` is when the turn was accepted, `now` when it is committed. `trace_rows` writes
    traces and their scores. A change adds to `messages` what must be sent because of the change.
    """

    session: AsyncSession
    accepted_at: datetime
    now: datetime
    trace_rows: TraceRows
    messages: list[OutboxRow]


class StoredChange(ABC):
    """A change of the database that a turn has collected."""

    is_personal: ClassVar[bool] = True
    """Whether the change is dropped if the user's data were deleted while the turn ran."""

    forgets: ClassVar[bool] = False
    """Whether the change deletes data that a turn which still runs would store again.

    The commit then waits for the other turns' commits, and later commits drop such data.
    """

    @abstractmethod
    async def apply(self, transaction: Transaction) -> None:
        """Make the change in the session of a transaction, which is committed later."""
