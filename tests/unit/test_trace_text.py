"""Traces as text for a terminal."""

import io
import unicodedata
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from agent.tracing.records import TraceRecord
from bot.commands.traces import trace_table
from bot.reports import trace_text
from db.traces import to_trace_row
from tests.traces import retried_trace


def test_a_turn_is_shown_as_a_tree() -> None:
    shown = trace_text(retried_trace())
    for line in (
        "score structured_retries = 1",
        "├ turn [agent] 1.83 s · WARNING",
        "│   outcome=fallback · retried=true · retry_count=1 · cost_usd=0.0042 · "
        'error_types=["grounding", "model_error"] · fallback=true',
        "│ │ ├ retrieve.wines [retriever] 0.25 s",
        "│ ├ llm.answer [generation] 0.25 s · gpt-4o · 1,200 (1,000 cached) + 56 tokens · $0.0042"
        " · prompt sommelier v3 (production) · WARNING",
        "│ │   in  … 3 earlier",
        "│ │       … 7 more lines",
        "│ ├ telegram.send [span] 0.25 s · ERROR",
    ):
        assert line in shown.splitlines()
    whole = trace_text(retried_trace(), full=True)
    assert "system: You are a sommelier." in whole
    assert '{"line": 9}' in whole
    assert "more lines" not in whole


HOSTILE = (
    "[bold]b[/bold] [/] \x1b[2J\x1b]0;title\x07 \x9b31m \u202eright \r\x08 :wine_glass:"
)


def hostile_trace(text: str) -> TraceRecord:
    trace = retried_trace()
    for span in trace.spans:
        span.name = span.model = span.input = text
        span.output = {text: [text]}
        span.metadata = {text: text, "error_type": text}
    trace.spans[1].input = [
        {"role": text, "content": text},
        {"role": "user", "content": [text]},
    ]
    return replace(trace, session=text, user=text)


@given(st.text(max_size=40))
@example(HOSTILE)
def test_control_characters_are_removed(text: str) -> None:
    trace, screen = hostile_trace(text), io.StringIO()
    row = to_trace_row(trace)
    row.question = row.outcome = text
    table = trace_table([row])
    Console(file=screen, width=1000, color_system=None, highlight=False).print(table)
    for page in (screen.getvalue(), trace_text(trace), trace_text(trace, full=True)):
        seen = page.replace("\n", "")
        assert text != HOSTILE or "[bold]b[/bold] [/]" in seen
        assert not [
            char for char in seen if unicodedata.category(char) in {"Cc", "Cf", "Cs"}
        ]
