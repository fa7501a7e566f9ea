import pytest
from pydantic import SecretStr

from agent.engine.messages import Usage
from agent.engine.span import NO_SPAN, Span
from agent.tracing.recorder import keyed_hash
from config import SettingsError, load_settings


def test_where_nothing_is_traced_every_span_is_the_same_object_and_keeps_nothing() -> None:
    with NO_SPAN as root, root.child("llm.answer", "generation", input="prompt") as span:
        span.update(output="answer", usage=Usage(1, 2), level="ERROR")
        span.score("outcome", "answered", "CATEGORICAL")
    no_span: Span = NO_SPAN
    assert root is no_span
    assert span is no_span
    assert (root.recording, root.trace_id, root.trace) == (False, None, None)


def test_a_user_keeps_the_hash_across_restarts_and_ways_to_hold_the_key() -> None:
    assert keyed_hash("user", 42, "key") == keyed_hash("user", "42", SecretStr("key"))
    assert keyed_hash("user", 42, "key") == "8a58a6fb90933a0d"


@pytest.mark.parametrize("name", ["Production", "my bot", "langfuse-eu", "x" * 41])
def test_an_environment_that_langfuse_refuses_is_refused_at_the_start(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGFUSE_TRACING_ENVIRONMENT", name)
    with pytest.raises(SettingsError, match=r"^LANGFUSE_TRACING_ENVIRONMENT: must be 1 to 40 of"):
        load_settings(None)
    monkeypatch.setenv("LANGFUSE_TRACING_ENVIRONMENT", "berlin-2_test")
    assert load_settings(None).langfuse_tracing_environment == "berlin-2_test"
