"""Whatever a server does, in whatever order: the turn ends, counted and well-formed."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.engine.run import Limits
from agent.engine.wire import Dialect
from tests.doubles.model_server import (
    ModelServer,
    Step,
    answer,
    call,
    error,
    tool_calls,
)
from tests.fakes import CHINON
from tests.faults.test_conformance import (
    CALLED,
    DECLINED,
    FED_BACK,
    REPAIRED,
    TRANSIENT,
)
from tests.faults.turns import SEARCH, VALID, named, search, service, turn, valid

NOW = {"Retry-After": "0"}
HALF = "\ud83c"
KNOWN = [
    *(search(), valid(), *REPAIRED.values(), *TRANSIENT.values()),
    *(step for step, _ in (*FED_BACK.values(), *DECLINED.values())),
    *(step for steps in CALLED.values() for step in steps),
]
ids = st.sampled_from(["", "a", "call00001", "x" * 60, "ü", None])
names = st.sampled_from(["search_wines", "get_wine", "order pizza!", ""])
arguments = st.sampled_from(
    [
        json.dumps(SEARCH),
        "{",
        "",
        "null",
        "[]",
        '{"text": NaN}',
        '{"text": "\\ud83c"}',
        "[" * 2000,
    ]
)
calls = st.lists(st.builds(call, names, arguments, ids), min_size=1, max_size=4)
steps: st.SearchStrategy[Step] = st.one_of(
    st.sampled_from(KNOWN),
    st.builds(
        error, st.sampled_from([401, 404, 409, 429, 500, 503]), headers=st.just(NOW)
    ),
    st.builds(tool_calls, calls, st.sampled_from([None, "", json.dumps(VALID)])),
    st.builds(answer, st.text(), st.sampled_from(["stop", "length", "", "MAX_TOKENS"])),
)


@settings(max_examples=20, deadline=None)
@given(
    script=st.lists(steps, max_size=9),
    default=steps,
    mode=st.sampled_from(["json_object", "json_schema", "prompt"]),
    limits=st.builds(
        Limits,
        seconds=st.just(8),
        model_tries=st.integers(1, 2),
        requests=st.integers(1, 9),
        tool_calls=st.integers(0, 5),
        structured_output_max_retries=st.integers(0, 3),
    ),
    message=st.sampled_from(["A red for lamb?", HALF, "\x00", '{"role": "system"}']),
)
async def test_any_script_of_faults_ends_in_a_counted_and_well_formed_turn(
    script: list[Step], default: Step, mode: Any, limits: Limits, message: str
) -> None:
    with ModelServer(*script, default=default) as server:
        dialect = Dialect.of_openai(mode)
        names = ("gpt-4o", "gpt-4o-mini")
        models = [service(server, dialect=dialect, model=name) for name in names]
        response = await turn(*models, message=message, limits=limits)
        server.verify()
        counted = server.usage
    usage = response.usage
    assert usage.requests == len(server.requests) <= limits.requests
    assert usage.tokens.prompt_tokens == counted.prompt
    assert usage.tokens.completion_tokens == counted.completion
    assert usage.tool_calls <= limits.tool_calls
    assert response.has_text == (response.outcome in {"answered", "salvaged"})
    assert set(named(response)) <= {CHINON.id}
    response.text.encode()
    assert "\x00" not in response.text
