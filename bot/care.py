"""Find the concerns of a person in a message, and remember them for as long as they hold."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from agent.care.concerns import RETRACTABLE, Care, read_care
from agent.care.help import Help
from agent.engine.run import Run
from agent.engine.span import Span
from agent.turn import SHARED, UNDER_AGE, Change, Fact, Person, Reply, Work
from bot.retries import call_or_default
from db.repositories.people import CareRepository, MemoryRepository

LASTING: Final = frozenset({"under_age", "dependence"})
"""The concerns that /new does not forget."""
HOLDS: Final[Mapping[str, timedelta]] = {
    "crisis": timedelta(days=1),
    "driving": timedelta(hours=12),
    "medication": timedelta(days=14),
    "pregnancy": timedelta(days=280),
    "under_age": timedelta(days=365),
}
"""How long a concern holds unless /new forgets it before; one that is not here holds for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyService:
    """Find what care a person needs, and remember it by chat and person, if there is a place."""

    help: Help = field(default_factory=Help)
    cares: CareRepository | None = None
    memory: MemoryRepository | None = None

    async def care_for(self, text: str, chat_id: int, user_id: int, span: Span) -> Care:
        """Return the care that a message and earlier ones ask for; remember what is new."""
        stated = read_care(text, self.help.full_age)
        care = stated.with_remembered(await self._held(chat_id, user_id))
        if found := care.concerns | care.allergies:
            with span.child("guard.care", "guardrail") as guard:
                guard.update(output=sorted(found))
        if new := stated.stated - care.remembered:
            await self.keep(chat_id, user_id, new)
        return care

    async def care_of_person(self, text: str, user_id: int) -> Care:
        """Return the care that a short text and any chat of a person ask for; remember nothing.

        Raises:
            Exception: the remembered concerns cannot be read.
        """
        held = await self.cares.current(None, user_id) if self.cares else frozenset()
        return read_care(text, self.help.full_age).with_remembered(held)

    async def person(
        self, chat_id: int, user_id: int, care: Care, facts: Sequence[Fact] | None = None
    ) -> Person:
        """Return what is known of a user, or their care alone if the memory cannot be read.

        `facts` are those of the user if they were read before. In a group, only a user who shares
        their cellar there has one.
        """
        memory = self.memory
        if memory is None or not user_id:
            return Person(care)

        async def read() -> Person:
            known = await memory.facts(user_id) if facts is None else facts
            is_shown = chat_id == user_id or Fact("setting", SHARED.format(chat_id)) in known
            bottles = await memory.bottles(user_id) if is_shown else ()
            held = {fact.value for fact in known if fact.kind == "allergy"}
            held |= {"under_age"} if Fact("setting", UNDER_AGE) in known else set()
            return Person(care.with_remembered(held), tuple(known), tuple(bottles), user_id)

        return await call_or_default(read, Person(care), "The memory of a user could not be read")

    def work(self, person: Person, work: Work, *, is_look_up: bool = False) -> Work:
        """Return the work of a turn: in a crisis it is help alone, without a model.

        Nothing is looked up for a person who must not drink; one who had better not is told so
        beside the result. An allergy that they state is remembered with the turn.
        """
        care, beside = person.care, self.help.beside(person.care) if is_look_up else ""
        said = self.help.instead(care) if is_look_up or care.is_crisis else ""

        async def careful(run: Run) -> Reply:
            if said:
                return Reply(text=said, outcome="care", concerns=care.stated)
            reply = await work(run)
            notes = tuple(filter(None, (beside, *reply.notes)))
            changes = (*reply.changes, *_stated_allergies(person))
            return replace(reply, notes=notes, changes=changes)

        return careful

    async def keep(self, chat_id: int, user_id: int, concerns: Collection[str]) -> None:
        """Remember concerns of a person in a chat, each for as long as it holds."""
        now = datetime.now(UTC)
        until = {name: now + HOLDS[name] if name in HOLDS else None for name in concerns}
        await self._keep(chat_id, user_id, until)

    async def retract(self, chat_id: int, user_id: int) -> None:
        """Let the concerns end that were misunderstood; age and dependence are not taken back."""
        held = RETRACTABLE & await self._held(chat_id, user_id)
        await self._keep(chat_id, user_id, dict.fromkeys(held, datetime.now(UTC)))

    async def forget(self, chat_id: int) -> None:
        """Forget the concerns of a chat, save those that last."""
        if self.cares is not None:
            await self.cares.forget(chat_id, but=LASTING)

    async def _held(self, chat_id: int, user_id: int) -> frozenset[str]:
        if self.cares is None or not chat_id:
            return frozenset()
        read = partial(self.cares.current, chat_id, user_id)
        return await call_or_default(
            read, frozenset(), f"The care of chat {chat_id} could not be read"
        )

    async def _keep(self, chat_id: int, user_id: int, until: Mapping[str, datetime | None]) -> None:
        if self.cares is not None and chat_id and until:
            keep = partial(self.cares.save, chat_id, user_id, until)
            await call_or_default(keep, None, f"The care of chat {chat_id} could not be kept")


def _stated_allergies(person: Person) -> tuple[Change, ...]:
    """Return the change that remembers the allergies a person states in this turn, if any."""
    known = {fact.value for fact in person.facts if fact.kind == "allergy"}
    new = sorted(person.care.own_allergies - known)
    if not (person.user_id and new):
        return ()
    return (Change(user_id=person.user_id, learned=tuple(Fact("allergy", name) for name in new)),)
