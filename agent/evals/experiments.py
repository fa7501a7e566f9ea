"""Read and write data sets of Langfuse, and record evaluation runs as experiments over them.

The calls of Langfuse's client block while they wait for the network. The calls raise errors of HTTP
and of the client.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.tracing.langfuse_project import Refused
from agent.tracing.masking import Masking
from agent.tracing.records import TraceRecord

if TYPE_CHECKING:
    from agent.tracing.delivery import LangfuseApi
    from agent.tracing.encoding import EncodedItem, TraceEncoder

TracesByVariant = Mapping[str, Mapping[str, Sequence[TraceRecord]]]
"""The traces by variant and by the id of an item. The last trace of an item has the scores."""


@dataclass(slots=True)
class Recorded:
    """The result of recording a run on a server."""

    items: int = 0
    """The number of items that the server has accepted."""
    scores: int = 0
    """The number of scores that the server has accepted."""
    refused: list[str] = field(default_factory=list)
    """The reason of the server for each item and score that it has refused."""
    url: str = ""
    """The address of the experiment."""


def fetch_items(encoder: "TraceEncoder", dataset: str) -> list[Any]:
    """Return the items of a data set that are not archived, in the order of Langfuse."""
    items = encoder.client.get_dataset(dataset).items
    return [item for item in items if item.status == "ACTIVE"]


def put_items(
    encoder: "TraceEncoder",
    dataset: str,
    items: Iterable[Mapping[str, Any]],
    masking: Masking,
) -> None:
    """Create a data set, or update its items by their ids, with masked data.

    An item has an `id`, an `input`, an `expected_output` and `metadata`.
    """
    client = encoder.client
    client.create_dataset(name=dataset)
    for item in items:
        masked_input = masking.mask_value(item["input"])
        expected_output = masking.mask_value(item["expected_output"])
        if masking.content == "none":
            masked_input = {}  # the client leaves out an item whose input is None
            expected_output = None
        client.create_dataset_item(
            dataset_name=dataset,
            id=item["id"],
            input=masked_input,
            expected_output=expected_output,
            metadata=item["metadata"],
        )


async def record_run(
    api: "LangfuseApi",
    encoder: "TraceEncoder",
    dataset: str,
    run: str,
    traces: TracesByVariant,
) -> Recorded:
    """Record a run as one experiment for each variant. An experiment has the traced items.

    Raises:
        Unavailable: the server does not answer.
    """
    stored = await asyncio.to_thread(encoder.client.get_dataset, dataset)
    recorded = Recorded()
    for variant, traces_by_item in traces.items():
        experiment = {
            "name": dataset,
            "run_name": f"{run} · {variant}",
            "metadata": {"run": run, "variant": variant},
        }
        for item in stored.items:
            item_traces = traces_by_item.get(item.id)
            if not item_traces:
                continue
            encoded = await asyncio.to_thread(
                encoder.encode_item, item, item_traces, **experiment
            )
            await _send_item(api, encoded, recorded)
    return recorded


async def _send_item(
    api: "LangfuseApi",
    encoded: "EncodedItem",
    recorded: Recorded,
) -> None:
    """Send an item with its scores, and count what the server has accepted."""
    if encoded.url:
        recorded.url = encoded.url
    try:
        await api.export(encoded.spans)
    except Refused as error:
        recorded.refused.append(str(error))
        return
    recorded.items += 1
    for score in encoded.scores:
        try:
            await api.create_score(score)
        except Refused as error:
            recorded.refused.append(str(error))
        else:
            recorded.scores += 1
