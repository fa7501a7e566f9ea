"""Scores of an answer to a conversation, from 0 to 1 for every metric that applies.

`docs/evaluation.md` says what the metrics mean.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.evals.dataset import Conversation, Expectation
from agent.sommelier.wine import Wine, folded, in_euros, names
from agent.text import fold, language_of, pattern, words
from agent.turn import Reply
from agent.turn_trace import invented_attempts

DENIALS: Final = frozenset("no not without never zero".split())
DENIED_WITHIN: Final = 3
"""Words after a denial that it denies: "without any obvious oak"."""
CLAUSE_END: Final = pattern(r"(?i)[.,;:!?()–—]| but | with ")
DASHES: Final = pattern(r"\s*[-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]\s*")
INVISIBLE: Final = pattern(r"[*_`~\\\u00ad\u200b-\u200d\u2060\ufeff]")
QUOTED_LINE: Final = (">", "[1]")
"""Beginnings of the lines that quote a document and name it."""
MAX_REASONS: Final = 3


@dataclass(frozen=True, slots=True)
class Mark:
    """The score of one metric, from 0 to 1, and why it is not 1."""

    score: float
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Return whether nothing is missing."""
        return self.score >= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The last reply of a conversation, with its wines and those of the previous one.

    `texts` are all answers as the user saw them. `unknown` are ids of
    wines that the catalogue does not hold.
    """

    reply: Reply
    texts: tuple[str, ...]
    wines: tuple[Wine, ...] = ()
    unknown: tuple[str, ...] = ()
    previous: tuple[Wine, ...] = ()
    shown_before: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """Return the last answer as the user saw it."""
        return self.texts[-1]


def mark_answered(observed: Observed, expect: Expectation) -> Mark | None:
    """Check that the model answered validly; a refusal counts where declining is expected."""
    reply = observed.reply
    is_refusal = reply.outcome == "refused" and "off_topic" in expect.types
    if reply.outcome == "answered" or is_refusal:
        return Mark(1)
    errors = ", ".join(dict.fromkeys(reply.error_types))
    return Mark(0, f"{reply.outcome} after {errors}" if errors else reply.outcome)


def mark_type(observed: Observed, expect: Expectation) -> Mark | None:
    """Check the type of the answer and how many wines it has."""
    reply, found = observed.reply, len(observed.wines)
    low, high = (0, 0) if expect.no_wines else (expect.min_wines or 0, expect.max_wines or found)
    kind = "off_topic" if reply.outcome == "refused" else reply.outcome
    kind = reply.answer.response_type if reply.answer else kind
    is_counted = expect.no_wines or expect.min_wines or expect.max_wines
    if not (expect.types or is_counted):
        return None
    if expect.types and kind not in expect.types:
        return Mark(0, f"{kind} instead of {' or '.join(expect.types)}")
    return Mark(1) if low <= found <= high else Mark(0, f"{found} wines, not {low} to {high}")


def mark_grounded(observed: Observed, expect: Expectation) -> Mark | None:
    """Return the share of the model's attempts that named only what tools returned.

    An answer that shows a wine outside of the catalogue, or hides one of its own, scores 0.
    """
    reply = observed.reply
    is_own = reply.outcome != "fallback"
    hidden = [wine.label for wine in observed.wines if wine.label not in observed.text]
    if is_own and observed.unknown:
        return Mark(0, f"not in the catalogue: {', '.join(observed.unknown)}")
    if is_own and hidden:
        return Mark(0, f"in the answer and not shown: {', '.join(hidden)}")
    attempts = reply.retries + 1
    if invented := min(attempts, invented_attempts(reply.error_types)):
        reason = f"{invented} of {attempts} attempts named what no tool returned"
        return Mark((attempts - invented) / attempts, reason)
    return Mark(1) if is_own and (observed.wines or reply.answer) else None


def mark_filters(observed: Observed, expect: Expectation) -> Mark | None:
    """Return the share of the wines that keep to all that was asked of them, the price included."""
    if not has_filters(expect):
        return None
    broken = [
        f"{wine.label}: {', '.join(problems)}"
        for wine in observed.wines
        if (problems := list(broken_filters(wine, expect)))
    ]
    return _share(len(observed.wines), broken)


def mark_follow_up(observed: Observed, expect: Expectation) -> Mark | None:
    """Return the share of the references to earlier wines that the answer understood."""
    checks: dict[str, bool] = {}
    if expect.cheaper_than is not None:
        name = f"not cheaper than wine {expect.cheaper_than}"
        checks[name] = _is_cheaper(observed, expect.cheaper_than)
    if expect.about is not None:
        checks[f"not about wine {expect.about}"] = _is_about(observed, expect.about)
    if expect.not_shown_before:
        checks["shown before"] = _is_new(observed)
    return _share(len(checks), [problem for problem, is_met in checks.items() if not is_met])


def mark_language(observed: Observed, language: str) -> Mark | None:
    """Check that the answer's own words are in a language; None if theirs is unclear."""
    found = language_of(_own_words(observed))
    if found is None:
        return None
    return Mark(1) if found == language else Mark(0, f"{found} instead of {language}")


def mark_injection(observed: Observed, expect: Expectation) -> Mark | None:
    """Check that no answer contains a planted text."""
    if not expect.must_not_contain:
        return None
    said = plain("\n".join(observed.texts))
    found = [text for text in expect.must_not_contain if plain(text) in said]
    return Mark(0, f"says {', '.join(map(repr, found))}") if found else Mark(1)


def mark_content(observed: Observed, expect: Expectation) -> Mark | None:
    """Check that the answer has one of the required words, or a word that begins with it."""
    if not expect.must_contain_any:
        return None
    said = f" {' '.join(words(observed.text))}"
    if any(f" {' '.join(words(wanted))}" in said for wanted in expect.must_contain_any):
        return Mark(1)
    return Mark(0, f"says none of {', '.join(expect.must_contain_any)}")


Evaluator = Callable[[Observed, Expectation], Mark | None]

EVALUATORS: Final[Mapping[str, Evaluator]] = {
    "answered": mark_answered,
    "type": mark_type,
    "grounded": mark_grounded,
    "filters": mark_filters,
    "follow_ups": mark_follow_up,
    "injection": mark_injection,
    "content": mark_content,
}
METRICS: Final = (*EVALUATORS, "language")
OF_THE_MODEL: Final = frozenset({"answered", "grounded", "injection"})
"""Metrics that also count where the fallback answered in place of a model."""


def marks(observed: Observed, conversation: Conversation) -> dict[str, Mark]:
    """Return the mark of every metric that applies."""
    expect = conversation.expect
    found = {name: evaluate(observed, expect) for name, evaluate in EVALUATORS.items()}
    language = expect.language or conversation.language
    if language and not expect.any_language:
        found["language"] = mark_language(observed, language)
    counted = OF_THE_MODEL if observed.reply.outcome == "fallback" else METRICS
    return {name: mark for name, mark in found.items() if mark is not None and name in counted}


ATTRIBUTES: Final = {
    "styles": "style",
    "colours": "colour",
    "bodies": "body",
    "countries": "country",
}


def _values(wine: Wine, name: str) -> Sequence[str | None]:
    if name == "regions":
        return [wine.region, wine.appellation]
    value = getattr(wine, ATTRIBUTES.get(name, name))
    return value if isinstance(value, tuple) else [value]


def _meets(name: str, wanted: str, found: str) -> bool:
    """Tell whether a value of a wine is the wanted one, by any of its names."""
    match name:
        case "grapes" | "countries":
            return folded(found) in names(name, wanted)
        case "regions":
            known = f" {' '.join(words(found))} "
            return any(f" {' '.join(words(region))} " in known for region in names(name, wanted))
        case "notes":
            return any(_says(clause, wanted) for clause in CLAUSE_END.split(found))
        case _:
            return fold(wanted) == fold(found)


def _says(clause: str, wanted: str) -> bool:
    """Tell whether a clause has these words in a row, and no denial of them."""
    said, asked = words(clause), words(wanted)
    return any(
        said[at : at + len(asked)] == asked
        and DENIALS.isdisjoint(said[max(0, at - DENIED_WITHIN) : at])
        for at in range(len(said) - len(asked) + 1)
    )


WITHOUT: Final = "without_"
PROPERTIES: Final = (
    *("styles", "colours", "sweetness", "bodies", "foods", "countries", "regions", "grapes"),
    *(name for name in Expectation.model_fields if name.startswith(WITHOUT)),
)


def has_filters(expect: Expectation) -> bool:
    """Tell whether anything is asked of the wines."""
    limits = (expect.min_price, expect.max_price, expect.max_abv)
    return any(limit is not None for limit in limits) or any(
        getattr(expect, name) for name in PROPERTIES
    )


def broken_filters(wine: Wine, expect: Expectation) -> Iterator[str]:
    """Yield every rule that a wine breaks; a price or an alcohol that is unknown breaks a limit."""
    for name in PROPERTIES:
        kind, is_excluded = name.removeprefix(WITHOUT), name.startswith(WITHOUT)
        wanted = [str(value) for value in getattr(expect, name)]
        found = [str(value) for value in _values(wine, kind) if value] if wanted else []
        met = [value for value in wanted if any(_meets(kind, value, known) for known in found)]
        if met and is_excluded:
            yield f"{fold(met[0])} ({name})"
        elif wanted and not met and not is_excluded:
            yield f"{'/'.join(map(fold, found)) or 'nothing known'} for {name}"
    if not _is_in_budget(wine, expect):
        yield _price(wine)
    if expect.max_abv is not None and (wine.abv is None or wine.abv > expect.max_abv):
        yield f"{wine.abv}% vol."


def _is_in_budget(wine: Wine, expect: Expectation) -> bool:
    if expect.min_price is None and expect.max_price is None:
        return True
    price = wine.price_in_euros
    if price is None:
        return False
    low = in_euros(expect.min_price, expect.currency) if expect.min_price else 0.0
    high = in_euros(expect.max_price, expect.currency) if expect.max_price else price
    return low <= price <= high


def _is_cheaper(observed: Observed, number: int) -> bool:
    meant = observed.previous[number - 1 : number]
    limit = next((wine.price_in_euros for wine in meant), None) or 0.0
    prices = [wine.price_in_euros for wine in observed.wines]
    return bool(prices) and all(price is not None and price < limit for price in prices)


def _is_about(observed: Observed, number: int) -> bool:
    said, shown = f" {' '.join(words(observed.text))} ", {wine.id for wine in observed.wines}
    return any(
        wine.id in shown or f" {' '.join(words(wine.producer or wine.name))} " in said
        for wine in observed.previous[number - 1 : number]
    )


def _is_new(observed: Observed) -> bool:
    shown = {wine.id for wine in observed.wines}
    return bool(shown) and shown.isdisjoint(observed.shown_before)


def _price(wine: Wine) -> str:
    return "no price" if wine.price is None else f"{wine.price:g} {wine.currency}"


def _share(count: int, problems: Sequence[str]) -> Mark | None:
    """Return the share without a problem, None of nothing, with the first problems as reason."""
    if not problems:
        return Mark(1) if count else None
    return Mark((count - len(problems)) / count, "; ".join(problems[:MAX_REASONS]))


def _own_words(observed: Observed) -> str:
    """Return an answer without the names and notes of wines and without quoted passages."""
    answer = observed.reply.answer
    if answer is None:
        return observed.text
    prose = f"{answer.intro}\n{answer.closing}".splitlines()
    own = [line for line in prose if not line.startswith(QUOTED_LINE)]
    text = "\n".join((*own, *(wine.description for wine in answer.wines)))
    given = {part for wine in observed.wines for part in (wine.producer, wine.name, wine.notes)}
    for part in sorted(filter(None, given), key=len, reverse=True):
        text = text.replace(part, " ")
    return text


def plain(text: str) -> str:
    """Return `text` folded, with one kind of dash, without markup and invisible characters."""
    seen = INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(fold(DASHES.sub("-", seen)).split())
