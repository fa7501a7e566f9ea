"""What is on the table of a talk, and what of it a message means and wants. Pure.

There lie the wines of the choice or, where the last reply showed none, the grapes and places that
it spoke of. A message points at them by place, name, kind, "each" or "the other"; what it leaves
out of a question is what was asked before.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Final

from agent.classifier import Meanings
from agent.house_sommelier.data import load, profiles
from agent.house_sommelier.lexicon import grammar_stems, parse, stop_words, tokens
from agent.house_sommelier.reading import NO_WISHES, Change, Wishes, entities_in
from agent.house_sommelier.searching import fit, pairings_of
from agent.house_sommelier.state import State, about_itself, concepts, style_of
from agent.text import words

_SCALES: Final = ("body", "tannin", "acidity")
_ASKING: Final = frozenset({"trait", "most", "cue", "swap", "like", "refuse", "more"})
"""Marks that say what is wanted of a wine."""
_OPEN: Final = frozenset({"", "unclear", "search", "off_topic", "yes", "knowledge", "stock"})
"""Kinds that a message seems to be of which says nothing by itself."""
_POINTING: Final = _OPEN | frozenset("total take details price quantity pick other help".split())
_CHOOSABLE: Final = frozenset({"dishes", "text", "name", "order"})
_FEW_WORDS: Final = 6
_ONLY_POINTING: Final = 4
_CHOOSING: Final = frozenset({"pick", "most", "versus"})
_COMPARING: Final = frozenset({"cheaper", "fits", "most", "like", "opinion"})
_POINTERS: Final = frozenset("ordinal adds joined deictic copula number cue".split())
_MOST_NAMES: Final = 4
_MOST_READ: Final = 400
_KINDS: Final = frozenset({"grapes", "countries", "regions", "hue"})


@cache
def _meanings() -> Meanings:
    return Meanings(load("follow"))


def refers(change: Change) -> frozenset[str]:
    """How a message points at what is on the table, and what it wants of that."""
    return frozenset().union(*(_meanings().of(word) for word in words(change.text)))


def is_prose(state: State) -> bool:
    """Whether grapes or places lie on the table, not wines."""
    return state.context == "told" and len(state.names) > 1


def labels(state: State) -> tuple[str, ...]:
    """What lies on the table, by name; nothing where there is one thing alone."""
    found = state.names if is_prose(state) else tuple(filter(None, state.called.values()))
    return found if len(found) > 1 else ()


def completed(state: State, change: Change, said: Change) -> Change:
    """A message with what it leaves out; `said` is the same before its kind was told."""
    meant = refers(change)
    is_long = change.words > _FEW_WORDS or change.numbers.has_price or change.care.gravest
    is_bare = not said.wishes.said - _CHOOSABLE and not change.denied
    found = _of_names(state, change, said) if is_prose(state) else None
    if found or is_long or not is_bare:
        return found or change
    asks = any(name in _ASKING and value != "other" for name, value in said.marks)
    if not asks and change.kind in _OPEN and {"choose", "unsure"} & meant and state.turns:
        return _chosen(change, is_open=not labels(state))
    is_pointer = change.words <= _ONLY_POINTING and {name for name, _ in said.marks} <= _POINTERS
    if not labels(state) or asks or not (is_pointer or change.kind in _POINTING):
        return change
    return _of_the_table(state, change, meant) or _as_asked_before(state, change, said)


def _of_names(state: State, change: Change, said: Change) -> Change | None:
    """A message that asks which of some grapes or places is best, or costs less."""
    if said.wishes.said - _CHOOSABLE or change.denied or said.numbers.has_price:
        return None
    if change.wishes.order or change.has("cue", "cheaper") or change.has("trait", "price"):
        only = frozenset({"grapes", "regions"})
        wishes = replace(change.wishes, order="cheapest", only=only)
        marks = (*change.marks, ("one_of_each", "yes"))
        return replace(change, kind="search", wishes=wishes, marks=marks)
    is_open = change.kind in _COMPARING or (change.kind in _POINTING and said.unknown)
    asks = is_open and said.has("ask", "which") and not said.wishes.dishes
    return _chosen(change, is_open=False) if asks else None


def _of_the_table(state: State, change: Change, meant: frozenset[str]) -> Change | None:
    """A message that says by a word what it wants of the table; None for any other."""
    if {"again", "explain"} & meant:
        return replace(change, kind="details", marks=(*change.marks, ("more", "yes")))
    if is_prose(state) and "each" in meant:
        marks = (*change.marks, ("one_of_each", "yes"))
        return replace(change, kind="search", wishes=NO_WISHES, marks=marks)
    if {"each", "foods"} <= meant:
        return replace(change, kind="foods", marks=(*change.marks, ("trait", "foods")))
    return None


def _as_asked_before(state: State, change: Change, said: Change) -> Change:
    """A message that only points at wines: it asks of them what was asked before."""
    asked, is_other = state.asked_of, "other" in refers(change)
    if not (said.has("ordinal") or is_other or pointed(state, said)):
        return change
    if not asked.kind:
        return replace(change, kind="") if is_other and change.kind == "take" else change
    if asked.kind in _CHOOSING:
        return replace(change, kind="details", marks=(*said.marks, ("more", "yes")))
    kept = tuple(each for each in asked.marks if each[0] not in _POINTERS)
    own = tuple(each for each in said.marks if each[0] == "ordinal")
    return replace(change, kind=asked.kind, wishes=asked.wishes, marks=(*kept, *own))


def _chosen(change: Change, *, is_open: bool) -> Change:
    """A message that leaves the choice to the house; one wine where nothing lies on the table."""
    wishes = replace(change.wishes, name="", text=())
    marks = (*change.marks, ("ask", "best"))
    count = 1 if is_open else change.count
    return replace(change, kind="pick", wishes=wishes, marks=marks, count=count, purpose=())


def chooses(state: State, change: Change) -> bool:
    """Whether one of the wines on the table is to be named: "which would you take with brie?"."""
    is_for = change.kind == "pick" or bool(change.wishes.dishes)
    is_for &= change.has("ask", "which") and not change.has("ask", "choose")
    is_scaled = change.has("most") or change.wishes.order
    among = change.has("ask", "which") or len(change.said("ordinal")) > 1
    is_for |= change.kind == "most" and not is_scaled and among
    asks = is_for or change.has("ask", "best")
    is_open = not change.wishes.said - _CHOOSABLE and not change.denied
    return asks and is_open and not is_prose(state) and len(state.choice) > 1


def pointed(state: State, change: Change) -> tuple[str, ...]:
    """The ids of the wines that "the second one", "the Italian" or a producer's name means."""
    choice, meant = state.choice, refers(change)
    if change.has("from_start"):
        return state.first[:1]
    if (change.has("swap") or change.has("refuse")) and change.wishes.order and state.prices:
        end = min if change.wishes.order == "cheapest" else max
        return (end(state.prices, key=lambda wine_id: state.prices[wine_id][0]),)
    places = [int(each) for each in change.said("ordinal")]
    if places and "before" in meant:
        choice = state.first
    # "The second red" counts among the reds.
    styles = {*change.wishes.styles}
    of_kind = tuple(each for each in choice if styles & {*style_of(state, each)})
    among = of_kind if of_kind and len(of_kind) >= max(places, default=0) else choice
    if found := [among[at - (at > 0)] for at in places if among and at <= len(among)]:
        is_rest = "other" in meant and change.has("swap")
        return tuple(each for each in choice if (each in found) != is_rest)
    told = next(
        (each for each in (state.about, state.focus, state.shown) if _is_part(each, choice)), ()
    )
    if "other" in meant and told and change.kind in (state.asked_of.kind, "details"):
        return tuple(each for each in choice if each not in told)
    return _called(state, change)


def speaks_of_it(text: str) -> bool:
    """Whether a question begins as one of what was shown does: "and does it…", "hat der…"."""
    said = [each.stem for each in tokens(text)]
    skipped, verbs = grammar_stems("skipped_before_it"), grammar_stems("verbs_of_it")
    at = next((at for at, stem in enumerate(said) if stem in verbs or stem not in skipped), -1)
    behind = said[at + 1 : at + 2]
    return at >= 0 and said[at] in verbs and not grammar_stems("there").intersection(behind)


def _is_part(some: Sequence[str], choice: Sequence[str]) -> bool:
    return 0 < len(some) < len(choice)


def _called(state: State, change: Change) -> tuple[str, ...]:
    """The wines of the choice that a message calls by a word of their name, or by their kind."""
    names = {
        wine_id: {token.stem for token in tokens(name)} - stop_words("houses")
        for wine_id, name in state.called.items()
    }
    said = {each.stem for word in change.unknown for each in tokens(word) if len(each.stem) > 3}
    named = tuple(wine_id for wine_id, label in names.items() if said & label)
    if named or not change.definite:
        return named if len(named) < len(state.choice) or len(state.choice) == 1 else ()
    kinds = {pair for pair in change.definite if pair[0] in _KINDS}
    alike = tuple(
        wine_id
        for wine_id, told in state.told.items()
        if kinds and kinds & concepts(about_itself(told))
    )
    return alike if _is_part(alike, state.choice) else ()


def asked_about(state: State, change: Change) -> tuple[str, ...]:
    """The wines on the table that a message asks about."""
    if change.has("ask", "compare"):
        return state.pointed if len(state.pointed) > 1 else state.choice[:_MOST_NAMES]
    several = (
        any(map(change.has, ("most", "more")))
        or change.has("trait", "total")
        or change.has("ask", "which")
        or bool(change.wishes.order)
        or "each" in refers(change)
        or grammar_stems("pronouns_of_several") & {each.stem for each in tokens(change.text)}
    )
    # "Which do I open first?" points at none of them.
    if len(state.pointed) > (state.act == "pick"):
        return state.pointed
    return state.choice if several or state.act == "pick" else state.focus or state.shown


def named_in(state: State, reply: str) -> tuple[str, ...]:
    """The wine of the choice that a reply names, if it names one alone: "it" means that then."""
    first = reply.partition("\n\n")[0]
    found = tuple(each for each, name in state.called.items() if name and name in first)
    return found if len(found) == 1 else ()


@lru_cache(128)
def spoken_of(reply: str) -> tuple[str, ...]:
    """The grapes and places that the beginning of a reply speaks of, if they are few."""
    found = entities_in(parse(reply[:_MOST_READ]).spans)
    return found if len(found) <= _MOST_NAMES else ()


def meant_of_names(state: State, change: Change) -> tuple[str, ...]:
    """The grapes or places on the table that a message means; all of them if it does not tell."""
    places = [int(each) for each in change.said("ordinal")]
    found = tuple(state.names[at - (at > 0)] for at in places if at <= len(state.names))
    if not found and state.favoured and "other" in refers(change):
        return tuple(each for each in state.names if each != state.favoured)
    best = favourite(state, change) or state.favoured
    return found or ((best,) if best and "each" not in refers(change) else state.names)


def favourite(state: State, change: Change) -> str:
    """Which grape or place on the table comes out by a scale, for a dish, or as the softest."""
    known = [profiles()[name] for name in state.names if name in profiles()]
    if len(known) < 2:
        return ""
    for most in change.said("most"):
        scale, _, end = most.partition(":")
        best = max if end == "high" else min
        known_scale = scale in _SCALES
        return best(known, key=lambda each: each.profile.rank(scale)).name if known_scale else ""
    if dishes := change.wishes.dishes or state.topic.dishes:
        wanted = pairings_of(dishes)[0]
        return max(known, key=lambda each: fit(each.profile, wanted)).name
    is_asked = change.kind == "pick" or change.has("ask", "best")
    return min(known, key=lambda each: each.profile.rank("tannin")).name if is_asked else ""


def compared(state: State, change: Change) -> State:
    """What is compared, and which of it a message favours: "which is less tannic?"."""
    told = change.entities[:_MOST_NAMES]
    is_new = len(told) > 1
    state = replace(state, names=told if is_new else state.names)
    dishes = change.wishes if change.wishes.dishes or is_new else state.topic
    bare = replace(dishes, grapes=(), regions=(), countries=(), styles=())
    state = replace(state, topic=bare)
    return replace(state, favoured=favourite(state, change) or ("" if is_new else state.favoured))


def of_names(names: Sequence[str]) -> Wishes:
    """The wishes for wine of grapes and places on the table."""
    regions = tuple(each for each in names if not _is_grape(each))
    return Wishes(regions=regions, grapes=tuple(each for each in names if each not in regions))


def _is_grape(name: str) -> bool:
    known = profiles().get(name)
    return known is not None and bool(known.like)
