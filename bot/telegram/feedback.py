"""👍 and 👎 under every answer: what is pressed and written is kept, and shown to be."""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from telegram import CallbackQuery, ForceReply, Message, ReplyParameters, Update
from telegram.constants import ChatType, ParseMode
from telegram.error import TelegramError
from telegram.ext import CallbackQueryHandler, MessageHandler, filters

from agent.repositories import (
    Feedback,
    FeedbackRepository,
    TurnRecord,
    TurnRepository,
)
from agent.tracing.masking import mask
from bot.telegram import feedback_buttons as shown
from bot.telegram.buttons import acknowledge, show_rows, shown_rows
from bot.telegram.conversation import AnyHandler, Context, TelegramBot
from bot.telegram.feedback_buttons import Press
from bot.telegram.incoming import destination, message_of, names_of, people_of
from bot.turn import Replies, patiently
from bot.updates.lanes import persistently

log = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 0.5
"""How long a press may take to be kept before it is acknowledged without."""

FRESH: Final = timedelta(minutes=1)
SOON_SECONDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
"""An answer can be pressed a moment before its turn is kept: the waits before it is looked for
again."""


class _Prompted(filters.MessageFilter):
    """A reply to a message that asked what was wrong, as far as the message itself shows."""

    def filter(self, message: Message) -> bool:
        asked = message.reply_to_message
        by_bot = asked is not None and asked.from_user is not None and asked.from_user.is_bot
        return asked is not None and by_bot and shown.TELL_ME in (asked.text or "")


@dataclass(frozen=True, slots=True)
class FeedbackButtons:
    """The presses on `feedback_shown.rating`, and replies to the message that asks for more.

    A reply that is none for us goes where `bot` would have it go. `changed` is called when there is
    something new to deliver. `hide` makes of what somebody wrote, and the names of who is there,
    what may be kept of it: later nobody knows the names any more.
    """

    bot: TelegramBot
    feedback: FeedbackRepository
    turns: TurnRepository
    changed: Callable[[], None] = lambda: None
    hide: Callable[[str, Collection[str]], str] = mask

    @property
    def replies(self) -> Replies:
        """What the bot answers with."""
        return self.bot.replies

    def handlers(self) -> list[AnyHandler]:
        """What to pass to `TelegramBot.register`, before handlers that take any button."""
        said = filters.UpdateType.MESSAGE | filters.UpdateType.EDITED_MESSAGE
        return [
            CallbackQueryHandler(self.press, pattern=f"^{shown.KIND}"),
            MessageHandler(said & filters.TEXT & ~filters.COMMAND & _Prompted(), self.comment),
        ]

    async def press(self, update: Update, context: Context) -> None:
        """A button that says what somebody thinks: kept, acknowledged, shown."""
        query = update.callback_query
        assert query is not None  # noqa: S101 - the handler lets nothing else through
        press, message = shown.read_press(query.data or ""), query.message
        if press is None or not isinstance(message, Message) or not message.is_accessible:
            await acknowledge(query, shown.TOO_OLD)
            return
        kept = await self._kept(press, query, message.date)
        if isinstance(kept, str):
            return
        self.changed()
        rows = shown.rated(shown_rows(message), kept)
        if rows != shown_rows(message):
            await show_rows(message, rows)
        if press.in_words:
            await self._ask(update, press.turn_id)

    async def comment(self, update: Update, context: Context) -> None:
        """What a person wrote about an answer; anything else is an ordinary message."""
        message = message_of(update)
        _, user_id = people_of(update)
        journal, about = self.replies.journal, partial(self._asked_about, message)
        turn = await journal.step("feedback.about", partial(patiently, about))
        if turn is not None and turn.user_id != user_id:
            await (self.bot.edited if update.edited_message else self.bot.text)(update, context)
        elif turn is not None and await self._noted(
            turn.turn_id, self.hide(message.text or "", names_of(update))
        ):
            await self.replies.say(update, shown.THANKS)
        else:
            await self.replies.say(update, shown.CLOSED)

    async def _noted(self, turn_id: int, words: str) -> bool:
        note = partial(patiently, partial(self.feedback.comment, turn_id, words))
        noted = await self.replies.journal.step("feedback.comment", note)
        self.changed()
        return noted is not None

    async def _kept(self, press: Press, query: CallbackQuery, answered: datetime) -> Feedback | str:
        """What is thought of the turn now, or why the press was not kept; acknowledged in time."""
        keep = partial(self._keep, press, query.from_user.id, answered)
        keeping = asyncio.ensure_future(
            self.replies.journal.step("feedback", partial(persistently, keep))
        )
        try:
            await asyncio.wait([keeping], timeout=ANSWER_SECONDS)
            words = shown.ONE_MOMENT
            if keeping.done():
                words = told if isinstance(told := keeping.result(), str) else shown.toast(press)
            await acknowledge(query, words)
            return await keeping
        finally:
            keeping.cancel()

    async def _keep(self, press: Press, user_id: int, answered: datetime) -> Feedback | str:
        turn = await self._turn(press.turn_id, answered)
        if turn is None:
            return shown.TOO_OLD
        if turn.user_id != user_id:
            return shown.NOT_YOURS
        kept = await self.feedback.rate(press.turn_id, press.verdict)
        if press.reason is not None:
            kept = await self.feedback.reason(press.turn_id, press.reason)
        return kept or shown.TOO_OLD

    async def _turn(self, turn_id: int, answered: datetime) -> TurnRecord | None:
        turn = await self.turns.get(turn_id)
        for seconds in SOON_SECONDS if datetime.now(UTC) - answered < FRESH else ():
            if turn is not None:
                break
            await asyncio.sleep(seconds)
            turn = await self.turns.get(turn_id)
        return turn

    async def _ask(self, update: Update, turn_id: int) -> None:
        """Ask what was wrong; the reply is known by the message it replies to."""
        step = self.replies.journal.step
        message_id = await step("feedback.ask", partial(self._prompt, update))
        if message_id is not None:
            chat_id = message_of(update).chat.id
            remember = partial(self.feedback.asked, turn_id, chat_id, message_id)
            await step("feedback.asked", partial(persistently, remember))

    async def _prompt(self, update: Update) -> int | None:
        """The id of the message that asks; None if Telegram did not take it."""
        answer, to = message_of(update), destination(update)
        words, person = shown.TELL_ME, update.effective_user
        if answer.chat.type != ChatType.PRIVATE and person is not None:
            words = f"{person.mention_html()}: {words}"
        sender = self.replies.sender
        await sender.pace.wait(to.chat_id)
        try:
            sent = await sender.bot.send_message(
                to.chat_id,
                words,
                parse_mode=ParseMode.HTML,
                message_thread_id=to.thread_id,
                reply_parameters=ReplyParameters(
                    answer.message_id, allow_sending_without_reply=True
                ),
                reply_markup=ForceReply(selective=True, input_field_placeholder=shown.PLACEHOLDER),
            )
        except TelegramError as error:
            log.warning("A person could not be asked what was wrong: %s", error)
            return None
        return sent.message_id

    async def _asked_about(self, message: Message) -> TurnRecord | None:
        """The turn whose answer a reply is about."""
        asked = message.reply_to_message
        assert asked is not None  # noqa: S101 - the filter lets nothing else through
        turn_id = await self.feedback.asked_about(message.chat.id, asked.message_id)
        return None if turn_id is None else await self.turns.get(turn_id)
