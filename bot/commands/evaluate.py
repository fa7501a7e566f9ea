"""`sommelier eval`: how well a model does what is asked of it."""

# ruff: noqa: PLC0415

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bot.commands import eval_run
from bot.commands.eval_rooms import open_experiments, open_starter_rooms
from bot.commands.eval_run import write_files
from bot.commands.output import fail, open_settings, progress_bar

if TYPE_CHECKING:
    from agent.engine.llm import LLMService
    from agent.evals.quotes_run import Question, Record, Run
    from agent.tracing.langfuse.experiments import Experiments
    from agent.tracing.records import TraceRecord
    from config import Settings

FILE_NAME: Final = "quotes-evaluation"
DATASET: Final = "sommelier-quotes"

app = typer.Typer(help="Measure how well a model works here.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Options that come before a command."""


app.command("run")(eval_run.run)


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
    if not settings.model.is_set:
        fail("there is no model to evaluate: set OPENAI_API_KEY, or OPENAI_BASE_URL", 2)
    asked = _models(settings, _letters(modes), model or [settings.model.name])
    from agent.evals.quotes_report import as_json, as_markdown

    runs = asyncio.run(_evaluate(settings, asked))
    markdown = as_markdown(runs)
    typer.echo(markdown, nl=False)
    if save is not None:
        _save(save, markdown, json.dumps(as_json(runs), indent=2, ensure_ascii=False))


def _letters(modes: str) -> list[str]:
    from agent.evals.quotes_run import MODES

    letters = list(dict.fromkeys(part.strip().upper() for part in modes.split(",")))
    if unknown := [letter for letter in letters if letter not in MODES]:
        fail(f"there is no response mode {unknown[0]!r}; use {', '.join(MODES)}", 2)
    return letters


def _models(
    settings: "Settings", letters: Sequence[str], names: Sequence[str]
) -> dict[str, "LLMService"]:
    """A model for each column of the report."""
    from agent.evals.quotes_run import MODES
    from bot.resources import model_of

    return {
        f"{name} {letter}": model_of(settings, name, MODES[letter])
        for name in dict.fromkeys(names)
        for letter in letters
    }


async def _evaluate(settings: "Settings", models: dict[str, "LLMService"]) -> "list[Run]":
    from agent.evals.quotes_run import evaluate_quotes
    from bot.resources import prices

    order, run = list(models), f"{datetime.now():%Y-%m-%d %H:%M:%S}"
    try:
        async with (
            open_experiments(settings) as experiments,
            open_starter_rooms(settings) as rooms,
            _recorded(experiments, run) as record,
        ):
            with progress_bar("Asking") as progress:
                return await evaluate_quotes(
                    models,
                    documents=rooms.documents,
                    limits=settings.turn.limits,
                    progress=lambda label, done, total: progress(
                        order.index(label) * total + done, len(order) * total
                    ),
                    run=run,
                    record=record,
                    prices=prices(settings),
                )
    finally:
        for model in models.values():
            await model.close()


@asynccontextmanager
async def _recorded(experiments: "Experiments | None", run: str) -> "AsyncIterator[Record | None]":
    """What records each answer in Langfuse, an experiment for each model and mode."""
    if experiments is None:
        yield None
        return
    from agent.evals.quotes_run import ground_truth
    from agent.evals.recording import open_recording, question_item

    items = {each.id: question_item(DATASET, each) for each in ground_truth()}
    recording = await open_recording(experiments, DATASET, run, items)
    if recording is None:
        yield None
        return

    async def record(label: str, question: "Question", traces: "Sequence[TraceRecord]") -> None:
        await recording.add(label, question.id, traces)

    yield record
    typer.echo(f"Langfuse: {recording.summary}", err=True)


def _save(folder: Path, markdown: str, data: str) -> None:
    write_files(folder, {f"{FILE_NAME}.md": markdown, f"{FILE_NAME}.json": data})
