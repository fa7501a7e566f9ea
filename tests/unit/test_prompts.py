"""Prompts as templates: what each must hold, what is refused, and that values stay as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.engine.contract import OutputContract
from agent.engine.loop import system_prompt
from agent.engine.span import Prompt, PromptRef
from agent.prompts import (
    LONGEST_PROMPT,
    REPOSITORY,
    fill,
    refusal,
    render,
    repository_prompts,
    research_rules,
    variables,
)
from agent.sommelier.answer import SOMMELIER

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


class TestTemplates:
    """The syntax is Langfuse's."""

    def test_variables_are_named_once_in_their_order(self) -> None:
        assert variables("{{b}} and {{ a }} and {{b}}") == ("b", "a")

    @pytest.mark.parametrize(
        "example",
        [
            '{"wines": [{"id": "x"}]}',
            '{{"a": 1}}',
            "{{\n}}",
            "{single}",
            "{{ half }",
            "} {{",
        ],
    )
    def test_an_example_with_braces_is_no_variable(self, example: str) -> None:
        assert variables(example) == ()
        assert fill(example, {}) == example

    def test_a_value_is_put_in_wherever_its_variable_stands(self) -> None:
        assert fill("{{a}}-{{ a }}-{{{a}}}", {"a": "1"}) == "1-1-{1}"

    def test_a_variable_without_a_value_is_an_error(self) -> None:
        with pytest.raises(KeyError, match="b"):
            fill("{{a}} {{b}}", {"a": "1"})

    @given(st.lists(st.tuples(TEXTS, NAMES)), TEXTS, st.data())
    def test_values_stand_between_the_texts_as_they_are(
        self, pieces: list[tuple[str, str]], end: str, data: st.DataObject
    ) -> None:
        values = {name: data.draw(st.text()) for _, name in pieces}
        template = "".join(f"{text}{{{{{name}}}}}" for text, name in pieces) + end
        expected = "".join(f"{text}{values[name]}" for text, name in pieces) + end
        assert fill(template, values) == expected

    def test_a_value_that_looks_like_a_variable_is_not_replaced(self) -> None:
        values = {"a": "{{b}} {{a}} \\1 \\g<0>", "b": "secret"}
        assert fill("{{a}}|{{b}}", values) == "{{b}} {{a}} \\1 \\g<0>|secret"


class TestRepositoryPrompts:
    """What comes with the code."""

    def test_each_prompt_and_what_is_filled_in(self) -> None:
        found = {name: set(variables(prompt.text)) for name, prompt in repository_prompts().items()}
        assert found == NEEDED

    @pytest.mark.parametrize("name", NEEDED)
    def test_they_keep_the_rules_for_all_prompts(self, name: str) -> None:
        prompt = REPOSITORY.get(name)
        assert refusal(name, prompt.text) is None
        assert prompt.ref == PromptRef(name, prompt.ref.version, "", is_fallback=True)
        assert prompt.ref.version >= 1

    def test_there_are_no_others(self) -> None:
        with pytest.raises(KeyError, match="barkeeper"):
            REPOSITORY.get("barkeeper")

    def test_the_sommelier_has_the_rules_of_offered_tools_only(self) -> None:
        rules = research_rules(["find_places", "search_wines"])
        assert rules.startswith("- For a shop")
        assert rules == research_rules(["find_places"])
        text = str(render(REPOSITORY.get("sommelier"), research_rules=rules, schema="{}"))
        assert "call find_places" in text
        assert "search_documents" not in text


class TestRefusal:
    """What cannot be used is told apart before a turn could meet it."""

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("Be kind.", "it lacks {{research_rules}}, {{schema}}"),
            ("{{research_rules}} {{schema}", "it lacks {{schema}}"),
            (
                "{{research_rules}} {{schema}} {{guest}}",
                "it has {{guest}}; known are {{research_rules}}, {{schema}}",
            ),
            ("{{research_rules}} {{schema}} {{}}", "it has {{}}; known are"),
            (" \n", "it is empty"),
            ([{"role": "system", "content": "{{schema}}"}], "it is a chat prompt"),
            (None, "it is a chat prompt"),
            ("{{research_rules}} {{schema}} \ud800", "it holds half a character"),
            (
                "{{research_rules}} {{schema}}".ljust(LONGEST_PROMPT + 1, "."),
                "it has 20001 characters, at most 20000 are allowed",
            ),
        ],
    )
    def test_a_prompt_that_the_contract_cannot_use(self, text: object, reason: str) -> None:
        said = refusal("sommelier", text)
        assert said is not None
        assert said.startswith(reason)

    @pytest.mark.parametrize(
        "text",
        [
            "{{schema}}{{research_rules}}",
            'Like {"wines": []}: {{ schema }} {{schema}} {{ research_rules }}',
            "{{research_rules}} {{schema}}".ljust(LONGEST_PROMPT, "."),
        ],
    )
    def test_a_prompt_that_it_can_use(self, text: str) -> None:
        assert refusal("sommelier", text) is None


class TestSchema:
    """The schema is in what the model is asked, once."""

    def test_it_is_put_below_instructions_without_it(self) -> None:
        text = system_prompt("Be kind.", SOMMELIER)
        schema = SOMMELIER.output.text
        assert text.startswith("Be kind.\n\nYour final answer is one JSON value")
        assert text.endswith(schema)

    def test_it_stays_where_the_prompt_has_it(self) -> None:
        prompt = Prompt("{{schema}} is the shape.", PromptRef("sommelier", 1))
        text = str(render(prompt, schema=SOMMELIER.output.text))
        assert system_prompt(text, SOMMELIER) == text

    def test_an_answer_in_plain_text_has_none(self) -> None:
        assert system_prompt("Be kind.", OutputContract(str)) == "Be kind."
