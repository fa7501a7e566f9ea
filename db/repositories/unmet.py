"""Read what guests wanted and did not get.

These are the turns that lacked something for their answer, and those whose answer was disliked.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, Select, case, select

from db.engine import SqlRepository
from db.models import TurnRow
from db.models.conversations import UNMET
from db.repositories.turns import IS_HIDDEN, Question

MAX_WISHES: Final = 2_000
"""How many wishes are read at most: the newest ones."""
DISLIKED: Final = "disliked"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmetWish:
    """A wish of a guest that a turn did not meet.

    `reasons` has the `Lack` of the turn if it has one. If the guest pressed 👎, it also has the
    reason that the guest chose, or else "disliked". `words` are what the guest wrote. The words are
    empty if the guest keeps them out of traces, or has deleted them.
    """

    at: datetime
    reasons: tuple[str, ...]
    words: str
    comment: str
    trace_id: str


class UnmetWishes(SqlRepository):
    """The wishes of guests that were not met."""

    async def list_between(
        self,
        start: datetime,
        end: datetime,
        mask: Callable[[str], str],
    ) -> list[UnmetWish]:
        """Return the wishes of this time, the newest first. `mask` masks all that guests wrote."""
        rows = await self._rows(_select_unmet(start, end))

        def to_wishes() -> list[UnmetWish]:
            return [_to_wish(row, mask) for row in rows]

        # This runs in a thread, because masking many texts takes long, and others must not wait.
        return await asyncio.to_thread(to_wishes)


def _select_unmet(start: datetime, end: datetime) -> Select[*tuple[Any, ...]]:
    """Return the query for the wishes of this time, each with the message that states it."""
    is_of_turn = Question.turn_id == TurnRow.turn_id
    is_question = Question.role == "user"
    # Hidden texts are left out by the database, so that this process never has them.
    words = case((IS_HIDDEN, ""), else_=Question.content)
    comment = case((IS_HIDDEN, ""), else_=TurnRow.comment)
    return (
        select(
            TurnRow.at,
            TurnRow.lack,
            TurnRow.verdict,
            TurnRow.reason,
            TurnRow.trace_id,
            words.label("words"),
            comment.label("shown_comment"),
        )
        .outerjoin(Question, is_of_turn & is_question)
        .where(TurnRow.at >= start, TurnRow.at < end, UNMET)
        .order_by(TurnRow.at.desc())
        .limit(MAX_WISHES)
    )


def _to_wish(row: Row[Any], mask: Callable[[str], str]) -> UnmetWish:
    """Return the wish in a row. Its reasons are what the bot lacked, and the user's dislike."""
    reasons: list[str] = []
    if row.lack:
        reasons.append(row.lack)
    if row.verdict == DISLIKED:
        reasons.append(row.reason or DISLIKED)
    return UnmetWish(
        at=row.at,
        reasons=tuple(reasons),
        words=mask(row.words or ""),
        comment=mask(row.shown_comment),
        trace_id=row.trace_id or "",
    )
