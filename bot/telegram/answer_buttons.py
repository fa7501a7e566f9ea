"""Show buttons under answers: follow-ups, proposed tool calls, facts and concerns of the user.

The data of a button hold all that its handler needs, with the user's id. So buttons work after a
restart, and old presses, repeated ones and those of other users change nothing. A message shows
each proposed call, and its button has a digest of the call, so only a call that the user saw runs.
"""

import hashlib
from functools import partial
from typing import Final

from telegram import Message, MessageEntity, Update

from agent.engine.run import Run
from agent.i18n import translate
from agent.markdown import escape
from agent.mcp import McpServers, Proposal
from agent.memory.taste import describe_fact, format_added_facts, parse_suggested_fact
from agent.safety.state import CONCERNS, most_serious_concern
from agent.sommelier.wine import Wine
from agent.turn import Fact, Reply
from bot.look_ups import run_proposal
from bot.question import Question, is_retry
from bot.telegram.buttons import acknowledge, claim_press, parse_id, remove_buttons, split_data
from bot.telegram.conversation import AnyHandler, Conversation, on_press
from bot.telegram.messages import chat_and_user_ids, press_of
from bot.telegram.rating import rating_buttons
from bot.telegram.sender import MAX_DATA_BYTES, Button, ButtonRows, in_rows
from bot.updates.bursts import FOLLOW_UP

NEXT: Final = f"{FOLLOW_UP}:"
UNDO, REMEMBER, CARE, RUN = "u:", "r:", "c:", "x:"
"""The prefixes of button data: `n:USER:FOLLOW_UP`, `u:CHANGE`, `r:USER:KIND:VALUE`,
`c:USER:CONCERN`, `x:USER:DIGEST`."""

FOLLOW_UPS: Final = ("cheaper", "lighter", "fuller", "drier", "like", "why")
MISUNDERSTOOD: Final = "off"
"""In place of a concern: the user says that there is none."""
MAX_LABEL_CHARS: Final = 40
MAX_SUGGESTED_FACTS: Final = 2


def buttons_below(question: Question, reply: Reply) -> ButtonRows:
    """Return all buttons below an answer."""
    return (
        _tool_buttons(question, reply)
        + _care_button(question, reply)
        + _memory_buttons(question, reply)
        + _follow_up_buttons(question, reply)
        + (rating_buttons(question.id) if reply.outcome != "care" else ())
    )


def answer_handlers(servers: McpServers) -> list[AnyHandler]:
    """Return the handlers of the buttons below answers."""
    return [
        on_press(RUN, partial(_run_proposed, servers)),
        on_press(NEXT, _run_follow_up),
        on_press(UNDO, _undo),
        on_press(REMEMBER, _remember),
        on_press(CARE, _remember_or_retract),
    ]


def _follow_up_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the follow-up buttons of an answer.

    There are none if the answer shows no wines, or any that are not of the catalogue.
    """
    wines = [wine for wine in reply.wines if isinstance(wine, Wine)]
    if question.kind not in ("chat", "label") or not wines or len(wines) < len(reply.wines):
        return ()
    buttons = [
        Button(translate(f"next_{name}"), f"{NEXT}{question.user_id}:{name}") for name in FOLLOW_UPS
    ]
    return in_rows(buttons, 3)


async def _run_follow_up(update: Update, conversation: Conversation) -> None:
    """Answer the question of a button, if the conversation history still has its message."""
    query = press_of(update)
    owner_id, name = split_data(query, 2)
    is_valid = name in FOLLOW_UPS and await _is_in_history(query.message, conversation)
    prefix = "" if name == "why" else NEXT  # after an explanation the others still make sense
    if message := await claim_press(query, owner_id if is_valid else None, prefix):
        await acknowledge(query)
        question = conversation.build_question(update, translate(f"wish_{name}"))
        await conversation.run_turn(question, message.message_id)


async def _is_in_history(message: object, conversation: Conversation) -> bool:
    if not isinstance(message, Message):
        return False
    chat_id, repositories = message.chat.id, conversation.repositories
    thread_id = (message.message_thread_id if message.is_topic_message else None) or 0
    turn = await repositories.turns.find_by_message(chat_id, message.id)
    if turn is None:
        return False
    messages = await repositories.messages.list_recent(
        chat_id, 1, thread_id=thread_id, last_turn_id=turn.turn_id
    )
    return any(stored.turn_id == turn.turn_id for stored in messages)


def _tool_buttons(question: Question, reply: Reply) -> ButtonRows:
    return tuple(
        (Button(f"▶ {proposal.tool_name}", f"{RUN}{question.user_id}:{_digest(proposal)}"),)
        for proposal in reply.proposals
    )


def _digest(proposal: Proposal) -> str:
    call = f"{proposal.tool_name} {proposal.arguments}"
    return hashlib.sha256(call.encode()).hexdigest()[:32]


async def _run_proposed(servers: McpServers, update: Update, conversation: Conversation) -> None:
    """Run a proposed tool call in its own turn, at most once."""
    query = press_of(update)
    owner_id, digest = split_data(query, 2)
    proposals = _parse_proposals(query.message)
    proposal = next((shown for shown in proposals if _digest(shown) == digest), None)
    if not await claim_press(query, owner_id if proposal else None) or proposal is None:
        return
    await acknowledge(query)
    may_have_run = is_retry()  # the interrupted try may have called the tool

    async def make_reply(run: Run) -> Reply:
        if may_have_run:
            text = translate("tool_uncertain", tool=escape(proposal.tool_name))
            return Reply(text=text, outcome="failed")
        return await run_proposal(proposal, run, servers)

    question = conversation.build_question(update, f"▶ {proposal.tool_name}")
    await conversation.turns.run_turn(question, make_reply)


def _parse_proposals(message: object) -> list[Proposal]:
    """Return the proposed calls in a message: its code blocks, a tool name and arguments each."""
    if not isinstance(message, Message):
        return []
    calls = [call.partition(" ") for call in message.parse_entities([MessageEntity.PRE]).values()]
    return [Proposal(tool, arguments) for tool, _, arguments in calls]


def _care_button(question: Question, reply: Reply) -> ButtonRows:
    """Return the button that retracts or keeps a concern that the turn detected."""
    concern = most_serious_concern(reply.concerns)
    if concern == "crisis":
        label, value = translate("care_misunderstood_button"), MISUNDERSTOOD
    elif concern and reply.outcome != "care":
        label, value = translate("care_keep_button"), concern
    else:
        return ()
    return ((Button(label, f"{CARE}{question.user_id}:{value}"),),)


def _memory_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the buttons that undo the changes of a turn, or remember the facts it suggests."""
    undo_id = next((change.undo_id for change in reply.changes if change.undo_id), 0)
    fact_buttons = [
        Button(translate("remember_fact", fact=describe_fact(fact))[:MAX_LABEL_CHARS], data)
        for fact in reply.suggested_facts
        if len((data := _fact_data(question.user_id, fact)).encode()) <= MAX_DATA_BYTES
    ]
    return undo_button(undo_id) + tuple((button,) for button in fact_buttons[:MAX_SUGGESTED_FACTS])


def _fact_data(user_id: int, fact: Fact) -> str:
    return f"{REMEMBER}{user_id}:{fact.kind}:{fact.value}"


def undo_button(undo_id: int) -> ButtonRows:
    """Return the button that undoes a change; no button if `undo_id` is 0."""
    return ((Button(translate("undo_button"), f"{UNDO}{undo_id}"),),) if undo_id else ()


async def _undo(update: Update, conversation: Conversation) -> None:
    """Undo a change, if it is one of this user's and was not undone yet."""
    query, (_, user_id) = press_of(update), chat_and_user_ids(update)
    undo_id = parse_id(split_data(query, 1)[0])
    if await conversation.repositories.memory.find_undoable(user_id, undo_id) is None:
        await acknowledge(query, translate("nothing_to_undo"))
        return
    await conversation.change_memory(update, reverts_id=undo_id)
    await acknowledge(query, translate("undone"))
    await remove_buttons(query)


async def _remember(update: Update, conversation: Conversation) -> None:
    """Store a suggested fact."""
    query = press_of(update)
    owner_id, kind, value = split_data(query, 3)
    fact = parse_suggested_fact(kind, value)
    if await claim_press(query, owner_id if fact else None) and fact:
        await conversation.change_memory(update, added_facts=(fact,))
        await acknowledge(query, format_added_facts([fact]))


async def _remember_or_retract(update: Update, conversation: Conversation) -> None:
    """Store a concern that the user confirms, or retract the ones that were misunderstood."""
    query, safety = press_of(update), conversation.turns.safety
    chat_id, user_id = chat_and_user_ids(update)
    owner_id, concern = split_data(query, 2)
    if not await claim_press(query, owner_id, CARE):
        return
    if concern == MISUNDERSTOOD:
        await safety.retract(chat_id, user_id)
        await acknowledge(query)
        await conversation.reply(update, translate("care_misunderstood"))
    elif concern in CONCERNS:
        await safety.remember(chat_id, user_id, [concern])
        await acknowledge(query, translate("care_kept"))
