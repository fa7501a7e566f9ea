"""Fit the classifier of concerns: `python -m agent.safety.train`.

Each run writes the same file. `python -m tests.evals.concern_report` says which concerns the
classifier then notices.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_matrix, diags
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from agent.safety.classifier import (
    BUCKETS,
    LABELS,
    WEIGHTS_FILE,
    Weights,
    find_n_grams,
    scale,
)
from agent.safety.words import normalize_message

MESSAGES: Final = Path("tests/evals/concerns")
"""A file of labelled messages for each language, relative to the root of the repository."""
REGULARIZATION: Final = 0.15
"""The inverse strength of the penalty on large weights."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A labelled message."""

    text: str
    language: str
    label: str
    batch: str
    """The name of the messages that were written together with this one."""


def read_messages(folder: Path = MESSAGES) -> list[Labelled]:
    """Return all labelled messages. A concern of somebody else has the label `other`."""
    messages: list[Labelled] = []
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            label = row["concern"]
            if row.get("who") == "other":
                label = "other"
            message = Labelled(
                text=row["text"],
                language=file.stem,
                label=label,
                batch=row["batch"],
            )
            messages.append(message)
    return messages


def build_matrix(messages: list[Labelled]) -> Any:
    """Return a sparse matrix of the messages' n-grams.

    It has a row for each message, and a column for each bucket: first for n-grams of characters,
    then for those of words.
    """
    buckets: list[Any] = []
    values: list[Any] = []
    row_end = 0
    row_ends = [row_end]
    for message in messages:
        normalized = normalize_message(message.text)
        n_grams = find_n_grams(normalized)
        for numbers in (n_grams.chars, n_grams.words):
            bucket_numbers = numbers.ravel()
            count = len(bucket_numbers)
            buckets.append(bucket_numbers)
            values.append(np.full(count, scale(count)))
            row_end += count
        row_ends.append(row_end)
    columns = np.concatenate(buckets).astype(np.int32)
    cells = (np.concatenate(values), columns, row_ends)
    shape = (len(messages), 2 * BUCKETS)
    matrix = csr_matrix(cells, shape=shape)
    matrix.sum_duplicates()  # a message may have an n-gram several times
    return matrix


def number_labels(messages: list[Labelled]) -> Any:
    """Return the position in LABELS of each message's label."""
    numbers = [LABELS.index(message.label) for message in messages]
    return np.array(numbers)


def fit(matrix: Any, labels: Any) -> Weights:
    """Return the weights of a regression fitted to messages, rounded to 8 bits."""
    # A rare n-gram, such as one of the name of a medicine, says more than a frequent one.
    message_count, _ = matrix.shape
    # These are the messages with an n-gram of each bucket.
    counts_by_bucket = matrix.getnnz(axis=0)
    rarity = np.log((message_count + 1) / (counts_by_bucket + 1))
    model = LogisticRegression(
        C=REGULARIZATION,
        tol=1e-3,
        max_iter=300,
    )
    # Several threads would add up in another order each time, and so write another file.
    with threadpool_limits(1):
        model.fit(matrix @ diags(rarity), labels)
    weights = (model.coef_ * rarity).T  # one row for each bucket
    largest = np.abs(weights).max(axis=0)  # of each label
    factors = largest / np.iinfo(np.int8).max
    return Weights(
        by_bucket=np.rint(weights / factors).astype(np.int8),
        factors=factors.astype(np.float32),
        intercepts=model.intercept_.astype(np.float32),
    )


def main() -> None:
    """Fit the regression to all messages, and write its weights."""
    messages = read_messages()
    matrix = build_matrix(messages)
    labels = number_labels(messages)
    weights = fit(matrix, labels)
    np.savez_compressed(WEIGHTS_FILE, **asdict(weights))


if __name__ == "__main__":
    main()
