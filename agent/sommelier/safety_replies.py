"""Make the replies that safety decides on, and add lines about safety to other replies."""

from dataclasses import replace

from agent.safety.help_texts import Help
from agent.safety.policy import SafetyAction
from agent.safety.state import SERIOUS_CONCERNS, SafetyState
from agent.turn import Reply


def safety_reply(
    action: SafetyAction,
    safety: SafetyState,
    texts: Help,
) -> Reply:
    """Return the reply for any action except ANSWER. The reply needs no model and shows no wine."""
    writers = {
        SafetyAction.CRISIS_HELP: texts.write_crisis_help,
        SafetyAction.NUMBERS: texts.write_numbers,
        SafetyAction.QUESTION: texts.write_dependence_question,
        SafetyAction.DEPENDENCE_HELP: texts.write_dependence_help,
        SafetyAction.NO_DRINKS: texts.get_promise,
        SafetyAction.REFUSAL: texts.write_notice,
    }
    write_text = writers[action]
    return Reply(
        text=write_text(safety),
        outcome="help",
        concerns=safety.turn_concerns,
        stored_concerns=safety.turn_concerns - safety.earlier_concerns,
        safety_action=action,
    )


def add_line(
    reply: Reply,
    safety: SafetyState,
    texts: Help,
) -> Reply:
    """Return a reply with a line about help, if one is due.

    The line is due after a crisis, and if the message of the user may state a concern.
    """
    if reply.safety_action is not SafetyAction.ANSWER:
        return reply
    if safety.is_after_crisis:
        notes = (*reply.notes, texts.get_glad_line(safety))
        return replace(reply, notes=notes, offers_numbers=True)
    if not safety.likely_concerns:
        return reply
    notes = (*reply.notes, texts.get_likely_line(safety))
    may_be_serious = not safety.likely_concerns.isdisjoint(SERIOUS_CONCERNS)
    return replace(reply, notes=notes, offers_numbers=may_be_serious)
