"""A prompt that is tried out in the place of the repository's: from a file, or from Langfuse."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.engine.errors import AgentError
from agent.engine.run import Prompt
from agent.engine.span import PromptRef
from agent.prompts import REPOSITORY, refusal, repository_prompts

if TYPE_CHECKING:
    from agent.tracing.langfuse.prompts import PromptStore

SOMMELIER: Final = "sommelier"


class PromptRefused(AgentError):
    """A prompt cannot be tried out; the message says which and why."""


@dataclass(frozen=True, slots=True)
class TriedPrompts:
    """The prompts of the repository, but for those that are `tried`."""

    tried: Mapping[str, Prompt]

    def get(self, name: str) -> Prompt:
        """Return the prompt of that name."""
        return self.tried.get(name) or REPOSITORY.get(name)


def prompt_of_file(path: Path) -> TriedPrompts:
    """Read the sommelier's prompt from a file; in traces its label is the file's name.

    Raises:
        PromptRefused: it cannot be read, or fails the checks that every prompt must pass.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise PromptRefused(f"{path} cannot be read: {reason}") from None
    version = REPOSITORY.get(SOMMELIER).ref.version
    return _checked(text, PromptRef(SOMMELIER, version, label=path.stem), str(path))


def is_managed(name: str) -> bool:
    """Tell whether this names a prompt in Langfuse, by version or label: `sommelier@3`."""
    prompt, _, version = name.partition("@")
    return prompt in repository_prompts() and bool(version) and not any(map(str.isspace, version))


async def managed_prompt(store: "PromptStore", managed: str) -> TriedPrompts:
    """Fetch a version of a prompt in Langfuse, `sommelier@3` or `sommelier@staging`.

    Raises:
        PromptRefused: there is no such version, or it fails the checks every prompt must pass.
        Unavailable: Langfuse gave no answer, or another one.
    """
    name, _, version = managed.partition("@")
    by_number = version.isdecimal()
    stored = await (
        store.get(name, version=int(version)) if by_number else store.get(name, label=version)
    )
    if stored is None:
        what = "version" if by_number else "version with the label"
        raise PromptRefused(f"Langfuse has no {what} {version} of the prompt {name}")
    label = "" if by_number else version
    ref = PromptRef(name, stored.version, label, is_fallback=False)
    return _checked(stored.text, ref, f"version {stored.version} of Langfuse")


async def labelled_prompts(store: "PromptStore", label: str) -> TriedPrompts:
    """Fetch the prompts that have a label in Langfuse, as the product uses them.

    Raises:
        Unavailable: Langfuse gave no answer, or another one.
    """
    found = {}
    for name in repository_prompts():
        stored = await store.get(name, label=label)
        if stored is not None and not refusal(name, stored.text):
            ref = PromptRef(name, stored.version, label, is_fallback=False)
            found[name] = Prompt(stored.text or "", ref)
    return TriedPrompts(found)


def _checked(text: str | None, ref: PromptRef, what: str) -> TriedPrompts:
    if problem := refusal(ref.name, text):
        raise PromptRefused(f"{what} cannot be the prompt {ref.name}: {problem}")
    return TriedPrompts({ref.name: Prompt(text or "", ref)})
