"""`sommelier eval`: compare models and prompts by how well they answer."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer
from pydantic import SecretStr

from agent.documents.passages import DocumentStore
from agent.engine.llm import LLMService
from agent.engine.messages import LLM, ResponseMode
from agent.engine.run import Run
from agent.evals import report
from agent.evals.dataset import (
    STARTER,
    Case,
    DatasetError,
    conversation_of,
    item_of,
    read_conversations,
    read_ground_truth,
    require_unique_ids,
    select,
)
from agent.evals.run import QuotesVariant, Result, SommelierVariant, Variant, evaluate
from agent.fallback import Fallback
from agent.memory.tools import memory_tools
from agent.prompts import REPOSITORY
from agent.sommelier.service import Sommelier
from agent.sommelier.wine import Catalogue
from agent.tracing.errors import unavailable
from agent.tracing.experiments import Item, items_of, put_items, record
from agent.tracing.records import TraceRecord
from agent.turn import Deps, deps_of
from bot.commands.output import (
    AsJson,
    fail,
    open_settings,
    print_json,
    printable,
    progress_bar,
    show,
    table,
    write_file,
)
from bot.commands.prompts import prompts_in_use, prompts_to_try
from bot.models import model_of, run_of
from bot.resources import open_database, open_embedder, research_tools
from bot.tracing import hide, langfuse_of, prepare_trace
from config import Settings
from db.repositories.documents import SqlDocumentStore
from db.wines.catalogue import SqlCatalogue

FALLBACK: Final = "fallback"
"""The name of the variant that answers without a model."""
STARTER_SET: Final = "starter"
LANGFUSE: Final = "langfuse:"
NO_KEYS: Final = "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY to read a data set of Langfuse"
MODES: Final[Mapping[str, ResponseMode]] = {
    "A": "prompt",
    "B": "json_object",
    "C": "json_schema",
}
"""The letters of the response modes in the research on quotes."""
INTERRUPTED: Final = 130

log = logging.getLogger(__name__)

app = typer.Typer(no_args_is_help=True, add_completion=False)

Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="A model of the configured server; repeatable."),
]
Save = Annotated[Path | None, typer.Option(help="A JSON file for every answer and score.")]
Name = Annotated[str | None, typer.Option(help="The name of the run; its time is added.")]


@app.command("run")
def run(
    dataset: Annotated[
        str, typer.Argument(help="`starter`, a JSONL file, or `langfuse:` and a data set's name.")
    ] = STARTER_SET,
    *,
    models: Models = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="A file with a system prompt, one in Langfuse (`sommelier@3`, "
            "`sommelier@staging`), or `repository`; repeatable."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The number of conversations.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only those of this language or kind: language=de, kind=budget."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Conversations at a time.")] = 4,
    name: Name = None,
    save: Save = None,
    as_json: AsJson = False,
) -> None:
    """Run conversations through all models and prompts, and score the answers.

    Without a model, or as `--model fallback`, the rules that answer without a model are evaluated.
    """
    settings = open_settings()
    names = list(dict.fromkeys(models or [settings.llm_model if settings.has_model else FALLBACK]))
    if names != [FALLBACK]:
        require_model(settings)
    tried = list(dict.fromkeys(prompt or ()))
    prompts = prompts_to_try(settings, tried) if tried else {"": prompts_in_use(settings)}
    conversations = read_dataset(settings, dataset, where or (), limit)

    def variants(bench: Bench) -> list[Variant]:
        return [
            SommelierVariant(
                f"{model} · {title}" if title else model,
                bench.sommelier(model),
                bench.catalogue,
                bench.run_with(model, deps=Deps(prompts=texts)),
            )
            for model in names
            for title, texts in prompts.items()
        ]

    evaluation = Evaluation(settings, conversations, _title(name))
    evaluation.run(variants, concurrency, starter=dataset == STARTER_SET)
    evaluation.report(save, as_json=as_json)


@app.command("quotes")
def quotes(
    modes: Annotated[
        str, typer.Option(help="Response modes: A prompt only, B json_object, C json_schema.")
    ] = "A,B,C",
    *,
    models: Models = None,
    first: Annotated[
        str | None,
        typer.Option(help="Ask this model first, and the others too where its quotes fail."),
    ] = None,
    name: Name = None,
    save: Save = None,
    as_json: AsJson = False,
) -> None:
    """Ask the models 24 questions with known answers, in all modes, and score the quotes."""
    settings = open_settings()
    require_model(settings)
    letters = list(dict.fromkeys(part.strip().upper() for part in modes.split(",")))
    if unknown := [letter for letter in letters if letter not in MODES]:
        fail(f"there is no response mode {unknown[0]!r}; use {', '.join(MODES)}", 2)
    names = dict.fromkeys(models or [settings.llm_model])

    def variants(bench: Bench) -> list[Variant]:
        made: list[Variant] = []
        for model in names:
            for letter in letters:
                mode = MODES[letter]
                run = bench.run_with(model, mode)
                made.append(QuotesVariant(f"{model} {letter}", run, bench.documents))
                if first:
                    special = bench.opened(model_of(settings, first, mode))
                    deps = replace(deps_of(run), models={"quotes": special})
                    routed = replace(run, deps=deps)
                    label = f"{first} first, {model} {letter}"
                    made.append(QuotesVariant(label, routed, bench.documents))
        return made

    evaluation = Evaluation(
        settings, Dataset("sommelier-quotes", read_ground_truth()), _title(name)
    )
    evaluation.run(variants, 1, starter=True)
    evaluation.report(save, as_json=as_json)


def _title(name: str | None) -> str:
    """Return the unique name of a run."""
    now = datetime.now().isoformat(" ", "milliseconds")
    return f"{name} · {now}" if name else now


def require_model(settings: Settings) -> None:
    """End the command if no server with models is configured."""
    if not settings.has_model:
        fail("there is no model to evaluate: set OPENAI_API_KEY, or OPENAI_BASE_URL", 2)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Cases under a name in Langfuse; `items` are theirs by id if they were read there."""

    name: str
    cases: Sequence[Case]
    items: Mapping[str, Item] = field(default_factory=dict)


def read_dataset(settings: Settings, name: str, where: Sequence[str], limit: int | None) -> Dataset:
    """Read conversations from a file or from Langfuse; end the command if there are none."""
    title, items = name.removeprefix(LANGFUSE), list[Item]()
    try:
        if name.startswith(LANGFUSE):
            items = _read_langfuse(settings, title)
            found = require_unique_ids(conversation_of(item, title) for item in items)
        else:
            title = f"sommelier-{Path(name).stem}"
            found = read_conversations(STARTER if name == STARTER_SET else Path(name))
        chosen = select(found, where, limit)
    except DatasetError as error:
        fail(str(error), 2)
    if not chosen:
        fail(f"{name} has no conversations" + f" where {', '.join(where)}" * bool(where), 2)
    return Dataset(title, chosen, {case.id: item for case, item in zip(found, items, strict=False)})


def _read_langfuse(settings: Settings, name: str) -> list[Item]:
    if not settings.has_langfuse:
        fail(NO_KEYS, 2)
    try:
        return items_of(langfuse_of(settings), name)
    except Exception as error:
        fail(f"the data set {name!r} cannot be read: {unavailable(error)}")


@dataclass(frozen=True, slots=True)
class Bench:
    """Wines, documents and a run to make variants of; `opened` models are closed at its end."""

    settings: Settings
    catalogue: Catalogue
    documents: DocumentStore
    run: Run
    stack: AsyncExitStack

    def opened(self, model: LLMService) -> LLM:
        """Close a model when the bench is closed."""
        self.stack.push_async_callback(model.close)
        return model

    def run_with(
        self, model: str, mode: ResponseMode | None = None, *, deps: Deps | None = None
    ) -> Run:
        """Return a run with this model, without one for the fallback."""
        mode = mode or self.settings.response_mode
        is_fallback = model == FALLBACK
        models = [] if is_fallback else [self.opened(model_of(self.settings, model, mode))]
        return replace(self.run, models=models, deps=deps or self.run.deps)

    def sommelier(self, model: str) -> Sommelier:
        """Return the sommelier for a model; places, which cost and change daily, are left out."""
        return Sommelier(
            small=self.settings.model_copy(update={"llm_model": model}).is_small,
            catalogue=self.catalogue,
            fallback=Fallback(catalogue=self.catalogue, documents=self.documents),
            research_tools=[*research_tools(self.documents), *memory_tools()],
        )


@asynccontextmanager
async def open_bench(settings: Settings, *, starter: bool) -> AsyncIterator[Bench]:
    """Open the configured wines and documents, or the starter ones in a database of their own."""
    async with AsyncExitStack() as stack:
        if starter:
            folder = stack.enter_context(TemporaryDirectory(prefix="sommelier-"))
            url = SecretStr(f"sqlite+aiosqlite:///{folder}/starter.sqlite3")
            settings = settings.model_copy(update={"database_url": url})
        sessions = await stack.enter_async_context(open_database(settings))
        embedder = await stack.enter_async_context(open_embedder(settings))
        documents = SqlDocumentStore(sessions, embedder)
        await documents.embed_missing()
        run = run_of(settings, [], REPOSITORY)
        yield Bench(settings, SqlCatalogue(sessions), documents, run, stack)


Variants = Callable[[Bench], Sequence[Variant]]


@dataclass(slots=True)
class Evaluation:
    """One run: its results are recorded and reported, also when Ctrl-C ends it."""

    settings: Settings
    dataset: Dataset
    title: str
    results: list[Result] = field(default_factory=list)
    stopped: bool = False

    def run(self, variants: Variants, concurrency: int, *, starter: bool) -> None:
        """Answer every case with every variant, and record the results in Langfuse."""
        try:
            asyncio.run(self._run(variants, concurrency, starter))
        except KeyboardInterrupt:
            self.stopped = True
        if not self.results:
            fail("nothing was evaluated", INTERRUPTED if self.stopped else 1)
        if self.settings.has_langfuse:
            self._record()

    async def _run(self, variants: Variants, concurrency: int, starter: bool) -> None:
        cases = self.dataset.cases
        async with open_bench(self.settings, starter=starter) as bench:
            made = variants(bench)
            order = [(variant.label, case.id) for variant in made for case in cases]
            results = evaluate(made, cases, run=self.title, concurrency=concurrency)
            try:
                with progress_bar("Asking") as progress:
                    async for result in results:
                        self.results.append(result)
                        progress(len(self.results), len(order))
            finally:
                self.results.sort(key=lambda found: order.index((found.variant, found.case.id)))

    def _record(self) -> None:
        """Record the results as experiments in Langfuse; warn if that fails."""
        client, prepare = langfuse_of(self.settings), prepare_trace(self.settings)
        name, items = self.dataset.name, self.dataset.items
        traced: dict[str, dict[str, Sequence[TraceRecord]]] = {}
        for result in self.results:
            traces = [prepare(trace) for trace in result.traces]
            traced.setdefault(result.variant, {})[result.case.id] = traces
        try:
            if not items:
                items = {case.id: item_of(name, case) for case in self.dataset.cases}
                put_items(client, name, [*items.values()], hide(self.settings))
            recorded, url = record(client, name, self.title, items, traced)
        except Exception as error:
            log.warning("This run is not recorded: %s", unavailable(error))
            return
        lost = sum(map(len, traced.values())) - recorded
        note = f", {lost} lost" if lost else ""
        typer.echo(f"Langfuse: {recorded} recorded{note}, see {url}", err=True)

    def report(self, save: Path | None, *, as_json: bool) -> None:
        """Print the results, and write them to a file if one is named."""
        data = report.as_json(self.title, self.results)
        if as_json:
            print_json(data)
        else:
            found = report.summaries(self.results)
            typer.echo(f"Evaluation {printable(self.title)}")
            show(table(report.columns(found), report.rows(found)))
            for line in report.worst_lines(self.results):
                typer.echo(printable(line))
        if save is not None:
            write_file(save, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        if self.stopped:
            raise typer.Exit(INTERRUPTED)
