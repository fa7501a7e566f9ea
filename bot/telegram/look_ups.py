"""/ask, /quotes and /find in Telegram: their arguments and the button under a weak answer."""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from telegram import MessageEntity, Update
from telegram.ext import CallbackQueryHandler, CommandHandler

from agent.documents.answer import Answer
from agent.documents.quotes import Quotes
from agent.engine.run import Run
from agent.i18n import translate
from agent.places.find import Places
from agent.places.queries import MAX_PLACE_CHARS, category_named
from agent.text import pattern
from agent.turn import Reply
from bot import look_ups
from bot.outgoing import Button, Outgoing
from bot.question import Question
from bot.telegram.buttons import acknowledge, claim
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import TYPED_BY_USER, behind_command, message_of, press_of

REFINE: Final = "refine"
"""The data of the button under a weak answer."""
FLAG: Final = pattern(r"(?i)(?:\A|\s)(?:--|[—–])refine(?:\s|\Z)")
"""`--refine`; telephones make a dash of two hyphens."""
BEFORE_PLACE: Final = pattern(r"(?:[Ii]n|[Nn]ear|around|at|à|en|bei|um|cerca de|a)\s+")
LONGEST_NAME: Final = 6
"""Words in the longest name of a category."""


def read_question(text: str) -> tuple[str, bool]:
    """Return the question of /ask, and whether it is to be refined."""
    flag = FLAG.search(text)
    if flag is None:
        return text.strip(), False
    return f"{text[: flag.start()]} {text[flag.end() :]}".strip(), True


def read_find(text: str) -> tuple[str | None, str]:
    """Return the category and the place of /find: "WINE_BAR Lyon", "wine bars in Lyon".

    The category is None if there is none of that name.
    """
    parts = text.replace(",", " , ").split()
    for count in range(min(len(parts), LONGEST_NAME), 0, -1):
        with suppress(ValueError):
            category = category_named(" ".join(parts[:count]))
            place = " ".join(parts[count:]).replace(" ,", ",").strip(" ,")
            before = BEFORE_PLACE.match(place)
            return category, place[before.end() if before else 0 :]
    return None, text.strip()


@dataclass(frozen=True, slots=True)
class LookUps:
    """/ask, /quotes, /find, and the button that refines a question.

    Without models the best passages are shown as they are; without a search places are links.
    """

    conversation: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers; the last takes any button."""
        return [
            CommandHandler("ask", self.ask, filters=TYPED_BY_USER),
            CommandHandler("quotes", self.quotes, filters=TYPED_BY_USER),
            CommandHandler("find", self.find, filters=TYPED_BY_USER),
            CallbackQueryHandler(self.refine, pattern=f"^{REFINE}$"),
            CallbackQueryHandler(self.unknown_button),
        ]

    async def ask(self, update: Update, context: Context) -> None:
        """Answer /ask QUESTION from the documents, each statement cited."""
        question, refine = read_question(behind_command(message_of(update).text or ""))
        if problem := look_ups.problem_of(question, translate("ask_usage")):
            await self.conversation.reply(update, problem)
        else:
            await self._ask(
                self.conversation.build_question(update, question, kind="ask"), refine=refine
            )

    async def quotes(self, update: Update, context: Context) -> None:
        """Answer /quotes QUERY with passages word for word, one by one, then a summary."""
        query = behind_command(message_of(update).text or "")
        if problem := look_ups.problem_of(query, translate("quotes_usage")):
            await self.conversation.reply(update, problem)
            return
        question = self.conversation.build_question(update, f"/quotes {query}", kind="quotes")
        work = partial(look_ups.quote, query, resources=self.conversation.resources)

        def show(found: Quotes) -> list[Outgoing]:
            return [*map(Outgoing, look_ups.quote_texts(found))]

        await self.conversation.turns.run_turn(question, work, show)

    async def find(self, update: Update, context: Context) -> None:
        """Answer /find CATEGORY PLACE with places, or ten searches for them."""
        text, conversation = (message_of(update).text or "").strip(), self.conversation
        category, place = read_find(behind_command(text))
        if category is None:
            if not await conversation.turns.offer_help(conversation.build_question(update, text)):
                await conversation.reply(update, translate("find_usage"))
        elif not any(map(str.isalnum, place)):
            what = look_ups.label(category).lower()
            await conversation.reply(update, translate("find_where", what=what))
        elif len(place) > MAX_PLACE_CHARS:
            await conversation.reply(update, translate("place_too_long"))
        else:
            question = conversation.build_question(update, f"/find {category} {place}", kind="find")
            work = partial(look_ups.find, category, place, resources=conversation.resources)

            def show(found: Places) -> list[Outgoing]:
                return [*map(Outgoing, look_ups.place_texts(found))]

            await conversation.turns.run_turn(question, work, show)

    async def refine(self, update: Update, context: Context) -> None:
        """Ask the question of a weak answer again, refined; it is read from the message itself."""
        query = press_of(update)
        message = await claim(query, query.from_user.id, lambda data: data == query.data)
        if message is None:
            return
        await acknowledge(query)
        if questions := [*message.parse_entities([MessageEntity.BLOCKQUOTE]).values()]:
            question = self.conversation.build_question(update, questions[-1], kind="ask")
            await self._ask(question, refine=True)
        else:
            await self.conversation.reply(update, translate("button_too_old"))

    async def unknown_button(self, update: Update, context: Context) -> None:
        """Acknowledge a button of an earlier version."""
        await acknowledge(press_of(update), translate("button_too_old"))

    async def _ask(self, question: Question, *, refine: bool) -> None:
        resources, models = self.conversation.resources, self.conversation.turns.base_run.models
        may_refine = not refine and resources.refinement is not False and bool(models)

        async def work(run: Run) -> Reply:
            return await look_ups.ask(question.text, run, resources, refine=refine or None)

        def show(answer: Answer) -> list[Outgoing]:
            text = look_ups.answer_text(answer, with_passages=True)
            if not may_refine or answer.enough_information or answer.outcome == "refused":
                return [Outgoing(text)]
            # The button finds the question here, however much later it is pressed.
            text = f"{text}\n\n{look_ups.quoted(answer.question)}"
            return [Outgoing(text, ((Button(translate("refine_button"), REFINE),),))]

        await self.conversation.turns.run_turn(question, work, show)
