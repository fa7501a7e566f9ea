"""Prompts as templates: variables, rendering and invalid replacements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.run import Prompt, PromptRef
from agent.prompts import (
    MAX_PROMPT_CHARS,
    built_in_prompts,
    find_prompt_error,
    find_variables,
    render,
)

VARIABLES = {
    "sommelier": {"tool_rules", "schema", "guest_rules"},
    "sommelier-small": {"language"},
    "picture": {"schema"},
    "documents-answer": {"not_enough"},
    "documents-quotes": {"max_snippets", "schema"},
    "place-queries": {"category", "label", "hint", "language", "schema"},
    "refinement": {"schema"},
    "wine-gaps": {"schema"},
}
GOOD = "{{tool_rules}} {{schema}} {{guest_rules}}"
NAMES = st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_characters='{}"\n', exclude_categories=["Cs"]))


@given(st.lists(st.tuples(TEXTS, NAMES)), TEXTS, st.data())
def test_values_are_inserted_literally(
    pieces: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    values = {name: data.draw(st.text()) for _, name in pieces}
    template = "".join(f"{text}{{{{{name}}}}}" for text, name in pieces) + end
    expected = "".join(f"{text}{values[name]}" for text, name in pieces) + end
    prompt = Prompt(template, PromptRef("p", 1))
    assert render(prompt, **values).text == expected


def test_variables_of_the_built_in_prompts() -> None:
    actual = {
        name: set(find_variables(prompt.text))
        for name, prompt in built_in_prompts().items()
    }
    assert actual == VARIABLES


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Be kind.", "it lacks {{guest_rules}}, {{schema}}, {{tool_rules}}"),
        (
            f"{GOOD} {{{{guest}}}}",
            "it has {{guest}}; known are {{guest_rules}}, {{schema}}, {{tool_rules}}",
        ),
        ([{"role": "system", "content": "{{schema}}"}], "it is a chat prompt"),
        (f"{GOOD} \ud800", "it has a character that cannot be sent to a model"),
        (
            GOOD.ljust(MAX_PROMPT_CHARS + 1, "."),
            "it has 20001 characters, at most 20000 are allowed",
        ),
    ],
)
def test_invalid_replacements_of_a_prompt(text: object, reason: str) -> None:
    error = find_prompt_error("sommelier", text)
    assert error is not None
    assert error.startswith(reason)
