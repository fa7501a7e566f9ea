"""Tell users when a budget is used up, and when it is not any more."""

from datetime import datetime, timedelta

from agent.engine.run import BilledUsage
from agent.formatting import format_duration
from agent.i18n import translate
from db.budgets import RemainingBudget, midnight


def build_notes(
    budget: RemainingBudget, spent: BilledUsage, now: datetime, *, lacked_budget: bool
) -> tuple[str, ...]:
    """Return the notes below the answer of a turn that began with `budget` and used `spent`.

    `lacked_budget`: the answer comes from rules because a budget was used up.
    """
    if spent.requests >= budget.requests:
        message = "own_questions_used_up"
    elif lacked_budget:
        message = "shared_budget_used_up"
    else:
        return ()
    minutes = (midnight(now) + timedelta(days=1) - now) // timedelta(minutes=1)
    resets = translate("budget_resets", left=format_duration(minutes))
    return (f"{translate(message)} {resets}",)
