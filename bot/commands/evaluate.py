"""`sommelier eval`: how well models and prompts do what is asked of them, side by side."""

import asyncio
import json
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from agent.engine.messages import ResponseMode
from agent.evals import report
from agent.evals.dataset import SETS, Picture, ground_truth, item_of, selected
from agent.evals.pictures import PicturesVariant, drawn, pictures
from agent.evals.quotes import MODES, QuotesVariant
from agent.evals.run import Result, Variant, evaluate
from agent.tracing.langfuse.experiments import Experiments
from bot.commands.eval_variants import (
    STARTER,
    Dataset,
    Named,
    Select,
    open_experiments,
    open_library,
    open_models,
    open_variants,
    read_dataset,
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
from bot.models import prices, vision_of
from config import Settings

INTERRUPTED: Final = 130

app = typer.Typer(no_args_is_help=True, add_completion=False)

Save = Annotated[
    Path | None, typer.Option(help="A folder for the report: Markdown, JSON and a picture.")
]
Name = Annotated[str | None, typer.Option(help="The name of the run; its time stands behind it.")]
Description = Annotated[str, typer.Option(help="What is tried in this run, for Langfuse.")]


@app.command("run")
def run(
    dataset: Annotated[
        str,
        typer.Argument(
            help="`starter`, `memory`, a JSONL file, or `langfuse:` and a data set's name."
        ),
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
    description: Description = "",
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
    evaluation = Evaluation(open_settings(), _title(name), concurrency, description)
    named = wanted_variants(evaluation.settings, model, prompt)
    select = partial(selected, language=language, kind=kind, limit=limit)
    evaluation.finish(evaluation.conversations(dataset, named, select))
    evaluation.report("evaluation", save, transcripts, as_json=as_json)


@app.command("quotes")
def quotes(
    modes: Annotated[
        str,
        typer.Option(help="Response modes: A prompt only, B json_object, C json_schema, D tool."),
    ] = "A,B,C",
    *,
    model: Annotated[
        list[str] | None, typer.Option(help="A model of the configured server; may be repeated.")
    ] = None,
    first: Annotated[
        str | None,
        typer.Option(help="Ask this model first, and the others too where its quotes fail."),
    ] = None,
    name: Name = None,
    description: Description = "",
    save: Save = None,
    as_json: AsJson = False,
) -> None:
    """Ask each model 24 questions with known answers, in each mode, and score the quotes."""
    evaluation = Evaluation(open_settings(), _title(name), 1, description)
    require_model(evaluation.settings)
    letters = list(dict.fromkeys(part.strip().upper() for part in modes.split(",")))
    if unknown := [letter for letter in letters if letter not in MODES]:
        fail(f"there is no response mode {unknown[0]!r}; use {', '.join(MODES)}", 2)
    names = dict.fromkeys(model or [evaluation.settings.model.name])
    models = {f"{each} {letter}": (each, MODES[letter]) for each in names for letter in letters}
    evaluation.finish(evaluation.quotes(models, first))
    evaluation.report("quotes-evaluation", save, as_json=as_json)


@app.command("pictures")
def seen(
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model that sees, of the server of VISION_MODEL; may be repeated."),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only these: label, list.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many pictures.")] = None,
    draw: Annotated[
        Path | None, typer.Option(help="A folder for the pictures themselves; no model is asked.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Pictures at a time.")] = 4,
    name: Name = None,
    description: Description = "",
    save: Save = None,
    as_json: AsJson = False,
) -> None:
    """Show each model 40 labels and 10 wine lists with known contents, and score what it reads."""
    found = [each for each in pictures() if kind in (None, each.kind)][:limit]
    if draw is not None:
        draw.mkdir(parents=True, exist_ok=True)
        for each in found:
            (draw / f"{each.id}.jpg").write_bytes(drawn(each))
        typer.echo(f"Drew {len(found)} pictures into {draw}.", err=True)
        return
    evaluation = Evaluation(open_settings(), _title(name), concurrency, description)
    named = model or [each for each in (evaluation.settings.senses.vision_model,) if each]
    if not named:
        fail("no model is set that sees: set VISION_MODEL or give --model", 2)
    evaluation.finish(evaluation.pictures(found, named))
    evaluation.report("pictures-evaluation", save, as_json=as_json)


def _title(name: str | None) -> str:
    """What tells a run from every other: a second one under a name is a second one."""
    now = datetime.now().isoformat(" ", "milliseconds")
    return f"{name} · {now}" if name else now


@dataclass(slots=True)
class Evaluation:
    """One run: what is done of it is kept and reported, also when Ctrl-C ends it."""

    settings: Settings
    title: str
    concurrency: int
    description: str = ""
    results: list[Result] = field(default_factory=list)
    stopped: bool = False

    def finish(self, work: Coroutine[object, object, None]) -> None:
        """Work to the end, or until Ctrl-C; ends the command if nothing came of it."""
        try:
            asyncio.run(work)
        except KeyboardInterrupt:
            self.stopped = True
        if not self.results:
            fail("nothing was evaluated", INTERRUPTED if self.stopped else 1)

    async def conversations(self, name: str, named: Sequence[Named], select: Select) -> None:
        """Have the sommelier in each variant answer the conversations of a data set."""
        async with open_experiments(self.settings) as experiments:
            dataset = await read_dataset(name, experiments, select)
            async with (
                open_library(self.settings, starter=name in SETS) as library,
                open_variants(self.settings, named, library) as variants,
            ):
                await self._run(dataset, variants, experiments)

    async def quotes(
        self, wanted: Mapping[str, tuple[str, ResponseMode]], first: str | None
    ) -> None:
        """Have each model quote from the starter documents, with and without a first one."""
        tiers = {
            f"{first} first, {label}": (first, mode) for label, (_, mode) in wanted.items() if first
        }
        limits, listed = self.settings.turn.limits, prices(self.settings)
        async with (
            open_experiments(self.settings) as experiments,
            open_library(self.settings, starter=True) as library,
            open_models(self.settings, {**wanted, **tiers}) as models,
        ):
            alone = [
                QuotesVariant(label, models[label], library.documents, limits=limits, prices=listed)
                for label in wanted
            ]
            variants = alone + [
                replace(each, label=label, first=models[label])
                for each, label in zip(alone, tiers, strict=False)
            ]
            await self._run(Dataset("sommelier-quotes", ground_truth()), variants, experiments)

    async def pictures(self, cases: Sequence[Picture], named: Sequence[str]) -> None:
        """Have each model read pictures, and look what it read up among the starter wines."""
        limits, listed = self.settings.turn.limits, prices(self.settings)
        async with (
            open_experiments(self.settings) as experiments,
            open_library(self.settings, starter=True) as library,
            AsyncExitStack() as stack,
        ):
            models = {each: vision_of(self.settings, each) for each in named}
            for each in models.values():
                stack.push_async_callback(each.close)
            variants = [
                PicturesVariant(label, seeing, library.catalogue, limits, listed)
                for label, seeing in models.items()
            ]
            await self._run(Dataset("sommelier-pictures", list(cases)), variants, experiments)

    async def _run(
        self, dataset: Dataset, variants: Sequence[Variant], experiments: Experiments | None
    ) -> None:
        """Try every case with every variant, and record it in Langfuse where there is one."""
        cases, recording = dataset.cases, None
        if experiments is not None:
            items = dataset.stored or {each.id: item_of(dataset.name, each) for each in cases}
            recording = await experiments.open(
                dataset.name,
                self.title,
                items,
                description=self.description,
                stored=bool(dataset.stored),
            )
        with progress_bar("Asking") as progress:

            async def done(result: Result) -> None:
                self.results.append(result)
                progress(len(self.results), len(cases) * len(variants))
                if recording is not None:
                    await recording.add(result.variant, result.case.id, result.traces)

            try:
                await evaluate(
                    variants, cases, run=self.title, done=done, concurrency=self.concurrency
                )
            finally:
                order = [(each.label, case.id) for each in variants for case in cases]
                self.results.sort(key=lambda each: order.index((each.variant, each.case.id)))
        if recording is not None:
            await recording.finish()
            typer.echo(f"Langfuse: {recording.summary}", err=True)

    def report(
        self, file: str, save: Path | None, transcripts: Path | None = None, *, as_json: bool
    ) -> None:
        """Print what came of it, and write it into files of this name."""
        title, results = self.title, self.results
        if as_json:
            print_json(report.as_json(title, results))
        else:
            self._print()
        for line in report.unanswered(results):
            typer.echo(line, err=True)
        if save is not None:
            data = json.dumps(report.as_json(title, results), indent=2, ensure_ascii=False)
            files = {
                f"{file}.md": report.as_markdown(title, results, plot=f"{file}.svg"),
                f"{file}.json": f"{data}\n",
                f"{file}.svg": report.svg(report.summaries(results)),
            }
            _write(save, files)
        if transcripts is not None:
            _write(transcripts.parent, {transcripts.name: report.transcripts(title, results)})
        if self.stopped:
            raise typer.Exit(INTERRUPTED)

    def _print(self) -> None:
        """The table, the bars, and the worst cases of each variant."""
        found = report.summaries(self.results)
        typer.echo(f"Evaluation {printable(self.title)}")
        show(table(report.head(found), report.rows(found)))
        typer.echo("")
        for line in [*report.bars(found), *report.worst_lines(self.results)]:
            typer.echo(printable(line))


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write texts into a folder, which is made; a failure ends the command."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"the report cannot be written to {folder}: {error.strerror or error}")
    typer.echo(f"Saved {', '.join(files)} to {folder}.", err=True)
