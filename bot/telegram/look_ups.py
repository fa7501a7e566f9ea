"""The commands that look things up: /ask, /quotes and /find, in Telegram and in the terminal."""

import logging
from dataclasses import dataclass, replace
from functools import partial
from operator import eq
from typing import Final

from telegram import Message, MessageEntity, Update
from telegram.ext import CallbackQueryHandler, CommandHandler, MessageHandler, filters

from agent.documents.answer import answer_question
from agent.documents.passages import LONGEST_QUESTION
from agent.documents.quotes import find_quotes
from agent.documents.refine import refinement_wanted
from agent.engine.limits import Spent
from agent.engine.run import Run
from agent.i18n import say
from agent.places.find import find_places
from agent.places.queries import LONGEST_PLACE, QueryGenerationFailed
from agent.turn import Reply, Work, guard_input, worked_on
from bot.telegram import look_up_text as text
from bot.telegram.buttons import acknowledge, is_first_press, pressed_message
from bot.telegram.conversation import TYPED, AnyHandler, Context, Conversation
from bot.telegram.incoming import (
    behind_command,
    destination,
    is_addressed,
    message_of,
    press_of,
    question_of,
)
from bot.telegram.sender import Destination
from bot.turn import Question, Show

log = logging.getLogger(__name__)

FILE_NAME: Final = "queries.txt"
DEFAULT_CATEGORY: Final = "WINE_SHOP"


@dataclass(frozen=True, slots=True)
class LookUps:
    """/ask, /quotes, /find, their buttons, and locations.

    Without models the best passages are shown as they are; without a search places are links.
    """

    talk: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Make the handlers; the last takes any button."""
        new = filters.UpdateType.MESSAGE
        return [
            CommandHandler("ask", self.ask, filters=TYPED),
            CommandHandler("quotes", self.quotes, filters=TYPED),
            CommandHandler("find", self.find, filters=TYPED),
            MessageHandler(new & filters.LOCATION, self.location),
            CallbackQueryHandler(self.refine, pattern=f"^{text.REFINE}$"),
            CallbackQueryHandler(self.as_file, pattern=f"^{text.AS_FILE}$"),
            CallbackQueryHandler(self.unknown_button),
        ]

    async def ask(self, update: Update, context: Context) -> None:
        """/ask QUESTION: an answer from the documents, each statement cited."""
        words = behind_command(message_of(update).text or "")
        question, refine = text.read_question(words)
        if not await self._objected(update, question, say("ask_usage")):
            asked = question_of(update, context.bot, question, kind="ask")
            await self._ask(asked, refine=refine)

    async def quotes(self, update: Update, context: Context) -> None:
        """/quotes QUERY: passages word for word, one by one, then a summary."""
        query = behind_command(message_of(update).text or "")
        if await self._objected(update, query, say("quotes_usage")):
            return

        async def look_up(run: Run) -> Reply:
            named, resources = guard_input(query, run.span), self.talk.resources
            documents, cache = resources.documents, resources.cache
            found = await find_quotes(named, documents=documents, run=run, cache=cache)
            if not found.chunks and not await documents.count():
                return Reply(text=say("no_documents"))
            return text.quotes_reply(found)

        asked = question_of(update, context.bot, f"/quotes {query}", kind="quotes")
        await self._turn(asked, look_up, text.quotes_messages)

    async def find(self, update: Update, context: Context) -> None:
        """/find CATEGORY PLACE: places, or ten searches for them."""
        said = (message_of(update).text or "").strip()
        category, place = text.read_find(behind_command(said))
        if category is None:
            if not await self.talk.turns.helped(question_of(update, context.bot, said)):
                await self.talk.say(update, say("find_usage"))
        elif not any(map(str.isalnum, place)):
            where = say("find_where", what=text.label(category).lower())
            await self.talk.say(update, where)
            # A location that comes next is where to look for it.
            asked = question_of(update, context.bot, said)
            await self.talk.turns.remember(asked, Reply(text=where))
        elif len(place) > LONGEST_PLACE:
            await self.talk.say(update, say("place_too_long"))
        else:
            named = f"/find {category} {place}"
            asked = question_of(update, context.bot, named, kind="find")
            await self._find(asked, category, place)

    async def location(self, update: Update, context: Context) -> None:
        """A location, or a venue: what was looked for last, near it; else wine shops."""
        message = message_of(update)
        if not is_addressed(message, context.bot) or message.location is None:
            return
        look = partial(self._category_just_asked, destination(update))
        category = await self.talk.step("category", look)
        place = text.coordinates(message.location.latitude, message.location.longitude)
        venue = message.venue
        if venue is not None and (name := text.place_of(venue.title, venue.address)):
            place = name
        named = f"/find {category} {place}"
        # Where somebody is stays out of the conversation that is kept; a house's name does not.
        is_named = venue is not None
        asked = question_of(update, context.bot, named, kind="find", remembered=is_named)
        await self._find(asked, category, place)

    async def refine(self, update: Update, context: Context) -> None:
        """The button under a weak answer: the same question, refined."""
        message = await self._pressed(update)
        if message is None:
            return
        quoted = list(message.parse_entities([MessageEntity.BLOCKQUOTE]).values())
        if quoted:
            asked = question_of(update, context.bot, quoted[-1], kind="ask")
            await self._ask(asked, refine=True)
        else:
            await self.talk.say(update, say("button_too_old"))

    async def as_file(self, update: Update, context: Context) -> None:
        """The button under ten searches: the same as a text file."""
        message = await self._pressed(update)
        if message is None:
            return
        queries = text.queries_of(message.text or "")
        if not queries:
            await self.talk.say(update, say("button_too_old"))
        else:
            content = text.queries_file(queries)
            await self.talk.sender.send_file(destination(update), FILE_NAME, content)

    async def unknown_button(self, update: Update, context: Context) -> None:
        """A button of an earlier version, or of nobody."""
        if update.callback_query:
            await acknowledge(update.callback_query, say("button_too_old"))

    async def _objected(self, update: Update, question: str, usage: str) -> bool:
        """Whether a question is none, which the person is told then."""
        objection = "" if any(map(str.isalnum, question)) else usage
        if len(question) > LONGEST_QUESTION:
            objection = say("question_too_long")
        if objection:
            await self.talk.say(update, objection)
        return bool(objection)

    async def _ask(self, question: Question, *, refine: bool) -> None:
        resources = self.talk.resources

        async def look_up(run: Run) -> Reply:
            found = await answer_question(
                guard_input(question.text, run.span),
                documents=resources.documents,
                run=run,
                refine=refinement_wanted(resources.refinement, True if refine else None),
            )
            if not found.chunks and not await resources.documents.count():
                return Reply(text=say("no_documents"))
            return text.answer_reply(found)

        is_possible = resources.refinement is not False and bool(self.talk.turns.run.models)
        may_refine = not refine and is_possible
        await self._turn(question, look_up, partial(text.answer_messages, may_refine=may_refine))

    async def _find(self, question: Question, category: str, place: str) -> None:
        async def look_up(run: Run) -> Reply:
            named = guard_input(place, run.span)
            find = partial(find_places, category, named, search=self.talk.resources.search)
            try:
                return text.places_reply(await find(run=run))
            except QueryGenerationFailed as error:
                retries, errors = error.retry_count, error.error_types
            if not run.ledger.exhausted(run.limits):
                return Reply(
                    text=say("no_queries"), outcome="failed", retries=retries, error_types=errors
                )
            by_rules = text.places_reply(await find(run=replace(run, models=())))
            return replace(by_rules, outcome="fallback", retries=retries, error_types=errors)

        await self._turn(question, look_up, text.places_messages)

    async def _turn(self, question: Question, look_up: Work, show: Show) -> None:
        """One turn: a look-up, which is one step of it."""

        async def work(run: Run) -> Reply:
            async def looked_up() -> tuple[Reply, Spent]:
                inner = replace(run.of_tool(run.span), stop=run.stop)
                return await worked_on(inner, look_up), run.ledger.spent

            reply, spent = await run.step("research", looked_up, run.span)
            run.ledger.restore(spent)
            return reply

        await self.talk.turns.turn(question, work, show)

    async def _category_just_asked(self, to: Destination) -> str:
        """What the newest message of a conversation looked for, if it was a /find."""
        try:
            messages, thread = self.talk.repositories.messages, to.thread_id or 0
            recent = await messages.recent(to.chat_id, 2, thread_id=thread)
        except Exception:
            log.exception("The history of chat %s could not be read; answering without", to.chat_id)
            return DEFAULT_CATEGORY
        asked = [each.content for each in recent if each.role == "user"]
        if not asked or not asked[-1].startswith("/find"):
            return DEFAULT_CATEGORY
        return text.read_find(behind_command(asked[-1]))[0] or DEFAULT_CATEGORY

    async def _pressed(self, update: Update) -> Message | None:
        """The message whose button is pressed for the first time; None if nothing is to be done."""
        query, journal = press_of(update), self.talk.sender.journal
        if (message := await pressed_message(query, say("button_too_old"))) is None:
            return None
        await acknowledge(query)
        is_first = await is_first_press(journal, message, partial(eq, query.data))
        return message if is_first else None
