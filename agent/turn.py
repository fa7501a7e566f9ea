"""One turn: the user, what tools need of it, the reply, and signs of an attack in a message."""

import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from agent import size_limits
from agent.care import NO_CONCERNS, Concern, SafetyState
from agent.engine.errors import log_failure
from agent.engine.loop import AgenticResponse
from agent.engine.messages import LLM
from agent.engine.run import NOTHING_SPENT, Level, Prompt, PromptRef, Run, Span, Spent
from agent.i18n import translate
from agent.language import Language
from agent.markdown import NOTE_SYMBOL, strip_invisible
from agent.mcp import Proposal
from agent.tables import read_toml
from agent.text import Pattern, pattern

Outcome = Literal["answered", "salvaged", "refused", "fallback", "failed", "care", "stopped"]
"""A valid answer (without a model: by rules); what was valid of one; the model declined; the
fallback or the best passages because the model failed; an apology; help, and no model asked; what
was written until the person stopped it."""

FactKind = Literal["allergy", "hate", "like", "budget", "note", "rated", "setting"]
"""The kind of a fact. `rated` comes from verdicts, `setting` from a choice."""
STATED_KINDS: Final[tuple[FactKind, ...]] = ("allergy", "hate", "like", "budget", "note")
"""The kinds of facts that users state in words."""
UNDER_AGE: Final = "age=under"
"""The setting of a user who said that they are too young."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A stored fact of a person; its value is in the words of the catalogue.

    The value of a taste is written by `agent.sommelier.safety`. That of an allergy is an allergen,
    that of a budget a range (`40 EUR` at most, `15-30 EUR`, `60- EUR` at least). `original_text`
    holds the person's own words, or "+" or "-" for a wine that they `rated`.
    """

    kind: FactKind
    value: str
    original_text: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Return the kind and the value: two facts with one key are the same fact."""
        return self.kind, self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class CellarItem:
    """Bottles of one wine that a person owns; `wine` holds its facts, `key` its folded label.

    `drink_from` and `drink_until` are years that the person stated.
    """

    key: str
    wine: Mapping[str, Any]
    count: int
    id: int = 0
    drink_from: int | None = None
    drink_until: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a person's stored data, applied by the commit that ends a turn.

    The counts of `bottles` are added to those in the cellar. The change can be undone once, by its
    `undo_id`; a change with `undoes` reverts the one with that id. With `forget`, the person's hash
    in traces, all their data is deleted.
    """

    user_id: int
    added_facts: tuple[Fact, ...] = ()
    removed_facts: tuple[Fact, ...] = ()
    bottles: tuple[CellarItem, ...] = ()
    undo_id: int = 0
    reverts_id: int = 0
    forget_user_hash: str = ""

    @property
    def inverse(self) -> "Change":
        """Return the change that reverts this one."""
        bottles = tuple(replace(owned, count=-owned.count) for owned in self.bottles)
        return Change(
            user_id=self.user_id,
            added_facts=self.removed_facts,
            removed_facts=self.added_facts,
            bottles=bottles,
        )


@dataclass(frozen=True, slots=True)
class Person:
    """The user, with their care, facts and bottles. Without a `user_id` no data is stored."""

    safety: SafetyState = NO_CONCERNS
    facts: tuple[Fact, ...] = ()
    bottles: tuple[CellarItem, ...] = ()
    user_id: int = 0


NOBODY: Final = Person()


def apply_change(person: Person, change: Change) -> Person:
    """Return a person after a change; a count of bottles never falls below 0."""
    gone = {fact.key for fact in (*change.removed_facts, *change.added_facts)}
    facts = (*(fact for fact in person.facts if fact.key not in gone), *change.added_facts)
    owned = {bottles.key: bottles for bottles in person.bottles}
    for new in change.bottles:
        before = owned.pop(new.key, None) or replace(new, count=0, id=len(owned) + 1)
        count, note = max(0, before.count + new.count), new.note or before.note
        owned[new.key] = replace(before, wine=new.wine, count=count, note=note)
    return replace(person, facts=facts, bottles=tuple(owned.values()))


def get_chosen_settings(facts: Iterable[Fact]) -> dict[str, str]:
    """Return the settings that a person chose, by name."""
    chosen = (fact.value.partition("=") for fact in facts if fact.kind == "setting")
    return {name: value for name, _, value in chosen}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of a turn.

    `text` is Markdown: it is stored in the conversation and in the trace. `notes` are shown below
    it: why no model answered, or how much of a budget remains. `wines` are the facts of the wines
    that it shows, `wine_ids` the ids of those in the catalogue. `answer` is the value from which
    the text was rendered, `prompt` the prompt for it, if any.

    `concerns` are those that this turn noticed: the user may confirm or retract them. `changes`
    of the user's data are applied when the turn ends. `lead` is a line above the text: the
    transcript of a voice message. `attachment` is the content of pictures, as JSON, to be stored
    with the question; `audio` is the answer read aloud. `suggested_facts` are facts that a button
    offers to store, `proposals` tool calls that a button offers to run. `parts` are the messages
    that the text consists of, if they are several. `spent` and `seconds` are filled in when the
    turn ends.
    """

    text: str
    outcome: Outcome = "answered"
    notes: tuple[str, ...] = ()
    wine_ids: tuple[str, ...] = ()
    wines: tuple[Any, ...] = ()
    retries: int = 0
    error_types: tuple[str, ...] = ()
    answer: Any = None
    prompt: PromptRef | None = None
    concerns: frozenset[Concern] = frozenset()
    changes: tuple[Change, ...] = ()
    lead: str = ""
    attachment: str = ""
    suggested_facts: tuple[Fact, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    audio: bytes = field(default=b"", repr=False)
    parts: tuple[str, ...] = ()
    spent: Spent = NOTHING_SPENT
    seconds: float = 0.0

    @property
    def messages(self) -> list[str]:
        """Return the messages that show the reply, in Markdown.

        The notes are in the last, marked by a sign that no other text has.
        """
        *others, last = self.parts or ("\n\n".join(filter(None, (self.lead, self.text))),)
        for note in self.notes:
            # Italics cannot span lines.
            first, line_break, rest = note.partition("\n")
            last += f"\n\n_{NOTE_SYMBOL} {first}_{line_break}{rest}"
        return [*others, last]

    @property
    def full_text(self) -> str:
        """Return the text with its lead above and its notes below it, in Markdown."""
        return "\n\n".join(self.messages)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a conversation as it is stored: text, and the wines it recommended.

    `turn_id` and `user_id` are those of its turn, if they are known. `thread_id` is the topic of
    the chat, 0 without topics. `attachment` is the content of its pictures, as JSON.
    """

    role: Literal["user", "assistant"]
    content: str
    wine_ids: tuple[str, ...] = ()
    turn_id: int | None = None
    thread_id: int = 0
    user_id: int | None = None
    attachment: str = ""


@dataclass(frozen=True, slots=True)
class Deps:
    """The user of a turn, the prompts in use, and models for special tasks (pictures, …).

    If `person` is None, only the user's messages are known. A prompt that is not among `prompts` is
    that of the repository. `ids_given_to_model` are the ids of excerpts and wines that the model
    was given in this turn.
    """

    person: Person | None = None
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    models: Mapping[str, LLM] = field(default_factory=dict)
    ids_given_to_model: set[str] = field(default_factory=set)


def get_deps(run: Run) -> Deps:
    """Return the deps of a run, empty ones if it has none."""
    return run.deps if isinstance(run.deps, Deps) else Deps()


def with_person(run: Run, person: Person) -> Run:
    """Return the run with `person` as the user in its deps."""
    return replace(run, deps=replace(get_deps(run), person=person))


AnswerFunction = Callable[[Run], Awaitable[Reply]]
"""Makes the reply of a turn, with the models and within the limits of its run."""


async def answer_turn(run: Run, work: AnswerFunction) -> Reply:
    """Do the work of a turn, and record the reply on its root span, the run's."""
    reply = await answer_or_apologize(run, work)
    record_turn(run.span, reply)
    return reply


async def answer_or_apologize(run: Run, work: AnswerFunction) -> Reply:
    """Return the reply that `work` makes; an apology if it fails or says nothing."""
    try:
        reply = await work(run)
    except Exception as error:
        # The type and the place alone: the text of an error may hold what was asked.
        kind = log_failure("A turn failed", error)
        return Reply(text=translate("apology"), outcome="failed", error_types=(kind,))
    finally:
        ledger = run.ledger
        used = {"llm_calls": ledger.spent.requests, "tool_calls": ledger.tool_calls}
        cost = round(ledger.spent.cost_usd, 6)
        # Also of a turn that was cancelled.
        run.span.update(metadata=used | {"tool_errors": ledger.tool_errors} | {"cost_usd": cost})
    return reply if reply.text.strip() else Reply(text=translate("apology"), outcome="failed")


def record_turn(span: Span, reply: Reply) -> None:
    """Record the reply of a turn on its root span, as the list of traces shows and filters it."""
    metadata: dict[str, Any] = {
        "outcome": reply.outcome,
        "retried": "yes" if reply.retries else "no",
        "retry_count": reply.retries,
        "error_types": ",".join(reply.error_types),
    }
    if (prompt := reply.prompt) is not None:
        metadata |= {"prompt_name": prompt.name, "prompt_version": prompt.origin}
    levels: dict[Outcome, Level] = {"fallback": "WARNING", "failed": "ERROR"}
    span.update(output=reply.full_text, metadata=metadata, level=levels.get(reply.outcome))
    span.score("structured_retries", reply.retries, "NUMERIC")
    span.score("outcome", reply.outcome, "CATEGORICAL")


def list_error_types(response: AgenticResponse[Any]) -> tuple[str, ...]:
    """List the errors of the attempts, in order, and that of the turn itself if it broke off."""
    if response.has_text or response.outcome in response.error_types:
        return response.error_types
    return (*response.error_types, response.outcome)


@cache
def _attacks() -> Mapping[str, Pattern]:
    """Return a pattern for every sign of an attempt to steer the model, in folded text."""
    file = Path(__file__).with_name("guard.toml")
    languages = read_toml(dict[Language, dict[str, list[str]]], file).values()
    kinds = ("ignore", "instructions", "prompt", "role")
    signs = {kind: "|".join("|".join(words[kind]) for words in languages) for kind in kinds}
    override = rf"(?s)\b(?:{signs['ignore']})\W(?:.{{0,38}}\W)?(?:{signs['instructions']})\b"
    speaker = r"^[ \t]*(?:system|assistant)\s*:"
    return {
        "instruction_override": pattern(override),
        "prompt_probe": pattern(rf"\b(?:{signs['prompt']})\b"),
        "role_play": pattern(rf"(?m)(?:^|\W)(?:{signs['role']})(?:\W|$)|{speaker}"),
    }


def find_security_flags(message: str) -> list[str]:
    """Return the names of the signs of an attempt to steer the model: a hint, no defence."""
    folded = unicodedata.normalize("NFKC", strip_invisible(message)).lower()
    return [name for name, attack in _attacks().items() if attack.search(folded)]


def guard_input(message: str, span: Span) -> str:
    """Return a message without invisible characters; record signs of an injection on the span."""
    with span.child("guard.input", "guardrail") as guard:
        flags = find_security_flags(message[: size_limits.MESSAGE_CHARS])
        guard.update(output=flags, level="WARNING" if flags else None)
        if flags:
            span.update(metadata={"security_flags": ",".join(flags)})
        return strip_invisible(message[: size_limits.MESSAGE_CHARS]).strip()
