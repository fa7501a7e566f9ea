"""Tell users that a budget is used up, and when they have a new one."""

from datetime import datetime, timedelta

from agent.engine.run import BilledUsage
from agent.formatting import format_duration
from agent.i18n import translate
from db.budgets import RemainingBudget, midnight


def build_notes(
    budget: RemainingBudget,
    spent: BilledUsage,
    now: datetime,
    *,
    lacked_budget: bool,
) -> tuple[str, ...]:
    """Return the notes below the answer of a turn that began with `budget` and used `spent`.

    If `lacked_budget`, rules gave the answer because a budget was used up.
    """
    if spent.requests >= budget.requests:
        sentence = translate("own_questions_used_up")
    elif lacked_budget:
        sentence = translate("shared_budget_used_up")
    else:
        return ()
    next_midnight = midnight(now) + timedelta(days=1)
    minutes_left = (next_midnight - now) // timedelta(minutes=1)
    resets = translate("budget_resets", left=format_duration(minutes_left))
    return (f"{sentence} {resets}",)
