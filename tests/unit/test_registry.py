"""Tools as other people write them, and what their misuse says."""

import asyncio
from typing import Any

import pytest

from agent.engine.errors import ToolError
from agent.engine.messages import ToolCall
from agent.engine.run import Limits, Run
from agent.engine.tools import Toolbox, tool


async def look(city: str = "Rome", count: int = 1) -> str:
    """Look."""
    return f"{city} {count}"


async def untyped(city) -> str:  # type: ignore[no-untyped-def]
    """Look."""
    return str(city)


def test_an_unknown_tool_is_named_in_the_error() -> None:
    with pytest.raises(TypeError, match="tool untyped: annotate the parameter city"):
        tool(untyped)


async def called(function: Any, arguments: str = "{}") -> tuple[str, str | None]:
    run = Run(limits=Limits(tool_seconds=0.05, result_chars=100))
    result = await Toolbox([tool(function)]).call(
        ToolCall("1", function.__name__, arguments), run
    )
    return result.text, result.error_type


async def test_odd_arguments_are_told() -> None:
    text, kind = await called(look, '{"count": ' + "[" * 5000 + "}")
    assert text.startswith("Error: answer: Invalid JSON: recursion limit exceeded")
    assert kind == "invalid_arguments"


def returning(value: object) -> Any:
    async def give() -> object:
        """Give."""
        if isinstance(value, BaseException):
            raise value
        return value

    return give


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        (
            object(),
            "Error: give failed (PydanticSerializationError)",
            "PydanticSerializationError",
        ),
        (TimeoutError("secret"), "Error: give failed (TimeoutError)", "TimeoutError"),
        (ToolError("no " * 9000), "Error: no no no", "tool_error"),
    ],
)
async def test_whatever_a_tool_does_is_a_message(
    value: object, text: str, kind: str | None
) -> None:
    said, error = await called(returning(value))
    assert said.startswith(text)
    assert len(said) < 200
    assert "secret" not in said
    assert error == kind


async def test_a_tool_that_hangs_is_left_alone() -> None:
    async def hang() -> None:
        """Wait for ever."""
        await asyncio.sleep(60)

    assert await called(hang) == ("Error: hang took longer than 0.05 s", "timeout")
