"""Make the replies of safety, and add its lines to others."""

from dataclasses import replace

from agent.safety.help_texts import Help
from agent.safety.policy import SafetyAction
from agent.safety.state import SERIOUS_CONCERNS, SafetyState
from agent.turn import Reply


def safety_reply(action: SafetyAction, safety: SafetyState, texts: Help) -> Reply:
    """Return the reply of any action but ANSWER; it needs no model and shows no wine."""
    write = {
        SafetyAction.CRISIS_HELP: texts.crisis_help,
        SafetyAction.NUMBERS: texts.numbers,
        SafetyAction.QUESTION: texts.dependence_question,
        SafetyAction.REFUSAL: texts.notice_for,
    }[action]
    return Reply(
        text=write(safety),
        outcome="help",
        concerns=safety.turn_concerns,
        stored_concerns=safety.turn_concerns - safety.earlier_concerns,
        safety_action=action,
    )


def add_line(reply: Reply, safety: SafetyState, texts: Help) -> Reply:
    """Add a line to an answer after a crisis, or to a message that may state a concern."""
    if reply.safety_action is not SafetyAction.ANSWER:
        return reply
    if safety.is_after_crisis:
        return replace(
            reply, notes=(*reply.notes, texts.glad_line(safety)), offers_numbers=True
        )
    if not safety.likely_concerns:
        return reply
    notes = (*reply.notes, texts.likely_line(safety))
    return replace(
        reply,
        notes=notes,
        offers_numbers=bool(safety.likely_concerns & SERIOUS_CONCERNS),
    )
