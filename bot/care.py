"""Detect the concerns of a user in a message, and store them for a limited time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from agent.care import RETRACTABLE_CONCERNS, Help, SafetyState, read_safety_state
from agent.engine.run import Run, Span
from agent.turn import UNDER_AGE_SETTING, Change, Fact, Person, Reply, ReplyFunction
from db.engine import call_or_default
from db.repositories.people import MemoryRepository

PERMANENT_CONCERNS: Final = frozenset({"under_age", "dependence"})
"""The concerns that /new does not delete."""
DURATIONS: Final[Mapping[str, timedelta]] = {
    "crisis": timedelta(days=1),
    "driving": timedelta(hours=12),
    "medication": timedelta(days=14),
    "pregnancy": timedelta(days=280),
    "under_age": timedelta(days=365),
}
"""How long a concern is stored, unless /new deletes it; any other has no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyService:
    """Detects the concerns and allergies of users; stores the concerns if it has a `memory`."""

    help: Help = field(default_factory=Help)
    memory: MemoryRepository | None = None

    async def find_state(self, text: str, chat_id: int, user_id: int, span: Span) -> SafetyState:
        """Return the safety state after a message, with earlier concerns; store new concerns."""
        state = read_safety_state(text, self.help.drinking_age)
        state = state.with_stored_names(await self._stored_concerns(chat_id, user_id))
        if state.concerns or state.allergies:
            with span.child("guard.care", "guardrail", input=text) as guard:
                guard.update(output=sorted(state.concerns | state.allergies))
        await self.remember(chat_id, user_id, state.turn_concerns - state.earlier_concerns)
        return state

    async def find_state_in_any_chat(self, text: str, user_id: int) -> SafetyState:
        """Return the safety state after a text, with the concerns of all chats; store nothing."""
        concerns = await self.memory.list_concerns(None, user_id) if self.memory else frozenset()
        return read_safety_state(text, self.help.drinking_age).with_stored_names(concerns)

    async def read_person(
        self, chat_id: int, user_id: int, state: SafetyState, facts: Sequence[Fact] | None = None
    ) -> Person:
        """Return a user with their facts and, in their private chat, their cellar.

        If these cannot be read, return a user with only the safety state. `facts` are those that
        have been read before; None if they have not.
        """
        memory = self.memory
        if memory is None or not user_id:
            return Person(state)

        async def read() -> Person:
            all_facts = await memory.list_facts(user_id) if facts is None else facts
            bottles = await memory.list_bottles(user_id) if chat_id == user_id else ()
            names = {fact.value for fact in all_facts if fact.kind == "allergy"}
            if Fact("setting", UNDER_AGE_SETTING) in all_facts:
                names.add("under_age")
            return Person(state.with_stored_names(names), tuple(all_facts), tuple(bottles), user_id)

        return await call_or_default(read, Person(state), "The memory of a user could not be read")

    def guard(
        self, person: Person, make_reply: ReplyFunction, *, is_look_up: bool = False
    ) -> ReplyFunction:
        """Return a function that makes the reply of a turn according to the safety rules.

        In a crisis it returns help, without asking a model. If a concern forbids look-ups, it
        refuses one; with any other new concern, it adds a note to the look-up's reply. Otherwise it
        calls `make_reply`. Allergies that the message states are stored with the turn.
        """
        state = person.safety
        is_refused = is_look_up and state.forbids_look_ups
        needs_note = is_look_up and state.new_concern and not is_refused
        stored = {fact.value for fact in person.facts if fact.kind == "allergy"}
        allergies = sorted(state.own_allergies - stored) if person.user_id else ()
        facts = tuple(Fact("allergy", name) for name in allergies)
        change = Change(user_id=person.user_id, added_facts=facts)

        async def make_safe_reply(run: Run) -> Reply:
            if state.is_crisis or is_refused:
                write = self.help.crisis_help if state.is_crisis else self.help.notice_for
                return Reply(text=write(state), outcome="care", concerns=state.turn_concerns)
            reply = await make_reply(run)
            notes = (self.help.notice_for(state), *reply.notes) if needs_note else reply.notes
            changes = (*reply.changes, change) if facts else reply.changes
            return replace(reply, notes=notes, changes=changes)

        return make_safe_reply

    async def remember(self, chat_id: int, user_id: int, concerns: Collection[str]) -> None:
        """Store concerns of a user in a chat, with the times at which they expire."""
        now = datetime.now(UTC)
        expiry = {name: now + DURATIONS[name] if name in DURATIONS else None for name in concerns}
        await self._save(chat_id, user_id, expiry)

    async def retract(self, chat_id: int, user_id: int) -> None:
        """Let the concerns that a user may retract expire now."""
        concerns = RETRACTABLE_CONCERNS & await self._stored_concerns(chat_id, user_id)
        await self._save(chat_id, user_id, dict.fromkeys(concerns, datetime.now(UTC)))

    async def forget(self, chat_id: int) -> None:
        """Delete the concerns of a chat, except the permanent ones."""
        if self.memory is not None:
            await self.memory.forget_concerns(chat_id, but=PERMANENT_CONCERNS)

    async def _stored_concerns(self, chat_id: int, user_id: int) -> frozenset[str]:
        if self.memory is None or not chat_id:
            return frozenset()
        read = partial(self.memory.list_concerns, chat_id, user_id)
        problem = f"The concerns of chat {chat_id} could not be read"
        return await call_or_default(read, frozenset(), problem)

    async def _save(
        self, chat_id: int, user_id: int, expiry: Mapping[str, datetime | None]
    ) -> None:
        if self.memory is not None and chat_id and expiry:
            save = partial(self.memory.save_concerns, chat_id, user_id, expiry)
            await call_or_default(save, None, f"The concerns of chat {chat_id} could not be stored")
