"""/ask, /quotes and /find in Telegram, and the button under a weak answer."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from telegram import MessageEntity, Update
from telegram.ext import CallbackQueryHandler, CommandHandler

from agent.documents.answer import Answer
from agent.i18n import translate
from bot import look_ups
from bot.outgoing import Button, Outgoing
from bot.question import Question
from bot.telegram.buttons import acknowledge, claim
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import TYPED_BY_USER, behind_command, message_of, press_of

REFINE: Final = "refine"
"""The data of the button under a weak answer."""


@dataclass(frozen=True, slots=True)
class LookUps:
    """/ask, /quotes, /find, and the button that refines a question.

    Without models the best passages are shown as they are; without a search places are links.
    """

    conversation: Conversation

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers; the last takes any button."""
        names: tuple[look_ups.Name, ...] = ("ask", "quotes", "find")
        return [
            *(
                CommandHandler(name, partial(self.look_up, name), filters=TYPED_BY_USER)
                for name in names
            ),
            CallbackQueryHandler(self.refine, pattern=f"^{REFINE}$"),
            CallbackQueryHandler(self.unknown_button),
        ]

    async def look_up(self, name: look_ups.Name, update: Update, context: Context) -> None:
        """Answer a command: /ask QUESTION, /quotes QUERY (one message each), /find PLACES."""
        conversation, text = self.conversation, message_of(update).text or ""
        found = look_ups.read_look_up(name, behind_command(text), conversation.resources)
        if isinstance(found, look_ups.LookUp):
            question = conversation.build_question(update, found.question, kind=name)
            await self._run_turn(question, found)
        elif not await conversation.turns.offer_help(conversation.build_question(update, text)):
            await conversation.reply(update, found)

    async def refine(self, update: Update, context: Context) -> None:
        """Ask the question of a weak answer again, refined; it is read from the message itself."""
        query = press_of(update)
        message = await claim(query, query.from_user.id, lambda data: data == query.data)
        if message is None:
            return
        await acknowledge(query)
        if questions := [*message.parse_entities([MessageEntity.BLOCKQUOTE]).values()]:
            question = self.conversation.build_question(update, questions[-1], kind="ask")
            resources = self.conversation.resources
            refined = look_ups.ask_look_up(question.text, resources, refine=True)
            await self._run_turn(question, refined)
        else:
            await self.conversation.reply(update, translate("button_too_old"))

    async def unknown_button(self, update: Update, context: Context) -> None:
        """Acknowledge a button of an earlier version."""
        await acknowledge(press_of(update), translate("button_too_old"))

    async def _run_turn(self, question: Question, found: look_ups.LookUp) -> None:
        """Run a look-up; below a weak answer from the documents a button refines the question."""

        def show(answer: Any) -> list[Outgoing]:
            *others, last = map(Outgoing, found.texts(answer))
            if isinstance(answer, Answer) and self._may_refine(answer):
                # The button finds the question here, however much later it is pressed.
                text = f"{last.markdown}\n\n{look_ups.quoted(answer.question)}"
                last = Outgoing(text, ((Button(translate("refine_button"), REFINE),),))
            return [*others, last]

        await self.conversation.turns.run_turn(question, found.work, show)

    def _may_refine(self, answer: Answer) -> bool:
        """Return whether an answer is weak, and refining its question may help."""
        is_enabled = self.conversation.resources.refinement is not False
        is_final = answer.enough_information or answer.outcome == "refused"
        has_model = bool(self.conversation.turns.base_run.models)
        return is_enabled and has_model and not (is_final or answer.refinement.used)
