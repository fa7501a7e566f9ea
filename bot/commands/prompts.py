"""`sommelier prompts`: upload prompts; read the prompts that are tried out."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from agent.engine.run import Prompt
from agent.prompts import refusal, repository_prompts
from agent.tracing.langfuse_project import ManagedPrompts, fetch_prompt, unavailable
from bot.commands.output import fail, open_settings
from bot.tracing import PROMPT_LABEL, langfuse_of
from config import Settings

NO_KEYS: Final = (
    "prompts are managed in Langfuse, and there are no keys: set LANGFUSE_PUBLIC_KEY and "
    "LANGFUSE_SECRET_KEY"
)
SOMMELIER: Final = "sommelier"
IN_REPOSITORY: Final = "repository"

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def prompts() -> None:
    """Manage prompts in Langfuse."""


@app.command()
def push(
    label: Annotated[str, typer.Option(help="The label of the versions.")] = PROMPT_LABEL,
) -> None:
    """Put the repository's prompts into Langfuse, as new versions of those that differ there."""
    settings, pushed = open_settings(), 0
    for name, prompt in repository_prompts().items():
        current = stored_prompt(settings, name, label=label)
        if current is not None and current.text == prompt.text:
            continue
        try:
            client = langfuse_of(settings)
            created = client.create_prompt(name=name, prompt=prompt.text, labels=[label])
        except Exception as error:
            fail(str(unavailable(error)), 2)
        pushed += 1
        before = f", in place of version {current.ref.version}" if current else ""
        typer.echo(f"{name}: version {created.version} is now {label}{before}")
    if not pushed:
        typer.echo(f"Nothing to push: Langfuse ({label}) has the repository's prompts.")


def stored_prompt(
    settings: Settings, name: str, *, label: str | None = None, version: int | None = None
) -> Prompt | None:
    """Return a version of a prompt in Langfuse, if there is one. An error ends the command."""
    if not settings.langfuse_keys:
        fail(NO_KEYS, 2)
    try:
        return fetch_prompt(langfuse_of(settings), name, label=label, version=version)
    except Exception as error:
        fail(str(unavailable(error)), 2)


def prompts_to_try(settings: Settings, wanted: str) -> Mapping[str, Prompt]:
    """Return the prompts to be tried out: `repository`, a file, or a version in Langfuse.

    The latter is named by its number or label (`sommelier@3`). A file holds the sommelier's prompt;
    its name is the label in traces. One that cannot be used ends the command.
    """
    name, _, version = wanted.partition("@")
    if wanted == IN_REPOSITORY:
        return {}
    if name in repository_prompts() and version:
        number, label = (int(version), None) if version.isdecimal() else (None, version)
        found = stored_prompt(settings, name, label=label, version=number)
        if found is None:
            fail(f"Langfuse has no version or label {version} of the prompt {name}", 2)
    else:
        ref = replace(repository_prompts()[SOMMELIER].ref, label=Path(wanted).stem)
        try:
            found = Prompt(Path(wanted).read_text(encoding="utf-8-sig"), ref)
        except (OSError, UnicodeDecodeError) as error:
            fail(f"{wanted} cannot be read: {type(error).__name__}", 2)
    if problem := refusal(found.ref.name, found.text):
        fail(f"{wanted} cannot be the prompt {found.ref.name}: {problem}", 2)
    return {found.ref.name: found}


def prompts_in_use(settings: Settings) -> Mapping[str, Prompt]:
    """Return the prompts of the product: those of Langfuse under the label in use, if any."""
    if not settings.langfuse_keys:
        return {}
    prompts = ManagedPrompts(lambda: langfuse_of(settings), PROMPT_LABEL)
    prompts.fetch()
    return prompts.current
