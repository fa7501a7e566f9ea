import pytest
from pydantic import SecretStr

from agent.engine.messages import Usage
from agent.engine.span import NO_SPAN, Span
from agent.tracing.observations import usage_buckets
from agent.tracing.recorder import keyed_hash, trace_id_of
from config import SettingsError, load_settings


def test_where_nothing_is_traced_every_span_is_the_same_object_and_keeps_nothing() -> None:
    with NO_SPAN as root, root.child("llm.answer", "generation", input="prompt") as span:
        span.update(output="answer", usage=Usage(1, 2), level="ERROR")
        span.score("outcome", "answered", "CATEGORICAL")
    no_span: Span = NO_SPAN
    assert root is no_span
    assert span is no_span
    assert (root.recording, root.trace_id, root.trace) == (False, None, None)


def test_a_hash_is_16_hex_digits_that_depend_on_kind_id_and_key() -> None:
    hashes = {
        keyed_hash(kind, value, key)
        for kind in ("user", "chat")
        for value in (7, -7, 2**40)
        for key in ("one key", "another")
    }
    assert len(hashes) == 12
    assert all(len(each) == 16 and int(each, 16) >= 0 for each in hashes)


def test_a_user_keeps_the_hash_across_restarts_and_ways_to_hold_the_key() -> None:
    assert keyed_hash("user", 42, "key") == keyed_hash("user", "42", SecretStr("key"))
    assert keyed_hash("user", 42, "key") == "8a58a6fb90933a0d"


def test_a_turn_that_is_run_again_has_the_same_trace_id() -> None:
    assert trace_id_of(12, -100, 7) == trace_id_of("12", "-100", "7")
    assert trace_id_of(12, -100, 7) != trace_id_of(12, -1, 7)
    assert len(bytes.fromhex(trace_id_of(12, -100, 7))) == 16


@pytest.mark.parametrize(
    ("usage", "buckets"),
    [
        (Usage(100, 20, 30), {"input": 70, "input_cached_tokens": 30, "output": 20}),
        (Usage(100, 20), {"input": 100, "input_cached_tokens": 0, "output": 20}),
        (Usage(10, 0, 50), {"input": 0, "input_cached_tokens": 10, "output": 0}),
    ],
)
def test_usage_buckets_add_up_to_the_tokens_that_were_billed(
    usage: Usage, buckets: dict[str, int]
) -> None:
    assert usage_buckets(usage) == buckets
    assert sum(buckets.values()) == usage.total_tokens


@pytest.mark.parametrize("name", ["Production", "my bot", "langfuse-eu", "x" * 41])
def test_an_environment_that_langfuse_refuses_is_refused_at_the_start(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGFUSE_TRACING_ENVIRONMENT", name)
    with pytest.raises(SettingsError, match=r"^LANGFUSE_TRACING_ENVIRONMENT: must be 1 to 40 of"):
        load_settings(None)
    monkeypatch.setenv("LANGFUSE_TRACING_ENVIRONMENT", "berlin-2_test")
    assert load_settings(None).tracing.environment == "berlin-2_test"
