"""The loop of this project, every turn traced; masking and sending the traces count too."""

from dataclasses import replace
from functools import partial

from agent.tracing.langfuse.traces import langfuse_sink
from agent.tracing.masking import prepared
from agent.tracing.recorder import Recorder
from benchmarks.candidates import ours
from benchmarks.scenario import Candidate


def make(base_url: str) -> Candidate:
    """As `ours`, with traces and scores that go to `base_url`."""
    sink = langfuse_sink(
        "pk-lf-bench",
        "sk-lf-bench",
        base_url,
        prepare=partial(prepared, content="masked", secrets=()),
    )

    def flush() -> None:
        sink.flush(30)

    return replace(ours.make(base_url, Recorder(sink)), flush=flush)
