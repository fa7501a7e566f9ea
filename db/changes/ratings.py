"""Change the feedback on an answer, and the taste and the scores that follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from agent.memory.exports import TasteRating
from agent.text import strip_unstorable
from db.changes.base import StoredChange, Transaction
from db.models import MessageRow, TasteRatingRow, TurnRow, Verdict, WineRow

MAX_TASTE_RATINGS: Final = 500
"""How many ratings of tastes are kept of a user, the newest. Every turn reads them."""
MAX_COMMENT_CHARS: Final = 1000


@dataclass(frozen=True, slots=True)
class RateTurn(StoredChange):
    """Stores the verdict on a turn. `verdict` is None to take back an earlier one.

    A changed verdict clears reason and comment. If the turn was deleted, nothing happens: its
    buttons remain, and users press them.
    """

    turn_id: int
    verdict: Verdict | None

    async def apply(self, transaction: Transaction) -> None:
        """Change the row, unless it has this verdict already."""
        # One conditional statement, so that simultaneous presses on two replicas both count.
        rate = (
            update(TurnRow)
            .where(
                TurnRow.turn_id == self.turn_id,
                TurnRow.verdict.is_distinct_from(self.verdict),
            )
            .values(verdict=self.verdict, reason=None, comment="")
        )
        await transaction.session.execute(rate)
        await _update_taste_and_scores(transaction, self.turn_id)


@dataclass(frozen=True, slots=True)
class ExplainRating(StoredChange):
    """Stores the reason for a dislike, or a comment on it, cut at `MAX_COMMENT_CHARS`."""

    turn_id: int
    field: Literal["reason", "comment"]
    text: str

    async def apply(self, transaction: Transaction) -> None:
        """Change the row, if the turn is disliked."""
        text = strip_unstorable(self.text).strip()
        explain = (
            update(TurnRow)
            .where(
                TurnRow.turn_id == self.turn_id,
                TurnRow.verdict == "disliked",
            )
            .values({self.field: text[:MAX_COMMENT_CHARS]})
        )
        await transaction.session.execute(explain)
        await _update_taste_and_scores(transaction, self.turn_id)


@dataclass(frozen=True, slots=True)
class RestoreRatings(StoredChange):
    """Stores the ratings of tastes from an export, if the user has rated nothing here."""

    user_id: int
    ratings: Sequence[TasteRating]

    async def apply(self, transaction: Transaction) -> None:
        """Store the rows, without turns: those of the export are not in this database."""
        session = transaction.session
        is_theirs = TasteRatingRow.user_id == self.user_id
        any_rating = select(TasteRatingRow.id).where(is_theirs).limit(1)
        if await session.scalar(any_rating) is not None:
            return
        newest = self.ratings[-MAX_TASTE_RATINGS:]
        for rating in newest:
            row = TasteRatingRow(
                user_id=self.user_id,
                turn_id=None,
                taste=rating.taste,
                is_liked=rating.is_liked,
                at=transaction.now,
            )
            session.add(row)


async def _update_taste_and_scores(transaction: Transaction, turn_id: int) -> None:
    """Store what follows from the feedback on a turn, as its row now has it."""
    session = transaction.session
    now = transaction.now
    query = select(TurnRow).where(TurnRow.turn_id == turn_id)
    turn = await session.scalar(query)
    if turn is None:
        return
    # The session may have read the turn before the update statement changed its row.
    await session.refresh(turn)
    await _rate_taste(session, turn, now)
    await transaction.trace_rows.save_verdict(session, turn, now)


async def _rate_taste(
    session: AsyncSession,
    turn: TurnRow,
    now: datetime,
) -> None:
    """Replace the taste that follows from a turn: the main grapes of its wines, liked or not."""
    of_turn = TasteRatingRow.turn_id == turn.turn_id
    await session.execute(delete(TasteRatingRow).where(of_turn))
    is_person = turn.user_id > 0
    if turn.verdict is None or not is_person:
        return
    for grape in await _find_main_grapes(session, turn.turn_id):
        rating = TasteRatingRow(
            user_id=turn.user_id,
            turn_id=turn.turn_id,
            taste=f"grapes={grape}",
            is_liked=turn.verdict == "liked",
            at=now,
        )
        session.add(rating)
    await session.flush()
    await _drop_old_ratings(session, turn.user_id)


async def _find_main_grapes(session: AsyncSession, turn_id: int) -> Sequence[str]:
    """Return the first grapes of the wines that were shown in a turn, sorted."""
    id_lists = select(MessageRow.wine_ids).where(MessageRow.turn_id == turn_id)
    wine_ids: set[str] = set()
    for ids_of_message in await session.scalars(id_lists):
        wine_ids.update(ids_of_message)
    blends = select(WineRow.grapes).where(WineRow.id.in_(wine_ids))
    main_grapes: set[str] = set()
    for grapes in await session.scalars(blends):
        if grapes:
            main_grapes.add(grapes[0])
    return sorted(main_grapes)


async def _drop_old_ratings(session: AsyncSession, user_id: int) -> None:
    """Delete a user's ratings of tastes except the newest."""
    old = (
        select(TasteRatingRow.id)
        .where(TasteRatingRow.user_id == user_id)
        .order_by(TasteRatingRow.at.desc(), TasteRatingRow.id.desc())
        .offset(MAX_TASTE_RATINGS)
        .limit(MAX_TASTE_RATINGS)
    )
    is_old = TasteRatingRow.id.in_(old)
    await session.execute(delete(TasteRatingRow).where(is_old))
