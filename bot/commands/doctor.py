"""`sommelier doctor`: tell what works, what is not configured, and how to mend what is wrong.

A check is an async function of the settings that returns what it found, or raises `NotConfigured`
or an error whose text says what is wrong and what to do about it, without a secret.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal

import httpx2
from pydantic import BaseModel
from pydantic_core import to_json

from agent.documents.embedding import LocalModelError
from agent.documents.vectors import Embedder
from agent.engine.contract import OutputContract
from agent.engine.errors import AgentError
from agent.engine.llm import LLMService
from agent.engine.loop import generate_agentic_response
from agent.engine.run import Run
from agent.mcp import open_servers
from agent.senses.pictures import misread
from agent.senses.speech import Transcriber
from bot.commands.local_models import find_servers
from bot.commands.output import show, table
from bot.models import model_of, sight_of, transcriber_of
from bot.resources import open_embedder, open_engine, require_newest_schema
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
OPENAI_URL: Final = "https://api.openai.com/v1"
ADVICE: Final[Mapping[int, str]] = {
    401: "the server rejects the key (401); check OPENAI_API_KEY",
    402: "the account has no credit left (402); check its billing",
    403: "the key may not use this model (403); check its permissions and LLM_MODEL",
    429: "the account has no quota left (429); check its billing",
}
"""Advice for the statuses with which a model server may refuse a request."""
GUESSABLE_KEY: Final = (
    "set TRACE_USER_KEY to a long random text, as `openssl rand -hex 32` prints one: with the "
    "default, whoever reads traces and knows Telegram ids can tell whose hash is whose"
)
State = Literal["ok", "off", "wrong"]
SIGNS: Final[Mapping[State, str]] = {"ok": "✓", "off": "–", "wrong": "✗"}


class NotConfigured(Exception):
    """Something is not configured; the text says how it would be, and what happens without."""


class Ailment(AgentError):
    """Something is wrong; the text says what, and what to do about it. It holds no secret."""


class Pairing(BaseModel):
    """The answer that a model is tried with."""

    colour: Literal["red", "white"]
    is_served_cold: bool


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
    rows = [(name, _shown(value), description) for name, value, description in settings.variables()]
    show(table(("Variable", "Value", "What it does"), rows))


def _shown(value: object) -> str:
    """Return a value as it is written in `.env`; a secret as stars."""
    if isinstance(value, tuple):
        return ",".join(
            "=".join(map(_shown, part)) if isinstance(part, tuple) else str(part) for part in value
        )
    if isinstance(value, dict):
        return to_json(value, exclude_none=True).decode() if value else ""
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
    except (AgentError, DatabaseUnavailable, SettingsError) as error:
        return Finding(name, "wrong", str(error))


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
    if not settings.has_model:
        found = "".join(
            f"; {server.name} runs here with {server.models[0]}: `sommelier model` takes it"
            for server in (await find_servers(settings.llm_local_ports))[:1]
        )
        raise NotConfigured(
            "rules answer; set OPENAI_API_KEY, or OPENAI_BASE_URL for another server" + found
        )
    url, key = settings.openai_base_url or OPENAI_URL, settings.openai_api_key
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    listed = await _get(f"{url}/models", "OPENAI_BASE_URL", headers)
    if advice := ADVICE.get(listed.status_code):
        raise Ailment(advice)
    async with _closed(model_of(settings, settings.llm_model, settings.response_mode)) as asked:
        response = await generate_agentic_response(
            "Which wine goes with oysters: red or white, and is it served cold?",
            run=Run([asked]),
            contract=OutputContract(Pairing),
        )
    if not response.ok:
        raise Ailment(f"{settings.llm_model} gave no valid answer: {response.error}")
    return f"{settings.llm_model} gave a valid answer after {response.ledger.requests} request(s)"


async def check_senses(settings: Settings) -> str:
    """Try the models that read pictures, hear voices and make vectors, those that are set."""
    found = list[str]()
    if (sight := sight_of(settings)) is not None:
        async with _closed(sight):
            found.append(await try_sight(sight))
    async with httpx2.AsyncClient() as http:
        if (transcriber := transcriber_of(settings, http)) is not None:
            found.append(await try_hearing(transcriber))
    async with open_embedder(settings) as embedder:
        if embedder is not None:
            found.append(await try_embedder(embedder))
    if not found:
        raise NotConfigured(
            "VISION_MODEL would read pictures, TRANSCRIPTION_MODEL hear voices, EMBEDDING_MODEL "
            "find documents by meaning"
        )
    return "; ".join(found)


async def try_sight(model: LLMService) -> str:
    """Show a model a label, and tell that it reads it."""
    if problem := await misread(model):
        raise Ailment(
            f"{model.model} does not read a label that it is shown ({problem}); set "
            "VISION_MODEL to a model that sees, or leave it out"
        )
    return f"{model.model} reads a label"


async def try_hearing(transcriber: Transcriber) -> str:
    """Send a server a second of a tone, and tell that it writes that down."""
    try:
        await transcriber.test()
    except AgentError as error:
        raise Ailment(
            f"{error}; check TRANSCRIPTION_MODEL, TRANSCRIPTION_BASE_URL and its key"
        ) from None
    return f"{transcriber.model} takes recordings"


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


async def check_tools(settings: Settings) -> str:
    """Start the MCP servers, and return the tools of each."""
    if settings.mcp_servers is None:
        raise NotConfigured("the model has no tools of other programs; set MCP_SERVERS")
    found, wrong = list[str](), list[str]()
    async with open_servers(settings.mcp_servers, stderr=True) as servers:
        for server in servers.connections:
            await server.settled.wait()
            asks = {True: " (asks the user)", False: ""}
            tools = [f"{tool.remote_name}{asks[tool.needs_confirmation]}" for tool in server.tools]
            if server.problem:
                wrong.append(f"{server.name} does not run ({server.problem})")
            else:
                found.append(f"{server.name}: {', '.join(tools)}")
    if problems := [*servers.problems, *wrong]:
        raise Ailment("; ".join([*problems, *found]))
    return "; ".join(found)


async def check_telegram(settings: Settings) -> str:
    """Return the name by which Telegram knows the bot."""
    if settings.telegram_bot_token is None:
        raise NotConfigured("set TELEGRAM_BOT_TOKEN to what @BotFather gives you")
    url = f"{settings.telegram_base_url}/bot{settings.telegram_bot_token.get_secret_value()}/getMe"
    response = await _get(url, "TELEGRAM_BASE_URL")
    if response.status_code in (httpx2.codes.UNAUTHORIZED, httpx2.codes.NOT_FOUND):
        raise Ailment("TELEGRAM_BOT_TOKEN is rejected; get a valid one from @BotFather")
    try:
        return f"this is @{response.raise_for_status().json()['result']['username']}"
    except (httpx2.HTTPStatusError, ValueError, LookupError, TypeError):
        raise Ailment(
            f"Telegram answers {response.status_code} in words of its own; check TELEGRAM_BASE_URL"
        ) from None


async def check_tracing(settings: Settings) -> str:
    """Return where traces arrive, and what to do if their hashes can be guessed."""
    if not settings.is_exported:
        raise NotConfigured(
            "traces stay in the database (`sommelier traces list`); set LANGFUSE_PUBLIC_KEY and "
            "LANGFUSE_SECRET_KEY, or OTEL_EXPORTER_OTLP_ENDPOINT, to send them too"
        )
    if settings.has_langfuse:
        async with aclosing(await langfuse_api(settings, SECONDS)) as langfuse, langfuse.bounded():
            found = await langfuse.api.projects.get(request_options={"max_retries": 0})
        where = ", ".join(project.name for project in found.data) or settings.langfuse_base_url
    else:
        async with aclosing(await otlp_backend(settings)) as backend:
            await backend.export(b"")
        where = str(settings.otel_exporter_otlp_endpoint)
    said = [f"traces go to {where}"]
    if "trace_user_key" not in settings.model_fields_set:
        said.append(GUESSABLE_KEY)
    return "; ".join([*said, *await _waiting_traces(settings)])


async def _waiting_traces(settings: Settings) -> list[str]:
    """Return how many traces have not arrived."""
    try:
        async with open_engine(settings) as engine:
            if await schema_revision(engine) != newest_revision():
                return []
            found = await trace_queue(Sessions(engine)).backlog()
    except DatabaseUnavailable:
        return []
    states = (("waiting", "to be sent"), ("refused", "given up"))
    return [f"{found[state]} traces {said}" for state, said in states if found.get(state)]


CHECKS: Final[Mapping[str, Callable[[Settings], Awaitable[str]]]] = {
    "database": check_database,
    "model": check_model,
    "senses": check_senses,
    "tools": check_tools,
    "Telegram": check_telegram,
    "tracing": check_tracing,
}
"""The checks, in the order in which they are shown."""


@asynccontextmanager
async def _closed(model: LLMService) -> AsyncIterator[LLMService]:
    """Close a model at the end."""
    try:
        yield model
    finally:
        await model.close()


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
