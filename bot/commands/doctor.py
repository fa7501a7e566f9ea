"""`sommelier doctor`: tell what works, what is not configured, and how to mend what is wrong.

A check is an async function of the settings that returns what it found, or raises `NotConfigured`
or an error whose text says what is wrong and what to do about it, without a secret.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import httpx2
from pydantic import BaseModel

from agent.documents.embedding import LocalModelError
from agent.documents.vectors import Embedder
from agent.engine.contract import OutputContract
from agent.engine.errors import AgentError
from agent.engine.loop import generate_agentic_response
from agent.engine.mcp import Connection, open_servers
from agent.engine.run import Run
from agent.senses.pictures import misread
from bot.commands.local_models import find_servers
from bot.commands.output import show, table
from bot.models import (
    embedder_of,
    model_of,
    sight_of,
    transcriber_of,
)
from bot.resources import open_engine, require_newest_schema
from bot.tracing import langfuse_api, otlp_backend
from config import Settings, SettingsError
from db.engine import DatabaseUnavailable, Sessions
from db.repositories.documents import SqlDocumentStore
from db.repositories.traces import trace_queue
from db.schema import newest_revision, schema_revision
from db.wines.catalogue import SqlCatalogue

SECONDS: Final = 5
"""The longest a request of a check may take."""
CHECK_SECONDS: Final = 120
"""The longest a check may take: a model may have to be loaded first."""


class Pairing(BaseModel):
    """The answer that a model is tried with."""

    colour: Literal["red", "white"]
    is_served_cold: bool


State = Literal["ok", "off", "wrong"]
SIGNS: Final[Mapping[State, str]] = {"ok": "✓", "off": "–", "wrong": "✗"}

DECODES_METADATA: Final = (4, 59)
QUOTED_METADATA: Final = (
    "before 4.59 it keeps metadata in quotation marks, so that filters by metadata find nothing: "
    "filter by tags and scores, as docs/tracing.md does"
)
GUESSABLE_KEY: Final = (
    "set TRACE_USER_KEY to a long random text, as `openssl rand -hex 32` prints one: with the "
    "default, whoever reads traces and knows Telegram ids can tell whose hash is whose"
)

OPENAI_URL: Final = "https://api.openai.com/v1"


ADVICE: Final[Mapping[int, str]] = {
    401: "the server rejects the key (401); check OPENAI_API_KEY",
    402: "the account has no credit left (402); check its billing",
    403: "the key may not use this model (403); check its permissions and LLM_MODEL",
    404: "the server does not know this model or path (404); check LLM_MODEL, OPENAI_BASE_URL",
    429: "the account has no quota left (429); check its billing",
}
"""What to do about a model server that refuses us with a status."""


class NotConfigured(Exception):
    """Something is not configured; the text says how it would be, and what happens without."""


class Ailment(AgentError):
    """Something is wrong; the text says what, and what to do about it. It holds no secret."""


EXPECTED: Final = (AgentError, DatabaseUnavailable, SettingsError)
"""Errors that say themselves what is wrong."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    state: State
    text: str

    def __str__(self) -> str:
        return f"{SIGNS[self.state]} {self.name}: {self.text}"


def print_settings(settings: Settings) -> None:
    """Print every variable with its value, secrets hidden, and what it does."""
    rows = [
        (variable.name, _shown(variable.value), variable.description)
        for variable in settings.variables()
    ]
    show(table(("Variable", "Value", "What it does"), rows))


def _shown(value: object) -> str:
    """Return a value as it is written in `.env`; a secret as stars."""
    if isinstance(value, tuple):
        return ",".join(
            "=".join(map(_shown, part)) if isinstance(part, tuple) else str(part) for part in value
        )
    return "" if value is None else str(value)


async def examine(settings: Settings) -> list[Finding]:
    """Run one check after another: at once, a slow one would let the others time out."""
    return [await _find(name, check(settings)) for name, check in CHECKS.items()]


async def _find(name: str, check: Awaitable[str]) -> Finding:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return Finding(name, "ok", await check)
    except TimeoutError:
        return Finding(name, "wrong", f"no answer within {CHECK_SECONDS} seconds")
    except NotConfigured as error:
        return Finding(name, "off", f"not configured; {error}")
    except EXPECTED as error:
        return Finding(name, "wrong", str(error))


async def check_database(settings: Settings) -> str:
    """Return how many wines there are in the database, at this version's schema."""
    async with open_engine(settings) as engine:
        is_sqlite = engine.dialect.name == "sqlite"
        if is_sqlite and await schema_revision(engine) is None:
            return "empty; it is filled on the first start"
        await require_newest_schema(engine)
        count = await SqlCatalogue(Sessions(engine)).count()
        said = f"{engine.dialect.name}, up to date, {count} wines"
        if is_sqlite and _others_may_read(engine.url.database):
            said += f"; others on this machine may read it: chmod 600 {engine.url.database}*"
        return said


def _others_may_read(database: str | None) -> bool:
    path = Path(database or "")
    return path.is_file() and bool(path.stat().st_mode & 0o077)


async def check_documents(settings: Settings) -> str:
    """Return how many documents there are, and what finds them by meaning if anything does."""
    try:
        async with open_engine(settings) as engine:
            if await schema_revision(engine) is None:
                return "none yet; the starter documents are indexed on the first start"
            await require_newest_schema(engine)
            stored = await SqlDocumentStore(Sessions(engine)).documents()
    except DatabaseUnavailable:
        raise Ailment("cannot be counted before the database is right") from None
    found = f"{len(stored)} documents in {sum(document.parts for document in stored)} parts"
    embedder = embedder_of(settings)
    if embedder is None:
        return f"{found}, found by their words; set EMBEDDING_MODEL to find them by meaning too"
    try:
        return f"{found}; {await try_embedder(embedder)}"
    finally:
        await embedder.close()


async def try_embedder(embedder: Embedder) -> str:
    """Return the name of a source of vectors, and how long its vectors are."""
    try:
        async with asyncio.timeout(SECONDS):
            (vector,) = await embedder.embed(["wine"])
    except TimeoutError:
        raise Ailment(
            f"{embedder.name} made no vector within {SECONDS} seconds; a model on this machine may "
            "still be loading, or downloading: run this again when it is done"
        ) from None
    except LocalModelError:
        raise
    except Exception as error:
        status = getattr(error, "status_code", None)
        reason = f"{type(error).__name__}, {status}" if status else type(error).__name__
        raise Ailment(
            f"{embedder.name} makes no vectors ({reason}); check EMBEDDING_MODEL, "
            "EMBEDDING_BASE_URL and EMBEDDING_API_KEY"
        ) from None
    return f"{embedder.name}, vectors of {len(vector)} numbers"


async def check_model(settings: Settings) -> str:
    """Ask the model one question and hold its answer to a schema."""
    if not settings.model.is_set:
        servers = await find_servers(settings.model.local_ports)
        found = "".join(
            f"; {server.name} runs here with {server.models[0]}: `sommelier model` takes it"
            for server in servers[:1]
        )
        raise NotConfigured(
            "rules answer; set OPENAI_API_KEY, or OPENAI_BASE_URL for another server" + found
        )
    await _check_server(settings)
    model = model_of(settings, settings.model.name, settings.model.mode)
    try:
        response = await generate_agentic_response(
            "Which wine goes with oysters: red or white, and is it served cold?",
            run=Run([model]),
            contract=OutputContract(Pairing),
        )
    finally:
        await model.close()
    if not response.ok:
        raise Ailment(f"{model.model} gave no valid answer: {response.error}")
    return f"{model.model} gave a valid answer after {response.ledger.requests} request(s)"


async def _check_server(settings: Settings) -> None:
    """Raise Ailment if the model's server cannot be reached, or rejects the key."""
    url, key = settings.model.base_url or OPENAI_URL, settings.model.api_key
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    response = await _get(f"{url}/models", "OPENAI_BASE_URL", headers)
    if response.status_code in ADVICE and response.status_code != httpx2.codes.NOT_FOUND:
        raise Ailment(ADVICE[response.status_code])


async def check_sight(settings: Settings) -> str:
    """Show the model for pictures a label, and tell whether it reads it."""
    if (model := sight_of(settings)) is None:
        raise NotConfigured("pictures are not read; set VISION_MODEL to a model that sees")
    try:
        problem = await misread(model)
    finally:
        await model.close()
    if problem:
        raise Ailment(
            f"{model.model} does not read a label that it is shown ({problem}); set "
            "VISION_MODEL to a model that sees, or leave it out"
        )
    return f"{model.model} reads a label"


async def check_hearing(settings: Settings) -> str:
    """Send the server for voices a second of a tone, and tell whether it writes that down."""
    async with httpx2.AsyncClient() as http:
        transcriber = transcriber_of(settings, http)
        if transcriber is None:
            raise NotConfigured("voices are not heard; set TRANSCRIPTION_MODEL")
        try:
            await transcriber.test()
        except AgentError as error:
            raise Ailment(
                f"{error}; check TRANSCRIPTION_MODEL, TRANSCRIPTION_BASE_URL and its key"
            ) from None
    return f"{transcriber.model} takes recordings"


async def check_servers(settings: Settings) -> str:
    """Start the MCP servers, and return the tools of each."""
    if settings.tools.mcp_servers is None:
        raise NotConfigured("the model has no tools of other programs; set MCP_SERVERS")
    async with open_servers(settings.tools.mcp_servers, stderr=True) as servers:
        for connection in servers.connections:
            await connection.settled.wait()
        found = [f"{one.name}: {_tools_of(one)}" for one in servers.connections if one.tools]
        wrong = [
            f"{one.name} does not run ({one.problem})" for one in servers.connections if one.problem
        ]
    if problems := [*servers.problems, *wrong]:
        raise Ailment("; ".join([*problems, *found]))
    return "; ".join(found)


def _tools_of(connection: Connection) -> str:
    return ", ".join(
        f"{tool.remote_name} (asks the user)" if tool.asks else tool.remote_name
        for tool in connection.tools
    )


async def check_telegram(settings: Settings) -> str:
    """Return the name by which Telegram knows the bot."""
    telegram = settings.telegram
    if telegram.bot_token is None:
        raise NotConfigured("set TELEGRAM_BOT_TOKEN to what @BotFather gives you")
    url = f"{telegram.base_url}/bot{telegram.bot_token.get_secret_value()}/getMe"
    response = await _get(url, "TELEGRAM_BASE_URL")
    if response.status_code in (httpx2.codes.UNAUTHORIZED, httpx2.codes.NOT_FOUND):
        raise Ailment("TELEGRAM_BOT_TOKEN is rejected; get a valid one from @BotFather")
    if response.status_code != httpx2.codes.OK:
        raise Ailment(f"Telegram answers {response.status_code}; try again, or check its status")
    return f"this is @{(_json(response).get('result') or {}).get('username')}"


async def check_tracing(settings: Settings) -> str:
    """Return where traces arrive, and what to do if their hashes can be guessed."""
    tracing = settings.tracing
    if not tracing.is_exported:
        raise NotConfigured(
            "traces stay in the database (`sommelier traces list`); set LANGFUSE_PUBLIC_KEY and "
            "LANGFUSE_SECRET_KEY, or OTEL_EXPORTER_OTLP_ENDPOINT, to send them too"
        )
    said = await (_langfuse(settings) if settings.tracing.has_langfuse else _otlp(settings))
    if "user_key" not in tracing.model_fields_set:
        said.append(GUESSABLE_KEY)
    return "; ".join([*said, *await waiting_traces(settings)])


async def _langfuse(settings: Settings) -> list[str]:
    tracing = settings.tracing
    async with aclosing(await langfuse_api(settings, SECONDS)) as langfuse, langfuse.bounded():
        found = await langfuse.api.projects.get(request_options={"max_retries": 0})
        health = await langfuse.api.health.health(request_options={"max_retries": 0})
    names = ", ".join(project.name for project in found.data)
    version = (health.version or "an unknown version")[:20]
    said = [f"traces go to {names or tracing.base_url}, Langfuse {version}"]
    if is_older(version, DECODES_METADATA):
        said.append(QUOTED_METADATA)
    if tracing.otlp_url is not None:
        said.append("OTEL_EXPORTER_OTLP_ENDPOINT is not used beside Langfuse's keys")
    return said


def is_older(version: str, than: tuple[int, int]) -> bool:
    """Tell whether a version is known to be older than another."""
    parts = version.removeprefix("v").split(".")[:2]
    return len(parts) == 2 and all(map(str.isdecimal, parts)) and tuple(map(int, parts)) < than


async def waiting_traces(settings: Settings) -> list[str]:
    """Return how many traces have not arrived."""
    try:
        async with open_engine(settings) as engine:
            if await schema_revision(engine) != newest_revision():
                return []
            found = await trace_queue(Sessions(engine)).backlog()
    except DatabaseUnavailable:
        return []
    told = (("waiting", "to be sent"), ("refused", "given up"))
    return [f"{found[state]} traces {said}" for state, said in told if found.get(state)]


async def _otlp(settings: Settings) -> list[str]:
    """Send a request without a span, and return where traces go."""
    async with aclosing(await otlp_backend(settings)) as backend:
        await backend.export(b"")
    return [f"traces go to {settings.tracing.otlp_url}"]


CHECKS: Final[Mapping[str, Callable[[Settings], Awaitable[str]]]] = {
    "database": check_database,
    "documents": check_documents,
    "model": check_model,
    "pictures": check_sight,
    "voices": check_hearing,
    "tools": check_servers,
    "Telegram": check_telegram,
    "tracing": check_tracing,
}
"""What is checked, in the order in which it is shown."""


async def _get(
    url: str, variable: str, headers: Mapping[str, str] | None = None
) -> httpx2.Response:
    try:
        async with httpx2.AsyncClient(timeout=SECONDS) as client:
            return await client.get(url, headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Ailment(
            f"cannot be reached ({type(error).__name__}); check the network and {variable}"
        ) from None


def _json(response: httpx2.Response) -> Mapping[str, Any]:
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Ailment("the answer is not what such a server says; check the base URL")
    return body
