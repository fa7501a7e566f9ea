"""Fit the classifier of concerns: `python -m agent.safety.train`.

It writes `agent/safety/weights.npz`, the same each time, from the labelled messages of the
repository. It needs scikit-learn, a dependency for development only. How well the classifier hears
messages that it was not fitted to is told by `python -m tests.evals.concern_report`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
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


def main() -> None:
    """Fit the regression to all messages, and write its weights."""
    messages = read_messages()
    with threadpool_limits(1):  # several threads add up in another order each time
        write_weights(fit(build_matrix(messages), label_numbers(messages)))


if __name__ == "__main__":
    main()
