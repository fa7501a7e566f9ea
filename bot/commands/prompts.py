"""`sommelier prompts`: the repository's prompts and those in Langfuse."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from difflib import unified_diff
from typing import Annotated

import typer

from agent.engine.run import Prompt, variables
from agent.prompts import braced, refusal, repository_prompts
from agent.tracing.exporter import Unavailable
from agent.tracing.langfuse.prompts import PromptStore, StoredPrompt
from bot.commands.output import fail, open_settings, printable, show, table
from bot.tracing import langfuse_client
from config import Settings

TIMEOUT_SECONDS = 10.0
NO_KEYS = (
    "prompts are managed in Langfuse, and there are no keys: set LANGFUSE_PUBLIC_KEY and "
    "LANGFUSE_SECRET_KEY"
)

app = typer.Typer(no_args_is_help=True, add_completion=False)

DEFAULT_LABEL = "production"

Label = Annotated[str, typer.Option(help="The label of the versions in Langfuse.")]


@app.command("list")
def list_prompts(label: Label = DEFAULT_LABEL) -> None:
    """The prompts, and which version of each the sommelier uses."""
    settings = open_settings()
    stored = asyncio.run(_stored(settings, label)) if settings.tracing.langfuse_keys else {}
    rows = [_row(each, stored.get(name), label) for name, each in repository_prompts().items()]
    show(table(["prompt", "version", "label", "source", "variables"], rows))


@app.command()
def diff(label: Label = DEFAULT_LABEL) -> None:
    """Compare the repository's prompts with Langfuse's; status 1 if they differ, 2 on trouble."""
    stored = asyncio.run(_stored(open_settings(), label))
    differences = [
        difference(prompt, stored[name], label) for name, prompt in repository_prompts().items()
    ]
    for each in filter(None, differences):
        typer.echo(printable(each))
    if any(differences):
        raise typer.Exit(1)
    typer.echo(f"The {len(differences)} prompts are the same in Langfuse ({label}).")


@app.command()
def push(label: Label = DEFAULT_LABEL) -> None:
    """Put the repository's prompts into Langfuse, as new versions of those that differ there."""
    asyncio.run(_push(open_settings(), label))


async def _stored(settings: Settings, label: str) -> dict[str, StoredPrompt | None]:
    """What Langfuse has under a label, by name."""
    async with open_prompt_store(settings) as store:
        return {name: await store.get(name, label=label) for name in repository_prompts()}


async def _push(settings: Settings, label: str) -> None:

    pushed = 0
    async with open_prompt_store(settings) as store:
        for name, prompt in repository_prompts().items():
            current = await store.get(name, label=label)
            if current is not None and current.text == prompt.text:
                continue
            created = await store.create(name, prompt.text, label)
            pushed += 1
            before = f", in place of version {current.version}" if current else ""
            typer.echo(f"{name}: version {created.version} is now {label}{before}")
    if not pushed:
        typer.echo(f"Nothing to push: Langfuse ({label}) has the repository's prompts.")


def difference(prompt: Prompt, stored: StoredPrompt | None, label: str) -> str:
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


def _row(prompt: Prompt, stored: StoredPrompt | None, label: str) -> Sequence[str]:
    """Name, version, label, source and variables of the version in use."""
    name = prompt.ref.name
    needed = braced(set(variables(prompt.text)))
    reason = refusal(name, stored.text) if stored else None
    if stored is None or reason:
        refused = f" (Langfuse's version {stored.version} is refused: {reason})" if stored else ""
        return (name, str(prompt.ref.version), "", f"repository{refused}", needed)
    return (name, str(stored.version), label, "Langfuse", needed)


@asynccontextmanager
async def open_prompt_store(settings: Settings) -> AsyncIterator[PromptStore]:
    """Langfuse's prompts; trouble with them ends the command with one line and status 2."""
    client = langfuse_client(settings, TIMEOUT_SECONDS)
    if client is None:
        fail(NO_KEYS, 2)
    async with aclosing(client):
        try:
            yield PromptStore(client)
        except Unavailable as error:
            fail(str(error), 2)
