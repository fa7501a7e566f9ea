"""Changes of a user's stored data: as tools return them, and as the texts that confirm them."""

from dataclasses import replace
from typing import Any, Final

from agent.cellar.rows import (
    format_drunk,
    format_items,
    this_year,
)
from agent.engine.tools import ToolOutput
from agent.i18n import translate
from agent.memory.taste import (
    find_excluded_facts,
    find_new_facts,
    format_added_facts,
    format_removed_facts,
)
from agent.sommelier.cards import asks_for_vegan
from agent.turn import (
    Change,
    Fact,
    Person,
    Reply,
    apply_change,
)

CHANGE_NOTE: Final = (
    "a fixed notice of this is shown below your answer; do not repeat it"
)
MAX_PARSED_CHARS: Final = 300
"""Longer messages are not searched for dislikes that could be suggested as facts."""


def change_output(action: str, person: Person, **changes: Any) -> ToolOutput:
    """Return an output with a change as its effect."""
    change = Change(user_id=person.user_id, **changes)
    content = {"done": action, "note": CHANGE_NOTE}
    return ToolOutput(content, effects=(change,))


def with_change_notes(
    reply: Reply, person: Person, message: str, undo_id: int
) -> Reply:
    """Return the reply with its changes merged, described in notes, and with suggested facts.

    `undo_id` 0 means that the change cannot be undone. The dislikes in `message` are suggested.
    """
    if not person.user_id:
        return reply
    change = Change(
        user_id=person.user_id,
        added_facts=tuple(fact for part in reply.changes for fact in part.added_facts),
        removed_facts=tuple(
            fact for part in reply.changes for fact in part.removed_facts
        ),
        bottles=tuple(item for part in reply.changes for item in part.bottles),
        drinks=tuple(drink for part in reply.changes for drink in part.drinks),
        undo_id=undo_id,
    )
    has_changes = bool(change.added_facts or change.removed_facts or change.bottles)
    facts = _suggest_facts(message) if reply.wines else ()
    if not (has_changes or facts):
        return replace(reply, changes=())
    return replace(
        reply,
        changes=(change,) if has_changes else (),
        notes=(*reply.notes, *format_change(change, person)),
        suggested_facts=find_new_facts(facts, (*person.facts, *change.added_facts)),
    )


def _suggest_facts(message: str) -> tuple[Fact, ...]:
    """Return the dislikes of a message that could be stored: who asks for vegan has no allergy."""
    if len(message) > MAX_PARSED_CHARS:
        return ()
    facts = tuple(find_excluded_facts(message))
    if asks_for_vegan(message):
        return tuple(fact for fact in facts if fact.kind != "allergy")
    return facts


def format_change(change: Change, person: Person) -> list[str]:
    """Return the texts that confirm a change; `person` is the user before it."""
    changed_keys = {item.key for item in change.bottles}
    cellar = apply_change(person, change).bottles
    items = [item for item in cellar if item.key in changed_keys]
    texts = (
        format_added_facts(change.added_facts),
        format_removed_facts(change.removed_facts),
        format_drunk(change.drinks, cellar),
        format_items(items, this_year(), translate("cellar_added")) if items else "",
    )
    return [text for text in texts if text]
