"""`sommelier prompts`: the repository's prompts and those in Langfuse."""

# ruff: noqa: PLC0415

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from typing import TYPE_CHECKING, Annotated

import typer

from bot.commands.output import fail, open_settings, printable, show, table

if TYPE_CHECKING:
    from agent.engine.prompts import Prompt
    from agent.tracing.langfuse.prompt_api import PromptApi, StoredPrompt
    from config import Settings

TIMEOUT_SECONDS = 10.0
NO_KEYS = (
    "prompts are managed in Langfuse, and there are no keys: set LANGFUSE_PUBLIC_KEY and "
    "LANGFUSE_SECRET_KEY"
)

app = typer.Typer(help="Manage prompts in Langfuse.", no_args_is_help=True)

DEFAULT_LABEL = "production"

Label = Annotated[str, typer.Option(help="The label of the versions in Langfuse.")]


@app.command("list")
def list_prompts(label: Label = DEFAULT_LABEL) -> None:
    """The prompts, and which version of each the sommelier uses."""
    from agent.prompts import repository_prompts

    settings = open_settings()
    prompts, stored = repository_prompts(), {}
    if settings.tracing.langfuse_keys:
        with open_api(settings) as api:
            stored = {name: api.current(name, label) for name in prompts}
    rows = [_row(prompt, stored.get(name), label) for name, prompt in prompts.items()]
    show(table(["prompt", "version", "label", "source", "variables"], rows))


@app.command()
def diff(label: Label = DEFAULT_LABEL) -> None:
    """Compare the repository's prompts with Langfuse's; status 1 if they differ, 2 on trouble."""
    from agent.prompts import repository_prompts

    settings = open_settings()
    with open_api(settings) as api:
        differences = [
            difference(prompt, api.current(name, label), label)
            for name, prompt in repository_prompts().items()
        ]
    for each in filter(None, differences):
        typer.echo(printable(each))
    if any(differences):
        raise typer.Exit(1)
    typer.echo(f"The {len(differences)} prompts are the same in Langfuse ({label}).")


@app.command()
def push(label: Label = DEFAULT_LABEL) -> None:
    """Put the repository's prompts into Langfuse, as new versions of those that differ there."""
    from agent.prompts import repository_prompts

    settings = open_settings()
    pushed = 0
    with open_api(settings) as api:
        for name, prompt in repository_prompts().items():
            current = api.current(name, label)
            if current is not None and current.text == prompt.text:
                continue
            created = api.create(name, prompt.text, label)
            pushed += 1
            before = f", in place of version {current.version}" if current else ""
            typer.echo(f"{name}: version {created.version} is now {label}{before}")
    if not pushed:
        typer.echo(f"Nothing to push: Langfuse ({label}) has the repository's prompts.")


def difference(prompt: "Prompt", stored: "StoredPrompt | None", label: str) -> str:
    """How a prompt in Langfuse differs from the repository's, as a unified diff; empty if not."""
    name, version = prompt.ref.name, prompt.ref.version
    if stored is None:
        return f"{name}: Langfuse has no version with the label {label}"
    if stored.text is None:
        return f"{name}: version {stored.version} of Langfuse is a chat prompt"
    lines = unified_diff(
        prompt.text.splitlines(),
        stored.text.splitlines(),
        f"repository/{name} (version {version})",
        f"langfuse/{name} (version {stored.version}, {label})",
        lineterm="",
    )
    found = "\n".join(lines)
    if not found and prompt.text != stored.text:
        return f"{name}: version {stored.version} of Langfuse differs in line ends only"
    return found


def _row(prompt: "Prompt", stored: "StoredPrompt | None", label: str) -> Sequence[str]:
    """Name, version, label, source and variables of the version in use."""
    from agent.engine.prompts import variables
    from agent.prompts import braced, refusal

    name = prompt.ref.name
    needed = braced(set(variables(prompt.text)))
    reason = refusal(name, stored.text) if stored else None
    if stored is None or reason:
        refused = f" (Langfuse's version {stored.version} is refused: {reason})" if stored else ""
        return (name, str(prompt.ref.version), "", f"repository{refused}", needed)
    return (name, str(stored.version), label, "Langfuse", needed)


@contextmanager
def open_api(settings: "Settings") -> Iterator["PromptApi"]:
    """Langfuse's prompts; trouble with them ends the command with one line and status 2."""
    if settings.tracing.langfuse_keys is None:
        fail(NO_KEYS, 2)
    from agent.tracing.langfuse.prompt_api import PromptApi, PromptsUnavailable

    api = PromptApi(
        *settings.tracing.langfuse_keys,
        settings.tracing.base_url,
        timeout_seconds=TIMEOUT_SECONDS,
    )
    try:
        yield api
    except PromptsUnavailable as error:
        fail(str(error), 2)
    finally:
        api.close()
