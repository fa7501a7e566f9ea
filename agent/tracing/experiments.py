"""Read datasets of Langfuse and record experiments over them, by its client.

Every call waits for the network, and raises if Langfuse gives no answer, or another one. A run is
over when it is recorded: the task of an item puts the traces of the item in place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.tracing.masking import Masking
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


def items_of(client: "Langfuse", dataset: str) -> list[Item]:
    """Return the items of a dataset that are not archived, in the order Langfuse has them."""
    return [
        Item(item.id, item.input, item.expected_output, dict(item.metadata or {}))
        for item in client.get_dataset(dataset).items
        if item.status == "ACTIVE"
    ]


def put_items(client: "Langfuse", dataset: str, items: Sequence[Item], masking: Masking) -> None:
    """Make a dataset, or bring its items up to date by their ids, with masked data."""
    client.create_dataset(name=dataset)
    shown = masking.content != "none"
    for item in items:
        client.create_dataset_item(
            dataset_name=dataset,
            id=item.id,
            # The client leaves out an item without input.
            input=masking.value(item.input) if shown else {},
            expected_output=masking.value(item.expected) if shown else None,
            metadata=dict(item.metadata),
        )


def record(
    client: "Langfuse", dataset: str, run: str, items: Mapping[str, Item], traced: Traced
) -> tuple[int, str]:
    """Record a run as an experiment for each variant, over the items of cases that were traced.

    Return how many items were recorded, and the address of the last experiment.
    """
    from agent.tracing.observations import observe  # noqa: PLC0415 - loads the client

    stored = client.get_dataset(dataset).items
    recorded, url = 0, ""
    for variant, cases in traced.items():
        traces = {items[case].id: found for case, found in cases.items() if found}

        def task(*, item: Any, traces: Any = traces, **_: Any) -> object:
            for trace in traces[item.id]:
                observe(client, trace)
            for score in trace.scores.values():
                client.score_current_span(
                    name=score.name,
                    value=score.value,
                    data_type=score.kind,
                    comment=score.comment or None,
                )
            return trace.root.output

        result = client.run_experiment(
            name=dataset,
            run_name=f"{run} · {variant}",
            data=[item for item in stored if item.id in traces],
            task=task,
            metadata={"run": run, "variant": variant},
        )
        recorded += len(result.item_results)
        url = result.experiment_url or url
    return recorded, url
