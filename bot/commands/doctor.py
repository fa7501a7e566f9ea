"""`sommelier doctor`: tell what works, what is not configured, and how to fix what is wrong.

A check returns what it found, or raises `NotConfigured` or an error whose text says what is wrong
and what to do about it, without a secret.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Annotated, Final, Literal

import telegram
import typer
from pydantic import BaseModel
from pydantic_core import to_json
from telegram.error import TelegramError

from agent.engine.contract import OutputContract
from agent.engine.errors import AgentError
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.mcp import open_servers, read_servers
from bot.commands.local_models import find_servers
from bot.commands.output import open_settings, show, table
from bot.resources import model_of, open_engine, require_newest_schema
from bot.tracing import langfuse_api, otlp_backend
from config import Settings, SettingsError
from db.documents.store import SqlDocumentStore
from db.engine import DatabaseUnavailable, Sessions, schema_revision
from db.wines.catalogue import SqlCatalogue

LANGFUSE_SECONDS: Final = 5
CHECK_SECONDS: Final = 120
"""The longest a check may take: a model may have to be loaded first."""
GUESSABLE: Final = "; set TRACE_USER_KEY (`openssl rand -hex 32`): by the default users are guessed"


class NotConfigured(Exception):
    """Something is not configured; the text says how it would be, and what happens without."""


class Pairing(BaseModel):
    """The answer that a model is tried with."""

    colour: Literal["red", "white"]
    is_served_cold: bool


def doctor(
    lists_settings: Annotated[
        bool, typer.Option("--settings", help="Print all settings instead, secrets hidden.")
    ] = False,
) -> None:
    """Check the settings and everything they name, and say what to do about each."""
    try:
        settings = open_settings("CRITICAL")
    except SettingsError as error:
        typer.echo(f"✗ settings: {error}")
        raise typer.Exit(1) from None
    if lists_settings:
        rows = [
            (name.upper(), _shown(getattr(settings, name)), field.description or "")
            for name, field in Settings.model_fields.items()
        ]
        show(table(("Variable", "Value", "What it does"), rows))
        return
    typer.echo("✓ settings: every value is well-formed")
    if not asyncio.run(examine(settings)):
        raise typer.Exit(1)


def _shown(value: object) -> str:
    """Return a value as it is written in `.env`; a secret as stars."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return to_json(value, exclude_none=True).decode() if value else ""
    return "" if value is None else str(value)


async def examine(settings: Settings) -> bool:
    """Run one check after another and print what it finds; return whether nothing is wrong."""
    signs = ""
    for name, check in CHECKS.items():
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                sign, text = "✓", await check(settings)
        except TimeoutError:
            sign, text = "✗", f"no answer within {CHECK_SECONDS} seconds"
        except NotConfigured as error:
            sign, text = "–", f"not configured; {error}"
        except (AgentError, DatabaseUnavailable, SettingsError) as error:
            sign, text = "✗", str(error)
        typer.echo(f"{sign} {name}: {text}")
        signs += sign
    return "✗" not in signs


async def check_database(settings: Settings) -> str:
    """Return how many wines and documents there are, at this version's schema."""
    async with open_engine(settings) as engine:
        if engine.dialect.name == "sqlite" and await schema_revision(engine) is None:
            return "empty; it is filled on the first start"
        await require_newest_schema(engine)
        wines = await SqlCatalogue(Sessions(engine)).count()
        documents = await SqlDocumentStore(Sessions(engine)).count()
        return f"{engine.dialect.name}, up to date, {wines} wines, {documents} documents"


async def check_model(settings: Settings) -> str:
    """Ask the model one question and hold its answer to a schema."""
    if not settings.server:
        advice = "rules answer; set OPENAI_API_KEY, or OPENAI_BASE_URL for another server"
        for server in (await find_servers(settings.llm_local_ports))[:1]:
            model = server.models[0]
            advice += f"; {server.name} runs here with {model}: `sommelier model` takes it"
        raise NotConfigured(advice)
    name = settings.llm_model
    llm = model_of(settings, name)
    try:
        response = await generate_agentic_response(
            "Which wine goes with oysters: red or white, and is it served cold?",
            run=Run([llm]),
            contract=OutputContract(Pairing),
        )
    finally:
        await llm.close()
    if not response.has_text:
        advice = "check OPENAI_API_KEY, OPENAI_BASE_URL and LLM_MODEL"
        raise SettingsError(f"{name} gave no valid answer: {response.error}; {advice}")
    return f"{name} gave a valid answer after {response.ledger.requests} request(s)"


async def check_telegram(settings: Settings) -> str:
    """Return the name by which Telegram knows the bot."""
    if settings.telegram_bot_token is None:
        raise NotConfigured("set TELEGRAM_BOT_TOKEN to what @BotFather gives you")
    token = settings.telegram_bot_token.get_secret_value()
    try:
        async with telegram.Bot(token, base_url=f"{settings.telegram_base_url}/bot") as bot:
            return f"this is {bot.name}"
    except TelegramError as error:
        advice = "check TELEGRAM_BOT_TOKEN (from @BotFather), TELEGRAM_BASE_URL and the network"
        raise SettingsError(f"{type(error).__name__}; {advice}") from None


async def check_tools(settings: Settings) -> str:
    """Return the tools of every MCP server, and which of them ask the user first."""
    if settings.mcp_servers is None:
        raise NotConfigured("the model has no tools of other programs; set MCP_SERVERS")
    _, problems = read_servers(settings.mcp_servers.get_secret_value())
    async with open_servers(settings.mcp_servers) as servers:
        for server in servers.connections:
            await server.settled.wait()
            if server.problem:
                problems.append(f"{server.name} does not run ({server.problem})")
        asks = {True: " (asks the user)", False: ""}
        tools = ", ".join(f"{tool.name}{asks[tool.needs_confirmation]}" for tool in servers.tools)
    if problems:
        raise SettingsError("; ".join(filter(None, [*problems, tools])))
    return tools


async def check_tracing(settings: Settings) -> str:
    """Return where traces arrive, and what to do if their hashes can be guessed."""
    if not settings.is_exported:
        raise NotConfigured(
            "traces stay in the database (`sommelier traces list`); set LANGFUSE_PUBLIC_KEY and "
            "LANGFUSE_SECRET_KEY, or OTEL_EXPORTER_OTLP_ENDPOINT, to send them too"
        )
    if settings.langfuse_keys:
        api = await langfuse_api(settings, LANGFUSE_SECONDS)
        async with aclosing(api) as langfuse, langfuse.bounded():
            found = await langfuse.api.projects.get(request_options={"max_retries": 0})
        where = ", ".join(project.name for project in found.data) or settings.langfuse_base_url
    else:
        async with aclosing(await otlp_backend(settings)) as backend:
            await backend.export(b"")
        where = str(settings.otel_exporter_otlp_endpoint)
    is_guessable = "trace_user_key" not in settings.model_fields_set
    return f"traces go to {where}{GUESSABLE if is_guessable else ''}"


CHECKS: Final[Mapping[str, Callable[[Settings], Awaitable[str]]]] = {
    "database": check_database,
    "model": check_model,
    "Telegram": check_telegram,
    "tools": check_tools,
    "tracing": check_tracing,
}
"""The checks, in the order in which they are shown."""
