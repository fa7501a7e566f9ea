"""The prompts of this product: templates with a name and a version, from wherever they are managed.

The repository holds one of each, in `prompts.toml`. What its text leaves to be filled in is what
every other text of that name must leave too: the loop fills these variables and no others.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from agent.engine.run import Prompt, PromptRef, Run
from agent.tables import read_toml
from agent.text import pattern, split_words, strip_unstorable
from agent.turn import Deps, deps_of

VARIABLE: Final = pattern(r"\{\{([^{}\"\n]*)\}\}")
"""A value's place, as Langfuse writes it. JSON in an example is none: it holds quotation marks."""
MAX_PROMPT_CHARS: Final = 20_000
"""In characters; the longest of the repository has some 2,000."""


def find_variables(template: str) -> tuple[str, ...]:
    """List the names of a template's variables, each once, in the order they come."""
    return tuple(dict.fromkeys(name[1].strip() for name in VARIABLE.finditer(template)))


def render(prompt: Prompt, **values: str) -> Prompt:
    """Return a prompt with its variables filled in; values are left as they are, braces and all.

    Raises:
        KeyError: the prompt has a variable without a value.
    """
    text = VARIABLE.sub(lambda found: values[found[1].strip()], prompt.text)
    return replace(prompt, text=text)


def with_instructions(run: Run[Deps], prompt: Prompt, **values: str) -> Run[Deps]:
    """Return the run of a question of its own: by this prompt, and with no history."""
    return replace(run, instructions=render(prompt, **values), history=())


def get_prompt(run: Run[Deps], name: str) -> Prompt:
    """Return the prompt of that name to use in a turn: the run's own, or the repository's.

    Raises:
        KeyError: this product has no prompt of that name.
    """
    return deps_of(run).prompts.get(name) or built_in_prompts()[name]


@cache
def built_in_prompts() -> Mapping[str, Prompt]:
    """Return the repository's prompts by name."""
    found = _file()["prompts"].items()
    return {name: Prompt(one["text"], PromptRef(name, one["version"])) for name, one in found}


def research_rules(offered: Collection[str]) -> str:
    """Join the rules for those tools of research that are offered, one a paragraph."""
    return "\n".join(rule for name, rule in _file()["research_rules"].items() if name in offered)


def is_tool_relevant(tool: str, said: Sequence[str]) -> bool:
    """Tell whether the messages of a user give a reason to offer a tool that few turns need."""
    reasons = _file()["reasons"].get(tool)
    if reasons is None:
        return True
    return any(not {*reasons.split()}.isdisjoint(split_words(text)) for text in said)


def find_prompt_error(name: str, text: object) -> str | None:
    """Say in half a sentence why `text` cannot be the prompt `name`; None if it can."""
    if not isinstance(text, str):
        return "it is a chat prompt; it must be a text prompt"
    found, wanted = set(find_variables(text)), set(find_variables(built_in_prompts()[name].text))
    too_long = f"it has {len(text)} characters, at most {MAX_PROMPT_CHARS} are allowed"
    checks = (
        (not text.strip(), "it is empty"),
        (len(text) > MAX_PROMPT_CHARS, too_long),
        (text != strip_unstorable(text), "it holds a character that no model can be sent"),
        (wanted - found, f"it lacks {format_variables(wanted - found)}"),
        (
            found - wanted,
            f"it has {format_variables(found - wanted)}; known are {format_variables(wanted)}",
        ),
    )
    return next((reason for is_wrong, reason in checks if is_wrong), None)


def format_variables(names: set[str]) -> str:
    """Write variables as a template does, sorted."""
    return ", ".join(f"{{{{{name}}}}}" for name in sorted(names))


@cache
def _file() -> Mapping[str, Any]:
    return read_toml(dict[str, Any], Path(__file__).with_suffix(".toml"))
