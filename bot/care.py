"""Find the concerns of a person in a message, and remember them for as long as they hold."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from agent.care import RETRACTABLE, Help, SafetyState, read_safety_state
from agent.engine.run import Run, Span
from agent.turn import UNDER_AGE, AnswerFunction, Change, Fact, Person, Reply
from db.engine import call_or_default
from db.repositories.people import MemoryRepository

LASTING: Final = frozenset({"under_age", "dependence"})
"""The concerns that /new does not forget."""
DURATIONS: Final[Mapping[str, timedelta]] = {
    "crisis": timedelta(days=1),
    "driving": timedelta(hours=12),
    "medication": timedelta(days=14),
    "pregnancy": timedelta(days=280),
    "under_age": timedelta(days=365),
}
"""The time for which a concern is remembered, unless /new forgets it; others have no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyService:
    """Finds the concerns and allergies of a person; stores the concerns if it has a repository."""

    help: Help = field(default_factory=Help)
    memory: MemoryRepository | None = None

    async def find_state(self, text: str, chat_id: int, user_id: int, span: Span) -> SafetyState:
        """Return the concerns and allergies of a message and of earlier ones; store new ones."""
        stated = read_safety_state(text, self.help.drinking_age)
        state = stated.with_remembered(await self._remembered(chat_id, user_id))
        if found := state.concerns | state.allergies:
            with span.child("guard.care", "guardrail") as guard:
                guard.update(output=sorted(found))
        await self.remember(chat_id, user_id, stated.stated - state.remembered)
        return state

    async def find_state_in_any_chat(self, text: str, user_id: int) -> SafetyState:
        """Return the concerns of a short text and of all chats of a person; store nothing."""
        held = await self.memory.concerns(None, user_id) if self.memory else frozenset()
        return read_safety_state(text, self.help.drinking_age).with_remembered(held)

    async def read_person(
        self, chat_id: int, user_id: int, state: SafetyState, facts: Sequence[Fact] | None = None
    ) -> Person:
        """Return a user with their facts, and in their private chat their bottles.

        Return them with `state` alone if these cannot be read. `facts` were read before, or not.
        """
        memory = self.memory
        if memory is None or not user_id:
            return Person(state)

        async def read() -> Person:
            known = await memory.facts(user_id) if facts is None else facts
            bottles = await memory.bottles(user_id) if chat_id == user_id else ()
            held = {fact.value for fact in known if fact.kind == "allergy"}
            held |= {"under_age"} if Fact("setting", UNDER_AGE) in known else set()
            return Person(state.with_remembered(held), tuple(known), tuple(bottles), user_id)

        return await call_or_default(read, Person(state), "The memory of a user could not be read")

    def guard(
        self, person: Person, work: AnswerFunction, *, is_look_up: bool = False
    ) -> AnswerFunction:
        """Return the work of a turn, or help in its place, without a model, in a crisis.

        A look-up is refused to a person who must not drink, and has a note for one who should
        better not. Allergies that the person states are stored with the turn.
        """
        state = person.safety
        is_refused = is_look_up and state.forbids_look_ups
        is_noted = is_look_up and state.new_concern and not is_refused
        known = {fact.value for fact in person.facts if fact.kind == "allergy"}
        allergies = sorted(state.own_allergies - known) if person.user_id else ()
        facts = tuple(Fact("allergy", name) for name in allergies)
        change = Change(user_id=person.user_id, added_facts=facts)

        async def guarded_work(run: Run) -> Reply:
            if state.is_crisis or is_refused:
                write = self.help.crisis_help if state.is_crisis else self.help.notice_for
                return Reply(text=write(state), outcome="care", concerns=state.stated)
            reply = await work(run)
            notes = (self.help.notice_for(state), *reply.notes) if is_noted else reply.notes
            changes = (*reply.changes, change) if facts else reply.changes
            return replace(reply, notes=notes, changes=changes)

        return guarded_work

    async def remember(self, chat_id: int, user_id: int, concerns: Collection[str]) -> None:
        """Store concerns of a person in a chat, with the times at which they end."""
        now = datetime.now(UTC)
        until = {name: now + DURATIONS[name] if name in DURATIONS else None for name in concerns}
        await self._save(chat_id, user_id, until)

    async def retract(self, chat_id: int, user_id: int) -> None:
        """End the concerns that a user may retract, all but age and dependence."""
        held = RETRACTABLE & await self._remembered(chat_id, user_id)
        await self._save(chat_id, user_id, dict.fromkeys(held, datetime.now(UTC)))

    async def forget(self, chat_id: int) -> None:
        """Forget the concerns of a chat, except the lasting ones."""
        if self.memory is not None:
            await self.memory.forget_concerns(chat_id, but=LASTING)

    async def _remembered(self, chat_id: int, user_id: int) -> frozenset[str]:
        if self.memory is None or not chat_id:
            return frozenset()
        read = partial(self.memory.concerns, chat_id, user_id)
        problem = f"The concerns of chat {chat_id} could not be read"
        return await call_or_default(read, frozenset(), problem)

    async def _save(self, chat_id: int, user_id: int, until: Mapping[str, datetime | None]) -> None:
        if self.memory is not None and chat_id and until:
            save = partial(self.memory.save_concerns, chat_id, user_id, until)
            await call_or_default(save, None, f"The concerns of chat {chat_id} could not be stored")
