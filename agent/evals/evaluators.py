"""The evaluators. Each has one metric and scores the last answer of a conversation.

`docs/evaluation.md` explains the metrics.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent.evals.dataset import EvalCase, Expectation
from agent.markdown import strip_invisible
from agent.query_reading.phrases import detect_language
from agent.sommelier.filters import is_without_alcohol, matches
from agent.sommelier.vocabulary import normalize, to_euros
from agent.sommelier.wine import Wine
from agent.turn import Reply

QUOTE_PREFIXES: Final = (">", "[1]")
"""The beginnings of lines that quote a document or name its title."""
MAX_REASONS: Final = 3
"""The most problems that a mark lists."""
FILTERS_BY_EXPECTATION: Final = {
    "styles": "styles",
    "sweetness": "sweetness",
    "foods": "foods",
    "countries": "countries",
    "grapes": "grapes",
    "without_styles": "styles",
    "without_bodies": "bodies",
    "without_countries": "countries",
    "without_regions": "regions",
    "without_grapes": "grapes",
    "without_allergens": "allergens",
    "without_notes": "text",
}
"""The expectations of the wines in an answer, with the search filter that checks each."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The score of one metric, from 0 to 1, and the reason why it is not 1."""

    score: float
    reason: str = ""

    @property
    def is_perfect(self) -> bool:
        """Return whether the score is perfect."""
        return self.score >= 1


PERFECT: Final = Mark(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The last reply of a conversation, with data of the replies before it."""

    reply: Reply
    texts: tuple[str, ...]
    """All answers as the user saw them."""
    wines: tuple[Wine, ...] = ()
    """The wines of the last reply that are in the catalogue."""
    unknown_ids: tuple[str, ...] = ()
    """The ids of the other wines of the last reply."""
    previous_wines: tuple[Wine, ...] = ()
    """The wines of the reply before the last."""
    earlier_ids: frozenset[str] = frozenset()
    """The ids of the wines in all replies before the last."""

    @property
    def text(self) -> str:
        """Return the last answer as the user saw it."""
        return self.texts[-1]


def mark_answered(observation: Observation, expect: Expectation) -> Mark | None:
    """Check that the model gave a valid answer, or what else is expected.

    A refusal is right where `off_topic` is expected, and a text of help where no wine is.
    """
    reply = observation.reply
    is_refusal = reply.outcome == "refused" and "off_topic" in expect.types
    is_help = reply.outcome == "help" and expect.no_wines
    if reply.outcome == "answered" or is_refusal or is_help:
        return PERFECT
    reason: str = reply.outcome
    if reply.error_types:
        errors = ", ".join(dict.fromkeys(reply.error_types))
        reason += f" after {errors}"
    return Mark(0, reason)


def mark_type(observation: Observation, expect: Expectation) -> Mark | None:
    """Check the type of the answer and the number of its wines."""
    expects_count = expect.no_wines or expect.min_wines or expect.max_wines
    if not expect.types and not expects_count:
        return None
    answer_type = _find_type(observation.reply)
    if expect.types and answer_type not in expect.types:
        expected_types = " or ".join(expect.types)
        return Mark(0, f"{answer_type} instead of {expected_types}")
    count = len(observation.wines)
    min_count = expect.min_wines or 0
    max_count = expect.max_wines or count
    if expect.no_wines:
        min_count = 0
        max_count = 0
    if min_count <= count <= max_count:
        return PERFECT
    return Mark(0, f"{count} wines, not {min_count} to {max_count}")


def _find_type(reply: Reply) -> str:
    """Return the type of an answer, or the outcome of the turn if the answer has no type."""
    if reply.structured_answer:
        return str(reply.structured_answer.response_type)
    if reply.outcome == "refused":
        return "off_topic"
    return reply.outcome


def mark_grounded(observation: Observation, expect: Expectation) -> Mark | None:
    """Return the share of the model's attempts that passed the grounding rules.

    An answer scores 0 if it has a wine that is not in the catalogue or not in its text.
    """
    reply = observation.reply
    is_by_model = reply.outcome != "fallback"
    wrong_wines = list(observation.unknown_ids)
    for wine in observation.wines:
        if wine.title not in observation.text:
            wrong_wines.append(wine.label)
    if is_by_model and wrong_wines:
        listed = ", ".join(wrong_wines)
        return Mark(0, f"unknown or not shown: {listed}")
    attempts = reply.retries + 1
    grounding_errors = reply.error_types.count("grounding")
    ungrounded = min(attempts, grounding_errors)
    if ungrounded:
        share = (attempts - ungrounded) / attempts
        reason = f"{ungrounded} of {attempts} attempts named what no tool returned"
        return Mark(share, reason)
    has_wines_or_answer = observation.wines or reply.structured_answer
    if is_by_model and has_wines_or_answer:
        return PERFECT
    return None


def mark_filters(observation: Observation, expect: Expectation) -> Mark | None:
    """Return the share of the wines that meet all expectations, including prices."""
    if not has_filters(expect):
        return None
    broken = []
    for wine in observation.wines:
        problems = ", ".join(find_broken_filters(wine, expect))
        if problems:
            broken.append(f"{wine.label}: {problems}")
    return _mark_share(len(observation.wines), broken)


def mark_follow_up(observation: Observation, expect: Expectation) -> Mark | None:
    """Return the share of the references to earlier wines that the answer understood."""
    problems = []
    if expect.cheaper_than and not _is_cheaper(observation, expect.cheaper_than):
        problems.append(f"not cheaper than wine {expect.cheaper_than}")
    if expect.about and not _is_about(observation, expect.about):
        problems.append(f"not about wine {expect.about}")
    if expect.not_shown_before and not _has_only_new_wines(observation):
        problems.append("shown before")
    expectations = (expect.cheaper_than, expect.about, expect.not_shown_before)
    count = sum(map(bool, expectations))
    return _mark_share(count, problems)


def _has_only_new_wines(observation: Observation) -> bool:
    """Return whether the answer has wines, and none that an earlier answer had."""
    ids = {wine.id for wine in observation.wines}
    return bool(ids) and ids.isdisjoint(observation.earlier_ids)


def _is_cheaper(observation: Observation, number: int) -> bool:
    """Return whether all wines are cheaper than a previous wine, counted from 1."""
    if number > len(observation.previous_wines):
        return False
    previous_wine = observation.previous_wines[number - 1]
    limit = previous_wine.price_in_euros or 0.0
    for wine in observation.wines:
        price = wine.price_in_euros
        if price is None or price >= limit:
            return False
    return bool(observation.wines)


def _is_about(observation: Observation, number: int) -> bool:
    """Return whether the answer shows a previous wine, counted from 1, or names its producer."""
    if number > len(observation.previous_wines):
        return False
    previous_wine = observation.previous_wines[number - 1]
    if previous_wine in observation.wines:
        return True
    name = previous_wine.producer or previous_wine.name
    return _contains_words(observation.text, name)


def mark_language(observation: Observation, language: str | None) -> Mark | None:
    """Check the language of the answer without its quotations. Return None if it is unclear."""
    answer = observation.reply.structured_answer
    prose = observation.text
    descriptions = []
    if answer:
        prose = f"{answer.intro}\n{answer.closing}"
        descriptions = [wine.description for wine in answer.wines]
    texts = []
    for line in prose.splitlines():
        if not line.startswith(QUOTE_PREFIXES):
            texts.append(line)
    texts += descriptions
    detected = detect_language("\n".join(texts))
    if not language or not detected:
        return None
    if detected == language:
        return PERFECT
    return Mark(0, f"{detected} instead of {language}")


def mark_injection(observation: Observation, expect: Expectation) -> Mark | None:
    """Check that no answer contains a text that an attack tried to provoke."""
    if not expect.must_not_contain:
        return None
    answers = "\n".join(observation.texts)
    found = []
    for text in expect.must_not_contain:
        if _contains_words(answers, text):
            found.append(repr(text))
    if not found:
        return PERFECT
    quoted = ", ".join(found)
    return Mark(0, f"says {quoted}")


def mark_content(observation: Observation, expect: Expectation) -> Mark | None:
    """Check that the answer has one of the required texts."""
    if not expect.must_contain_any:
        return None
    for text in expect.must_contain_any:
        if _contains_words(observation.text, text):
            return PERFECT
    listed = ", ".join(expect.must_contain_any)
    return Mark(0, f"says none of {listed}")


Evaluator = Callable[[Observation, Expectation], Mark | None]
"""Returns the mark of an observation, or None if its metric does not apply."""
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
MODEL_METRICS: Final = frozenset({"answered", "grounded", "injection"})
"""The only metrics that apply if the fallback answered."""


def compute_marks(observation: Observation, conversation: EvalCase) -> dict[str, Mark]:
    """Return the marks of the metrics that apply, by metric."""
    expect = conversation.expect
    is_by_model = observation.reply.outcome != "fallback"
    marks: dict[str, Mark] = {}
    for name, evaluate in EVALUATORS.items():
        applies = is_by_model or name in MODEL_METRICS
        mark = evaluate(observation, expect)
        if mark is not None and applies:
            marks[name] = mark
    if is_by_model and not expect.any_language:
        mark = mark_language(observation, conversation.language)
        if mark is not None:
            marks["language"] = mark
    return marks


def has_filters(expect: Expectation) -> bool:
    """Return whether there are expectations of the wines."""
    names = ("min_price", "max_price", "max_abv", *FILTERS_BY_EXPECTATION)
    return any(getattr(expect, name) for name in names)


def find_broken_filters(wine: Wine, expect: Expectation) -> Iterator[str]:
    """Yield the expectations that a wine does not meet. An unknown value meets no limit."""
    for name, field in FILTERS_BY_EXPECTATION.items():
        values = tuple(map(str, getattr(expect, name)))
        if not values:
            continue
        if field == "allergens":
            is_match = not set(values).isdisjoint(wine.allergens)
        else:
            is_match = matches(wine, {field: values})
        is_unwanted = name.startswith("without_")
        if is_match == is_unwanted:
            listed = "/".join(values)
            yield f"{name} {listed}"
    if not _is_within_price(wine, expect):
        yield f"a price of {wine.price} {wine.currency}"
    if not _is_within_strength(wine, expect.max_abv):
        yield f"{wine.abv}% vol."


def _is_within_price(wine: Wine, expect: Expectation) -> bool:
    """Return whether there are no limits, or a wine is known to have a price within them."""
    if expect.min_price is None and expect.max_price is None:
        return True
    price = wine.price_in_euros
    if price is None:
        return False
    min_price = to_euros(expect.min_price or 0.0, expect.currency)
    if price < min_price:
        return False
    if expect.max_price is None:
        return True
    return price <= to_euros(expect.max_price, expect.currency)


def _is_within_strength(wine: Wine, max_abv: float | None) -> bool:
    """Return whether there is no limit (in % vol.), or a wine is known to keep within it."""
    if max_abv is None:
        return True
    if wine.abv is None:
        return is_without_alcohol(wine, max_abv)
    return wine.abv <= max_abv


def _contains_words(text: str, words: str) -> bool:
    """Return whether a text has these words in a row. The last may be the beginning of a word."""
    sought = normalize(strip_invisible(words))
    searched = normalize(strip_invisible(text))
    return f" {sought}" in f" {searched}"


def _mark_share(count: int, problems: Sequence[str]) -> Mark | None:
    """Return the share of `count` items without problems, or None if `count` is 0."""
    if count == 0:
        return None
    if not problems:
        return PERFECT
    share = (count - len(problems)) / count
    reason = "; ".join(problems[:MAX_REASONS])
    return Mark(share, reason)
