"""`sommelier prompts`: list, compare and upload prompts; read the prompts that are tried out."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from agent.engine.errors import AgentError
from agent.engine.span import Prompt, PromptRef
from agent.prompts import REPOSITORY, braced, refusal, repository_prompts, variables
from agent.tracing.errors import unavailable
from agent.tracing.prompts import fetched
from agent.turn import Prompts
from bot.commands.output import fail, open_settings, printable, show, table
from bot.tracing import PROMPT_LABEL, langfuse_of
from config import Settings

log = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT_LABEL: Final = "production"
NO_KEYS: Final = (
    "prompts are managed in Langfuse, and there are no keys: set LANGFUSE_PUBLIC_KEY and "
    "LANGFUSE_SECRET_KEY"
)
SOMMELIER: Final = "sommelier"
IN_REPOSITORY: Final = "repository"

app = typer.Typer(no_args_is_help=True, add_completion=False)

Label = Annotated[str, typer.Option(help="The label of the versions in Langfuse.")]


@app.command("list")
def list_prompts(label: Label = DEFAULT_LABEL) -> None:
    """Show the prompts, and which version of each the sommelier uses."""
    settings = open_settings()
    stored = stored_prompts(settings, label) if settings.has_langfuse else {}
    rows = [_row(prompt, stored.get(name), label) for name, prompt in repository_prompts().items()]
    show(table(["prompt", "version", "label", "source", "variables"], rows))


@app.command()
def diff(label: Label = DEFAULT_LABEL) -> None:
    """Compare the repository's prompts with Langfuse's; status 1 if they differ, 2 on errors."""
    stored = stored_prompts(open_settings(), label)
    differences = [
        difference(prompt, stored[name], label) for name, prompt in repository_prompts().items()
    ]
    for found in filter(None, differences):
        typer.echo(printable(found))
    if any(differences):
        raise typer.Exit(1)
    typer.echo(f"The {len(differences)} prompts are the same in Langfuse ({label}).")


@app.command()
def push(label: Label = DEFAULT_LABEL) -> None:
    """Put the repository's prompts into Langfuse, as new versions of those that differ there."""
    settings, pushed = open_settings(), 0
    stored, client = stored_prompts(settings, label), langfuse_of(settings)
    for name, prompt in repository_prompts().items():
        current = stored[name]
        if current is not None and current.text == prompt.text:
            continue
        try:
            created = client.create_prompt(name=name, prompt=prompt.text, labels=[label])
        except Exception as error:
            fail(str(unavailable(error)), 2)
        pushed += 1
        before = f", in place of version {current.ref.version}" if current else ""
        typer.echo(f"{name}: version {created.version} is now {label}{before}")
    if not pushed:
        typer.echo(f"Nothing to push: Langfuse ({label}) has the repository's prompts.")


def stored_prompts(settings: Settings, label: str) -> dict[str, Prompt | None]:
    """Return the prompts in Langfuse under a label, by name. An error ends the command."""
    return {name: stored_prompt(settings, name, label=label) for name in repository_prompts()}


def stored_prompt(
    settings: Settings, name: str, *, label: str | None = None, version: int | None = None
) -> Prompt | None:
    """Return a version of a prompt in Langfuse, if there is one. An error ends the command."""
    if not settings.has_langfuse:
        fail(NO_KEYS, 2)
    try:
        return fetched(langfuse_of(settings), name, label=label, version=version)
    except Exception as error:
        fail(str(unavailable(error)), 2)


def difference(prompt: Prompt, stored: Prompt | None, label: str) -> str:
    """Return how a prompt in Langfuse differs from the repository's, as a unified diff."""
    name, version = prompt.ref.name, prompt.ref.version
    if stored is None:
        return f"{name}: Langfuse has no version with the label {label}"
    lines = unified_diff(
        prompt.text.splitlines(),
        stored.text.splitlines(),
        f"repository/{name} (version {version})",
        f"langfuse/{name} (version {stored.ref.version}, {label})",
        lineterm="",
    )
    return "\n".join(lines)


def _row(prompt: Prompt, stored: Prompt | None, label: str) -> Sequence[str]:
    """Return name, version, label, source and variables of the version in use."""
    name = prompt.ref.name
    needed = braced(set(variables(prompt.text)))
    if stored is None:
        return (name, str(prompt.ref.version), "", "repository", needed)
    if reason := refusal(name, stored.text):
        source = f"repository (Langfuse's version {stored.ref.version} is refused: {reason})"
        return (name, str(prompt.ref.version), "", source, needed)
    return (name, str(stored.ref.version), label, "Langfuse", needed)


class PromptRefused(AgentError):
    """A prompt cannot be tried out; the message says which and why."""


@dataclass(frozen=True, slots=True)
class TriedPrompts:
    """The prompts of the repository, except those that are `tried`."""

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


def prompts_to_try(settings: Settings, wanted: Sequence[str]) -> dict[str, Prompts]:
    """Read the prompts to be tried out, by the name of their file, or its path if two share a name.

    A prompt is `repository`, a file, or one in Langfuse by version or label (`sommelier@3`). One
    that cannot be used ends the command.
    """
    managed = [name for name in wanted if _is_managed(name) and not Path(name).exists()]
    short = {name: name if name in managed else Path(name).stem for name in wanted}
    times = Counter(short.values())
    try:
        found: dict[str, Prompts] = {name: _managed(settings, name) for name in managed}
        for name in wanted:
            if name not in found:
                found[name] = REPOSITORY if name == IN_REPOSITORY else prompt_of_file(Path(name))
    except PromptRefused as error:
        fail(str(error), 2)
    return {short[name] if times[short[name]] == 1 else name: found[name] for name in wanted}


def prompts_in_use(settings: Settings) -> Prompts:
    """Return the prompts of the product: those of Langfuse under the label in use, if any."""
    if not settings.has_langfuse:
        return REPOSITORY
    client, label = langfuse_of(settings), PROMPT_LABEL
    found = dict[str, Prompt]()
    try:
        for name in repository_prompts():
            stored = fetched(client, name, label=label)
            if stored is not None and not refusal(name, stored.text):
                found[name] = stored
    except Exception as error:
        reason = unavailable(error)
        log.warning("The repository's prompts are evaluated, not those in use: %s", reason)
        found.clear()
    return TriedPrompts(found)


def _is_managed(name: str) -> bool:
    """Return whether this names a prompt in Langfuse, by version or label: `sommelier@3`."""
    prompt, _, version = name.partition("@")
    return prompt in repository_prompts() and bool(version) and not any(map(str.isspace, version))


def _managed(settings: Settings, wanted: str) -> TriedPrompts:
    name, _, version = wanted.partition("@")
    number, label = (int(version), None) if version.isdecimal() else (None, version)
    stored = stored_prompt(settings, name, label=label, version=number)
    if stored is None:
        kind = "version with the label" if label else "version"
        raise PromptRefused(f"Langfuse has no {kind} {version} of the prompt {name}")
    return _checked(stored.text, stored.ref, f"version {stored.ref.version} of Langfuse")


def _checked(text: str, ref: PromptRef, source: str) -> TriedPrompts:
    if problem := refusal(ref.name, text):
        raise PromptRefused(f"{source} cannot be the prompt {ref.name}: {problem}")
    return TriedPrompts({ref.name: Prompt(text, ref)})
