"""Answers that show no wines: knowledge, comparisons, how many bottles. Pure."""

from collections.abc import Sequence
from typing import Final

from agent.house_sommelier.data import Profile, aromas, kinds, load, profiles, topics
from agent.house_sommelier.deciding import names_it
from agent.house_sommelier.lexicon import stop_words, tokens
from agent.house_sommelier.reading import Change
from agent.house_sommelier.searching import pairings_of
from agent.house_sommelier.state import State
from agent.house_sommelier.topics import CERTAIN, offered
from agent.house_sommelier.verdicts import told_of, traits
from agent.house_sommelier.wines import ListedWine
from agent.house_sommelier.wording import both, either, joined, say, style_in_words
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.text import Language, sentences, stem, words

_WITHOUT_BRACKETS: Final = str.maketrans("[]", "()")
_MOST_QUOTED: Final = 420
_MOST_ASKED: Final = 200
_OF_AGE: Final = frozenset({"drinking_window", "old_bottle"})
"""Topics of how old a wine may be."""
_FEW_WORDS: Final = 3
_STRUCTURE: Final = ("body", "tannin", "acidity")


def asked_of_library(state: State, change: Change) -> str:
    """A question as the English library is asked it: its topics' articles, and its own words."""
    told = (each for each in tokens(change.text) if each.is_word and each.stem not in stop_words())
    own = change.text if state.language == "en" else " ".join(each.written for each in told)
    about = (_article(name).replace("-", " ") for name in state.subjects)
    return joined(*about, own)[:_MOST_ASKED] or change.text[:_MOST_ASKED]


def explain(state: State, change: Change, content: str) -> SommelierResponse:
    """The short answer and what the library says of just that; else an honest no."""
    language = state.language
    entity = _of_entity(change, language)
    is_opinion = change.has("opinion") or change.kind == "fits"
    if is_opinion and entity:
        return _opinion(change, entity, language)
    of_kind = _asked_of_kind(state, change)
    is_enough = of_kind and (change.words <= _FEW_WORDS or names_it(change))
    subjects = _OF_AGE & {*state.subjects} if _is_of_year(state, change) else state.subjects
    short = joined(of_kind, "" if is_enough else of_topics([*subjects], language), by="\n\n")
    if not short and not change.unknown:
        short = entity
    passage = None if names_it(change) and of_kind else _passage(content, state, change)
    if passage:
        return _quoted(passage, short, language)
    if short:
        again = state.subjects and not change.subjects
        return inform(short, say("knowledge_more" if again else "knowledge_closing", language))
    near = [topics(language)[name] for name in offered(change.topics)]
    if _grapes_told(change):
        return inform(entity, say("knowledge_closing", language))
    if not near or entity:
        return inform(say("knowledge", language), entity)
    questions = either((f"“{each.question}”" for each in near), language)
    return inform(say("near", language, near=questions), near[0].answer)


def of_topics(names: Sequence[str], language: Language) -> str:
    """The short answers to topics, each a paragraph."""
    return "\n\n".join(topics(language)[name].answer for name in names)


def _article(name: str) -> str:
    """The article of the starter library that tells more of a topic; empty if none does."""
    return str(load("articles").get(name, ""))


def _opinion(change: Change, told: str, language: Language) -> SommelierResponse:
    """What the house thinks of the grape or region that is asked about, or was before."""
    name = next(each for each in change.entities if each in profiles())
    return inform(told, say("opinion", language, name=name))


def _quoted(passage: tuple[str, str], short: str, language: Language) -> SommelierResponse:
    """What the library says, behind the short answer; in other languages without one."""
    path, quoted = passage
    if language == "en" or not short:
        lead = f"{short} {say('passage', language)}".strip()
        return inform(f"{lead} [{path}]\n> {quoted}")
    return inform(f"{short} [{path}]", say("library_closing", language))


def _of_entity(change: Change, language: Language) -> str:
    """What is known of the grape or region that a question names; empty if it names none."""
    named = _named(change)
    if named is None:
        return ""
    grapes = _grapes_told(change)
    verdict = say("yes" if grapes <= {*named.of} else "no", language) if grapes else ""
    return f"{verdict} {_told(named, language)}".strip()


def _grapes_told(change: Change) -> set[str]:
    """The grapes that a place is said to be of: "Chablis is Sauvignon, isn't it?"."""
    named = _named(change)
    is_place = named is not None and named.of and named.name not in change.wishes.grapes
    return {*change.wishes.grapes} if is_place else set()


def _asked_of_kind(state: State, change: Change) -> str:
    """How the kind of wine that a question names is served or kept, if that is asked."""
    named, styles = _named(change), change.wishes.styles
    told, of_topic = _asked_traits(state, change)
    if named and _is_of_year(state, change):
        called = joined(*change.wishes.text, change.numbers.years[0])
        return told_of(_bottle(named, called), "ageing", change, state.language)
    asked = [each for each in dict.fromkeys(told) if each in (*load("serving"), "ageing")]
    is_of_another = bool(state.subjects) and not of_topic
    is_bare = len(styles) == 1 and change.words <= _FEW_WORDS
    if not asked or is_of_another or not (named or is_bare):
        return ""
    of_style = ListedWine(wine_id=styles[0], name=styles[0], style=styles[0]) if styles else None
    wine = _bottle(named) if named else of_style
    if wine is None:
        return ""
    return " ".join(told_of(wine, each, change, state.language) for each in asked)


def _asked_traits(state: State, change: Change) -> tuple[list[str], bool]:
    """The traits that a question asks for, and whether its topic is one of those."""
    subject = state.subjects[:1]
    of_topic = [each.marks for each in kinds().values() if (each.topic,) == subject]
    marks = (mark.partition(":")[2] for each in of_topic for mark in each)
    return [*traits(change), *marks], bool(of_topic)


def _is_of_year(state: State, change: Change) -> bool:
    """Whether a question is of a bottle of some year: "is my 1998 Muscadet still drinkable?"."""
    is_named = bool(change.numbers.years and _named(change)) and not change.has("ask", "choose")
    return is_named and {*_asked_traits(state, change)[0]} <= {"ageing", "keeps"}


def _bottle(profile: Profile, called: str = "") -> ListedWine:
    """A bottle of this kind of wine; `called` is what else is known of its label."""
    build = {scale: getattr(profile.profile, scale) for scale in _STRUCTURE}
    name = joined(profile.name, called)
    return ListedWine(wine_id=name, name=name, style=profile.profile.colour, **build)


def _named(change: Change) -> Profile | None:
    return next((profiles()[each] for each in change.entities if each in profiles()), None)


def inform(intro: str, closing: str = "") -> SommelierResponse:
    """An answer that shows no wines."""
    return SommelierResponse(response_type="informational", intro=intro, closing=closing)


def _passage(content: str, state: State, change: Change) -> tuple[str, str] | None:
    """The path and the best sentences of an excerpt that is about just what is asked.

    They are of the topic's own article, or hold every telling word of the question.
    """
    asked = _stems(change.text) - _stems(" ".join(stop_words()))
    parted = (part.removeprefix("[").partition("]: ") for part in content.split("\n\n["))
    articles = tuple(f"{_article(name)}." for name in state.subjects if _article(name))
    for path, _, text in parted:
        quoted = _best(text.translate(_WITHOUT_BRACKETS), asked)
        holds = bool(asked) and asked <= _stems(quoted)
        if quoted and (holds or any(each in path for each in articles)):
            return path, quoted
    return None


def _stems(text: str) -> set[str]:
    return {stem(word, "en") for word in words(text)}


def _best(text: str, asked: set[str]) -> str:
    """The sentence that holds most of what was asked, and the next two if there is room."""
    parts = (part for part in text.split("\n") if not part.startswith("#"))
    plain = [each for part in parts for each in sentences(part)]
    if not plain:
        return ""
    at = max(range(len(plain)), key=lambda place: (len(asked & _stems(plain[place])), -place))
    quoted = plain[at]
    for following in plain[at + 1 : at + 3]:
        if len(quoted) + len(following) < _MOST_QUOTED:
            quoted = f"{quoted} {following}"
    return quoted[: _MOST_QUOTED * 2]


def compare(state: State, change: Change) -> SommelierResponse:
    """Grapes or regions held against each other, and which of them is more to a wish."""
    language = state.language
    known = [profiles()[name] for name in state.names if name in profiles()]
    if len(known) < 2:
        return explain(state, change, "")
    verdict = _verdict(state, change, known)
    sure = (each.name for each in change.topics if each.share >= CERTAIN)
    topic = "" if verdict else of_topics(tuple(sure), language)
    is_told = not topic and (len(change.entities) > 1 or not verdict or change.has("ask", "why"))
    told = [_told(each, language) for each in known] if is_told else [topic]
    closing = say("compare_closing", language)
    return inform(joined(verdict, *told, by="\n\n"), closing)


def said_before(state: State, change: Change) -> SommelierResponse:
    """What of a topic that was just told answers the next question; or that there is no more."""
    language = state.language
    asked = {stem(word, language) for word in words(change.text)} - stop_words()
    told = [each for name in state.subjects for each in sentences(topics(language)[name].answer)]
    shared = {each: len(asked & {stem(word, language) for word in words(each)}) for each in told}
    best = max(told, key=shared.__getitem__, default="")
    if not shared.get(best):
        return inform(say("all_told", language))
    return inform(best, say("knowledge_more", language))


def _told(profile: Profile, language: Language) -> str:
    """`Zweigelt: red, light, soft tannins, fresh acidity; cherry and pepper.`"""
    made = say(f"made_{profile.made}", language) if profile.made else ""
    grapes = say("from_grapes", language, grapes=both(profile.of, language)) if profile.of else ""
    parts = joined(_structure(profile, language), grapes, made, by=", ")
    scents = both((aromas()[note][language] for note in profile.notes), language)
    home = say("at_home", language, places=profile.home)
    return f"{profile.name}: {parts}; {scents}. {home}"


def _structure(profile: Profile, language: Language) -> str:
    """`red, light, soft tannins, fresh acidity`."""
    build = profile.profile
    levels = [(scale, getattr(build, scale)) for scale in _STRUCTURE]
    told = (say(f"level_{scale}_{level}", language) for scale, level in levels if level != "none")
    return ", ".join((style_in_words(build.colour, language), *told))


def _verdict(state: State, change: Change, known: Sequence[Profile]) -> str:
    """Which of these is more of what was asked: a taste, a dish, the house's own choice."""
    language = state.language
    best = next((each for each in known if each.name == state.favoured), None)
    if ends := change.said("most"):
        return _by_scale(ends[0], known, best, language)
    asks_apart = change.has("ask", "compare") and not change.wishes.dishes
    wishes = change.wishes if change.wishes.dishes else state.topic
    if best and wishes.dishes and not asks_apart:
        dish = both(wishes.named_dishes, language)
        told = say("compare_dish", language, first=best.name, dish=dish)
        return f"{told} {pairings_of(wishes.dishes)[0][language]}"
    if best and change.kind == "pick":
        return say("favourite", language, name=best.name, told=_structure(best, language))
    return ""


def _by_scale(most: str, known: Sequence[Profile], best: Profile | None, language: Language) -> str:
    """Which of these is at an end of a scale; where nothing tells, that is said."""
    scale, _, end = most.partition(":")
    names = [each.name for each in known]
    if scale not in _STRUCTURE:
        return say("compare_unknown", language, names=both(names, language))
    is_equal = best is None or len({each.profile.rank(scale) for each in known}) == 1
    first = names[0] if is_equal or best is None else best.name
    rest = both((each for each in names if each != first), language)
    key = "compare_equal" if is_equal else f"compare_{scale}_{end}"
    return say(key, language, first=first, second=rest)
