"""Buttons that run what the model proposed: calls of tools that need the user's consent.

The message shows the whole call, and the button carries a digest of it: what runs is what the user
read, also after a restart. Only the user who asked may press, and a call runs once at most.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

from telegram import Message, MessageEntity, Update
from telegram.ext import CallbackQueryHandler

from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import ERROR_PREFIX, Toolbox
from agent.i18n import translate
from agent.markdown import escape
from agent.mcp import McpServers, Proposal
from agent.text import truncate_at_boundary
from agent.turn import Reply
from bot.outgoing import Button, ButtonRows
from bot.pending import is_retry
from bot.question import Question
from bot.telegram.buttons import acknowledge, parts_of, pressed_message, remove_buttons
from bot.telegram.conversation import AnyHandler, Context, Conversation
from bot.telegram.messages import press_of

PREFIX: Final = "x:"
"""The beginning of the data: `x:USER:DIGEST`."""
MAX_SHOWN: Final = 1_500
"""Characters of a result that the user is shown."""


def tool_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the buttons that run the calls which a reply proposes."""
    return tuple(
        (Button(f"▶ {proposal.tool}", f"{PREFIX}{question.user_id}:{_digest(proposal)}"),)
        for proposal in reply.proposals
    )


def _digest(proposal: Proposal) -> str:
    call = f"{proposal.tool} {proposal.arguments}"
    return hashlib.sha256(call.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class ToolButtons:
    """Handle the presses on `tool_buttons`."""

    talk: Conversation
    servers: McpServers

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers."""
        return [CallbackQueryHandler(self.press, pattern=f"^{PREFIX}")]

    async def press(self, update: Update, context: Context) -> None:
        """Run a proposed call in a turn of its own."""
        query = press_of(update)
        if (message := await pressed_message(query, translate("button_too_old"))) is None:
            return
        owner, digest = parts_of(query, 2)
        proposal = proposed_in(message, digest)
        if owner != str(query.from_user.id) or proposal is None:
            await acknowledge(query, translate("not_yours" if proposal else "button_too_old"))
            return
        if not await remove_buttons(message, lambda data: data == query.data):
            await acknowledge(query, translate("one_moment"))
            return
        await acknowledge(query)
        is_again = is_retry()

        async def work(run: Run) -> Reply:
            return await self._run(proposal, run, is_again=is_again)

        question = self.talk.build_question(update, f"▶ {proposal.tool}")
        await self.talk.turns.run_turn(question, work)

    async def _run(self, proposal: Proposal, run: Run, *, is_again: bool) -> Reply:
        """Return what a call came to; a call that was cut off may have run, and is left alone."""
        tool = self.servers.confirmed(proposal.tool)
        if is_again:
            return Reply(
                text=translate("tool_uncertain", tool=escape(proposal.tool)), outcome="failed"
            )
        if tool is None:
            return Reply(text=translate("tool_down", tool=escape(proposal.tool)), outcome="failed")
        call = ToolCall("pressed", proposal.tool, proposal.arguments)
        result = await Toolbox([tool]).call(call, run)
        text = truncate_at_boundary(result.text.removeprefix(ERROR_PREFIX), MAX_SHOWN)
        is_done, name = result.error_type is None, escape(proposal.tool)
        said = translate("tool_done", tool=name) if is_done else translate("tool_failed", tool=name)
        return Reply(text=f"{said}\n\n{escape(text)}", outcome="answered" if is_done else "failed")


def proposed_in(message: Message, digest: str) -> Proposal | None:
    """Return the call with this digest that a message shows."""
    for shown in message.parse_entities([MessageEntity.PRE]).values():
        tool, _, arguments = shown.partition(" ")
        if _digest(proposal := Proposal(tool, arguments)) == digest:
            return proposal
    return None
