"""`sommelier eval`: how well models and prompts do what is asked of them, side by side."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer
from pydantic import SecretStr

from agent.deps import Deps, Prompts, deps_of
from agent.documents.passages import DocumentStore
from agent.engine.llm import LLMService
from agent.engine.messages import LLM, ResponseMode
from agent.engine.run import Run
from agent.engine.span import TraceRecord
from agent.evals import report
from agent.evals.dataset import (
    SETS,
    Case,
    Conversation,
    DatasetError,
    conversation_of,
    ground_truth,
    item_of,
    read,
    selected,
    unique,
)
from agent.evals.run import QuotesVariant, Result, SommelierVariant, Variant, evaluate
from agent.fallback import Fallback
from agent.memory.tools import memory_tools
from agent.prompts import REPOSITORY
from agent.sommelier.service import Sommelier
from agent.sommelier.wine import Catalogue
from agent.tracing.exporter import trouble
from agent.tracing.recorder import Item
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
from bot.commands.prompts import prompts_in_use, prompts_to_try
from bot.models import model_of, run_of
from bot.resources import open_database, open_documents, research_tools
from bot.tracing import hide, langfuse_of, prepare_trace
from config import DatabaseSettings, Settings
from db.wines.catalogue import SqlCatalogue

FALLBACK: Final = "fallback"
"""The name of the variant that answers without a model."""

STARTER: Final = "starter"
LANGFUSE: Final = "langfuse:"
NO_KEYS: Final = "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY to read a data set of Langfuse"
MODES: Final[Mapping[str, ResponseMode]] = {
    "A": "prompt",
    "B": "json_object",
    "C": "json_schema",
}
"""The letters of the response modes, as settings and `LLMService` name them."""
INTERRUPTED: Final = 130

log = logging.getLogger(__name__)

app = typer.Typer(no_args_is_help=True, add_completion=False)

Save = Annotated[Path | None, typer.Option(help="A folder for the report: Markdown and JSON.")]
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
        typer.Option(help="A model of the configured server, or `fallback`; repeatable."),
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

    Works with no model configured: the fallback is evaluated then.
    """
    evaluation = Evaluation(open_settings(), _title(name), concurrency, description)
    answerers = sommeliers_wanted(evaluation.settings, model, prompt)
    select = partial(selected, language=language, kind=kind, limit=limit)
    chosen = read_dataset(evaluation.settings, dataset, select)
    evaluation.run(chosen, answerers, starter=dataset in SETS)
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
    dataset = Dataset("sommelier-quotes", ground_truth())
    evaluation.run(dataset, partial(quoting, models, first))
    evaluation.report("quotes-evaluation", save, as_json=as_json)


def _title(name: str | None) -> str:
    """What tells a run from every other: a second one under a name is a second one."""
    now = datetime.now().isoformat(" ", "milliseconds")
    return f"{name} · {now}" if name else now


@dataclass(frozen=True, slots=True)
class Dataset:
    """Cases, by the name they have in Langfuse; its items by case, if they are `stored` there."""

    name: str
    cases: Sequence[Case]
    stored: Mapping[str, Item] = field(default_factory=dict)


Select = Callable[[Sequence[Conversation]], Sequence[Conversation]]
"""Which of a data set's conversations are tried."""


def read_dataset(settings: Settings, name: str, select: Select) -> Dataset:
    """Read the conversations that are to be tried, from a file or from Langfuse.

    Ends the command when there is no such data set, or none in it is to be tried.
    """
    stored: Mapping[str, Item] = {}
    try:
        if name.startswith(LANGFUSE):
            title = name.removeprefix(LANGFUSE)
            found, stored = _read_langfuse(settings, title)
        else:
            title = f"sommelier-{name if name in SETS else Path(name).stem}"
            found = read(SETS.get(name) or Path(name))
    except DatasetError as error:
        fail(str(error), 2)
    if not found:
        fail(f"{name} has no conversations", 2)
    if not (chosen := select(found)):
        fail(f"no conversation of {name} is of this language and kind", 2)
    return Dataset(title, chosen, stored)


def _read_langfuse(settings: Settings, name: str) -> tuple[list[Conversation], Mapping[str, Item]]:
    if not settings.tracing.has_langfuse:
        fail(NO_KEYS, 2)
    from agent.tracing.experiments import items_of  # noqa: PLC0415 - takes a second

    try:
        items = items_of(langfuse_of(settings), name)
    except Exception as error:
        fail(f"the data set {name!r} cannot be read: {trouble(error)}")
    talks = [(conversation_of(item, name), item) for item in items]
    return unique(each for each, _ in talks), {each.id: item for each, item in talks}


@dataclass(frozen=True, slots=True)
class Bench:
    """What variants are made of: wines, documents, and the run that each starts from.

    Models that are `opened` are closed at the end.
    """

    settings: Settings
    catalogue: Catalogue
    documents: DocumentStore
    run: Run
    stack: AsyncExitStack

    def opened(self, model: LLMService) -> LLM:
        """Have a model closed at the end."""
        self.stack.push_async_callback(model.close)
        return model


@asynccontextmanager
async def open_bench(settings: Settings, *, starter: bool) -> AsyncIterator[Bench]:
    """Open the configured wines and documents, or the `starter` ones in a database of their own."""
    async with AsyncExitStack() as stack:
        if starter:
            folder = stack.enter_context(TemporaryDirectory(prefix="sommelier-"))
            url = SecretStr(f"sqlite+aiosqlite:///{folder}/starter.sqlite3")
            database = DatabaseSettings(DATABASE_URL=url)
            settings = settings.model_copy(update={"database": database})
        sessions = await stack.enter_async_context(open_database(settings))
        documents = await stack.enter_async_context(open_documents(settings, sessions))
        await documents.embed_missing()
        run = run_of(settings, [], REPOSITORY)
        yield Bench(settings, SqlCatalogue(sessions), documents, run, stack)


Variants = Callable[[Bench], Sequence[Variant]]
"""Makes the variants that are compared."""


def require_model(settings: Settings) -> None:
    """End the command if no server with models is configured."""
    if not settings.model.is_set:
        fail("there is no model to evaluate: set OPENAI_API_KEY, or OPENAI_BASE_URL", 2)


def sommeliers_wanted(
    settings: Settings, models: Sequence[str] | None, prompts: Sequence[str] | None
) -> Variants:
    """Want every model with every prompt; unless some are named, with those in production."""
    if prompts:
        texts = prompts_to_try(settings, list(dict.fromkeys(prompts)))
    else:
        texts = {"": prompts_in_use(settings)}
    names = list(
        dict.fromkeys(models or [settings.model.name if settings.model.is_set else FALLBACK])
    )
    if names != [FALLBACK]:
        require_model(settings)
    return partial(sommeliers, names, texts)


def sommeliers(names: Sequence[str], texts: Mapping[str, Prompts], bench: Bench) -> list[Variant]:
    """Make the sommelier of the product of each model and prompts, with its research.

    Places are not searched for, which costs and changes daily.
    """
    settings, mode = bench.settings, bench.settings.model.mode
    looking = research_tools(bench.documents)
    tools = [*looking, *memory_tools()]
    answerer = Sommelier(
        catalogue=bench.catalogue,
        fallback=Fallback(catalogue=bench.catalogue, documents=bench.documents),
        research_tools=tools,
    )
    made: list[Variant] = []
    for name in names:
        models = [] if name == FALLBACK else [bench.opened(model_of(settings, name, mode))]
        for title, prompts in texts.items():
            run = replace(bench.run, models=models, deps=Deps(prompts=prompts))
            label = f"{name} · {title}" if title else name
            made.append(SommelierVariant(label, answerer, bench.catalogue, run))
    return made


def quoting(
    wanted: Mapping[str, tuple[str, ResponseMode]], first: str | None, bench: Bench
) -> list[Variant]:
    """Make a variant that quotes of each model; with a `first` one another that begins with it."""

    def run(name: str, mode: ResponseMode, **special: LLM) -> Run:
        deps = replace(deps_of(bench.run), models=special)
        return replace(bench.run, models=[opened(name, mode)], deps=deps)

    def opened(name: str, mode: ResponseMode) -> LLM:
        return bench.opened(model_of(bench.settings, name, mode))

    runs = {label: run(*each) for label, each in wanted.items()}
    if first:
        runs |= {
            f"{first} first, {label}": run(name, mode, quotes=opened(first, mode))
            for label, (name, mode) in wanted.items()
        }
    return [QuotesVariant(label, each, bench.documents) for label, each in runs.items()]


@dataclass(slots=True)
class Evaluation:
    """One run: what is done of it is kept and reported, also when Ctrl-C ends it."""

    settings: Settings
    title: str
    concurrency: int
    description: str = ""
    results: list[Result] = field(default_factory=list)
    stopped: bool = False

    def run(self, dataset: Dataset, variants: Variants, *, starter: bool = True) -> None:
        """Try every case with every variant, to the end, or until Ctrl-C.

        Ends the command if nothing came of it.
        """
        try:
            asyncio.run(self._run(dataset, variants, starter=starter))
        except KeyboardInterrupt:
            self.stopped = True
        if not self.results:
            fail("nothing was evaluated", INTERRUPTED if self.stopped else 1)
        self.record(dataset)

    async def _run(self, dataset: Dataset, variants: Variants, *, starter: bool) -> None:
        async with open_bench(self.settings, starter=starter) as bench:
            await self._compare(dataset, variants(bench))

    async def _compare(self, dataset: Dataset, variants: Sequence[Variant]) -> None:
        cases = dataset.cases
        with progress_bar("Asking") as progress:

            async def done(result: Result) -> None:
                self.results.append(result)
                progress(len(self.results), len(cases) * len(variants))

            try:
                await evaluate(
                    variants, cases, run=self.title, done=done, concurrency=self.concurrency
                )
            finally:
                order = [(each.label, case.id) for each in variants for case in cases]
                self.results.sort(key=lambda each: order.index((each.variant, each.case.id)))

    def record(self, dataset: Dataset) -> None:
        """Record in Langfuse, if there is one, what came of the cases; trouble is told."""
        if not self.settings.tracing.has_langfuse:
            return
        from agent.tracing import experiments  # noqa: PLC0415 - takes a second

        client, shown = langfuse_of(self.settings), prepare_trace(self.settings)
        items = dataset.stored or {case.id: item_of(dataset.name, case) for case in dataset.cases}
        traced: dict[str, dict[str, Sequence[TraceRecord]]] = {}
        for result in self.results:
            traces = [*map(shown, result.traces)]
            traced.setdefault(result.variant, {})[result.case.id] = traces
        try:
            if not dataset.stored:
                experiments.put_items(client, dataset.name, [*items.values()], hide(self.settings))
            recorded, url = experiments.record(
                client, dataset.name, self.title, items, traced, description=self.description
            )
        except Exception as error:
            log.warning("This run is not recorded: %s", trouble(error))
            return
        lost = sum(map(len, traced.values())) - recorded
        told = f", {lost} lost" if lost else ""
        typer.echo(f"Langfuse: {recorded} recorded{told}, see {url}", err=True)

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
                f"{file}.md": report.as_markdown(title, results),
                f"{file}.json": f"{data}\n",
            }
            _write(save, files)
        if transcripts is not None:
            _write(transcripts.parent, {transcripts.name: report.transcripts(title, results)})
        if self.stopped:
            raise typer.Exit(INTERRUPTED)

    def _print(self) -> None:
        """Print the table and the worst cases of each variant."""
        found = report.summaries(self.results)
        typer.echo(f"Evaluation {printable(self.title)}")
        show(table(report.head(found), report.rows(found)))
        for line in report.worst_lines(self.results):
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
