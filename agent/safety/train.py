"""Fit the classifier of concerns, or report how well it hears messages that it was not fitted to.

    python -m agent.safety.train            # write agent/safety/weights.npz, the same each time
    python -m agent.safety.train --report   # recall and false alarms, held out by batch

This needs scikit-learn, a dependency for development only.
"""

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits

from agent.safety.classifier import (
    CHAR_BUCKETS,
    LABELS,
    WEIGHTS_FILE,
    WORD_BUCKETS,
    bucket_ids,
    bucket_values,
)

MESSAGES: Final = Path("tests/evals/concerns")
"""A file of labelled messages for each language, relative to the root of the repository."""
REGULARIZATION: Final = 10.0
"""The inverse strength of the penalty on large weights; 3 to 30 were equally good."""
FOLDS: Final = 8
THRESHOLDS: Final = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
NO_CONCERN: Final = frozenset({"none", "other", "health"})
MAX_WEIGHT: Final = 127


@dataclass(frozen=True, slots=True)
class Labelled:
    """A labelled message; messages of one batch were written together."""

    text: str
    language: str
    label: str
    batch: str


def read_messages(folder: Path = MESSAGES) -> list[Labelled]:
    """Return all labelled messages; a concern of somebody else has the label `other`."""
    messages = list[Labelled]()
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            label = "other" if row.get("who") == "other" else row["concern"]
            messages.append(Labelled(row["text"], file.stem, label, row["batch"]))
    return messages


def build_matrix(messages: list[Labelled]) -> Any:
    """Return a sparse matrix of the messages' buckets."""
    rows = [bucket_ids(message.text) for message in messages]
    starts = np.cumsum([0, *map(len, rows)])
    values = np.concatenate([bucket_values(row) for row in rows])
    shape = (len(rows), CHAR_BUCKETS + WORD_BUCKETS)
    return csr_matrix((values, np.concatenate(rows), starts), shape=shape)


def label_numbers(messages: list[Labelled]) -> Any:
    """Return the position in LABELS of each message's label."""
    return np.array([LABELS.index(message.label) for message in messages])


def fit(matrix: Any, labels: Any) -> LogisticRegression:
    """Return a regression fitted to messages."""
    return LogisticRegression(C=REGULARIZATION, tol=1e-3, max_iter=300).fit(matrix, labels)


def write_weights(model: LogisticRegression, file: Path = WEIGHTS_FILE) -> None:
    """Write the weights of a regression, rounded to 8 bits."""
    weights = model.coef_.T  # one row for each bucket
    factors = np.abs(weights).max(axis=0) / MAX_WEIGHT
    np.savez(
        file,
        buckets=np.rint(weights / factors).astype(np.int8),
        factors=factors.astype(np.float32),
        intercepts=model.intercept_.astype(np.float32),
    )


def report(messages: list[Labelled]) -> None:
    """Print recall by concern and language, and false alarms, of batches that were held out."""
    matrix = build_matrix(messages)
    labels = label_numbers(messages)
    batches = [message.batch for message in messages]
    probabilities = np.zeros((len(messages), len(LABELS)))
    for known, held_out in GroupKFold(FOLDS).split(matrix, labels, batches):
        model = fit(matrix[known], labels[known])
        probabilities[held_out] = model.predict_proba(matrix[held_out])
    for threshold in THRESHOLDS:
        print(f"\nfrom {threshold}:")
        _print_table(messages, probabilities, threshold)


def _print_table(messages: list[Labelled], probabilities: Any, threshold: float) -> None:
    heard, total = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for message, row in zip(messages, probabilities, strict=True):
        alarms = {label for label, share in zip(LABELS, row, strict=True) if share >= threshold}
        is_harmless = message.label in NO_CONCERN
        kind = "false alarms" if is_harmless else message.label
        is_heard = bool(alarms - NO_CONCERN) if is_harmless else message.label in alarms
        for language in (message.language, "all"):
            total[kind, language] += 1
            heard[kind, language] += is_heard
    languages = sorted({language for _, language in total})
    print("concern".ljust(14), *(language.rjust(10) for language in languages))
    for kind in (*(label for label in LABELS if label not in NO_CONCERN), "false alarms"):
        cells = (f"{heard[kind, name]}/{total[kind, name]}" for name in languages)
        print(kind.ljust(14), *(cell.rjust(10) for cell in cells))


def main() -> None:
    """Write the weights, or print the report."""
    messages = read_messages()
    with threadpool_limits(1):  # several threads add up in another order each time
        if "--report" in sys.argv:
            report(messages)
        else:
            write_weights(fit(build_matrix(messages), label_numbers(messages)))


if __name__ == "__main__":
    main()
