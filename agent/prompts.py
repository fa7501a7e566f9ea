"""The prompts of this product: templates with a name and a version, from wherever they are managed.

The repository holds one of each. What its text leaves to be filled in is what every other text of
that name must leave too: the loop fills these variables and no others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from agent.documents.prompts import DOCUMENTS_ANSWER, DOCUMENTS_QUOTES, PLACE_QUERIES, REFINEMENT
from agent.engine.templates import render, variables
from agent.engine.trace_records import PromptRef
from agent.sommelier.sommelier_prompts import SYSTEM_PROMPT

LONGEST_PROMPT: Final = 20_000
"""In characters; the longest of the repository has some 2,000."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A template, and which version of which prompt it is."""

    text: str
    ref: PromptRef

    def render(self, **values: str) -> str:
        """The system message; the values stand in it as they are.

        Raises:
            KeyError: the template has a variable that is not given.
        """
        return render(self.text, values)


class Prompts(Protocol):
    """Where the prompts of a turn come from."""

    def get(self, name: str) -> Prompt:
        """The prompt to use now, at once: nothing is waited for.

        Raises:
            KeyError: this product has no prompt of that name.
        """
        ...


class RepositoryPrompts:
    """The prompts that come with the code."""

    def get(self, name: str) -> Prompt:
        """The repository's prompt of that name."""
        return BUILT_IN[name]


def _built_in(name: str, version: int, text: str) -> Prompt:
    return Prompt(text, PromptRef(name, version))


BUILT_IN: Final[Mapping[str, Prompt]] = {
    prompt.ref.name: prompt
    for prompt in (
        _built_in("sommelier", 3, SYSTEM_PROMPT),
        _built_in("documents-answer", 1, DOCUMENTS_ANSWER),
        _built_in("documents-quotes", 1, DOCUMENTS_QUOTES),
        _built_in("place-queries", 2, PLACE_QUERIES),
        _built_in("refinement", 2, REFINEMENT),
    )
}
"""By name. Whoever changes a text counts its version up."""

REPOSITORY: Final[Prompts] = RepositoryPrompts()


def refusal(name: str, text: object) -> str | None:
    """Why `text` cannot be the prompt `name`, in half a sentence; None if it can."""
    if not isinstance(text, str):
        return "it is a chat prompt; it must be a text prompt"
    if not text.strip():
        return "it is empty"
    if len(text) > LONGEST_PROMPT:
        return f"it has {len(text)} characters, at most {LONGEST_PROMPT} are allowed"
    if not is_unicode(text):
        return "it holds half a character (a lone surrogate), which no model can be sent"
    return _wrong_variables(set(variables(text)), set(variables(BUILT_IN[name].text)))


def _wrong_variables(found: set[str], wanted: set[str]) -> str | None:
    if missing := wanted - found:
        return f"it lacks {braced(missing)}"
    if unknown := found - wanted:
        return f"it has {braced(unknown)}; known are {braced(wanted)}"
    return None


def is_unicode(text: str) -> bool:
    """Whether a text can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def braced(names: set[str]) -> str:
    """Variables as they stand in a template, sorted."""
    return ", ".join(f"{{{{{name}}}}}" for name in sorted(names))
