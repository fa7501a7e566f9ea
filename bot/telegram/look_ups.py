"""/ask, /quotes and /find in Telegram, and the buttons that run a proposed call of a tool.

The message shows the whole call, and the button carries a digest of it: so the call that runs is
the one that the user read, also after a restart.
"""

import hashlib
from functools import partial
from typing import Final, get_args

from telegram import Message, MessageEntity, Update

from agent.engine.run import Run
from agent.i18n import translate
from agent.markdown import escape
from agent.mcp import McpServers, Proposal
from agent.turn import Reply
from bot import look_ups
from bot.outgoing import Button, ButtonRows
from bot.question import Question, is_retry
from bot.telegram.buttons import acknowledge, claim, parts_of
from bot.telegram.conversation import AnyHandler, Conversation, on_command, on_press
from bot.telegram.messages import behind_command, message_of, press_of

RUN: Final = "x:"
"""The beginning of the data of the button that runs a call: `x:USER:DIGEST`."""


def look_up_handlers(servers: McpServers) -> list[AnyHandler]:
    """Return the handlers of these commands and buttons; the last takes any button.

    Without models the best passages are shown as they are; without a search places are links.
    """
    names: tuple[look_ups.Name, ...] = get_args(look_ups.Name)
    return [
        *(on_command(name, partial(_look_up, name)) for name in names),
        on_press(RUN, partial(_run_proposed, servers)),
        on_press("", _say_too_old),
    ]


async def _look_up(name: look_ups.Name, update: Update, conversation: Conversation) -> None:
    """Answer a command: /ask QUESTION, /quotes QUERY (one message each), /find PLACES."""
    message = message_of(update)
    found = look_ups.read_look_up(name, behind_command(message), conversation.resources)
    if isinstance(found, str):
        question = conversation.build_question(update, message.text or "")
        if not await conversation.turns.offer_help(question):
            await conversation.reply(update, found)
        return
    question = conversation.build_question(update, found.question, kind=name)
    await conversation.turns.run_turn(question, found.work)


async def _say_too_old(update: Update, conversation: Conversation) -> None:
    """Acknowledge a button of an earlier version."""
    await acknowledge(press_of(update), translate("button_too_old"))


def tool_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the buttons that run the calls which a reply proposes."""
    return tuple(
        (Button(f"▶ {proposal.tool}", f"{RUN}{question.user_id}:{_digest(proposal)}"),)
        for proposal in reply.proposals
    )


def _digest(proposal: Proposal) -> str:
    call = f"{proposal.tool} {proposal.arguments}"
    return hashlib.sha256(call.encode()).hexdigest()[:32]


async def _run_proposed(servers: McpServers, update: Update, conversation: Conversation) -> None:
    """Run a proposed call in a turn of its own, once at most."""
    query = press_of(update)
    owner, digest = parts_of(query, 2)
    proposal = next((one for one in _shown_in(query.message) if _digest(one) == digest), None)
    if not await claim(query, owner if proposal else None) or proposal is None:
        return
    await acknowledge(query)
    is_again = is_retry()

    async def work(run: Run) -> Reply:
        if is_again:  # a call that was cut off may have run, and is left alone
            text = translate("tool_uncertain", tool=escape(proposal.tool))
            return Reply(text=text, outcome="failed")
        return await look_ups.run_proposal(proposal, run, servers)

    await conversation.turns.run_turn(
        conversation.build_question(update, f"▶ {proposal.tool}"), work
    )


def _shown_in(message: object) -> list[Proposal]:
    """Return the calls that a message shows."""
    if not isinstance(message, Message):
        return []
    calls = message.parse_entities([MessageEntity.PRE]).values()
    return [Proposal(tool, arguments) for tool, _, arguments in (c.partition(" ") for c in calls)]
