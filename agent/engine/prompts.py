"""Prompts as templates with Langfuse's `{{variable}}` syntax. Pure: text in, text out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from agent.engine.span import PromptRef

VARIABLE: Final = re.compile(r"\{\{([^{}\"\n]*)\}\}")
"""What stands for a value. JSON in an example is none: it holds quotation marks or line breaks."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A template, and which version of which prompt it is."""

    text: str
    ref: PromptRef

    def render(self, **values: str) -> str:
        """Fill in the variables; the values stand in the system message as they are.

        Raises:
            KeyError: the template has a variable that is not given.
        """
        return render(self.text, values)


class Prompts(Protocol):
    """Where the prompts of a turn come from."""

    def get(self, name: str) -> Prompt:
        """Return the prompt to use now, at once: nothing is waited for.

        Raises:
            KeyError: this product has no prompt of that name.
        """
        ...


def variables(template: str) -> tuple[str, ...]:
    """List the names of a template's variables, each once, in the order they come."""
    return tuple(dict.fromkeys(name.strip() for name in VARIABLE.findall(template)))


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace a template's variables; what is put in is left as it is, braces and all.

    Raises:
        KeyError: the template has a variable without a value.
    """
    return VARIABLE.sub(lambda found: values[found[1].strip()], template)
