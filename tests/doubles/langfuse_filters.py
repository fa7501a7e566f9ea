"""The filters of a Langfuse server's tables over what arrived, as 4.16 stores it, and as 4.59.

A filter is written as the documentation writes it; of several conditions, with semicolons between
them, all hold.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence

from tests.doubles.otlp import OBSERVATION, OtlpReceiver, Span

CONDITION = re.compile(
    r"(?P<column>[^`]+?)(?: `(?P<key>[^`]+)`)? (?P<operator>any of|=) `(?P<value>[^`]+)`"
)
DECODES_METADATA = (4, 59)

Column = Callable[[OtlpReceiver, Span, str], Sequence[object]]


def matching(server: OtlpReceiver, text: str) -> set[str]:
    """The traces that a filter finds; AssertionError for one that no server has."""
    table, _, conditions = text.partition(": ")
    assert table in ("Traces", "Observations"), text
    roots = {span.trace_id: span for span in server.spans if span.parent_id is None}
    rows = list(roots.values()) if table == "Traces" else server.spans
    for condition in conditions.split("; "):
        found = CONDITION.fullmatch(condition)
        assert found, f"no filter of Langfuse: {condition}"
        column = (TRACES if table == "Traces" else OBSERVATIONS)[found["column"]]
        values = {str(each) for each in found["value"].split(", ")}
        rows = [
            row for row in rows if values & set(map(str, column(server, row, found["key"] or "")))
        ]
    return {row.trace_id for row in rows}


def tags(server: OtlpReceiver, span: Span, _: str) -> Sequence[object]:
    return next(each.tags for each in server.spans if each.span_id == root_of(server, span))


def root_of(server: OtlpReceiver, span: Span) -> str:
    roots = (each for each in server.spans if each.parent_id is None)
    return next(each.span_id for each in roots if each.trace_id == span.trace_id)


def score(server: OtlpReceiver, span: Span, name: str) -> Sequence[object]:
    of_trace = (each for each in server.scores if each["traceId"] == span.trace_id)
    values = (each["value"] for each in of_trace if each["name"] == name)
    return [int(each) if isinstance(each, float) else each for each in values]


def metadata(server: OtlpReceiver, span: Span, key: str) -> Sequence[object]:
    sent = span.attributes.get(f"{OBSERVATION}metadata.{key}")
    if sent is None:
        return []
    return [json.loads(sent) if server.version >= DECODES_METADATA else sent]


TRACES: Mapping[str, Column] = {
    "Tags": tags,
    "Name": lambda _, span, __: [span.attributes.get("langfuse.trace.name")],
    "Session ID": lambda _, span, __: [span.session],
    "User ID": lambda _, span, __: [span.user],
    "Scores (categorical)": score,
    "Scores (numeric)": score,
    "Metadata": metadata,
}
OBSERVATIONS: Mapping[str, Column] = {
    "Name": lambda _, span, __: [span.name],
    "Level": lambda _, span, __: [span.level],
    "Type": lambda _, span, __: [span.type.upper()],
    "Trace Tags": tags,
    "Metadata": metadata,
}
