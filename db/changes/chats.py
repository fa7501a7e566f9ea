"""Change what is stored of chats, and who may use the bot."""

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
    """Allows or blocks a user, also one who never wrote to the bot."""

    is_personal: ClassVar[bool] = False

    user_id: int
    access: Access

    async def apply(self, transaction: Transaction) -> None:
        """Store the decision of the admin."""
        decided = ChatRow(chat_id=self.user_id, access=self.access)
        await upsert(transaction.session, decided)


@dataclass(frozen=True, slots=True)
class AskAdmins(StoredChange):
    """Asks the admins whether a user may use the bot, once for each user.

    `messages` are the questions to the admins.
    """

    user_id: int
    messages: Sequence[OutboxRow]

    async def apply(self, transaction: Transaction) -> None:
        """Store that the admins were asked. Send the questions if that was not stored before."""
        session = transaction.session
        await insert_new(session, ChatRow(chat_id=self.user_id))
        introduce = (
            update(ChatRow)
            .where(
                ChatRow.chat_id == self.user_id,
                ChatRow.is_introduced.is_not(True),
            )
            .values(is_introduced=True)
        )
        is_first = await count_changed(session, introduce)
        if is_first:
            transaction.messages.extend(self.messages)


@dataclass(frozen=True, slots=True)
class SetReachable(StoredChange):
    """Stores that the bot can write to a chat, since somebody wrote to the bot there."""

    chat_id: int

    async def apply(self, transaction: Transaction) -> None:
        """Mark the chat as reachable."""
        reachable = ChatRow(chat_id=self.chat_id, is_reachable=True)
        await upsert(transaction.session, reachable)


@dataclass(frozen=True, slots=True)
class MigrateChat(StoredChange):
    """Moves the conversation and the concerns of a group to its new id.

    Telegram gives a group a new id when it becomes a supergroup.
    """

    is_personal: ClassVar[bool] = False

    chat_id: int
    new_id: int

    async def apply(self, transaction: Transaction) -> None:
        """Move the rows, and store the new id for turns that still run in the old group."""
        session = transaction.session
        old_id = self.chat_id
        new_id = self.new_id
        await upsert(session, ChatRow(chat_id=old_id, migrated_to=new_id))
        # The new group may have the same concern already: an update of the id would fail.
        is_old = ConcernRow.chat_id == old_id
        concerns = await session.scalars(select(ConcernRow).where(is_old))
        moved_concerns = [replace(concern, chat_id=new_id) for concern in concerns]
        await upsert(session, *moved_concerns)
        await session.execute(delete(ConcernRow).where(is_old))
        for model in (MessageRow, TurnRow):
            move = update(model).where(model.chat_id == old_id)
            await session.execute(move.values(chat_id=new_id))
