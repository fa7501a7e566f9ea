"""`sommelier wines`: filling the catalogue and searching it."""

# ruff: noqa: PLC0415

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.commands.output import progress_bar, show
from bot.commands.settings import open_settings

if TYPE_CHECKING:
    from config import Settings
    from db.catalogue import ImportReport

app = typer.Typer(help="Fill the catalogue and search it.", no_args_is_help=True)


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="A CSV file; docs/wines.md describes it.")],
) -> None:
    """Add the wines of a CSV file, all or none. Wines that are there already are updated."""
    settings = open_settings("WARNING")
    from bot.commands.tables import problem_table
    from db.csv_rows import CatalogueFileError

    try:
        report = asyncio.run(_import(settings, file))
    except CatalogueFileError as error:
        typer.echo(f"sommelier: nothing was imported from {file}", err=True)
        show(problem_table(error.problems), error=True)
        raise typer.Exit(1) from None
    typer.echo(f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged.")
    if report.problems:
        typer.echo("Imported without these details:")
        show(problem_table(report.problems))


@app.command("search")
def search_text(
    text: Annotated[str, typer.Argument(help='For example "red for lamb under 25 euros".')],
) -> None:
    """Show the wines that a text asks for."""
    settings = open_settings("WARNING")
    from agent.house_sommelier.understanding import understand
    from agent.sommelier.wine import WineSearchResult
    from bot.commands.tables import wine_table
    from bot.resources import open_database
    from db.repositories.wines import SqlCatalogue

    async def search() -> WineSearchResult:
        async with open_database(settings) as sessions:
            return await SqlCatalogue(sessions).search(understand(text).query)

    found = asyncio.run(search())
    if not found.wines:
        relax = "; ".join(f"without {name} there are {n}" for name, n in found.relax.items())
        typer.echo(f"No wine fits{': ' + relax if relax else ''}.")
        return
    show(wine_table(found.wines))
    if found.total > len(found.wines):
        typer.echo(f"{len(found.wines)} of {found.total} wines.")


@app.command("count")
def count_wines() -> None:
    """Show how many wines the catalogue holds."""
    settings = open_settings("WARNING")
    from bot.resources import open_database
    from db.repositories.wines import SqlCatalogue

    async def count() -> int:
        async with open_database(settings) as sessions:
            return await SqlCatalogue(sessions).count()

    typer.echo(asyncio.run(count()))


async def _import(settings: "Settings", file: Path) -> "ImportReport":
    from bot.resources import open_database
    from db.catalogue import import_catalogue

    async with open_database(settings) as sessions:
        with progress_bar("Importing") as progress:
            return await import_catalogue(sessions, file, progress)
