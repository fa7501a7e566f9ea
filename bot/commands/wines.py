"""`sommelier wines import`: show how a list is understood, and take it into the catalogue."""

import asyncio
import csv
import io
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.table import Column, Table

from agent.sommelier.cards import format_prices
from agent.sommelier.vocabulary import Currency
from agent.sommelier.wine import Wine
from bot.commands.output import (
    DryRun,
    WithoutAsking,
    build_table,
    fail,
    open_settings,
    print_table,
    print_text,
    run_with_database,
    show_status,
    write_file,
)
from bot.commands.reading_lists import read_list
from config import Settings
from db.engine import Sessions
from db.wines.catalogue import list_wines
from db.wines.catalogue_import import ImportReport, count_samples
from db.wines.catalogue_import import import_wines as add_wines
from db.wines.lists.importing import CatalogueFile
from db.wines.lists.listed import LeftOut
from db.wines.lists.problems import CUT_OFF, CatalogueFileError, Problem
from db.wines.lists.profiles.pages import READ_BY_MODEL
from db.wines.shrinkage import ListShrinks

PREVIEW_WINES: Final = 8
"""The number of wines of a list that are shown before it is imported."""
EXAMPLES: Final = 3
"""The number of examples that are shown of each kind of problem."""
CUT_OR_SHRUNK_STATUS: Final = 3
"""The exit status if a file was cut off, or if too much of a list would change."""

wines_app = typer.Typer(no_args_is_help=True, add_completion=False)


@wines_app.callback()
def wines() -> None:
    """Fill the catalogue."""


@dataclass(frozen=True, slots=True)
class _ListImport:
    """A list that was read, and how to import it."""

    settings: Settings
    file: Path
    catalogue: CatalogueFile
    without_samples: bool
    may_shrink: bool


@wines_app.command("import")
def import_wines(
    file: Annotated[
        Path,
        typer.Argument(help="A CSV file or workbook of your shop or cellar program."),
    ],
    *,
    yes: WithoutAsking = False,
    dry_run: DryRun = False,
    without_samples: Annotated[
        bool,
        typer.Option("--without-samples", help="Take the starter wines out of stock."),
    ] = False,
    allow_shrink: Annotated[
        bool,
        typer.Option("--allow-shrink", help="Import a list that has lost many wines."),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Write all that was not imported to a file."),
    ] = None,
    currency: Annotated[
        Currency | None,
        typer.Option("--currency", help="The currency of prices without one."),
    ] = None,
    ask_model: Annotated[
        bool,
        typer.Option(
            "--ask-model", help="Let the model fill in styles, grapes and origins."
        ),
    ] = False,
) -> None:
    """Add or update the wines of a file, and take wines that left the file out of stock.

    On a terminal you first see how the file was understood. In a pipe, a file with bad rows is
    imported only with --yes. VISION_MODEL reads a PDF or a photo. What a model says is always shown
    before it is written. If the exit status is 3, nothing was imported: the file was cut off, or
    more than 30 % of its wines would be out of stock or change their price by more than half.
    """
    is_interactive = sys.stdin.isatty() and not yes
    has_preview = dry_run or is_interactive
    settings = open_settings()
    with show_status(f"Reading {file}"):
        catalogue = _read_or_end(file, currency, settings, asks_model=ask_model)
    if report:
        write_file(report, _format_csv(catalogue))
    if catalogue.problems and not has_preview and not yes:
        # In a pipe nobody can decide about the bad rows.
        _end_with_problems(file, catalogue.problems)
    planned = _ListImport(settings, file, catalogue, without_samples, allow_shrink)
    # What a model says is shown even if nobody is asked about it.
    shows_reading = has_preview or catalogue.is_by_model
    if shows_reading:
        _show_reading(catalogue)
    if has_preview:
        _show_plan(planned)
    is_declined = is_interactive and not dry_run and not _confirm(catalogue)
    if dry_run or is_declined:
        typer.echo("Nothing was imported.")
        return
    _import_or_end(planned)
    if not shows_reading:
        _show_rest(catalogue)
    if not without_samples:
        _mention_samples(settings)


def _read_or_end(
    file: Path,
    currency: Currency | None,
    settings: Settings,
    *,
    asks_model: bool,
) -> CatalogueFile:
    """Return the wines of a file. If the file cannot be read, end the command."""
    try:
        return asyncio.run(read_list(file, currency, settings, asks_model=asks_model))
    except CatalogueFileError as error:
        _end_with_problems(file, error.problems)


def _show_plan(planned: _ListImport) -> None:
    """Show what an import would do."""

    async def plan(sessions: Sessions) -> ImportReport:
        return await add_wines(
            sessions,
            planned.catalogue,
            without_samples=planned.without_samples,
            dry_run=True,
        )

    report = run_with_database(planned.settings, plan)
    typer.echo(f"Would be: {_format_report(report)}")


def _import_or_end(planned: _ListImport) -> None:
    """Import a list, and show what was done. If too much would change, end the command."""

    async def add(sessions: Sessions) -> ImportReport:
        return await add_wines(
            sessions,
            planned.catalogue,
            without_samples=planned.without_samples,
            may_shrink=planned.may_shrink,
        )

    try:
        with show_status(f"Importing {len(planned.catalogue.wines)} wines"):
            report = run_with_database(planned.settings, add)
    except ListShrinks as error:
        reason = (
            f"nothing was imported from {planned.file}: {error}. Is the file whole?"
        )
        fail(
            f"{reason} If it is right, import it with --allow-shrink.",
            CUT_OR_SHRUNK_STATUS,
        )
    typer.echo(_format_report(report))


def _mention_samples(settings: Settings) -> None:
    """Say that starter wines are offered too, if there are any."""
    samples = run_with_database(settings, count_samples)
    if samples:
        typer.echo(
            f"{samples} starter wines are offered too; --without-samples takes them away."
        )


@wines_app.command("list")
def list_catalogue(
    *,
    changed: Annotated[
        bool,
        typer.Option("--changed", help="Only what /out, /in and /price have changed."),
    ] = False,
) -> None:
    """Show the wines. Those that staff changed since the last import of their list come first."""

    async def read(sessions: Sessions) -> list[tuple[Wine, datetime | None]]:
        return await list_wines(sessions, changed=changed)

    wines = run_with_database(open_settings(), read)
    rows: list[tuple[str, str, str, str]] = []
    for wine, changed_at in wines:
        offers = _format_offers(wine)
        when = ""
        if changed_at:
            when = f"{changed_at:%Y-%m-%d %H:%M}"
        rows.append((wine.label, offers, when, wine.id))
    print_table(build_table(["Wine", "Offers", "Changed (UTC)", "Id"], rows))


def _end_with_problems(file: Path, problems: Sequence[Problem]) -> NoReturn:
    """Show why nothing was imported from a file, and end the command."""
    print_text(f"sommelier: nothing was imported from {file}", error=True)
    print_table(_problem_table(problems), error=True)
    if any(problem.kind == CUT_OFF for problem in problems):
        raise typer.Exit(CUT_OR_SHRUNK_STATUS)
    raise typer.Exit(1)


def _confirm(catalogue: CatalogueFile) -> bool:
    """Ask whether to import the list that was shown."""
    bad_rows = len({problem.line for problem in catalogue.problems})
    total = len(catalogue.wines) + bad_rows
    question = f"Import {len(catalogue.wines)} of {total}?"
    if bad_rows:
        question += f" {bad_rows} need attention."
    return typer.confirm(question)


def _show_reading(catalogue: CatalogueFile) -> None:
    """Show how a file was understood: its columns, its wines, and what is not imported."""
    print_text(f"{catalogue.source}: {catalogue.profile}, read as {catalogue.read_as}")
    print_table(build_table(["Column", "Is"], _describe_columns(catalogue)))
    if catalogue.headings:
        print_text(f"Headings and sheets: {', '.join(catalogue.headings)}")
    if not catalogue.has_allergens:
        typer.echo(
            "No column has allergens: all wines are assumed to have sulphites, and nothing is "
            "known of egg, milk and fish."
        )
    if not catalogue.has_currency:
        typer.echo(
            "No column has the currency: prices are in EUR; --currency names another."
        )
    shown = catalogue.wines
    # The owner has to check every wine that a model has read from a picture.
    if catalogue.profile != READ_BY_MODEL:
        shown = shown[:PREVIEW_WINES]
    print_table(_wine_table(catalogue, shown))
    _show_derived(catalogue)
    _show_facts_of_model(catalogue)
    _show_rest(catalogue)


def _show_facts_of_model(catalogue: CatalogueFile) -> None:
    """Show each fact about a wine that comes from the model and not from the file."""
    if not catalogue.filled_in:
        return
    rows: list[tuple[str, str]] = []
    for wine in catalogue.wines:
        fields = catalogue.filled_in.get(wine.id, ())
        facts = [f"{field}: {wine.field_text(field)}" for field in fields]
        if facts:
            rows.append((wine.label, "; ".join(facts)))
    print_table(build_table(["Wine", "The model says"], rows))


def _describe_columns(catalogue: CatalogueFile) -> Iterable[tuple[str, str]]:
    """Yield each column with the field that it is read as.

    Columns that are not used, and have no suggestion either, come last, together.
    """
    unused: list[str] = []
    for title, field in catalogue.columns:
        suggestion = catalogue.suggestions.get(title)
        if field:
            yield title, field
        elif suggestion:
            advice = f"to use it as {suggestion}, rename it to that"
            yield title, f"not used; {advice}"
        else:
            unused.append(title)
    if unused:
        yield ", ".join(unused), "not used"


def _show_derived(catalogue: CatalogueFile) -> None:
    """Show how often each field was derived, and how many wines have no style."""
    counts = Counter[str]()
    for fields in catalogue.derived.values():
        counts.update(fields)
    if counts:
        derived = [f"{field} of {count} wines" for field, count in counts.most_common()]
        typer.echo(f"Derived from names and tables: {', '.join(derived)}.")
    unknown = [wine.label for wine in catalogue.wines if not wine.style]
    if unknown:
        names = "; ".join(unknown[:EXAMPLES])
        print_text(f"{len(unknown)} wines have no known style: {names}")


def _show_rest(catalogue: CatalogueFile) -> None:
    """Show what is not imported: products that are not wines for sale, and rows with problems."""
    if catalogue.left_out:
        typer.echo("Left out:")
        print_table(_left_out_table(catalogue.left_out))
    if catalogue.problems:
        typer.echo("Not imported:")
        print_table(_problem_table(catalogue.problems))


def _format_report(report: ImportReport) -> str:
    """Return the numbers of a report as a sentence."""
    counts = [
        f"{report.added} added",
        f"{report.updated} updated",
        f"{report.unchanged} unchanged",
    ]
    if report.gone:
        counts.append(f"{report.gone} out of stock (not in the file any more)")
    return f"{', '.join(counts)}."


def _problem_table(problems: Sequence[Problem]) -> Table:
    """Return a table with the number of problems of each kind, and the first rows with them."""
    groups: defaultdict[tuple[str, str], list[Problem]] = defaultdict(list)
    for problem in problems:
        key = (problem.column, problem.kind)
        groups[key].append(problem)
    rows: list[tuple[str, str, str, str]] = []
    for (column, kind), group in groups.items():
        count = str(len(group))
        examples = _name_examples(group)
        rows.append((count, column, kind, examples))
    count_column = Column("Rows", justify="right")
    return build_table([count_column, "Column", "What is wrong", "Such as"], rows)


def _name_examples(problems: Sequence[Problem]) -> str:
    """Return the lines, and if known the values, of the first problems."""
    examples: list[str] = []
    for problem in problems[:EXAMPLES]:
        if problem.line and problem.value:
            examples.append(f"line {problem.line}: {problem.value}")
        elif problem.line:
            examples.append(f"line {problem.line}")
    return "; ".join(examples)


def _left_out_table(left_out: Sequence[LeftOut]) -> Table:
    """Return a table with the number of products left out for each reason, and the first names."""
    names_by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for product in left_out:
        names_by_reason[product.reason].append(product.name)
    rows: list[tuple[str, str, str]] = []
    for reason, names in names_by_reason.items():
        count = str(len(names))
        examples = "; ".join(names[:EXAMPLES])
        rows.append((count, reason, examples))
    count_column = Column("Products", justify="right")
    return build_table([count_column, "Because", "Such as"], rows)


def _format_csv(catalogue: CatalogueFile) -> str:
    """Return all that is not imported of a file, as CSV."""
    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(["line", "column", "value", "reason"])
    for problem in catalogue.problems:
        writer.writerow([problem.line, problem.column, problem.value, problem.kind])
    for product in catalogue.left_out:
        writer.writerow([product.line, "", product.name, f"left out: {product.reason}"])
    return output.getvalue()


def _wine_table(catalogue: CatalogueFile, wines: Sequence[Wine]) -> Table:
    """Return a table of wines. It names the fields of each that its file does not give."""
    rows: list[Sequence[str]] = []
    for wine in wines:
        row = [
            wine.label,
            wine.style or "unknown",
            f"{wine.region} {wine.country}",
            _format_offers(wine),
            ", ".join(_name_added_fields(catalogue, wine)),
            wine.id,
        ]
        rows.append(row)
    id_column = Column("Id", overflow="fold", style="dim")
    return build_table(["Wine", "Style", "From", "Offers", "Added", id_column], rows)


def _name_added_fields(catalogue: CatalogueFile, wine: Wine) -> list[str]:
    """Return the fields of a wine that were derived, or that the model gave."""
    names = list(catalogue.derived.get(wine.id, ()))
    for field in catalogue.filled_in.get(wine.id, ()):
        names.append(f"{field} (model)")
    return names


def _format_offers(wine: Wine) -> str:
    """Return the price of each offer, and "(sold out)" if the wine is not in stock."""
    offers = format_prices(wine)
    if wine.in_stock:
        return offers
    return f"{offers} (sold out)"
