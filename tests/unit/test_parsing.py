"""Raw text -> ParseResult: whatever a model returns, a result and never an exception."""

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter

from agent.engine.contract import Evidence, OutputContract
from agent.sommelier.answer import SOMMELIER
from agent.sommelier.sommelier_prompts import (
    SommelierResponse,
    validate_semantic_content,
)
from agent.sommelier.wine_tools import wines_by_id
from tests.fakes import CHINON
from tests.parsing import parsed

EVIDENCE = Evidence(sources=wines_by_id([CHINON]))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner)
    ),
    max_leaves=12,
)
near_answers = st.fixed_dictionaries(
    {
        "response_type": st.sampled_from(
            ["recommendation", "informational", "off_topic", "x"]
        )
    },
    optional={
        "intro": st.text(max_size=30) | st.none(),
        "wines": st.lists(
            st.fixed_dictionaries({"wine_id": st.sampled_from([CHINON.id, "x", ""])}),
            max_size=3,
        )
        | json_values,
        "closing": st.text(max_size=10),
    },
)
texts = (
    st.text()
    | json_values.map(json.dumps)
    | near_answers.map(json.dumps)
    | st.text(alphabet="{}[]\",:'\\/*ab1 \n")
    | near_answers.flatmap(
        lambda value: st.integers(0, 80).map(
            lambda cut: json.dumps(value)[: -cut or None]
        )
    )
)


@given(texts)
def test_any_text_gives_a_result_and_what_is_accepted_keeps_the_whole_contract(
    raw: str,
) -> None:
    result = parsed(raw, SOMMELIER, EVIDENCE, ["search_wines"])
    assert result.ok == (result.error is None) == bool(result.text.strip())
    if result.ok:
        assert isinstance(result.answer, SommelierResponse)
        assert validate_semantic_content(result.answer) is None
        assert {wine.wine_id for wine in result.answer.wines} <= {CHINON.id}


ANY: OutputContract[dict[str, str]] = OutputContract(dict[str, str])


def test_invisible_characters_are_left_out_of_the_text_only() -> None:
    result = parsed('{"intro": "a\\u0000\\u001b\\nb"}', ANY, Evidence())
    assert result.text == "a\nb"
    assert result.answer == {"intro": "a\0\x1b\nb"}


def test_a_broken_rule_may_be_raised_and_one_that_fails_is_not_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def too_long(_: str) -> str | None:
        raise ValueError("too long")

    def wrong(text: str) -> str | None:
        return {"": None}[text]

    said = parsed("hm", OutputContract(str, semantic=too_long), Evidence())
    assert (said.error, said.error_type) == ("too long", "semantic")
    failed = parsed("secret", OutputContract(str, semantic=wrong), Evidence())
    assert (
        failed.error == "the answer could not be checked (KeyError); answer differently"
    )
    assert "KeyError" in caplog.text
    assert "secret" not in caplog.text


def test_a_validator_or_reader_that_fails_is_no_exception(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(_: object) -> None:
        raise KeyError("secret")

    strict = Annotated[str, AfterValidator(fails)]
    contracts: list[OutputContract[Any]] = [
        OutputContract(TypeAdapter(list[strict])),
        OutputContract(list[str], read_text=fails),
    ]
    for contract, raw in zip(contracts, ('["a"]', "a"), strict=True):
        result = parsed(raw, contract, Evidence())
        assert (
            result.error
            == "the answer could not be read (KeyError); answer differently"
        )
    assert "secret" not in caplog.text


def test_a_written_call_is_no_answer_in_plain_text_and_words_about_one_are() -> None:
    written = '{"name": "look", "arguments": {}}'
    result = parsed(written, OutputContract(str), Evidence(), ["look"])
    assert result.error_type == "tool_call_as_text"
    other_names = ('{"name": "Ann"}', '{"name": ["look"], "arguments": {}}')
    for said in ("look (at this)", "see(x) is not a tool", *other_names):
        assert parsed(said, OutputContract(str), Evidence(), {"look"}).text == said


class Note(BaseModel):
    """A note."""

    title: str = Field(description="What it is about.")


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ('{"title": "string"}', "semantic"),
        (json.dumps({"title": "x" * 200_000}), "too_long"),
    ],
)
def test_a_response_that_is_only_an_artefact_is_no_answer(raw: str, kind: str) -> None:
    result = parsed(raw, OutputContract(Note), Evidence(), ["look"])
    assert (result.error_type, result.ok) == (kind, False)
    told = '{"title": "How models write <tool_call>{...}</tool_call>"}'
    assert parsed(told, OutputContract(Note), Evidence(), ["look"]).ok
