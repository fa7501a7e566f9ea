"""Contracts of any type: what is asked for, what is read, what a person gets."""

import enum
from datetime import date
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from agent.engine.contract import Evidence, OutputContract
from agent.engine.loop import write_system_prompt
from agent.engine.wire import build_response_format
from tests.doubles.openai_rules import schema_errors
from tests.parsing import parsed


class Colour(enum.Enum):
    RED = "red"
    WHITE = "white"


class Advice(BaseModel):
    advice: str


class Strict(BaseModel):
    """An answer that takes a date for nothing but a date."""

    model_config = ConfigDict(strict=True)

    day: date
    colours: tuple[Colour, ...] = Field(default=(), description="Which.")


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        (str, "Take it.", "Take it."),
        (list[str], '["a", "b"]', "a\n\nb"),
        (dict[str, int], '{"a": 1}', "1"),
        (Literal["red", "white"], '"red"', "red"),
        (Colour, '"white"', "white"),
        (Advice, '{"advice": "Take it."}', "Take it."),
        (Strict, '{"day": "2024-01-02", "colours": ["red"]}', "2024-01-02\n\nred"),
        (TypeAdapter(list[Advice]), '[{"advice": "Take it."}]', "Take it."),
    ],
)
def test_any_type_can_be_asked_for(kind: Any, raw: str, text: str) -> None:
    result = parsed(raw, OutputContract(kind), Evidence())
    assert (result.text, result.error) == (text, None)


def test_an_answer_without_a_word_is_none() -> None:
    result = parsed('{"advice": " "}', OutputContract(Advice), Evidence())
    assert (result.error_type, result.error) == ("semantic", "the answer has no text")


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        (Advice, "json_schema"),
        (Strict, "json_schema"),
        (dict[str, int], "json_object"),
        (int, None),
        (list[Advice], None),
    ],
)
def test_a_format_is_asked_for_as_strictly_as_it_can_be(
    kind: Any, mode: str | None
) -> None:
    requested = OutputContract(kind).output_format(Evidence())
    asked = build_response_format(requested, "json_schema") if requested else {}
    assert asked.get("type") == mode
    if mode == "json_schema":
        assert list(schema_errors(asked["json_schema"]["schema"], ())) == []


def test_choices_of_a_text_are_named_in_the_prompt_and_plain_text_needs_no_schema() -> (
    None
):
    assert '"red"' in write_system_prompt("Choose.", OutputContract(Colour))
    assert write_system_prompt("Talk.", OutputContract(str)) == "Talk."
