"""Fit the classifier of concerns: `python -m agent.safety.train`.

It writes the same `agent/safety/weights.npz` each time, and needs scikit-learn, a dependency for
development. `python -m tests.evals.concern_report` tells how well the classifier hears.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from agent.safety.classifier import BUCKETS, LABELS, WEIGHTS_FILE, find_n_grams, scale
from agent.safety.words import normalize

MESSAGES: Final = Path("tests/evals/concerns")
"""A file of labelled messages for each language, relative to the root of the repository."""
REGULARIZATION: Final = 10.0
"""The inverse strength of the penalty on large weights."""
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
    """Return a sparse matrix of the messages' n-grams: a row for each message."""
    buckets, values, ends = list[Any](), list[Any](), [0]
    for message in messages:
        n_grams = find_n_grams(normalize(message.text))
        chars, words = n_grams.chars.ravel(), n_grams.words.ravel()
        buckets += [chars, words]
        values += [np.full(len(kind), scale(len(kind))) for kind in (chars, words)]
        ends.append(ends[-1] + len(chars) + len(words))
    cells = (np.concatenate(values), np.concatenate(buckets).astype(np.int32), ends)
    matrix = csr_matrix(cells, shape=(len(messages), 2 * BUCKETS))
    matrix.sum_duplicates()
    return matrix


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
    np.savez_compressed(
        file,
        buckets=np.rint(weights / factors).astype(np.int8),
        factors=factors.astype(np.float32),
        intercepts=model.intercept_.astype(np.float32),
    )


def main() -> None:
    """Fit the regression to all messages, and write its weights."""
    messages = read_messages()
    with threadpool_limits(1):  # several threads add up in another order each time
        write_weights(fit(build_matrix(messages), label_numbers(messages)))


if __name__ == "__main__":
    main()
