"""The words that tell a model what is wrong with its answer, from R-002 of the research."""

from typing import Final

from pydantic import ValidationError

CORRECTION_INTRO: Final = "Your previous response failed validation: {error_description}. "
"""The beginning of every feedback."""
FEEDBACK: Final = CORRECTION_INTRO + (
    "Please respond again with valid JSON matching the required schema. "
    "Do not include any text outside the JSON object."
)
TEXT_FEEDBACK: Final = (
    CORRECTION_INTRO + "Please respond again with the whole answer, and nothing else."
)
SHOWN_ISSUES: Final = 5
SHOWN_ERROR_CHARS: Final = 800


def describe_validation_error(error: ValidationError) -> str:
    """List the first few issues as `path: message`; without URLs and without the input."""
    issues = error.errors(include_url=False, include_context=False, include_input=False)
    described = [
        f"{'.'.join(fence(str(part)) for part in issue['loc']) or 'answer'}: "
        f"{issue['msg'].removeprefix('Value error, ')}"
        for issue in issues[:SHOWN_ISSUES]
    ]
    return clip("; ".join(described), SHOWN_ERROR_CHARS)


def fence(text: str, limit: int = 80) -> str:
    """Quote a model's own words inside an error description: one line, bounded, no code fence."""
    return clip(" ".join(text.replace("`", "'").split()), limit)


def clip(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, with an ellipsis if it was longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
