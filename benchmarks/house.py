"""`python -m benchmarks.house acts|speech`: say how well the house hears, or fit it.

`benchmarks/acts/` holds messages by language; `[act context]` stands above those of an act. Each
quarter of them is judged by what was fitted to the others, and those in `unseen/` by the classifier
in use, which is never fitted to them.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from agent.classifier import Classifier, classifier, features, written
from agent.house_sommelier.acts import (
    ACT_CLASSIFIER,
    CONTEXTS,
    SPEECH_CLASSIFIER,
    Context,
    act_features,
)
from agent.house_sommelier.lexicon import LABELS as POLARITIES
from agent.house_sommelier.lexicon import POLARITY_CLASSIFIER, is_mention, parse
from agent.house_sommelier.lexicon import features as polarity_features
from agent.house_sommelier.reading import read
from agent.text import LANGUAGES, Language, pattern
from benchmarks.classifiers import TYPED, Row, Task, fitted, typed

POLARITY: Final = Path(__file__).with_name("polarity.txt")
"""A language and a message a line, in which [+wanted] and [-unwanted] are marked."""
MARKED: Final = pattern(r"\[[+-][^\]]*\]")
PLAIN: Final = 2
"""Of how many plain messages one is learnt from."""
REFUSING: Final = frozenset({"not", "not_before", "refuse", "drop", "allergy"})
UNSEEN: Final = TYPED / "unseen"
"""Messages that nothing is fitted to."""
FOLDS: Final = ("0", "1", "2", "3")
SURE: Final = 0.25
"""From how likely on the house acts on what it hears."""


def messages(folder: Path = TYPED) -> Iterator[tuple[Language, str, str, str, Context]]:
    """Yield language, message, act, quarter and context; what fits anywhere in two contexts."""
    for at, language, line, label, context in typed(folder):
        contexts = tuple(each for each in CONTEXTS if context in (each, ""))
        for place in sorted({contexts[at % len(contexts)], contexts[(at + 1) % len(contexts)]}):
            yield language, line, label, FOLDS[at % len(FOLDS)], place


def act_rows(folder: Path = TYPED) -> Iterator[Row]:
    """Read the messages by act, each with its context and language before it."""
    for language, line, label, fold, context in messages(folder):
        yield Row(f"{context} {language} {line}", label, fold)


def features_in_context(text: str) -> frozenset[int]:
    """Return what the house looks at in a message of `act_rows`."""
    context, language, line = text.split(" ", 2)
    spoken = None if context == "start" else cast("Language", language)
    return act_features(read(line, spoken), cast("Context", context))


def polarity_rows() -> Iterator[Row]:
    """Read mentions of wines and tastes in messages, each wanted or not.

    Where people look for wine and no word of theirs says no, all that they name is wanted.
    """
    for line in POLARITY.read_text("utf-8").splitlines():
        text, places, read_to = "", dict[int, str](), line.index("\t") + 1
        for found in MARKED.finditer(line):
            text += line[read_to : found.start()]
            places |= dict.fromkeys(range(len(text), len(text) + len(found[0]) - 3), found[0][1])
            text, read_to = text + found[0][2:-1], found.end()
        text += line[read_to:]
        for label, start in _mentions(text, places):
            yield Row(f"{start} {text}", label, FOLDS[len(text) % len(FOLDS)])
    plain = dict.fromkeys(text for _, _, text, act, _ in typed() if act == "search")
    for text in [*plain][::PLAIN]:
        if not any(span.fields & REFUSING for span in parse(text).spans):
            for label, start in _mentions(text):
                yield Row(f"{start} {text}", label, "")


def _mentions(text: str, places: Mapping[int, str] | None = None) -> Iterator[tuple[str, int]]:
    """Yield label and first word of each mention, of those at `places` of letters if given."""
    phrases = parse(text)
    for span in filter(is_mention, phrases.spans):
        at = phrases.words[span.start].start
        if places is None or at in places:
            is_out = places is not None and places[at] == "-"
            yield POLARITIES[is_out], span.start


def features_of_mention(text: str) -> frozenset[int]:
    """Return what the house looks at around a mention of `polarity_rows`."""
    place, _, said = text.partition(" ")
    phrases = parse(said)
    return polarity_features(phrases, phrases.at(int(place)))


def speech_rows() -> Iterator[Row]:
    """Read the messages that have words by language, each once, in the first that has it."""
    said = reversed(list(messages()))
    found = {line: Row(line, language, fold) for language, line, _, fold, _ in said}
    return (row for row in found.values() if features(row.text))


TASKS: Final = {
    "acts": lambda: Task(
        tuple(sorted({row.label for row in act_rows()})),
        ACT_CLASSIFIER,
        act_rows,
        features_in_context,
        1 << 15,
        FOLDS,
        epochs=15,
        dropped=0,
        smoothing=0.05,
    ),
    "polarity": lambda: Task(
        POLARITIES,
        POLARITY_CLASSIFIER,
        polarity_rows,
        features_of_mention,
        1 << 15,
        FOLDS,
        epochs=12,
        rate=0.3,
        dropped=0.3,
    ),
    "speech": lambda: Task(
        LANGUAGES,
        SPEECH_CLASSIFIER,
        speech_rows,
        features,
        1 << 14,
        FOLDS,
        epochs=15,
        dropped=0,
    ),
}


Judged = tuple[str, str, float]
"""The label of a message, the likeliest one and how likely that is."""


def judged(model: Classifier, task: Task, rows: Iterable[Row]) -> Iterator[Judged]:
    """Tell what a classifier makes of messages."""
    for row in rows:
        likely = model.likelihoods_of(task.features(row.text))
        best = max(likely, key=likely.__getitem__)
        yield row.label, best, likely[best]


def summary(said: Sequence[Judged]) -> str:
    """Say how many of these are right, of all and of those that the house acts on."""
    sure = [each for each in said if each[2] >= SURE]
    right, surely = (sum(one == two for one, two, _ in each) / len(each) for each in (said, sure))
    return f"right {right:.1%} of {len(said)}; of the {len(sure) / len(said):.0%} sure {surely:.1%}"


def validate(task: Task) -> None:
    """Print how much of each label is found where it was not learnt from, and as what else."""
    rows, said = list(task.rows()), list[Judged]()
    for fold in task.judged:
        model = fitted([row for row in rows if row.batch != fold], task)
        said += judged(model, task, (row for row in rows if row.batch == fold))
    print(summary(said))
    for label in task.labels:
        told = Counter(best for one, best, _ in said if one == label)
        taken = {each: count for each, count in told.most_common(5) if each != label}
        print(f"{label:12} {told[label] / told.total():.0%} of {told.total()}, else {taken}")


def main() -> None:
    """Validate, or fit and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--write", action="store_true", help="fit to all messages and write")
    given = parser.parse_args()
    task = TASKS[given.task]()
    if given.task == "acts":
        unseen = judged(classifier(ACT_CLASSIFIER), task, act_rows(UNSEEN))
        print("never fitted to, as in use:", summary(list(unseen)))
    if given.write:
        task.file.write_bytes(written(fitted(list(task.rows()), task)))
    else:
        validate(task)


if __name__ == "__main__":
    main()
