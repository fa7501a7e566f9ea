"""Report how many concerns are heard, and how many false alarms there are, by language.

    python -m tests.evals.concern_report              # fresh messages: phrases and classifier
    python -m tests.evals.concern_report --held-out   # the classifier, each batch held out in turn

The fresh messages were written for the measurement alone. The blind ones were written last, by
somebody who saw neither phrases nor training messages nor code, and measured once, after the last
fit; nothing may be fitted to them.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sklearn.model_selection import GroupKFold

from agent.i18n import use_language
from agent.safety.classifier import Weights, classify
from agent.safety.concerns import (
    find_certain_concerns,
    find_likely_concerns,
    read_safety_state,
)
from agent.safety.state import CONCERNS
from agent.safety.train import Labelled, build_matrix, fit, number_labels, read_messages
from agent.safety.words import normalize_message

HERE = Path(__file__).parent
FRESH = (
    "concerns_blind",
    "concerns_blind_everyday",
    "concerns_fresh",
    "near_unseen",
    "harmless_unseen",
    "ordinary_unseen",
)
HARMLESS = ("near", "ordinary", "none")
"""What messages without a concern of the user are called: near misses, ordinary ones, either."""
FOLDS = 5


class Heard(NamedTuple):
    """A message's language, its concern or one of HARMLESS, and what was heard in which tier."""

    language: str
    concern: str
    certain: frozenset[str]
    likely: frozenset[str]
    """What was heard in either tier."""


def read(file: str) -> list[dict[str, str]]:
    lines = (HERE / file).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def hear(messages: Iterable[dict[str, str]]) -> list[Heard]:
    heard = list[Heard]()
    for message in messages:
        concern = message.get("concern") or message.get("label", "none")
        if message.get("who") == "other" or concern not in (*CONCERNS, *HARMLESS):
            concern = "none"
        with use_language(message["language"]):
            state = read_safety_state(message["text"])
        either = state.likely_concerns | state.turn_concerns
        heard.append(Heard(message["language"], concern, state.turn_concerns, either))
    return heard


def hear_held_out() -> list[Heard]:
    messages = read_messages()
    matrix = build_matrix(messages)
    labels = number_labels(messages)
    batches = [message.batch for message in messages]
    heard = list[Heard]()
    for known, held_out in GroupKFold(FOLDS).split(matrix, labels, batches):
        weights = fit(matrix[known], labels[known])
        for index in held_out:
            heard.append(hear_with(weights, messages[index]))
    return heard


def hear_with(weights: Weights, message: Labelled) -> Heard:
    guess = classify(normalize_message(message.text), weights)
    certain = find_certain_concerns(guess)
    with use_language(message.language):
        likely = find_likely_concerns(guess, message.text)
    concern = message.label if message.label in CONCERNS else "none"
    return Heard(message.language, concern, certain, certain | likely)


def print_table(heard: list[Heard]) -> None:
    languages = [*sorted({message.language for message in heard}), "all"]
    counts = Counter[tuple[str, str]]()
    totals = Counter[tuple[str, str]]()
    for message in heard:
        kind = message.concern
        is_heard = bool(message.likely) if kind in HARMLESS else kind in message.likely
        for language in (message.language, "all"):
            totals[kind, language] += 1
            counts[kind, language] += is_heard
    print("heard".ljust(14), *(language.rjust(10) for language in languages))
    for kind in (*CONCERNS, *HARMLESS):
        if totals[kind, "all"]:
            cells = (f"{counts[kind, name]}/{totals[kind, name]}" for name in languages)
            print(kind.ljust(14), *(cell.rjust(10) for cell in cells))
    certain = [message for message in heard if message.certain]
    false = sum(message.concern in HARMLESS for message in certain)
    print(f"certain: {len(certain) - false} of concerns, {false} false")


def main() -> None:
    if "--held-out" in sys.argv:
        print_table(hear_held_out())
        return
    for name in FRESH:
        print(f"\n{name}:")
        print_table(hear(read(f"{name}.jsonl")))


if __name__ == "__main__":
    main()
