"""Read datasets of Langfuse and record experiments over them, by its client.

Every call waits for the network. A run is over when it is recorded: the task of an item puts the
traces of the item in place.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.tracing.records import TraceRecord

if TYPE_CHECKING:
    from langfuse import Langfuse

Traced = Mapping[str, Mapping[str, Sequence[TraceRecord]]]
"""The traces of each case of each variant; the last one has the scores."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a dataset that experiments are made over, as plain JSON data."""

    id: str
    input: Any
    expected: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def item_id(dataset: str, name: str) -> str:
    """Return the id of a dataset's item, which is the same in every run."""
    return hashlib.sha256(f"{dataset}:{name}".encode()).hexdigest()[:32]


def items_of(client: "Langfuse", dataset: str) -> list[Item]:
    """Return the items of a dataset that are not archived, in the order Langfuse has them.

    Raises:
        Exception: there is no such dataset, or Langfuse gave no answer.
    """
    return [
        Item(
            item.id,
            item.input,
            item.expected_output,
            item.metadata if isinstance(item.metadata, dict) else {},
        )
        for item in client.get_dataset(dataset).items
        if item.status == "ACTIVE"
    ]


def put_items(
    client: "Langfuse", dataset: str, items: Sequence[Item], hide: Callable[[object], object]
) -> None:
    """Make a dataset, or bring its items up to date by their ids.

    Raises:
        Exception: Langfuse did not accept it.
    """
    client.create_dataset(name=dataset)
    for item in items:
        client.create_dataset_item(
            dataset_name=dataset,
            id=item.id,
            input=hide(item.input) or {},  # the client leaves out an item without input
            expected_output=hide(item.expected),
            metadata=dict(item.metadata),
        )


def record(
    client: "Langfuse",
    dataset: str,
    run: str,
    items: Mapping[str, Item],
    traced: Traced,
) -> tuple[int, str]:
    """Record a run as an experiment for each variant, over the items of cases that were traced.

    Return how many items were recorded, and the address of the last experiment.

    Raises:
        Exception: Langfuse has no such dataset, or gave no answer.
    """
    cases = {item.id: case for case, item in items.items()}
    stored = client.get_dataset(dataset).items
    recorded, url = 0, ""
    for variant, traces in traced.items():
        result = client.run_experiment(
            name=dataset,
            run_name=f"{run} · {variant}",
            data=[item for item in stored if traces.get(cases.get(item.id, ""))],
            task=_task(client, {items[case].id: found for case, found in traces.items()}),
            metadata={"run": run, "variant": variant},
        )
        recorded += len(result.item_results)
        url = result.experiment_url or url
    return recorded, url


def _task(client: "Langfuse", traced: Mapping[str, Sequence[TraceRecord]]) -> Callable[..., Any]:
    from agent.tracing.observations import observe  # noqa: PLC0415 - loads the client

    def task(*, item: Any, **_: Any) -> object:
        traces = traced[item.id]
        for trace in traces:
            observe(client, trace)
        for score in traces[-1].scores.values():
            given: dict[str, Any] = {"name": score.name, "value": score.value}
            client.score_current_span(**given, data_type=score.kind, comment=score.comment or None)
        return traces[-1].root.output

    return task
