"""Changes of chats and of who may use the bot."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlalchemy import delete, select, update

from db.changes.base import StoredChange, Transaction
from db.engine import count_changed
from db.models import Access, ChatRow, ConcernRow, MessageRow, OutboxRow, TurnRow
from db.statements import insert_new, upsert


@dataclass(frozen=True, slots=True)
class SetAccess(StoredChange):
    """Allows or blocks a user, even one who never wrote."""

    user_id: int
    access: Access
    is_personal: ClassVar[bool] = False

    async def apply(self, transaction: Transaction) -> None:
        """Store the decision of the admin."""
        await upsert(
            transaction.session, ChatRow(chat_id=self.user_id, access=self.access)
        )


@dataclass(frozen=True, slots=True)
class AskAdmins(StoredChange):
    """Asks the admins once whether a user may use the bot: `messages` are the questions."""

    user_id: int
    messages: Sequence[OutboxRow]

    async def apply(self, transaction: Transaction) -> None:
        """Store that the admins were asked, and send the questions if they were not before."""
        session = transaction.session
        await insert_new(session, ChatRow(chat_id=self.user_id))
        is_new = (ChatRow.chat_id == self.user_id) & ChatRow.is_introduced.is_not(True)
        if await count_changed(
            session, update(ChatRow).where(is_new).values(is_introduced=True)
        ):
            transaction.messages.extend(self.messages)


@dataclass(frozen=True, slots=True)
class SetReachable(StoredChange):
    """Stores that a chat can be reached, because somebody wrote from it."""

    chat_id: int

    async def apply(self, transaction: Transaction) -> None:
        """Store it."""
        await upsert(
            transaction.session, ChatRow(chat_id=self.chat_id, is_reachable=True)
        )


@dataclass(frozen=True, slots=True)
class MigrateChat(StoredChange):
    """Moves the conversation and concerns of a group that became a supergroup to its new id."""

    chat_id: int
    new_id: int
    is_personal: ClassVar[bool] = False

    async def apply(self, transaction: Transaction) -> None:
        """Move the rows; turns that still run in the old group are stored under the new id."""
        session, old_id, new_id = transaction.session, self.chat_id, self.new_id
        await upsert(session, ChatRow(chat_id=old_id, migrated_to=new_id))
        is_old = ConcernRow.chat_id == old_id
        concerns = await session.scalars(select(ConcernRow).where(is_old))
        await upsert(
            session, *(replace(concern, chat_id=new_id) for concern in concerns)
        )
        await session.execute(delete(ConcernRow).where(is_old))
        for row in (MessageRow, TurnRow):
            moved = update(row).where(row.chat_id == old_id).values(chat_id=new_id)
            await session.execute(moved)
