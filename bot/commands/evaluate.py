"""`sommelier eval`: how well models and prompts do what is asked of them, side by side."""

# ruff: noqa: PLC0415

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bot.commands.eval_variants import (
    STARTER,
    Named,
    Plan,
    Wanted,
    items_of,
    open_experiments,
    open_library,
    open_models,
    open_variants,
    read_plan,
    require_model,
    wanted_variants,
)
from bot.commands.output import (
    AsJson,
    fail,
    open_settings,
    print_json,
    printable,
    progress_bar,
    show,
    table,
)

if TYPE_CHECKING:
    from agent.engine.wire import ResponseMode
    from agent.evals.run import Result, Variant
    from agent.tracing.langfuse.experiments import Experiments
    from config import Settings

QUOTES_DATASET: Final = "sommelier-quotes"
INTERRUPTED: Final = 130

app = typer.Typer(help="Measure how well a model works here.", no_args_is_help=True)

Save = Annotated[
    Path | None, typer.Option(help="A folder for the report: Markdown, JSON and a picture.")
]
Name = Annotated[str | None, typer.Option(help="The name of the run; the time unless given.")]


@app.callback()
def _group() -> None:
    """Options that come before a command."""


@app.command("run")
def run(
    dataset: Annotated[
        str, typer.Argument(help="`starter`, a JSONL file, or `langfuse:` and a data set's name.")
    ] = STARTER,
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model of the configured server, or house-sommelier; repeatable."),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="A file with a system prompt, one in Langfuse (`sommelier@3`, "
            "`sommelier@staging`), or `repository`; repeatable."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many conversations.")] = None,
    language: Annotated[
        str | None, typer.Option(help="Only these: en, de, fr, es, it, nl.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only these: pairing, budget …")] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Conversations at a time.")] = 4,
    name: Name = None,
    save: Save = None,
    transcripts: Annotated[
        Path | None,
        typer.Option(help="A Markdown file for what was said, beside what was wanted."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run conversations through each variant and score the answers.

    Works with no model configured: the house sommelier is evaluated then.
    """
    settings = open_settings()
    results: list[Result] = []
    title = name or _now()
    named = wanted_variants(settings, model, prompt)
    wanted = Wanted(title, concurrency, dataset, language, kind, limit)
    working = _evaluate(settings, wanted, named, results)
    stopped = _is_stopped(working, results)
    _report(title, results, save, as_json=as_json)
    if transcripts is not None:
        from agent.evals.report import transcripts as written

        _write(transcripts.parent, {transcripts.name: written(title, results)})
    if stopped:
        raise typer.Exit(INTERRUPTED)


@app.command("quotes")
def quotes(
    modes: Annotated[
        str, typer.Option(help="Response modes: A prompt only, B json_object, C json_schema.")
    ] = "A,B,C",
    *,
    model: Annotated[
        list[str] | None, typer.Option(help="A model of the configured server; may be repeated.")
    ] = None,
    name: Name = None,
    save: Save = None,
    as_json: AsJson = False,
) -> None:
    """Ask each model 24 questions with known answers, in each mode, and score the quotes."""
    from agent.evals.quotes import MODES

    settings = open_settings()
    require_model(settings)
    letters = list(dict.fromkeys(part.strip().upper() for part in modes.split(",")))
    if unknown := [letter for letter in letters if letter not in MODES]:
        fail(f"there is no response mode {unknown[0]!r}; use {', '.join(MODES)}", 2)
    names = dict.fromkeys(model or [settings.model.name])
    wanted = {f"{each} {letter}": (each, MODES[letter]) for each in names for letter in letters}
    results: list[Result] = []
    title = name or _now()
    stopped = _is_stopped(_evaluate_quotes(settings, title, wanted, results), results)
    _report(title, results, save, file="quotes-evaluation", as_json=as_json)
    if stopped:
        raise typer.Exit(INTERRUPTED)


def _now() -> str:
    return f"{datetime.now():%Y-%m-%d %H:%M:%S}"


def _is_stopped(working: "Coroutine[object, object, None]", results: "list[Result]") -> bool:
    """Work to the end, or until Ctrl-C, and tell which; ends the command if nothing came of it."""
    stopped = False
    try:
        asyncio.run(working)
    except KeyboardInterrupt:
        stopped = True
    if not results:
        fail("nothing was evaluated", INTERRUPTED if stopped else 1)
    return stopped


async def _evaluate(
    settings: "Settings", wanted: Wanted, named: Sequence[Named], results: "list[Result]"
) -> None:
    async with open_experiments(settings) as experiments:
        plan = await read_plan(wanted, experiments)
        async with (
            open_library(settings, starter=wanted.dataset == STARTER) as library,
            open_variants(settings, named, library) as variants,
        ):
            await _run(plan, variants, results, experiments)


async def _evaluate_quotes(
    settings: "Settings",
    title: str,
    wanted: "Mapping[str, tuple[str, ResponseMode]]",
    results: "list[Result]",
) -> None:
    """One request at a time: latencies are compared."""
    from agent.evals.dataset import ground_truth
    from agent.evals.quotes import QuotesVariant
    from bot.resources import prices

    async with (
        open_experiments(settings) as experiments,
        open_library(settings, starter=True) as library,
        open_models(settings, wanted) as models,
    ):
        questions = ground_truth()
        items = items_of(QUOTES_DATASET, questions, experiments)
        plan = Plan(title, 1, QUOTES_DATASET, questions, items)
        documents, listed = library.documents, prices(settings)
        limits = settings.turn.limits
        variants = [
            QuotesVariant(label, model, documents, limits=limits, prices=listed)
            for label, model in models.items()
        ]
        await _run(plan, variants, results, experiments)


async def _run(
    plan: Plan,
    variants: "Sequence[Variant]",
    results: "list[Result]",
    experiments: "Experiments | None",
) -> None:
    """Try every case with every variant, and record it in Langfuse where there is one."""
    from agent.evals.run import evaluate

    recording = None
    if experiments is not None:
        from agent.evals.recording import open_recording

        recording = await open_recording(
            experiments, plan.dataset, plan.run, plan.items, stored=plan.stored
        )
    total = len(plan.cases) * len(variants)
    with progress_bar("Asking") as progress:

        async def done(result: "Result") -> None:
            results.append(result)
            progress(len(results), total)
            if recording is not None:
                await recording.add(result)

        try:
            await evaluate(
                variants, plan.cases, run=plan.run, done=done, concurrency=plan.concurrency
            )
        finally:
            labels = [each.label for each in variants]
            order = {case.id: number for number, case in enumerate(plan.cases)}
            results.sort(key=lambda each: (labels.index(each.variant), order[each.case.id]))
    if recording is not None:
        typer.echo(f"Langfuse: {recording.summary}", err=True)


def _report(
    title: str,
    results: "list[Result]",
    save: Path | None,
    *,
    file: str = "evaluation",
    as_json: bool,
) -> None:
    from agent.evals import report

    if as_json:
        print_json(report.as_json(title, results))
    else:
        _print(title, results)
    for line in report.unanswered(results):
        typer.echo(line, err=True)
    if save is not None:
        import json

        data = json.dumps(report.as_json(title, results), indent=2, ensure_ascii=False)
        files = {
            f"{file}.md": report.as_markdown(title, results, plot=f"{file}.svg"),
            f"{file}.json": f"{data}\n",
            f"{file}.svg": report.svg(report.summaries(results)),
        }
        _write(save, files)


def _print(title: str, results: "list[Result]") -> None:
    """The table, the bars, and the worst cases of each variant."""
    from agent.evals import report

    found = report.summaries(results)
    typer.echo(f"Evaluation {printable(title)}")
    show(table(report.head(found), report.rows(found)))
    typer.echo("")
    for line in report.bars(found):
        typer.echo(line)
    for summary in found:
        wrong = report.worst(results, summary.label)
        if wrong:
            typer.echo(f"\nWorst cases of {summary.label}:")
        for result in wrong:
            typer.echo(printable(f"  {result.case.id}: {result.case.title}"))
            for reason in report.reasons(result):
                typer.echo(printable(f"      {reason}"))


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write texts into a folder, which is made; a failure ends the command."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"the report cannot be written to {folder}: {error.strerror or error}")
    typer.echo(f"Saved {', '.join(files)} to {folder}.", err=True)
