"""`sommelier prompts`: manage prompts in Langfuse, and read those that an evaluation compares."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from agent.engine.run import Prompt
from agent.prompts import built_in_prompts, find_prompt_error
from agent.tracing.langfuse_project import ManagedPrompts, fetch_prompt, to_unavailable
from bot.commands.output import fail, open_settings
from bot.tracing import PROMPT_LABEL, trace_encoder
from config import Settings

NO_KEYS: Final = (
    "there are no keys of Langfuse: set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
)
SOMMELIER_PROMPT: Final = "sommelier"
REPOSITORY: Final = "repository"
"""The name of the source of prompts that this repository contains."""

prompts_app = typer.Typer(no_args_is_help=True, add_completion=False)


@prompts_app.callback()
def prompts() -> None:
    """Manage prompts in Langfuse."""


@prompts_app.command()
def push(
    label: Annotated[
        str, typer.Option(help="The label of the versions.")
    ] = PROMPT_LABEL,
) -> None:
    """Put the repository's prompts into Langfuse, except those that are the same there."""
    settings = open_settings()
    pushed = 0
    for name, prompt in built_in_prompts().items():
        current = fetch_stored_prompt(settings, name, label=label)
        if current is not None and current.text == prompt.text:
            continue
        try:
            client = trace_encoder(settings).client
            created = client.create_prompt(
                name=name, prompt=prompt.text, labels=[label]
            )
        except Exception as error:
            fail(str(to_unavailable(error)), 2)
        pushed += 1
        done = f"{name}: version {created.version} is now {label}"
        if current is not None:
            done += f", in place of version {current.ref.version}"
        typer.echo(done)
    if not pushed:
        typer.echo(f"Nothing to push: Langfuse ({label}) has the repository's prompts.")


def fetch_stored_prompt(
    settings: Settings,
    name: str,
    *,
    label: str | None = None,
    version: int | None = None,
) -> Prompt | None:
    """Return a version of a prompt in Langfuse, or None if there is no such version.

    The command fails if Langfuse cannot be asked.
    """
    if not settings.langfuse_keys:
        fail(NO_KEYS, 2)
    try:
        client = trace_encoder(settings).client
        return fetch_prompt(client, name, label=label, version=version)
    except Exception as error:
        fail(str(to_unavailable(error)), 2)


def read_prompts(settings: Settings, source: str) -> Mapping[str, Prompt]:
    """Return the prompts that replace those of the repository in one variant of an evaluation.

    `source` is `repository`, a version or label in Langfuse (`sommelier@3`), or a file with the
    sommelier's prompt. The name of the file becomes the label in traces. The command fails if the
    prompt cannot be used.
    """
    if source == REPOSITORY:
        return {}
    name, _, version = source.partition("@")
    if name in built_in_prompts() and version:
        prompt = _fetch_version(settings, name, version)
    else:
        prompt = _read_prompt(Path(source))
    problem = find_prompt_error(prompt.ref.name, prompt.text)
    if problem:
        fail(f"{source} cannot be the prompt {prompt.ref.name}: {problem}", 2)
    return {prompt.ref.name: prompt}


def _fetch_version(settings: Settings, name: str, version: str) -> Prompt:
    """Return the version of a prompt in Langfuse with this number, or with this label."""
    if version.isdecimal():
        prompt = fetch_stored_prompt(settings, name, version=int(version))
    else:
        prompt = fetch_stored_prompt(settings, name, label=version)
    if prompt is None:
        fail(f"Langfuse has no version or label {version} of the prompt {name}", 2)
    return prompt


def _read_prompt(file: Path) -> Prompt:
    """Return the sommelier's prompt from a file."""
    built_in = built_in_prompts()[SOMMELIER_PROMPT]
    ref = replace(built_in.ref, label=file.stem)
    try:
        return Prompt(file.read_text(encoding="utf-8-sig"), ref)
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read: {type(error).__name__}", 2)


def fetch_production_prompts(settings: Settings) -> Mapping[str, Prompt]:
    """Return the prompts in Langfuse with the label of production. Without Langfuse, return {}."""
    if not settings.langfuse_keys:
        return {}
    prompts = ManagedPrompts(lambda: trace_encoder(settings).client, PROMPT_LABEL)
    prompts.fetch()
    return prompts.current
