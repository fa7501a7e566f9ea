"""Feedback: the messages that show a model its invalid answer and what is wrong with it.

Source of the wording: R-002 of the structured-output research.
"""

from typing import Final

from pydantic import ValidationError

from agent.engine.messages import Message

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
SHOWN_RAW_CHARS: Final = 4000


def feedback(raw: str, error_description: str, wording: str) -> list[Message]:
    """Make the assistant + user pair that shows a model its invalid response and what is wrong.

    A response that is empty or was dropped is named: a blank content is a 400 with some servers.
    """
    shown = clip(raw.strip(), SHOWN_RAW_CHARS) or "(no answer)"
    description = clip(error_description.strip().rstrip("."), SHOWN_ERROR_CHARS)
    return [
        {"role": "assistant", "content": shown},
        {"role": "user", "content": wording.replace("{error_description}", description)},
    ]


def describe_validation_error(error: ValidationError) -> str:
    """List the first few issues as `path: message`; without URLs and without the input."""
    issues = error.errors(include_url=False, include_context=False, include_input=False)
    described = [
        f"{'.'.join(fence(str(part)) for part in issue['loc']) or 'answer'}: "
        f"{issue['msg'].removeprefix('Value error, ')}"
        for issue in issues[:SHOWN_ISSUES]
    ]
    if len(issues) > SHOWN_ISSUES:
        described.append(f"and {len(issues) - SHOWN_ISSUES} more")
    return clip("; ".join(described), SHOWN_ERROR_CHARS)


def fence(text: str, limit: int = 80) -> str:
    """Quote a model's own words inside an error description: one line, bounded, no code fence."""
    return clip(" ".join(text.replace("`", "'").split()), limit)


def clip(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, with an ellipsis if it was longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
