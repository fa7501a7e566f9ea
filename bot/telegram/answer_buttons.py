"""Buttons under an answer: follow-ups, proposed calls, and facts and concerns of the user.

A button carries all that it needs, its user too: so it works after a restart, and an old press, one
of another user and a second one change nothing. The message shows a proposed call, and its button
carries a digest of it: so the call that runs is the one that the user read.
"""

import hashlib
from functools import partial
from typing import Final

from telegram import Message, MessageEntity, Update

from agent.care import CONCERNS, gravest_concern
from agent.engine.run import Run
from agent.i18n import translate
from agent.markdown import escape
from agent.mcp import McpServers, Proposal
from agent.memory.taste import describe_fact, format_added_facts, parse_suggested_fact
from agent.sommelier.wine import Wine
from agent.turn import Fact, Reply
from bot.look_ups import run_proposal
from bot.question import Question, is_retry
from bot.telegram.buttons import acknowledge, as_id, claim, parts_of, remove_buttons
from bot.telegram.conversation import AnyHandler, Conversation, on_press
from bot.telegram.messages import chat_and_user_ids, press_of
from bot.telegram.rating import rating
from bot.telegram.sender import MAX_DATA_BYTES, Button, ButtonRows, in_rows
from bot.updates.bursts import FOLLOW_UP

NEXT: Final = f"{FOLLOW_UP}:"
UNDO, REMEMBER, CARE, RUN = "u:", "r:", "c:", "x:"
"""The beginnings of the data: `n:USER:FOLLOW_UP`, `u:CHANGE`, `r:USER:KIND:VALUE`,
`c:USER:CONCERN`, `x:USER:DIGEST`."""

FOLLOW_UPS: Final = ("cheaper", "lighter", "fuller", "drier", "like", "why")
MISUNDERSTOOD: Final = "off"
MAX_LABEL: Final = 40
MAX_SUGGESTED: Final = 2


def buttons_below(question: Question, reply: Reply) -> ButtonRows:
    """Return the buttons below an answer."""
    return (
        _tool_buttons(question, reply)
        + _care_button(question, reply)
        + _memory_buttons(question, reply)
        + _follow_up_buttons(question, reply)
        + (rating(question.id) if reply.outcome != "care" else ())
    )


def answer_handlers(servers: McpServers) -> list[AnyHandler]:
    """Return the handlers of presses on these buttons."""
    return [
        on_press(RUN, partial(_run_proposed, servers)),
        on_press(NEXT, _answer_follow_up),
        on_press(UNDO, _undo),
        on_press(REMEMBER, _remember),
        on_press(CARE, _confirm_or_retract),
    ]


def _follow_up_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the follow-ups of an answer; none where it shows wines of another list."""
    wines = [wine for wine in reply.wines if isinstance(wine, Wine)]
    if question.kind not in ("chat", "label") or not wines or len(wines) < len(reply.wines):
        return ()
    buttons = [
        Button(translate(f"next_{name}"), f"{NEXT}{question.user_id}:{name}") for name in FOLLOW_UPS
    ]
    return in_rows(buttons, 3)


async def _answer_follow_up(update: Update, conversation: Conversation) -> None:
    """Answer the words of a button, once, while the conversation remembers its message."""
    query = press_of(update)
    owner, name = parts_of(query, 2)
    is_known = name in FOLLOW_UPS and await _is_remembered(query.message, conversation)
    prefix = "" if name == "why" else NEXT  # the others make as much sense after an explanation
    if message := await claim(query, owner if is_known else None, prefix):
        await acknowledge(query)
        question = conversation.build_question(update, translate(f"wish_{name}"))
        await conversation.run_turn(question, message.message_id)


async def _is_remembered(message: object, conversation: Conversation) -> bool:
    """Return whether the conversation remembers the turn of a message."""
    if not isinstance(message, Message):
        return False
    chat_id, repositories = message.chat.id, conversation.repositories
    thread_id = (message.message_thread_id if message.is_topic_message else None) or 0
    turn = await repositories.turns.find_by_message(chat_id, message.id)
    if turn is None:
        return False
    last = await repositories.messages.list_recent(
        chat_id, 1, thread_id=thread_id, last_turn_id=turn.turn_id
    )
    return any(stored.turn_id == turn.turn_id for stored in last)


def _tool_buttons(question: Question, reply: Reply) -> ButtonRows:
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
        return await run_proposal(proposal, run, servers)

    await conversation.turns.run_turn(
        conversation.build_question(update, f"▶ {proposal.tool}"), work
    )


def _shown_in(message: object) -> list[Proposal]:
    """Return the calls that a message shows."""
    if not isinstance(message, Message):
        return []
    calls = message.parse_entities([MessageEntity.PRE]).values()
    return [Proposal(tool, arguments) for tool, _, arguments in (c.partition(" ") for c in calls)]


def _care_button(question: Question, reply: Reply) -> ButtonRows:
    """Return the button that takes back or confirms a concern that the turn noticed."""
    concern = gravest_concern(reply.concerns)
    if concern == "crisis":
        label, value = translate("care_misunderstood_button"), MISUNDERSTOOD
    elif concern and reply.outcome != "care":
        label, value = translate("care_keep_button"), concern
    else:
        return ()
    return ((Button(label, f"{CARE}{question.user_id}:{value}"),),)


def _memory_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the buttons that undo the changes of a turn, or remember a fact it suggests."""
    undo_id = next((change.undo_id for change in reply.changes if change.undo_id), 0)
    suggested = [
        Button(translate("remember_fact", fact=describe_fact(fact))[:MAX_LABEL], data)
        for fact in reply.suggested_facts
        if len((data := _data(question.user_id, fact)).encode()) <= MAX_DATA_BYTES
    ]
    return undo_button(undo_id) + tuple((button,) for button in suggested[:MAX_SUGGESTED])


def _data(user_id: int, fact: Fact) -> str:
    return f"{REMEMBER}{user_id}:{fact.kind}:{fact.value}"


def undo_button(undo_id: int) -> ButtonRows:
    """Return the button that undoes a change; none if it cannot be undone."""
    return ((Button(translate("undo_button"), f"{UNDO}{undo_id}"),),) if undo_id else ()


async def _undo(update: Update, conversation: Conversation) -> None:
    """Take a change back, if it is the presser's and was not taken back yet."""
    query, (_, user_id) = press_of(update), chat_and_user_ids(update)
    undo_id = as_id(parts_of(query, 1)[0])
    if await conversation.repositories.memory.find_undoable(user_id, undo_id) is None:
        await acknowledge(query, translate("nothing_to_undo"))
        return
    await conversation.change_memory(update, reverts_id=undo_id)
    await acknowledge(query, translate("undone"))
    await remove_buttons(query)


async def _remember(update: Update, conversation: Conversation) -> None:
    """Remember a suggested fact."""
    query = press_of(update)
    owner, kind, value = parts_of(query, 3)
    fact = parse_suggested_fact(kind, value)
    if await claim(query, owner if fact else None) and fact:
        await conversation.change_memory(update, added_facts=(fact,))
        await acknowledge(query, format_added_facts([fact]))


async def _confirm_or_retract(update: Update, conversation: Conversation) -> None:
    """Remember a concern, or take it back."""
    query, (chat_id, user_id) = press_of(update), chat_and_user_ids(update)
    safety, (owner, concern) = conversation.turns.safety, parts_of(query, 2)
    if not await claim(query, owner, CARE):
        return
    if concern == MISUNDERSTOOD:
        await safety.retract(chat_id, user_id)
        await acknowledge(query)
        await conversation.reply(update, translate("care_misunderstood"))
    elif concern in CONCERNS:
        await safety.remember(chat_id, user_id, [concern])
        await acknowledge(query, translate("care_kept"))
