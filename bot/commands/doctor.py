"""`sommelier doctor`: check the settings, the database and all servers, and suggest fixes.

A check returns a short report, or raises `NotConfigured` or an error whose text says what is wrong
and how to fix it. No text contains a secret.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Annotated, Final, Literal

import telegram
import typer
from pydantic import BaseModel
from pydantic_core import to_json
from telegram.constants import ChatAction
from telegram.error import TelegramError

from agent.engine.contract import OutputContract
from agent.engine.errors import AgentError
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.mcp import open_servers, read_servers
from bot.commands.local_models import find_servers
from bot.commands.output import build_table, open_settings, print_table
from bot.commands.traces import describe_problems
from bot.resources import model_of, open_engine
from bot.tracing import langfuse_api, trace_server
from config import Settings, SettingsError, hide_user_info
from db.documents.store import SqlDocumentStore
from db.engine import DatabaseUnusable, Sessions
from db.schema import SchemaState, check_schema, find_schema
from db.wines.catalogue import SqlCatalogue

LANGFUSE_SECONDS: Final = 5
LOWEST_LANGFUSE: Final = (4, 16)
"""The oldest version of Langfuse that was tried (docs/admin.md)."""
CHECK_SECONDS: Final = 120
"""The time limit of a check. A local model server may have to load the model first."""
PASSED: Final = "✓"
SKIPPED: Final = "–"
FAILED: Final = "✗"
Check = Callable[[Settings], Awaitable[str]]
"""Checks a part of the bot, and returns a report."""
KEY_ADVICE: Final = (
    "set TRACE_USER_KEY (`openssl rand -hex 32`): with the default key, "
    "users can be identified"
)


class NotConfigured(Exception):
    """Something is not configured. The text says what happens without it, and how to set it."""


class PairingAnswer(BaseModel):
    """The schema of the answer to the test question."""

    colour: Literal["red", "white"]
    is_served_cold: bool


def doctor(
    print_settings: Annotated[
        bool,
        typer.Option("--settings", help="Print all settings instead, secrets hidden."),
    ] = False,
) -> None:
    """Check the settings and everything they name, and say how to fix problems."""
    try:
        settings = open_settings(log_level="CRITICAL")
    except SettingsError as error:
        typer.echo(f"{FAILED} settings: {error}")
        raise typer.Exit(1) from None
    if print_settings:
        rows = []
        for name, field in Settings.model_fields.items():
            value = hide_user_info(_format_setting(getattr(settings, name)))
            rows.append((name.upper(), value, field.description or ""))
        print_table(build_table(("Variable", "Value", "What it does"), rows))
        return
    typer.echo(f"{PASSED} settings: every value is well-formed")
    if not asyncio.run(run_checks(settings)):
        raise typer.Exit(1)


def _format_setting(value: object) -> str:
    """Return a value in the format of `.env`. `SecretStr` prints asterisks."""
    if value is None or value == {}:
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return to_json(value, exclude_none=True).decode()
    return str(value)


async def run_checks(settings: Settings) -> bool:
    """Run the checks in order and print their reports. Return True if none failed."""
    is_healthy = True
    for name, check in CHECKS.items():
        mark, report = await _run_check(check, settings)
        typer.echo(f"{mark} {name}: {hide_user_info(report)}")
        if mark == FAILED:
            is_healthy = False
    return is_healthy


async def _run_check(check: Check, settings: Settings) -> tuple[str, str]:
    """Run a check, and return the mark of its result and its report."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return PASSED, await check(settings)
    except NotConfigured as error:
        return SKIPPED, f"not configured; {error}"
    except TimeoutError:
        return FAILED, f"no answer within {CHECK_SECONDS} seconds"
    except (AgentError, DatabaseUnusable, SettingsError) as error:
        return FAILED, str(error)


async def check_database(settings: Settings) -> str:
    """Check that the database has the newest schema, and count its wines and documents."""
    async with open_engine(settings) as engine:
        schema = await find_schema(engine)
        if engine.dialect.name == "sqlite" and schema.state is SchemaState.EMPTY:
            return "empty; it is filled on the first start"
        check_schema(schema, engine.url)
        wines = await SqlCatalogue(Sessions(engine)).count()
        documents = await SqlDocumentStore(Sessions(engine)).count()
        return (
            f"{engine.dialect.name}, up to date, {wines} wines, {documents} documents"
        )


async def check_model(settings: Settings) -> str:
    """Ask the model a test question, and validate its answer against a schema."""
    if not settings.server:
        advice = "answers come from rules; set OPENAI_API_KEY, or OPENAI_BASE_URL"
        if servers := await find_servers(settings.llm_local_ports):
            server = servers[0]
            advice += f"; {server.name} runs here with {server.models[0]}: "
            advice += "run `sommelier model` to use it"
        raise NotConfigured(advice)
    name = settings.llm_model
    llm = model_of(settings, name)
    try:
        response = await generate_agentic_response(
            "Which wine goes with oysters: red or white, and is it served cold?",
            run=Run([llm]),
            contract=OutputContract(PairingAnswer),
        )
    finally:
        await llm.close()
    if not response.has_text:
        advice = "check OPENAI_API_KEY, OPENAI_BASE_URL and LLM_MODEL"
        raise SettingsError(f"{name} gave no valid answer: {response.error}; {advice}")
    return f"{name} gave a valid answer after {response.usage.requests} request(s)"


async def check_telegram(settings: Settings) -> str:
    """Log in to Telegram, and return the name of the bot."""
    if settings.telegram_bot_token is None:
        raise NotConfigured("set TELEGRAM_BOT_TOKEN to what @BotFather gives you")
    token = settings.telegram_bot_token.get_secret_value()
    try:
        async with telegram.Bot(
            token, base_url=f"{settings.telegram_base_url}/bot"
        ) as bot:
            return f"this is {bot.name}"
    except TelegramError as error:
        advice = "check TELEGRAM_BOT_TOKEN (from @BotFather), TELEGRAM_BASE_URL and the network"
        raise SettingsError(f"{type(error).__name__}; {advice}") from None


async def check_staff(settings: Settings) -> str:
    """Check that the bot may write to the chat of the staff."""
    if settings.staff_chat_id is None or settings.telegram_bot_token is None:
        raise NotConfigured(
            "users cannot ask the people of the shop; set STAFF_CHAT_ID"
        )
    chat_id = settings.staff_chat_id
    token = settings.telegram_bot_token.get_secret_value()
    try:
        async with telegram.Bot(
            token, base_url=f"{settings.telegram_base_url}/bot"
        ) as bot:
            await bot.send_chat_action(chat_id, ChatAction.TYPING)
            await _check_member(bot, chat_id)
    except TelegramError as error:
        advice = (
            "if this is a person, they must press Start in the bot's chat; "
            "if it is a group, the bot must be a member"
        )
        raise SettingsError(
            f"the bot cannot write to {chat_id} of STAFF_CHAT_ID ({error.message}); {advice}"
        ) from None
    return f"questions of users go to chat {chat_id}"


async def _check_member(bot: telegram.Bot, chat_id: int) -> None:
    """Raise SettingsError if the bot is a member of a group who may not write there."""
    is_group = chat_id < 0
    if not is_group:
        return
    member = await bot.get_chat_member(chat_id, bot.id)
    # Only restricted members have this attribute. The others may send messages.
    if not getattr(member, "can_send_messages", True):
        raise SettingsError(
            f"the bot cannot write to {chat_id} of STAFF_CHAT_ID, because it is a "
            "restricted member there; let it send messages"
        )


async def check_tools(settings: Settings) -> str:
    """Connect to every MCP server, list the tools, and mark those that ask the user first."""
    if settings.mcp_servers is None:
        raise NotConfigured("the model has no external tools; set MCP_SERVERS")
    # `open_servers` reads the setting too, but only logs what is wrong with it.
    _, problems = read_servers(settings.mcp_servers.get_secret_value())
    async with open_servers(settings.mcp_servers) as servers:
        for connection in servers.connections:
            await connection.first_attempt_ended.wait()
            if connection.problem:
                problems.append(
                    f"{connection.name} does not run ({connection.problem})"
                )
        names = []
        for tool in servers.tools:
            note = " (asks the user)" if tool.needs_confirmation else ""
            names.append(f"{tool.name}{note}")
    tools = ", ".join(names)
    if problems:
        raise SettingsError("; ".join([*problems, f"tools: {tools or 'none'}"]))
    return tools


async def check_tracing(settings: Settings) -> str:
    """Connect to the server for traces, and warn if users can be identified by their hashes."""
    if not settings.sends_traces:
        raise NotConfigured(
            "traces stay in the database (`sommelier traces list`); set LANGFUSE_PUBLIC_KEY and "
            "LANGFUSE_SECRET_KEY, or OTEL_EXPORTER_OTLP_ENDPOINT, to send them too"
        )
    if settings.langfuse_keys:
        destination = await _check_langfuse(settings)
    else:
        destination = await _check_otlp_server(settings)
    problems = await _find_unsent_traces(settings)
    if problems:
        raise SettingsError(f"traces go to {destination}, but {problems}")
    report = f"traces go to {destination}"
    if "trace_user_key" not in settings.model_fields_set:
        report += f"; {KEY_ADVICE}"
    return report


async def _find_unsent_traces(settings: Settings) -> str:
    """Return what is wrong with the traces that wait in the database, or "" if nothing is."""
    async with open_engine(settings) as engine:
        schema = await find_schema(engine)
        if schema.state is not SchemaState.NEWEST:
            # The tables of traces may not exist yet.
            return ""
        return await describe_problems(Sessions(engine))


async def _check_otlp_server(settings: Settings) -> str:
    """Test the address and the headers by an empty export, and return the address."""
    async with aclosing(trace_server(settings)) as server:
        await server.export(b"")
    return str(settings.otel_exporter_otlp_endpoint)


async def _check_langfuse(settings: Settings) -> str:
    """Return the names of the projects and the version of the server.

    Raises:
        SettingsError: the server is too old.
    """
    client = langfuse_api(settings, LANGFUSE_SECONDS)
    async with aclosing(client), client.limited_request():
        projects = await client.api.projects.get(request_options={"max_retries": 0})
        health = await client.api.health.health(request_options={"max_retries": 0})
    names = ", ".join(project.name for project in projects.data)
    description = f"{names or settings.langfuse_base_url} (Langfuse {health.version})"
    version = _parse_version(health.version)
    if version and version < LOWEST_LANGFUSE:
        lowest = ".".join(map(str, LOWEST_LANGFUSE))
        raise SettingsError(f"{description} is too old: update it to {lowest} or later")
    return description


def _parse_version(text: str) -> tuple[int, ...]:
    """Return the numbers with which a version begins: (3, 10) for `v3.10.0-rc1`."""
    numbers: list[int] = []
    for part in text.lstrip("v").split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


CHECKS: Final[Mapping[str, Check]] = {
    "database": check_database,
    "model": check_model,
    "Telegram": check_telegram,
    "staff": check_staff,
    "tools": check_tools,
    "tracing": check_tracing,
}
"""The checks, in the order in which they run."""
