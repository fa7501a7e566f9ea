from pydantic import SecretStr

from agent.engine.messages import Usage
from agent.engine.span import NO_SPAN, Span
from agent.tracing.records import keyed_hash


def test_where_nothing_is_traced_every_span_is_the_same_object_and_keeps_nothing() -> None:
    with NO_SPAN as root, root.child("llm.answer", "generation", input="prompt") as span:
        span.update(output="answer", usage=Usage(1, 2), level="ERROR")
        span.score("outcome", "answered", "CATEGORICAL")
    no_span: Span = NO_SPAN
    assert root is no_span
    assert span is no_span
    assert (root.recording, root.trace) == (False, None)


def test_a_user_keeps_the_hash_across_restarts() -> None:
    assert keyed_hash("user", 42, SecretStr("key")) == "8a58a6fb90933a0d"
