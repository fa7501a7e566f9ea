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

    `accepted_at` is when the turn was accepted, `now` when it is committed. To `messages` a change
    adds what is to be sent because of it.
    """

    session: AsyncSession
    accepted_at: datetime
    now: datetime
    trace_rows: TraceRows
    messages: list[OutboxRow]


class StoredChange(ABC):
    """A change of the database that a turn has collected."""

    is_personal: ClassVar[bool] = True
    """Whether it is dropped if the user's data were deleted while the turn ran."""

    forgets: ClassVar[bool] = False
    """Whether it deletes what turns that still run would store; they must not store it again."""

    @abstractmethod
    async def apply(self, transaction: Transaction) -> None:
        """Make the change in the session of a transaction, which is committed later."""
