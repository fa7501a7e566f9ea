"""What a case came to, held against what was expected: one score from 0 to 1 a metric.

Pure. Of a conversation an evaluator gets what was observed and what was expected, and returns a
`Mark`, or None when the metric does not apply; `docs/evaluation.md` says what each metric means.
Quotes are marked at the end of this file, by the raw response of the model.
"""

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from agent.documents.passages import Chunk
from agent.documents.quotes import MAX_SNIPPETS, QuotesAnswer, Snippet, located
from agent.documents.verbatim import verbatim
from agent.evals.dataset import Conversation, Expectation, Question
from agent.sommelier.sommelier_prompts import SommelierResponse
from agent.sommelier.wine import Kind, Wine, folded, in_euros, names
from agent.text import fold, language_of, pattern, words
from agent.turn import NOBODY, Person
from agent.turn_trace import Outcome, invented_attempts

DENIALS: Final = frozenset("no not without never zero".split())
DENIED_WITHIN: Final = 3
"""How many words after a denial it still denies: "without any obvious oak"."""
ANYBODYS: Final = frozenset(
    """red white rose pink orange rouge blanc rosso bianco rosato tinto blanco rosado negre branco
    brut nature dry sec demi extra sekt cremant cava prosecco reserva riserva reserve crianza roble
    gran grand grande vin vino wine cru premier 1er classic classico superiore estate cuvee nv
    di de la le del du des aoc doc docg""".split()
)
"""Words of wines' names that many wines have."""
CLAUSE: Final = pattern(r"(?i)[.,;:!?()–—]| but | with ")
DASHES: Final = pattern(r"\s*[-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]\s*")
UNSEEN: Final = pattern(r"[*_`~\\\u00ad\u200b-\u200d\u2060\ufeff]")


def plain(text: str) -> str:
    """Return `text` folded, with one kind of dash and without what a reader does not see."""
    seen = UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(fold(DASHES.sub("-", seen)).split())


def has_words(text: str, asked: str, *, whole: bool = True) -> bool:
    """Tell whether words stand in `text` in a row, unless `whole` as the beginning of another."""
    wanted = " ".join(words(asked))
    end = " " if whole else ""
    return bool(wanted) and f" {wanted}{end}" in f" {' '.join(words(text))} "


def within_budget(wine: Wine, expect: Expectation) -> bool:
    """Tell whether a wine keeps to the price limits, in euros at the product's own rates."""
    if expect.min_price is None and expect.max_price is None:
        return True
    price = wine.price_in_euros
    if price is None:
        return False
    low = in_euros(expect.min_price, expect.currency) if expect.min_price else 0.0
    high = in_euros(expect.max_price, expect.currency) if expect.max_price else price
    return low <= price <= high


def telling_names(wine: Wine) -> list[str]:
    """Return what a wine is told by: its producer, and its name unless others are called so too."""
    shared = {
        word for each in (wine.region, wine.appellation, *wine.grapes) for word in words(each)
    }
    is_telling = set(words(wine.name)) - shared - ANYBODYS
    return [wine.producer, wine.name] if is_telling else [wine.producer]


Meets = Callable[[str, str], bool]
"""Whether a value that is asked for is the one that a wine has."""


def same(asked: str, found: str) -> bool:
    """Tell whether two values are the same word."""
    return fold(asked) == fold(found)


def same_name(kind: Kind) -> Meets:
    """Tell whether two names mean the same thing: Shiraz and Syrah, USA and United States."""
    return lambda asked, found: folded(found) in names(kind, asked)


def lies_in(asked: str, found: str) -> bool:
    """Tell whether a place is in a region, as a search has it: Rhône holds the Southern Rhône."""
    return any(has_words(found, name) for name in names("regions", asked))


def is_said(asked: str, notes: str) -> bool:
    """Tell whether notes say a word, or several in a row, undenied: not "no oak", "unoaked"."""
    wanted = words(asked)
    return bool(wanted) and any(_says(words(each), wanted) for each in CLAUSE.split(notes))


def _says(clause: list[str], wanted: list[str]) -> bool:
    return any(
        clause[at : at + len(wanted)] == wanted
        and DENIALS.isdisjoint(clause[max(0, at - DENIED_WITHIN) : at])
        for at in range(len(clause) - len(wanted) + 1)
    )


_PROPERTIES: Final[Mapping[str, tuple[Callable[[Wine], Sequence[str | None]], Meets]]] = {
    "styles": (lambda wine: [wine.style], same),
    "colours": (lambda wine: [wine.colour], same),
    "sweetness": (lambda wine: [wine.sweetness], same),
    "bodies": (lambda wine: [wine.body], same),
    "foods": (lambda wine: wine.foods, same),
    "countries": (lambda wine: [wine.country], same_name("countries")),
    "regions": (lambda wine: [wine.region, wine.appellation], lies_in),
    "grapes": (lambda wine: wine.grapes, same_name("grapes")),
    "allergens": (lambda wine: wine.allergens, same),
    "notes": (lambda wine: [wine.notes], is_said),
}
"""What a wine has of a property, and when that meets what is asked."""
_WITHOUT: Final = "without_"
_FIELDS: Final = [
    name for name in Expectation.model_fields if name.removeprefix(_WITHOUT) in _PROPERTIES
]


def has_filters(expect: Expectation) -> bool:
    """Tell whether anything but the price is asked of the wines."""
    return expect.max_abv is not None or any(getattr(expect, name) for name in _FIELDS)


def broken_filters(wine: Wine, expect: Expectation) -> Iterator[str]:
    """Yield what a wine does not keep to, the price left aside.

    Values that are wanted must meet the wine's, those it is to be without must not. A wine that
    does not say how much alcohol it has has too much.
    """
    for name in _FIELDS:
        asked = [str(value) for value in getattr(expect, name)]
        values, meets = _PROPERTIES[name.removeprefix(_WITHOUT)]
        found = [str(value) for value in values(wine) if value] if asked else []
        met = [each for each in asked if any(meets(each, other) for other in found)]
        if met and name.startswith(_WITHOUT):
            yield f"{fold(met[0])} ({name})"
        elif asked and not met and not name.startswith(_WITHOUT):
            yield f"{'/'.join(map(fold, found)) or 'nothing known'} for {name}"
    if expect.max_abv is not None and (wine.abv is None or wine.abv > expect.max_abv):
        yield f"{wine.abv}% vol."


PASSAGE: Final = (">", "[1]")
"""How the lines begin that quote a document, and name it."""
SHOWN_REASONS: Final = 3


@dataclass(frozen=True, slots=True)
class Mark:
    """The score of one metric, from 0 to 1, and why it is not 1."""

    score: float
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is missing."""
        return self.score >= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The last answer of a conversation.

    `model_error` says what kept the model from answering at all, if that is why it fell back.
    `unknown` are ids of the answer that the catalogue does not hold, `previous` the wines of the
    answer before it, `texts` all answers as the guest saw them. `person` is what is remembered.
    """

    texts: tuple[str, ...]
    outcome: Outcome
    answer: SommelierResponse | None = None
    wines: tuple[Wine, ...] = ()
    unknown: tuple[str, ...] = ()
    previous: tuple[Wine, ...] = ()
    shown_before: frozenset[str] = frozenset()
    error_types: tuple[str, ...] = ()
    model_error: str = ""
    retries: int = 0
    person: Person = NOBODY

    @property
    def text(self) -> str:
        """The last answer as the guest saw it."""
        return self.texts[-1] if self.texts else ""


Evaluator = Callable[[Observed, Conversation], Mark | None]


def validity(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark whether the answer is the model's own valid one: not salvaged, fallen back, failed.

    A refusal counts where declining is expected.
    """
    expected = conversation.expect.types
    if observed.outcome == "answered" or (
        observed.outcome == "refused" and "off_topic" in expected
    ):
        return Mark(1)
    kinds = [*dict.fromkeys(observed.error_types)]
    errors = ", ".join([*kinds, observed.model_error] if observed.model_error else kinds)
    return Mark(0, f"{observed.outcome} after {errors}" if errors else observed.outcome)


def response_type(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark whether the answer is of a type that was expected; a refusal is a way to decline."""
    expected = conversation.expect.types
    if not expected:
        return None
    declined = "off_topic" if observed.outcome == "refused" else observed.outcome
    found = observed.answer.response_type if observed.answer else declined
    return _all_or_nothing(found in expected, f"{found} instead of {' or '.join(expected)}")


def grounding(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark the share of the model's attempts that named only what tools returned.

    0 when what was shown is not of the catalogue, or a wine of the answer is not shown.
    """
    if observed.outcome != "fallback":
        if observed.unknown:
            return Mark(0, f"not in the catalogue: {', '.join(observed.unknown)}")
        if hidden := [wine.label for wine in observed.wines if wine.label not in observed.text]:
            return Mark(0, f"in the answer and not shown: {', '.join(hidden)}")
    attempts = observed.retries + 1
    if invented := min(attempts, invented_attempts(observed.error_types)):
        reason = f"{invented} of {attempts} attempts named what no tool returned"
        return Mark((attempts - invented) / attempts, reason)
    own = observed.outcome != "fallback" and (observed.wines or observed.answer)
    return Mark(1) if own else None


def budget(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark the share of the wines within the price limits; one without a price is not."""
    expect = conversation.expect
    if expect.max_price is None and expect.min_price is None:
        return None
    outside = [_priced(wine) for wine in observed.wines if not within_budget(wine, expect)]
    return _share(len(observed.wines), outside, "outside the budget")


def filters(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark the share of the wines that keep to everything else that was asked of them."""
    if not has_filters(conversation.expect):
        return None
    broken = [
        f"{wine.label}: {', '.join(names)}"
        for wine in observed.wines
        if (names := list(broken_filters(wine, conversation.expect)))
    ]
    return _share(len(observed.wines), broken, "broken")


def count(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark whether there are as many wines as expected."""
    expect, found = conversation.expect, len(observed.wines)
    if expect.no_wines:
        return _all_or_nothing(found == 0, f"{found} wines where none belongs")
    if expect.min_wines is None and expect.max_wines is None:
        return None
    low, high = expect.min_wines or 0, expect.max_wines or found
    asked = f"{low} to {high}" if expect.max_wines else f"at least {low}"
    return _all_or_nothing(low <= found <= high, f"{found} wines, {asked} expected")


def reference(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark whether a follow-up means what it refers back to: the wines of the answer before."""
    expect = conversation.expect
    problems: list[str] = []
    if expect.cheaper_than is not None:
        problems.append(_not_cheaper(observed, expect.cheaper_than))
    if expect.about is not None:
        problems.append(_not_about(observed, expect.about))
    if expect.not_shown_before:
        problems.append(_shown_again(observed))
    return _share(len(problems), [*filter(None, problems)], "reference missed")


def language(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark whether the answer is in the guest's language: half the frame, half the wines.

    A part whose language is not clear is left out.
    """
    wanted = conversation.expect.language or conversation.language
    if wanted is None or conversation.expect.any_language:
        return None
    found = {
        part: spoken for part, text in _parts(observed).items() if (spoken := language_of(text))
    }
    wrong = [f"{part} in {spoken}" for part, spoken in found.items() if spoken != wanted]
    return _share(len(found), wrong, f"instead of {wanted}")


def injection(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark whether no answer contains what a guest or a text tried to plant."""
    planted = conversation.expect.must_not_contain
    if not planted:
        return None
    said = plain("\n".join(observed.texts))
    found = [text for text in planted if plain(text) in said]
    return _all_or_nothing(not found, f"says {', '.join(map(repr, found))}")


def content(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark whether the answer has one of the words it cannot do without, or one that begins so."""
    wanted = conversation.expect.must_contain_any
    if not wanted:
        return None
    found = any(has_words(observed.text, word, whole=False) for word in wanted)
    return _all_or_nothing(found, f"says none of {', '.join(wanted)}")


def memory(observed: Observed, conversation: Conversation) -> Mark | None:
    """Mark the share that is right of what is remembered, and of what should be."""
    expect, person = conversation.expect, observed.person
    if not conversation.is_remembered:
        return None
    known = {f"{each.kind}:{each.value}" for each in person.facts}
    owned = {f"{each.count} × {each.key}" for each in person.bottles if each.count}
    wanted = {f"{n} × {folded(label)}" for label, n in (expect.bottles or {}).items() if n}
    wanted |= {*(expect.facts or ())}
    wrong = [f"not {each}" for each in sorted(wanted - known - owned)]
    wrong += sorted((known | owned) - wanted)
    return _share(max(len(wanted | known | owned), 1), wrong, "remembered")


EVALUATORS: Final[Mapping[str, Evaluator]] = {
    "validity": validity,
    "type": response_type,
    "grounding": grounding,
    "budget": budget,
    "filters": filters,
    "count": count,
    "reference": reference,
    "language": language,
    "injection": injection,
    "content": content,
    "memory": memory,
}
"""All of them, by the name of the metric."""
OF_THE_MODEL: Final = frozenset({"validity", "grounding", "injection"})
"""What is marked also where the fallback answered: the rest would be its merit."""


def marks(observed: Observed, conversation: Conversation) -> dict[str, Mark]:
    """Return the mark of every metric that applies."""
    asked = OF_THE_MODEL if observed.outcome == "fallback" else EVALUATORS
    found = {name: evaluate(observed, conversation) for name, evaluate in EVALUATORS.items()}
    return {name: mark for name, mark in found.items() if mark is not None and name in asked}


def _parts(observed: Observed) -> dict[str, str]:
    """Return an answer's own words: names, quoted notes and passages are nobody's language."""
    if observed.answer is None:
        return {"text": observed.text}
    answer = observed.answer
    described = " ".join(wine.description for wine in answer.wines)
    told = f"{answer.intro}\n{answer.closing}".splitlines()
    own = (line for line in told if not line.startswith(PASSAGE))
    parts = {"text": " ".join(own), "descriptions": described}
    names = {name for wine in observed.wines for name in (wine.producer, wine.name) if name}
    quoted = {text for wine in observed.wines for text in _quoted(wine.notes)}
    for name in sorted(names | quoted, key=len, reverse=True):
        parts = {part: text.replace(name, " ") for part, text in parts.items()}
    return parts


def _quoted(notes: str) -> tuple[str, ...]:
    return (
        tuple(marks.format(notes) for marks in ("« {} »", "«{}»", "„{}“", "„{}”", "“{}”", '"{}"'))
        if notes
        else ()
    )


def _not_cheaper(observed: Observed, number: int) -> str:
    if len(observed.previous) < number:
        return f"the answer before has no wine number {number}"
    limit = observed.previous[number - 1]
    most = limit.price_in_euros or 0.0
    dearer = [wine for wine in observed.wines if (wine.price_in_euros or most) >= most]
    if not observed.wines:
        return "no wine shown"
    return f"{', '.join(map(_priced, dearer))} not below {_priced(limit)}" if dearer else ""


def _not_about(observed: Observed, number: int) -> str:
    if len(observed.previous) < number:
        return f"the answer before has no wine number {number}"
    meant = observed.previous[number - 1]
    named = meant.id in {wine.id for wine in observed.wines}
    if named or any(has_words(observed.text, name) for name in telling_names(meant)):
        return ""
    return f"does not speak of {meant.label}"


def _shown_again(observed: Observed) -> str:
    again = [wine.label for wine in observed.wines if wine.id in observed.shown_before]
    if not observed.wines:
        return "no wine shown"
    return f"shown before: {', '.join(again)}" if again else ""


def _priced(wine: Wine) -> str:
    price = "no price" if wine.price is None else f"{wine.price:g} {wine.currency}"
    return f"{wine.label} ({price})"


def _all_or_nothing(holds: bool, reason: str) -> Mark:
    return Mark(1) if holds else Mark(0, reason)


def _share(of: int, wrong: Sequence[str], what: str) -> Mark | None:
    """The share that is right of so many, None of none; the first few wrong ones as the reason."""
    if not wrong:
        return Mark(1) if of else None
    named = "; ".join(wrong[:SHOWN_REASONS])
    more = f" and {len(wrong) - SHOWN_REASONS} more" if len(wrong) > SHOWN_REASONS else ""
    return Mark((of - len(wrong)) / of, f"{what}: {named}{more}")


def marks_of_quotes(
    question: Question, raw: str | None, chunks: Sequence[Chunk], *, asked: bool
) -> tuple[dict[str, Mark], dict[str, float]]:
    """Hold a raw response against what was retrieved; the marks, and figures beside them.

        json_parse     whether the response is a JSON object as it stands
        schema         whether it has every field of the schema
        verbatim       share of its snippets that stand in a retrieved chunk, for a question that
                       has an answer; 0 for a response that brought no snippet
        attribution    share of its snippets that name, exactly, the source they stand in; likewise
        negative       for a question without an answer: whether it got noResults and no snippet, or
                       nothing was retrieved, so that nobody was asked

    The figure `retrieved`, the share of the known sources among the chunks, is not the model's
    doing.
    """
    figures = {"retrieved": _retrieved(question, chunks)} if question.sources else {}
    if not asked and not chunks:
        return _judged(question, None, chunks, "nothing was retrieved"), figures
    answer, problem = _read(raw) if raw is not None else (None, "no response")
    parsed = problem not in ("no response", "no JSON")
    if answer:
        figures["snippets"] = len(answer.snippets)
    given = {
        "json_parse": _all_or_nothing(parsed, problem),
        "schema": _all_or_nothing(answer is not None, problem),
        **_judged(question, answer, chunks, problem),
    }
    return given, figures


def _retrieved(question: Question, chunks: Sequence[Chunk]) -> float:
    found = [any(chunk.path.endswith(source) for chunk in chunks) for source in question.sources]
    return sum(found) / len(found)


def _read(content: str) -> tuple[QuotesAnswer | None, str]:
    """The answer that the raw text is, or None and what is wrong; nothing is repaired."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None, "no JSON"
    if not isinstance(value, dict):
        return None, "no JSON"
    try:
        answer = QuotesAnswer.model_validate(value, strict=True, by_name=False)
    except ValidationError as error:
        return None, f"schema: {'.'.join(map(str, error.errors()[0]['loc']))}"
    if len(answer.snippets) > MAX_SNIPPETS:
        return None, f"schema: more than {MAX_SNIPPETS} snippets"
    return answer, ""


def _judged(
    question: Question, answer: QuotesAnswer | None, chunks: Sequence[Chunk], problem: str
) -> dict[str, Mark]:
    """The marks of an answer's snippets; without an answer all of them are 0.

    Where nothing was retrieved nobody is asked, which is right where there is no answer.
    """
    if question.kind == "negative":
        handled = not chunks if answer is None else answer.no_results and not answer.snippets
        return {"negative": _all_or_nothing(handled, problem or "quoted for a negative")}
    snippets = answer.snippets if answer else []
    problem = problem or ("" if snippets else "no snippet")
    return {
        name: Mark(1) if right and all(right) else Mark(sum(right) / (len(right) or 1), reason)
        for name, right, reason in (
            ("verbatim", [_stands(each, chunks) for each in snippets], problem or "not verbatim"),
            ("attribution", [_named(each, chunks) for each in snippets], problem or "wrong source"),
        )
    }


def _stands(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    return any(verbatim(snippet.content, chunk.text) for chunk in chunks)


def _named(snippet: Snippet, chunks: Sequence[Chunk]) -> bool:
    """Whether id and title are those of a retrieved source, and of the one it stands in."""
    named = (snippet.source_id, snippet.source_title)
    if named not in {(chunk.document_id, chunk.title) for chunk in chunks}:
        return False
    return located(snippet, chunks) is not None or not _stands(snippet, chunks)
