"""Merge the changes that tools make to a user's stored data, and write their confirmations."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from agent.cellar.rows import format_drunk, format_items, this_year
from agent.engine.tools import ToolOutput
from agent.i18n import current_language, translate
from agent.memory.taste import (
    find_excluded_facts,
    find_new_facts,
    find_stated_likes,
    format_added_facts,
    format_removed_facts,
    keep_latest_facts,
)
from agent.query_reading.request import read_request
from agent.sommelier.cards import asks_for_vegan
from agent.sommelier.vocabulary import Allergen
from agent.turn import CellarItem, Change, Drink, Fact, Person, Reply, apply_change

CHANGE_NOTE: Final = (
    "a fixed notice of this is shown below your answer; do not repeat it"
)
MAX_PARSED_CHARS: Final = 300
"""The longest message that is searched for tastes, which are suggested as facts."""


def change_output(action: str, person: Person, **changes: Any) -> ToolOutput:
    """Return the output of a tool that changes data of the user."""
    change = Change(user_id=person.user_id, **changes)
    content = {"done": action, "note": CHANGE_NOTE}
    return ToolOutput(content, effects=(change,))


def add_change_notes(
    reply: Reply,
    person: Person,
    message: str,
    undo_id: int,
) -> Reply:
    """Return the reply with its changes merged, described in notes, and with suggested facts.

    `undo_id` 0 means that the change cannot be undone. The tastes that `message` states are
    suggested, if the reply shows wines or accepts a dislike: a question states no taste.
    """
    if not person.user_id:
        return reply
    change = _merge(reply.changes, person.user_id, undo_id)
    suggested: tuple[Fact, ...] = ()
    if reply.wines or reply.accepts_dislike:
        known = (*person.facts, *change.added_facts)
        suggested = find_new_facts(_suggest_facts(message), known)
    reply = replace(reply, changes=(), suggested_facts=suggested)
    # A drink always comes with a change of bottles.
    is_empty = not (change.added_facts or change.removed_facts or change.bottles)
    if is_empty:
        return reply
    notes = (*reply.notes, *format_change(change, person))
    return replace(reply, changes=(change,), notes=notes)


def _merge(
    changes: Iterable[Change],
    user_id: int,
    undo_id: int,
) -> Change:
    """Return one change for several. Of several statements about a taste, the last one counts."""
    added: list[Fact] = []
    removed: list[Fact] = []
    bottles: list[CellarItem] = []
    drinks: list[Drink] = []
    for change in changes:
        added += change.added_facts
        removed += change.removed_facts
        bottles += change.bottles
        drinks += change.drinks
    return Change(
        user_id=user_id,
        added_facts=keep_latest_facts(added),
        removed_facts=tuple(removed),
        bottles=tuple(bottles),
        drinks=tuple(drinks),
        undo_id=undo_id,
    )


def _suggest_facts(message: str) -> list[Fact]:
    """Return the tastes of a message that could be stored. Asking for vegan is no allergy."""
    if len(message) > MAX_PARSED_CHARS:
        return []
    is_vegan = asks_for_vegan(message)
    allergies = read_request(message, current_language()).allergies
    facts = []
    for fact in find_excluded_facts(message):
        # "Wine without sulphites?" asks for none added, and states no allergy.
        is_sulphites = fact.value == Allergen.SULPHITES
        is_wish = is_sulphites and fact.value not in allergies
        if fact.kind == "allergy" and (is_vegan or is_wish):
            continue
        facts.append(fact)
    facts += find_stated_likes(message)
    return facts


def format_change(change: Change, person: Person) -> list[str]:
    """Return the texts that confirm a change. `person` is the user before the change."""
    changed_keys = {item.key for item in change.bottles}
    cellar = apply_change(person, change).bottles
    items = [item for item in cellar if item.key in changed_keys]
    left = [item for item in items if item.count]
    gone = [item for item in items if not item.count]
    texts = [
        format_added_facts(change.added_facts),
        format_removed_facts(change.removed_facts),
        format_drunk(change.drinks, cellar),
    ]
    if left:
        texts.append(format_items(left, this_year(), translate("cellar_added")))
    if gone:
        texts.append(format_items(gone, this_year(), translate("cellar_taken_out")))
    return list(filter(None, texts))
