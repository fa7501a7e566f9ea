"""`sommelier eval`: compare models and prompts by their answers to conversations."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from pydantic import SecretStr
from pydantic_core import to_json
from rich.console import Console

from agent.documents.passages import DocumentStore
from agent.engine.run import Prompt
from agent.evals.dataset import (
    STARTER_CONVERSATIONS,
    DatasetError,
    EvalCase,
    from_item,
    read_conversations,
    to_item,
)
from agent.evals.experiments import (
    Recorded,
    TracesByVariant,
    fetch_items,
    put_items,
    record_run,
)
from agent.evals.run import (
    Result,
    Variant,
    build_report_data,
    build_table_rows,
    describe_worst,
    evaluate,
)
from agent.fallback.answering import Fallback
from agent.memory.tools import memory_tools
from agent.sommelier.queries import Catalogue
from agent.sommelier.service import Sommelier
from agent.tracing.langfuse_project import to_unavailable
from agent.tracing.masking import Masking
from agent.tracing.records import TraceRecord
from bot.commands.output import (
    build_table,
    fail,
    open_settings,
    print_table,
    print_text,
    write_file,
)
from bot.commands.prompts import NO_KEYS, fetch_production_prompts, read_prompts
from bot.resources import model_of, open_database, open_embedder, research_tools, run_of
from bot.tracing import langfuse_api, masking_of, trace_encoder
from config import Settings
from db.documents.store import SqlDocumentStore
from db.wines.catalogue import SqlCatalogue

if TYPE_CHECKING:
    from agent.tracing.encoding import TraceEncoder

FALLBACK: Final = "fallback"
"""The name of the variant that answers without a model."""
STARTER_NAME: Final = "starter"
"""The name of the data set of conversations that comes with the bot."""
LANGFUSE_PREFIX: Final = "langfuse:"
"""On the command line, the name of a data set in Langfuse begins with this."""
USAGE_STATUS: Final = 2
"""The exit status if the arguments or the settings do not allow an evaluation."""
INTERRUPTED_STATUS: Final = 130
"""The exit status after Ctrl+C, as shells use it."""

log = logging.getLogger(__name__)

eval_app = typer.Typer(no_args_is_help=True, add_completion=False)


@eval_app.callback()
def evaluation() -> None:
    """Measure how well a model works here."""


@eval_app.command()
def run(
    name: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="`starter`, a JSONL file, or `langfuse:` and a data set's name.",
        ),
    ] = STARTER_NAME,
    *,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="A model of the configured server; repeatable."),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="A file with a system prompt, one in Langfuse (`sommelier@3`, "
            "`sommelier@staging`), or `repository`; repeatable."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="The number of conversations.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, help="Conversations at a time.")
    ] = 4,
    save: Annotated[
        Path | None, typer.Option(help="A JSON file for every answer.")
    ] = None,
) -> None:
    """Run conversations through all models and prompts, and score the answers.

    Without a model, or as `--model fallback`, the rules that answer without a model are evaluated.
    """
    settings = open_settings()
    evaluation = Evaluation(
        title=datetime.now().isoformat(" ", "milliseconds"),
        models=_choose_models(settings, models),
        prompts_by_source=_choose_prompts(settings, prompt),
        cases=read_cases(settings, name, limit),
    )
    is_starter = name == STARTER_NAME
    status = _answer_all(settings, evaluation, concurrency, is_starter=is_starter)
    results = evaluation.sort_results()
    if not results:
        # Without results the command has failed, even if it was not interrupted.
        fail("nothing was evaluated", status or 1)
    if settings.langfuse_keys:
        _record(settings, name, evaluation.title, results)
    _report(evaluation.title, results, save)
    raise typer.Exit(status)


def _answer_all(
    settings: Settings,
    evaluation: "Evaluation",
    concurrency: int,
    *,
    is_starter: bool,
) -> int:
    """Let the models answer, and return the exit status: 0, or that of Ctrl+C."""

    async def answer() -> None:
        async with open_bench(settings, starter=is_starter) as bench:
            await evaluation.answer_all(bench, concurrency)

    try:
        asyncio.run(answer())
    except KeyboardInterrupt:
        # The answers so far are reported.
        return INTERRUPTED_STATUS
    return 0


def _choose_models(settings: Settings, models: Sequence[str] | None) -> Sequence[str]:
    """Return the names of the models to evaluate, without repetitions.

    By default this is the configured model, or the fallback if no server is configured. If a named
    model needs a server and none is configured, end the command.
    """
    if not models:
        models = [FALLBACK]
        if settings.server:
            models = [settings.llm_model]
    needs_server = set(models) != {FALLBACK}
    if needs_server and not settings.server:
        fail(
            "there is no model to evaluate: set OPENAI_API_KEY, or OPENAI_BASE_URL",
            USAGE_STATUS,
        )
    # A dict removes repetitions and keeps the order.
    return list(dict.fromkeys(models))


def _choose_prompts(
    settings: Settings, sources: Sequence[str] | None
) -> Mapping[str, Mapping[str, Prompt]]:
    """Return the prompts of each source, by the source.

    Without sources, return the prompts of production. Their source is "".
    """
    if not sources:
        return {"": fetch_production_prompts(settings)}
    prompts_by_source = {}
    for source in sources:
        prompts_by_source[source] = read_prompts(settings, source)
    return prompts_by_source


def label_variant(model: str, source: str) -> str:
    """Return the name of a variant in reports, such as "gpt-5 · sommelier@3".

    It has the model and the source of the prompts. If `source` is "", it has only the model.
    """
    if not source:
        return model
    return f"{model} · {source}"


def read_cases(settings: Settings, name: str, limit: int | None) -> Sequence[EvalCase]:
    """Return the conversations of a file or of a data set in Langfuse.

    With a `limit`, return at most that many, evenly spread over all. If there are no conversations,
    end the command.
    """
    try:
        if name.startswith(LANGFUSE_PREFIX):
            cases = _read_langfuse(settings, name.removeprefix(LANGFUSE_PREFIX))
        elif name == STARTER_NAME:
            cases = read_conversations(STARTER_CONVERSATIONS)
        else:
            cases = read_conversations(Path(name))
    except DatasetError as error:
        fail(str(error), USAGE_STATUS)
    if not cases:
        fail(f"{name} has no conversations", USAGE_STATUS)
    if limit is None or limit >= len(cases):
        return cases
    # Of 10 conversations with a limit of 4, these are the ones at 0, 2, 5 and 7.
    selected = []
    for number in range(limit):
        index = number * len(cases) // limit
        selected.append(cases[index])
    return selected


def _read_langfuse(settings: Settings, name: str) -> list[EvalCase]:
    """Return the conversations of a data set in Langfuse.

    If the data set cannot be read, end the command.
    """
    if not settings.langfuse_keys:
        fail(NO_KEYS, USAGE_STATUS)
    try:
        items = fetch_items(trace_encoder(settings), name)
    except Exception as error:
        fail(f"the data set {name!r} cannot be read: {to_unavailable(error)}")
    return [from_item(item, name) for item in items]


@dataclass(frozen=True, slots=True)
class Bench:
    """Holds the wines and documents that all variants use, and makes variants."""

    settings: Settings
    catalogue: Catalogue
    documents: DocumentStore
    stack: AsyncExitStack
    """Closes the models of the variants at the end."""

    def make_variant(
        self, model: str, source: str, prompts: Mapping[str, Prompt]
    ) -> Variant:
        """Return a variant with a model and the prompts of a source.

        If the name of the model is `fallback`, the variant has no model.
        """
        run = run_of(self.settings, prompts)
        if model != FALLBACK:
            llm = model_of(self.settings, model)
            self.stack.push_async_callback(llm.close)
            run = replace(run, models=[llm])
        label = label_variant(model, source)
        sommelier = self.make_sommelier(model)
        return Variant(label, sommelier, self.catalogue, run)

    def make_sommelier(self, model: str) -> Sommelier:
        """Return the sommelier for a model.

        It does not search for places, because searches cost money and their results change daily.
        """
        # Whether a model counts as small depends on its name in the settings.
        settings = self.settings.model_copy(update={"llm_model": model})
        return Sommelier(
            uses_small_model=settings.is_small,
            catalogue=self.catalogue,
            fallback=Fallback(catalogue=self.catalogue, documents=self.documents),
            research_tools=[*research_tools(self.documents), *memory_tools()],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Lets each model answer the conversations, with each source of prompts."""

    title: str
    models: Sequence[str]
    prompts_by_source: Mapping[str, Mapping[str, Prompt]]
    cases: Sequence[EvalCase]
    results: list[Result] = field(default_factory=list)
    """The results so far, in the order in which the answers arrived."""

    async def answer_all(self, bench: Bench, concurrency: int) -> None:
        """Collect the results, and show on the terminal how many there are so far."""
        variants: list[Variant] = []
        for model in self.models:
            for source, prompts in self.prompts_by_source.items():
                variants.append(bench.make_variant(model, source, prompts))
        result_count = len(variants) * len(self.cases)
        answers = evaluate(
            variants, self.cases, title=self.title, concurrency=concurrency
        )
        with Console(stderr=True).status("Asking") as status:
            async for result in answers:
                self.results.append(result)
                status.update(f"{len(self.results)} of {result_count} answered")

    def sort_results(self) -> list[Result]:
        """Return the results by variant, and by case within a variant."""
        result_by_key: dict[tuple[str, str], Result] = {}
        for result in self.results:
            result_by_key[result.variant, result.case.id] = result
        sorted_results: list[Result] = []
        for model in self.models:
            for source in self.prompts_by_source:
                label = label_variant(model, source)
                for case in self.cases:
                    key = (label, case.id)
                    # An interrupted evaluation has no results for some cases.
                    if key in result_by_key:
                        sorted_results.append(result_by_key[key])
        return sorted_results


@asynccontextmanager
async def open_bench(settings: Settings, *, starter: bool) -> AsyncIterator[Bench]:
    """Open the configured wines and documents, or the starter ones in a temporary database.

    `open_database` fills a new database with the starter wines and documents.
    """
    async with AsyncExitStack() as stack:
        if starter:
            folder = stack.enter_context(TemporaryDirectory(prefix="sommelier-"))
            url = SecretStr(f"sqlite+aiosqlite:///{folder}/starter.sqlite3")
            settings = settings.model_copy(update={"database_url": url})
        sessions = await stack.enter_async_context(open_database(settings))
        embedder = await stack.enter_async_context(open_embedder(settings))
        documents = SqlDocumentStore(sessions, embedder=embedder)
        await documents.embed_missing()
        yield Bench(settings, SqlCatalogue(sessions), documents, stack)


def _record(
    settings: Settings,
    name: str,
    title: str,
    results: Sequence[Result],
) -> None:
    """Record the results as experiments in Langfuse. If that fails, log a warning."""
    masking = masking_of(settings)
    dataset = f"sommelier-{Path(name).stem}"
    # Several variants answer the same case, which is stored as one item.
    new_items: dict[str, dict[str, Any]] = {}
    if name.startswith(LANGFUSE_PREFIX):
        dataset = name.removeprefix(LANGFUSE_PREFIX)
    else:
        for result in results:
            new_items[result.case.id] = to_item(dataset, result.case)
    traces_by_variant = _sort_traces(results, new_items, masking)

    async def record(encoder: "TraceEncoder") -> Recorded:
        async with aclosing(langfuse_api(settings)) as api:
            return await record_run(api, encoder, dataset, title, traces_by_variant)

    try:
        encoder = trace_encoder(settings)
        if new_items:
            put_items(encoder, dataset, new_items.values(), masking)
        recorded = asyncio.run(record(encoder))
    except Exception as error:
        log.warning("This run is not recorded: %s", to_unavailable(error))
        return
    _report_recorded(recorded, lost_count=len(results) - recorded.items)


def _sort_traces(
    results: Sequence[Result],
    new_items: Mapping[str, Mapping[str, Any]],
    masking: Masking,
) -> TracesByVariant:
    """Return the masked traces of each item, by variant. `new_items` are not in Langfuse yet."""
    traces_by_variant: defaultdict[str, dict[str, Sequence[TraceRecord]]]
    traces_by_variant = defaultdict(dict)
    for result in results:
        case = result.case
        item_id = case.item_id
        if case.id in new_items:
            item_id = new_items[case.id]["id"]
        traces = [masking.mask_trace(trace) for trace in result.traces]
        traces_by_variant[result.variant][item_id] = traces
    return traces_by_variant


def _report_recorded(recorded: Recorded, lost_count: int) -> None:
    """Show how many results Langfuse has recorded, and log why it refused others."""
    counts = f"{recorded.items} recorded"
    if lost_count:
        counts += f", {lost_count} lost"
    counts += f", with {recorded.scores} scores"
    typer.echo(f"Langfuse: {counts}, see {recorded.url}", err=True)
    refused = recorded.refused
    if refused:
        log.warning(
            "%d items and scores are not recorded, the last: %s",
            len(refused),
            refused[-1],
        )


def _report(title: str, results: Sequence[Result], save: Path | None) -> None:
    """Show the scores and the worst answers. Write all answers to the file `save`, if given."""
    header, *rows = build_table_rows(results)
    typer.echo(f"Evaluation {title}")
    print_table(build_table(header, rows))
    for line in describe_worst(results):
        print_text(line)
    if save is not None:
        data = to_json(build_report_data(title, results), indent=2, exclude_none=True)
        write_file(save, f"{data.decode()}\n")
