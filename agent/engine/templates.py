"""Templates with Langfuse's `{{variable}}` syntax. Pure: text in, text out."""

import re
from collections.abc import Mapping
from typing import Final

VARIABLE: Final = re.compile(r"\{\{([^{}\"\n]*)\}\}")
"""What stands for a value. JSON in an example is none: it holds quotation marks or line breaks."""

SCHEMA_RULE: Final = (
    "Your final answer is one JSON value that matches this JSON Schema, and nothing else: "
    "no text around it, no Markdown fence.\n{{schema}}"
)
"""How a prompt asks for a structured answer."""


def variables(template: str) -> tuple[str, ...]:
    """The names of a template's variables, each once, in the order they come."""
    return tuple(dict.fromkeys(name.strip() for name in VARIABLE.findall(template)))


def render(template: str, values: Mapping[str, str]) -> str:
    """`template` with its variables replaced; what is put in is left as it is, braces and all.

    Raises:
        KeyError: the template has a variable without a value.
    """
    return VARIABLE.sub(lambda found: values[found[1].strip()], template)
