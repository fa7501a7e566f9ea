"""Parse stored updates, check that their users have access, and pass them to the handlers."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from telegram import Update, User
from telegram.ext import filters

from agent import size_limits
from agent.i18n import translate, use_language
from agent.markdown import strip_invisible
from bot.telegram.ask_shop import is_from_staff
from bot.telegram.buttons import acknowledge, answer_inline_query
from bot.telegram.chat import (
    NOT_MINE,
    AnyHandler,
    ChatTurn,
    Services,
    load_language,
    set_language_of_turn,
)
from bot.telegram.connection import AnyBot
from bot.telegram.messages import is_addressed, written_message
from bot.telegram.sender import Button, build_messages
from bot.turn import Destination, TurnFilter
from bot.updates.joining import STOPPED_DRAFT, as_int, chat_of, get_object
from bot.updates.life import UnreadableUpdate
from db.changes.chats import AskAdmins, SetReachable
from db.models import OutboxRow, UpdateRow
from db.repositories.inbox import Payload

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Passes an update to the first of the `handlers` that accepts it, if its user has access.

    Admins always have access, and blocked users never have access. If `only_allowed` is true, other
    users have access only if an admin has allowed them, or in the chat of the staff. The bot tells
    users without access their id, which they can give to an admin. In a group it does so only if
    they address the bot. Blocked users get no reply.
    """

    bot: AnyBot
    services: Services
    handlers: Sequence[AnyHandler]
    admin_ids: Collection[int] = ()
    only_allowed: bool = False

    def open_turn(self, row: UpdateRow) -> ChatTurn:
        """Return the turn of an update, before its payload is parsed."""
        return ChatTurn(
            services=self.services,
            id=row.update_id,
            accepted_at=row.received_at,
            chat_id=row.chat_id,
            placeholder_id=row.placeholder_id,
        )

    async def handle(self, payload: Payload, turn: ChatTurn) -> None:
        """Handle an update in the language of its user. The turn collects what is to be done.

        Raises:
            UnreadableUpdate: the library cannot parse the update.
            Exception: the handler failed.
        """
        if STOPPED_DRAFT in payload:
            # The library cannot parse this kind of update.
            await self._stop_draft(payload)
            return
        update = self.parse(payload)
        turn.read_update(update)
        await _store_that_chat_is_reachable(update, turn)
        is_migration = filters.StatusUpdate.MIGRATE.check_update(update)
        # A migration says that a group has a new id. No user waits for a reply to it, so it needs
        # neither access nor a language.
        if not is_migration:
            await set_language_of_turn(update, turn)
            if not await self._check_access(update, turn):
                return
        for handler in self.handlers:
            if not handler.check_update(update):
                continue
            if await handler.callback(update, turn) is not NOT_MINE:
                return

    async def handle_inline(self, payload: Payload) -> None:
        """Answer a query that a user types in any chat. Store nothing about it."""
        update_id = as_int(payload.get("update_id"))
        turn = ChatTurn(services=self.services, id=update_id)
        await self.handle(payload, turn)

    async def _stop_draft(self, payload: Payload) -> None:
        """Stop the turn under whose draft the user has pressed Stop.

        This needs no check of access: Telegram shows the button only to the user who has asked.
        """
        # The bot gives each draft the id of its turn.
        turn_id = as_int(get_object(payload, STOPPED_DRAFT).get("draft_id"))
        stopped = TurnFilter(chat_id=chat_of(payload), id=turn_id)
        await self.services.runner.running.stop_everywhere(stopped)

    def parse(self, payload: Payload) -> Update:
        """Return a payload as an update of the library.

        Raises:
            UnreadableUpdate: the library cannot parse the payload.
        """
        try:
            return Update.de_json(dict(payload), self.bot)
        except Exception as error:
            # The message of the error may contain words of the user, which must not be logged.
            raise UnreadableUpdate(type(error).__name__) from None

    def is_readable(self, payload: Payload) -> bool:
        """Return whether the library can parse a payload."""
        try:
            self.parse(payload)
        except UnreadableUpdate:
            return False
        return True

    async def give_up(self, payload: Payload, turn: ChatTurn, error: str) -> None:
        """Tell a user that their update is set aside, because it cannot be answered.

        The turn collects this notice.
        """
        try:
            update = self.parse(payload)
        except UnreadableUpdate:
            await _give_up_unreadable(payload, turn)
            return
        turn.read_update(update)
        if update.effective_message:
            await set_language_of_turn(update, turn)
            question = turn.make_question(update.effective_message.text or "")
            self.services.runner.give_up(turn, question, error)

    async def _check_access(self, update: Update, turn: ChatTurn) -> bool:
        """Return whether the user of an update has access.

        A user without access is told so, except a blocked one.
        """
        user = update.effective_user
        if user is None:
            return not self.only_allowed
        if user.id in self.admin_ids:
            return True
        # The access is None if no admin has decided about the user.
        access = await turn.repositories.chats.find_access(user.id)
        if access == "blocked":
            log.info(
                "User %s is blocked: update %s is ignored", user.id, update.update_id
            )
            return False
        if access is not None or not self.only_allowed:
            return True
        if await is_from_staff(turn):
            return True
        await self._turn_away(update, turn, user)
        return False

    async def _turn_away(self, update: Update, turn: ChatTurn, user: User) -> None:
        """Tell a user that they have no access. If they have written to the bot, ask the admins."""
        text = translate("not_let_in", id=str(user.id))
        message = written_message(update)
        if update.inline_query:
            await answer_inline_query(update.inline_query)
        elif update.callback_query:
            await acknowledge(update.callback_query, text)
        elif message is not None and is_addressed(message):
            # The admins are not asked about the account of a bot, because many people may write
            # through it.
            if not user.is_bot:
                questions = await self._build_questions_to_admins(turn, user)
                turn.change(AskAdmins(user.id, questions))
            turn.reply(text)

    async def _build_questions_to_admins(
        self, turn: ChatTurn, user: User
    ) -> list[OutboxRow]:
        """Return a message to every admin that asks whether to give a user access."""
        messages = []
        name = _name_as_code(user)
        for admin_id in sorted(self.admin_ids):
            with use_language(await load_language(turn.repositories.memory, admin_id)):
                text = translate("asks_to_be_let_in", id=str(user.id), name=name)
                allow = Button(translate("allow_button"), f"a:{user.id}:allow")
                block = Button(translate("block_button"), f"a:{user.id}:block")
            buttons = ((allow, block),)
            messages += await build_messages(Destination(admin_id), [text], buttons)
        return messages


async def _store_that_chat_is_reachable(update: Update, turn: ChatTurn) -> None:
    """Make the turn store that the bot can write to the chat, unless that is stored already."""
    if update.effective_chat is None:
        return
    # Nearly all chats are stored as reachable. To read is cheaper than to write each time.
    if not await turn.repositories.chats.is_reachable(turn.chat_id):
        turn.change(SetReachable(turn.chat_id))


async def _give_up_unreadable(payload: Payload, turn: ChatTurn) -> None:
    """Tell the user of an unreadable update in a private chat that it was set aside.

    In a group nobody is told, because the update may not be meant for the bot.
    """
    chat_id = chat_of(payload)
    # The ids of groups are negative, and 0 stands for no chat.
    if chat_id <= 0:
        return
    with use_language(await load_language(turn.repositories.memory, chat_id)):
        turn.send(Destination(chat_id), translate("set_aside"))


def _name_as_code(user: User) -> str:
    """Return the name of a user as Markdown code, shortened and on one line, or a dash.

    A user may choose any name. As code it cannot look like another line of the message, and it
    cannot turn the direction of the text.
    """
    visible = strip_invisible(user.full_name or "")
    words = visible.replace("`", "").split()
    if not words:
        return "–"
    name = " ".join(words)[: size_limits.NAME_CHARS]
    return f"`{name}`"
