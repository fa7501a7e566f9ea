"""The changes of a turn: told below its answer, each to be undone by one press. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from agent.fallback import parse_query
from agent.i18n import translate
from agent.memory.taste import excluded, new_facts
from agent.memory.wording import cellar, learned, unlearned
from agent.turn import Change, Person, Reply, changed

MAX_READ: Final = 300
"""Characters of a message that is read for what it rules out."""


def with_change_notes(reply: Reply, person: Person, message: str, undo_id: int) -> Reply:
    """Return a reply that tells the changes of its turn, and what else might be remembered.

    Its changes are one, which can be undone under `undo_id` unless that is 0. What the message
    rules out is suggested as a fact where nobody suggested any.
    """
    if not person.user_id:
        return reply
    change = _merged(person.user_id, reply.changes)
    if change is not None:
        reply = replace(
            reply,
            changes=(replace(change, undo_id=undo_id),),
            notes=(*reply.notes, *told(change, person)),
        )
    else:
        reply = replace(reply, changes=())
    facts = reply.suggested_facts
    if not facts and reply.wines and len(message) <= MAX_READ:
        facts = tuple(excluded(parse_query(message)))
    known = (*person.facts, *(change.learned if change else ()))
    return replace(reply, suggested_facts=new_facts(facts, known))


def told(change: Change, person: Person) -> list[str]:
    """Return the sentences that confirm a change; those about bottles say how many there are."""
    after, keys = changed(person, change), {item.key for item in change.bottles}
    bottles = [item for item in after.bottles if item.key in keys]
    year = datetime.now(UTC).year
    parts = (
        learned(change.learned),
        unlearned(change.unlearned),
        cellar(bottles, year, translate("cellar_added")) if bottles else "",
    )
    return [part for part in parts if part]


def _merged(user_id: int, changes: Iterable[Change]) -> Change | None:
    """Return the changes of a turn as one; None if nothing is changed."""
    made = [one for one in changes if one.learned or one.unlearned or one.bottles]
    if not made:
        return None
    return Change(
        user_id=user_id,
        learned=tuple(fact for change in made for fact in change.learned),
        unlearned=tuple(fact for change in made for fact in change.unlearned),
        bottles=tuple(item for change in made for item in change.bottles),
    )
