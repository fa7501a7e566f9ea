"""Buttons that run what the model proposed: calls of tools that need the user's consent.

The message shows the whole call, and the button carries a digest of it: what runs is what the user
read, also after a restart. Only the user who asked may press, and a call runs once at most.
"""

import hashlib
from typing import Final

from telegram import Message, MessageEntity, Update

from agent.engine.run import Run
from agent.i18n import translate
from agent.markdown import escape
from agent.mcp import McpServers, Proposal
from agent.turn import Reply
from bot.look_ups import run_proposal
from bot.outgoing import Button, ButtonRows
from bot.question import Question, is_retry
from bot.telegram.buttons import acknowledge, claim, parts_of
from bot.telegram.conversation import AnyHandler, Conversation, on_press
from bot.telegram.messages import press_of

PREFIX: Final = "x:"
"""The beginning of the data: `x:USER:DIGEST`."""


def tool_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the buttons that run the calls which a reply proposes."""
    return tuple(
        (Button(f"▶ {proposal.tool}", f"{PREFIX}{question.user_id}:{_digest(proposal)}"),)
        for proposal in reply.proposals
    )


def _digest(proposal: Proposal) -> str:
    call = f"{proposal.tool} {proposal.arguments}"
    return hashlib.sha256(call.encode()).hexdigest()[:32]


def tool_handlers(conversation: Conversation, servers: McpServers) -> list[AnyHandler]:
    """Return the handler of presses on `tool_buttons`."""

    async def run_proposed(conversation: Conversation, update: Update) -> None:
        """Run a proposed call in a turn of its own."""
        query = press_of(update)
        owner, digest = parts_of(query, 2)
        proposal = proposed_in(query.message, digest)
        is_own = await claim(query, owner if proposal else None, lambda data: data == query.data)
        if proposal is None or not is_own:
            return
        await acknowledge(query)
        is_again = is_retry()

        async def work(run: Run) -> Reply:
            # A call that was cut off may have run, and is left alone.
            return _uncertain(proposal) if is_again else await run_proposal(proposal, run, servers)

        question = conversation.build_question(update, f"▶ {proposal.tool}")
        await conversation.turns.run_turn(question, work)

    return [on_press(conversation, PREFIX, run_proposed)]


def _uncertain(proposal: Proposal) -> Reply:
    return Reply(text=translate("tool_uncertain", tool=escape(proposal.tool)), outcome="failed")


def proposed_in(message: object, digest: str) -> Proposal | None:
    """Return the call with this digest that a message shows."""
    if not isinstance(message, Message):
        return None
    for shown in message.parse_entities([MessageEntity.PRE]).values():
        tool, _, arguments = shown.partition(" ")
        if _digest(proposal := Proposal(tool, arguments)) == digest:
            return proposal
    return None
