"""Show buttons under answers: follow-ups, proposed tool calls, facts and concerns of the user.

The data of a button contain all that its handler needs, so buttons work after a restart.

Presses that are too old, repeated, or made by other users change nothing. The stored turn of the
answer says whose buttons they are. The commit of a press stores that the button was pressed.

The text of a message shows each proposed tool call, and its button contains a digest of the call.
So only a call that the user has seen can run.
"""

import hashlib
from collections.abc import Collection, Iterable
from functools import partial
from typing import Final

from telegram import CallbackQuery, Message, MessageEntity, Update

from agent.documents.shop import CONTACT, find_shop_topics
from agent.engine.run import Run
from agent.fallback.follow_ups import BUTTONS, FollowUp, find_button
from agent.fallback.wording import DRY_STEPS
from agent.i18n import translate
from agent.markdown import escape, strip_invisible
from agent.mcp import McpServers, Proposal
from agent.memory.taste import describe_fact, format_added_facts, parse_suggested_fact
from agent.safety.help_texts import INTERNATIONAL_URL
from agent.safety.policy import (
    PRIVATE_ACTIONS,
    RETRACTABLE_CONCERNS,
    SafetyAction,
)
from agent.safety.state import (
    CONCERNS,
    Concern,
    SafetyState,
    most_serious_concern,
)
from agent.sommelier.wine import CELLAR_PREFIX, Wine
from agent.text import clip
from agent.turn import Change, Reply
from bot.clicks import CountedLinks
from bot.look_ups import run_proposal
from bot.telegram.ask_shop import ask_shop_button
from bot.telegram.buttons import (
    acknowledge,
    claim_press,
    find_answered_turn,
    parse_id,
    remove_buttons,
    split_data,
)
from bot.telegram.chat import AnyHandler, ChatTurn, answer_in_chat, on_press
from bot.telegram.messages import press_of
from bot.telegram.rating import rating_buttons
from bot.telegram.sender import MAX_DATA_BYTES, Button, ButtonRows, in_rows
from bot.turn import Question, Turn
from bot.updates.joining import FOLLOW_UP

# The prefixes of the data of buttons, with the form of the data:
NEXT: Final = f"{FOLLOW_UP}:"
"""Asks a follow-up question, or answers the bot's: `n:FOLLOW_UP` or one of `DRINK_ANSWERS`."""
UNDO: Final = "u:"
"""Undoes a change of the memory: `u:CHANGE_ID`."""
REMEMBER: Final = "r:"
"""Stores a suggested fact: `r:KIND:VALUE`."""
CONCERN: Final = "c:"
"""Confirms or retracts a concern: `c:CONCERN`, `c:off` or `c:sober`."""
NUMBERS: Final = "h:"
"""Shows the numbers to call. Nothing follows the prefix."""
RUN: Final = "x:"
"""Runs a proposed tool call: `x:DIGEST`."""
OPENED: Final = "o:"
"""Says that the user has opened a bottle: `o:NUMBER`, with the number of the wine in the cellar."""
BOUGHT: Final = "ca:"
"""The prefix of the data of the button that adds bought bottles, `b:COUNT NAME`."""

DRINK_ANSWERS: Final = ("alcohol_free", "no_drinks")
"""The answers to the question that a user with a dependence is asked, by name.

As for a follow-up, `next_…` is the label of a button, and `wish_…` the sentence that it sends.
"""
MISUNDERSTOOD: Final = "off"
"""Stands in the place of a concern if the user says that there is none."""
NOT_DEPENDENT: Final = "sober"
"""Stands in the place of a concern if the user says that they are not dependent."""
NUMBERS_PARAMETER: Final = "numbers"
"""The parameter of /start with which a link asks for the numbers to call."""
INTERNATIONAL_LABEL: Final = "🌍 findahelpline.com"
STAFF_TOPICS: Final = frozenset({"delivery", "returns", CONTACT})
"""The topics of questions after which the shop may have to do something."""
MAX_LABEL_CHARS: Final = 40
"""A longer label hardly fits on the screen of a phone."""
MAX_SUGGESTED_FACTS: Final = 3
MAX_OPENED_BUTTONS: Final = 3
DIGEST_CHARS: Final = 32
"""The length of the digest of a proposed call. A whole SHA-256 is too long for a button's data."""


def buttons_below(
    turn: Turn,
    question: Question,
    reply: Reply,
    links: CountedLinks | None = None,
) -> ButtonRows:
    """Return all buttons below an answer.

    With `links`, presses of the buttons that open pages are counted.
    """
    rows = [
        *_shop_buttons(reply, links),
        *_tool_buttons(reply),
        *_drink_buttons(turn, reply),
        *_help_buttons(turn, reply),
        *_concern_button(reply),
        *_staff_button(turn, question, reply),
        *_opened_buttons(turn, reply),
        *_bought_button(turn, reply),
        *_memory_buttons(reply),
        *_follow_up_buttons(question, reply),
    ]
    # Nobody is asked to rate a text of the safety rules.
    if reply.outcome != "help":
        rows += rating_buttons(turn.id)
    return tuple(rows)


def answer_handlers(servers: McpServers) -> list[AnyHandler]:
    """Return the handlers of the buttons below answers."""
    return [
        on_press(RUN, partial(_run_proposed, servers)),
        on_press(NEXT, _run_follow_up),
        on_press(UNDO, _undo),
        on_press(REMEMBER, _remember),
        on_press(CONCERN, _remember_or_retract),
        on_press(NUMBERS, _show_numbers),
    ]


def _shop_buttons(reply: Reply, links: CountedLinks | None) -> ButtonRows:
    """Return a button for each card with a wine that has a page in the shop.

    The label of a button begins with the number of the card.
    """
    buttons: list[Button] = []
    for number, wine in enumerate(reply.wines, start=1):
        if not isinstance(wine, Wine) or not wine.link:
            continue
        words = strip_invisible(wine.name).split()
        name = " ".join(words)
        label = clip(f"🛒 {number}. {name}", MAX_LABEL_CHARS)
        address = wine.link
        if links is not None:
            address = links.address_of(wine)
        buttons.append(Button(label, address))
    return in_rows(buttons, 1)


def _staff_button(turn: Turn, question: Question, reply: Reply) -> ButtonRows:
    """Return the button that asks the shop, if the bot has no answer or cannot act itself."""
    if reply.outcome == "help":
        return ()
    topics = find_shop_topics([question.text])
    needs_staff = not STAFF_TOPICS.isdisjoint(topics)
    if reply.offers_staff or reply.lack or needs_staff:
        # This is empty if the user cannot ask the shop.
        return ask_shop_button(turn)
    return ()


def _opened_buttons(turn: Turn, reply: Reply) -> ButtonRows:
    """Return a button for each of the user's own wines, to say that a bottle was opened."""
    if turn.is_group:
        return ()
    buttons: list[Button] = []
    for wine in reply.wines:
        if isinstance(wine, Wine) and wine.is_own:
            label = clip(translate("cellar_opened", wine=wine.label), MAX_LABEL_CHARS)
            number = wine.id.removeprefix(CELLAR_PREFIX)
            buttons.append(Button(label, f"{OPENED}{number}"))
    return in_rows(buttons[:MAX_OPENED_BUTTONS], 1)


def _bought_button(turn: Turn, reply: Reply) -> ButtonRows:
    """Return the button that adds the bottles that the user has bought, if they were understood."""
    if not reply.bought or turn.is_group:
        return ()
    data = f"{BOUGHT}{reply.bought}"
    if len(data.encode()) > MAX_DATA_BYTES:
        return ()
    label = translate("cellar_add_label", wine=reply.bought)
    return ((Button(clip(label, MAX_LABEL_CHARS), data),),)


def _follow_up_buttons(question: Question, reply: Reply) -> ButtonRows:
    """Return the follow-up buttons of an answer.

    There are none if the answer shows no wines for sale, or if it shows wines that were read from a
    picture. An answer to "Why?" has no "Why?" button. If all wines are dry, there is no "Drier"
    button.
    """
    if question.kind not in ("chat", "label"):
        return ()
    wines = [wine for wine in reply.wines if isinstance(wine, Wine)]
    shows_read_wines = len(wines) < len(reply.wines)
    shows_only_own_wines = all(wine.is_own for wine in wines)
    if shows_read_wines or shows_only_own_wines:
        return ()
    offered = list(BUTTONS)
    if find_button(question.text) is FollowUp.WHY:
        offered.remove(FollowUp.WHY)
    # Most wines are dry, so one of unknown sweetness counts as dry.
    if all(wine.sweetness in (None, *DRY_STEPS) for wine in wines):
        offered.remove(FollowUp.DRIER)
    return in_rows(_make_next_buttons(offered), 3)


def _drink_buttons(turn: Turn, reply: Reply) -> ButtonRows:
    """Return the buttons that answer the question asked after a dependence was stated.

    In a group the reply does not ask it.
    """
    if turn.is_group or reply.safety_action is not SafetyAction.QUESTION:
        return ()
    return in_rows(_make_next_buttons(DRINK_ANSWERS), 1)


def _make_next_buttons(names: Iterable[str]) -> list[Button]:
    """Return a button for each of the names of follow-ups or answers."""
    buttons: list[Button] = []
    for name in names:
        label = translate(f"next_{name}")
        buttons.append(Button(label, f"{NEXT}{name}"))
    return buttons


async def _run_follow_up(update: Update, turn: ChatTurn) -> None:
    """Answer the sentence of a button, if the stored conversation still has the answer above it."""
    query = press_of(update)
    (name,) = split_data(query, 1)
    is_known = name in BUTTONS or name in DRINK_ANSWERS
    if not is_known or not await _is_in_history(query, turn):
        await acknowledge(query, translate("button_too_old"))
        return
    # A press claims and removes all follow-up buttons. Only "Why?" leaves the others, because they
    # still make sense after an explanation. Without a prefix only the pressed button is claimed.
    prefix = NEXT
    if name == FollowUp.WHY:
        prefix = ""
    message = await claim_press(query, turn, prefix)
    if message is None:
        return
    await acknowledge(query)
    remove_buttons(query, turn, prefix)
    question = turn.make_question(translate(f"wish_{name}"))
    await answer_in_chat(turn, question, replied_answer_id=message.message_id)


async def _is_in_history(query: CallbackQuery, turn: ChatTurn) -> bool:
    """Return whether the answer above the pressed button still has its stored messages."""
    answered = await find_answered_turn(query, turn)
    if answered is None:
        return False
    messages = await turn.repositories.messages.list_recent(
        turn.chat_id,
        limit=1,
        thread_id=turn.thread_id,
        last_turn_id=answered.turn_id,
    )
    return any(stored.turn_id == answered.turn_id for stored in messages)


def _tool_buttons(reply: Reply) -> ButtonRows:
    """Return a button for each tool call that the answer proposes."""
    buttons: list[Button] = []
    for proposal in reply.proposals:
        label = f"▶ {proposal.tool_name}"
        buttons.append(Button(label, f"{RUN}{_digest(proposal)}"))
    return in_rows(buttons, 1)


def _digest(proposal: Proposal) -> str:
    """Return a hash of a proposed call. The hash is short enough for the data of a button."""
    call = f"{proposal.tool_name} {proposal.arguments}"
    digest = hashlib.sha256(call.encode()).hexdigest()
    return digest[:DIGEST_CHARS]


async def _run_proposed(servers: McpServers, update: Update, turn: ChatTurn) -> None:
    """Run a proposed tool call in its own turn, at most once."""
    query = press_of(update)
    (digest,) = split_data(query, 1)
    proposal = _find_proposal(query.message, digest)
    if proposal is None:
        await acknowledge(query, translate("button_too_old"))
        return
    if await claim_press(query, turn) is None:
        return
    await acknowledge(query)
    remove_buttons(query, turn)

    async def make_reply(run: Run) -> Reply:
        # If an interrupted try has begun this call, nobody knows whether the tool has acted. So the
        # call is not repeated.
        if turn.calls.earlier:
            text = translate("tool_uncertain", tool=escape(proposal.tool_name))
            return Reply(text=text, outcome="failed")
        await turn.calls.add(proposal.tool_name, proposal.arguments)
        return await run_proposal(proposal, run, servers)

    question = turn.make_question(f"▶ {proposal.tool_name}")
    await turn.services.runner.run(turn, question, make_reply)


def _find_proposal(message: object, digest: str) -> Proposal | None:
    """Return the call in a message that has this digest, or None.

    A message shows each proposed call as a code block: the name of the tool, a space, and the
    arguments.
    """
    if not isinstance(message, Message):
        return None
    for call in message.parse_entities([MessageEntity.PRE]).values():
        tool_name, _, arguments = call.partition(" ")
        proposal = Proposal(tool_name, arguments)
        if _digest(proposal) == digest:
            return proposal
    return None


def numbers_button() -> ButtonRows:
    """Return the button that shows the numbers to call."""
    return ((Button(translate("numbers_button"), NUMBERS),),)


def international_button() -> ButtonRows:
    """Return the button that opens a page with the help lines of all countries."""
    return ((Button(INTERNATIONAL_LABEL, INTERNATIONAL_URL),),)


def _help_buttons(turn: Turn, reply: Reply) -> ButtonRows:
    """Return the buttons that lead to numbers to call."""
    if reply.offers_numbers:
        return numbers_button()
    if reply.safety_action not in PRIVATE_ACTIONS:
        return ()
    # Only a `ChatTurn` knows the name of the bot, which the link contains.
    if turn.is_group and isinstance(turn, ChatTurn):
        address = f"https://t.me/{turn.bot_name}?start={NUMBERS_PARAMETER}"
        return ((Button(translate("in_private_button"), address),),)
    return international_button()


def _concern_button(reply: Reply) -> ButtonRows:
    """Return the button with which the user retracts or confirms a concern of this turn."""
    concern = most_serious_concern(reply.concerns)
    if concern == "crisis" or reply.safety_action is SafetyAction.NUMBERS:
        label_id = "misunderstood_button"
        value: str = MISUNDERSTOOD
    elif "dependence" in reply.stored_concerns:
        label_id = "not_dependent_button"
        value = NOT_DEPENDENT
    elif concern and reply.outcome != "help":
        label_id = "concern_keep_button"
        value = concern
    else:
        return ()
    return ((Button(translate(label_id), f"{CONCERN}{value}"),),)


async def _show_numbers(update: Update, turn: ChatTurn) -> None:
    """Show the numbers to call. The button stays, so the numbers can be shown again."""
    await acknowledge(press_of(update))
    numbers = turn.services.resources.help.write_numbers(SafetyState())
    turn.reply(numbers, international_button())


def _memory_buttons(reply: Reply) -> ButtonRows:
    """Return the button that undoes a change of a turn, and those that store suggested facts."""
    # All changes of a turn are undone together, so the first one with an id stands for all.
    undo_id = 0
    for change in reply.changes:
        if change.undo_id:
            undo_id = change.undo_id
            break
    buttons: list[Button] = []
    for fact in reply.suggested_facts:
        data = f"{REMEMBER}{fact.kind}:{fact.value}"
        if len(data.encode()) <= MAX_DATA_BYTES:
            label = translate("remember_fact", fact=describe_fact(fact))
            buttons.append(Button(clip(label, MAX_LABEL_CHARS), data))
    return undo_button(undo_id) + in_rows(buttons[:MAX_SUGGESTED_FACTS], 1)


def undo_button(undo_id: int) -> ButtonRows:
    """Return the button that undoes a change. If `undo_id` is 0, there is nothing to undo."""
    if not undo_id:
        return ()
    return ((Button(translate("undo_button"), f"{UNDO}{undo_id}"),),)


async def _undo(update: Update, turn: ChatTurn) -> None:
    """Undo a change of this user's memory, if it was not undone yet."""
    query = press_of(update)
    (id_part,) = split_data(query, 1)
    undo_id = parse_id(id_part)
    user_id = query.from_user.id
    if await turn.repositories.memory.find_undoable(user_id, undo_id) is None:
        await acknowledge(query, translate("nothing_to_undo"))
        return
    turn.change_memory(Change(user_id=turn.user_id, reverts_id=undo_id))
    await acknowledge(query, translate("undone"))
    remove_buttons(query, turn)


async def _remember(update: Update, turn: ChatTurn) -> None:
    """Store a suggested fact."""
    query = press_of(update)
    kind, value = split_data(query, 2)
    fact = parse_suggested_fact(kind, value)
    if fact is None:
        await acknowledge(query, translate("button_too_old"))
        return
    if await claim_press(query, turn) is None:
        return
    turn.change_memory(Change(user_id=turn.user_id, added_facts=(fact,)))
    await acknowledge(query, format_added_facts([fact]))
    remove_buttons(query, turn)


async def _remember_or_retract(update: Update, turn: ChatTurn) -> None:
    """Store a concern that the user confirms, or retract one that was misunderstood."""
    query = press_of(update)
    safety = turn.services.runner.safety
    (value,) = split_data(query, 1)
    if value not in (MISUNDERSTOOD, NOT_DEPENDENT, *CONCERNS):
        await acknowledge(query, translate("button_too_old"))
        return
    if await claim_press(query, turn, CONCERN) is None:
        return
    remove_buttons(query, turn, CONCERN)
    if value in CONCERNS:
        turn.change(safety.remember(turn.chat_id, turn.user_id, [value]))
        await acknowledge(query, translate("concern_kept"))
        return
    retracted: Collection[Concern] = RETRACTABLE_CONCERNS
    if value == NOT_DEPENDENT:
        retracted = {"dependence"}
    turn.change(await safety.retract(turn.chat_id, turn.user_id, retracted))
    await acknowledge(query)
    turn.reply(translate("misunderstood"))
