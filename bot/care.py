"""What is known of who asks: told in this message, or before in this chat and remembered."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from agent import lengths
from agent.care import FULL_AGE, Care, care_of
from agent.care_help import Help
from agent.engine.errors import or_else
from agent.engine.run import Run
from agent.engine.span import Span
from agent.repositories import CareRepository
from agent.text import LANGUAGES, run_in_thread_if_large
from agent.turn import Reply, Work

LASTING: Final = frozenset(
    {"under_age", "dependence", "sulphites", "egg", "milk", "fish", "grapes"}
)
"""What /new does not forget."""
HOLDS: Final[Mapping[str, timedelta]] = {
    "crisis": timedelta(days=1),
    "driving": timedelta(hours=12),
    "medication": timedelta(days=14),
    "health": timedelta(days=90),
    "pregnancy": timedelta(days=280),
    "under_age": timedelta(days=365),
}
"""How long something holds unless /new forgets it before; what is not here holds for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carer:
    """Tells what care a person needs, and remembers it per chat and person, if it is kept."""

    help: Help = field(default_factory=Help)
    cares: CareRepository | None = None

    async def care_for(self, text: str, chat_id: int, user_id: int, span: Span) -> Care:
        """Read what a message tells of who writes, and what they told before; keep what is new."""
        told = await heard(text, self.help.full_age)
        held = await self._held(chat_id, user_id)
        if lifted := told.retracted & held:
            await self._keep(chat_id, user_id, dict.fromkeys(lifted, datetime.now(UTC)))
        care = replace(told.holding(held), in_group=chat_id < 0)
        if told_now := care.all | care.allergies | care.reactions:
            with span.child("guard.care", "guardrail") as guard:
                guard.update(output=sorted(told_now))
        if new := told.kept - care.held:
            await self.keep(chat_id, user_id, new)
        return care

    async def care_of_person(self, text: str, user_id: int) -> Care:
        """Read what a short text tells and what a person told in any chat; keep nothing.

        Raises:
            Exception: what is kept cannot be read.
        """
        held = await self.cares.held(None, user_id) if self.cares else frozenset()
        return (await heard(text, self.help.full_age)).holding(held)

    async def forget(self, chat_id: int) -> None:
        """Forget what was told in a chat, but what lasts."""
        if self.cares is not None:
            await self.cares.forget(chat_id, but=LASTING)

    def work(self, care: Care, work: Work, *, is_look_up: bool = False) -> Work:
        """Return the work of a turn: in a crisis help is all that is said, without a model.

        So it is to who tells in Portuguese why they must not drink. Nothing is looked up for who
        must not drink, and who had better not is told so beside it; where that may be meant and may
        not, the answer stands and is followed by a question.
        """
        in_crisis = self.help.in_crisis(care) if care.is_crisis else ""
        # Where the house sommelier has no words, what it would say is said here.
        is_ours = bool(care.news) and care.language not in ("", *LANGUAGES)
        said = self.help.instead(care) if is_look_up or is_ours else in_crisis
        beside = self.help.beside(care) if is_look_up else ""
        perhaps = self.help.perhaps(care) if care.doubt else ""

        async def careful(run: Run) -> Reply:
            if said:
                return Reply(text=said, outcome="care")
            reply = await work(run)
            return replace(reply, notes=tuple(filter(None, (beside, *reply.notes, perhaps))))

        return careful if said or beside or perhaps else work

    async def _held(self, chat_id: int, user_id: int) -> frozenset[str]:
        if self.cares is None or not chat_id:
            return frozenset()
        read = partial(self.cares.held, chat_id, user_id)
        return await or_else(
            read, frozenset(), f"What was told in chat {chat_id} could not be read"
        )

    async def keep(self, chat_id: int, user_id: int, told: Collection[str]) -> None:
        """Remember what was told of a person, each as long as it holds."""
        if not chat_id:
            return
        now = datetime.now(UTC)
        until = {each: now + HOLDS[each] if each in HOLDS else None for each in told}
        await self._keep(chat_id, user_id, until)

    async def _keep(self, chat_id: int, user_id: int, until: Mapping[str, datetime | None]) -> None:
        if self.cares is not None:
            keep = partial(self.cares.keep, chat_id, user_id, until)
            await or_else(keep, None, f"What was told in chat {chat_id} could not be kept")


async def heard(text: str, full_age: int = FULL_AGE) -> Care:
    """Read what a message tells of who writes."""
    work = partial(care_of, text, full_age)
    return await run_in_thread_if_large(work, size=len(text), most=lengths.HEARD_ON_THE_LOOP)
