"""`sommelier eval`: how well a model does what is asked of it."""

# ruff: noqa: PLC0415

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from bot.commands.output import fail, progress_bar
from bot.commands.settings import open_settings

if TYPE_CHECKING:
    from agent.llm import LLMService
    from agent.research.evaluation import Run
    from config import Settings
    from db.repositories.documents import SqlDocumentStore

FILE_NAME = "quotes-evaluation"

app = typer.Typer(help="Measure how well a model works here.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Options that come before a command."""


@app.command("quotes")
def quotes(
    modes: Annotated[
        str, typer.Option(help="Response modes: A prompt only, B json_object, C json_schema.")
    ] = "A,B,C",
    model: Annotated[
        list[str] | None, typer.Option(help="A model of the configured server; may be repeated.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="A folder to write the report to, as Markdown and JSON.")
    ] = None,
) -> None:
    """Ask each model 24 questions with known answers, in each mode, and score the quotes."""
    settings = open_settings("WARNING")
    if not settings.has_model:
        fail("there is no model to evaluate: set OPENAI_API_KEY, or OPENAI_BASE_URL", 2)
    asked = _models(settings, _letters(modes), model or [settings.llm_model])
    from agent.research.evaluation_report import as_json, as_markdown

    runs = asyncio.run(_evaluate(settings, asked))
    markdown = as_markdown(runs)
    typer.echo(markdown, nl=False)
    if save is not None:
        _save(save, markdown, json.dumps(as_json(runs), indent=2, ensure_ascii=False))


def _letters(modes: str) -> list[str]:
    from agent.research.evaluation import MODES

    letters = list(dict.fromkeys(part.strip().upper() for part in modes.split(",")))
    if unknown := [letter for letter in letters if letter not in MODES]:
        fail(f"there is no response mode {unknown[0]!r}; use {', '.join(MODES)}", 2)
    return letters


def _models(
    settings: "Settings", letters: Sequence[str], names: Sequence[str]
) -> dict[str, "LLMService"]:
    """A model for each column of the report."""
    from agent.research.evaluation import MODES
    from bot import wiring

    return {
        f"{name} {letter}": wiring.model(settings, name, MODES[letter])
        for name in dict.fromkeys(names)
        for letter in letters
    }


async def _evaluate(settings: "Settings", models: dict[str, "LLMService"]) -> "list[Run]":
    from agent.research.evaluation import evaluate_quotes
    from bot import wiring

    order = list(models)
    try:
        async with _starter_documents(settings) as documents:
            with progress_bar("Asking") as progress:
                return await evaluate_quotes(
                    models,
                    documents=documents,
                    limits=wiring.limits(settings),
                    progress=lambda label, done, total: progress(
                        order.index(label) * total + done, len(order) * total
                    ),
                )
    finally:
        for model in models.values():
            await model.close()


@asynccontextmanager
async def _starter_documents(settings: "Settings") -> AsyncIterator["SqlDocumentStore"]:
    """The documents that the questions are about, and no others, in a database of their own."""
    from pydantic import SecretStr

    from bot.app import open_database, open_documents

    with TemporaryDirectory(prefix="sommelier-") as folder:
        url = SecretStr(f"sqlite+aiosqlite:///{folder}/documents.sqlite3")
        own = settings.model_copy(update={"database_url": url})
        async with open_database(own) as sessions, open_documents(own, sessions) as documents:
            yield documents


def _save(folder: Path, markdown: str, data: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, text in ((".md", markdown), (".json", data)):
            (folder / f"{FILE_NAME}{suffix}").write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"the report cannot be written to {folder}: {error.strerror or error}")
    typer.echo(f"Saved {FILE_NAME}.md and {FILE_NAME}.json to {folder}.", err=True)
