import logging

import pytest
from pydantic import SecretStr

from agent.langfuse_tracer import usage_buckets
from agent.log_limits import OneLineAMinute, quietened
from agent.messages import Usage
from agent.tracing import NO_SPAN, NO_TRACE, Span, Tracer, user_hash


def record(level: int = logging.ERROR, **extra: object) -> logging.LogRecord:
    return logging.makeLogRecord({"levelno": level, "msg": "export failed", **extra})


async def test_without_keys_every_span_is_the_same_object_and_keeps_nothing() -> None:
    tracer: Tracer = NO_TRACE
    with (
        tracer.turn(input="a red", session="chat", user="someone") as root,
        root.child("llm.answer", "generation", input="prompt") as span,
    ):
        span.update(output="answer", usage=Usage(1, 2), level="ERROR")
        span.score("outcome", "answered", "CATEGORICAL")
    no_span: Span = NO_SPAN
    assert root is no_span
    assert span is no_span
    assert (root.recording, root.trace_id) == (False, None)
    await tracer.close()


def test_without_keys_an_exception_passes_through() -> None:
    with pytest.raises(KeyError), NO_TRACE.turn(input="", session="", user=""):
        raise KeyError("wine")


def test_a_user_is_16_hex_digits_that_depend_on_id_and_key() -> None:
    hashes = {
        user_hash(user_id, key) for user_id in (7, -7, 2**40) for key in ("one key", "another")
    }
    assert len(hashes) == 6
    assert all(len(each) == 16 and int(each, 16) >= 0 for each in hashes)


def test_a_user_keeps_the_hash_across_restarts_and_ways_to_hold_the_key() -> None:
    assert user_hash(42, "key") == user_hash(42, SecretStr("key")) == "f2991b7ce981d0b5"


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


def test_a_dead_server_is_logged_once_a_minute() -> None:
    now = 0.0
    quiet = OneLineAMinute(clock=lambda: now)
    logged = []
    for now in (0.0, 0.0, 30.0, 59.9, 60.0, 61.0, 119.9, 150.0):
        if quiet.filter(record()):
            logged.append(now)
    assert logged == [0.0, 60.0, 150.0]


def test_what_the_client_says_below_warning_is_not_logged_and_counts_for_nothing() -> None:
    quiet = OneLineAMinute(clock=lambda: 0.0)
    assert not quiet.filter(record(logging.INFO))
    assert quiet.filter(record(logging.WARNING))


def test_a_stack_of_the_client_is_not_logged() -> None:
    failed = record(exc_info=(ValueError, ValueError("secret"), None), stack_info="stack")
    assert OneLineAMinute(clock=lambda: 0.0).filter(failed)
    assert logging.Formatter().format(failed) == "export failed"


def test_only_loggers_of_the_client_are_quietened_and_only_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    theirs, ours = logging.getLogger("opentelemetry.sdk.test"), logging.getLogger("bot.test")
    with quietened(OneLineAMinute(clock=lambda: 0.0)):
        for _ in range(3):
            theirs.warning("export failed")
            ours.warning("heard")
    theirs.warning("export failed")
    assert [each.name for each in caplog.records].count("bot.test") == 3
    assert [each.name for each in caplog.records].count("opentelemetry.sdk.test") == 2
