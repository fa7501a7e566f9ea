"""The loop of this project, every turn traced; sending the traces counts too."""

from dataclasses import replace

from agent.langfuse_tracer import LangfuseTracer
from benchmarks.candidates import ours
from benchmarks.scenario import Candidate


def make(base_url: str) -> Candidate:
    """As `ours`, with traces and scores that go to `base_url`."""
    tracer = LangfuseTracer("pk-lf-bench", "sk-lf-bench", base_url)
    return replace(ours.make(base_url, tracer), flush=tracer._client.flush)
