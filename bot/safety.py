"""Detect the concerns of a user, such as a crisis or a pregnancy, in a message.

Most concerns are stored for a limited time.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from agent.engine.run import Run, Span
from agent.i18n import current_language
from agent.query_reading.request import is_clear_request
from agent.safety.concerns import read_safety_state
from agent.safety.help_texts import Help
from agent.safety.policy import (
    DURATIONS,
    LIKELY_LINE_INTERVAL,
    PERMANENT_CONCERNS,
    PRIVATE_ACTIONS,
    RETRACTABLE_CONCERNS,
    SafetyAction,
    decide,
)
from agent.safety.state import Concern, SafetyState
from agent.sommelier.safety_replies import add_line, safety_reply
from agent.turn import (
    UNDER_AGE_SETTING,
    Change,
    Fact,
    Person,
    Reply,
    ReplyFunction,
)
from bot.turn import Question, Turn
from db.changes.memory import ForgetConcerns, SaveConcerns
from db.engine import call_or_default
from db.repositories.people import MemoryRepository

LOOK_UP_KINDS: Final = frozenset({"ask", "quotes", "find", "rewrite"})
"""Kinds of turns that answer from documents or from the web, or that prepare such an answer."""
SHOWN_IN_GROUPS: Final = frozenset({"allergy", "setting"})
"""The kinds of facts about a user that are used in groups, where other people read the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyService:
    """Detects the concerns and allergies of users. `memory` has those of earlier messages."""

    help: Help = field(default_factory=Help)
    memory: MemoryRepository | None = None
    lines_shown: dict[int, datetime] = field(default_factory=dict)
    """When each user was last shown the line about a likely concern, by the user's id.

    The line is a sentence below an answer that offers help.
    """

    async def find_state(
        self,
        text: str,
        chat_id: int,
        user_id: int,
        span: Span,
    ) -> SafetyState:
        """Return the safety state after a message, with the concerns of earlier ones."""
        stored = await self._load_concerns(chat_id, user_id)
        state = read_safety_state(text, self.help.drinking_age)
        state = state.with_stored_names(stored)
        if state.concerns or state.allergies or state.likely_concerns:
            noticed = sorted(state.concerns | state.allergies)
            metadata = {"noticed_by": state.noticed_by}
            with span.child("guard.concerns", "guardrail", input=text) as guard:
                guard.update(output=noticed, metadata=metadata)
        return state

    async def find_state_in_any_chat(self, text: str, user_id: int) -> SafetyState:
        """Return the safety state after a text, with the user's concerns in all chats."""
        state = read_safety_state(text, self.help.drinking_age)
        if self.memory is None:
            return state
        concerns = await self.memory.list_concerns(None, user_id)
        return state.with_stored_names(concerns)

    async def read_person(
        self,
        chat_id: int,
        user_id: int,
        state: SafetyState,
        facts: Sequence[Fact] | None = None,
    ) -> Person:
        """Return what is known of a user: the safety state, facts and cellar.

        In a group, the facts are only allergies and settings. If the memory cannot be read, the
        user has only the safety state. `facts` are the user's facts if they were read before.
        """
        memory = self.memory
        if memory is None or not user_id:
            return Person(state)

        async def read() -> Person:
            known_facts = facts
            if known_facts is None:
                known_facts = await memory.list_facts(user_id)
            is_group = chat_id < 0
            if is_group:
                known_facts = _facts_for_group(known_facts)
            person = Person(
                _with_facts(state, known_facts),
                facts=tuple(known_facts),
                user_id=user_id,
            )
            # A private chat has the id of its user.
            is_private = chat_id == user_id
            if is_private:
                return await _with_cellar(person, memory)
            return person

        problem = "The memory of a user could not be read"
        return await call_or_default(read, Person(state), problem)

    async def make_safe_reply(
        self,
        run: Run,
        turn: Turn,
        question: Question,
        person: Person,
        make_reply: ReplyFunction,
    ) -> Reply:
        """Return the reply of a turn, as the safety rules allow it.

        Usually `make_reply` makes the reply. If the rules show help or refuse a look-up instead, no
        model is asked. If the message of a look-up states a new concern, the reply gets a note. The
        commit of the
        turn stores the allergies that the message states.
        """
        state = person.safety
        is_look_up = question.kind in LOOK_UP_KINDS
        asks_for_wine = is_clear_request(question.text, current_language())
        action = decide(state, asks_for_wine=asks_for_wine, is_look_up=is_look_up)
        if action is not SafetyAction.ANSWER:
            help_reply = safety_reply(action, state, self.help)
            return self._in_public(help_reply, turn, state)
        reply = await make_reply(run)
        notes = reply.notes
        if is_look_up and state.new_concern:
            notes = (self.help.write_notice(state), *notes)
        reply = replace(
            reply,
            notes=notes,
            changes=(*reply.changes, *_store_new_allergies(person)),
            stored_concerns=state.turn_concerns - state.earlier_concerns,
        )
        reply = self._with_line(reply, turn, state)
        return self._in_public(reply, turn, state)

    def _in_public(self, reply: Reply, turn: Turn, state: SafetyState) -> Reply:
        """Replace help by a short text in a group, where other people read it."""
        if turn.is_group and reply.safety_action in PRIVATE_ACTIONS:
            return replace(reply, text=self.help.get_group_text(state))
        return reply

    def _with_line(self, reply: Reply, turn: Turn, state: SafetyState) -> Reply:
        """Add the line about a concern to a reply, after a crisis or for a likely concern.

        In a group, where other people read it, none is added. The line about a concern that is only
        likely is not added again too soon.
        """
        # A question over HTTP belongs to no chat.
        has_conversation = turn.chat_id != 0
        if turn.is_group or not has_conversation:
            return reply
        if state.is_after_crisis or self._claim_line(turn.user_id, state):
            return add_line(reply, state, self.help)
        return reply

    def _claim_line(self, user_id: int, state: SafetyState) -> bool:
        """Return whether the line about a likely concern is shown now. If so, keep the time.

        The times are kept in memory only: nothing is stored about a concern that is not certain.
        """
        if not state.likely_concerns:
            return False
        now = datetime.now(UTC)
        for known_id, shown_at in list(self.lines_shown.items()):
            if now - shown_at >= LIKELY_LINE_INTERVAL:
                del self.lines_shown[known_id]
        if user_id in self.lines_shown:
            return False
        self.lines_shown[user_id] = now
        return True

    def remember(
        self, chat_id: int, user_id: int, concerns: Collection[str]
    ) -> SaveConcerns:
        """Return the change that stores concerns, with the times at which they expire."""
        now = datetime.now(UTC)
        expiry: dict[str, datetime | None] = dict.fromkeys(concerns)
        for name in concerns & DURATIONS.keys():
            expiry[name] = now + DURATIONS[name]
        return SaveConcerns(chat_id, user_id, expiry)

    async def retract(
        self,
        chat_id: int,
        user_id: int,
        concerns: Collection[Concern] = RETRACTABLE_CONCERNS,
    ) -> SaveConcerns:
        """Return the change that lets the stored ones of these concerns expire now."""
        stored = await self._load_concerns(chat_id, user_id)
        retracted = stored & frozenset(concerns)
        expiry = dict.fromkeys(retracted, datetime.now(UTC))
        return SaveConcerns(chat_id, user_id, expiry)

    def forget(self, chat_id: int, user_id: int) -> ForgetConcerns:
        """Return the change that deletes a user's concerns in a chat, except the permanent ones."""
        return ForgetConcerns(user_id=user_id, chat_id=chat_id, kept=PERMANENT_CONCERNS)

    async def _load_concerns(self, chat_id: int, user_id: int) -> frozenset[str]:
        """Return the names of the stored concerns, or none if they cannot be read."""
        if self.memory is None or not chat_id:
            return frozenset()
        memory = self.memory

        async def read() -> frozenset[str]:
            return await memory.list_concerns(chat_id, user_id)

        problem = f"The concerns of chat {chat_id} could not be read"
        return await call_or_default(read, frozenset(), problem)


def _facts_for_group(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that may be used where other people read the answer."""
    return [fact for fact in facts if fact.kind in SHOWN_IN_GROUPS]


async def _with_cellar(person: Person, memory: MemoryRepository) -> Person:
    """Return a person with their bottles, and with those that they have opened."""
    bottles = await memory.list_bottles(person.user_id)
    if not bottles:
        # Only the tools of a cellar, which one without bottles does not need, read drinks.
        return person
    drinks = await memory.list_drinks(person.user_id)
    return replace(person, bottles=tuple(bottles), drinks=tuple(drinks))


def _with_facts(state: SafetyState, facts: Sequence[Fact]) -> SafetyState:
    """Return a state with the allergies and the age that a user has stated for good."""
    names = {fact.value for fact in facts if fact.kind == "allergy"}
    if Fact("setting", UNDER_AGE_SETTING) in facts:
        names.add("under_age")
    return state.with_stored_names(names)


def _store_new_allergies(person: Person) -> tuple[Change, ...]:
    """Return a change that stores the allergies of the message, or none if all are stored."""
    stored = {fact.value for fact in person.facts if fact.kind == "allergy"}
    new = person.safety.own_allergies - stored
    if not new or not person.user_id:
        return ()
    facts = [Fact("allergy", name) for name in sorted(new)]
    return (Change(user_id=person.user_id, added_facts=tuple(facts)),)
