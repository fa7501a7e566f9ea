"""Answers that show no wines: knowledge, comparisons, how many bottles. Pure."""

from collections.abc import Sequence
from typing import Final

from agent.house_sommelier.data import Build, Pairing, Profile, aromas, profiles, subjects
from agent.house_sommelier.lexicon import stop_words, tokens
from agent.house_sommelier.reading import Change
from agent.house_sommelier.searching import pairings_of
from agent.house_sommelier.state import State
from agent.house_sommelier.wording import both, say, style_in_words
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.text import Language, sentences, stem, words

_WITHOUT_BRACKETS: Final = str.maketrans("[]", "()")
_MOST_QUOTED: Final = 420
_LEAST_SHARE: Final = 0.6
_MOST_ASKED: Final = 200
_TASTES: Final = ("sweetness", "tannins", "acidities", "bodies")
_STRUCTURE: Final = ("body", "tannin", "acidity")


def subject_of(state: State, change: Change) -> str:
    """The subject that a question is about; empty if no short answer is known."""
    before = subjects().get(state.subject)
    told = change.has("subject") or change.has("symptom") or change.has("trait")
    if before and before.about.startswith("trait:") and change.has("adds") and not told:
        return state.subject
    explained = {subject.about: name for name, subject in subjects().items() if subject.about}
    # "And is that always sweet?" goes on with what was asked before.
    goes_on = bool(before) and state.act_before == "knowledge" and change.is_question
    slots = [] if goes_on else [f"slot:{each}" for each in _TASTES if each in change.wishes.said]
    named = (
        *change.said("symptom"),
        *change.said("subject"),
        *(explained.get(f"trait:{each}", "") for each in change.said("trait")),
        *("_".join(words(each)) for each in change.entities),
        *(explained.get(each, "") for each in slots),
        *(explained.get(f"style:{each}", "") for each in change.wishes.styles),
    )
    return next((name for name in named if name in subjects()), "")


def asked_of_library(state: State, change: Change) -> str:
    """A question as the English library is asked it; one that goes on with its subject before."""
    subject = subject_of(state, change) or _before(state, change)
    told = (each for each in tokens(change.text) if each.is_word and each.stem not in stop_words())
    own = " ".join(change.entities or (each.written for each in told))
    if state.language == "en":
        own = change.text
    is_own = state.language == "en" and subject == subject_of(state, change)
    about = subjects()[subject].article.replace("-", " ") if subject and not is_own else ""
    return " ".join(filter(None, (about, own)))[:_MOST_ASKED] or change.text[:_MOST_ASKED]


def _before(state: State, change: Change) -> str:
    """The subject of the question before, if this one goes on with it."""
    return (
        state.subject if state.act_before == "knowledge" and not subject_of(state, change) else ""
    )


def explain(state: State, change: Change, content: str) -> SommelierResponse:
    """The short answer and the passage of the library; an honest sentence if there is neither."""
    subject, language = subject_of(state, change), state.language
    entity = _of_entity(change, language)
    if change.has("opinion") and (entity or (state.topic.said and not subject)):
        return _opinion(change, entity, language)
    short = subjects()[subject][language] if subject else entity
    again = _before(state, change)
    passage = _passage(content, subject or again, state, change)
    if passage:
        return _quoted(passage, short, language)
    if change.has("fact"):
        return inform(say("knowledge", language), entity)
    if short:
        return inform(short, say("knowledge_closing", language))
    if again:
        return inform(subjects()[again][language], say("knowledge_more", language))
    return inform(say("knowledge", language))


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
    named = next((profiles()[each] for each in change.entities if each in profiles()), None)
    return _told(named, language) if named else ""


def inform(intro: str, closing: str = "") -> SommelierResponse:
    """An answer that shows no wines."""
    return SommelierResponse(response_type="informational", intro=intro, closing=closing)


def _passage(content: str, subject: str, state: State, change: Change) -> tuple[str, str] | None:
    """The path and the best sentences of the best excerpt; None if none is about the question."""
    article = subjects()[subject].article if subject else ""
    asked = {stem(word, "en") for word in words(asked_of_library(state, change))}
    asked -= {stem(word, "en") for word in stop_words()}
    terms = {
        stem(word, "en") for each in (*change.unknown, *change.entities) for word in words(each)
    }
    parted = (part.removeprefix("[").partition("]: ") for part in content.split("\n\n["))
    found = [(path, text.translate(_WITHOUT_BRACKETS)) for path, _, text in parted if text]
    if article:
        found = [each for each in found if f"{article}." in each[0]] or found
    scored = [(*_best(text, asked), path) for path, text in found]
    if not scored or not asked:
        return None
    share, quoted, path = max(scored, key=lambda each: each[0])
    # What is asked by a word that nothing here knows is answered only by a passage with that word.
    holds = subject_of(state, change) or terms <= {stem(word, "en") for word in words(quoted)}
    is_enough = share >= _LEAST_SHARE or (bool(article) and f"{article}." in path)
    return (path, quoted) if quoted and holds and is_enough else None


def _best(text: str, asked: set[str]) -> tuple[float, str]:
    """How much of what was asked the best sentence and its next hold, and both of them."""
    plain = [
        each for part in text.split("\n") if not part.startswith("#") for each in sentences(part)
    ]
    if not plain or not asked:
        return 0.0, ""
    hits = [len(asked & {stem(word, "en") for word in words(each)}) for each in plain]
    at = max(range(len(plain)), key=lambda place: (hits[place], -place))
    quoted = plain[at]
    for following in plain[at + 1 : at + 3]:
        if len(quoted) + len(following) < _MOST_QUOTED:
            quoted = f"{quoted} {following}"
    if hits[at] < min(2, len(asked)):
        return 0.0, quoted
    whole = len(asked & {stem(word, "en") for word in words(text)})
    return whole / len(asked) + hits[at] / 10, quoted[: _MOST_QUOTED * 2]


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
