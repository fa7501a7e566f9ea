"""A talk folded into its state, message by message, from the first to the last. Pure.

Nothing is stored: the state is worked out again from the messages of each request.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from agent.care.concerns import NO_CARE, Care, Concern, gravest
from agent.house_sommelier.acts import language_told, with_kind
from agent.house_sommelier.data import SCALE_OF, grammar, kinds
from agent.house_sommelier.deciding import concern_of, decide, names_it
from agent.house_sommelier.lexicon import Glossary, Meaning, parse
from agent.house_sommelier.merging import (
    KIND,
    PLACE,
    amount_of_subject,
    turned_round,
    wished,
)
from agent.house_sommelier.plan import is_composed
from agent.house_sommelier.planning import planned
from agent.house_sommelier.reading import Change, read
from agent.house_sommelier.state import GRAVE, Conversation, Exchange, State
from agent.house_sommelier.table import (
    asked_about,
    compared,
    completed,
    named_in,
    pointed,
    spoken_of,
)
from agent.house_sommelier.topics import CERTAIN, SURE, Likely, asked_for, is_likely, topics_in
from agent.i18n import is_chosen, spoken
from agent.text import Language, fold, pattern, words

_MOST_GUESTS: Final = 500
_FEW_WORDS: Final = 3
_SHORT: Final = 12
_LONGEST_WHOLE: Final = 300
_REACTING: Final = frozenset({"histamine", "sulphites", "grapes", "complaint"})
"""Acts of messages in which a colour ("red cheeks"), or what is found fault with, is no wish."""
_OPEN: Final = frozenset({"search", "ask", "knowledge"})
"""Acts of messages in which more may be meant than the tables know."""
_TASTES: Final = frozenset({"text", *SCALE_OF})
_OF_WISHES: Final = frozenset({"search"})
_SECTION: Final = pattern(r"(?m)^\*\*[0-9]+\. ")


def read_state(
    conversation: Conversation, care: Care | None = None, glossary: Glossary = ()
) -> tuple[State, Change]:
    """The state after the last message of a conversation, and that message as a change.

    `care` is what is known of who wrote the last; in a group the others told of themselves.
    """
    *_, last = _states(conversation, care, glossary)
    return last


def unheard(conversation: Conversation, care: Care | None = None) -> tuple[list[str], Language]:
    """What the tables leave open in a conversation, to be looked up by meaning; its language.

    Words that nothing knows, and whole messages of which nothing was made.
    """
    asked, language = list[str](), State().language
    for state, change in _states(conversation, care, ()):
        language = state.language
        if state.act not in _OPEN:
            continue
        is_question = state.act == "knowledge"
        asked += () if is_question else change.unheard
        told = (state.subjects or change.entities) if is_question else change.wishes.said
        is_open = state.act != "search" or change.unheard
        if is_open and not told and change.words >= _FEW_WORDS:
            asked.append(_whole(change.text))
    return list(dict.fromkeys(asked)), language


def _states(
    conversation: Conversation, care: Care | None, glossary: Glossary
) -> Iterator[tuple[State, Change]]:
    """The state after each message of a conversation, with the message as a change."""
    known = care or NO_CARE
    is_minor = "under_age" in known.held
    state = State(care=gravest(known.held), is_minor=is_minor, reacts=known.allergies)
    for exchange in conversation.before:
        change = _read(exchange.request, state, NO_CARE if known.in_group else None, glossary)
        state = heard(state, change)
        yield state, change
        state = _answered(state, exchange)
    change = _read(conversation.request, state, known if known.in_group else None, glossary)
    yield heard(state, change), change


def _read(text: str, state: State, care: Care | None, glossary: Glossary) -> Change:
    own = tuple(each for each in glossary if each[0] in text)
    spoken_before = state.language if state.turns else None
    said = read(text, spoken_before, own)
    kind = with_kind(said, state.context).kind
    if not said.is_question and kind in ("complaint", *_OF_WISHES):
        is_fault = kind == "complaint"
        said = read(text, spoken_before, own, judges=not is_fault, blames=is_fault)
    change = _joined(state, completed(state, with_kind(said, state.context), said))
    change = _for_who_drinks_none(state, change)
    wants_as_explained = amount_of_subject(state, change) and not change.is_question
    if turned_round(state, change) or wants_as_explained or _wants_one_for_all(state, change):
        change = replace(change, kind="search", topics=())
    change = _as_meant(change, dict(own).get(_whole(text), ()))
    return change if care is None else replace(change, care=care)


def _joined(state: State, change: Change) -> Change:
    """`change` with those who come besides counted with the others: "20 more are coming"."""
    numbers, said = change.numbers, {fold(word) for word in words(change.text)}
    joins = said & grammar("joining") and not said & grammar("remaining")
    if not (state.guests and joins) or numbers.has_price or change.words > _SHORT:
        return change
    arrives = change.has("people") or said & grammar("arriving")
    told = [int(word) for word in said if word.isdecimal()] if arrives else []
    number = numbers.guests or (told[0] if len(told) == 1 else 0)
    if not 0 < number <= _MOST_GUESTS or numbers.sober:
        return change
    kind = "quantity" if state.act == "quantity" else "search"
    told_of = replace(numbers, guests=state.guests + number)
    marks = tuple(each for each in change.marks if each[0] not in ("ask", "cue"))
    return replace(change, kind=kind, numbers=told_of, marks=marks, topics=())


def _wants_one_for_all(state: State, change: Change) -> bool:
    """Whether one bottle is wanted in place of one for each dish: "just one for everything?"."""
    is_for_several = len(state.slots) > 1 or len(state.wishes.dishes) > 1
    return is_for_several and change.has("just_one") and not change.has("trait")


def _for_who_drinks_none(state: State, change: Change) -> Change:
    """`change` as a wish for no alcohol, where it is for the others of guests who drink none."""
    is_for_them = state.sober and change.has("others") and change.words <= _SHORT
    if not is_for_them or change.wishes.said or change.denied or change.numbers.has_price:
        return change
    wishes = replace(change.wishes, styles=("alcohol_free",), only=frozenset({"styles"}))
    return replace(change, kind="sober", wishes=wishes)


def _whole(text: str) -> str:
    """A message as it is looked up by what all of it means."""
    return text.strip()[:_LONGEST_WHOLE]


def _as_meant(change: Change, meanings: tuple[Meaning, ...]) -> Change:
    """A message of which nothing was made, with what all of it means: a topic, or a taste."""
    meant = {each.field: each.values for each in meanings}
    kind = kinds()[change.kind].alone if change.kind else "ask"
    asks = change.is_question or change.has("copula") or change.has("ask", "what", "why")
    topics = meant.pop("topic", ()) if asks or kind == "knowledge" else ()
    if topics and kind != "search":
        found = (Likely(name, CERTAIN) for name in topics)
        return replace(change, topics=(*found, *change.topics))
    tastes: dict[str, Any] = {name: meant[name] for name in meant if name in _TASTES}
    is_open = kind in ("search", "ask") and not (change.wishes.said or change.denied)
    if tastes and tastes == meant and is_open:
        return replace(change, wishes=replace(change.wishes, **tastes), unknown=())
    return change


def _answered(state: State, exchange: Exchange) -> State:
    """`state` after the reply of an exchange."""
    ids = exchange.wine_ids
    is_choice = bool(ids) and (is_composed(state) or not set(ids) <= set(state.choice))
    is_told = state.act == "knowledge" and not ids
    sections = _SECTION.split(exchange.reply)[1:]
    return replace(
        state,
        context="wines" if ids or (state.act == "about" and state.choice) else "told",
        shown=ids or state.shown,
        choice=ids if is_choice else state.choice,
        first=state.first or ids,
        seen=tuple(dict.fromkeys((*state.seen, *ids))),
        told=dict(zip(ids, sections, strict=False)) if is_choice else state.told,
        focus=() if ids else named_in(state, exchange.reply),
        names=() if ids else state.names or (spoken_of(exchange.reply) if is_told else ()),
    )


def heard(state: State, change: Change) -> State:
    """`state` after a message."""
    state = _with_facts(state, change)
    state = replace(state, swapped=(), instead=None)
    state = replace(state, pointed=pointed(state, change), about=())
    act = decide(state, change)
    state = replace(state, act=act, act_before=state.act, turns=state.turns + 1)
    match act:
        case "about" | "pick":
            return replace(state, about=asked_about(state, change), asked_of=change)
        case "knowledge":
            return _questioned(state, change)
        case "compare":
            return compared(state, change)
        case "search" if change.kind == "stock" and not change.wishes.said and state.topic.said:
            return wished(state, replace(change, wishes=state.topic))
        case "search" | "like" | "care":
            return wished(state, change)
        case "foods":
            spoken_of_before = state.topic if state.topic.said else state.wishes
            names_kind = change.wishes.said & (KIND | PLACE)
            state = replace(state, topic=change.wishes if names_kind else spoken_of_before)
        case "quantity":
            state = replace(state, topic=change.wishes)
            # "Are two enough for seven?" orders none.
            if not (change.numbers.bottles and change.is_question):
                state = planned(state, change, state)
        case act if change.wishes.said & (KIND | PLACE) and act not in _REACTING:
            # "That Grüner was great": what comes next may be like it.
            state = replace(state, topic=change.wishes)
    return state


def _with_facts(state: State, change: Change) -> State:
    """What holds whatever is asked: language, intolerances, care, guests."""
    languages, numbers, care = change.languages, change.numbers, change.care
    told = language_told(change, state.language if state.turns else None)
    stays = not languages or state.language in languages
    is_theirs = not state.turns and state.language != "en" and stays
    if is_theirs or (is_chosen() and state.language == spoken()):
        told = state.language  # these words do not speak against it, or may not
    language = told or (state.language if state.turns or stays else languages[0])
    occasions = [name for name in ("reception", "party") if change.has(name)]
    if change.has("meal"):
        occasions = ["meal"]
    concern = _concern(state, change)
    is_counted = numbers.guests is not None or change.kind == "quantity"
    ruled_out = change.denied if change.kind in ("complaint", "rude") else frozenset()
    asks_of_vegan = change.has("trait", "vegan") and change.is_question
    asks_of_vegan &= change.kind != "search"
    allergens = (*state.allergens, *(() if asks_of_vegan else change.allergens))
    return replace(
        state,
        language=language,
        denied=state.denied | ruled_out,
        allergens=tuple(dict.fromkeys(allergens)),
        care=concern,
        is_minor=state.is_minor or "under_age" in care.own,
        reacts=state.reacts | care.allergies,
        guests=numbers.guests or _bare_number(change) or state.guests,
        sober=_sober(state, change),
        hours=numbers.hours or state.hours,
        glasses=numbers.glasses or state.glasses,
        evenings=(numbers.evenings if is_counted else None) or state.evenings,
        occasion=occasions[0] if occasions else state.occasion,
    )


def _bare_number(change: Change) -> int | None:
    """The number of guests in a message that names a number alone: "make it 48"."""
    numbers = change.numbers
    if change.kind != "quantity" or numbers.has_price or numbers.hours or numbers.bottles:
        return None
    told = [int(word) for word in words(change.text) if word.isdecimal() and len(word) < 4]
    told = [] if numbers.sober else told
    return told[0] if len(told) == 1 and 1 < told[0] <= _MOST_GUESTS else None


def _concern(state: State, change: Change) -> Concern | None:
    """Why no alcohol is offered: what holds goes on, unless wine is wanted for somebody else.

    "Five drive", "half do not drink" tells of guests, not of who asks.
    """
    told, numbers = concern_of(change), change.numbers
    counts = numbers.guests is not None or change.has("ask", "quantity") or change.has("half")
    if told and told not in GRAVE and numbers.sober is not None:
        told = None if counts or state.act == "quantity" else told
    if (
        not told
        and not counts
        and numbers.sober is None
        and change.has("abstains", "yes")
        and not change.denied
    ):
        told = "medication"
    return told or state.care


def _sober(state: State, change: Change) -> float | None:
    """How many do not drink, or what share: groups add up, shares and corrections replace."""
    old, new = state.sober, change.numbers.sober
    if new is None or old is None:
        return old if new is None else new
    replaces = min(old, new) < 1 or change.has("replace") or change.numbers.guests is not None
    return new if replaces else old + new


def _questioned(state: State, change: Change) -> State:
    """A question of knowledge; a short one, or one of no topic, goes on with the one before."""
    told, asked = change.subjects, change.text
    is_own = is_likely(change.topics, SURE) or change.entities
    is_open = change.words <= _FEW_WORDS or not is_own
    if state.act_before == "knowledge" and is_open and not change.has("ask", "what"):
        asked = f"{state.asked} {change.text}"
        together = asked_for(topics_in(asked, parse(asked, state.language)))
        is_kind = change.words <= _FEW_WORDS and change.wishes.said == {"styles"}
        told = (is_kind and state.subjects) or together or told or state.subjects
    if state.act_before == "knowledge" and names_it(change):
        told = state.subjects
    is_again = not (is_own or change.wishes.said) and {*told} <= {*state.subjects}
    if state.act_before == "knowledge" and is_again:
        # What was just told is not told again, if another topic is near.
        told = tuple(each for each in asked_for(change.topics) if each not in told) or told
    traits = (each for each in (change.kind, *change.said("trait")) if each in kinds())
    of_kind = next((kinds()[each].topic for each in traits if kinds()[each].topic), "")
    if of_kind and not (told and is_own):
        told = (of_kind,)
    goes_on = asked != change.text and not change.wishes.said
    untold: dict[str, Any] = dict.fromkeys(SCALE_OF, ()) if change.has("copula") else {}
    topic = state.topic if goes_on else replace(change.wishes, **untold)
    names = state.names if goes_on else change.entities
    if not goes_on and change.has("adds") and state.context == "told":
        names = tuple(dict.fromkeys((*state.names, *names)))
    return replace(state, topic=topic, subjects=told, asked=asked, names=names)
