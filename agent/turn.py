"""One turn: the user, what tools need of it, the reply, and signs of an attack in a message."""

import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import Field

from agent import lengths
from agent.care.concerns import NO_CARE, Care, Concern
from agent.engine.errors import log_failure
from agent.engine.limits import NOTHING_SPENT, Spent
from agent.engine.mcp import Proposal
from agent.engine.messages import LLM
from agent.engine.run import Run
from agent.engine.span import Prompt, PromptRef, Span
from agent.i18n import translate
from agent.markdown import NOTE_SIGN, visible
from agent.tables import Strict, read_toml
from agent.text import Language, Pattern, pattern
from agent.turn_trace import Outcome, record_ledger, record_turn

FactKind = Literal["allergy", "hate", "like", "budget", "note", "rated", "setting"]
"""The kind of a fact. `rated` comes from verdicts, `setting` from a choice."""
PRICES: Final = "prices"
STATED_KINDS: Final[tuple[FactKind, ...]] = ("allergy", "hate", "like", "budget", "note")
"""The kinds of facts that users state in words."""
UNDER_AGE: Final = "age=under"
"""The setting of a user who said that they are too young."""
SHARED: Final = "cellar in {}=shared"
"""The setting of a user who shows their cellar in a chat."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is remembered of a person, in the words of the catalogue.

    The value of a taste is what `agent.sommelier.taste` writes, that of an allergy an allergen, of
    a budget from how much and up to how much (`40 EUR`, `15-30 EUR`, `60- EUR`). `said` are their
    own words, of what is `rated` "+" or "-".
    """

    kind: FactKind
    value: str
    said: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Return what tells it from others."""
        return self.kind, self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottles:
    """Bottles of one wine that a person owns; `wine` are its facts, `key` its label, folded.

    `drink_from` and `drink_until` are years, as they were told.
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
    """A change of what is kept of a person, made with the commit that ends a turn.

    Of `bottles` the counts are added to those that there are. The change can be undone under its
    `undo_id`, once; one that `undoes` such an id takes that change back. With `forget`, their hash
    in traces, all that is kept of them is deleted.
    """

    user_id: int
    learned: tuple[Fact, ...] = ()
    unlearned: tuple[Fact, ...] = ()
    bottles: tuple[Bottles, ...] = ()
    undo_id: int = 0
    undoes: int = 0
    forget: str = ""

    @property
    def inverse(self) -> "Change":
        """Return the change that takes this one back."""
        bottles = tuple(replace(owned, count=-owned.count) for owned in self.bottles)
        return Change(
            user_id=self.user_id, learned=self.unlearned, unlearned=self.learned, bottles=bottles
        )


@dataclass(frozen=True, slots=True)
class Person:
    """The user as far as they are known. Nothing is remembered of one without a `user_id`."""

    care: Care = NO_CARE
    facts: tuple[Fact, ...] = ()
    bottles: tuple[Bottles, ...] = ()
    user_id: int = 0


NOBODY: Final = Person()


def changed(person: Person, change: Change) -> Person:
    """Return a person as they are known after a change; of no wine there are less than none."""
    gone = {fact.key for fact in (*change.unlearned, *change.learned)}
    facts = (*(fact for fact in person.facts if fact.key not in gone), *change.learned)
    owned = {bottles.key: bottles for bottles in person.bottles}
    for new in change.bottles:
        before = owned.pop(new.key, None) or replace(new, count=0, id=len(owned) + 1)
        count, note = max(0, before.count + new.count), new.note or before.note
        owned[new.key] = replace(before, wine=new.wine, count=count, note=note)
    return replace(person, facts=facts, bottles=tuple(owned.values()))


def settings_of(facts: Iterable[Fact]) -> dict[str, str]:
    """Return what a person chose, by the names of settings; `prices` is what they usually spend."""
    chosen = {}
    for fact in facts:
        if fact.kind == "budget":
            chosen[PRICES] = fact.value
        elif fact.kind == "setting":
            name, _, value = fact.value.partition("=")
            chosen[name] = value
    return chosen


def facts_of(settings: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return the facts that `settings_of` reads so."""
    return tuple(
        Fact("budget", value) if name == PRICES else Fact("setting", f"{name}={value}")
        for name, value in settings.items()
        if value
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of a turn.

    `text` is Markdown: it is remembered and stands in the trace. `notes` say below it what is to be
    known of it: why no model answered, what is left of a budget. `wines` are the facts of those it
    shows, `wine_ids` those of them that are ours. `answer` is what the text was made of, by
    `prompt` if there was one. `concerns` are those that this turn noticed: they may be confirmed or
    taken back. `changes` are made at its end to what is kept of them. `lead` is a line above the
    text: what was heard. `attachment` is what was read from pictures, as JSON, to be remembered
    with the question, `audio` the answer read aloud. `suggested_facts` are what a button may offer
    to remember of who asks, `proposals` are calls of tools that a button may run. What the turn
    took, `spent` and `seconds`, is filled in at its end.
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
    spent: Spent = NOTHING_SPENT
    seconds: float = 0.0

    @property
    def shown(self) -> str:
        """Return the text with its lead above and its notes below it, in Markdown."""
        return with_notes("\n\n".join(filter(None, (self.lead, self.text))), self.notes)


Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a conversation as it is stored: text, and the wines it recommended.

    `turn_id` and `user_id` are those of its turn, where they are stored; `thread_id` is
    the topic of the chat, 0 without topics. `attachment` is what was read from its pictures, as
    JSON.
    """

    role: Role
    content: str
    wine_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    turn_id: int | None = None
    thread_id: int = 0
    user_id: int | None = None
    attachment: str = ""


class Prompts(Protocol):
    """The prompts of a turn."""

    def get(self, name: str) -> Prompt:
        """Return the prompt to use now, at once: nothing is waited for.

        Raises:
            KeyError: this product has no prompt of that name.
        """


@dataclass(frozen=True, slots=True)
class Deps:
    """The person who asks, the prompts in use, and models that are asked for one thing each.

    Without a `person` nothing is known of them but their messages; without `prompts` those of the
    repository are used. `told` are the ids of excerpts and wines that a model was given in this
    turn.
    """

    person: Person | None = None
    prompts: Prompts | None = None
    models: Mapping[str, LLM] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)


def deps_of(run: Run) -> Deps:
    """Return the deps of a run; a run that was made without any has none of it."""
    return run.deps if isinstance(run.deps, Deps) else Deps()


def with_person(run: Run, person: Person) -> Run:
    """Return the run with `person` as the user in its deps."""
    return replace(run, deps=replace(deps_of(run), person=person))


Work = Callable[[Run], Awaitable[Reply]]
"""Makes the reply of a turn, with the models and within the limits of its run."""


async def answer_turn(run: Run, work: Work) -> Reply:
    """Do the work of a turn, and record the reply on its root span, the run's."""
    reply = await run_work(run, work)
    record_turn(run.span, reply)
    return reply


async def run_work(run: Run, work: Work) -> Reply:
    """Return the reply that `work` makes; an apology if it fails or says nothing."""
    try:
        reply = await work(run)
    except Exception as error:
        # The type and the place alone: the text of an error may hold what was asked.
        kind = log_failure("A turn failed", error)
        return Reply(text=translate("apology"), outcome="failed", error_types=(kind,))
    finally:
        record_ledger(run.span, run.ledger)
    return reply if reply.text.strip() else Reply(text=translate("apology"), outcome="failed")


def with_notes(text: str, notes: Sequence[str]) -> str:
    """Put notes below a text, in Markdown, under a sign that no other text can have."""
    return "\n\n".join([text, *map(_marked, notes)])


def _marked(note: str) -> str:
    """Return a note with its first line in italics, which end with a line."""
    first, line_break, rest = note.partition("\n")
    return f"_{NOTE_SIGN} {first}_{line_break}{rest}"


FILE: Final = Path(__file__).with_name("guard.toml")
SPOKEN_ROLE: Final = r"^[ \t]*(?:system|assistant)\s*:"

Patterns = Annotated[list[str], Field(min_length=1)]


class Suspicious(Strict):
    """Signs of an attempt to steer the model in one language: parts of patterns."""

    ignore: Patterns
    instructions: Patterns
    prompt: Patterns
    role: Patterns


@cache
def suspicious() -> Mapping[str, Pattern]:
    """Read the patterns of folded text, once: a hint for those who read traces, no wall.

    Raises:
        ValidationError: the file is not as it must be.
    """
    found = read_toml(dict[Language, Suspicious], FILE)

    def any_of(name: str) -> str:
        return "|".join(part for words in found.values() for part in getattr(words, name))

    ignored = rf"(?s)\b(?:{any_of('ignore')})\W(?:.{{0,38}}\W)?(?:{any_of('instructions')})\b"
    return {
        "instruction_override": pattern(ignored),
        "prompt_probe": pattern(rf"\b(?:{any_of('prompt')})\b"),
        "role_play": pattern(rf"(?m)(?:^|\W)(?:{any_of('role')})(?:\W|$)|{SPOKEN_ROLE}"),
    }


def security_flags(message: str) -> list[str]:
    """Name the signs of an attempt to steer the model in a message; for the trace only."""
    folded = unicodedata.normalize("NFKC", visible(message)).lower()
    return [name for name, pattern in suspicious().items() if pattern.search(folded)]


def guard_input(message: str, span: Span) -> str:
    """Return a message cleaned; signs of an injection are recorded, and change nothing else."""
    with span.child("guard.input", "guardrail") as guard:
        flags = security_flags(message[: lengths.MESSAGE])
        guard.update(output=flags, level="WARNING" if flags else None)
        if flags:
            span.update(metadata={"security_flags": ",".join(flags)})
        return visible(message[: lengths.MESSAGE]).strip()
