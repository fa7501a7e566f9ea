"""The loop of this project, every turn traced; sending the traces counts too."""

from dataclasses import replace

from agent.langfuse.sink import langfuse_sink
from agent.tracing import Recorder
from benchmarks.candidates import ours
from benchmarks.scenario import Candidate


def make(base_url: str) -> Candidate:
    """As `ours`, with traces and scores that go to `base_url`."""
    sink = langfuse_sink("pk-lf-bench", "sk-lf-bench", base_url)

    def flush() -> None:
        sink.flush(30)

    return replace(ours.make(base_url, Recorder(sink)), flush=flush)
