"""A talk folded into its state, message by message, from the first to the last. Pure.

Nothing is stored: the state is worked out again from the messages of each request.
"""

from dataclasses import replace
from typing import Final

from agent.care import NO_CARE, REACTIONS, Care, Concern, gravest
from agent.house_sommelier.acts import language_told, with_kind
from agent.house_sommelier.conversation import Conversation, Exchange
from agent.house_sommelier.data import kinds, profiles
from agent.house_sommelier.deciding import decide
from agent.house_sommelier.lexicon import grammar_stems, parse, stop_words, tokens
from agent.house_sommelier.merging import KIND, PLACE, favourite, planned, wished
from agent.house_sommelier.plan import is_composed
from agent.house_sommelier.reading import Change, Wishes, read
from agent.house_sommelier.state import GRAVE, State, about_itself, concepts, style_of
from agent.house_sommelier.topics import SURE, asked_for, is_likely, topics_in
from agent.i18n import is_chosen, spoken
from agent.text import pattern, words

_MOST_GUESTS: Final = 500
_FEW_WORDS: Final = 3
_SECTION: Final = pattern(r"(?m)^\*\*[0-9]+\. ")


def read_state(conversation: Conversation, care: Care | None = None) -> tuple[State, Change]:
    """The state after the last message of a conversation, and that message as a change.

    `care` is what is known of who wrote the last; in a group the others told of themselves.
    """
    known = care or NO_CARE
    state = State(care=gravest(known.held), reacts=known.allergies | known.reactions)
    for exchange in conversation.before:
        change = _read(exchange.request, state, NO_CARE if known.in_group else None)
        state = _answered(heard(state, change), exchange)
    change = _read(conversation.request, state, known if known.in_group else None)
    return heard(state, change), change


def _read(text: str, state: State, care: Care | None) -> Change:
    change = with_kind(read(text, state.language if state.turns else None), state.context)
    change = change if care is None else replace(change, care=care)
    ill_of = (state.reacts | change.care.reactions).intersection(REACTIONS)
    wishes = replace(
        change.wishes,
        styles=tuple(each for each in change.wishes.styles if each not in ill_of),
        colours=tuple(each for each in change.wishes.colours if each not in ill_of),
    )
    out = change.denied.union(("styles", each) for each in ill_of)
    return replace(change, wishes=wishes, denied=out) if ill_of else change


def _answered(state: State, exchange: Exchange) -> State:
    """`state` after the reply of an exchange."""
    ids = exchange.wine_ids
    is_choice = bool(ids) and (is_composed(state) or not set(ids) <= set(state.choice))
    sections = _SECTION.split(exchange.reply)[1:]
    return replace(
        state,
        context="wines" if ids or (state.act == "about" and state.choice) else "told",
        shown=ids or state.shown,
        choice=ids if is_choice else state.choice,
        first=state.first or ids,
        seen=tuple(dict.fromkeys((*state.seen, *ids))),
        told=dict(zip(ids, sections, strict=False)) if is_choice else state.told,
        focus=() if ids else _only_one(state, exchange.reply),
    )


def _only_one(state: State, reply: str) -> tuple[str, ...]:
    """The wine of the choice that a reply names, if it names one alone: "it" means that then."""
    labels = ((each, told.partition("**")[0].strip()) for each, told in state.told.items())
    found = tuple(each for each, label in labels if label and label in reply)
    return found if len(found) == 1 else ()


def heard(state: State, change: Change) -> State:
    """`state` after a message."""
    state = _with_facts(state, change)
    state = replace(state, swapped=(), instead=None)
    state = replace(state, pointed=_pointed(state, change), about=())
    act = decide(state, change)
    state = replace(state, act=act, act_before=state.act, turns=state.turns + 1)
    match act:
        case "about" | "pick":
            return replace(state, about=_about(state, change))
        case "knowledge":
            return _questioned(state, change)
        case "compare":
            return _compared(state, change)
        case "search" | "like" | "care":
            return wished(state, change)
        case "foods":
            return replace(state, topic=_with_topic(state, change.wishes))
        case _:
            return planned(state, change) if act == "quantity" else state


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
    ruled_out = change.denied if change.kind in ("complaint", "rude") else frozenset()
    asks_of_vegan = change.has("trait", "vegan") and change.is_question
    allergens = (*state.allergens, *(() if asks_of_vegan else change.allergens))
    return replace(
        state,
        language=language,
        denied=state.denied | ruled_out,
        allergens=tuple(dict.fromkeys(allergens)),
        care=concern,
        concerned=care.people if care.gravest else state.concerned,
        reacts=state.reacts | care.allergies | care.reactions | ({care.intolerance} - {""}),
        guests=numbers.guests or _bare_number(change) or state.guests,
        sober=_sober(state, change),
        hours=numbers.hours or state.hours,
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
    told, numbers = change.care.gravest, change.numbers
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
        told = "health"
    for_others = bool(change.care.beneficiaries - state.concerned) and state.care not in GRAVE
    return told or (None if for_others else state.care)


def _sober(state: State, change: Change) -> float | None:
    """How many do not drink, or what share: groups add up, shares and corrections replace."""
    old, new = state.sober, change.numbers.sober
    if new is None or old is None:
        return old if new is None else new
    replaces = min(old, new) < 1 or change.has("replace") or change.numbers.guests is not None
    return new if replaces else old + new


def _pointed(state: State, change: Change) -> tuple[str, ...]:
    """The ids of the wines that "the second one", "the Italian" or a producer's name means."""
    choice = state.choice
    if change.has("from_start"):
        return state.first[:1]
    if (change.has("swap") or change.has("refuse")) and change.wishes.order and state.prices:
        end = min if change.wishes.order == "cheapest" else max
        return (end(state.prices, key=lambda wine_id: state.prices[wine_id][0]),)
    places = [int(each) for each in change.said("ordinal")]
    # "The second red" counts among the reds.
    styles = {*change.wishes.styles}
    of_kind = tuple(each for each in choice if styles & {*style_of(state, each)})
    among = of_kind if of_kind and len(of_kind) >= max(places, default=0) else choice
    if found := [among[at - (at > 0)] for at in places if among and at <= len(among)]:
        return tuple(dict.fromkeys(found))
    if change.kind == "swap" and len(choice) > 1 and not change.definite:
        return choice[-1:]
    labels = {
        wine_id: {token.stem for token in tokens(told.partition("**")[0])} - stop_words("houses")
        for wine_id, told in state.told.items()
    }
    called = {each.stem for word in change.unknown for each in tokens(word) if len(each.stem) > 3}
    named = tuple(wine_id for wine_id, label in labels.items() if called & label)
    if named or not change.definite:
        return named if len(named) < len(choice) or len(choice) == 1 else ()
    kinds = {
        pair for pair in change.definite if pair[0] in ("grapes", "countries", "regions", "hue")
    }
    alike = tuple(
        wine_id
        for wine_id, told in state.told.items()
        if kinds and kinds & concepts(about_itself(told))
    )
    return alike if len(alike) == 1 < len(choice) else ()


def _about(state: State, change: Change) -> tuple[str, ...]:
    """The shown wines that a message asks about."""
    if change.has("ask", "compare"):
        return state.pointed if len(state.pointed) > 1 else state.choice[:2]
    several = (
        change.has("most")
        or change.has("trait", "total")
        or change.has("ask", "which")
        or bool(change.wishes.order)
        or grammar_stems("pronouns_of_several") & {each.stem for each in tokens(change.text)}
    )
    if state.pointed:
        return state.pointed
    if several or state.act == "pick":
        return state.choice
    return state.focus or state.shown


def _questioned(state: State, change: Change) -> State:
    """A question of knowledge; a short one, or one of no topic, goes on with the one before."""
    told, asked = change.subjects, change.text
    is_own = is_likely(change.topics, SURE) or change.entities
    is_open = change.words <= _FEW_WORDS or not is_own
    if state.act_before == "knowledge" and is_open and not change.has("ask", "what"):
        asked = f"{state.asked} {change.text}"
        together = asked_for(topics_in(asked, parse(asked, state.language).spans))
        told = together or told or state.subjects
    if not told and change.kind and kinds()[change.kind].topic:
        told = (kinds()[change.kind].topic,)
    goes_on = asked != change.text and not change.wishes.said
    topic = state.topic if goes_on else change.wishes
    return replace(state, topic=topic, subjects=told, asked=asked)


def _compared(state: State, change: Change) -> State:
    """What is compared, and which of it a message favours: "which is less tannic?"."""
    told = tuple(each for each in change.entities if each in profiles())[:2]
    old = tuple(
        each for each in (*state.wishes.grapes, *state.wishes.regions) if each in profiles()
    )
    compared = told if len(told) > 1 else state.compared or old[:2]
    return replace(
        state,
        compared=compared,
        favoured=favourite(compared, change) or (state.favoured if not told else ""),
        topic=replace(change.wishes, grapes=(), regions=(), countries=(), styles=()),
    )


def _with_topic(state: State, wishes: Wishes) -> Wishes:
    """The wishes of a message, or else of what was spoken of."""
    return (
        wishes
        if wishes.said & (KIND | PLACE)
        else state.topic
        if state.topic.said
        else state.wishes
    )
