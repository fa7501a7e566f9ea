"""The commands that look things up: /ask, /quotes and /find, in Telegram and in the terminal."""

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from telegram import Message, MessageEntity, Update
from telegram.ext import CallbackQueryHandler, CommandHandler, MessageHandler, filters

from agent.desk import ResearchDesk
from agent.documents.answer import Answer
from agent.documents.quotes import Quotes
from agent.engine.limits import Allowance, Ledger
from agent.engine.span import Span
from agent.outcome import guard_input, record_ledger
from agent.places.find import Places
from agent.places.queries import LONGEST_PLACE, QueryGenerationFailed
from agent.sommelier.service import Reply
from bot.look_ups import (
    LookUp,
    counted,
    is_over_budget,
    record,
    record_spent,
    reply_of,
    unexcused,
    within,
)
from bot.telegram import research_text as text
from bot.telegram import texts
from bot.telegram.buttons import acknowledge, show_rows, shown_rows, without
from bot.telegram.conversation import AnyHandler, Context
from bot.telegram.incoming import destination, is_addressed, message_of
from bot.telegram.research_shown import (
    AS_FILE,
    REFINE,
    Apology,
    Shown,
    apologised,
    shown_answer,
    shown_places,
    shown_quotes,
)
from bot.turn import Answered, Replies

log = logging.getLogger(__name__)

T = TypeVar("T")

FILE_NAME: Final = "queries.txt"
DEFAULT_CATEGORY: Final = "WINE_SHOP"


@dataclass(frozen=True, slots=True)
class ResearchCommands:
    """/ask, /quotes, /find, their buttons, and locations: turns of `replies`, answered by `desk`.

    A look-up is one step of `replies.journal`.
    """

    replies: Replies
    desk: ResearchDesk

    def handlers(self) -> list[AnyHandler]:
        """What to pass to `TelegramBot.register`."""
        new = filters.UpdateType.MESSAGE
        return [
            CommandHandler("ask", self.ask, filters=new),
            CommandHandler("quotes", self.quotes, filters=new),
            CommandHandler("find", self.find, filters=new),
            MessageHandler(new & filters.LOCATION, self.location),
            CallbackQueryHandler(self.refine, pattern=f"^{REFINE.data}$"),
            CallbackQueryHandler(self.as_file, pattern=f"^{AS_FILE.data}$"),
            CallbackQueryHandler(self.unknown_button),
        ]

    async def ask(self, update: Update, context: Context) -> None:
        """/ask QUESTION: an answer from the documents, each statement cited."""
        words = text.behind_command(message_of(update).text or "")
        question, refine = text.read_question(words)
        if not await self._objected(update, question, texts.ASK_USAGE):
            await self._ask(question, update, context, refine=refine)

    async def quotes(self, update: Update, context: Context) -> None:
        """/quotes QUERY: passages word for word, one by one, then a summary."""
        query = text.behind_command(message_of(update).text or "")
        if await self._objected(update, query, texts.QUOTES_USAGE):
            return

        async def look_up(desk: ResearchDesk, ledger: Ledger, span: Span) -> Quotes | Apology:
            found = await desk.quotes(guard_input(query, span), ledger=ledger, span=span)
            return found if found.chunks else await self._nothing_found(found)

        await self._turn(f"/quotes {query}", update, context, look_up, shown_quotes)

    async def find(self, update: Update, context: Context) -> None:
        """/find CATEGORY PLACE: places, or ten searches for them."""
        said = (message_of(update).text or "").strip()
        category, place = text.read_find(text.behind_command(said))
        if category is None:
            await self.replies.say(update, texts.FIND_USAGE)
        elif not any(map(str.isalnum, place)):
            where = texts.FIND_WHERE.format(what=text.label(category).lower())
            await self.replies.say(update, where)
            await self.replies.remember(update, said, Reply(where, (), "answered"))
        elif len(place) > LONGEST_PLACE:
            await self.replies.say(update, texts.PLACE_TOO_LONG)
        else:
            await self._find(category, place, update, context)

    async def location(self, update: Update, context: Context) -> None:
        """A location: what was looked for last, near it; else wine shops."""
        message = message_of(update)
        if not is_addressed(message, context.bot) or message.location is None:
            return
        category = await self.replies.journal.step(
            "category", partial(self._category_just_asked, message.chat.id)
        )
        place = text.coordinates(message.location.latitude, message.location.longitude)
        # Where somebody is stays out of the conversation that is kept.
        await self._find(category, place, update, context, remembered=False)

    async def refine(self, update: Update, context: Context) -> None:
        """The button under a weak answer: the same question, refined."""
        message = await self._pressed(update, context)
        if message is None:
            return
        quoted = list(message.parse_entities([MessageEntity.BLOCKQUOTE]).values())
        if quoted:
            await self._ask(quoted[-1], update, context, refine=True)
        else:
            await self.replies.say(update, texts.BUTTON_TOO_OLD)

    async def as_file(self, update: Update, context: Context) -> None:
        """The button under ten searches: the same as a text file."""
        message = await self._pressed(update, context)
        if message is None:
            return
        queries = list(message.parse_entities([MessageEntity.TEXT_LINK]).values())
        if not queries:
            await self.replies.say(update, texts.BUTTON_TOO_OLD)
            return
        to, content = destination(update), text.queries_file(queries)
        step = self.replies.journal.step
        await self.replies.sender.send_document(to, FILE_NAME, content, step=step)

    async def unknown_button(self, update: Update, context: Context) -> None:
        """A button of an earlier version, or of nobody."""
        if update.callback_query:
            await acknowledge(update.callback_query, texts.BUTTON_TOO_OLD)

    async def _objected(self, update: Update, question: str, usage: str) -> bool:
        """Whether a question is none, which the person is told then."""
        objection = "" if any(map(str.isalnum, question)) else usage
        if len(question) > text.LONGEST_QUESTION:
            objection = texts.QUESTION_TOO_LONG
        if objection:
            await self.replies.say(update, objection)
        return bool(objection)

    async def _ask(self, question: str, update: Update, context: Context, *, refine: bool) -> None:
        async def look_up(desk: ResearchDesk, ledger: Ledger, span: Span) -> Answer | Apology:
            asked, wanted = guard_input(question, span), True if refine else None
            found = await desk.ask(asked, refine=wanted, ledger=ledger, span=span)
            return found if found.chunks else await self._nothing_found(found)

        may_refine = self.desk.can_refine and not refine
        await self._turn(
            question, update, context, look_up, partial(shown_answer, may_refine=may_refine)
        )

    async def _find(
        self,
        category: str,
        place: str,
        update: Update,
        context: Context,
        *,
        remembered: bool = True,
    ) -> None:
        async def look_up(desk: ResearchDesk, ledger: Ledger, span: Span) -> Places | Apology:
            named = guard_input(place, span)
            try:
                return await desk.find(category, named, ledger=ledger, span=span)
            except QueryGenerationFailed as error:
                retries, errors = error.retry_count, error.error_types
                if not ledger.exhausted(desk.limits):
                    return Apology(texts.NO_QUERIES, "failed", retries, errors)
                by_rules = replace(desk, models=())
                found = await by_rules.find(category, named, ledger=ledger, span=span)
                queries = replace(
                    found.queries, outcome="fallback", retry_count=retries, error_types=errors
                )
                return replace(found, queries=queries)

        await self._turn(
            f"/find {category} {place}",
            update,
            context,
            look_up,
            shown_places,
            remembered=remembered,
        )

    async def _nothing_found(self, found: T) -> T | Apology:
        return found if await self.desk.documents.count() else Apology(texts.NO_DOCUMENTS)

    async def _turn(
        self,
        question: str,
        update: Update,
        context: Context,
        look_up: LookUp[T],
        show: Callable[[T], Shown],
        *,
        remembered: bool = True,
    ) -> None:
        """One turn: a look-up, which is one step, and what it found shown."""

        async def work(span: Span, allowance: Allowance) -> Answered:
            desk = within(self.desk, allowance)
            ledger = Ledger(prices=desk.prices, ceiling=desk.limits)
            try:
                found, spent = await self.replies.journal.step(
                    "research", lambda: counted(look_up(desk, ledger, span), ledger)
                )
            finally:
                record_ledger(span, ledger)
            if ledger.spent != spent:
                record_spent(span, spent)
            shown = apologised(found) if isinstance(found, Apology) else show(found)
            over = bool(self.desk.models) and is_over_budget(allowance, spent, shown.outcome)
            if over:
                shown = unexcused(shown)
            answered = reply_of(shown, spent, over_budget=over)
            record(span, answered)
            return Answered(answered, shown.messages)

        await self.replies.turn(question, update, context.bot, work, remembered=remembered)

    async def _category_just_asked(self, chat_id: int) -> str:
        """What the newest message of a chat looked for, if it was a /find."""
        try:
            recent = await self.replies.message_repo.recent(chat_id, 2)
        except Exception:
            log.exception("The history of chat %s could not be read; answering without", chat_id)
            return DEFAULT_CATEGORY
        asked = [each.content for each in recent if each.role == "user"]
        if not asked or not asked[-1].startswith("/find"):
            return DEFAULT_CATEGORY
        return text.read_find(text.behind_command(asked[-1]))[0] or DEFAULT_CATEGORY

    async def _pressed(self, update: Update, context: Context) -> Message | None:
        """The message whose button is pressed for the first time; None if nothing is to be done.

        Taking the button away decides which press is the first, so that no memory is needed. A turn
        that goes on after a crash may find it taken away by itself: it knows from the first step,
        whose record holds another value than this run would give it.
        """
        query = update.callback_query
        assert query is not None  # noqa: S101 - the handler lets nothing else through
        message = query.message
        if not isinstance(message, Message) or not message.is_accessible:
            await acknowledge(query, texts.BUTTON_TOO_OLD)
            return None
        await acknowledge(query)
        step, run = self.replies.journal.step, secrets.token_hex(8)
        resumed = await step("press", partial(_given, run)) != run
        is_first = await step("button", partial(_take_button, message, query.data))
        return message if await step("first", partial(_given, is_first or resumed)) else None


async def _given(value: T) -> T:
    return value


async def _take_button(message: Message, data: str | None) -> bool:
    """Take a button away, and leave the others; False if it was not there any more."""
    return await show_rows(message, without(shown_rows(message), data))
