"""Prompts: named, versioned templates, built in or from Langfuse.

The built-in prompts are in `prompts.toml`. A prompt from Langfuse that replaces a built-in one must
have the same variables, because the callers fill in exactly these.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from agent.engine.run import Prompt, PromptRef, Run
from agent.tables import read_toml
from agent.text import Match, pattern, strip_unstorable
from agent.turn import Deps, get_deps

BUILT_IN_FILE: Final = Path(__file__).with_name("prompts.toml")
VARIABLE: Final = pattern(r"\{\{([^{}\"\n]*)\}\}")
"""A variable, in Langfuse's notation. JSON in examples does not match: it has quotation marks."""
MAX_PROMPT_CHARS: Final = 20_000
"""The longest built-in prompt has some 2,000 characters."""


def find_variables(template: str) -> tuple[str, ...]:
    """Return the names of a template's variables in order, without duplicates."""
    names = []
    for variable in VARIABLE.finditer(template):
        names.append(variable[1].strip())
    return tuple(dict.fromkeys(names))


def render(prompt: Prompt, **values: str) -> Prompt:
    """Return a prompt with its variables filled in. Variables within values are not expanded.

    Raises:
        KeyError: a variable of the prompt has no value.
    """

    def fill_in(variable: Match) -> str:
        return values[variable[1].strip()]

    text = VARIABLE.sub(fill_in, prompt.text)
    return replace(prompt, text=text)


def with_instructions(run: Run[Deps], prompt: Prompt, **values: str) -> Run[Deps]:
    """Return a run for a separate request: its instructions are this prompt, without history."""
    instructions = render(prompt, **values)
    return replace(run, instructions=instructions, history=())


def get_prompt(run: Run[Deps], name: str) -> Prompt:
    """Return the prompt that this turn uses: the run's own, or else the built-in one.

    Raises:
        KeyError: no built-in prompt has this name.
    """
    prompts_of_turn = get_deps(run).prompts
    if name in prompts_of_turn:
        return prompts_of_turn[name]
    return built_in_prompts()[name]


@cache
def built_in_prompts() -> Mapping[str, Prompt]:
    """Return the built-in prompts by name."""
    content = read_toml(dict[str, Any], BUILT_IN_FILE)
    prompts: dict[str, Prompt] = {}
    for name, row in content["prompts"].items():
        ref = PromptRef(name, row["version"])
        prompts[name] = Prompt(row["text"], ref)
    return prompts


def find_prompt_error(name: str, text: object) -> str | None:
    """Return the reason why `text` cannot replace the prompt `name`, or None if it can."""
    if not isinstance(text, str):
        return "it is a chat prompt; it must be a text prompt"
    if not text.strip():
        return "it is empty"
    if len(text) > MAX_PROMPT_CHARS:
        return f"it has {len(text)} characters, at most {MAX_PROMPT_CHARS} are allowed"
    if text != strip_unstorable(text):
        return "it has a character that cannot be sent to a model"
    built_in = built_in_prompts()[name]
    variables = set(find_variables(text))
    expected = set(find_variables(built_in.text))
    missing = expected - variables
    if missing:
        return f"it lacks {_list_in_braces(missing)}"
    unknown = variables - expected
    if unknown:
        expected_names = _list_in_braces(expected)
        return f"it has {_list_in_braces(unknown)}; known are {expected_names}"
    return None


def _list_in_braces(names: set[str]) -> str:
    """Return names as a template has its variables: `{{language}}, {{schema}}`."""
    variables = ["{{" + name + "}}" for name in sorted(names)]
    return ", ".join(variables)
