"""A prompt that is tried out from a file, in the place of the repository's."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.errors import AgentError
from agent.prompts import REPOSITORY, Prompt, refusal
from agent.tracing import PromptRef

NAME: Final = "sommelier"


class PromptFileError(AgentError):
    """A file cannot be the sommelier's prompt; the message names the file and says why."""


@dataclass(frozen=True, slots=True)
class FilePrompts:
    """The prompts of the repository, but for the sommelier's."""

    sommelier: Prompt

    def get(self, name: str) -> Prompt:
        """The prompt of that name."""
        return self.sommelier if name == NAME else REPOSITORY.get(name)


def read_prompt(path: Path) -> FilePrompts:
    """The sommelier's prompt from a file; in traces its label is the file's name.

    Raises:
        PromptFileError: it cannot be read, or fails the checks that every prompt must pass.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise PromptFileError(f"{path} cannot be read: {reason}") from None
    if problem := refusal(NAME, text):
        raise PromptFileError(f"{path} cannot be the sommelier's prompt: {problem}")
    version = REPOSITORY.get(NAME).ref.version
    return FilePrompts(Prompt(text, PromptRef(NAME, version, label=path.stem)))
