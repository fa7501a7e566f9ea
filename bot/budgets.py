"""What people are told of the day's budgets, and where what they used is read."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.budget import (
    NO_BUDGET,
    UNLIMITED,
    WARN_AT,
    Allowance,
    BudgetLimit,
    DailyBudget,
    allowance_of,
    day_of,
)
from agent.outcome import BUDGET
from agent.ports import PeopleRepository, TurnRepository
from agent.sommelier import Reply
from agent.turn_records import Spent
from bot.outgoing import Outgoing

OWN: Final = "You have used up today's {what}."
SHARED: Final = "Today's budget for everyone is used up."
RESETS: Final = "It resets in {left}, at 00:00 UTC; until then I answer by simple rules."
WARNING: Final = (
    "You have used {share:.0f} % of today's {what}. It resets in {left}, at 00:00 UTC; when it is "
    "used up I answer by simple rules."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The budgets of a day: of each person but those who are `exempt`, and of everyone."""

    turns: TurnRepository
    people: PeopleRepository
    person: DailyBudget = NO_BUDGET
    everyone: DailyBudget = NO_BUDGET
    exempt: Collection[int] = ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def are_set(self) -> bool:
        """Whether anything is limited."""
        return self.person.is_set or self.everyone.is_set

    async def allowance(self, user_id: int) -> Allowance:
        """What a person's turn may use; it warns them once a day. Raises what the database does."""
        if user_id in self.exempt:
            return UNLIMITED
        now = self.now()
        today = day_of(now)
        allowance = allowance_of(
            self.person,
            self.everyone,
            by_person=await self._spent(self.person, today, user_id),
            by_everyone=await self._spent(self.everyone, today),
            now=now,
        )
        if allowance.warn and not await self.people.warned(user_id, today.date()):
            return replace(allowance, warn=None)
        return allowance

    async def _spent(
        self, budget: DailyBudget, since: datetime, user_id: int | None = None
    ) -> Spent:
        return await self.turns.spent(since, user_id) if budget.is_set else Spent()


def budget_note(allowance: Allowance, reply: Reply) -> str:
    """What a person is told below an answer; nothing if there is nothing to tell."""
    left = duration_text(allowance.resets_at - allowance.at)
    if BUDGET in reply.error_types:
        ended = allowance.after(Spent(reply.requests, reply.tokens, reply.cost_usd))
        said = SHARED if ended.is_shared else OWN.format(what=_what(ended.used_up))
        return f"_({said} {RESETS.format(left=left)})_"
    if allowance.warn is None:
        return ""
    return f"_({WARNING.format(share=WARN_AT * 100, what=_what(allowance.warn), left=left)})_"


def _what(limit: BudgetLimit | None) -> str:
    return "budget of questions" if limit == "requests" else "budget"


def duration_text(duration: timedelta) -> str:
    """A time of less than a day, as people say it: "5 h 20 min"; never less than a minute."""
    minutes = max(1, round(duration.total_seconds() / 60))
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""]
    return " ".join(filter(None, parts))


def with_note(messages: Sequence[Outgoing], note: str) -> list[Outgoing]:
    """The messages of an answer, with a note below the last."""
    *others, last = messages
    return [*others, replace(last, markdown=f"{last.markdown}\n\n{note}")] if note else [*messages]
