"""Answers that show no wines: knowledge, comparisons, how many bottles. Pure."""

from collections.abc import Sequence
from typing import Final

from agent.house_sommelier.data import Build, Pairing, Profile, aromas, load, profiles, topics
from agent.house_sommelier.lexicon import stop_words, tokens
from agent.house_sommelier.reading import Change
from agent.house_sommelier.results import ListedWine
from agent.house_sommelier.searching import pairings_of
from agent.house_sommelier.state import State
from agent.house_sommelier.topics import offered
from agent.house_sommelier.verdicts import told_of, traits
from agent.house_sommelier.wording import both, either, say, style_in_words
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.text import Language, sentences, stem, words

_WITHOUT_BRACKETS: Final = str.maketrans("[]", "()")
_MOST_QUOTED: Final = 420
_MOST_ASKED: Final = 200
_STRUCTURE: Final = ("body", "tannin", "acidity")


def asked_of_library(state: State, change: Change) -> str:
    """A question as the English library is asked it: its topics' articles, and its own words."""
    told = (each for each in tokens(change.text) if each.is_word and each.stem not in stop_words())
    own = change.text if state.language == "en" else " ".join(each.written for each in told)
    about = (_article(name).replace("-", " ") for name in state.subjects)
    return " ".join(filter(None, (*about, own)))[:_MOST_ASKED] or change.text[:_MOST_ASKED]


def explain(state: State, change: Change, content: str) -> SommelierResponse:
    """The short answer and what the library says of just that; else an honest no."""
    language = state.language
    entity = _of_entity(change, language)
    if change.has("opinion") and (entity or (state.topic.said and not state.subjects)):
        return _opinion(change, entity, language)
    short = _asked_of_kind(change, language) or "\n\n".join(
        topics(language)[name].answer for name in state.subjects
    )
    if not short and not change.unknown:
        short = entity
    passage = _passage(content, state, change)
    if passage:
        return _quoted(passage, short, language)
    if short:
        again = state.subjects and not change.subjects
        return inform(short, say("knowledge_more" if again else "knowledge_closing", language))
    near = [f"“{topics(language)[name].question}”" for name in offered(change.topics)]
    told = say("near", language, near=either(near, language)) if near else ""
    return inform(say("knowledge", language), entity or told)


def _article(name: str) -> str:
    """The article of the starter library that tells more of a topic; empty if none does."""
    return str(load("articles").get(name, ""))


def _opinion(change: Change, told: str, language: Language) -> SommelierResponse:
    """What the house thinks of the grape or region that is asked about, or was before."""
    if not told:
        return inform(say("opinion_more", language))
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
    return _told(named, language) if named else ""


def _asked_of_kind(change: Change, language: Language) -> str:
    """How wine of the grape or region that a question names is served or kept, if that is asked."""
    named, asked = _named(change), [each for each in traits(change) if each in load("serving")]
    if not named or not asked:
        return ""
    build = {scale: getattr(named.profile, scale) for scale in _STRUCTURE}
    wine = ListedWine(wine_id=named.name, name=named.name, style=named.profile.colour, **build)
    return " ".join(told_of(wine, each, change, language) for each in asked)


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
    """Two grapes or regions held against each other, and which of them is more to a wish."""
    language = state.language
    first, second = (profiles()[name] for name in state.compared)
    if first.name == second.name:
        return explain(state, change, "")
    verdict = _verdict(state, change, (first, second))
    is_new = len([each for each in change.entities if each in profiles()]) > 1
    told = [_told(each, language) for each in (first, second)] if is_new or not verdict else []
    closing = say("compare_closing", language)
    return inform("\n\n".join(filter(None, (verdict, *told))), closing)


def _told(profile: Profile, language: Language) -> str:
    """`Zweigelt: red, light, soft tannins, fresh acidity; cherry and pepper.`"""
    build = profile.profile
    levels = [(scale, getattr(build, scale)) for scale in _STRUCTURE]
    structure = (
        say(f"level_{scale}_{level}", language) for scale, level in levels if level != "none"
    )
    made = say(f"made_{profile.made}", language) if profile.made else ""
    grapes = say("from_grapes", language, grapes=both(profile.of, language)) if profile.of else ""
    kind = (style_in_words(build.colour, language), *structure, grapes, made)
    parts = ", ".join(filter(None, kind))
    scents = both((aromas()[note][language] for note in profile.notes), language)
    home = say("at_home", language, places=profile.home)
    return f"{profile.name}: {parts}; {scents}. {home}"


def _verdict(state: State, change: Change, pair: Sequence[Profile]) -> str:
    """Which of two is more of what was asked: a taste, or a dish."""
    language = state.language
    for most in change.said("most"):
        scale, _, end = most.partition(":")
        if scale not in _STRUCTURE:
            continue
        low, high = sorted(pair, key=lambda each: each.profile.rank(scale))
        if low.profile.rank(scale) == high.profile.rank(scale):
            return say("compare_equal", language, first=pair[0].name, second=pair[1].name)
        first, second = (high, low) if end == "high" else (low, high)
        return say(f"compare_{scale}_{end}", language, first=first.name, second=second.name)
    if change.wishes.dishes:
        return _stance(state, change, pair)
    return ""


def _stance(state: State, change: Change, pair: Sequence[Profile]) -> str:
    """Which of two suits a dish better, and why."""
    wanted = pairings_of(change.wishes.dishes)[0]
    chosen = max(pair, key=lambda each: _fit(each.profile, wanted))
    dish = both(change.wishes.named_dishes, state.language)
    told = say("compare_dish", state.language, first=chosen.name, dish=dish)
    return f"{told} {wanted[state.language]}"


def _fit(build: Build, wanted: Pairing) -> int:
    return (
        2 * (build.body in wanted.bodies)
        + (build.tannin in wanted.tannins)
        + (build.acidity in wanted.acidities)
    )
