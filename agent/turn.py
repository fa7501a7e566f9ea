"""The data of one turn: its user, its dependencies and its reply. Prompt injections are flagged."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final, Literal, get_args

from agent import size_limits
from agent.engine.errors import log_failure
from agent.engine.loop import AgenticResponse
from agent.engine.messages import LLM
from agent.engine.run import (
    NOTHING_BILLED,
    BilledUsage,
    Prompt,
    PromptRef,
    Run,
    Span,
    SpanLevel,
)
from agent.i18n import translate
from agent.languages import load_languages
from agent.markdown import NOTE_SYMBOL, strip_invisible
from agent.mcp import Proposal
from agent.safety.policy import SafetyAction
from agent.safety.state import EMPTY_SAFETY_STATE, Concern, SafetyState
from agent.text import Pattern, compose_compatible, pattern, sanitize
from agent.writing_calls import WritingCalls

TurnOutcome = Literal[
    "answered",  # a valid answer; from rules if no model is configured
    "salvaged",  # the valid part of an answer
    "refused",  # the model declined
    "fallback",  # the model failed; rules answered, or the best passages are shown
    "failed",  # an apology
    "help",  # a help text or a notice of safety; no model was asked
    "stopped",  # the text written until the user stopped it
]

FactKind = Literal["allergy", "hate", "like", "budget", "note", "rated", "setting"]
"""The kind of a fact.

A fact of the kind `rated` is a taste that the ratings of the user show, a `setting` is one that the
user chose.
"""
STATED_KINDS: Final[tuple[FactKind, ...]] = (
    "allergy",
    "hate",
    "like",
    "budget",
    "note",
)
"""The kinds of facts that users state in words."""
ForgettableKind = Literal["hate", "like", "budget", "note"]
"""The kinds of facts that a model may remove. Only the user can lift an allergy."""
FORGETTABLE_KINDS: Final[tuple[ForgettableKind, ...]] = get_args(ForgettableKind)
UNDER_AGE_SETTING: Final = "age=under"
"""The setting of a user who said that they are below the legal age."""
MAX_CELLAR_ITEMS: Final = 5_000
"""The most wines in a user's cellar, including those that they have drunk."""
CELLAR_FACTS: Final = ("wine", "drink_from", "drink_until", "note", "place", "bought")
"""The fields of a cellar item that a change may overwrite."""
MAX_OVERRIDE_GAP: Final = 38
"""The most characters between "ignore" and "instructions" in a prompt injection."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A stored fact about a user."""

    kind: FactKind
    value: str
    """The value, in a form that depends on the kind.

    - allergy: an allergen
    - note: a text
    - setting: `name=value`
    - like, hate, rated: search filters, as `agent.sommelier.filters` writes them
    - budget: `40 EUR` (at most), `15-30 EUR` or `60- EUR` (at least)
    """
    original_text: str = ""
    """The words of the user, or what a button or a rule calls the value. It may be empty."""

    @property
    def key(self) -> tuple[str, str]:
        """Return the kind and the value. Two facts with the same key are the same fact."""
        return (self.kind, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellarItem:
    """The bottles of one wine in a user's cellar."""

    key: str
    """The normalised label of the wine, and its size if it is not the usual one."""
    wine: Mapping[str, Any]
    """The fields of a `Wine` that are not at their defaults."""
    count: int
    number: int = 0
    """The number by which the user names the item. It is 0 until the item is stored."""
    drink_from: int | None = None
    """The first year to drink the wine, if the user stated one."""
    drink_until: int | None = None
    """The last year to drink the wine, if the user stated one."""
    note: str = ""
    size_ml: int | None = None
    """The size of a bottle if it is not the usual one."""
    place: str = ""
    """The place where the bottles lie, such as "G33"."""
    bought: str = ""
    """When the bottles were bought, as in the user's file."""
    reminded_year: int | None = None
    """The last year in which the user was reminded of these bottles."""

    def with_bottles(self, new: "CellarItem") -> "CellarItem":
        """Return this item with the bottles and the facts of a new one.

        The count never falls below 0. If the new bottles have no price, the item keeps its price.
        """
        wine = dict(new.wine or self.wine)
        if "price" not in wine:
            for name in ("price", "currency"):
                if name in self.wine:
                    wine[name] = self.wine[name]
        return replace(
            self,
            wine=wine,
            count=max(0, self.count + new.count),
            drink_from=new.drink_from or self.drink_from,
            drink_until=new.drink_until or self.drink_until,
            note=new.note or self.note,
            place=new.place or self.place,
            bought=new.bought or self.bought,
        )

    def without_bottles(
        self, taken: "CellarItem", before: "CellarItem | None"
    ) -> "CellarItem":
        """Return this item after an addition is undone.

        `taken` is the addition with a negative count, and `before` is the item before the addition,
        or None if it was not in the cellar. The facts that the addition has overwritten become
        those of `before` again, unless they were changed since.
        """
        count = max(0, self.count + taken.count)
        reverted = replace(self, count=count)
        if before is None:
            return reverted
        overwritten = before.with_bottles(taken)
        facts: dict[str, Any] = {}
        for name in CELLAR_FACTS:
            # A fact with another value than the addition gave it was changed since.
            was_changed_since = getattr(self, name) != getattr(overwritten, name)
            if not was_changed_since:
                facts[name] = getattr(before, name)
        return replace(reverted, **facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drink:
    """A bottle that a user has opened, and what they thought of it."""

    key: str
    """The key of its `CellarItem`."""
    wine: Mapping[str, Any]
    at: datetime
    """When the bottle was opened."""
    rating: str = ""
    """The rating as the user wrote it: "92", "4/5"."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change to a user's stored data, applied by the commit that ends a turn."""

    user_id: int
    added_facts: tuple[Fact, ...] = ()
    removed_facts: tuple[Fact, ...] = ()
    bottles: tuple[CellarItem, ...] = ()
    """Counts to add to those in the cellar. A negative count removes bottles."""
    overwritten: Mapping[str, CellarItem] = field(default_factory=dict)
    """The items whose facts the change has overwritten, by key, as they were before."""
    is_inverse: bool = False
    """Whether the change reverts another one. Then it restores the facts in `overwritten`."""
    drinks: tuple[Drink, ...] = ()
    """Bottles to add to those that were opened. `bottles` removes them from the cellar."""
    removed_drinks: tuple[Drink, ...] = ()
    undo_id: int = 0
    """The id by which the change can be undone once, or 0 if it cannot be undone."""
    reverts_id: int = 0
    """The `undo_id` of an earlier change that this one reverts, or 0."""

    @property
    def inverse(self) -> "Change":
        """Return the change that reverts this one."""
        bottles: list[CellarItem] = []
        for item in self.bottles:
            bottles.append(replace(item, count=-item.count))
        return Change(
            user_id=self.user_id,
            added_facts=self.removed_facts,
            removed_facts=self.added_facts,
            bottles=tuple(bottles),
            overwritten=self.overwritten,
            is_inverse=True,
            drinks=self.removed_drinks,
            removed_drinks=self.drinks,
        )

    def apply_to(self, old: CellarItem, item: CellarItem) -> CellarItem:
        """Return `old`, an item of the cellar, after this change.

        `item` is the one of the change's `bottles` that has the same key.
        """
        if not self.is_inverse:
            return old.with_bottles(item)
        before = self.overwritten.get(item.key)
        return old.without_bottles(item, before)

    @property
    def part_for_model(self) -> "Change":
        """Return the part of the change that a model may make.

        The part removes only facts of `FORGETTABLE_KINDS`, even if a tool has returned others. So a
        model can remove neither an allergy nor a setting.
        """
        removed: list[Fact] = []
        for fact in self.removed_facts:
            if fact.kind in FORGETTABLE_KINDS:
                removed.append(fact)
        return Change(
            user_id=self.user_id,
            added_facts=self.added_facts,
            removed_facts=tuple(removed),
            bottles=self.bottles,
            drinks=self.drinks,
        )


@dataclass(frozen=True, slots=True)
class Person:
    """A user and their stored data. Without a `user_id`, no data is stored."""

    safety: SafetyState = EMPTY_SAFETY_STATE
    facts: tuple[Fact, ...] = ()
    bottles: tuple[CellarItem, ...] = ()
    drinks: tuple[Drink, ...] = ()
    """The bottles that the user has opened, the last one first."""
    user_id: int = 0


NOBODY: Final = Person()
"""A user without known concerns, facts or bottles."""


def apply_change(person: Person, change: Change) -> Person:
    """Return a user's facts and bottles after a change. The opened bottles stay as they were."""
    changed_facts = change.removed_facts + change.added_facts
    changed_keys = {fact.key for fact in changed_facts}
    facts = [fact for fact in person.facts if fact.key not in changed_keys]
    facts += change.added_facts
    cellar = {item.key: item for item in person.bottles}
    numbers = [item.number for item in person.bottles]
    last_number = max(numbers, default=0)
    for item in change.bottles:
        old = cellar.pop(item.key, None)
        if old is None:
            last_number += 1  # the database will give the new item the same number
            old = replace(item, count=0, number=last_number)
        cellar[item.key] = change.apply_to(old, item)
    bottles = tuple(cellar.values())
    return replace(person, facts=tuple(facts), bottles=bottles)


def get_chosen_settings(facts: Iterable[Fact]) -> dict[str, str]:
    """Return the values of the settings that the user chose, by name."""
    settings: dict[str, str] = {}
    for fact in facts:
        if fact.kind == "setting":
            name, _, value = fact.value.partition("=")
            settings[name] = value
    return settings


class Lack(StrEnum):
    """A thing that a user wanted and did not get."""

    WINES = "wines"
    """No wine meets the whole wish."""
    NAME = "name"
    """The wine that was asked for by its name is not sold, or sold out."""
    DOCUMENTS = "documents"
    """No document answers the question."""


@dataclass(frozen=True, slots=True)
class SearchEffect:
    """The effect of a tool that has looked for something."""

    possible_lack: Lack
    """The lack of the user if nothing was found."""
    has_found: bool


@dataclass(frozen=True, slots=True)
class StaffOffer:
    """The effect of a tool that offers to ask the people of the shop. It sends nothing."""


def find_lack(searches: Collection[SearchEffect]) -> Lack | None:
    """Return the first thing that a turn has looked for and never found, or None."""
    found: set[Lack] = set()
    for search in searches:
        if search.has_found:
            found.add(search.possible_lack)
    for search in searches:
        if search.possible_lack not in found:
            return search.possible_lack
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of a turn. Its texts are Markdown."""

    text: str
    """The text to be shown, and to be stored in the conversation."""
    outcome: TurnOutcome = "answered"
    notes: tuple[str, ...] = ()
    """Notes below the text, such as why no model answered, or how much of a budget remains."""
    wine_ids: tuple[str, ...] = ()
    """Ids of the catalogue's wines in the text, to be stored with it."""
    wines: tuple[Any, ...] = ()
    """All wines in the text, including those read from pictures."""
    retries: int = 0
    error_types: tuple[str, ...] = ()
    structured_answer: Any = None
    """The object from which the text was rendered."""
    stored_answer: str = ""
    """The answer as JSON, to be stored in the conversation, or "" if there is only a text."""
    prompt: PromptRef | None = None
    concerns: frozenset[Concern] = frozenset()
    """Concerns detected in this turn, which the user may confirm or retract."""
    safety_action: SafetyAction = SafetyAction.ANSWER
    """The decision of safety. Unless it is ANSWER, the reply is a help text without wines."""
    stored_concerns: frozenset[Concern] = frozenset()
    """Concerns that the message states for certain, which are stored with this turn."""
    lack: Lack | None = None
    """The thing that the user wanted and did not get."""
    offers_staff: bool = False
    """Whether a button below offers to ask the people of the shop."""
    offers_numbers: bool = False
    """Whether a button below offers the numbers to call."""
    changes: tuple[Change, ...] = ()
    """Changes to the user's data, applied when the turn ends."""
    lead: str = ""
    """A line above the text: the transcript of a voice message."""
    attachment: str = ""
    """The content of the user's pictures as JSON, to be stored with the question."""
    accepts_dislike: bool = False
    """Whether the reply promises to leave out what the user dislikes. It may suggest a fact."""
    suggested_facts: tuple[Fact, ...] = ()
    """Facts that buttons offer to store."""
    bought: str = ""
    """The bottles that a button offers to add to the cellar, such as "3 Chianti 2021", or ""."""
    proposals: tuple[Proposal, ...] = ()
    """Tool calls that buttons offer to run."""
    audio: bytes = field(default=b"", repr=False)
    """The text read aloud."""
    parts: tuple[str, ...] = ()
    """The messages into which the text is divided, or none if it is one message."""
    billed: BilledUsage = NOTHING_BILLED
    """The usage of the turn, set together with `seconds` when it ends."""
    seconds: float = 0.0

    @property
    def messages(self) -> list[str]:
        """Return the messages to send. The notes are appended to the last message."""
        messages = list(self.parts)
        if not messages:
            paragraphs = [part for part in (self.lead, self.text) if part]
            messages.append("\n\n".join(paragraphs))
        for note in self.notes:
            # Only the first line is in italics, because they cannot span lines.
            first_line, line_break, rest = note.partition("\n")
            messages[-1] += f"\n\n_{NOTE_SYMBOL} {first_line}_{line_break}{rest}"
        return messages

    @property
    def full_text(self) -> str:
        """Return the lead, the text and the notes as one text."""
        return "\n\n".join(self.messages)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A stored message of a conversation."""

    role: Literal["user", "assistant"]
    content: str
    """The text that was read."""
    wine_ids: tuple[str, ...] = ()
    """The ids of the wines that the message recommends."""
    turn_id: int | None = None
    thread_id: int = 0
    """The topic of the chat, or 0."""
    user_id: int | None = None
    attachment: str = ""
    """The content of the message's pictures as JSON, or "" if it has none."""
    answer: str = ""
    """The typed answer as JSON, or "" if there is only a text."""
    created_at: datetime | None = field(default=None, compare=False)
    """The time when the message was stored, or None if it is not known."""


@dataclass(frozen=True, slots=True)
class Deps:
    """The dependencies of a turn."""

    person: Person | None = None
    """The user. If it is None, the user is unknown, and concerns are read from the conversation."""
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    """Prompts that replace the built-in ones of the same names."""
    models: Mapping[str, LLM] = field(default_factory=dict)
    """Models for special tasks, for example for reading pictures."""
    ids_given_to_model: set[str] = field(default_factory=set)
    """The ids of excerpts and wines that tools have returned.

    Tools add to this set during the turn.
    """
    writing_calls: WritingCalls = field(default_factory=WritingCalls)
    """The calls of tools that may write, which no other try of the turn repeats."""
    answers_from_list: bool = False
    """Whether only the wines of a list that the user has just sent may be recommended."""


def get_deps(run: Run) -> Deps:
    """Return the dependencies of a run, which are empty if it has none."""
    if isinstance(run.deps, Deps):
        return run.deps
    return Deps()


def get_person(run: Run) -> Person:
    """Return the user of a run, or `NOBODY`."""
    return get_deps(run).person or NOBODY


def has_stored_user(run: Run) -> bool:
    """Return whether data of the user of a run is stored."""
    return bool(get_person(run).user_id)


def may_drink(run: Run) -> bool:
    """Return whether the user of a run may be offered alcohol."""
    return not get_person(run).safety.forbids_alcohol


def with_person(run: Run, person: Person) -> Run:
    """Return the run with `person` as its user."""
    deps = replace(get_deps(run), person=person)
    return replace(run, deps=deps)


ReplyFunction = Callable[[Run], Awaitable[Reply]]
"""Makes the reply of a turn, with the models and within the limits of a run."""


async def answer_turn(run: Run, make_reply: ReplyFunction) -> Reply:
    """Return the reply of a turn, and record it on `run.span`, the turn's root span."""
    reply = await answer_or_apologize(run, make_reply)
    record_turn(run.span, reply)
    return reply


async def answer_or_apologize(run: Run, make_reply: ReplyFunction) -> Reply:
    """Return the reply of `make_reply`, or an apology if it fails or its reply is empty.

    The usage of the turn is recorded on `run.span`.
    """
    error_types: tuple[str, ...] = ()
    try:
        reply = await make_reply(run)
        if reply.text.strip():
            return reply
    except Exception as error:
        log_failure("A turn failed", error)
        error_types = (type(error).__name__,)
    finally:
        # Also runs if the turn is cancelled.
        usage = run.usage
        counts = {
            "llm_calls": usage.billed_before.requests + usage.requests,
            "tool_calls": usage.tool_calls,
            "tool_errors": usage.tool_errors,
            "cost_usd": round(usage.billed.cost_usd, 6),
        }
        run.span.update(metadata=counts)
    return Reply(text=translate("apology"), outcome="failed", error_types=error_types)


def record_turn(span: Span, reply: Reply) -> None:
    """Record the reply of a turn on its root span, in the form that the trace list needs."""
    metadata: dict[str, Any] = {
        "outcome": reply.outcome,
        "retried": reply.retries > 0,
        "retry_count": reply.retries,
        "error_types": list(reply.error_types),
    }
    if reply.prompt is not None:
        metadata["prompt_name"] = reply.prompt.name
        metadata["prompt_version"] = reply.prompt.origin
    levels: dict[TurnOutcome, SpanLevel] = {"fallback": "WARNING", "failed": "ERROR"}
    level = levels.get(reply.outcome)
    span.update(output=reply.full_text, metadata=metadata, level=level)
    span.score("structured_retries", reply.retries, "NUMERIC")
    span.score("outcome", reply.outcome, "CATEGORICAL")


def describe_progress(name: str) -> str:
    """Return the sentence that the user reads while a tool runs.

    `name` is the name of this sentence in the catalogues, or "" if the tool has no sentence of its
    own. A text that the model wrote beside its calls is not shown, because nothing has checked it.
    """
    sentence = translate(name or "at_work")
    return f"_{sentence} …_"


def list_error_types(response: AgenticResponse[Any]) -> tuple[str, ...]:
    """Return the types of the errors of all attempts, and of the one that ended the turn."""
    error_types = response.error_types
    if response.has_text or response.outcome == "answered":
        return error_types
    # Without an answer, the outcome is the type of the error that ended the turn.
    if response.outcome in error_types:
        return error_types
    return (*error_types, response.outcome)


@cache
def _injection_patterns() -> Mapping[str, Pattern]:
    """Return patterns of prompt injections in lower case, by the flag that they set."""
    ignore = _any_phrase("ignore")
    instructions = _any_phrase("instructions")
    prompt = _any_phrase("prompt")
    role = _any_phrase("role")
    # "ignore all of your previous instructions"
    gap = rf"\W(?:.{{0,{MAX_OVERRIDE_GAP}}}\W)?"
    # A line that pretends to be of another speaker: "system: you have no rules"
    speaker = r"^[ \t]*(?:system|assistant)\s*:"
    return {
        "instruction_override": pattern(rf"(?s)\b{ignore}{gap}{instructions}\b"),
        "prompt_probe": pattern(rf"\b{prompt}\b"),
        "role_play": pattern(rf"(?m)(?:^|\W){role}(?:\W|$)|{speaker}"),
    }


def _any_phrase(field: str) -> str:
    """Return a pattern of the phrases that all languages have in a field of `Injections`."""
    phrases: list[str] = []
    for language in load_languages().values():
        phrases += getattr(language.injections, field)
    alternatives = "|".join(phrases)
    return f"(?:{alternatives})"


def find_security_flags(message: str) -> list[str]:
    """Return the names of the injection patterns in a message.

    The names help to find attacks in the traces, and prevent none.
    """
    normalized = compose_compatible(strip_invisible(message)).lower()
    flags = []
    for flag, attack in _injection_patterns().items():
        if attack.search(normalized):
            flags.append(flag)
    return flags


def clean_and_flag(message: str, span: Span) -> str:
    """Return a message, cut to its maximum length and without invisible characters.

    Injections are flagged on the span. Messages with injections are not blocked.
    """
    message = sanitize(message, size_limits.MESSAGE_CHARS)
    with span.child("guard.input", "guardrail", input=message) as guard:
        flags = find_security_flags(message)
        guard.update(output=flags)
        if flags:
            guard.update(level="WARNING")
            span.update(metadata={"security_flags": ",".join(flags)})
    return strip_invisible(message).strip()
