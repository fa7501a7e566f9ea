"""Answers with what is remembered of who asks, remembers what they tell, and says so.

What guests ask of what is remembered is known here too, what they are told of it in their language,
and the tool by which a model has something be remembered, in a person's own words alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from agent import lengths
from agent.care.concerns import ALLERGIES
from agent.deps import deps_of
from agent.engine.errors import ToolError
from agent.engine.messages import Message
from agent.engine.run import Run
from agent.engine.tools import Tool, ToolOutput
from agent.house_sommelier.lexicon import parse
from agent.i18n import languages, say_in, spoken
from agent.markdown import escape
from agent.memory.cellar import (
    NOTHING,
    CellarTalk,
    chosen,
    read_cellar,
    state_of,
    window_of,
    wine_of,
)
from agent.memory.correcting import read_correction
from agent.memory.reading import (
    LARGEST_BUDGET,
    LONGEST_SAID,
    Reading,
    is_of_others,
    may_be_noted,
    objects,
    own_words,
    read_message,
)
from agent.sommelier.attachment import Attached
from agent.sommelier.safety import may_be_shown, person_in
from agent.sommelier.service import Sommelier
from agent.sommelier.taste import Wanted, budget_of, read, written
from agent.sommelier.wine import Currency, money, record
from agent.sommelier.wine_tools import by_id
from agent.tables import Strict, read_toml
from agent.text import Language, Pattern, of_words, run_in_thread_if_large, spaced, words
from agent.turn import Bottles, Change, Fact, Person, Reply, changed

OF_CELLAR: Final = (
    "cellar_added", "cellar_taken", "cellar_corrected", "cellar_undone", "cellar_all",
    "cellar_pick", "cellar_urgent", "cellar_unfit",
)  # fmt: skip
"""With what replies begin that only tell of a person's own bottles."""

Asked = Literal["forget", "export", "privacy", "taste", "cellar", "agree"]
LONGEST: Final = 200
"""Characters of a message that asks for it and for nothing else."""
FAR: Final = 9999
"""The year until which a wine keeps of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Remembering:
    """Fulfils `Answerer` with a sommelier, and what is remembered.

    What a message tells is read by rules whatever model there is, holds in this very turn, and is
    told back below its answer. A message that only tells needs no other answer.
    """

    sommelier: Sommelier

    async def answer(self, message: str, run: Run, attached: Attached | None = None) -> Reply:
        """Answer `message`; what is to be remembered of it stands in the reply's changes."""
        person = person_in(run)
        if not person.user_id or person.care.is_crisis:
            return await self.sommelier.answer(message, run, attached)
        read = partial(_read, message, run, person)
        most = lengths.HEARD_ON_THE_LOOP
        reading, talk = await run_in_thread_if_large(read, size=len(message), most=most)
        tells = bool(talk or reading.learned or reading.unlearned)
        language = await self._language_told(message, run) if tells or reading.is_all else None
        heard = Change(
            user_id=person.user_id,
            learned=_fresh(reading, talk, person),
            unlearned=reading.unlearned,
            bottles=talk.changed,
        )
        now = changed(person, heard)
        said = _of_cellar(talk, now, language) if language else ""
        if heard.learned or heard.unlearned or talk:
            with run.span.child("memory", "span") as span:
                span.update(output={"changed": heard, "told": said})
        is_all = reading.is_all or (said and talk.is_all)
        if language and is_all and not (attached and attached.now):
            told_ = _told_back(Reply(text=""), [heard], language)
            on = "" if said else say_in(language, "taste_ask_on")
            text = "\n\n".join(filter(None, (said, *told_.notes, on)))
            return replace(told_, text=text, notes=())
        known = replace(now, facts=_holding(person, reading), words=own_words(message))
        history = run.history if run.models else _without_told(run.history)
        run = replace(run, deps=replace(deps_of(run), person=known), history=history)
        reply = await self.sommelier.answer(message, run, attached)
        told_keys = {fact.key for fact in heard.learned}
        others = [_without(each, told_keys) for each in reply.changes]
        if said:
            reply = replace(reply, notes=(*reply.notes, said))
        if language is None and not others:
            return reply
        glance = language or self.sommelier.language_in(message, run)
        return _told_back(reply, [heard, *others], cast("Language", glance))

    async def _language_told(self, message: str, run: Run) -> Language:
        """The language of a message that is mostly names and numbers.

        Where that is what it would be for want of a word that tells, the talk's.
        """
        of_talk = self.sommelier.language_in(message, run)
        own = await self.sommelier.language_of(message)
        tells = own not in ("en", spoken()) or of_talk == "en"
        return cast("Language", own if tells else of_talk)


def _without_told(history: Sequence[Message]) -> list[Message]:
    """A talk without what was only told and noted: it holds by being remembered, till forgotten."""
    left = list[Message]()
    for each in history:
        is_noted = each["role"] == "assistant" and _is_noted(str(each["content"]))
        if is_noted and left and left[-1]["role"] == "user":
            left.pop()
        else:
            left.append(each)
    return left


def _is_noted(reply: str) -> bool:
    begins, ends = _noting()
    return reply.startswith(begins) or reply.endswith(ends)


@cache
def _noting() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """How replies begin that only tell of a cellar, and how those end that only note a taste."""
    begins = (say_in(code, name, count="{") for name in OF_CELLAR for code in languages())
    ends = tuple(say_in(code, "taste_ask_on") for code in languages())
    return tuple(each.partition("{")[0] for each in begins), ends


def _read(message: str, run: Run, person: Person) -> tuple[Reading, CellarTalk]:
    """What a message tells of who writes and of their bottles, or corrects of what was told."""
    if person.care.forbids_alcohol:
        return read_message(message, person.facts), NOTHING
    before = [str(each["content"]) for each in run.history if each["role"] == "user"]
    # Who has told nothing has nothing to correct.
    corrected = read_correction(message, before, person) if person.facts or person.bottles else None
    if corrected is not None:
        known = Reading(corrected.learned, corrected.unlearned, is_all=True)
        begins = "cellar_corrected" if corrected.now.bottles else "cellar_undone"
        return known, CellarTalk(changed=corrected.changed, begins=begins)
    last = str(run.history[-1]["content"]) if run.history else ""
    follows = last.startswith(_noting()[0])
    return read_message(message, person.facts), read_cellar(message, person, follows=follows)


def _fresh(reading: Reading, talk: CellarTalk, person: Person) -> tuple[Fact, ...]:
    """What is to be learned that is not known; words about bottles stand as a note with these."""
    known = {fact.key for fact in person.facts}
    liked = {fact.key: fact for fact in (*reading.learned, *talk.liked)}
    return tuple(
        fact
        for key, fact in liked.items()
        if key not in known and not (fact.kind == "note" and talk.changed)
    )


def _of_cellar(talk: CellarTalk, now: Person, language: Language) -> str:
    """What is said to what a message says or asks of a person's own bottles; empty if nothing."""
    year = datetime.now(UTC).year
    keys = {each.key for each in talk.changed}
    of_change = [each for each in now.bottles if each.key in keys]
    parts = list[str]()
    if talk.begins == "cellar_corrected":
        of_change = of_change[-1:]
    if of_change:
        parts.append(cellar(of_change, year, language, talk.begins))
    if talk.shows:
        parts.append(whole_cellar(now.bottles, year, language))
    if talk.chooses:
        parts.append(_chosen(talk, now, year, language))
    return "\n\n".join(parts)


def _chosen(talk: CellarTalk, person: Person, year: int, language: Language) -> str:
    if not any(each.count for each in person.bottles):
        return say_in(language, "cellar_none")
    found = chosen(talk, person, year)
    if not found:
        return say_in(language, "cellar_unfit")
    return cellar(found, year, language, "cellar_urgent" if talk.is_urgent else "cellar_pick")


def _holding(person: Person, reading: Reading) -> tuple[Fact, ...]:
    """The facts that hold in this turn: a hate of what is asked for by name does not."""
    gone = {fact.key for fact in reading.unlearned}
    facts = [each for each in (*person.facts, *reading.learned) if each.key not in gone]
    return tuple(
        each for each in facts if not (each.kind == "hate" and _is_named(each, reading.named))
    )


def _is_named(fact: Fact, named: Iterable[Wanted]) -> bool:
    hated = read(fact.value)
    return any(
        all({*values} & {*wanted.get(name, ())} for name, values in hated.items())
        for wanted in named
    )


def _without(change: Change, keys: set[tuple[str, str]]) -> Change:
    return replace(change, learned=tuple(each for each in change.learned if each.key not in keys))


def _told_back(reply: Reply, changes: Iterable[Change], language: Language) -> Reply:
    """The reply with what is changed, and told so once."""
    changed = tuple(each for each in changes if each.learned or each.unlearned or each.bottles)
    learned = [fact for each in changed for fact in each.learned]
    replaced = {fact.kind for fact in learned if fact.kind == "budget"}
    unlearned = [f for each in changed for f in each.unlearned if f.kind not in replaced]
    again = {fact.value for fact in learned}
    unlearned = [fact for fact in unlearned if fact.value not in again]
    said = (told(learned, "learned", language), told(unlearned, "unlearned", language))
    return replace(reply, notes=(*reply.notes, *filter(None, said)), changes=changed)


def asked_of_memory(text: str) -> Asked | None:
    """Tell what a message, in any language, asks of what is remembered; None for any other."""
    if len(text) > LONGEST:
        return None
    said = spaced(words(text))
    return next((what for what, pattern in _patterns().items() if pattern.search(said)), None)


@cache
def _patterns() -> Mapping[Asked, Pattern]:
    written = read_toml(dict[Asked, list[str]], Path(__file__).with_name("asking.toml"))
    return {what: of_words(any_of) for what, any_of in written.items()}


def in_words(fact: Fact, language: str) -> str:
    """Say a fact in half a sentence: what it is about as who told it named it."""
    kind = "like" if fact.kind == "rated" else fact.kind
    about = spent_in_words(fact.value, language) if kind == "budget" else _about(fact)
    return say_in(language, f"memory_{kind}", what=about)


def spent_in_words(value: str, language: str) -> str:
    """Say what somebody usually spends, of the value of a budget."""
    low, high, currency = budget_of(value)
    name = "prices_to" if low is None else "prices_from" if high is None else "prices_between"
    ends = {"low": money(low or 0, currency), "high": money(high or 0, currency)}
    return say_in(language, name, **ends)


def _about(fact: Fact) -> str:
    if fact.kind == "rated" or not fact.said:
        return ", ".join(each for values in read(fact.value).values() for each in values)
    return fact.said


def told(facts: Iterable[Fact], name: str, language: str) -> str:
    """Say that facts are "learned" or "unlearned"; empty without any."""
    said = ", ".join(in_words(each, language) for each in facts)
    return say_in(language, f"memory_{name}", facts=said) if said else ""


def cellar(bottles: Iterable[Bottles], year: int, language: str, begins: str) -> str:
    """Say each of some bottles in a line of Markdown, below the sentence of that name."""
    lines = [line(each, year, language) for each in bottles]
    return "\n".join([say_in(language, begins), *lines])


def whole_cellar(bottles: Iterable[Bottles], year: int, language: str) -> str:
    """Say what a person owns, what has least time left first, and what they paid for it."""
    owned = [each for each in bottles if each.count]
    if not owned:
        return say_in(language, "cellar_none")
    owned.sort(key=lambda each: ((window_of(each) or (0, FAR))[1], each.key))
    count = str(sum(each.count for each in owned))
    said = [say_in(language, "cellar_all", count=count)]
    said += [line(each, year, language) for each in owned]
    paid = dict[Currency, float]()
    for each in owned:
        wine = wine_of(each)
        if wine.price is not None:
            paid[wine.currency] = paid.get(wine.currency, 0) + wine.price * each.count
    if paid:
        sums = ", ".join(money(amount, currency) for currency, amount in paid.items())
        said.append(say_in(language, "cellar_paid", paid=sums))
    return "\n".join(said)


def line(bottles: Bottles, year: int, language: str) -> str:
    """Say how many bottles of which wine, what each cost, when to drink them, what was noted."""
    wine, window, state = wine_of(bottles), window_of(bottles), state_of(bottles, year)
    if not bottles.count:
        gone = [f"**{escape(wine.label)}**", say_in(language, "cellar_gone")]
        return " · ".join([*gone, *_note(bottles, language)])
    facts = [f"{bottles.count} × **{escape(wine.label)}**"]
    if wine.price is not None:
        facts.append(say_in(language, "cellar_each", price=money(wine.price, wine.currency)))
    if window is not None and state != "unknown":
        ends = window[0] if state == "young" else window[1]
        facts.append(say_in(language, f"cellar_{state}", year=str(ends)))
    return " · ".join([*facts, *_note(bottles, language)])


def _note(bottles: Bottles, language: str) -> list[str]:
    return [say_in(language, "memory_note", what=escape(bottles.note))] if bottles.note else []


REMEMBER: Final = (
    "Keep a lasting fact that the guest told of themselves in this message: what they never drink "
    "(hate), like, do not tolerate (allergy), usually spend (budget), or asked to note. `words` "
    "are their own, letter for letter, and name what it is about. Not what they want just now, "
    "and nothing of other people. With `forget` such a fact is dropped again."
)
OWNED: Final = (
    "The bottles that the guest owns at home. They are not for sale: call it when the guest asks "
    "what to drink of their own, and recommend these by their wine_id."
)
MOST_OWNED: Final = 60
NO_CELLAR: Final = "the guest has told of no bottles of their own; search_wines finds ours"
NOT_SAID: Final = "these are not the guest's words of this message; copy them letter for letter"
OF_OTHERS: Final = "that is about somebody else; only what guests tell of themselves is kept"
NO_NAME: Final = "these words name no grape, region, country, style or taste; keep it as a note"


class Remember(Strict):
    """Arguments of remember."""

    kind: Literal["hate", "like", "allergy", "budget", "note"]
    words: Annotated[str, Field(min_length=2, max_length=LONGEST_SAID)]
    amount: Annotated[float | None, Field(gt=0, le=LARGEST_BUDGET)] = None
    currency: Currency = Currency.EUR
    forget: bool = False


async def remember(asked: Remember, run: Run) -> ToolOutput:
    """Make the change of a fact that a person told in these words; it is kept with the turn.

    Raises:
        ToolError: they did not say so, or it is no such fact.
    """
    person = person_in(run)
    own = f" {' '.join(words(own_words(person.words)))} "
    if f" {' '.join(words(asked.words))} " not in own or not words(asked.words):
        raise ToolError(NOT_SAID)
    if is_of_others(asked.words):
        raise ToolError(OF_OTHERS)
    facts = _facts(asked, own)
    if not facts:
        raise ToolError(NO_NAME)
    change = _change(person, facts, forget=asked.forget)
    content = {"remembered": not asked.forget, "told_to_guest": "below your answer"}
    return ToolOutput(content, {f"remembered:{facts[0].kind}:{facts[0].value}": change})


def _change(person: Person, facts: tuple[Fact, ...], *, forget: bool) -> Change:
    if forget:
        known = {fact.key: fact for fact in person.facts}
        gone = tuple(known[each.key] for each in facts if each.key in known)
        return Change(user_id=person.user_id, unlearned=gone)
    return Change(user_id=person.user_id, learned=facts)


def _facts(asked: Remember, own: str) -> tuple[Fact, ...]:
    match asked.kind:
        case "note":
            noted = may_be_noted(asked.words)
            return (Fact("note", asked.words, asked.words),) if noted else ()
        case "budget":
            said = asked.amount is not None and f" {asked.amount:g} " in own
            value = f"{asked.amount:g} {asked.currency}"
            return (Fact("budget", value, asked.words),) if said else ()
        case "allergy":
            spans = parse(asked.words).spans
            named = {value for each in spans for value in each.values("allergen")}
            return tuple(Fact("allergy", each, asked.words) for each in ALLERGIES if each in named)
        case _:
            named_ = objects(asked.words)
            return tuple(Fact(asked.kind, written(wanted), said) for wanted, said in named_)


class OwnCellar(BaseModel):
    """Arguments of own_cellar: none."""

    model_config = ConfigDict(extra="ignore", frozen=True)


async def own_cellar(asked: OwnCellar, run: Run) -> ToolOutput:
    """Tell what the guest owns: how many bottles of which wine, and when to drink them.

    Raises:
        ToolError: nothing is known of any, or they are not to be offered alcohol.
    """
    person = person_in(run)
    anything = replace(person, facts=())
    owned = [
        each for each in person.bottles if each.count and may_be_shown(wine_of(each), anything)
    ]
    if not owned:
        raise ToolError(NO_CELLAR)
    wines = {wine.id: wine for wine in map(wine_of, owned[:MOST_OWNED])}
    facts = [
        record(wine) | {"bottles": each.count, "drink": window_of(each), "note": each.note}
        for each, wine in zip(owned, wines.values(), strict=False)
    ]
    return ToolOutput({"owned_by_the_guest": facts}, by_id(wines.values()))


def memory_tools() -> list[Tool]:
    """Make the tools remember and own_cellar."""
    return [
        Tool("remember", REMEMBER, Remember, remember),
        Tool("own_cellar", OWNED, OwnCellar, own_cellar),
    ]
