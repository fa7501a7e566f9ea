"""Prompts as templates: what each must hold, what is refused, and that values stay as they are."""

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

NEEDED = {
    "sommelier": {"research_rules", "schema"},
    "sommelier-small": {"language"},
    "sommelier-small-question": {"language"},
    "picture": {"schema"},
    "documents-answer": {"not_enough"},
    "documents-quotes": {"max_snippets", "schema"},
    "place-queries": {"category", "label", "hint", "schema"},
    "refinement": {"schema"},
}
NAMES = st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_characters='{}"\n', exclude_categories=["Cs"]))


@given(st.lists(st.tuples(TEXTS, NAMES)), TEXTS, st.data())
def test_values_stand_between_the_texts_as_they_are(
    pieces: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    values = {name: data.draw(st.text()) for _, name in pieces}
    template = "".join(f"{text}{{{{{name}}}}}" for text, name in pieces) + end
    expected = "".join(f"{text}{values[name]}" for text, name in pieces) + end
    prompt = Prompt(template, PromptRef("p", 1))
    assert render(prompt, **values).text == expected


def test_each_prompt_and_what_is_filled_in() -> None:
    found = {name: set(find_variables(prompt.text)) for name, prompt in built_in_prompts().items()}
    assert found == NEEDED


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Be kind.", "it lacks {{research_rules}}, {{schema}}"),
        (
            "{{research_rules}} {{schema}} {{guest}}",
            "it has {{guest}}; known are {{research_rules}}, {{schema}}",
        ),
        ([{"role": "system", "content": "{{schema}}"}], "it is a chat prompt"),
        ("{{research_rules}} {{schema}} \ud800", "it holds a character that no model"),
        (
            "{{research_rules}} {{schema}}".ljust(MAX_PROMPT_CHARS + 1, "."),
            "it has 20001 characters, at most 20000 are allowed",
        ),
    ],
)
def test_a_prompt_that_the_contract_cannot_use(text: object, reason: str) -> None:
    said = find_prompt_error("sommelier", text)
    assert said is not None
    assert said.startswith(reason)
