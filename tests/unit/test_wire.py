"""What servers answer, and what is made of it."""

from dataclasses import replace
from typing import Any

import pytest

from agent.engine.messages import TokenUsage
from agent.engine.wire import Dialect, ServerError, read_completion

OPENAI = Dialect.of_openai("json_schema")


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (None, TokenUsage()),
        ({"prompt_tokens": "9", "completion_tokens": -3}, TokenUsage()),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}},
            TokenUsage(9, 0, 4),
        ),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 5}, TokenUsage(9, 0, 5)),
        (
            {
                "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            TokenUsage(0, 9, 0, 7),
        ),
    ],
)
def test_tokens_are_counted_as_the_server_gives_them(
    usage: Any, counted: TokenUsage
) -> None:
    assert read_completion({"usage": usage}, "m").usage == counted


@pytest.mark.parametrize(
    ("complaint", "learned"),
    [
        ("'max_completion_tokens' is too large", None),
        ("temperature must be 1", replace(OPENAI, takes_temperature=False)),
        ("response_format with tools", replace(OPENAI, format_beside_tools=False)),
        ("no json_schema here", replace(OPENAI, mode="json_object")),
    ],
)
def test_a_dialect_is_learned_from_complaints(
    complaint: str, learned: Dialect | None
) -> None:
    assert OPENAI.simplify(complaint) == learned


def test_a_server_says_how_long_to_wait() -> None:
    assert ServerError(429, None, {"retry-after": "0.25"}).retry_after == 0.25
    assert (
        ServerError(429, None, {"retry-after": "Wed, 21 Oct 2015"}).retry_after is None
    )


def test_a_refusal_in_any_shape_is_read_without_what_was_sent() -> None:
    detail = {"loc": ["body"], "msg": "wrong", "input": {"messages": "secret"}}
    for body in (
        {"detail": [detail]},
        [{"error": {"message": detail}}],
        {"error": detail},
    ):
        said = ServerError(422, body).text
        assert "wrong" in said
        assert "secret" not in said
    assert ServerError(500, "<html>\n  no\n</html>").text == "<html> no </html>"
    assert ServerError(500, None).text == ""
